"""The table of an evaluation set: its columns, their types, the digest of its content, and the name of a context."""

import hashlib
import re
from collections.abc import Iterable, Mapping

import pandas as pd

from veedor.evaluation.grammar import fit_article
from veedor.evaluation.lexicon import fold
from veedor.records import canonical_json

COLUMNS: Mapping[str, str] = {
    "id": "str",
    "text": "str",
    "label": "str",
    "template": "str",
    "form": "str",
    "slot": "str",
    "axis": "str",
    "group": "str",
    "term": "str",
    "start": "int64",
    "end": "int64",
    "control": "bool",
    "set": "str",
    "symmetric": "str",
    "inserted": "bool",
    "surface": "str",
    "band": "float64",
}
DEFAULTS: Mapping[str, object] = {"start": -1, "end": -1, "control": False, "symmetric": "unknown", "inserted": False}
EXCLUDED_COLUMNS = ("id", "text", "reason", "detail")


def as_rows(records: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """A table with exactly the columns of `EvaluationSet.rows`, in order and typed; what a record lacks is missing.

    >>> as_rows([{"id": "1", "text": "Hello"}])[["id", "start", "control"]].values.tolist()
    [['1', -1, False]]
    """
    listed = list(records)
    columns = {
        name: pd.Series([record.get(name, DEFAULTS.get(name)) for record in listed], dtype=kind)
        for name, kind in COLUMNS.items()
    }
    return pd.DataFrame(columns)


def as_excluded(records: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """A table of rows that could not be used: id, text (cut to 200 characters), reason, detail."""
    listed = [{**record, "text": str(record["text"])[:200]} for record in records]
    return pd.DataFrame(
        {name: pd.Series([record.get(name) for record in listed], dtype="str") for name in EXCLUDED_COLUMNS}
    )


def as_records(rows: pd.DataFrame) -> list[dict[str, object]]:
    """Plain dictionaries, with None for what is missing."""
    plain = rows.astype(object)
    filled = plain.where(rows.notna(), None)
    return [{str(key): value for key, value in record.items()} for record in filled.to_dict("records")]


def content_digest(rows: pd.DataFrame) -> str:
    """SHA-256 over the rows' content, in order; the same on every machine."""
    digest = hashlib.sha256()
    for record in as_records(rows[list(COLUMNS)]):
        digest.update(canonical_json(record).encode() + b"\n")
    return digest.hexdigest()


def mask(text: str, start: int, end: int) -> str:
    """A text with its term blanked out and the article before it made indifferent: equal for texts of one context.

    >>> mask("I met an Asian person.", 9, 14) == mask("I met a tall person.", 8, 12)
    True
    """
    return fit_article(text[:start], "term") + "___" + text[end:]


def context_id(text: str, start: int, end: int) -> str:
    """A stable, readable name of the context: its first words and a digest of the whole.

    >>> context_id("I hate gays.", 7, 11)
    'i-hate~590b116f'
    """
    masked = mask(text, start, end)
    readable = re.sub(r"\W+", "-", fold(masked.replace("___", "~~"))[:40]).strip("-")
    return f"{readable}~{hashlib.sha256(masked.encode()).hexdigest()[:8]}"
