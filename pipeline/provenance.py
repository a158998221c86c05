"""provenance.json: when, where and with what an audit ran, and where it was logged. The one file of an audit folder
that is not evidence: it differs from run to run, and nothing is decided by it.
"""

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from json import loads
from pathlib import Path
from typing import Any

from pipeline.tracking import without_secrets
from veedor import __version__
from veedor.records import write_json
from veedor.settings import Settings

FILE = "provenance.json"
PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "datasets",
    "mlflow",
    "great-expectations",
    "captum",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "weasyprint",
)


def now() -> str:
    """The time, in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def begin(folder: Path, model: str, settings: Settings) -> dict[str, Any]:
    """What is known before the first step; times of steps reused from an earlier start are kept."""
    earlier = read(folder)
    return {
        "schema": 1,
        "started": now(),
        "finished": None,
        "first_started": earlier.get("first_started") or now(),
        "model": without_secrets(model),
        "command": command_line(sys.argv),
        "working_directory": os.getcwd(),
        "seed": settings.seed,
        "threads": settings.threads,
        "host": {"name": platform.node(), "platform": platform.platform(), "cpus": os.cpu_count(), "device": "cpu"},
        "python": platform.python_version(),
        "packages": packages(),
        "steps": earlier.get("steps", {}),
        "mlflow": earlier.get("mlflow"),
        "exit_code": None,
    }


def command_line(arguments: list[str]) -> str:
    """The command as it can be typed again, without secrets.

    >>> command_line(["/x/pipeline/__main__.py", "audit", "my model", "--tracking-uri", "http://a:b@c"])
    "veedor audit 'my model' --tracking-uri http://***@c"
    """
    program = Path(arguments[0]).name if arguments else ""
    ours = program in ("__main__.py", "veedor")
    return without_secrets(shlex.join(["veedor" if ours else program, *arguments[1:]]))


def packages() -> dict[str, str]:
    """The versions that numbers may depend on; what is not installed is left out."""
    found = {"veedor": __version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def read(folder: Path) -> dict[str, Any]:
    """The folder's provenance; empty where there is none or it was cut off while it was written."""
    try:
        content: object = loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write(folder: Path, provenance: dict[str, Any]) -> None:
    """Put the file in place whole: a killed audit leaves the earlier one."""
    partial = folder / f"{FILE}.partial"
    write_json(provenance, partial)
    partial.replace(folder / FILE)


def update(folder: Path, **values: object) -> dict[str, Any]:
    """Change some values of the folder's provenance."""
    changed = read(folder) | values
    write(folder, changed)
    return changed
