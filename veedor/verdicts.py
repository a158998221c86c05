"""From findings to a verdict, by the policy fixed beforehand: PASS, FAIL, INCONCLUSIVE or NOT_TESTED.

What was not shown is not a pass. FAIL is corrected for many tests (Holm, within each scope, over what can fail the
audit); PASS needs every equivalence test, so it needs no correction. Nothing is measured here, and attribution decides
nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from veedor.errors import UsageError, unknown
from veedor.metrics.corrections import benjamini_hochberg, holm
from veedor.metrics.margins import beyond_p, effect_p, harm, inside_p, wholly_beyond
from veedor.metrics.planning import Demand, Spread, minimum_detectable_effect, words_needed
from veedor.metrics.student import interval
from veedor.records import Finding, Findings, Note, Ruling, Scope, Verdict, VerdictName
from veedor.settings import Policy, Waiver


@dataclass(frozen=True)
class Case:
    """A hypothesis before it is ruled on: its part in the audit, why it cannot be tested, and its p-values."""

    finding: Finding
    untested: str | None  # code of the reason
    primary: bool = False
    gating: bool = False
    p: float | None = None
    beyond: float | None = None
    inside: float | None = None
    adjusted: float | None = None
    exploratory: float | None = None

    @property
    def group(self) -> str:
        """axis/group."""
        return f"{self.finding.axis}/{self.finding.group}"


def decide(findings: Findings, policy: Policy, *, today: date) -> Verdict:
    """Hold every hypothesis against the policy; waivers are judged at `today`."""
    swaps = sorted(
        (finding for finding in findings.findings if finding.metric == "term_swap_effect"),
        key=lambda finding: (finding.scope, finding.axis, finding.group, finding.term or ""),
    )
    _check(findings, swaps, policy)
    cases = _adjust(_with_parts([_case(finding, policy) for finding in swaps], policy), policy)
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


def untested_because(finding: Finding, policy: Policy) -> str | None:
    """Code of the first reason why the policy cannot judge a finding; None where it can."""
    minimum = policy.minimum
    checks = (
        (policy.groups != "all" and f"{finding.axis}/{finding.group}" not in policy.groups, "exploratory"),
        (finding.scope not in policy.scopes, "scope_not_selected"),
        (finding.reference != "controls", "no_controls"),
        (finding.why_not is not None, finding.why_not or ""),
        (finding.scope == "group" and finding.n_terms < minimum.terms, "too_few_terms"),
        (finding.n_controls < minimum.controls, "too_few_controls"),
        (finding.n_templates < minimum.templates, "too_few_contexts"),
        (None in (finding.estimate, finding.standard_error, finding.df, finding.p), "undefined"),
    )
    return next((code for broken, code in checks if broken), None)


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


def scope_alpha(policy: Policy) -> float:
    """Error rate of one scope: half of the audit's where both are judged."""
    return policy.alpha / len(policy.scopes)


def extreme_limit(finding: Finding) -> float:
    """What a term must exceed: the tail factor times the most extreme control."""
    if finding.most_extreme_control is None or finding.tail_factor is None:
        return float("inf")
    return finding.tail_factor * finding.most_extreme_control


def _case(finding: Finding, policy: Policy) -> Case:
    margin, adverse = policy.margin, policy.adverse
    own = (finding.estimate, finding.standard_error, finding.df)
    ordinary = (finding.estimate, finding.prediction_error, finding.prediction_df)
    return Case(
        finding=finding,
        untested=untested_because(finding, policy),
        p=effect_p(*(own if finding.scope == "group" else ordinary), adverse),
        beyond=beyond_p(*own, margin, adverse),
        inside=inside_p(*own, margin, adverse),
    )


def _with_parts(cases: Sequence[Case], policy: Policy) -> list[Case]:
    """Who is primary, and who can fail the audit. A selected group is never left without a primary hypothesis."""
    judged = {case.group for case in cases if case.finding.scope == "group" and not case.untested}
    by_term = {case.group for case in cases if case.finding.scope == "term"} if "term" in policy.scopes else set()
    found = []
    for case in cases:
        selected = policy.groups == "all" or case.group in policy.groups
        if case.finding.scope == "group":
            primary = selected and (case.group in judged or case.group not in by_term)
        else:
            primary = selected and "term" in policy.scopes and case.group not in judged
        found.append(replace(case, primary=primary, gating=primary or not case.untested))
    return found


def _adjust(cases: Sequence[Case], policy: Policy) -> list[Case]:
    """Holm within each scope over what is gating and tested; Benjamini-Hochberg over the rest, as exploration."""
    found = list(cases)
    scopes: tuple[Scope, ...] = ("group", "term")
    for scope in scopes:
        mine = [place for place, case in enumerate(cases) if case.finding.scope == scope]
        family = [(place, _family_p(cases[place], policy)) for place in mine if not cases[place].untested]
        tested = [(place, p) for place, p in family if p is not None]
        for (place, _), adjusted in zip(tested, holm([p for _, p in tested]), strict=True):
            found[place] = replace(cases[place], adjusted=adjusted)
        rest = [(place, p) for place in mine if cases[place].untested and (p := cases[place].p) is not None]
        for (place, _), adjusted in zip(rest, benjamini_hochberg([p for _, p in rest]), strict=True):
            found[place] = replace(cases[place], exploratory=adjusted)
    return found


def _family_p(case: Case, policy: Policy) -> float | None:
    """What Holm runs over: for groups of a `demonstrated` policy the test against the margin, else against nothing."""
    return case.beyond if case.finding.scope == "group" and policy.fail_when == "demonstrated" else case.p


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


def _check(findings: Findings, swaps: Sequence[Finding], policy: Policy) -> None:
    """Refuse a policy that speaks of another scale or target, or of hypotheses that do not exist."""
    for key, asked, measured in (
        ("scale", policy.scale, findings.scale),
        ("target", policy.target or findings.target, findings.target),
    ):
        if asked != measured:
            raise UsageError(
                f"policy {key}: {asked!r}, but the evidence was measured with {measured!r}; "
                f"another {key} needs a new audit (veedor audit)"
            )
    groups = {f"{finding.axis}/{finding.group}" for finding in swaps}
    if policy.groups != "all" and not policy.groups:
        raise UsageError("policy groups: [] selects nothing; name groups as axis/group, or write: groups: all")
    for group in () if policy.groups == "all" else policy.groups:
        if group not in groups:
            raise UsageError(f"policy groups: {unknown('group', group, groups)}")
    for scope in policy.scopes:
        if swaps and not any(finding.scope == scope for finding in swaps):
            raise UsageError(f"policy scopes: {scope!r} matches no hypothesis of this audit; leave it out")
    for waiver in policy.waivers:
        if waiver.hypothesis not in {finding.id for finding in swaps}:
            known = [finding.id for finding in swaps]
            raise UsageError(f"policy waivers: {unknown('hypothesis', waiver.hypothesis, known)}")


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
