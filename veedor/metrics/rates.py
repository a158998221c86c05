"""Rates with exact bounds (Clopper and Pearson, 1934)."""

from scipy.special import betaincinv

from veedor.metrics.constants import BOUND_LEVEL


def clopper_pearson(count: int, total: int, *, level: float = BOUND_LEVEL) -> tuple[float | None, float | None]:
    """Exact lower and upper bound of a rate, each holding at `level` by itself; (None, None) of nothing.

    Both together hold at 2 * level - 1: ask for .975 to get the usual 95 % interval.

    >>> clopper_pearson(0, 100)[1] < 0.03, clopper_pearson(0, 300)[1] < 0.01
    (True, True)
    >>> clopper_pearson(0, 0)
    (None, None)
    """
    if not 0 <= count <= total:
        raise ValueError(f"{count} of {total} is no rate; expected 0 <= count <= total")
    if total == 0:
        return None, None
    low = 0.0 if count == 0 else float(betaincinv(count, total - count + 1, 1 - level))
    high = 1.0 if count == total else float(betaincinv(count + 1, total - count, level))
    return low, high
