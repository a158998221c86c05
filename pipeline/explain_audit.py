"""What an audit of the same model says about the reliability of the methods that explain a text."""

from pathlib import Path
from typing import TypeVar

from veedor.errors import UsageError
from veedor.records import Decisions, Record, Reliability, manifest_of

Known = TypeVar("Known", bound=Record)


def doubts_of(audit: Path, digest: str) -> dict[str, tuple[str, ...]]:
    """By method, codes of the reasons why the audit marks it unreliable; empty where the audit did not ask.

    UsageError where the folder holds no decisions, or those of other weights than the ones with this SHA-256.
    """
    decisions = _read(audit / "decisions", Decisions)
    if decisions is None:
        raise UsageError(f"{audit} holds no decisions of a model; give the folder of a finished audit with --audit")
    audited = decisions.subject
    if audited.weights_digest != digest:
        raise UsageError(
            f"{audit} is an audit of {audited.name} (weights {audited.weights_digest[:12]}…), not of the model that is "
            f"explained ({digest[:12]}…); give an audit of the same weights with --audit"
        )
    reliability = _read(audit / "reliability", Reliability)
    told = {} if reliability is None else reliability.methods
    return {name: of.marks for name, of in told.items() if of.unreliable}


def _read(folder: Path, kind: type[Known]) -> Known | None:
    """The record, None where there is none; UsageError where it was altered or is of another kind."""
    try:
        return kind.load(folder) if manifest_of(folder) is not None else None
    except ValueError as error:
        raise UsageError(f"{error}; give the folder of an audit as `veedor audit` wrote it with --audit") from error
