"""Rollout on matrices worked by hand."""

import numpy as np
import pytest
import torch

from veedor.attribution.rollout import rollout
from veedor.errors import UsageError

LOW = [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
HIGH = [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
TWO_HEADS = np.array([[[[0.8, 0.2], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9]]]])  # one layer


def random_attention(*shape: int, seed: int = 3) -> torch.Tensor:
    return torch.softmax(3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double(), dim=-1)


def test_the_higher_layer_multiplies_from_the_left():
    """A2 A1 by hand; A1 A2 would be [[0,0,1],[0,0,1],[0,0,1]]."""
    flow = rollout(np.array([LOW, HIGH], dtype=float), residual=0.0)
    assert flow.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_half_of_every_layer_is_the_residual_stream_by_default():
    """(A2 + I)/2 = [[1,0,0],[0,.5,.5],[0,0,1]] times (A1 + I)/2 = [[.5,.5,0],[0,1,0],[0,0,1]] by hand."""
    flow = rollout(np.array([LOW, HIGH], dtype=float))
    assert flow.tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]


def test_a_residual_of_one_quarter_weighs_attention_three_times_as_much():
    assert rollout(np.array([LOW], dtype=float), residual=0.25)[0].tolist() == [0.25, 0.75, 0]


def test_heads_are_averaged_by_default():
    flow = rollout(TWO_HEADS, residual=0.0)
    np.testing.assert_allclose(flow, [[0.5, 0.5], [0.25, 0.75]], atol=1e-15)


def test_max_fusion_mixes_with_the_identity_before_rows_are_made_to_sum_to_one():
    """max = [[.8,.8],[.4,.9]]; half with I: [[.9,.4],[.2,.95]]; rows over 1.3 and 1.15."""
    flow = rollout(TWO_HEADS, fusion="max")
    np.testing.assert_allclose(flow, [[0.9 / 1.3, 0.4 / 1.3], [0.2 / 1.15, 0.95 / 1.15]], atol=1e-15)


def test_min_fusion_divides_rows_and_not_columns():
    """min = [[.2,.2],[.1,.6]]; half with I: [[.6,.1],[.05,.8]]; rows over .7 and .85."""
    flow = rollout(TWO_HEADS, fusion="min")
    np.testing.assert_allclose(flow, [[0.6 / 0.7, 0.1 / 0.7], [0.05 / 0.85, 0.8 / 0.85]], atol=1e-15)


def test_discard_drops_the_smallest_off_diagonal_weights_of_each_row_before_the_mix():
    """A third of 3 off-diagonal weights is one: row 0 loses .1 and keeps its own .05; (.05/2+.5, .25, .175)/(.95)."""
    one = np.array([[[0.05, 0.5, 0.35, 0.1], [0.3, 0.3, 0.3, 0.1], [0.25] * 4, [0.1, 0.2, 0.3, 0.4]]])
    flow = rollout(one, discard=1 / 3)
    np.testing.assert_allclose(flow[0], np.array([0.525, 0.25, 0.175, 0]) / 0.95, atol=1e-12)
    np.testing.assert_allclose(flow[3], np.array([0, 0.1, 0.15, 0.7]) / 0.95, atol=1e-12)


def test_a_row_of_zeros_is_an_error_that_names_layer_and_row():
    disjoint = np.array([np.stack([np.eye(2)] * 2), [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]], dtype=float)
    with pytest.raises(UsageError, match="row 1 of layer 1"):
        rollout(disjoint, residual=0.0, fusion="min")


@pytest.mark.parametrize("options", [{}, {"fusion": "max"}, {"fusion": "min"}, {"discard": 0.4}, {"residual": 0.1}])
def test_rows_sum_to_one(options):
    flow = rollout(random_attention(4, 3, 7, 7), **options)
    torch.testing.assert_close(flow.sum(dim=-1), torch.ones(7, dtype=torch.float64))


def test_rollout_equals_one_explicit_product_in_numpy():
    attention = random_attention(3, 2, 5, 5).numpy()
    layers = 0.7 * attention.mean(axis=1) + 0.3 * np.eye(5)
    np.testing.assert_allclose(
        rollout(attention, residual=0.3), np.einsum("ij,jk,kl->il", layers[2], layers[1], layers[0])
    )


def test_a_causal_model_lets_nothing_flow_from_the_future():
    causal = random_attention(4, 2, 6, 6).tril()
    flow = rollout(causal / causal.sum(dim=-1, keepdim=True))
    assert flow.triu(1).abs().max() == 0


def test_numpy_in_numpy_out_and_torch_in_torch_out_with_the_same_numbers():
    attention = random_attention(2, 2, 4, 4)
    as_array, as_tensor = rollout(attention.numpy()), rollout(attention)
    assert isinstance(as_array, np.ndarray) and isinstance(as_tensor, torch.Tensor)
    assert as_array.dtype == np.float64
    np.testing.assert_array_equal(as_array, as_tensor.numpy())


def test_half_precision_is_accumulated_in_float32():
    attention = random_attention(12, 2, 16, 16)
    flow = rollout(attention.to(torch.bfloat16))
    assert flow.dtype == torch.float32


def test_the_argument_is_left_as_it_was():
    attention = random_attention(2, 2, 4, 4)
    before = attention.clone()
    rollout(attention, fusion="max", discard=0.5)
    assert torch.equal(attention, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fusion": "maen"}, "did you mean 'mean'"),
        ({"residual": 1.5}, "residual is 1.5"),
        ({"discard": 1.0}, "discard is 1.0"),
    ],
)
def test_options_out_of_range_are_refused_with_their_value(options, message):
    with pytest.raises(UsageError, match=message):
        rollout(np.array([LOW], dtype=float), **options)


@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 4), (0, 3, 3), (1, 1, 1, 3, 3)])
def test_anything_but_a_stack_of_square_maps_is_refused_with_its_shape(shape):
    with pytest.raises(UsageError, match="expected \\(layers, heads, n, n\\)"):
        rollout(np.ones(shape))


def test_undefined_weights_are_refused():
    with pytest.raises(UsageError, match="negative or undefined"):
        rollout(np.full((1, 2, 2), np.nan))
