"""Jigsaw's bias madlibs (Dixon et al., 2018): 50 identity terms in six forms of sentence, BAD or NOT_BAD.

The form of a row says exactly where its term stands, so nothing is searched. Names in the sentences are filling, not
terms; the occupations of `you_occupation` are not demographic and are left out, counted. Labels follow from the form
and its adjective, never from the term: every row is symmetric.
"""

import re
from pathlib import Path

import pandas as pd

from veedor.errors import EvaluationSetError
from veedor.evaluation.columns import Reading
from veedor.evaluation.lexicon import Form, Lexicon
from veedor.evaluation.rows import as_excluded, as_rows

LABEL_MEANING = {"BAD": "adverse", "NOT_BAD": "benign"}
# The group in each pattern is the term.
FORMS: dict[str, re.Pattern[str]] = {
    "am_hate_adj": re.compile(r"i (?:am|hate) (.+)"),
    "being_adj": re.compile(r"Being (.+) is \S+\."),
    "name_adj": re.compile(r"\S+ is a \S+ (.+)"),
    "verb_adj": re.compile(r"\S+ (.+)"),
    "you_are_adj": re.compile(r"You are a \S+ (.+)"),
}
OCCUPATIONS = "you_occupation"
SLOT = "adj"


def read_madlibs(table: pd.DataFrame, lexicon: Lexicon, source: Path) -> Reading:
    """The rows of a madlibs file with their terms placed; terms the lexicon does not know are left out, counted."""
    known = {*FORMS, OCCUPATIONS}
    if not known & set(table["Template"]):
        raise EvaluationSetError(
            f"{source} has the columns of bias madlibs, but no Template it knows ({', '.join(sorted(known))}); "
            "rename the columns to text, label and template if it is a set of your own"
        )
    readings = {surface: _reading(surface, lexicon) for surface in _surfaces(table)}
    kept: list[dict[str, object]] = []
    lost: list[dict[str, object]] = []
    for number, (text, label, form) in enumerate(table[["Text", "Label", "Template"]].itertuples(index=False), 1):
        record: dict[str, object] = {"id": f"row-{number}", "text": text or "", "label": label, "form": form}
        found = FORMS[form].fullmatch(text or "") if form in FORMS else None
        term = readings[found.group(1)] if found else None
        if found and term:
            kept.append(record | _placed(found, term))
        else:
            lost.append(record | {"reason": _why(form, found), "detail": found.group(1) if found else form})
    return Reading(as_rows(kept), as_excluded(lost))


def _surfaces(table: pd.DataFrame) -> set[str]:
    pairs = table[["Text", "Template"]].dropna().itertuples(index=False)
    found = (FORMS[form].fullmatch(text) for text, form in pairs if form in FORMS)
    return {match.group(1) for match in found if match}


def _reading(surface: str, lexicon: Lexicon) -> Form | None:
    """The lexicon's reading of a term, as an adjective where it can be one."""
    forms = sorted(lexicon.forms_of(surface), key=lambda form: form.slot != SLOT)
    return forms[0] if forms else None


def _placed(found: re.Match[str], term: Form) -> dict[str, object]:
    start, end = found.span(1)
    return {
        "slot": SLOT,
        "axis": term.axis,
        "group": term.group,
        "term": term.term,
        "start": start,
        "end": end,
        "surface": found.group(1),
        "band": term.band,
        "symmetric": "yes",
    }


def _why(form: str | None, found: re.Match[str] | None) -> str:
    if form == OCCUPATIONS:
        return "occupation"
    return "term_not_in_lexicon" if found else "unknown_form"
