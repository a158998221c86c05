"""Published metrics of a group against the rest, on labels and scores (Borkan et al., 2019), and impact ratios.

Background is every row that is not in the group. An empty cell gives None, never 0 or 0.5. Description, not a verdict:
they need the set's labels, and their rows are not independent.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from veedor.metrics.crossed import Bools, Floats
from veedor.metrics.inference import as_mask


def subgroup_auc(labels: ArrayLike, scores: ArrayLike, in_group: ArrayLike) -> float | None:
    """AUC within the group: positives of the group against negatives of the group. In [0, 1].

    >>> subgroup_auc([1, 0, 1, 0], [0.9, 0.4, 0.3, 0.1], [True, True, True, False])
    0.5
    """
    positive, score, group = _cells(labels, scores, in_group)
    return auc(score[positive & group], score[~positive & group])


def bpsn_auc(labels: ArrayLike, scores: ArrayLike, in_group: ArrayLike) -> float | None:
    """Background positives against subgroup negatives: low where the group's harmless texts are scored high."""
    positive, score, group = _cells(labels, scores, in_group)
    return auc(score[positive & ~group], score[~positive & group])


def bnsp_auc(labels: ArrayLike, scores: ArrayLike, in_group: ArrayLike) -> float | None:
    """Subgroup positives against background negatives: low where the group's harmful texts are scored low."""
    positive, score, group = _cells(labels, scores, in_group)
    return auc(score[positive & group], score[~positive & ~group])


def average_equality_gap(
    labels: ArrayLike, scores: ArrayLike, in_group: ArrayLike
) -> tuple[float | None, float | None]:
    """How far subgroup and background scores lie apart among negatives, and among positives. Each in [-0.5, 0.5].

    1/2 - U(background, subgroup) / (sizes multiplied); above zero where the subgroup scores higher.

    >>> average_equality_gap([0, 0, 1, 1], [0.8, 0.2, 0.5, 0.9], [1, 0, 1, 0])
    (0.5, -0.5)
    """
    positive, score, group = _cells(labels, scores, in_group)
    gaps = (auc(score[side & ~group], score[side & group]) for side in (~positive, positive))
    negative, positive_gap = (None if above is None else 0.5 - above for above in gaps)
    return negative, positive_gap


def auc(higher: Floats, lower: Floats) -> float | None:
    """Chance that one of the first scores lies above one of the second, ties for half; None where a side is empty."""
    if not len(higher) or not len(lower):
        return None
    ranked = np.sort(lower)
    below = np.searchsorted(ranked, higher, side="left") + np.searchsorted(ranked, higher, side="right")
    return float(below.sum() / 2 / (len(higher) * len(lower)))


def generalised_mean(values: Sequence[float], power: float = -5.0) -> float | None:
    """Mean of order `power` (Borkan et al., 2019: -5, near the worst value); 0 where a value is 0, None of nothing.

    >>> round(generalised_mean([0.9, 0.8, 0.5]), 6)
    0.605876
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers):
        return None
    if not (numbers >= 0).all() or power == 0:
        raise ValueError(
            f"values {list(values)} with power {power}: expected numbers from 0 up and a power that is not 0"
        )
    if power < 0 and (numbers == 0).any():
        return 0.0
    return float((numbers**power).mean() ** (1 / power))


def impact_ratios(counts: Mapping[str, tuple[int, int]]) -> dict[str, float | None]:
    """Selection rate of each group over that of the most selected. {group: (selected, total)} -> {group: ratio}.

    None for a group without members, and for all where nobody was selected.

    >>> impact_ratios({"a": (5, 10), "b": (4, 10), "c": (0, 0)})
    {'a': 1.0, 'b': 0.8, 'c': None}
    """
    for group, (selected, total) in counts.items():
        if not 0 <= selected <= total:
            raise ValueError(f"group {group!r} has {selected} selected of {total}; expected 0 <= selected <= total")
    rates = {group: selected / total if total else None for group, (selected, total) in counts.items()}
    highest = max((rate for rate in rates.values() if rate is not None), default=0.0)
    return {group: None if rate is None or highest == 0 else rate / highest for group, rate in rates.items()}


def _cells(labels: ArrayLike, scores: ArrayLike, in_group: ArrayLike) -> tuple[Bools, Floats, Bools]:
    score = np.asarray(scores, dtype=np.float64)
    if score.ndim != 1 or not np.isfinite(score).all():
        raise ValueError(f"scores of shape {score.shape} must be one finite number a row; drop undefined rows first")
    return as_mask(labels, len(score), "labels"), score, as_mask(in_group, len(score), "in_group")
