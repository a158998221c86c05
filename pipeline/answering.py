"""What a command answers when it cannot do what was asked: a message on standard error and an exit code."""

import tempfile
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from pipeline.console import hush, say
from pipeline.exits import INTERRUPTED, OURS, code_of_error
from veedor import __version__
from veedor.errors import VeedorError

# Typer may carry a copy of click of its own: its usage errors are known by the parent of BadParameter.
PARSERS_OWN: tuple[type[BaseException], ...] = (typer.Exit, typer.Abort, *typer.BadParameter.__bases__)


class Answering(TyperGroup):
    """Turns whatever a command raises into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; user errors are told in a line, faults of ours leave a traceback in a file."""
        hush()
        try:
            return super().invoke(ctx)
        except PARSERS_OWN:
            raise
        except VeedorError as error:
            say(f"veedor: {error}")
            raise typer.Exit(code_of_error(error)) from error
        except KeyboardInterrupt as error:
            say("; ".join(["veedor: interrupted", *getattr(error, "__notes__", [])]))
            raise typer.Exit(INTERRUPTED) from error
        except Exception as error:
            say(f"veedor: a fault of ours: {type(error).__name__}: {error}\nThe traceback is in {keep_traceback()}")
            raise typer.Exit(OURS) from error


def keep_traceback() -> str:
    """Write the traceback being handled where a bug report can pick it up; return it where no file can be written."""
    told = f"veedor {__version__}\n{traceback.format_exc()}"
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="veedor-fault-", suffix=".txt", delete=False, encoding="utf-8"
        ) as handle:
            handle.write(told)
    except OSError as error:
        return f"no file ({error}) but here:\n{told}"
    return handle.name
