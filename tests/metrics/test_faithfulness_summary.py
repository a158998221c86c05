"""Intervals and marks: what chance gets covers zero as often as it should, clusters count once, limits are limits."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from veedor.metrics import faithfulness as f
from veedor.metrics.faithfulness_marks import Limits, marks
from veedor.metrics.faithfulness_summary import COLUMNS, better, paired_interval, summarise
from veedor.metrics.faithfulness_words import prefixes


def test_the_interval_is_that_of_students_t() -> None:
    differences = np.random.default_rng(0).exponential(size=23)
    found = paired_interval(differences)
    low, high = stats.t.interval(0.95, 22, loc=differences.mean(), scale=stats.sem(differences))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high)) and found.n_clusters == 23


def test_texts_of_one_context_count_as_one() -> None:
    """Twelve copies of each of five texts tell no more than the five."""
    five = [0.1, 0.4, -0.2, 0.3, 0.2]
    copied = paired_interval(np.repeat(five, 12), list(np.repeat(list("abcde"), 12)))
    alone = paired_interval(five)
    assert (copied.low, copied.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
    assert copied.n_clusters == 5


def test_one_text_has_no_interval() -> None:
    found = paired_interval([0.3])
    assert (found.difference, found.low, found.high, found.n_clusters) == (0.3, None, None, 1)
    assert paired_interval([]).difference is None


def test_a_random_ranking_is_told_from_chance_no_more_often_than_said() -> None:
    """400 times 30 texts of a model with uneven words, whose method ranks by dice: 95 % of intervals hold zero."""
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        differences = []
        for _ in range(30):
            n = int(rng.integers(4, 12))
            worth = rng.exponential(size=n) * rng.choice([-1.0, 1.0], size=n)
            values = [_comprehensiveness(worth, rng.permutation(n)) for _ in range(21)]
            differences.append(values[0] - np.mean(values[1:]))
        found = paired_interval(differences)
        assert found.low is not None and found.high is not None
        held += found.low <= 0 <= found.high
    assert 0.92 <= held / 400 <= 0.975, "two and a half standard errors of 400 throws at .95"


def _comprehensiveness(worth: np.ndarray, order: np.ndarray) -> float:
    def answer(gone: int) -> float:
        left = sum(own for word, own in enumerate(worth) if not gone >> word & 1)
        return float(1 / (1 + np.exp(-left)))

    return f.comprehensiveness(answer(0), [answer(gone) for gone in prefixes(order, f.rationale_sizes(len(worth)))])


def values(metric: str, own: list[float | None], chance: list[float | None], operator: str = "mask") -> pd.DataFrame:
    rows = [
        {
            "text": text,
            "method": "m",
            "operator": operator,
            "metric": metric,
            "value": value,
            "random": reference,
            "uniform": None,
            "reason": None if value is not None else "one_word",
        }
        for text, (value, reference) in enumerate(zip(own, chance, strict=True))
    ]
    return pd.DataFrame(rows)


def test_a_summary_pairs_text_by_text_and_counts_what_is_undefined() -> None:
    table = summarise(values("sufficiency", [0.1, None, 0.3], [0.2, None, 0.6]))
    assert tuple(table.columns) == COLUMNS
    (row,) = table.to_dict("records")
    assert row["estimate"] == pytest.approx(0.2) and row["random"] == pytest.approx(0.4)
    assert row["difference"] == pytest.approx(-0.2)
    assert (row["n_texts"], row["undefined"], row["reason"]) == (2, 1, None)


def test_a_metric_that_is_defined_nowhere_says_why() -> None:
    (row,) = summarise(values("sufficiency", [None, None], [None, None])).to_dict("records")
    assert pd.isna(row["estimate"]) and (row["reason"], row["n_texts"], row["undefined"]) == ("one_word", 0, 2)


def test_less_is_better_for_sufficiency_and_more_for_comprehensiveness() -> None:
    assert better("comprehensiveness", 0.1, 0.2) and not better("comprehensiveness", -0.2, -0.1)
    assert better("sufficiency", -0.2, -0.1) and not better("sufficiency", 0.1, 0.2)
    assert better("infidelity", None, None) is None and better("infidelity", float("nan"), 1.0) is None


def table(mask: tuple[float, float], delete: tuple[float, float], after: float | None = None) -> pd.DataFrame:
    rows = [("comprehensiveness", "mask", *mask, 0.1), ("comprehensiveness", "delete", *delete, 0.1)]
    rows += [] if after is None else [("randomised_all", "", -1.0, 1.0, after)]
    return pd.DataFrame(rows, columns=["metric", "operator", "low", "high", "estimate"])


GOOD = (0.1, 0.3)


@pytest.mark.parametrize(
    ("rows", "targeted", "gaps", "expected"),
    [
        (table(GOOD, GOOD, 0.1), True, 0.0, ()),
        (table(GOOD, GOOD, 0.5), True, 0.05, ()),
        (table((-0.01, 0.3), GOOD, 0.1), True, None, ("not_beyond_random",)),
        (table(GOOD, (-0.3, -0.1), 0.1), True, None, ("not_beyond_random",)),
        (table(GOOD, GOOD, 0.51), True, None, ("survives_randomisation",)),
        (table(GOOD, GOOD, 0.1), True, 0.051, ("gaps_too_wide",)),
        (table(GOOD, GOOD, 0.9), False, None, ()),
        (table((-0.1, 0.1), GOOD, 0.9), False, None, ("not_beyond_random",)),
        (table((np.nan, np.nan), GOOD), True, None, None),
        (table(GOOD, GOOD).iloc[:0], True, None, None),
    ],
)
def test_a_method_is_marked_by_rules_that_are_fixed_beforehand(
    rows: pd.DataFrame, targeted: bool, gaps: float | None, expected: tuple[str, ...] | None
) -> None:
    assert marks(rows, targeted=targeted, gap_share=gaps, limits=Limits()) == expected
