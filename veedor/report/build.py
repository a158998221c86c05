"""From records to a dossier: gathered, joined and counted, never judged again.

Verdicts come from the record that holds them. No words: those are `veedor.report.prose`'s.
"""

from collections.abc import Sequence
from typing import get_args

from veedor.records import Attributions, Decisions, EvaluationSet, Findings, Note, Verdict, VerdictName
from veedor.report.dossier import (
    Absent,
    Counterfactual,
    DataProtection,
    DataSheet,
    Decision,
    Dossier,
    Hypothesis,
    IntendedUse,
    Limitations,
    Metrics,
    NotTested,
    PolicySheet,
    Provenance,
    RulingRow,
    SignOff,
    SubjectSheet,
)
from veedor.report.hypotheses import contrasts, counterfactual
from veedor.report.pairs import Examples
from veedor.report.sheets import data_sheet, dataset_checks, group_rows, method_validity
from veedor.settings import Policy, Settings, build

VERDICTS = get_args(VerdictName)
GENERATED = "identity-terms-"
NEXT = {"FAIL": "stop_release", "NOT_TESTED": "repair_audit", "PASS": "release_may_pass"}
# Told elsewhere, or a place on somebody's disk.
NOT_IN_EVIDENCE = {"policy", "owner", "intended_use", "evaluation_set", "languages", "trust_pickle"}
GENERAL = (
    "words_not_people",
    "only_these_texts",
    "attribution_secondary",
    "one_model_version",
    "no_single_score",
    "pass_is_bounded",
)


def build_dossier(
    evaluation: EvaluationSet,
    decisions: Decisions,
    attributions: Attributions | None,
    findings: Findings,
    verdict: Verdict,
    settings: Settings,
) -> Dossier:
    """Gather one audit's evidence."""
    policy = build(Policy, verdict.policy, "verdict.policy")
    examples = Examples(evaluation, findings, attributions)
    swaps = counterfactual(findings, verdict, policy, examples)
    sheet = data_sheet(evaluation)
    notes = [note for record in (evaluation, decisions, attributions, findings, verdict) if record for note in record.notes]
    return Dossier(
        subject=_subject(decisions),
        intended_use=IntendedUse(
            text=settings.intended_use,
            owner=settings.owner,
            why_not=None if settings.intended_use else "not_declared",
        ),
        policy=PolicySheet(content=verdict.policy, digest=verdict.policy_digest, as_of=verdict.as_of),
        datasets=(sheet,),
        dataset_checks=dataset_checks(evaluation.validation),
        metrics=Metrics(
            group=group_rows(evaluation, decisions, findings),
            counterfactual=swaps,
            attribution=contrasts(findings, attributions, policy),
            intersectional=Absent(why_not="intersections_not_measured"),
        ),
        method_validity=method_validity(findings, attributions, policy.concordance),
        decision=decision(verdict, policy, swaps, settings.owner),
        ll144=Absent(why_not="no_data_about_people"),
        comparison=Absent(why_not="nothing_to_compare_with"),
        limitations=limitations(sheet, swaps, notes, policy, declared=bool(settings.intended_use)),
        provenance=Provenance(settings=settings.model_dump(mode="json", exclude=NOT_IN_EVIDENCE)),
        signoff=SignOff(waivers=tuple(waiver.model_dump(mode="json") for waiver in policy.waivers)),
        schedule=Absent(why_not="no_schedule_recorded"),
        data_protection=data_protection(evaluation.name),
    )


def _subject(decisions: Decisions) -> SubjectSheet:
    return SubjectSheet(
        card=decisions.subject,
        **decisions.model_dump(
            include={"target", "target_source", "score_function", "threshold", "label_map", "counts"}
        ),
    )


def decision(verdict: Verdict, policy: Policy, swaps: Counterfactual, owner: str | None) -> Decision:
    """The verdict with its counts and what follows from it."""
    rows = swaps.hypotheses
    undecided = "gather_more" if policy.inconclusive == "block" else "release_undecided"
    action = "release_with_waivers" if verdict.overall == "PASS" and verdict.with_waivers else None
    failed = [row for row in rows if row.gating and row.verdict == "FAIL"]
    return Decision(
        overall=verdict.overall,
        rule=verdict.rule,
        with_waivers=verdict.with_waivers,
        failing=tuple(row.id for row in failed if not row.waiver),
        waived=tuple(row.id for row in failed if row.waiver),
        counts={
            scope: _counted([row for row in rows if row.scope == scope]) for scope in policy.scopes
        },
        primary=_counted([row for row in rows if row.primary]),
        gating=_counted([row for row in rows if row.gating]),
        family={
            scope: sum(row.scope == scope and row.adjusted_p is not None for row in rows) for scope in policy.scopes
        },
        alpha=policy.alpha,
        alpha_per_scope=policy.alpha / len(policy.scopes),
        next_action=action or NEXT.get(verdict.overall, undecided),
        owner=owner,
        rulings=tuple(
            RulingRow(
                waived=row.waiver is not None,
                **row.model_dump(include={"id", "scope", "verdict", "rule", "primary", "gating", "adjusted_p"}),
            )
            for row in rows
        ),
    )


def _counted(rows: Sequence[Hypothesis]) -> dict[str, int]:
    return {"all": len(rows)} | {name: sum(row.verdict == name for row in rows) for name in VERDICTS}


def limitations(
    sheet: DataSheet, swaps: Counterfactual, notes: list[Note], policy: Policy, *, declared: bool
) -> Limitations:
    """What limits the reading: most of all, by the steps' notes, and always."""
    untested = [row for row in swaps.hypotheses if row.verdict == "NOT_TESTED"]
    return Limitations(
        emphasis=tuple(emphasis(sheet, swaps, policy, declared=declared)),
        notes=_distinct(notes),
        general=GENERAL,
        not_tested=tuple(NotTested(id=row.id, reason=row.why_not or row.rule) for row in untested),
    )


def emphasis(sheet: DataSheet, swaps: Counterfactual, policy: Policy, *, declared: bool) -> list[Note]:
    """The few things that most limit the reading, in the order of their weight."""
    found = []
    groups = [row for row in swaps.hypotheses if row.scope == "group"]
    small = [row for row in groups if row.n_terms < policy.minimum.terms]
    if sheet.name.startswith(GENERATED):
        contexts = sheet.counts["contexts"]
        found.append(Note(code="texts_from_templates", values={"contexts": contexts, "terms": sheet.counts["terms"]}))
    if small:
        values = {"groups": len(small), "all": len(groups), "minimum": policy.minimum.terms}
        found.append(Note(code="groups_with_few_terms", values=values))
    if sheet.counts["excluded"]:
        found.append(Note(code="rows_excluded", values={"rows": sheet.counts["excluded"]}))
    if any(row.clusters == "contexts" for row in groups) and 0 < sheet.counts["forms"] < sheet.counts["contexts"]:
        found.append(Note(code="contexts_of_few_forms", values={"forms": sheet.counts["forms"]}))
    if not declared:
        found.append(Note(code="use_not_declared"))
    return found


def data_protection(name: str) -> DataProtection:
    """E20: only of texts made here from templates is it known that they are about nobody."""
    if name.startswith(GENERATED):
        return DataProtection(texts_of_real_people=False, basis="generated_from_templates")
    return DataProtection(texts_of_real_people=None, basis="owner_must_say")


def _distinct(notes: list[Note]) -> tuple[Note, ...]:
    seen: dict[str, Note] = {}
    for note in notes:
        seen.setdefault(note.model_dump_json(), note)
    return tuple(seen.values())
