"""What could have been found, and how many words would decide, against sizes worked out elsewhere."""

import math

import pytest
from scipy import stats

from veedor.metrics.planning import Demand, Spread, minimum_detectable_effect, power_to_decide, words_needed

LN2 = 0.693


def demand(margin: float = LN2, *, two_sided: bool = True, demonstrated: bool = False) -> Demand:
    return Demand(margin, 0.05, 0.025, two_sided, demonstrated)


@pytest.mark.parametrize(("size", "expected"), [(50, 0.17), (200, 0.084), (500, 0.053), (1000, 0.038)])
def test_detectable_difference_of_two_rates_of_a_tenth(size: int, expected: float) -> None:
    error = math.sqrt(2 * 0.1 * 0.9 / size)
    found = minimum_detectable_effect(error, float("inf"), alpha=0.05)
    assert found == pytest.approx(expected, abs=0.0025)


def test_what_has_no_standard_error_has_no_detectable_effect() -> None:
    assert minimum_detectable_effect(None, 5, alpha=0.05) is None


@pytest.mark.parametrize(("margin", "clusters"), [(0.01, 215), (0.02, 54), (0.05, 9)])
def test_contexts_needed_to_certify_a_margin(margin: float, clusters: int) -> None:
    """Equivalence at 80 % power, a true effect of 0, a standard deviation of .05: the normal's sizes, and up to 2 more.

    Student's t, which a real test uses, asks for a little more than the normal distribution does.
    """

    def power(contexts: int) -> float:
        return power_to_decide(Spread(0.0, 0.0, 0.0, 0.05**2, 1, 10**9, contexts), demand(margin))

    assert power(clusters - 1) < 0.8 <= power(clusters + 2)


def test_power_agrees_with_a_simulation() -> None:
    """An equivalence test with a true effect of .3, margin .693, se .15, many degrees of freedom."""
    import numpy as np

    estimates = np.random.default_rng(0).normal(0.3, 0.15, 20_000)
    reach = stats.norm.ppf(0.95) * 0.15
    passed = (estimates + reach < LN2) & (estimates - reach > -LN2)
    spread = Spread(0.3, 0.0, 0.0, 0.15**2 * 10**6, 1, 10**6, 10**6)
    assert power_to_decide(spread, demand()) == pytest.approx(passed.mean(), abs=0.01)


def test_more_terms_decide_where_the_terms_are_what_varies() -> None:
    terms, controls = words_needed(Spread(0.2, 0.8**2, 0.3**2, 0.1**2, 6, 40, 24), demand())
    assert controls is None and terms is not None and 15 < terms < 40
    assert power_to_decide(Spread(0.2, 0.8**2, 0.3**2, 0.1**2, terms, 40, 24), demand()) >= 0.8
    assert power_to_decide(Spread(0.2, 0.8**2, 0.3**2, 0.1**2, terms - 1, 40, 24), demand()) < 0.8


def test_more_controls_decide_where_the_controls_are_what_varies() -> None:
    terms, controls = words_needed(Spread(0.0, 0.1**2, 1.5**2, 0.1**2, 12, 24, 24), demand())
    assert terms is None and controls is not None and controls > 24


def test_both_kinds_of_words_are_asked_for_where_neither_alone_decides() -> None:
    spread = Spread(0.0, 1.0, 4.0, 0.01, 6, 24, 24)
    terms, controls = words_needed(spread, demand(0.5))
    assert terms is not None and controls == round(terms * 4)


def test_an_effect_right_at_the_margin_is_decided_by_no_number_of_words() -> None:
    assert words_needed(Spread(LN2 - 1e-6, 0.5, 0.5, 0.1, 12, 40, 24), demand()) == (None, None)


def test_one_term_is_decided_by_controls_alone() -> None:
    terms, controls = words_needed(Spread(0.3, 0.0, 0.9, 0.2, 1, 24, 24), demand())
    assert terms is None and controls is not None and controls > 24


def test_a_one_sided_policy_needs_no_room_on_the_other_side() -> None:
    far_below = Spread(-2.0, 0.5, 0.5, 0.1, 6, 24, 24)
    assert power_to_decide(far_below, demand(two_sided=False)) > 0.99
