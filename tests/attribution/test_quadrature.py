"""The adaptive rule on functions whose integrals are known."""

import numpy as np

from veedor.attribution.quadrature import completeness_gap, integrate


def sigmoid(position, *, sharpness, centre):
    return 1 / (1 + np.exp(-sharpness * (position - centre)))


def two_steps(path, at):
    """Two components along each path: a step of height 3 and one of height -1, as steep as the path's number says."""
    sharpness = np.array([4.0, 60.0, 600.0])[path]
    rises = [sigmoid(at, sharpness=sharpness, centre=centre) for centre in (0.3, 0.62)]
    slopes = [sharpness * rise * (1 - rise) for rise in rises]
    return np.stack([3 * slopes[0], -slopes[1]], axis=1), 3 * rises[0] - rises[1]


def test_a_polynomial_of_degree_five_costs_the_first_nine_nodes_and_is_exact():
    found = integrate(lambda path, at: (6 * at[:, None] ** 5, at**6), 1, tolerance=0.01, max_nodes=100)[0]
    assert found.nodes == 9 and found.converged
    np.testing.assert_allclose(found.values, [1.0], atol=1e-3)


def test_smooth_and_sharp_paths_all_meet_the_tolerance_and_the_sharp_ones_cost_more():
    """Truth: the rises of the two steps between 0 and 1."""
    found = integrate(two_steps, 3, tolerance=0.01, max_nodes=400)
    for number, sharpness in enumerate((4.0, 60.0, 600.0)):
        rise = [
            sigmoid(1.0, sharpness=sharpness, centre=centre) - sigmoid(0.0, sharpness=sharpness, centre=centre)
            for centre in (0.3, 0.62)
        ]
        truth = np.array([3 * rise[0], -rise[1]])
        assert found[number].converged
        assert np.abs(found[number].values - truth).sum() <= 0.01 * np.abs(truth).sum()
    assert found[0].nodes < found[1].nodes < found[2].nodes


def test_paths_integrated_together_equal_paths_integrated_alone():
    together = integrate(two_steps, 3, tolerance=0.01, max_nodes=400)
    for number in range(3):
        own = lambda path, at, number=number: two_steps(np.full_like(path, number), at)  # noqa: E731
        alone = integrate(own, 1, tolerance=0.01, max_nodes=400)[0]
        np.testing.assert_array_equal(alone.values, together[number].values)
        assert alone.nodes == together[number].nodes


def test_the_cap_on_nodes_is_kept_and_what_is_not_converged_says_so():
    found = integrate(two_steps, 3, tolerance=1e-9, max_nodes=30)
    assert all(own.nodes <= 30 for own in found)
    assert not found[2].converged


def test_a_gap_is_reported_when_the_function_rises_by_something_the_derivative_does_not_hold():
    """The derivative says 1, the function rises by 2: no number of nodes can close that, and nothing is rescaled."""
    found = integrate(lambda path, at: (np.ones((len(at), 1)), 2 * at), 1, tolerance=0.01, max_nodes=60)[0]
    np.testing.assert_allclose(found.values, [1.0])
    assert found.gap == 0.5
    assert not found.converged


def test_a_spike_between_the_nodes_is_caught_by_the_function_it_belongs_to():
    """A step of width 1/400 at .43: all nine first nodes see a flat derivative; only the heights betray it."""
    spike = lambda path, at: (  # noqa: E731
        (400 * sigmoid(at, sharpness=400, centre=0.43) * (1 - sigmoid(at, sharpness=400, centre=0.43)))[:, None],
        sigmoid(at, sharpness=400, centre=0.43),
    )
    found = integrate(spike, 1, tolerance=0.01, max_nodes=400)[0]
    assert found.converged and abs(found.values[0] - 1) < 0.01


def test_small_rises_are_held_against_a_tenth():
    assert completeness_gap(np.array([0.02]), 0.01) == 0.01 / 0.1
