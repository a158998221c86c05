"""Coalitions and fits, against brute force over all subsets and against captum's own Kernel SHAP."""

from itertools import combinations, product
from math import comb, factorial

import numpy as np
import pytest

from veedor.attribution.coalitions import (
    bound_fit,
    budget,
    closeness,
    even_coalitions,
    free_fit,
    shapley_coalitions,
)


class Game:
    """A value for each coalition of M players, with strong interactions; (m, M) bool -> (m,)."""

    def __init__(self, players: int) -> None:
        self.players = players
        self.values = np.random.default_rng(players).normal(size=2**players).cumsum() / players

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return self.values[np.asarray(rows).astype(int) @ (2 ** np.arange(self.players))]

    def shapley(self) -> np.ndarray:
        """The definition: each player's contribution over all orders of arrival."""
        found = np.zeros(self.players)
        for player in range(self.players):
            others = [other for other in range(self.players) if other != player]
            for size in range(self.players):
                weight = factorial(size) * factorial(self.players - size - 1) / factorial(self.players)
                for chosen in combinations(others, size):
                    row = np.zeros((2, self.players), dtype=bool)
                    row[:, list(chosen)] = True
                    row[1, player] = True
                    before, after = self(row)
                    found[player] += weight * (after - before)
        return found


def estimate(game: Game, samples: int, seed: int = 0) -> np.ndarray:
    rows, weights = shapley_coalitions(game.players, samples, np.random.default_rng(seed))
    return bound_fit(rows, game(rows), weights)


def error(game: Game, samples: int) -> float:
    exact = game.shapley()
    return float(np.mean([np.abs(estimate(game, samples, seed) - exact).sum() for seed in range(20)]))


@pytest.mark.parametrize("players", range(1, 8))
def test_where_all_coalitions_fit_the_scores_are_the_shapley_values(players):
    game = Game(players)
    np.testing.assert_allclose(estimate(game, 128), game.shapley(), atol=1e-10)


def test_all_coalitions_of_few_words_are_asked_once():
    rows, _ = shapley_coalitions(5, 32, np.random.default_rng(0))
    assert sorted(map(tuple, rows.tolist())) == sorted(product((False, True), repeat=5))


@pytest.mark.parametrize("players", [9, 10])
@pytest.mark.parametrize("samples", [40, 128, 300])
def test_sampled_scores_sum_to_the_difference_between_all_and_none(players, samples):
    game = Game(players)
    ends = game(np.array([[True] * players, [False] * players]))
    assert estimate(game, samples).sum() == pytest.approx(ends[0] - ends[1], abs=1e-12)


def test_more_samples_come_nearer_to_the_shapley_values():
    errors = [error(Game(10), samples) for samples in (40, 160, 640)]
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2]


def test_sampled_scores_are_those_of_an_additive_game_exactly():
    """Where words do nothing together, any coalitions that tell the words apart give each word its own value."""
    values = np.random.default_rng(0).normal(size=12)
    rows, weights = shapley_coalitions(12, 60, np.random.default_rng(1))
    np.testing.assert_allclose(bound_fit(rows, 3.0 + rows @ values, weights), values, atol=1e-10)


def test_coalitions_are_distinct_come_with_their_complement_and_keep_to_the_budget():
    rows, weights = shapley_coalitions(11, 128, np.random.default_rng(2))
    seen = {tuple(row) for row in rows.tolist()}
    assert len(seen) == len(rows) and len(rows) in (127, 128)
    assert {tuple(not left for left in row) for row in seen} == seen
    assert rows[0].all() and not rows[1].any()
    assert (weights[:2] == 0).all() and (weights[2:] > 0).all()


def test_the_weight_of_each_size_is_that_of_the_shapley_kernel():
    """(M − 1) / (C(M, k) k (M − k)) for each coalition, so 1 / (k (M − k)) for all of a size, up to a factor."""
    players = 9
    rows, weights = shapley_coalitions(players, 128, np.random.default_rng(3))
    sizes = rows.sum(axis=1)
    for size in (1, 8):  # few enough to be asked one and all
        assert (sizes == size).sum() == comb(players, size)
        assert weights[sizes == size].sum() == pytest.approx(1 / 8)
    assert weights.sum() == pytest.approx(sum(1 / (size * (players - size)) for size in range(1, players)))


def test_long_texts_are_asked_four_coalitions_a_word():
    assert budget(100, 128) == 400
    rows, weights = shapley_coalitions(100, 128, np.random.default_rng(0))
    values = np.random.default_rng(0).normal(size=100)
    np.testing.assert_allclose(bound_fit(rows, rows @ values, weights), values, atol=1e-8)


def test_the_same_numbers_give_the_same_coalitions():
    first, second = (shapley_coalitions(12, 64, np.random.default_rng(5))[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_two_words_share_what_they_only_do_together():
    rows = np.array([[1, 1], [0, 0], [1, 0], [0, 1]])
    np.testing.assert_allclose(bound_fit(rows, np.array([1.0, 0, 0, 0]), np.array([0, 0, 0.5, 0.5])), [0.5, 0.5])


def test_scores_agree_with_kernel_shap_of_captum_where_that_asks_enough():
    import torch
    from captum.attr import KernelShap

    game = Game(5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs = KernelShap(lambda rows: torch.from_numpy(game(rows.numpy()))).attribute(
            torch.ones(1, 5), n_samples=6000, perturbations_per_eval=6000, return_input_shape=False
        )
    np.testing.assert_allclose(estimate(game, 32), theirs[0].numpy(), atol=0.1 * np.abs(theirs.numpy()).max())


def test_at_the_same_number_of_samples_the_error_is_under_half_of_captums():
    import torch
    from captum.attr import KernelShap

    game, theirs = Game(9), []
    exact = game.shapley()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        explain = KernelShap(lambda rows: torch.from_numpy(game(rows.numpy())))
        for _ in range(20):
            found = explain.attribute(
                torch.ones(1, 9), n_samples=128, perturbations_per_eval=128, return_input_shape=False
            )
            theirs.append(np.abs(found[0].numpy() - exact).sum())
    assert error(game, 128) < 0.5 * np.mean(theirs)


def test_closeness_is_the_kernel_of_captums_lime_on_presence():
    import torch
    from captum.attr._core.lime import get_exp_kernel_similarity_function

    rows, _ = even_coalitions(6, 64, np.random.default_rng(0), width=0.25)
    kernel = get_exp_kernel_similarity_function("cosine", kernel_width=0.3)
    theirs = [kernel(torch.ones(1, 6), torch.from_numpy(row)[None].float(), None) for row in rows]
    np.testing.assert_allclose(closeness(rows, 0.3), theirs, atol=1e-6)


def test_the_free_fit_equals_the_normal_equations():
    random = np.random.default_rng(0)
    rows, weights = even_coalitions(6, 40, random, width=0.25)
    heights = random.normal(size=len(rows))
    design = np.column_stack((np.ones(len(rows)), rows.astype(float)))
    by_hand = np.linalg.solve(design.T @ (design * weights[:, None]), design.T @ (weights * heights))
    np.testing.assert_allclose(free_fit(rows, heights, weights), by_hand[1:], atol=1e-9)


def test_each_word_is_left_in_half_of_the_time_and_the_whole_text_comes_first():
    rows, _ = even_coalitions(20, 4000, np.random.default_rng(0), width=0.25)
    assert rows[0].all() and np.abs(rows[1:].mean(axis=0) - 0.5).max() < 0.03
