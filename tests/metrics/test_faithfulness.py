"""The formulas of faithfulness: by hand, against captum and scipy, and what signs and undefined values do."""

import numpy as np
import pytest
import torch
from scipy import stats

from veedor.metrics import faithfulness as f
from veedor.metrics.agreement import agreement_matrix, kendall, spearman

# A bag of four words whose probability was written down by hand: which words are left -> probability of the target.
LEFT = {
    (0, 1, 2, 3): 0.9,
    (0, 1, 3): 0.5,  # without word 2
    (1, 3): 0.2,  # without words 2 and 0
    (2,): 0.6,
    (0, 2): 0.8,
    (): 0.1,
}
SCORES = [0.3, -0.4, 0.7, 0.0]  # word 2 first, then 0, then 3, and word 1, which speaks against, last


def answers_of(order: list[int], sizes: tuple[int, ...]) -> tuple[list[float], list[float]]:
    without = [LEFT[tuple(sorted(set(range(4)) - set(order[:size])))] for size in sizes]
    return without, [LEFT[tuple(sorted(order[:size]))] for size in sizes]


def test_an_eraser_example_worked_by_hand() -> None:
    """10 to 50 % of four words are 1 or 2 words: (.9 − .5 + .9 − .2) / 2 = .55 and (.9 − .6 + .9 − .8) / 2 = .2."""
    order, sizes = f.ranking(SCORES).tolist(), f.rationale_sizes(4)
    assert order == [2, 0, 3, 1] and sizes == (1, 2)
    without, only = answers_of(order, sizes)
    assert f.comprehensiveness(0.9, without) == pytest.approx(0.55)
    assert f.sufficiency(0.9, only) == pytest.approx(0.2)
    assert f.normalised_comprehensiveness(0.9, LEFT[()], without) == pytest.approx(0.55 / 0.8)
    assert f.normalised_sufficiency(0.9, LEFT[()], only) == pytest.approx(1 - 0.2 / 0.8)


@pytest.mark.parametrize(
    ("words", "sizes"),
    [(2, (1,)), (3, (1, 2)), (5, (1, 2, 3)), (7, (1, 2, 3, 4)), (10, (1, 2, 3, 4, 5)), (30, (3, 6, 9, 12, 15))],
)
def test_rationales_are_rounded_up_and_equal_ones_counted_once(words: int, sizes: tuple[int, ...]) -> None:
    assert f.rationale_sizes(words) == sizes


def test_what_speaks_against_the_target_is_ranked_last_not_by_its_size() -> None:
    assert f.ranking([-9.0, 1.0, 0.0, 2.0]).tolist() == [3, 1, 2, 0]


def test_words_of_equal_score_are_ranked_in_reading_order() -> None:
    assert f.ranking([1.0, 2.0, 1.0, 2.0, 1.0]).tolist() == [1, 3, 0, 2, 4]


def test_normalised_values_are_refused_where_the_answer_does_not_fall_without_words() -> None:
    assert f.normalised_comprehensiveness(0.2, 0.195, [0.1]) is None
    assert f.normalised_sufficiency(0.2, 0.4, [0.1]) is None


def test_a_rationale_that_raises_the_answer_is_no_negative_share() -> None:
    """Carton et al. cut each difference at 0: (.8 − .9 → 0 and .8 − .4) / (.8 − .0) / 2 = .25."""
    assert f.normalised_comprehensiveness(0.8, 0.0, [0.9, 0.4]) == pytest.approx(0.25)


# Infidelity

WEIGHTS = np.array([2.0, -1.0, 0.5, -3.0])
HALVES = np.array([[1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1]], dtype=float)
DROPS = HALVES @ WEIGHTS  # a linear model loses exactly the weights of the words that go


def test_infidelity_of_a_linear_model_with_its_gradient_is_exactly_zero() -> None:
    found = f.infidelity(WEIGHTS, HALVES, DROPS)
    assert found is not None and found.as_is == found.scaled == 0.0 and found.factor == 1.0


def test_infidelity_of_a_linear_model_with_the_size_of_its_gradient_is_not_zero() -> None:
    found = f.infidelity(np.abs(WEIGHTS), HALVES, DROPS)
    assert found is not None
    by_hand = np.mean([(3 - 1) ** 2, (4 + 4) ** 2, (5 + 1) ** 2, (3.5 + 2.5) ** 2])
    assert found.as_is == pytest.approx(by_hand)
    assert found.scaled > 1.0


def test_scaling_forgives_the_scale_of_scores_but_not_their_sign() -> None:
    tripled, turned = f.infidelity(3 * WEIGHTS, HALVES, DROPS), f.infidelity(-WEIGHTS, HALVES, DROPS)
    assert tripled is not None and turned is not None
    assert tripled.as_is > 1.0 and tripled.scaled == pytest.approx(0.0) and tripled.factor == pytest.approx(1 / 3)
    assert turned.factor == 0.0 and turned.scaled == pytest.approx(np.mean(DROPS**2))


@pytest.mark.parametrize("normalize", [False, True])
def test_infidelity_is_that_of_captum_on_the_same_removals(normalize: bool) -> None:
    from captum.metrics import infidelity

    torch.manual_seed(3)
    layer = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1)).double()
    text, phi = torch.ones(1, 6).double(), torch.tensor([[0.4, -0.1, 0.3, 0.8, -0.2, 0.1]]).double()
    removed = torch.tensor(np.random.default_rng(0).random((40, 6)) < 0.5).double()
    with torch.no_grad():
        drops = (layer(text) - layer(text - removed))[:, 0].numpy()

    def perturb(inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return removed, inputs - removed

    theirs = infidelity(layer, perturb, text, phi, n_perturb_samples=40, normalize=normalize)
    ours = f.infidelity(phi[0].numpy(), removed.numpy(), drops)
    assert ours is not None and ours.factor > 0
    assert (ours.scaled if normalize else ours.as_is) == pytest.approx(float(theirs[0]), rel=1e-6)


# Max-sensitivity


def test_max_sensitivity_is_the_largest_relative_move() -> None:
    moved = [[3.0, 4.0], [3.0, 5.0], [0.0, 4.0]]
    assert f.max_sensitivity([3.0, 4.0], moved.__getitem__, draws=3) == pytest.approx(3 / 5)
    assert f.max_sensitivity([0.0, 0.0], moved.__getitem__, draws=3) is None


def test_max_sensitivity_is_that_of_captum_at_the_same_points() -> None:
    from captum.metrics import sensitivity_max

    torch.manual_seed(1)
    text = torch.randn(1, 7).double()
    points = text + 0.02 * torch.randn(10, 7).double()

    def scores(inputs: torch.Tensor) -> torch.Tensor:
        return torch.sin(3 * inputs) * inputs

    def asked(inputs: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor]:
        return (scores(inputs[0] if isinstance(inputs, tuple) else inputs),)

    theirs = sensitivity_max(asked, text, perturb_func=lambda _: points, n_perturb_samples=10)
    ours = f.max_sensitivity(scores(text)[0].numpy(), lambda draw: scores(points[draw]).numpy(), draws=10)
    assert ours == pytest.approx(float(theirs[0]), rel=1e-9)


# Ranks


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlations_are_those_of_scipy_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 5, 12).astype(float), rng.normal(size=12).round(1)
    assert kendall(first, second) == pytest.approx(stats.kendalltau(first, second).statistic)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)


def test_tau_of_leave_one_out_minds_signs_where_scores_have_them() -> None:
    drops = [-3.0, 2.0, 0.5, -0.1]
    assert f.tau_leave_one_out(drops, drops) == 1.0
    assert f.tau_leave_one_out([-1.0 * one for one in drops], drops) == -1.0
    sizes = np.abs(drops)
    assert f.tau_leave_one_out(sizes, drops, signed=False) == 1.0
    assert f.tau_leave_one_out(sizes, drops, signed=True) == pytest.approx(stats.kendalltau(sizes, drops).statistic)


def test_ranks_without_spread_or_partner_have_no_correlation() -> None:
    assert kendall([1.0, 1.0], [1.0, 2.0]) is None and kendall([1.0], [1.0]) is None
    assert f.tau_leave_one_out([0.1, 0.2], [0.0, 0.0]) is None
    assert f.magnitude_agreement([1.0, -1.0, 1.0], [1.0, 2.0, 3.0]) is None


def test_agreement_of_methods_is_the_mean_over_texts_and_sizes_are_compared_where_one_has_no_sign() -> None:
    rng = np.random.default_rng(4)
    one, other = ([rng.normal(size=n) for n in (5, 8, 1)] for _ in range(2))
    flat = [np.abs(own) for own in one]
    found = agreement_matrix({"a": one, "b": other, "c": flat}, {"a": True, "b": True, "c": False})
    assert [(pair.first, pair.second) for pair in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    taus = [stats.kendalltau(a, b).statistic for a, b in zip(one[:2], other[:2], strict=True)]
    rhos = [stats.spearmanr(a, b).statistic for a, b in zip(one[:2], other[:2], strict=True)]
    assert found[0].kendall == pytest.approx(np.mean(taus)) and found[0].spearman == pytest.approx(np.mean(rhos))
    assert found[0].texts == 2, "the text of one word ranks nothing"
    assert found[1].kendall == 1.0, "c is the size of a"


def test_the_area_under_a_curve_is_that_of_trapezoids() -> None:
    assert f.curve_area([0.0, 0.25, 1.0], [0.9, 0.5, 0.1]) == pytest.approx(0.25 * 0.7 + 0.75 * 0.3)


def test_scores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        f.ranking([1.0, float("nan")])
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        f.ranking([[1.0, 2.0], [3.0, 4.0]])
