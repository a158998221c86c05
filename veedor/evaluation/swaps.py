"""Put control words, and terms of the same axis, into the place of the term that a user's text names.

One term a text; pronouns are never touched ("his" does not become "hers": the text is excluded instead, because broken
grammar would be measured as bias). Every row that cannot be swapped safely is excluded with a reason.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import pandas as pd

from veedor.evaluation.grammar import case_of, fit_article, fit_conjunction, put_case
from veedor.evaluation.lexicon import WORD, Form, Lexicon, Match, fold, words
from veedor.evaluation.rows import as_excluded, as_records, as_rows, context_id
from veedor.evaluation.slots import PhraseKind, choose_slot, phrase_kind, phrase_kinds, thing_described
from veedor.records import Note

Insert = Literal["controls", "terms_and_controls"]
Row = dict[str, object]

# Words that keep naming a gender after the term was swapped; with a term of the gender axis the text is left alone.
_GENDERED = {
    "en": "he him his himself she her hers herself mr mrs ms miss sir madam husband wife son daughter brother sister",
    "es": "él ella ellos ellas señor señora señores señoras marido esposa esposo hijo hija hermano hermana",
}
# With one word to compare with, no spread over words can be told.
_FEWEST_CONTROLS = 2


@dataclass(frozen=True)
class Unsafe:
    """Why a row cannot be swapped: a code, and the words it is about."""

    reason: str
    detail: str = ""


def swap_rows(
    rows: pd.DataFrame, lexicon: Lexicon, *, insert: Insert = "controls", ambiguous: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame, list[Note]]:
    """Rows with their term found, followed by the rows made of them; rows that could not be used; notes.

    `rows` holds the columns of `EvaluationSet.rows`; unknown values are missing (start, end -1). What is known is kept:
    a row with a span keeps it, one with a term but no span has it looked for, one with neither is searched with the
    lexicon (`ambiguous=True` also for words such as "straight" or "old": for files known to name people). A given
    `slot` is kept. `template` becomes the context (the text with its term masked); a given template moves to `form`
    where there is none. Words are inserted once a context and slot class, not once a row, and carry no label: nobody
    has judged the text they make. Control rows pass as they are.
    """
    kept: list[Row] = []
    excluded: list[Row] = []
    for record in as_records(rows):
        placed = record if record["control"] else place_term(record, lexicon, ambiguous=ambiguous)
        if isinstance(placed, Unsafe):
            excluded.append({**record, "reason": placed.reason, "detail": placed.detail})
        else:
            kept.append(placed)
    made = [row for context in _contexts(kept) for row in _insert(context, lexicon, insert)]
    return as_rows([*kept, *made]), as_excluded(excluded), _notes(kept, made, excluded)


def place_term(record: Row, lexicon: Lexicon, *, ambiguous: bool = False) -> Row | Unsafe:
    """A row with span, term, axis, group, slot and context filled in, or why that is not safe."""
    text = str(record["text"])
    match = _locate(record, lexicon, ambiguous)
    if isinstance(match, Unsafe):
        return match
    form = match.forms[0]
    thing = "" if _named(record) else thing_described(text, match, lexicon)
    if thing:
        return Unsafe("not_about_people", f"{match.surface} ({thing})")
    slot = record["slot"] or (choose_slot(text, match, lexicon) if form.slot else None)
    unsafe = _unsafe_slot(text, match, slot, lexicon) or _unsafe_gender(text, match, record, lexicon)
    if unsafe:
        return unsafe
    context = context_id(text, match.start, match.end)
    return {
        **record,
        "template": context,
        "form": record["form"] or record["template"],
        "slot": slot,
        "axis": record["axis"] or form.axis,
        "group": record["group"] or form.group,
        "term": record["term"] or form.term,
        "start": match.start,
        "end": match.end,
        "surface": match.surface,
        "set": record["set"] or (f"{context}/{record['label']}" if record["label"] else context),
        "band": form.band if record["band"] is None else record["band"],
    }


def _named(record: Row) -> bool:
    """True where the file itself says which word it is about."""
    return record["term"] is not None or record["start"] != -1 or record["slot"] is not None


def _locate(record: Row, lexicon: Lexicon, ambiguous: bool) -> Match | Unsafe:
    text = str(record["text"])
    if record["start"] != -1:
        return _given_span(text, record, lexicon)
    if record["term"] is not None:
        return _given_term(text, str(record["term"]), lexicon)
    found = _without_heads(text, lexicon.find(text, ambiguous=ambiguous), lexicon.language)
    return _only(found, missing="no_term")


def _given_span(text: str, record: Row, lexicon: Lexicon) -> Match | Unsafe:
    start, end = int(str(record["start"])), int(str(record["end"]))
    surface = text[start:end]
    if not 0 <= start < end <= len(text) or not surface.strip():
        return Unsafe("span_outside_text", f"{start}-{end}")
    term = str(record["term"] or surface)
    again = [match for match in _given_matches(text, term, lexicon) if match.end <= start or match.start >= end]
    if again:
        return Unsafe("several_terms", ", ".join([surface, *(match.surface for match in again)]))
    return Match(start, end, surface, _readings(surface, term, lexicon))


def _given_term(text: str, term: str, lexicon: Lexicon) -> Match | Unsafe:
    return _only(_given_matches(text, term, lexicon), missing="term_not_in_text", detail=term)


def _given_matches(text: str, term: str, lexicon: Lexicon) -> list[Match]:
    """Where a named term stands: by the lexicon's forms of it, else letter by letter at word boundaries."""
    known = {words(form.term) for form in lexicon.forms_of(term)}
    found = [match for match in lexicon.find(text, ambiguous=True) if words(match.term) in known]
    if found or not words(term):
        return found
    pattern = r"(?<!\w)" + r"\W+".join(map(re.escape, WORD.findall(term))) + r"(?!\w)"
    return [
        Match(hit.start(), hit.end(), hit.group(), _readings(hit.group(), term, lexicon))
        for hit in re.finditer(pattern, text, re.IGNORECASE)
    ]


def _readings(surface: str, term: str, lexicon: Lexicon) -> tuple[Form, ...]:
    """What the lexicon knows of a surface; else one form without a slot, so that the file must name the slot."""
    known = tuple(form for form in lexicon.forms_of(surface) if words(form.surface) == words(surface))
    return known or (Form(surface, "", term.lower()),)


def _only(found: list[Match], *, missing: str, detail: str = "") -> Match | Unsafe:
    if not found:
        return Unsafe(missing, detail)
    if len(found) > 1:
        return Unsafe("several_terms", ", ".join(match.surface for match in found))
    return found[0]


def _without_heads(text: str, found: list[Match], language: str) -> list[Match]:
    """Without the "man" of "a gay man" ("mujer" of "mujer musulmana"): the noun that another term describes."""
    touching = [pair for pair in pairwise(found) if text[pair[0].end : pair[1].start].isspace()]
    heads = [pair[0] if language == "es" else pair[1] for pair in touching]
    starts = {head.start for head in heads if head.axis == "gender" and head.group in ("women", "men")}
    return [match for match in found if match.start not in starts]


def _unsafe_slot(text: str, match: Match, slot: object, lexicon: Lexicon) -> Unsafe | None:
    if slot is None:
        return Unsafe("ambiguous_slot" if match.forms[0].slot else "no_safe_slot", match.surface)
    kinds = phrase_kinds(text, match.start, match.end, lexicon) if slot == "phrase" else None
    if len(_fitting(lexicon.controls(str(slot)), kinds)) < _FEWEST_CONTROLS:
        return Unsafe("no_safe_slot", f"{match.surface} ({slot})")
    # "women's" would become "commuters's".
    if slot == "noun-p" and re.match(r"['’]s\b", text[match.end :]):
        return Unsafe("no_safe_slot", text[match.start : match.end + 2])
    return None


def _fitting(forms: Iterable[Form], kinds: frozenset[PhraseKind] | None) -> list[Form]:
    """The forms whose kind of phrase fits; all of them where the place is not that of a phrase (None)."""
    return [form for form in forms if kinds is None or phrase_kind(form.surface) in kinds]


def _phrase_kinds(context: list[Row], lexicon: Lexicon) -> frozenset[PhraseKind]:
    """What fits into a context: every row of it tells something of the noun before."""
    places = [(str(row["text"]), int(str(row["start"])), int(str(row["end"]))) for row in context]
    return frozenset().union(*(phrase_kinds(text, start, end, lexicon) for text, start, end in places))


def _unsafe_gender(text: str, match: Match, record: Row, lexicon: Lexicon) -> Unsafe | None:
    """A term of the gender axis in a text whose pronouns or titles go on naming the gender."""
    form = match.forms[0]
    binary = form.group in ("women", "men") or not form.slot.startswith("adj")
    if (record["axis"] or form.axis) != "gender" or not binary:
        return None
    gendered = set(_GENDERED.get(lexicon.language, "").split())
    rest = [fold(word) for word in WORD.findall(f"{text[: match.start]} {text[match.end :]}")]
    left = [word for word in rest if word in gendered]
    return Unsafe("gendered_pronoun", ", ".join(left)) if left else None


def _contexts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows of one context and slot class, in the order in which each first appears; controls of the file included."""
    contexts: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        if row["slot"] is not None and row["start"] != -1:
            contexts.setdefault((row["template"], row["slot"]), []).append(row)
    for members in contexts.values():
        if not all(row["control"] for row in members):
            yield members


def _insert(context: list[Row], lexicon: Lexicon, insert: Insert) -> Iterator[Row]:
    """One new row for every control word, and on demand every term of the same axis, that the context does not hold."""
    base = next(row for row in context if not row["control"])
    slot = str(base["slot"])
    present = {words(str(row["surface"])) for row in context}
    present |= {words(str(row["term"])) for row in context if row["term"]}
    candidates = list(lexicon.controls(slot))
    if insert == "terms_and_controls":
        axes = dict.fromkeys(str(row["axis"]) for row in context if row["axis"])
        candidates += [form for axis in axes for form in lexicon.terms(slot, axis=axis) if form.search != "never"]
    verdicts = {row["symmetric"] for row in context}
    symmetric = "no" if "no" in verdicts else ("yes" if verdicts == {"yes"} else "unknown")
    for form in _fitting(candidates, _phrase_kinds(context, lexicon) if slot == "phrase" else None):
        if words(form.surface) not in present and words(form.term) not in present:
            yield {**_swapped(base, form, lexicon), "symmetric": symmetric}


def _swapped(base: Row, form: Form, lexicon: Lexicon) -> Row:
    text, start, end = str(base["text"]), int(str(base["start"])), int(str(base["end"]))
    surface = _as_it_stands(text, start, end, form, lexicon)
    fit = fit_conjunction if lexicon.language == "es" else fit_article
    before = fit(text[:start], form.surface)
    return {
        **base,
        "id": f"{base['template']}/{base['slot']}/{form.term.replace(' ', '-')}",
        "text": before + surface + text[end:],
        "label": None,
        "axis": form.axis,
        "group": form.group,
        "term": form.term,
        "start": len(before),
        "end": len(before) + len(surface),
        "control": form.control,
        "inserted": True,
        "surface": surface,
        "band": form.band,
    }


def _as_it_stands(text: str, start: int, end: int, form: Form, lexicon: Lexicon) -> str:
    surface = text[start:end]
    if text.islower():
        return put_case(form.surface, "lower")
    known = [reading.surface for reading in lexicon.forms_of(surface) if words(reading.surface) == words(surface)]
    return put_case(form.surface, case_of(surface, known[0] if known else surface.lower(), text[:start]))


def _notes(kept: list[Row], made: list[Row], excluded: list[Row]) -> list[Note]:
    contexts = {(row["template"], row["slot"]) for row in made}
    notes = [Note(code="words_inserted", values={"rows": len(kept), "contexts": len(contexts), "inserted": len(made)})]
    if not made:
        notes = [Note(code="nothing_inserted", values={"rows": len(kept) + len(excluded)})]
    reasons = Counter(str(row["reason"]) for row in excluded)
    notes += [
        Note(code="rows_not_swapped", values={"rows": count, "reason": reason})
        for reason, count in sorted(reasons.items())
    ]
    return notes
