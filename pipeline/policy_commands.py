"""`veedor policy`: write, check and explain a policy file."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.console import print_table
from veedor.errors import UsageError

policy_app = typer.Typer(no_args_is_help=True, help="Write, check and explain a policy file.", rich_markup_mode=None)


@policy_app.command("init")
def policy_init(
    file: Annotated[str | None, typer.Argument(help="Where to write it; standard output otherwise.")] = None,
) -> None:
    """Print the default policy, every line explained: veedor policy init > policy.yaml."""
    from pipeline.policy_words import DEFAULT

    text = DEFAULT.read_text(encoding="utf-8")
    if file is None:
        print(text, end="")
        return
    try:
        with Path(file).open("x", encoding="utf-8") as handle:
            handle.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error}; name a file that does not exist yet") from error


@policy_app.command("check")
def policy_check(file: Annotated[str, typer.Argument(metavar="FILE")]) -> None:
    """Say whether a policy file can be used, and its digest; exit 2 otherwise."""
    from veedor.settings import read_policy

    print(f"{file}: valid, SHA-256 {read_policy(file).digest()}")


@policy_app.command("explain")
def policy_explain(file: Annotated[str | None, typer.Argument(metavar="[FILE]")] = None) -> None:
    """Read a policy back in words; the default one without FILE."""
    from pipeline.policy_words import in_words
    from veedor.settings import Policy, read_policy

    policy = read_policy(file) if file else Policy()
    print_table(None, ("key", "in words"), list(in_words(policy)))
