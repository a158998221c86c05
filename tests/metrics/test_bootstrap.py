"""The pigeonhole bootstrap against one drawn by hand, and where it does not answer."""

import numpy as np
import pytest

from veedor.metrics.bootstrap import BootstrapResult, pigeonhole_bootstrap, resampled_t
from veedor.metrics.inference import crossed_test


def table(terms: int = 8, templates: int = 15, shift: float = 1.0) -> list[list[object]]:
    rng = np.random.default_rng(4)
    own = rng.normal(0, 0.3, 2 * terms)
    rows = [
        (level + own[k] + shift * (k < terms) + rng.normal(0, 0.2), f"t{t}", f"w{k}", "g" if k < terms else "h")
        for t, level in enumerate(rng.normal(size=templates))
        for k in range(2 * terms)
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def interval(columns: list[list[object]], seed: int = 1) -> BootstrapResult:
    return pigeonhole_bootstrap(*columns, of="g", against="h", generator=np.random.default_rng(seed))


def test_it_is_an_interval_of_what_the_crossed_test_tests() -> None:
    columns = table()
    found, tested = interval(columns), crossed_test(*columns, of="g", against="h")
    assert found.estimate == tested.estimate and found.draws == 2000
    assert (found.low, found.high) == pytest.approx((tested.low, tested.high), abs=0.15)


def test_a_draw_takes_templates_and_words_as_a_whole() -> None:
    """Rows and columns drawn with a generator in the same state, one crossed test each."""
    cells = np.random.default_rng(7).normal(size=(4, 5))
    first = np.array([True, True, False, False, False])
    drawn = resampled_t(cells, first, ~first, generator=np.random.default_rng(3), draws=40)
    generator = np.random.default_rng(3)
    rows = generator.integers(4, size=(40, 4))
    left, right = generator.choice([0, 1], size=(40, 2)), generator.choice([2, 3, 4], size=(40, 3))
    observed = cells[:, :2].mean() - cells[:, 2:].mean()
    expected = []
    for row, columns in zip(rows, np.hstack([left, right]), strict=True):
        table = cells[np.ix_(row, columns)]
        template, word = np.divmod(np.arange(20), 5)
        found = crossed_test(table.ravel(), template, word, np.where(word < 2, "g", "h"), of="g", against="h")
        if found.standard_error:
            expected.append((found.estimate - observed) / found.standard_error)
    assert drawn == pytest.approx(expected)


def test_contrasts_without_any_spread_have_no_interval() -> None:
    columns = table()
    columns[0] = [1.0 if side == "g" else 0.0 for side in columns[3]]
    assert interval(columns).reason == "no_spread"


def test_the_same_generator_gives_the_same_interval() -> None:
    assert interval(table()) == interval(table()) != interval(table(), seed=2)


def test_below_six_words_a_side_there_is_no_interval() -> None:
    found = interval(table(terms=5))
    assert (found.low, found.high, found.reason) == (None, None, "too_few_terms")
    assert found.estimate is not None
    assert interval([[], [], [], []]).reason == "no_shared_context"
