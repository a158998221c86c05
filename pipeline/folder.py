"""The audit folder: what lies on the desk while steps run, and what is still up to date. Who may write: `claim`.

A record whose inputs have not changed is not made again, so that a killed audit continues where it stopped. What a
record was made from stands in its manifest: the digests of the records, settings and subject that its step reads.
"""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, cast

import yaml

from pipeline import provenance
from pipeline.evidence import finished
from pipeline.plan import PLAN, RECORDS, Step
from veedor import __version__, records
from veedor.errors import UsageError
from veedor.records import Record, canonical_json
from veedor.settings import Settings


@dataclass
class Desk:
    """What the steps find on the table: what the pipeline lends, and the records made so far."""

    folder: Path
    settings: Settings
    lent: dict[str, Any]
    made: dict[str, Record] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        """The value of a step's parameter; UsageError names the step to run first."""
        if name in self.lent:
            return self.lent[name]
        if name not in self.made:
            self.fetch(name)
        return self.made[name]

    def fetch(self, name: str) -> None:
        """Read an earlier step's record from the folder."""
        manifest = finished(self.folder / name)
        try:
            self.made[name] = record_class(name).load(self.folder / name)
        except ValueError as error:
            step = next(step.name for step in PLAN if step.writes == name)
            raise UsageError(f"{error}; run `python -m pipeline step {step} --out {self.folder}` first") from error
        self.digests[name] = str((manifest or {})["digest"])

    def keep(self, name: str, record: Record, made_from: Mapping[str, str]) -> None:
        """Save a record and remember it."""
        self.digests[name] = record.save(self.folder / name, made_from=made_from)
        self.made[name] = record


def write_settings(folder: Path, settings: Settings) -> None:
    """settings.yaml: everything the audit was told, defaults included; it can be given back as --settings."""
    content = yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    partial = folder / "settings.yaml.partial"
    partial.write_text(content, encoding="utf-8")
    partial.replace(folder / "settings.yaml")


def make(step: Step, desk: Desk, *, again: bool = False) -> None:
    """Make a step's record, unless the folder holds it, made from the same."""
    inputs = {name: desk.value(name) for name in step.reads}
    made_from = origins(step, desk)
    started = time.perf_counter()
    reused = not again and reuse(step, desk, made_from)
    if not reused:
        desk.keep(step.writes, cast(Record, step.load()(**inputs)), made_from)
    timed = {} if reused else {"seconds": round(time.perf_counter() - started, 2)}
    steps = provenance.read(desk.folder).get("steps", {})
    entry = steps.get(step.name, {}) | timed | {"reused": reused, "digest": desk.digests[step.writes]}
    provenance.update(desk.folder, steps={**steps, step.name: entry})


def reuse(step: Step, desk: Desk, made_from: Mapping[str, str]) -> bool:
    """Take the record in the folder if it was made from just this and is unaltered."""
    try:
        manifest = finished(desk.folder / step.writes)
        if manifest is None or manifest["made_from"] != made_from:
            return False
        desk.made[step.writes] = record_class(step.writes).load(desk.folder / step.writes)
    except ValueError:
        return False  # altered or of an earlier schema: made again from its inputs, which are known
    desk.digests[step.writes] = manifest["digest"]
    return True


def record_class(name: str) -> type[Record]:
    """The class of the record that lies in the sub-folder of this name."""
    found: type[Record] = getattr(records, str(RECORDS[name]))
    return found


def origins(step: Step, desk: Desk) -> dict[str, str]:
    """Everything that can change the step's record, each by a digest or short value."""
    content = desk.settings.model_dump(mode="json")
    found = {f"settings.{key}": digest_of(pick(content, key)) for key in step.uses}
    found |= {name: desk.digests[name] for name in step.reads if name in desk.digests}
    if "subject" in step.reads:
        found["subject"] = digest_of(desk.lent["subject"].card.model_dump(mode="json"))
    if "subject_language" in step.reads:
        found["subject_language"] = str(desk.lent["subject_language"])
        found["file"] = file_digest(desk.settings.evaluation_set)
        found["words"] = file_digest(str(Path(records.__file__).parent / "evaluation"), "*.yaml")
    if "today" in step.reads and desk.settings.policy.waivers:
        found["today"] = cast(date, desk.lent["today"]).isoformat()
    return {**found, "veedor": __version__}


def pick(content: Mapping[str, Any], key: str) -> Any:
    """A value by its dotted key.

    >>> pick({"policy": {"scale": "logit"}}, "policy.scale")
    'logit'
    """
    value: Any = content
    for part in key.split("."):
        value = value[part]
    return value


def digest_of(value: object) -> str:
    """SHA-256 of a plain value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_digest(name: str | None, kind: str = "*") -> str:
    """SHA-256 of a file, or of a folder's files of a kind; empty for what is no path, such as a built-in set's name."""
    path = Path(name) if name else None
    if path is None or not path.exists():
        return ""
    files = [path] if path.is_file() else sorted(entry for entry in path.rglob(kind) if entry.is_file())
    return digest_of([[entry.name, records.sha256(entry)] for entry in files])
