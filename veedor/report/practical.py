"""What an effect in logits means: factor of the odds, and percentage points from two starting probabilities.

Logits multiply odds; how many points that is hangs on where the probability was, so two starts are told: an even one
and a rare one.
"""

import math

from veedor.report.dossier import Practical

EVEN, RARE = 0.5, 0.1
LARGEST = 700.0  # beyond, exp overflows a double


def practical(effect: float | None, scale: str) -> Practical | None:
    """Reading aids for an effect; None where there is none or it is already in probabilities.

    >>> practical(math.log(2), "logit")
    Practical(odds_factor=2.0, half_to=66.7, half_points=16.7, tenth_to=18.2, tenth_points=8.2)
    """
    if effect is None or scale != "logit":
        return None
    half, tenth = (round(100 * shifted(start, effect), 1) for start in (EVEN, RARE))
    return Practical(
        odds_factor=factor(effect),
        half_to=half,
        half_points=round(half - 100 * EVEN, 1),
        tenth_to=tenth,
        tenth_points=round(tenth - 100 * RARE, 1),
    )


def factor(effect: float) -> float:
    """By what the odds are multiplied, or divided where the effect is negative: 1 or more, to three digits.

    >>> factor(-math.log(4)), factor(1.41)
    (4.0, 4.1)
    """
    value = math.exp(min(abs(effect), LARGEST))
    return float(f"{value:.2g}") if value >= 1.05 else round(value, 2)


def shifted(start: float, effect: float) -> float:
    """The probability after its log-odds have moved by `effect`."""
    odds = math.log(start / (1 - start)) + effect
    return 1 / (1 + math.exp(-max(-LARGEST, min(LARGEST, odds))))
