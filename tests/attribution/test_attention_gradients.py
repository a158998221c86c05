"""Relevance and Grad-CAM on two asymmetric layers of two heads, worked by hand; a wrong clamp, layer or row fails."""

import numpy as np
import pytest
import torch

from veedor.attribution.attention_gradients import relevance, relevant_row
from veedor.attribution.grad_cam import cam
from veedor.errors import UsageError

# Layer 1 (next to the input), heads a and b; then layer 2.
WEIGHTS = np.array(
    [
        [[[0.5, 0.5], [0.25, 0.75]], [[1.0, 0.0], [0.5, 0.5]]],
        [[[0.2, 0.8], [0.6, 0.4]], [[0.9, 0.1], [0.5, 0.5]]],
    ]
)
SLOPES = np.array(
    [
        [[[4.0, 2.0], [-8.0, 4.0]], [[-6.0, 5.0], [2.0, 0.0]]],
        [[[5.0, -5.0], [0.0, 10.0]], [[0.0, 20.0], [-4.0, 2.0]]],
    ]
)
# Products, clamped:  layer 1  a [[2, 1], [0, 3]]   b [[0, 0], [1, 0]]   mean [[1, .5], [.5, 1.5]]
#                     layer 2  a [[1, 0], [0, 4]]   b [[0, 2], [0, 1]]   mean [[.5, 1], [0, 2.5]]
# R = (I + second)(I + first) = [[1.5, 1], [0, 3.5]] [[2, .5], [.5, 2.5]]
RELEVANCE = [[3.5, 3.25], [1.75, 8.75]]


def test_relevance_by_hand():
    np.testing.assert_allclose(relevance(WEIGHTS, SLOPES), RELEVANCE, rtol=1e-12)


def test_clamping_after_the_mean_over_heads_or_pairing_layers_backwards_gives_something_else():
    """The two mistakes that the hand case must tell from the truth."""
    late = [np.clip((a * g).mean(axis=0), 0, None) for a, g in zip(WEIGHTS, SLOPES, strict=True)]
    late_relevance = (np.eye(2) + late[1]) @ (np.eye(2) + late[0])
    assert np.abs(late_relevance - RELEVANCE).max() > 0.5
    assert np.abs(relevance(WEIGHTS, SLOPES[::-1].copy()) - RELEVANCE).max() > 0.5
    assert np.abs(relevance(WEIGHTS[::-1].copy(), SLOPES[::-1].copy()) - RELEVANCE).max() > 0.5


def test_torch_gives_torch_and_the_same_numbers():
    found = relevance(torch.from_numpy(WEIGHTS), torch.from_numpy(SLOPES))
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float64
    assert found.tolist() == RELEVANCE


def test_half_precision_is_widened():
    assert relevance(WEIGHTS.astype(np.float16), SLOPES.astype(np.float16)).dtype == np.float32
    assert relevance(torch.from_numpy(WEIGHTS).bfloat16(), torch.from_numpy(SLOPES).bfloat16()).dtype == torch.float32


def test_a_row_is_found_without_the_matrix():
    layers = [(torch.from_numpy(a)[None], torch.from_numpy(g)[None]) for a, g in zip(WEIGHTS, SLOPES, strict=True)]
    for read in ([1.0, 0.0], [0.0, 1.0], [0.5, 0.5]):
        found = relevant_row(torch.tensor([read]), layers)
        np.testing.assert_allclose(found[0], np.array(read) @ RELEVANCE, rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "slopes", "said"),
    [
        (WEIGHTS[0], SLOPES[0], r"shape \(2, 2, 2\), expected \(layers, heads, n, n\)"),
        (WEIGHTS[:1], SLOPES, r"gradient has shape \(2, 2, 2, 2\)"),
        (-WEIGHTS, SLOPES, "negative or undefined weights"),
        (WEIGHTS, np.full_like(SLOPES, np.inf), "undefined or infinite"),
        (WEIGHTS, torch.from_numpy(SLOPES), "two NumPy arrays or two tensors"),
    ],
)
def test_what_is_no_pair_of_stacks_is_refused(weights, slopes, said):
    with pytest.raises(UsageError, match=said):
        relevance(weights, slopes)


def test_relevance_leaves_its_arguments_alone():
    before = WEIGHTS.copy(), SLOPES.copy()
    relevance(WEIGHTS, SLOPES)
    np.testing.assert_array_equal(WEIGHTS, before[0])
    np.testing.assert_array_equal(SLOPES, before[1])


def test_grad_cam_by_hand():
    """Layer 1: w = (.5, .25), the map .5 a + .25 b. Layer 2: w = (2.5, 4.5), nothing to clamp either."""
    real = torch.ones(1, 2, dtype=torch.bool)
    found = [cam(torch.from_numpy(a)[None], torch.from_numpy(g)[None], real)[0] for a, g in zip(WEIGHTS, SLOPES)]  # noqa: B905
    np.testing.assert_allclose(found[0], [[0.5, 0.25], [0.25, 0.5]], rtol=1e-12)
    np.testing.assert_allclose(found[1], [[4.55, 2.45], [3.75, 3.25]], rtol=1e-12)


def test_grad_cam_clamps_the_sum_over_heads_not_each_head():
    """Head b is turned against the label: w = (.5, -.25); at (0, 0) it takes away all that head a gives.

    .5 a - .25 b = [[0, .25], [0, .25]]; at (1, 0): .125 - .125. Clamping each head first would give .25 at (0, 0).
    """
    slopes = torch.from_numpy(SLOPES[0] * np.array([1.0, -1.0])[:, None, None])[None]
    found = cam(torch.from_numpy(WEIGHTS[0])[None], slopes, torch.ones(1, 2, dtype=torch.bool))[0]
    np.testing.assert_allclose(found, [[0.0, 0.25], [0.0, 0.25]], atol=1e-12)
    turned = cam(torch.from_numpy(WEIGHTS[0])[None], -torch.from_numpy(SLOPES[0])[None], torch.ones(1, 2).bool())
    assert not turned.any(), "both heads speak against the label"


def test_padding_takes_no_part_in_the_mean_of_grad_cams_gradient():
    """A third position of padding, with a gradient as large as you like, changes nothing for the two real ones."""
    wide = np.zeros((1, 2, 3, 3)), np.full((1, 2, 3, 3), 1e6)
    for array, own in zip(wide, (WEIGHTS[0], SLOPES[0]), strict=True):
        array[0, :, :2, :2] = own
    found = cam(*map(torch.from_numpy, wide), torch.tensor([[True, True, False]]))[0]
    np.testing.assert_allclose(found, [[0.5, 0.25, 0], [0.25, 0.5, 0], [0, 0, 0]], rtol=1e-12)
