"""A user's evaluation file as an evaluation set: recognised or its own, with control words put where it brings none.

Reading the file is `source`, the meaning of columns `columns`, public formats `formats`, finding and swapping words
`swaps`. Nothing is validated here (`suite`) and nothing is left out for length (`limit`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from veedor.errors import EvaluationSetError, UsageError, unknown
from veedor.evaluation.catalogue import CATALOGUE, CatalogueEntry
from veedor.evaluation.columns import Reading, read_columns
from veedor.evaluation.formats import Format, recognise
from veedor.evaluation.lexicon import Lexicon, load_lexicon
from veedor.evaluation.own_terms import place_given
from veedor.evaluation.rows import as_excluded, as_records, as_rows, content_digest
from veedor.evaluation.source import read_table
from veedor.evaluation.swaps import Insert, place_term, swap_rows
from veedor.records import EvaluationSet, Note

DEFAULT_LANGUAGE = "en"
# A row whose place in the sentence is not sure gets no control words, but its own terms can still be compared.
_GRAMMAR = ("no_safe_slot", "ambiguous_slot")
_MEANINGS = 50
# One note a reason, over every stage that left rows out.
LEFT_OUT = "rows_not_swapped"


@dataclass(frozen=True)
class _Set:
    """What is known of a set besides its rows."""

    name: str
    entry: CatalogueEntry
    language: str
    label_meaning: Mapping[str, str]
    lexicon: Lexicon | None
    issues: tuple[str, ...]


def read_rows(path: str | Path, *, language: str | None = None) -> EvaluationSet:
    """The evaluation set of a file or folder, not yet validated.

    `language` is that of the texts (None: the format's own, else English). Raises EvaluationSetError for what is wrong
    with the file, UsageError for a language without a lexicon where words have to be found or put in.
    """
    source = Path(path)
    table = read_table(source)
    known = recognise(table.columns)
    return _recognised(table, known, source, language) if known else _own(table, source, language or DEFAULT_LANGUAGE)


def _recognised(table: pd.DataFrame, known: Format, source: Path, language: str | None) -> EvaluationSet:
    entry = known.entry
    spoken = entry.language or DEFAULT_LANGUAGE
    if language not in (None, spoken):
        raise UsageError(
            f"{source} is {entry.name}, whose language is {spoken!r}, but set_language is {language!r}; leave it out"
        )
    lexicon = load_lexicon(spoken)
    reading = _swapped(known.read(table, lexicon, source), lexicon, "controls")
    about = _Set(entry.name, entry, spoken, known.label_meaning, lexicon, entry.known_validity_issues)
    note = Note(code="format_recognised", values={"format": entry.name, "file": source.name})
    return _assembled(reading, about, len(table), note)


def _own(table: pd.DataFrame, source: Path, language: str) -> EvaluationSet:
    reading = read_columns(table, source)
    entry = CATALOGUE["user-file"]
    named = reading.rows["term"].notna() & ~reading.rows["control"]
    complete = named.any() and bool((reading.rows["control"] & reading.rows["term"].notna()).any())
    ungrouped = (named & (reading.rows["axis"].isna() | reading.rows["group"].isna())).any()
    lexicon = None if complete and not ungrouped else _lexicon(language, source)
    if lexicon is not None and not complete:
        _check_slots(reading.rows, lexicon, source)
    if complete or lexicon is None:
        reading = _joined(reading, place_given(reading.rows, lexicon))
        issues = tuple(issue for issue in entry.known_validity_issues if issue == "words_stand_for_groups")
    else:
        found = _swapped(reading, lexicon, "controls" if named.any() else "terms_and_controls")
        reading = _kept_as_given(found, lexicon, reading.rows) if named.any() else found
        issues = entry.known_validity_issues
    labels = sorted(reading.rows["label"].dropna().unique())
    meaning = {label: label for label in labels} if len(labels) <= _MEANINGS else {}
    return _assembled(reading, _Set(source.name, entry, language, meaning, lexicon, issues), len(table))


def _lexicon(language: str, source: Path) -> Lexicon:
    try:
        return load_lexicon(language)
    except UsageError as error:
        way_out = "or a file that brings its own terms (with axis and group) and control words"
        raise UsageError(f"{source} needs a lexicon: {error}; {way_out}") from error


def _check_slots(rows: pd.DataFrame, lexicon: Lexicon, source: Path) -> None:
    """EvaluationSetError for a slot class for which the lexicon has no control words."""
    for slot, identity in rows[["slot", "id"]].dropna().itertuples(index=False):
        if slot not in lexicon.slots:
            raise EvaluationSetError(f"{source}, id {identity!r}: {unknown('slot', slot, lexicon.slots)}")


def _joined(before: Reading, after: Reading) -> Reading:
    """A later reading of the same rows: what was excluded and said before still holds."""
    excluded = pd.concat([before.excluded, after.excluded], ignore_index=True)
    return Reading(after.rows, excluded, (*before.notes, *after.notes))


def _swapped(reading: Reading, lexicon: Lexicon, insert: Insert) -> Reading:
    """Words put into the slots of symmetric rows; asymmetric rows keep their own word only."""
    asymmetric = reading.rows["symmetric"] == "no"
    rows, excluded, notes = swap_rows(reading.rows[~asymmetric], lexicon, insert=insert)
    alone = _placed(reading.rows[asymmetric], lexicon)
    joined = Reading(
        pd.concat([rows, alone.rows], ignore_index=True) if len(alone.rows) else rows,
        pd.concat([excluded, alone.excluded], ignore_index=True),
        tuple(notes),
    )
    return _joined(reading, joined)


def _placed(rows: pd.DataFrame, lexicon: Lexicon) -> Reading:
    kept: list[dict[str, object]] = []
    lost: list[dict[str, object]] = []
    for record in as_records(rows):
        placed = record if record["control"] else place_term(record, lexicon)
        if isinstance(placed, dict):
            kept.append(placed)
        else:
            lost.append(record | {"reason": placed.reason, "detail": placed.detail})
    return Reading(as_rows(kept), as_excluded(lost))


def _kept_as_given(reading: Reading, lexicon: Lexicon, rows: pd.DataFrame) -> Reading:
    """With the file's own terms kept where no control word could be put in for want of grammar.

    A word the lexicon does not know joins the slot of its context where others have told it, and their controls; else
    it is compared with the other terms only, and not judged.
    """
    stuck = reading.excluded["reason"].isin(_GRAMMAR)
    chosen = rows[rows["id"].isin(reading.excluded.loc[stuck, "id"])].reset_index(drop=True)
    again = place_given(chosen.assign(set=None, template=None).astype(chosen.dtypes), lexicon)
    excluded = pd.concat([reading.excluded[~stuck], again.excluded], ignore_index=True)
    if again.rows.empty:
        return Reading(reading.rows, excluded, reading.notes)
    told = reading.rows.drop_duplicates(["template", "slot"]).drop_duplicates("template", keep=False)
    slots = again.rows["template"].map(told.set_index("template")["slot"])
    source = chosen.set_index("id").loc[again.rows["id"]].reset_index()
    kept = again.rows.assign(
        slot=slots.where(slots.notna(), again.rows["slot"]),
        form=source["template"],
        set=source["set"].where(source["set"].notna(), again.rows["set"]),
    ).astype(again.rows.dtypes)
    alone = int(slots.isna().sum())
    notes = (*reading.notes, Note(code="no_controls_put_in", values={"rows": alone})) if alone else reading.notes
    return Reading(pd.concat([reading.rows, kept], ignore_index=True), excluded, notes)


def _assembled(reading: Reading, about: _Set, read: int, *notes: Note) -> EvaluationSet:
    rows = reading.rows
    unjudged = int(((rows["symmetric"] == "unknown") & ~rows["inserted"]).sum())
    said = [*notes, *(note for note in reading.notes if note.code != LEFT_OUT)]
    if unjudged:
        said.append(Note(code="symmetry_unknown", values={"rows": unjudged}))
    reasons = reading.excluded["reason"].value_counts().sort_index()
    said += [Note(code=LEFT_OUT, values={"rows": int(n), "reason": str(reason)}) for reason, n in reasons.items()]
    return EvaluationSet(
        name=about.name,
        language=about.language,
        licence=about.entry.licence,
        source=about.entry.source,
        intended_construct=about.entry.construct,
        digest=content_digest(rows),
        known_validity_issues=about.issues,
        not_valid_for=about.entry.not_valid_for,
        label_meaning=dict(about.label_meaning),
        group_names=group_names(rows, about.lexicon),
        counts={"rows_read": read, "excluded": len(reading.excluded), **count(rows)},
        notes=tuple(said),
        rows=rows,
        excluded=reading.excluded,
    )


def count(rows: pd.DataFrame) -> dict[str, int]:
    """How many rows, contexts, forms, terms, controls and inserted rows a table holds."""
    return {
        "rows": len(rows),
        "inserted": int(rows["inserted"].sum()),
        "contexts": int(rows["template"].nunique()),
        "forms": int(rows["form"].nunique()),
        "terms": int(rows.loc[~rows["control"], "term"].nunique()),
        "controls": int(rows.loc[rows["control"], "term"].nunique()),
    }


def group_names(rows: pd.DataFrame, lexicon: Lexicon | None) -> dict[str, dict[str, str]]:
    """What the axes and groups of the rows are called: by the lexicon where it knows them, else as in the file."""
    known = {key: dict(names) for key, names in lexicon.group_names.items()} if lexicon else {}
    pairs = rows[["axis", "group"]].dropna().drop_duplicates().itertuples(index=False)
    found: dict[str, dict[str, str]] = {}
    for axis, group in sorted(pairs):
        for key, plain in ((axis, axis), (f"{axis}/{group}", group)):
            found[key] = known.get(key, {"en": plain, "es": plain})
    return found
