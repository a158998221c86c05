"""What an undecided comparison could have found, and about how many more words would decide it.

Estimates from the present spread of words and contexts, with the present estimate taken for the truth: a guide for
whoever extends a word list, no promise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from veedor.metrics.constants import MOST_WORDS_NEEDED, POWER
from veedor.metrics.crossed import satterthwaite
from veedor.metrics.student import t_quantile, upper_p


@dataclass(frozen=True)
class Spread:
    """Variances of single terms, controls and contexts behind an estimate, and how many of each there are.

    For one term `terms` is 1 and `term_variance` 0: the term is the hypothesis, not a sample.
    """

    estimate: float  # in the direction that harms; its size where both do
    term_variance: float
    control_variance: float
    context_variance: float
    terms: int
    controls: int
    contexts: int

    @property
    def standard_error(self) -> float:
        """Of the estimate."""
        return float(np.sqrt(sum(self._parts())))

    @property
    def df(self) -> float:
        """Satterthwaite's degrees of freedom of the standard error."""
        counts = (self.controls, self.contexts) if self.terms == 1 else (self.controls, self.contexts, self.terms)
        return float(satterthwaite(self._parts()[: len(counts)], [count - 1 for count in counts]))

    def _parts(self) -> tuple[float, float, float]:
        return (
            self.control_variance / self.controls,
            self.context_variance / self.contexts,
            self.term_variance / self.terms,
        )


@dataclass(frozen=True)
class Demand:
    """What counts as decided: the margin, the levels of the two kinds of test, and which directions harm."""

    margin: float
    alpha: float  # of the equivalence test
    alpha_fail: float  # of the test that makes a FAIL, before Holm
    two_sided: bool
    demonstrated: bool


def minimum_detectable_effect(
    standard_error: float | None, df: float | None, *, alpha: float, two_sided: bool = True
) -> float | None:
    """Smallest true effect that the test against no effect finds with a power of 80 %.

    >>> round(minimum_detectable_effect(0.06, float("inf"), alpha=0.05), 3)  # two rates of .1, 50 in each group
    0.168
    """
    if standard_error is None or df is None:
        return None
    return (t_quantile(1 - alpha / (2 if two_sided else 1), df) + t_quantile(POWER, df)) * standard_error


def words_needed(spread: Spread, demand: Demand) -> tuple[int | None, int | None]:
    """About how many terms, and how many controls, in all would decide; None where no number of them would.

    Each alone where that suffices (the other is then None); both together, in the present proportion, where not.
    """
    terms = _fewest(lambda n: replace(spread, terms=n), spread.terms, demand) if spread.terms > 1 else None
    if terms is not None:
        return terms, None
    controls = _fewest(lambda n: replace(spread, controls=n), spread.controls, demand)
    if controls is not None or spread.terms == 1:
        return None, controls
    share = spread.controls / spread.terms
    both = _fewest(lambda n: replace(spread, terms=n, controls=round(n * share)), spread.terms, demand)
    return both, None if both is None else round(both * share)


def power_to_decide(spread: Spread, demand: Demand) -> float:
    """Chance that the verdict is reached which the present estimate points to: inside the margin, or beyond it."""
    size, error, df = spread.estimate, spread.standard_error, spread.df
    if size > demand.margin:
        shown = size - demand.margin if demand.demonstrated else size
        sides = 2 if demand.two_sided and not demand.demonstrated else 1
        return 1 - _shortfall(shown, error, df, demand.alpha_fail / sides)
    inside = 1 - _shortfall(demand.margin - size, error, df, demand.alpha)
    return max(0.0, inside - demand.two_sided * _shortfall(demand.margin + size, error, df, demand.alpha))


def _shortfall(distance: float, error: float, df: float, alpha: float) -> float:
    """Chance that an effect this far from the null is not significant (shifted t, as usual in planning)."""
    missed = upper_p(distance - t_quantile(1 - alpha, df) * error, error, df)
    return 1.0 if missed is None else missed


def _fewest(grow: Callable[[int], Spread], present: int, demand: Demand) -> int | None:
    """Smallest number above the present one at which the power is reached; power grows with the number."""
    low, high = present, MOST_WORDS_NEEDED
    if low >= high or power_to_decide(grow(high), demand) < POWER:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if power_to_decide(grow(middle), demand) >= POWER:
            high = middle
        else:
            low = middle
    return high
