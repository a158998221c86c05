"""HateCheck (Röttger et al., 2021): functional tests of hate-speech detection, with seven target groups in templates.

A case's template says where its identity stands; the two are aligned. Slurs, misspelled identities and cases without an
identity slot hold no term that could be swapped. Hateful cases are asymmetric: HateCheck calls abuse hateful because it
aims at a protected group, so with an ordinary word in the slot its label would be another. They are kept as they are,
for the measures that need labels.
"""

import re
from pathlib import Path

import pandas as pd

from veedor.errors import EvaluationSetError
from veedor.evaluation.columns import Reading
from veedor.evaluation.lexicon import Form, Lexicon
from veedor.evaluation.rows import as_excluded, as_rows
from veedor.records import Note

LABEL_MEANING = {"hateful": "adverse", "non-hateful": "benign"}
NEEDED = ("functionality", "test_case", "label_gold", "case_templ", "templ_id")
_SLOT = re.compile(r"\[(?:IDENTITY|SLUR)[^\]]*\]")
_IDENTITIES = {"[IDENTITY_S]": "noun", "[IDENTITY_P]": "noun-p", "[IDENTITY_A]": "adj"}
_HEAD = re.compile(r" (?:person|people)$")


def read_hatecheck(table: pd.DataFrame, lexicon: Lexicon, source: Path) -> Reading:
    """The cases with their identity placed, and those that have none to place, each with its reason."""
    missing = [name for name in NEEDED if name not in table.columns]
    if missing:
        raise EvaluationSetError(f"{source} has HateCheck's columns but lacks {', '.join(missing)}; give its full file")
    ids = list(table["case_id"]) if "case_id" in table else [str(number) for number in range(1, len(table) + 1)]
    kept: list[dict[str, object]] = []
    lost: list[dict[str, object]] = []
    for case_id, values in zip(ids, table[list(NEEDED)].itertuples(index=False), strict=True):
        functionality, text, label, template, template_id = (value or "" for value in values)
        record: dict[str, object] = {"id": f"case-{case_id}", "text": text, "label": label}
        placed, reason = place(text, template, lexicon)
        if placed is None:
            lost.append(record | {"reason": reason, "detail": functionality})
            continue
        symmetric = "no" if label == "hateful" else "yes"
        kept.append(record | placed | {"form": f"{functionality}-{template_id}", "symmetric": symmetric})
    hateful = any(record["symmetric"] == "no" for record in kept)
    notes = (Note(code="hateful_cases_asymmetric"),) if hateful else ()
    return Reading(as_rows(kept), as_excluded(lost), notes)


def place(text: str, template: str, lexicon: Lexicon) -> tuple[dict[str, object] | None, str]:
    """Where the identity of a case stands and which term it is; or None, and the reason why not."""
    slots = _SLOT.findall(template)
    reason = _unsuitable(slots)
    if reason:
        return None, reason
    before, _, after = template.partition(slots[0])
    start = _start(text, before)
    end = len(text.rstrip()) - len(after.rstrip())
    if start is None or end <= start or text.rstrip()[end:] != after.rstrip():
        return None, "template_not_aligned"
    # "black people" is the adjective in front of a word that stays, "women" a noun of its own.
    head = _HEAD.search(text[start:end])
    end -= len(head.group()) if head else 0
    slot = "adj" if head else _IDENTITIES[slots[0]]
    if _touches(text, start - 1) or _touches(text, end):
        return None, "term_inside_word"
    term = _reading(text[start:end], slot, lexicon)
    if term is None:
        return None, "term_not_in_lexicon"
    return _placed(text, start, end, slot, term), ""


def _unsuitable(slots: list[str]) -> str:
    if not slots:
        return "no_identity"
    if any(slot.startswith("[SLUR") for slot in slots):
        return "slur"
    if any(slot not in _IDENTITIES for slot in slots):
        return "misspelled_identity"
    return "several_identities" if len(slots) > 1 else ""


def _start(text: str, before: str) -> int | None:
    """Where the slot starts: after the template's words, with "a" read as "an" where the word asks for it."""
    if text.startswith(before):
        return len(before)
    if re.search(r"\b[Aa] $", before) and text.startswith(before[:-1] + "n "):
        return len(before) + 1
    return None


def _touches(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalnum()


def _reading(surface: str, slot: str, lexicon: Lexicon) -> Form | None:
    forms = sorted(lexicon.forms_of(surface), key=lambda form: form.slot != slot)
    return forms[0] if forms else None


def _placed(text: str, start: int, end: int, slot: str, term: Form) -> dict[str, object]:
    return {
        "slot": slot,
        "axis": term.axis,
        "group": term.group,
        "term": term.term,
        "start": start,
        "end": end,
        "surface": text[start:end],
        "band": term.band,
    }
