"""Crossed and term tests against the formulas worked out again with plain loops; corrections against known answers."""

import statistics as st

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from veedor.metrics.inference import benjamini_hochberg, crossed_test, equivalence_test, holm, term_test

# Unbalanced: "d" has no control, "e" no term; "q" is missing in "b", "z" in "a" and "c".
TABLE = {
    "a": {"p": 2.0, "q": 1.0, "r": 4.5, "x": 0.0, "y": 1.0},
    "b": {"p": 3.0, "r": 2.0, "x": 0.5, "y": -1.0, "z": 2.0},
    "c": {"p": 1.0, "q": 0.5, "r": 3.0, "x": 1.0, "y": 0.0},
    "d": {"p": 9.0, "q": 9.0},
    "e": {"x": 7.0, "z": 8.0},
}
SIDE = {"p": "g", "q": "g", "r": "g", "x": "h", "y": "h", "z": "h"}
CELLS = [(value, t, w, SIDE[w]) for t, row in TABLE.items() for w, value in row.items()]


def by_hand() -> tuple[float, float, float, float]:
    """d, se, df and p of section "crossed quasi-t", word for word, in plain Python."""
    used = [t for t, row in TABLE.items() if {SIDE[w] for w in row} == {"g", "h"}]
    mean = {(t, s): st.mean(v for w, v in TABLE[t].items() if SIDE[w] == s) for t in used for s in "gh"}
    d_t = [mean[t, "g"] - mean[t, "h"] for t in used]
    u = {w: st.mean(TABLE[t][w] - mean[t, "h"] for t in used if w in TABLE[t]) for w in SIDE}
    v_t = st.variance(d_t) / len(d_t)
    v_g = st.variance(u[w] for w in "pqr") / 3
    v_h = st.variance(u[w] for w in "xyz") / 3
    squared = v_g + v_h + v_t
    df = squared**2 / (v_g**2 / 2 + v_h**2 / 2 + v_t**2 / (len(used) - 1))
    d = st.mean(d_t)
    return d, squared**0.5, df, 2 * stats.t.sf(abs(d) / squared**0.5, df)


def test_crossed_test_equals_the_formula_worked_by_hand_with_missing_cells() -> None:
    value, template, term, group = zip(*CELLS, strict=True)
    result = crossed_test(value, template, term, group, of="g", against="h")
    d, se, df, p = by_hand()
    assert (result.estimate, result.standard_error, result.df, result.p) == pytest.approx((d, se, df, p), rel=1e-12)
    assert (result.low, result.high) == pytest.approx(stats.t.interval(0.95, df, d, se), rel=1e-9)
    assert (result.n_templates, result.n_terms, result.n_against) == (3, 3, 3)


def test_templates_without_both_sides_change_nothing() -> None:
    kept = [cell for cell in CELLS if cell[1] not in "de"]
    arguments = {"of": "g", "against": "h"}
    assert crossed_test(*zip(*CELLS, strict=True), **arguments) == crossed_test(*zip(*kept, strict=True), **arguments)


def test_neither_row_order_nor_names_change_a_bit() -> None:
    rng = np.random.default_rng(3)
    shuffled = [CELLS[i] for i in rng.permutation(len(CELLS))]
    arguments = {"of": "g", "against": "h", "level": 0.9}
    assert crossed_test(*zip(*CELLS, strict=True), **arguments) == crossed_test(
        *zip(*shuffled, strict=True), **arguments
    )


def test_swapping_the_sides_only_turns_the_sign() -> None:
    columns = list(zip(*CELLS, strict=True))
    there, back = crossed_test(*columns, of="g", against="h"), crossed_test(*columns, of="h", against="g")
    assert there.estimate is not None and back.estimate is not None
    assert back.estimate == pytest.approx(-there.estimate)


def test_the_same_name_on_both_sides_is_two_words() -> None:
    result = crossed_test([1, 2, 3, 5, 0, 1, 1, 1], [*"aabbaabb"], [*"wvwvwvwv"], [*"gggghhhh"], of="g", against="h")
    assert (result.n_terms, result.n_against, result.estimate) == (2, 2, pytest.approx(2.0))


@pytest.mark.parametrize(
    ("keep", "reason"),
    [
        (lambda t, w: SIDE[w] == "h", "no_shared_context"),
        (lambda t, w: t == "a", "one_context"),
        (lambda t, w: w in "pxyz", "one_term"),
        (lambda t, w: w in "pqrx", "one_control"),
    ],
)
def test_what_is_undefined_is_none_with_a_reason(keep, reason: str) -> None:
    kept = [cell for cell in CELLS if keep(cell[1], cell[2])]
    result = crossed_test(*zip(*kept, strict=True), of="g", against="h")
    assert result.reason == reason
    assert (result.standard_error, result.df, result.p, result.low, result.high) == (None,) * 5


def test_no_rows_at_all_are_undefined_not_an_error() -> None:
    assert crossed_test([], [], [], [], of="g", against="h").reason == "no_shared_context"
    assert term_test([], [], [], [], of="g").estimate is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused_with_its_place(bad: float) -> None:
    with pytest.raises(ValueError, match=r"values\[1\]"):
        crossed_test([1.0, bad], ["a", "a"], ["p", "x"], ["g", "h"], of="g", against="h")
    with pytest.raises(ValueError, match=r"values\[1\]"):
        term_test([1.0, bad], ["a", "a"], ["p", "x"], [False, True], of="p")


def test_effects_without_any_spread_have_the_limit_not_nan() -> None:
    """Every term exactly 1 above every control: the standard error is 0, and p its limit."""
    result = crossed_test([1.0, 1, 0, 0] * 3, [*"aaaabbbbcccc"], [*"pqxy"] * 3, [*"gghh"] * 3, of="g", against="h")
    assert (result.estimate, result.standard_error, result.p, result.df) == (1.0, 0.0, 0.0, 1.0)
    alike = crossed_test([0.0] * 12, [*"aaaabbbbcccc"], [*"pqxy"] * 3, [*"gghh"] * 3, of="g", against="h")
    assert (alike.estimate, alike.p) == (0.0, 1.0)


def test_term_test_equals_the_formula_worked_by_hand_with_missing_cells() -> None:
    """Term "q" stands in a, c (and d, which has no control); controls x, y in both, z in neither: K = 2, T = 2."""
    table = {t: dict(row) for t, row in TABLE.items()}
    table["a"]["z"] = 2.5
    table["c"]["v"] = -0.5
    cells = [(v, t, w, SIDE.get(w, "h") == "h") for t, row in table.items() for w, v in row.items()]
    result = term_test(*zip(*cells, strict=True), of="q")
    controls = {t: {w: v for w, v in table[t].items() if SIDE.get(w, "h") == "h"} for t in "ac"}
    mean = {t: st.mean(row.values()) for t, row in controls.items()}
    d = [table[t]["q"] - mean[t] for t in "ac"]
    u = [st.mean(table[t][w] - mean[t] for t in "ac" if w in table[t]) for w in "vxyz"]
    e = st.mean(d) - st.mean(u)
    s = st.stdev(u)
    v_t, v_c = st.variance(d) / 2, s**2 / 4
    assert result.estimate == pytest.approx(e, rel=1e-12)
    assert result.prediction_error == pytest.approx(s * (1 + 1 / 4) ** 0.5, rel=1e-12)
    assert result.p == pytest.approx(2 * stats.t.sf(abs(e) / (s * (1 + 1 / 4) ** 0.5), 3), rel=1e-12)
    assert result.standard_error == pytest.approx((v_t + v_c) ** 0.5, rel=1e-12)
    assert result.df == pytest.approx((v_t + v_c) ** 2 / (v_t**2 / 1 + v_c**2 / 3), rel=1e-12)
    assert result.most_extreme_control == pytest.approx(max(abs(x - st.mean(u)) for x in u), rel=1e-12)
    assert (result.n_templates, result.n_controls, result.prediction_df) == (2, 4, 3)
    assert result.skew == pytest.approx(stats.skew(u, bias=False), rel=1e-9)
    assert result.excess_kurtosis == pytest.approx(stats.kurtosis(u, bias=False), rel=1e-9)


@pytest.mark.parametrize(("extreme", "factor"), [(0.9, 1.0), (6.0, 2.0)])
def test_heavy_tailed_controls_double_what_a_term_must_exceed(extreme: float, factor: float) -> None:
    controls = np.array([-1.0, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, extreme])
    values, templates, terms, flags = [], [], [], []
    for template, level in (("a", 1.0), ("b", -1.0), ("c", 0.3)):
        values += [*(controls + level), level + 2.0 + level / 10]
        templates += [template] * 11
        terms += [*(f"c{i}" for i in range(10)), "word"]
        flags += [True] * 10 + [False]
    assert term_test(values, templates, terms, flags, of="word").tail_factor == factor


def test_other_terms_are_no_part_of_a_term_test() -> None:
    cells = [(v, t, w, s == "h") for v, t, w, s in CELLS]
    without = [cell for cell in cells if cell[2] not in "pr"]
    assert term_test(*zip(*cells, strict=True), of="q") == term_test(*zip(*without, strict=True), of="q")


def test_a_flag_that_is_no_flag_is_refused() -> None:
    with pytest.raises(ValueError, match="control holds"):
        term_test([1.0, 2.0], ["a", "a"], ["p", "x"], [0, -1], of="p")


def test_equivalence_is_the_larger_of_two_one_sided_tests() -> None:
    expected = max(stats.t.sf((0.3 + 0.693) / 0.2, 11), stats.t.cdf((0.3 - 0.693) / 0.2, 11))
    assert equivalence_test(0.3, 0.2, 11, 0.693) == pytest.approx(expected, rel=1e-12)
    assert equivalence_test(-0.3, 0.2, 11, 0.693) == pytest.approx(expected, rel=1e-12)


def test_equivalence_of_what_is_undefined_is_undefined() -> None:
    assert equivalence_test(None, 0.1, 5, 1.0) is None
    assert equivalence_test(0.1, None, 5, 1.0) is None
    assert equivalence_test(0.1, 0.1, None, 1.0) is None
    with pytest.raises(ValueError, match="NaN"):
        equivalence_test(float("nan"), 0.1, 5, 1.0)
    with pytest.raises(ValueError, match="margin"):
        equivalence_test(0.0, 0.1, 5, 0.0)


def test_equivalence_at_exactly_the_margin_is_a_coin_toss() -> None:
    assert equivalence_test(0.693, 0.1, 20, 0.693) == pytest.approx(0.5)


P = [0.2, 0.001, 0.03, 0.5, 0.008, 0.04, 0.012]


def test_holm_known_answer_in_the_order_given() -> None:
    assert holm(P) == pytest.approx([0.4, 0.007, 0.12, 0.5, 0.048, 0.12, 0.06])


def test_benjamini_hochberg_known_answer_in_the_order_given() -> None:
    expected = [0.23333333, 0.007, 0.0525, 0.5, 0.028, 0.056, 0.028]
    assert benjamini_hochberg(P) == pytest.approx(expected)


def test_corrections_agree_with_statsmodels() -> None:
    p = np.random.default_rng(1).uniform(size=40) ** 3
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)
    np.testing.assert_allclose(benjamini_hochberg(p), multipletests(p, method="fdr_bh")[1], rtol=1e-12)


def test_corrections_of_nothing_of_ties_and_where_nothing_is_significant() -> None:
    assert holm([]) == [] and benjamini_hochberg([]) == []
    assert len(holm(np.array([]))) == 0
    assert holm([0.9, 0.8, 0.9]) == [1.0, 1.0, 1.0]
    assert benjamini_hochberg([0.9, 0.8, 0.9]) == pytest.approx([0.9, 0.9, 0.9])
    assert holm([0.02, 0.02]) == pytest.approx([0.04, 0.04])


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.1])
def test_corrections_refuse_what_is_no_probability(bad: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        holm([0.5, bad])
