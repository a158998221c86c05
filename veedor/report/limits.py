"""What limits the reading of an audit, as notes: what limits it most, what the steps had to say, and what always holds.

Codes and counts; the sentences are in reports/words.
"""

from collections.abc import Sequence

from veedor.records import Note
from veedor.report.dossier import Counterfactual, DataProtection, DatasetChecks, DataSheet, Limitations, NotTested
from veedor.settings import Policy

GENERATED = "identity-terms-"
GENERAL = (
    "words_not_people",
    "only_these_texts",
    "attribution_secondary",
    "one_model_version",
    "no_single_score",
    "pass_is_bounded",
)
FIRST = (
    "constant_output",
    "no_controls",
    "few_forms",
    "target_assumed",
    "truncated",
    "limited",
    "limit_exceeded",
    "terms_found_by_lexicon",
)
"""Notes of steps that change how everything else is read: told first, not among the rest."""


def limitations(
    sheet: DataSheet,
    checks: DatasetChecks,
    swaps: Counterfactual,
    notes: Sequence[Note],
    policy: Policy,
    *,
    declared: bool,
) -> Limitations:
    """All limits; `notes` are those of the records, `declared` says whether an intended use was."""
    told = _distinct(notes)
    untested = [row for row in swaps.hypotheses if row.verdict == "NOT_TESTED"]
    first = [note for code in FIRST for note in told if note.code == code]
    found = [*_of_texts(sheet, checks), *first, *_of_groups(swaps, policy)]
    return Limitations(
        emphasis=(*found, *(() if declared else (Note(code="use_not_declared"),))),
        notes=tuple(note for note in told if note.code not in FIRST),
        general=GENERAL,
        not_tested=tuple(NotTested(id=row.id, reason=row.rule) for row in untested),
    )


def _of_texts(sheet: DataSheet, checks: DatasetChecks) -> list[Note]:
    found = []
    if sheet.name.startswith(GENERATED):
        values = {name: sheet.counts[name] for name in ("contexts", "terms")}
        found.append(Note(code="texts_from_templates", values=values))
    if sheet.counts["excluded"]:
        found.append(Note(code="rows_excluded", values={"rows": sheet.counts["excluded"]}))
    broken = sum(not check.success for check in checks.checks)
    if checks.success is None:
        found.append(Note(code="set_not_validated"))
    elif broken:
        found.append(Note(code="checks_broken", values={"broken": broken, "all": len(checks.checks)}))
    return found


def _of_groups(swaps: Counterfactual, policy: Policy) -> list[Note]:
    groups = [row for row in swaps.hypotheses if row.scope == "group"]
    small = [row for row in groups if row.n_terms < policy.minimum.terms]
    if not small:
        return []
    values = {"groups": len(small), "all": len(groups), "minimum": policy.minimum.terms}
    return [Note(code="groups_with_few_terms", values=values)]


def data_protection(name: str) -> DataProtection:
    """E20: only of texts made here from templates is it known that they are about nobody."""
    if name.startswith(GENERATED):
        return DataProtection(texts_of_real_people=False, basis="generated_from_templates")
    return DataProtection(texts_of_real_people=None, basis="owner_must_say")


def _distinct(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Each note once; one that only repeats a fuller note's code is left out."""
    fuller = {note.code for note in notes if note.values}
    told = [note for note in notes if note.values or note.code not in fuller]
    return tuple({note.model_dump_json(): note for note in told}.values())
