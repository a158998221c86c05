"""From values of texts to a table: means beside their references, and intervals of (method − random) over texts.

The interval is Student's t over clusters: each cluster is the mean of its texts' differences. Texts that share all but
one word are one cluster (its context), because they are not independent; texts that share nothing are one each. What is
undefined on a text is left out of its metric, and counted by reason.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from veedor.metrics.faithfulness_asked import LEAVE_ONE_OUT
from veedor.metrics.student import interval
from veedor.records import finite

LEVEL = 0.95
HIGHER = {"comprehensiveness", "comprehensiveness_margin", "normalised_comprehensiveness", "normalised_sufficiency"} | {
    "insertion_area",
    LEAVE_ONE_OUT,
}
LOWER = {"sufficiency", "sufficiency_margin", "deletion_area", "infidelity", "infidelity_scaled", "max_sensitivity"} | {
    "randomised_head",
    "randomised_all",
    "control_model",
}
ORDER = (
    "comprehensiveness",
    "sufficiency",
    "normalised_comprehensiveness",
    "normalised_sufficiency",
    "comprehensiveness_margin",
    "sufficiency_margin",
    "deletion_area",
    "insertion_area",
    LEAVE_ONE_OUT,
    "infidelity",
    "infidelity_scaled",
    "max_sensitivity",
    "randomised_head",
    "randomised_all",
    "control_model",
)
COLUMNS = (
    "method",
    "operator",
    "metric",
    "estimate",
    "random",
    "uniform",
    "difference",
    "low",
    "high",
    "n_texts",
    "n_clusters",
    "undefined",
    "reason",
)


@dataclass(frozen=True)
class Paired:
    """Mean of paired differences with its interval; None where fewer than two clusters have one."""

    difference: float | None
    low: float | None
    high: float | None
    n_clusters: int


def paired_interval(
    differences: ArrayLike, clusters: Sequence[Hashable] | None = None, *, level: float = LEVEL
) -> Paired:
    """Student's t interval of the mean difference over clusters (over texts, where none are given).

    >>> found = paired_interval([1.0, 2.0, 3.0])
    >>> found.difference, round(found.low, 4), round(found.high, 4), found.n_clusters
    (2.0, -0.4841, 4.4841, 3)
    """
    values = np.asarray(differences, dtype=np.float64)
    if clusters is not None:
        means = pd.Series(values).groupby(pd.Series(list(clusters), dtype=object), sort=True).mean()
        values = np.array(means, dtype=np.float64)
    n = len(values)
    if n < 2:
        return Paired(float(values[0]) if n else None, None, None, n)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / np.sqrt(n)
    low, high = interval(mean, float(error), n - 1.0, level=level)
    return Paired(mean, low, high, n)


def summarise(
    values: pd.DataFrame, clusters: Mapping[int, Hashable] | None = None, *, level: float = LEVEL
) -> pd.DataFrame:
    """One row a method, operator and metric; values as `faithfulness_texts` gives them, clusters: text -> its cluster.

    estimate, random, uniform: means over the texts in which the method's value is defined. difference: mean of (method
    − random), with `low` and `high`. reason: the most frequent one where nothing is defined, else None.
    """
    rows = []
    for (method, operator, metric), own in values.groupby(["method", "operator", "metric"], sort=False):
        defined = own[own["value"].notna() & own["random"].notna()]
        differences = (defined["value"] - defined["random"]).to_numpy(dtype=np.float64)
        of = None if clusters is None else [clusters[text] for text in defined["text"]]
        found = paired_interval(differences, of, level=level)
        reasons = own.loc[own["value"].isna(), "reason"].value_counts()
        rows.append(
            {
                "method": method,
                "operator": operator,
                "metric": metric,
                **{name: _mean(defined[column]) for name, column in _MEANS.items()},
                **found.__dict__,
                "n_texts": len(defined),
                "undefined": len(own) - len(defined),
                "reason": None if len(defined) else str(next(iter(reasons.index), "not_measured")),
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    place = {metric: at for at, metric in enumerate(ORDER)}
    ordered = sorted(range(len(table)), key=lambda at: (place[table["metric"][at]], table["operator"][at]))
    methods = {name: at for at, name in enumerate(dict.fromkeys(table["method"]))}
    ordered.sort(key=lambda at: methods[table["method"][at]])
    return table.iloc[ordered].reset_index(drop=True)


_MEANS = {"estimate": "value", "random": "random", "uniform": "uniform"}


def better(metric: str, low: float | None, high: float | None) -> bool | None:
    """Whether the whole interval of (method − random) lies on the metric's better side; None without an interval.

    >>> better("comprehensiveness", 0.01, 0.2), better("sufficiency", -0.1, 0.05)
    (True, False)
    """
    if low is None or high is None or not np.isfinite([low, high]).all():
        return None
    return low > 0 if metric in HIGHER else high < 0


def _mean(values: "pd.Series[float]") -> float | None:
    defined = values.dropna().astype(np.float64)
    return finite(float(defined.mean())) if len(defined) else None
