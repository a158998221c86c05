"""An estimate against a margin, in the direction that harms: both, higher, or lower (higher mirrored).

The numbers a verdict rests on; which of them decide is `veedor.verdicts`'.
"""

from typing import Literal

from veedor.metrics.student import equivalence_test, two_sided_p, upper_p

Adverse = Literal["both", "higher", "lower"]


def harm(estimate: float, adverse: Adverse) -> float:
    """How far the estimate goes in the direction that harms.

    >>> harm(-0.5, "both"), harm(-0.5, "higher"), harm(-0.5, "lower")
    (0.5, -0.5, 0.5)
    """
    return abs(estimate) if adverse == "both" else estimate if adverse == "higher" else -estimate


def effect_p(estimate: float | None, standard_error: float | None, df: float | None, adverse: Adverse) -> float | None:
    """P against no effect, two-sided where both directions harm."""
    if estimate is None or adverse == "both":
        return two_sided_p(estimate, standard_error, df)
    return upper_p(harm(estimate, adverse), standard_error, df)


def beyond_p(
    estimate: float | None, standard_error: float | None, df: float | None, margin: float, adverse: Adverse
) -> float | None:
    """One-sided p against an effect of just the margin: small where the effect is shown to lie beyond."""
    return None if estimate is None else upper_p(harm(estimate, adverse) - margin, standard_error, df)


def inside_p(
    estimate: float | None, standard_error: float | None, df: float | None, margin: float, adverse: Adverse
) -> float | None:
    """P of equivalence (both), or of not being worse than the margin (non-inferiority, where one direction harms)."""
    if estimate is None or adverse == "both":
        return equivalence_test(estimate, standard_error, df, margin)
    return upper_p(margin - harm(estimate, adverse), standard_error, df)


def wholly_beyond(low: float | None, high: float | None, margin: float, adverse: Adverse) -> bool | None:
    """Whether a whole interval lies beyond the margin, in a direction that harms."""
    if low is None or high is None:
        return None
    return (adverse != "lower" and low > margin) or (adverse != "higher" and high < -margin)
