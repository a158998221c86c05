"""Whether two measures of the same cells agree: rank correlations, agreement in sign, and methods among themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def kendall(first: ArrayLike, second: ArrayLike) -> float | None:
    """Kendall's tau-b (Kendall, 1945), corrected for ties; None below two pairs or where one side does not vary.

    >>> round(kendall([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]), 4)
    0.6667
    """
    x, y = _paired(first, second)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    upper = np.triu_indices(len(x), k=1)
    a, b = (np.sign(side[:, None] - side[None, :])[upper] for side in (x, y))
    return finite(float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum())))


@dataclass(frozen=True)
class Agreement:
    """How alike two methods rank the words of a text: means over the `texts` in which that is defined, else None."""

    first: str
    second: str
    kendall: float | None
    spearman: float | None
    texts: int


def agreement_matrix(scores: Mapping[str, Sequence[ArrayLike]], signed: Mapping[str, bool]) -> list[Agreement]:
    """Every pair of methods once, in the order given. scores: method -> one vector of word scores a text.

    Two signed methods are compared as they are; where one of the two has no sign, sizes are compared.
    """
    names = list(scores)
    return [
        _pair(first, second, scores, sizes=not (signed[first] and signed[second]))
        for place, first in enumerate(names)
        for second in names[place + 1 :]
    ]


def _pair(first: str, second: str, scores: Mapping[str, Sequence[ArrayLike]], *, sizes: bool) -> Agreement:
    taus, rhos = [], []
    for one, other in zip(scores[first], scores[second], strict=True):
        a, b = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        a, b = (np.abs(a), np.abs(b)) if sizes else (a, b)
        taus.append(kendall(a, b))
        rhos.append(spearman(a, b))
    return Agreement(first, second, _mean(taus), _mean(rhos), sum(tau is not None for tau in taus))


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


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
