"""The command line's options, each declared once, and how they become settings.

An empty value counts as not given: an MLproject cannot leave an option out. Typed by hand, empty --methods is refused:
it could as well mean none.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veedor.errors import UsageError

if TYPE_CHECKING:
    from veedor.settings import Settings

FORMS = "models:/name/3, models:/name@alias, runs:/id/path, or a local model folder"


def _number(value: str | int | None) -> int | None:
    if value in (None, ""):
        return None
    try:
        return int(str(value))
    except ValueError as error:
        raise typer.BadParameter(f"{value!r} is no whole number") from error


def nonempty(value: str | None) -> str | None:
    """None for an empty value."""
    return value or None


def _methods_given(value: str | None) -> str | None:
    """None for an empty value of an MLproject's run; UsageError for one that somebody typed."""
    if value == "" and "MLFLOW_RUN_ID" not in os.environ:
        raise UsageError("--methods is empty; give names with commas between (`veedor methods`), or leave it out")
    return value or None


def _option(*names: str, help: str, metavar: str) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, callback=nonempty, show_default=False)


def _count(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, metavar="N", parser=_number, show_default=False)


Model = Annotated[str, typer.Argument(help=f"{FORMS[0].upper()}{FORMS[1:]}.", metavar="MODEL")]
Audit = Annotated[str, typer.Argument(help="The folder of a finished audit.", metavar="AUDIT")]
EvaluationSetName = Annotated[
    str | None,
    _option("--evaluation-set", help="A built-in set (`veedor evaluation-sets`) or your file.", metavar="NAME|FILE"),
]
Target = Annotated[str | None, _option("--target", help="The label whose margin is judged.", metavar="LABEL")]
SettingsFile = Annotated[
    str | None, _option("--settings", help="Settings in YAML; options here override it.", metavar="FILE")
]
PolicyFile = Annotated[str | None, _option("--policy", help="The policy (`veedor policy init`).", metavar="FILE")]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        help="Attribution methods, with commas between (`veedor methods`).",
        metavar="A,B",
        callback=_methods_given,
        show_default=False,
    ),
]
Out = Annotated[str | None, _option("--out", help="The audit's folder; by default audits/MODEL-TIME.", metavar="DIR")]
Languages = Annotated[
    list[str] | None,
    typer.Option("--language", help="Language of the report, en or es; repeat for both.", metavar="CODE"),
]
Limit = Annotated[
    int | None,
    _count(
        "--limit",
        help="Cut the set to about so many rows: whole contexts, at least one, however long; stratified, seeded. A "
        "verdict needs 12 contexts: about 1,800 rows of identity-terms-en, or more.",
    ),
]
Seed = Annotated[int | None, _count("--seed", help="Seed of every draw.")]
TrackingUri = Annotated[
    str | None,
    _option("--tracking-uri", help="MLflow store; else MLFLOW_TRACKING_URI, else SQLite beside AUDIT.", metavar="URI"),
]
Head = Annotated[
    str | None, _option("--head", help="auto, softmax or sigmoid: how logits become probabilities.", metavar="HEAD")
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the audit in the folder; finished steps are kept.")]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Read pickled weights too. They can run code: only if you trust them.")
]
NoLog = Annotated[bool, typer.Option("--no-log", help="Log nothing to MLflow.")]


def settings_of(file: str | None, policy: str | None, given: Mapping[str, object]) -> "Settings":
    """Settings from a file, the policy from its own, and over both whatever the command line gave."""
    from veedor.settings import Settings, build, read_policy, read_settings, read_yaml

    values: dict[str, Any] = {}
    if file:
        read_settings(file)  # its faults are told with the file's name
        values = read_yaml(file)
    if policy:
        values["policy"] = read_policy(policy)
    values |= {key: value for key, value in given.items() if value not in (None, [], ())}
    return build(Settings, values, "settings")


def names(value: str | None) -> tuple[str, ...] | None:
    """Names with commas between; UsageError where there are only blanks and commas.

    >>> names("rollout, occlusion"), names(None)
    (('rollout', 'occlusion'), None)
    """
    found = tuple(name.strip() for name in (value or "").split(",") if name.strip())
    if value and not found:
        raise UsageError(f"{value!r} holds no name; give names with commas between, or leave the option out")
    return found or None


def languages(value: Sequence[str] | None) -> tuple[str, ...] | None:
    """The report's languages, each once, also where they were written with commas between."""
    found = dict.fromkeys(name for item in value or () for name in names(item) or ())
    return tuple(found) or None


def audit_folder(audit: str) -> Path:
    """The folder of an audit that exists; UsageError otherwise."""
    folder = Path(audit).expanduser()
    if not folder.is_dir():
        raise UsageError(f"there is no audit folder {audit!r}; give the folder that `veedor audit` wrote")
    if not (folder / "settings.yaml").is_file():
        raise UsageError(f"{audit!r} holds no settings.yaml and so no audit; give the folder that `veedor audit` wrote")
    return folder.resolve()
