"""What the columns of an evaluation-set file mean, and whether each value may stand there.

A wrong value is an error that names row and value; a missing text is an excluded row. Terms are not looked for here.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from veedor.errors import EvaluationSetError
from veedor.evaluation.header import KNOWN, no_text_column
from veedor.evaluation.rows import as_excluded, as_rows
from veedor.records import Note

TRUE = frozenset("true t yes y 1 1.0 si sí verdadero".split())
FALSE = frozenset("false f no n 0 0.0 falso".split())
UNKNOWN = frozenset(("unknown", "?", "desconocido"))
LONG = 100_000
_NAMES = ("axis", "group")
_PLAIN = ("label", "template", "axis", "group", "term", "set", "slot")


@dataclass(frozen=True)
class Reading:
    """A file's rows before any word is put into another's place, the rows that cannot be used, and what to say."""

    rows: pd.DataFrame
    excluded: pd.DataFrame
    notes: tuple[Note, ...] = ()


def read_columns(table: pd.DataFrame, source: Path) -> Reading:
    """The rows of a table of strings; EvaluationSetError names the first value that may not stand where it stands.

    Rows are counted from 1, without the header. Names are stripped of blanks around them, texts are not touched.
    """
    if "text" not in table.columns:
        raise no_text_column(list(table.columns), source)
    cells: dict[str, list[str | None]] = {name: _cells(table, name) for name in KNOWN if name != "text"}
    ids = _ids(cells["id"], source)
    control = [_truth(value, row, source) or False for row, value in enumerate(cells["control"], 1)]
    symmetric = [_symmetry(value, row, source) for row, value in enumerate(cells["symmetric"], 1)]
    for name in _NAMES:
        _check_names(cells[name], name, source)
    spans = [_place(*pair, row, source) for row, pair in enumerate(zip(cells["start"], cells["end"], strict=True), 1)]
    kept: list[dict[str, object]] = []
    lost: list[dict[str, object]] = []
    for at, text in enumerate(table["text"]):
        told: dict[str, object] = {name: cells[name][at] for name in _PLAIN}
        record = told | {"id": ids[at], "text": text or "", "control": control[at], "symmetric": symmetric[at]}
        record |= {"start": spans[at][0], "end": spans[at][1]}
        reason = _why_no_text(text)
        if reason:
            lost.append(record | {"reason": reason})
        else:
            kept.append(record)
    return Reading(as_rows(kept), as_excluded(lost), tuple(_notes(table)))


def _cells(table: pd.DataFrame, name: str) -> list[str | None]:
    """Values without blanks around them; blank is missing."""
    if name not in table.columns:
        return [None] * len(table)
    return [(value.strip() or None) if isinstance(value, str) else None for value in table[name]]


def _ids(cells: list[str | None], source: Path) -> list[str]:
    ids = [value or f"row-{number}" for number, value in enumerate(cells, 1)]
    twice = next((value for value, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        rows = [number for number, value in enumerate(ids, 1) if value == twice]
        shown = ", ".join(map(str, rows[:5]))
        raise EvaluationSetError(f"{source}: id {twice!r} stands in rows {shown}; expected each id once")
    return ids


def _truth(value: str | None, row: int, source: Path, *, name: str = "control") -> bool | None:
    if value is None:
        return None
    if value.casefold() in TRUE or value.casefold() in FALSE:
        return value.casefold() in TRUE
    raise EvaluationSetError(f"{source}, row {row}: {name} is {value[:80]!r}; expected true or false (yes, no, 1, 0)")


def _symmetry(value: str | None, row: int, source: Path) -> str:
    if value is None or value.casefold() in UNKNOWN:
        return "unknown"
    return "yes" if _truth(value, row, source, name="symmetric") else "no"


def _place(start: str | None, end: str | None, row: int, source: Path) -> tuple[int, int]:
    """Where the term stands by the file: characters from 0, the end not included; -1 where it does not say."""
    if start is None and end is None:
        return -1, -1
    if start is None or end is None or not (start.isdecimal() and end.isdecimal() and int(start) < int(end)):
        raise EvaluationSetError(
            f"{source}, row {row}: start is {start!r} and end {end!r}; "
            "expected whole numbers, start before end, or neither"
        )
    return int(start), int(end)


def _check_names(cells: list[str | None], name: str, source: Path) -> None:
    """A hypothesis is called axis/group/term: a slash in the first two would make two of one."""
    for row, value in enumerate(cells, 1):
        if value is not None and ("/" in value or not value.isprintable()):
            raise EvaluationSetError(f"{source}, row {row}: {name} is {value[:80]!r}; expected a name without '/'")


def _why_no_text(text: object) -> str | None:
    if not isinstance(text, str):
        return "null_text"
    return None if text.strip() else "blank_text"


def _notes(table: pd.DataFrame) -> list[Note]:
    texts = table["text"].dropna()
    ignored = tuple(str(name) for name in table.columns if name not in KNOWN and not str(name).startswith("Unnamed: "))
    long = [len(text) for text in texts if len(text) >= LONG]
    odd = sum(_odd(text) for text in texts)
    found: list[Note] = []
    if ignored:
        found.append(Note(code="columns_ignored", values={"columns": ignored}))
    if long:
        found.append(Note(code="long_texts", values={"rows": len(long), "characters": max(long)}))
    if odd:
        found.append(Note(code="control_characters", values={"rows": odd}))
    return found


def _odd(text: str) -> bool:
    """True for a text with control characters other than tabs and line ends."""
    return any((c < " " and c not in "\t\n\r") or "\x7f" <= c <= "\x9f" for c in text)
