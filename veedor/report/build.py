"""From records to a dossier: gathered, joined and counted, never judged again.

Verdicts come from the record that holds them. No words: those are `veedor.report.prose`'s.
"""

from collections.abc import Sequence
from typing import get_args

from veedor.records import Attributions, Decisions, EvaluationSet, Findings, Reliability, Verdict, VerdictName
from veedor.report.dossier import (
    Absent,
    Counterfactual,
    Decision,
    Dossier,
    Hypothesis,
    IntendedUse,
    Metrics,
    PolicySheet,
    Provenance,
    RulingRow,
    SignOff,
    SubjectSheet,
)
from veedor.report.faithfulness import unreliable
from veedor.report.hypotheses import contrasts, counterfactual
from veedor.report.limits import data_protection, limitations
from veedor.report.pairs import Examples
from veedor.report.sheets import counted, data_sheet, dataset_checks, group_rows, method_validity
from veedor.settings import Policy, Settings, build

VERDICTS = get_args(VerdictName)
NEXT = {"FAIL": "stop_release", "NOT_TESTED": "repair_audit", "PASS": "release_may_pass"}
# Told elsewhere, or a place on somebody's disk.
NOT_IN_EVIDENCE = {"policy", "owner", "intended_use", "evaluation_set", "languages", "trust_pickle"}


def build_dossier(
    evaluation: EvaluationSet,
    decisions: Decisions,
    attributions: Attributions | None,
    findings: Findings,
    verdict: Verdict,
    settings: Settings,
    reliability: Reliability | None = None,
) -> Dossier:
    """Gather one audit's evidence; `reliability` is None where the methods were not put to the test."""
    policy = build(Policy, verdict.policy, "verdict.policy")
    examples = Examples(evaluation, findings, attributions)
    swaps = counterfactual(findings, verdict, policy, examples)
    sheet, checks = data_sheet(evaluation), dataset_checks(evaluation.validation)
    records = (evaluation, decisions, attributions, reliability, findings, verdict)
    notes = [note for record in records if record for note in record.notes]
    validity = method_validity(findings, attributions, reliability, policy.concordance)
    return Dossier(
        subject=_subject(decisions),
        intended_use=IntendedUse(
            text=settings.intended_use,
            owner=settings.owner,
            why_not=None if settings.intended_use else "not_declared",
        ),
        policy=PolicySheet(content=verdict.policy, digest=verdict.policy_digest, as_of=verdict.as_of),
        datasets=(sheet,),
        dataset_checks=checks,
        metrics=Metrics(
            group=group_rows(evaluation, decisions, findings),
            counterfactual=swaps,
            attribution=contrasts(findings, attributions, policy, unreliable(validity)),
            intersectional=Absent(why_not="intersections_not_measured"),
        ),
        method_validity=validity,
        decision=decision(verdict, policy, swaps, settings.owner),
        ll144=Absent(why_not="no_data_about_people"),
        comparison=Absent(why_not="nothing_to_compare_with"),
        limitations=limitations(sheet, checks, swaps, notes, policy, declared=bool(settings.intended_use)),
        provenance=Provenance(settings=settings.model_dump(mode="json", exclude=NOT_IN_EVIDENCE)),
        signoff=SignOff(waivers=tuple(waiver.model_dump(mode="json") for waiver in policy.waivers)),
        schedule=Absent(why_not="no_schedule_recorded"),
        data_protection=data_protection(evaluation.name),
    )


def _subject(decisions: Decisions) -> SubjectSheet:
    reasons = decisions.rows["drop_reason"].fillna("").astype(str)
    return SubjectSheet(
        card=decisions.subject,
        dropped=counted(reasons[reasons != ""]),
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
        counts={scope: _counted([row for row in rows if row.scope == scope]) for scope in policy.scopes},
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
