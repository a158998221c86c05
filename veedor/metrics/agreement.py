"""Whether two measures of the same cells agree: Spearman's rank correlation and agreement in sign."""

import numpy as np
from numpy.typing import ArrayLike

from veedor.metrics.crossed import Floats
from veedor.records import finite


def spearman(first: ArrayLike, second: ArrayLike) -> float | None:
    """Rank correlation, ties at their mean rank; None below three pairs or where one side does not vary.

    >>> spearman([1.0, 2.0, 3.0, 4.0], [10.0, 30.0, 20.0, 40.0])
    0.8
    >>> spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
    True
    """
    x, y = _paired(first, second)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    a, b = (_ranks(side) - (len(side) + 1) / 2 for side in (x, y))
    return finite(float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())))


def sign_agreement(first: ArrayLike, second: ArrayLike) -> float | None:
    """Share of the pairs with the same sign, of those in which neither is zero; None where there are none.

    >>> sign_agreement([1.0, -2.0, 3.0, 0.0], [2.0, 2.0, 0.5, 1.0])
    0.6666666666666666
    """
    x, y = _paired(first, second)
    signed = (x != 0) & (y != 0)
    if not signed.any():
        return None
    return float((np.sign(x[signed]) == np.sign(y[signed])).mean())


def _ranks(values: Floats) -> Floats:
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    ranks: Floats = mean_rank[code]
    return ranks


def _paired(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"shapes {x.shape} and {y.shape}: expected two arrays of one number a pair")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("the pairs hold NaN or infinite numbers; drop undefined pairs, and count them, first")
    return x, y
