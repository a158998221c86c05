"""Findings and rulings side by side: what was measured of each hypothesis and what the policy made of it.

Attribution contrasts stand beside the hypotheses as evidence of their own. They get an interval here and a mark, not
corroborated, where they rank words unlike the swaps do or see differences among ordinary words.
"""

from collections.abc import Collection, Mapping

import pandas as pd

from veedor.records import Attributions, Finding, Findings, Ruling, Verdict, finite
from veedor.report.dossier import AttributionContrast, Counterfactual, Hypothesis, WordEffect
from veedor.report.pairs import Examples
from veedor.report.practical import factor, practical
from veedor.settings import Policy

PLACEBO_LIMIT = 0.10
"""Twice the nominal false-alarm rate of .05: above it a method sees differences where there are none to see."""

ORDER = {"FAIL": 0, "INCONCLUSIVE": 1, "NOT_TESTED": 2, "PASS": 3}


def counterfactual(findings: Findings, verdict: Verdict, policy: Policy, examples: Examples) -> Counterfactual:
    """All term-swap hypotheses; failures first, then the largest effects."""
    words = _word_effects(findings)
    told = {finding.id: finding for finding in findings.findings if finding.metric == "term_swap_effect"}
    beside = _beside(findings)
    rows = []
    for ruling in verdict.rulings:
        strips = ruling.scope == "group" or ruling.verdict == "FAIL"
        pairs = examples.of(ruling.id, beside.get(ruling.id, ()), strips=strips)
        own = words.get(ruling.id, ()) if ruling.scope == "group" else ()
        rows.append(hypothesis(ruling, told.get(ruling.id), findings.scale).model_copy(
            update={"examples": pairs, "words": own}
        ))  # fmt: skip
    rows.sort(key=lambda row: (row.scope, ORDER[row.verdict], -(row.size or 0.0), row.id))
    return Counterfactual(
        scale=findings.scale,
        units="logits" if findings.scale == "logit" else "probability",
        target=findings.target,
        adverse=policy.adverse,
        margin=policy.margin,
        margin_factor=factor(policy.margin) if findings.scale == "logit" else None,
        level=round(100 * (1 - policy.alpha), 6),
        equivalence_level=round(100 * (1 - 2 * policy.alpha), 6),
        hypotheses=tuple(rows),
    )


def hypothesis(ruling: Ruling, finding: Finding | None, scale: str) -> Hypothesis:
    """One hypothesis without its examples; a ruling without a finding keeps its own counts."""
    ruled = ruling.model_dump(exclude={"n_templates", "n_terms", "n_controls"})
    counts = {name: getattr(finding or ruling, name) for name in ("n_templates", "n_terms", "n_controls")}
    measured = (
        finding.model_dump(include=_OF_FINDING)
        if finding
        else {"reference": "controls", "n_rows": 0, "clusters": "contexts", "dropped": {}, "flips": {}, "why_not": None}
    )
    nothing = {name: None for name in ("most_extreme_control", "skew", "excess_kurtosis", "tail_factor")}
    empty = {"near_subwords": None, "subwords": (None, None), "band": (None, None), **nothing}
    return Hypothesis(
        **{**empty, **measured, **ruled, **counts},
        size=None if ruling.estimate is None else abs(ruling.estimate),
        practical=practical(ruling.estimate, scale),
        examples=(),
        words=(),
    )


_OF_FINDING = {
    "reference", "n_rows", "clusters", "dropped", "most_extreme_control", "skew", "excess_kurtosis", "tail_factor",
    "flips", "subwords", "band", "near_subwords", "why_not",
}  # fmt: skip


def contrasts(
    findings: Findings, attributions: Attributions | None, policy: Policy, unreliable: Collection[str] = ()
) -> tuple[AttributionContrast, ...]:
    """All attribution contrasts, by method, each with its interval and its doubts; `unreliable`: methods marked so."""
    methods = attributions.methods if attributions else {}
    own = [finding for finding in findings.findings if finding.metric == "attribution_contrast"]
    return tuple(
        contrast(one, methods.get(one.method or "", {}), policy, marked=one.method in unreliable) for one in own
    )


def contrast(
    finding: Finding, declared: Mapping[str, object], policy: Policy, *, marked: bool = False
) -> AttributionContrast:
    """One attribution contrast; `declared` are the properties of its method, `marked`: it is marked unreliable."""
    low, high = interval(finding, policy.alpha)
    against = doubts(finding, policy.concordance) if finding.estimate is not None else ()
    found = ("unreliable", *against) if marked and finding.estimate is not None else against
    method = finding.method or ""
    names = ("id", "scope", "axis", "group", "term", "units", "estimate", "standard_error", "df", "p")
    beside = ("n_templates", "n_terms", "n_controls", "placebo_rate", "concordance", "sign_agreement", "why_not")
    return AttributionContrast(
        **finding.model_dump(include={*names, *beside}),
        hypothesis=finding.id.removeprefix(f"attribution/{method}/"),
        method=method,
        targeted=bool(declared.get("targeted")),
        signed=bool(declared.get("signed")),
        size=None if finding.estimate is None else abs(finding.estimate),
        low=low,
        high=high,
        corroborated=None if finding.estimate is None else not found,
        doubts=found,
    )


def doubts(finding: Finding, concordance_limit: float) -> tuple[str, ...]:
    """Codes of the reasons why an attribution contrast does not support the term-swap effect."""
    found = []
    if finding.concordance is None:
        found.append("concordance_unknown")
    elif finding.concordance < concordance_limit:
        found.append("concordance_low")
    if finding.placebo_rate is not None and finding.placebo_rate > PLACEBO_LIMIT:
        found.append("placebo_high")
    return tuple(found)


def interval(finding: Finding, alpha: float) -> tuple[float | None, float | None]:
    """Two-sided interval at 1 - alpha; (None, None) where the finding has no standard error."""
    from scipy.stats import t

    if finding.estimate is None or finding.standard_error is None or finding.df is None or finding.df <= 0:
        return None, None
    half = float(t.ppf(1 - alpha / 2, finding.df)) * finding.standard_error
    return finite(finding.estimate - half), finite(finding.estimate + half)


def _beside(findings: Findings) -> dict[str, list[str]]:
    """Attribution findings of each hypothesis: their pairs lie in the sample that was explained."""
    found: dict[str, list[str]] = {}
    for finding in findings.findings:
        if finding.metric == "attribution_contrast":
            found.setdefault(finding.id.removeprefix(f"attribution/{finding.method}/"), []).append(finding.id)
    return found


def _word_effects(findings: Findings) -> dict[str, tuple[WordEffect, ...]]:
    effects: pd.DataFrame = findings.effects[~findings.effects["finding"].str.startswith(("attribution/", "term/"))]
    found: dict[str, list[WordEffect]] = {}
    for row in effects.to_dict("records"):
        subwords, band = (None if pd.isna(row[name]) else float(row[name]) for name in ("subwords", "band"))
        effect = WordEffect(
            word=str(row["word"]),
            kind=str(row["kind"]),
            effect=float(row["effect"]),
            n_contexts=int(row["n_contexts"]),
            subwords=subwords,
            band=band,
        )
        found.setdefault(str(row["finding"]), []).append(effect)
    return {name: tuple(rows) for name, rows in found.items()}
