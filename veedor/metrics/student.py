"""Student's t: one- and two-sided p, intervals, and equivalence by two one-sided tests (Schuirmann, 1987).

What goes in as None comes out as None; NaN is refused. A standard error of exactly zero gives the limit of ever
smaller ones, so that a verdict cannot hang on whether a sum was rounded to zero.
"""

import numpy as np
from scipy.special import stdtr, stdtrit


def equivalence_test(
    estimate: float | None, standard_error: float | None, df: float | None, margin: float
) -> float | None:
    """P of two one-sided tests (Schuirmann, 1987): the larger of those against -margin and against +margin.

    >>> round(equivalence_test(0.0, 0.1, 20.0, 0.2), 4)
    0.0296
    """
    if not margin > 0 or not np.isfinite(margin):
        raise ValueError(f"margin {margin} must be a positive number, in the units of the estimate")
    if estimate is None:
        return None
    below = upper_p(estimate + margin, standard_error, df)
    above = upper_p(margin - estimate, standard_error, df)
    return None if below is None or above is None else max(below, above)


def upper_p(distance: float | None, standard_error: float | None, df: float | None) -> float | None:
    """One-sided p of distance/standard_error being above zero; its limit where the standard error is exactly zero."""
    if distance is None or standard_error is None or df is None:
        return None
    for name, value in (("estimate", distance), ("standard error", standard_error), ("df", df)):
        if np.isnan(value):
            raise ValueError(f"{name} is NaN; pass None for what is undefined")
    if standard_error < 0 or df <= 0:
        raise ValueError(f"standard error {standard_error} must not be negative, df {df} must be positive")
    if standard_error == 0:
        return 0.0 if distance > 0 else 1.0
    return float(stdtr(df, -distance / standard_error))


def two_sided_p(estimate: float | None, standard_error: float | None, df: float | None) -> float | None:
    """Two-sided p against no effect; 1 where estimate and standard error are both exactly zero."""
    tail = upper_p(None if estimate is None else abs(estimate), standard_error, df)
    return None if tail is None else min(1.0, 2 * tail)


def interval(
    estimate: float | None, standard_error: float | None, df: float | None, *, level: float
) -> tuple[float | None, float | None]:
    """Two-sided confidence interval, (None, None) where it is undefined."""
    if estimate is None or standard_error is None or df is None:
        return None, None
    reach = t_quantile(0.5 + level / 2, df) * standard_error
    return estimate - reach, estimate + reach


def t_quantile(probability: float, df: float) -> float:
    """Quantile of Student's t.

    >>> round(t_quantile(0.975, 10), 4), round(t_quantile(0.975, float("inf")), 4)
    (2.2281, 1.96)
    """
    return float(stdtrit(df, probability))
