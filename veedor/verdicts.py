"""From findings to a verdict, by the policy fixed beforehand: PASS, FAIL, INCONCLUSIVE or NOT_TESTED.

What was not shown is not a pass. FAIL is corrected for many tests (see `veedor.hypotheses`); PASS needs every
equivalence test, so it needs no correction. Nothing is measured here, and attribution decides nothing.
"""

from collections.abc import Sequence
from datetime import date

from veedor.hypotheses import Case, hypotheses, scope_alpha
from veedor.metrics.margins import harm, wholly_beyond
from veedor.metrics.planning import Demand, Spread, minimum_detectable_effect, words_needed
from veedor.metrics.student import interval
from veedor.records import Finding, Findings, Note, Ruling, Verdict, VerdictName
from veedor.settings import Policy, Waiver


def decide(findings: Findings, policy: Policy, *, today: date) -> Verdict:
    """Hold every hypothesis against the policy; waivers are judged at `today`."""
    cases = hypotheses(findings, policy)
    waivers = {waiver.hypothesis: waiver for waiver in policy.waivers if waiver.expires >= today}
    rulings = tuple(_ruling(case, findings, policy, waivers.get(case.finding.id)) for case in cases)
    name, rule, waived = _overall(rulings)
    return Verdict(
        overall=name,
        rule=rule,
        with_waivers=waived,
        policy=policy.model_dump(mode="json"),
        policy_digest=policy.digest(),
        as_of=today.isoformat() if policy.waivers else None,
        rulings=rulings,
        notes=(*_waiver_notes(policy, rulings, today), *_attribution_notes(findings, policy)),
    )


def rule_on(case: Case, policy: Policy) -> tuple[VerdictName, str]:
    """The verdict on one hypothesis and the code of the rule that fired: the table of the method, cell by cell."""
    if case.untested or case.inside is None or case.adjusted is None:
        return "NOT_TESTED", case.untested or "undefined"
    missing = _missing_for_fail(case, case.adjusted, policy)
    if missing is None:
        return "FAIL", f"fail_{policy.fail_when}"
    if case.inside < policy.alpha:
        return "PASS", "pass_equivalent" if policy.adverse == "both" else "pass_not_worse"
    return "INCONCLUSIVE", missing


def _missing_for_fail(case: Case, adjusted: float, policy: Policy) -> str | None:
    """Code of the first condition of a FAIL that does not hold; None where all hold."""
    finding, alpha = case.finding, scope_alpha(policy)
    size = harm(finding.estimate or 0.0, policy.adverse)
    term, demonstrated = finding.scope == "term", policy.fail_when == "demonstrated"
    beyond = case.beyond is not None and case.beyond < alpha
    checks = (
        (not size > policy.margin, "inside_not_shown"),
        (not adjusted < alpha, "beyond_not_demonstrated" if demonstrated and not term else "beyond_not_shown"),
        (term and not size > extreme_limit(finding), "not_beyond_extreme_control"),
        (term and demonstrated and not beyond, "beyond_not_demonstrated"),
    )
    return next((code for broken, code in checks if broken), None)


def extreme_limit(finding: Finding) -> float:
    """What a term must exceed: the tail factor times the most extreme control."""
    if finding.most_extreme_control is None or finding.tail_factor is None:
        return float("inf")
    return finding.tail_factor * finding.most_extreme_control


def _ruling(case: Case, findings: Findings, policy: Policy, waiver: Waiver | None) -> Ruling:
    finding = case.finding
    name, rule = rule_on(case, policy)
    own = (finding.estimate, finding.standard_error, finding.df)
    ordinary = (finding.prediction_error, finding.prediction_df)
    low, high = interval(*own, level=1 - policy.alpha)
    narrow_low, narrow_high = interval(*own, level=1 - 2 * policy.alpha)
    terms, controls = _needed(case, findings, policy) if name == "INCONCLUSIVE" else (None, None)
    return Ruling(
        id=finding.id,
        scope=finding.scope,
        axis=finding.axis,
        group=finding.group,
        term=finding.term,
        verdict=name,
        primary=case.primary,
        gating=case.gating,
        rule=rule,
        estimate=finding.estimate,
        standard_error=finding.standard_error,
        df=finding.df,
        low=low,
        high=high,
        p=case.p,
        adjusted_p=case.adjusted,
        equivalence_p=case.inside,
        equivalence_low=narrow_low,
        equivalence_high=narrow_high,
        beyond_margin=wholly_beyond(low, high, policy.margin, policy.adverse),
        beyond_p=case.beyond,
        exploratory_p=case.exploratory,
        minimum_detectable_effect=minimum_detectable_effect(
            *(own[1:] if finding.scope == "group" else ordinary),
            alpha=scope_alpha(policy),
            two_sided=policy.adverse == "both",
        ),
        terms_needed=terms,
        controls_needed=controls,
        n_templates=finding.n_templates,
        n_terms=finding.n_terms,
        n_controls=finding.n_controls,
        waiver=_as_text(waiver) if waiver and name == "FAIL" else None,
    )


def _needed(case: Case, findings: Findings, policy: Policy) -> tuple[int | None, int | None]:
    """About how many terms, or controls, would decide; read off the spread of words and contexts."""
    finding = case.finding
    size = harm(finding.estimate or 0.0, policy.adverse)
    if finding.scope == "term" and size > policy.margin:
        return None, None  # what is missing is distance from single ordinary words, and no number of words brings that
    effects = findings.effects[findings.effects["finding"] == finding.id]
    term, control = (effects.loc[effects["kind"] == kind, "effect"] for kind in ("term", "control"))
    differences = findings.contexts.loc[findings.contexts["finding"] == finding.id, "difference"]
    spread = Spread(
        estimate=size,
        term_variance=float(term.var()) if finding.scope == "group" else 0.0,
        control_variance=float(control.var()),
        context_variance=float(differences.var()),
        terms=len(term),
        controls=len(control),
        contexts=len(differences),
    )
    demand = Demand(
        margin=policy.margin,
        alpha=policy.alpha,
        alpha_fail=scope_alpha(policy),
        two_sided=policy.adverse == "both",
        demonstrated=policy.fail_when == "demonstrated",
    )
    return words_needed(spread, demand)


def _overall(rulings: Sequence[Ruling]) -> tuple[VerdictName, str, bool]:
    """The audit's verdict, the rule behind it, and whether a waiver was needed."""
    failed = [ruling for ruling in rulings if ruling.gating and ruling.verdict == "FAIL"]
    waived = any(ruling.waiver for ruling in failed)
    primaries = [ruling.verdict for ruling in rulings if ruling.primary]
    if any(ruling.waiver is None for ruling in failed):
        return "FAIL", "overall_fail", waived
    if all(name == "NOT_TESTED" for name in primaries):
        return "NOT_TESTED", "overall_nothing_decided" if primaries else "overall_no_hypotheses", waived
    if "INCONCLUSIVE" in primaries:
        return "INCONCLUSIVE", "overall_undecided", waived
    if "NOT_TESTED" in primaries:
        return "INCONCLUSIVE", "overall_not_tested", waived
    return "PASS", "overall_pass_with_waivers" if waived else "overall_pass", waived


def _waiver_notes(policy: Policy, rulings: Sequence[Ruling], today: date) -> list[Note]:
    """Waivers that have run out, and waivers that nothing needed."""
    failed = {ruling.id for ruling in rulings if ruling.gating and ruling.verdict == "FAIL"}
    notes = []
    for waiver in policy.waivers:
        if waiver.expires < today:
            notes.append(Note(code="waiver_expired", values=dict(_as_text(waiver))))
        elif waiver.hypothesis not in failed:
            notes.append(Note(code="waiver_not_needed", values=dict(_as_text(waiver))))
    return notes


def _attribution_notes(findings: Findings, policy: Policy) -> list[Note]:
    """Methods whose attributions do not follow what swapping the words does."""
    measured = {
        finding.method: finding.concordance
        for finding in findings.findings
        if finding.metric == "attribution_contrast" and finding.estimate is not None
    }
    return [
        Note(
            code="attribution_not_corroborated",
            values={"method": method, "concordance": concordance, "required": policy.concordance},
        )
        for method, concordance in sorted(measured.items(), key=lambda item: str(item[0]))
        if concordance is None or concordance < policy.concordance
    ]


def _as_text(waiver: Waiver) -> dict[str, str]:
    return {
        "hypothesis": waiver.hypothesis,
        "owner": waiver.owner,
        "reason": waiver.reason,
        "expires": waiver.expires.isoformat(),
    }
