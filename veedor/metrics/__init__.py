"""The contents page of metrics: what is measured, where it comes from, and how to read it.

`METRICS` is written by hand and lists what exists. Verdicts are in `veedor.verdicts`; nothing here knows a policy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from veedor.metrics.agreement import agreement_matrix, sign_agreement, spearman
from veedor.metrics.attribution_contrast import measure_attribution, placebo_rate
from veedor.metrics.bias import measure_swaps
from veedor.metrics.faithfulness import (
    comprehensiveness,
    curve_area,
    infidelity,
    magnitude_agreement,
    max_sensitivity,
    normalised_comprehensiveness,
    normalised_sufficiency,
    sufficiency,
    tau_leave_one_out,
)
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
    Metric(
        "comprehensiveness",
        comprehensiveness,
        "How far the target's probability falls without a method's first 10 to 50 % of words.",
        "DeYoung et al. 2020, section 4.2",
        "-1 to 1",
        "higher is better",
    ),
    Metric(
        "sufficiency",
        sufficiency,
        "How far the target's probability falls when only a method's first 10 to 50 % of words are left.",
        "DeYoung et al. 2020, section 4.2",
        "-1 to 1",
        "lower is better",
    ),
    Metric(
        "normalised_comprehensiveness",
        normalised_comprehensiveness,
        "Comprehensiveness as a share of the fall from the whole text to the empty one.",
        "Carton et al. 2020",
        "0 and above",
        "higher is better",
    ),
    Metric(
        "normalised_sufficiency",
        normalised_sufficiency,
        "How much of the fall from the whole text to the empty one a rationale alone prevents.",
        "Carton et al. 2020",
        "1 and below",
        "higher is better",
    ),
    Metric(
        "infidelity",
        infidelity,
        "Mean squared miss of what scores promise when random halves of the words are taken out; as is and scaled.",
        "Yeh et al. 2019, definition 2.1",
        "0 and above, squared units of the explained score",
        "lower is better",
    ),
    Metric(
        "max_sensitivity",
        max_sensitivity,
        "Largest relative change of the scores among 10 inputs whose embeddings are moved by 2 % of their norm.",
        "Yeh et al. 2019, definition 3.1",
        "0 and above",
        "lower is better",
    ),
    Metric(
        "tau_leave_one_out",
        tau_leave_one_out,
        "Kendall's tau of word scores with what the model loses when one word is masked.",
        "Attanasio et al. 2023 (ferret); Kendall 1945",
        "-1 to 1",
        "higher is better",
    ),
    Metric(
        "deletion_area",
        curve_area,
        "Area under the target's probability while words are taken out, a method's first words first.",
        "Petsiuk et al. 2018",
        "0 to 1",
        "lower is better",
    ),
    Metric(
        "insertion_area",
        curve_area,
        "Area under the target's probability while words are put into an empty text, a method's first words first.",
        "Petsiuk et al. 2018",
        "0 to 1",
        "higher is better",
    ),
    Metric(
        "randomised_head",
        magnitude_agreement,
        "Spearman's correlation of |score| with that of the model whose classifier head was drawn anew.",
        "Adebayo et al. 2018",
        "-1 to 1",
        "lower is better",
    ),
    Metric(
        "randomised_all",
        magnitude_agreement,
        "Spearman's correlation of |score| with that of the model whose head and layers were all drawn anew.",
        "Adebayo et al. 2018",
        "-1 to 1",
        "lower is better",
    ),
    Metric(
        "control_model",
        magnitude_agreement,
        "Spearman's correlation of |score| with that of a model of this architecture trained on permuted labels.",
        "Adebayo et al. 2018",
        "-1 to 1",
        "lower is better",
    ),
    Metric(
        "method_agreement",
        agreement_matrix,
        "Kendall's tau and Spearman's correlation between two methods' rankings of words, mean over texts.",
        "Kendall 1945; Spearman 1904",
        "-1 to 1",
        "description",
    ),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
