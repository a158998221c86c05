"""The hypotheses of an audit under a policy: who is primary, who can fail it, and with what p-values.

Rulings on them are `veedor.verdicts`'. Holm's correction runs within a scope over what can fail the audit; whatever the
policy does not judge is exploration, outside of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from veedor.errors import UsageError, unknown
from veedor.metrics.corrections import benjamini_hochberg, holm
from veedor.metrics.margins import beyond_p, effect_p, inside_p
from veedor.records import Finding, Findings, Scope
from veedor.settings import Policy


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


def hypotheses(findings: Findings, policy: Policy) -> list[Case]:
    """Every term-swap finding as a case, in order of scope and name; UsageError where the policy matches nothing."""
    swaps = sorted(
        (finding for finding in findings.findings if finding.metric == "term_swap_effect"),
        key=lambda finding: (finding.scope, finding.axis, finding.group, finding.term or ""),
    )
    _check(findings, swaps, policy)
    return _adjust(_with_parts([_measured(finding, policy) for finding in swaps], policy), policy)


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


def scope_alpha(policy: Policy) -> float:
    """Error rate of one scope: half of the audit's where both are judged."""
    return policy.alpha / len(policy.scopes)


def _measured(finding: Finding, policy: Policy) -> Case:
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
