"""Entropy by depth, on chains worked by hand and in exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from veedor.attribution.diagnostics import (
    Diagnosis,
    Spread,
    diagnose_maps,
    log_rows,
    spread_by_depth,
    uniform_maps,
)
from veedor.attribution.rollout import rollout
from veedor.attribution.spread import log_entropy
from veedor.errors import UsageError

LOW = np.array([[0.5, 0.25, 0.25], [0.0, 0.25, 0.75], [0.125, 0.0, 0.875]])
HIGH = np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
FALLING = np.array([[1.0, 0.0, 0.0], [1 - 2.0**-10, 2.0**-10, 0.0], [0.75, 0.25 - 2.0**-12, 2.0**-12]])


def exact_rows(maps, read, residual):
    """read A_l … A_1 for every l, by fractions: no rounding anywhere."""
    n, share = len(read), Fraction(residual)
    found, product = [], [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for one in maps:
        mixed = [[(1 - share) * Fraction(one[i][j]) + share * int(i == j) for j in range(n)] for i in range(n)]
        product = [[sum(mixed[i][k] * product[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
        found.append([sum(Fraction(read[i]) * product[i][j] for i in range(n)) for j in range(n)])
    return found


def exact_log(value):
    return math.log(value.numerator) - math.log(value.denominator) if value else -math.inf


def exact_entropy(row):
    """The largest share's logarithm by what is missing to 1, which is exact however small it is."""
    total = sum(row)
    shares = sorted(value / total for value in row)
    rest = [value for value in shares[:-1] if value]
    return -sum(float(value) * exact_log(value) for value in rest) - float(shares[-1]) * math.log1p(-float(sum(rest)))


def test_the_row_after_two_layers_is_the_higher_times_the_lower_by_hand():
    """(1, 0, 0) HIGH = (.25, .75, 0); times LOW = (.125, .25, .625)."""
    logs = log_rows(np.stack([LOW, HIGH]), np.array([1.0, 0, 0]), residual=0.0)
    np.testing.assert_allclose(np.exp(logs), [[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], rtol=1e-14)


def test_entropy_is_that_of_the_row_by_hand():
    """ln 2 / 2 + 2 ln 4 / 4 = 1.5 ln 2 after one layer."""
    found = spread_by_depth(np.stack([LOW, HIGH]), np.array([1.0, 0, 0]), residual=0.0)
    second = -(0.125 * math.log(0.125) + 0.25 * math.log(0.25) + 0.625 * math.log(0.625))
    np.testing.assert_allclose(found.entropy, [1.5 * math.log(2), second], rtol=1e-14)
    np.testing.assert_allclose(found.effective_support, [2**1.5, math.exp(second)], rtol=1e-14)


@pytest.mark.parametrize("residual", [0.0, 0.25, 0.5])
def test_every_depth_is_the_rollout_of_so_many_layers(residual):
    maps = np.random.default_rng(4).dirichlet(np.full(5, 0.4), size=(6, 5))
    read = np.array([0.0, 0.5, 0.25, 0.0, 0.25])
    for depth, logs in enumerate(log_rows(maps, read, residual=residual), start=1):
        np.testing.assert_allclose(np.exp(logs), read @ rollout(maps[:depth], residual=residual), rtol=1e-12)


@pytest.mark.parametrize("residual", [0.0, 0.125])
def test_two_hundred_layers_agree_with_exact_fractions_where_weights_fall_below_every_float(residual):
    maps, read = np.stack([FALLING] * 200), np.array([0.0, 0.25, 0.75])
    exact = exact_rows(maps.tolist(), read.tolist(), residual)
    expected = np.array([[exact_log(value) for value in row] for row in exact])
    assert residual or expected[-1, 1] < math.log(5e-324)  # the weight itself would be 0
    np.testing.assert_allclose(log_rows(maps, read, residual=residual), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("residual", [0.0, 0.125])
def test_the_entropy_of_a_collapsing_chain_is_right_to_twelve_digits_at_every_depth(residual):
    maps, read = np.stack([FALLING] * 100), np.array([0.0, 0.25, 0.75])
    expected = [exact_entropy(row) for row in exact_rows(maps.tolist(), read.tolist(), residual)]
    np.testing.assert_allclose(spread_by_depth(maps, read, residual=residual).entropy, expected, rtol=1e-11)
    assert residual or expected[-1] < 1e-290


def test_rows_that_lose_weight_at_every_layer_keep_their_entropy():
    """Sinks take a hundredth … of each row: after 200 layers a sum of 1e-400 is left, shared 1 to 3."""
    leaking = 0.01 * np.array([[0.25, 0.75], [0.25, 0.75]])
    found = spread_by_depth(np.stack([leaking] * 200), np.array([1.0, 0.0]), residual=0.0)
    np.testing.assert_allclose(found.entropy, -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)), rtol=1e-11)


def test_a_uniform_reference_sees_what_the_mask_lets_it_see():
    seen = np.array([[True, False, False], [True, True, False], [False, True, True]])
    assert uniform_maps(seen).tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]


def test_a_blind_row_of_a_uniform_reference_stays_without_weight():
    assert uniform_maps(np.array([[False, False], [True, True]])).tolist() == [[0, 0], [0.5, 0.5]]


def test_the_uniform_reference_of_a_causal_stack_is_by_hand():
    """Row 2 twice through P = [[1,0,0],[.5,.5,0],[1/3,1/3,1/3]]: (11/18, 5/18, 2/18)."""
    maps, causal = np.stack([np.eye(3)] * 2), np.tril(np.ones((3, 3), dtype=bool))
    found = diagnose_maps(maps, np.array([0, 0, 1.0]), seen=causal, residual=0.0)
    shares = np.array([11, 5, 2]) / 18
    assert found.uniform.entropy[1] == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-13)
    assert found.uniform.entropy[0] == pytest.approx(math.log(3), rel=1e-13)


def test_heads_are_averaged():
    heads = np.stack([LOW, HIGH])[None]
    found = diagnose_maps(heads, np.array([1.0, 0, 0]), residual=0.0)
    assert found.found.entropy[0] == pytest.approx(log_entropy(np.log([0.375, 0.5, 0.125])), rel=1e-13)


@pytest.mark.parametrize(
    ("found", "uniform", "untrained", "word"),
    [
        (1.99, 8.0, None, "collapsed"),
        (2.01, 8.0, None, None),
        (7.3, 8.0, None, "diffuse"),
        (7.1, 8.0, None, None),
        (5.5, 8.0, 6.0, "diffuse"),
        (5.5, 6.0, 8.0, "diffuse"),
        (1.5, 1.4, None, "collapsed"),
    ],
)
def test_the_word_compares_the_last_support_with_two_tokens_and_the_less_spread_reference(
    found, uniform, untrained, word
):
    def ending(support):
        return Spread(np.log([3.0, support]))

    without = None if untrained is None else ending(untrained)
    assert Diagnosis(9, ending(found), ending(uniform), without).word == word


def test_one_token_is_neither_diffuse_nor_collapsed():
    assert diagnose_maps(np.ones((2, 1, 1)), np.ones(1)).word is None


def test_uniform_attention_is_diffuse_and_attention_to_one_token_collapsed():
    read = np.array([1.0, 0, 0, 0, 0])
    assert diagnose_maps(np.full((6, 5, 5), 0.2), read).word == "diffuse"
    assert diagnose_maps(np.stack([np.eye(5)[[3] * 5]] * 6), read).word == "collapsed"


@pytest.mark.parametrize(
    ("maps", "read", "message"),
    [
        (np.ones((2, 3)), np.ones(3), "maps have shape \\(2, 3\\)"),
        (-np.ones((1, 2, 2)), np.ones(2), "weights of 0 or more"),
        (np.full((1, 2, 2), np.nan), np.ones(2), "weights of 0 or more"),
        (np.ones((1, 2, 2)), np.ones(3), "shape \\(3,\\)"),
        (np.ones((1, 2, 2)), np.zeros(2), "sum to 0.0"),
    ],
)
def test_what_is_no_stack_of_maps_is_refused(maps, read, message):
    with pytest.raises(UsageError, match=message):
        spread_by_depth(maps, read)


def test_a_row_that_draws_from_nothing_is_refused_and_has_no_entropy():
    with pytest.raises(UsageError, match="entropy"):
        spread_by_depth(np.zeros((1, 2, 2)), np.array([1.0, 0.0]), residual=0.0)
