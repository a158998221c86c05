"""Sets that bring their own terms: where each term stands in its text, and which rows differ in nothing else.

Nothing is inserted here, and nothing is known of grammar: the words of the file are taken as they stand.
"""

import re
from collections import Counter
from collections.abc import Mapping

import pandas as pd

from veedor.evaluation.columns import Reading
from veedor.evaluation.lexicon import WORD, Lexicon
from veedor.evaluation.rows import as_excluded, as_records, as_rows, context_id
from veedor.records import Note

Row = dict[str, object]
GIVEN = "given"  # the slot class of a place whose grammar nobody has told


def place_given(rows: pd.DataFrame, lexicon: Lexicon | None) -> Reading:
    """Rows with the span, group and context of their term; rows where that is impossible, and why.

    A `set` of the file is its context: its author says that the rows are alike but for the term. Without one, rows
    share a context when their texts with the term masked are equal; a `template` that holds several becomes the form.
    """
    kept: list[Row] = []
    lost: list[Row] = []
    repeated = 0
    for record in as_records(rows):
        found = _spans(record)
        placed = _named(record, lexicon) if found else record
        reason = _why_not(record, found, placed)
        if reason or not found:
            lost.append(record | {"reason": reason, "detail": record["term"]})
            continue
        repeated += len(found) > 1
        kept.append(placed | _span(str(record["text"]), *found[0]))
    notes = (Note(code="term_repeated", values={"rows": repeated}),) if repeated else ()
    return Reading(as_rows(_in_contexts(kept)), as_excluded(lost), notes)


def _spans(record: Row) -> list[tuple[int, int]]:
    """Where the term of a row stands: where the file says so, else wherever it is found."""
    text, start, end = str(record["text"]), int(str(record["start"])), int(str(record["end"]))
    if start < 0:
        return find_given(text, record["term"])
    return [(start, end)] if end <= len(text) and text[start:end].strip() else []


def find_given(text: str, term: object) -> list[tuple[int, int]]:
    """Where a term stands in a text, at word boundaries, whatever its case; letter by letter, blanks and hyphens alike.

    >>> find_given("He is a she-wolf; He said", "he")
    [(0, 2), (18, 20)]
    """
    pieces = WORD.findall(term) if isinstance(term, str) else []
    if not pieces:
        return []
    pattern = r"(?<!\w)(?<!\w-)" + r"[\s-]+".join(map(re.escape, pieces)) + r"(?!\w)(?!-\w)"
    return [hit.span() for hit in re.finditer(pattern, text, re.IGNORECASE)]


def _named(record: Row, lexicon: Lexicon | None) -> Row:
    """The row with its axis and group, from the lexicon where the file leaves them out; none for a control word."""
    if record["control"]:
        return record | {"axis": None, "group": None}
    if (record["axis"] and record["group"]) or lexicon is None:
        return record
    forms = [
        form
        for form in lexicon.forms_of(str(record["term"]))
        if record["axis"] in (None, form.axis) and record["group"] in (None, form.group)
    ]
    return record | ({"axis": forms[0].axis, "group": forms[0].group} if forms else {})


def _why_not(record: Row, found: list[tuple[int, int]], placed: Row) -> str:
    if record["term"] is None:
        return "control_without_term" if record["control"] else "no_term"
    if not found:
        return "term_not_in_text" if record["start"] == -1 else "span_outside_text"
    return "" if record["control"] or (placed["axis"] and placed["group"]) else "term_without_group"


def _span(text: str, start: int, end: int) -> Row:
    return {"start": start, "end": end, "surface": text[start:end]}


def _in_contexts(rows: list[Row]) -> list[Row]:
    """Rows with context, form, slot and set; the term in the spelling of the first row that names it."""
    masked = [context_id(str(r["text"]), int(str(r["start"])), int(str(r["end"]))) for r in rows]
    contexts = [str(r["set"]) if r["set"] else mask for r, mask in zip(rows, masked, strict=True)]
    pairs = {(r["template"], context) for r, context in zip(rows, contexts, strict=True)}
    held = Counter(template for template, _ in pairs)
    return [_in_context(row, context, held) for row, context in zip(rows, contexts, strict=True)]


def _in_context(row: Row, context: str, held: Mapping[object, int]) -> Row:
    template = row["template"]
    if template and held[template] == 1 and not row["set"]:
        context, template = str(template), None
    return row | {
        "template": context,
        "form": template,
        "slot": row["slot"] or GIVEN,
        "term": str(row["term"]).casefold(),
        "set": row["set"] or context,
    }
