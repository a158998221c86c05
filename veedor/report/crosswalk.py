"""The crosswalk: which clauses of rules and standards the evidence may bear on. Data with a date, not legal advice.

The rows are in reports/crosswalk.csv. A row is told only when the evidence it points to exists in this audit.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

FILES = ("manifest.json", "report.html")


@dataclass(frozen=True)
class Clause:
    """One row."""

    evidence: str
    location: str
    instrument: str
    clause: str
    asks: str
    support: str
    applies: str
    checked: str
    as_of: str


@lru_cache(maxsize=8)
def read_crosswalk(file: Path, language: str) -> tuple[Clause, ...]:
    """All rows, told in a language."""
    with file.open(encoding="utf-8", newline="") as handle:
        return tuple(
            Clause(
                **{name: row[name] for name in ("evidence", "location", "instrument", "clause", "support", "as_of")},
                **{name: row[f"{name}_{language}"] for name in ("asks", "applies", "checked")},
            )
            for row in csv.DictReader(handle)
        )


def supported(clauses: tuple[Clause, ...], audit: Mapping[str, Any]) -> tuple[Clause, ...]:
    """Rows whose evidence this audit holds."""
    return tuple(clause for clause in clauses if present(clause.location, audit))


def by_instrument(clauses: Sequence[Clause]) -> list[tuple[str, list[Clause]]]:
    """Clauses under the name of their rule or standard, in the order of the file."""
    found: dict[str, list[Clause]] = {}
    for clause in clauses:
        found.setdefault(clause.instrument, []).append(clause)
    return list(found.items())


def present(location: str, audit: Mapping[str, Any]) -> bool:
    """Whether a location names a file of the report, or a part of audit.json that is there and not declared absent.

    >>> present("audit.json#/a/b", {"a": {"b": 1}}), present("audit.json#/a/c", {"a": {}})
    (True, False)
    """
    file, _, pointer = location.partition("#")
    if file != "audit.json":
        return file in FILES
    value: Any = audit
    for part in pointer.strip("/").split("/"):
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return not (isinstance(value, Mapping) and "why_not" in value and value.get("value", 0) is None)
