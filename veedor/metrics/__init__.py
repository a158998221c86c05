"""The contents page of metrics: what is measured, where it comes from, and how to read it.

`METRICS` is written by hand and lists what exists. Verdicts are in `veedor.verdicts`; nothing here knows a policy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from veedor.metrics.agreement import sign_agreement, spearman
from veedor.metrics.attribution_contrast import measure_attribution, placebo_rate
from veedor.metrics.bias import measure_swaps
from veedor.metrics.flips import flips
from veedor.metrics.groups import average_equality_gap, bnsp_auc, bpsn_auc, impact_ratios, subgroup_auc

__all__ = ["METRICS", "Metric"]


@dataclass(frozen=True)
class Metric:
    """One line of the contents page."""

    name: str
    function: Callable[..., Any]
    summary: str
    source: str
    range: str
    direction: Literal["toward zero", "higher is better", "lower is better", "toward one", "description"]


_ALL = (
    Metric(
        "term_swap_effect",
        measure_swaps,
        "How much a group's terms, or one term, move the target's margin more than control words in the same contexts.",
        "after Prabhakaran et al. 2019 and Garg et al. 2019; crossed test after Clark 1973",
        "logits, or probability from -1 to 1",
        "toward zero",
    ),
    Metric(
        "flips",
        flips,
        "Share of contexts and of terms whose decision is not the one that most control words get; exact bounds.",
        "Clopper and Pearson 1934 (bounds)",
        "0 to 1",
        "lower is better",
    ),
    Metric(
        "attribution_contrast",
        measure_attribution,
        "How much more of the answer a method puts on the term than on control words in the same slots.",
        "matched-control contrast; test as for term_swap_effect",
        "units of the method",
        "toward zero",
    ),
    Metric(
        "placebo_rate",
        placebo_rate,
        "False alarms of the attribution contrast among 200 random splits of the control words.",
        "placebo test",
        "0 to 1",
        "lower is better",
    ),
    Metric(
        "concordance",
        spearman,
        "Spearman's correlation of a method's contrast with the term-swap effect, over contexts and terms.",
        "Spearman 1904",
        "-1 to 1",
        "higher is better",
    ),
    Metric(
        "sign_agreement",
        sign_agreement,
        "Share of contexts and terms in which attribution and term swap point the same way; signed methods only.",
        "share of equal signs",
        "0 to 1",
        "higher is better",
    ),
    Metric(
        "subgroup_auc",
        subgroup_auc,
        "AUC within the group.",
        "Borkan et al. 2019",
        "0 to 1",
        "higher is better",
    ),
    Metric(
        "bpsn_auc",
        bpsn_auc,
        "AUC of background positives against subgroup negatives: low where the group's harmless texts score high.",
        "Borkan et al. 2019",
        "0 to 1",
        "higher is better",
    ),
    Metric(
        "bnsp_auc",
        bnsp_auc,
        "AUC of subgroup positives against background negatives: low where the group's harmful texts score low.",
        "Borkan et al. 2019",
        "0 to 1",
        "higher is better",
    ),
    Metric(
        "average_equality_gap",
        average_equality_gap,
        "How far subgroup and background scores lie apart, among negatives and among positives.",
        "Borkan et al. 2019",
        "-0.5 to 0.5",
        "toward zero",
    ),
    Metric(
        "impact_ratios",
        impact_ratios,
        "Selection rate of each group over that of the most selected group.",
        "29 CFR 1607.4(D)",
        "0 to 1",
        "toward one",
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
