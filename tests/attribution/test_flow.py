"""Attention flow: hand-worked networks, networkx as an oracle, and the row that a model's head reads."""

import networkx
import numpy as np
import pytest
import torch

from tests.attribution.test_attention import modernbert_with_mean_pooling
from tests.attribution.tiny_models import TEXTS, eager_maps
from veedor.attribution import UnsupportedModelError, attribute
from veedor.attribution.flow import attention_flow, bounds, cuts_below, flow_row, widths_of
from veedor.attribution.flow_network import RowNetwork, settle, thinned
from veedor.errors import UsageError
from veedor.settings import Settings, build


def stack(layers, n, *, sharp=1.0, seed=0, causal=False, heads=3):
    """Random attention, (layers, heads, n, n), no two entries alike."""
    scores = np.random.default_rng(seed).normal(size=(layers, heads, n, n)) * sharp
    if causal:
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def by_networkx(attention, *, residual=0.5):
    """Every pair's maximum flow on the network of the paper, by another library."""
    fused = attention.mean(axis=1)
    layers, n, _ = fused.shape
    network = networkx.DiGraph()
    for number, layer in enumerate((1 - residual) * fused + residual * np.eye(n)):
        for i, j in zip(*np.nonzero(layer), strict=True):
            network.add_edge((number + 1, int(i)), (number, int(j)), capacity=float(layer[i, j]))
    network.add_nodes_from((0, j) for j in range(n))
    return np.array([[networkx.maximum_flow_value(network, (layers, i), (0, j)) for j in range(n)] for i in range(n)])


def test_one_layer_is_the_residual_attention():
    attention = stack(1, 5)
    expected = 0.3 * np.eye(5) + 0.7 * attention[0].mean(axis=0)
    np.testing.assert_allclose(attention_flow(attention, residual=0.3, normalise=False), expected, atol=1e-12)


def test_two_layers_let_through_what_the_narrower_step_does_for_every_node_between():
    attention = stack(2, 6, seed=1)
    low, high = 0.5 * attention.mean(axis=1) + 0.5 * np.eye(6)
    expected = np.minimum(high[:, :, None], low[None]).sum(axis=1)
    np.testing.assert_allclose(attention_flow(attention, normalise=False), expected, atol=1e-12)


def test_the_layer_next_to_the_input_comes_first():
    """Worked by hand: output 0 sends 1 to node 1, which passes on .25 and .75; output 1 sends 1 to node 0."""
    first, second = [[1.0, 0.0], [0.25, 0.75]], [[0.0, 1.0], [1.0, 0.0]]
    found = attention_flow(np.array([first, second]), residual=0.0, normalise=False)
    assert found.tolist() == [[0.25, 0.75], [1.0, 0.0]]


def test_pipes_that_meet_again_are_no_wider_than_the_cut_between():
    """Three layers by hand: two ways of .5 from output 0 meet in node 2, whose step to input 0 is .3 wide."""
    top = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    middle = [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    bottom = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.1, 0.6]]
    found = attention_flow(np.array([bottom, middle, top]), residual=0.0, normalise=False)
    np.testing.assert_allclose(found, [[0.3, 0.1, 0.6], [0.3, 0.1, 0.6], [0.0, 1.0, 0.0]], atol=1e-8)


@pytest.mark.parametrize(
    ("layers", "sharp", "causal", "residual"),
    [(3, 1.0, False, 0.5), (4, 4.0, False, 0.0), (5, 6.0, True, 0.5), (3, 3.0, True, 0.1), (6, 2.0, False, 0.2)],
)
def test_flow_is_networkx_maximum_flow_of_every_pair(layers, sharp, causal, residual):
    attention = stack(layers, 6, sharp=sharp, seed=layers, causal=causal)
    expected = by_networkx(attention, residual=residual)
    raw = attention_flow(attention, residual=residual, normalise=False)
    assert np.abs(raw - expected).max() < 1e-6
    shares = attention_flow(attention, residual=residual)
    assert np.abs(shares - expected / expected.sum(axis=1, keepdims=True)).max() < 1e-6


def test_a_network_too_wide_for_all_of_its_edges_is_thinned_and_gives_the_same_flows():
    """40 tokens: the thinned network is in use; where it falls short of the bound the whole one is asked."""
    attention = stack(4, 40, sharp=5.0, seed=9, heads=1)
    widths = widths_of(attention, 0.1)
    assert np.count_nonzero(thinned(widths, 3, 4)) < np.count_nonzero(widths)
    network = networkx.DiGraph()
    for number, layer in enumerate(widths):
        for i, j in zip(*np.nonzero(layer), strict=True):
            network.add_edge((number + 1, int(i)), (number, int(j)), capacity=float(layer[i, j]))
    found = flow_row(attention, 3, residual=0.1, normalise=False)
    for j in (0, 3, 17, 39):
        assert abs(found[j] - networkx.maximum_flow_value(network, (4, 3), (0, j))) < 1e-6


def test_where_the_thinned_network_and_the_bound_both_miss_the_whole_network_decides():
    """A bound that is too high by far leaves everything to the networks: the flow is found all the same."""
    widths = widths_of(stack(3, 40, sharp=0.1, seed=4, heads=1), 0.0)
    sinks = np.arange(40)
    whole = RowNetwork(widths, 2)
    expected = [whole.flow_to(int(sink)) for sink in sinks]
    np.testing.assert_allclose(settle(widths, 2, sinks, np.full(40, 2.0)), expected, atol=1e-9)


def test_no_flow_is_outside_of_its_bounds():
    widths = widths_of(stack(4, 8, sharp=3.0, seed=5), 0.1)
    expected = by_networkx(stack(4, 8, sharp=3.0, seed=5), residual=0.1)
    for row in range(8):
        low, high = bounds(widths, row, cuts_below(widths))
        assert (low <= expected[row] + 1e-12).all() and (expected[row] <= high + 1e-12).all()


def test_nothing_flows_from_the_future():
    found = attention_flow(stack(4, 7, causal=True), normalise=False)
    assert np.triu(found, 1).max() == 0 and np.tril(found).max() > 0


def test_one_row_is_that_row_of_the_whole():
    attention = stack(3, 6, seed=2)
    whole = attention_flow(attention)
    np.testing.assert_array_equal(flow_row(attention, 4), whole[4])
    np.testing.assert_array_equal(flow_row(attention, -1), whole[5])


def test_torch_in_torch_out():
    attention = stack(3, 5)
    found = attention_flow(torch.from_numpy(attention).float())
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), attention_flow(attention), atol=1e-6)
    assert attention_flow(torch.from_numpy(attention)).dtype == torch.float64
    assert attention_flow(torch.from_numpy(attention).bfloat16()).dtype == torch.float32


@pytest.mark.parametrize(
    ("attention", "options", "said"),
    [
        (np.zeros((2, 3, 4)), {}, r"shape \(2, 3, 4\)"),
        (np.zeros((0, 3, 3)), {}, r"shape \(0, 3, 3\)"),
        (-np.eye(3)[None], {}, "negative"),
        (np.full((1, 3, 3), np.nan), {}, "undefined"),
        (2 * np.eye(3)[None], {}, "sums to more than 1"),
        (np.eye(3)[None], {"residual": 1.5}, "residual is 1.5"),
        (np.zeros((1, 3, 3)), {"residual": 0.0}, "output 0 draws nothing.*normalise=False"),
    ],
)
def test_what_has_no_flow_is_refused_with_the_reason(attention, options, said):
    with pytest.raises(UsageError, match=said):
        attention_flow(attention, **options)


def test_a_row_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="row is 3, expected one of 3 outputs"):
        flow_row(np.eye(3)[None], 3)


def test_a_row_without_flow_stays_zero_where_it_need_not_sum_to_one():
    assert attention_flow(np.zeros((3, 2, 2)), residual=0.0, normalise=False).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_method_reads_the_flow_row_of_the_models_own_maps(subject):
    row = 0 if subject.model.config.model_type == "bert" else -1
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method="attention_flow"), strict=True):
        expected = flow_row(eager_maps(subject, text).double(), row)
        np.testing.assert_allclose(found.scores, expected.numpy(), atol=1e-6)
        assert found.scores.sum() == pytest.approx(1.0)


def test_a_head_that_pools_by_the_mean_is_read_by_the_mean_of_the_rows():
    subject = modernbert_with_mean_pooling()
    text = TEXTS[1]
    (found,) = attribute(subject, [text], method="attention_flow")
    expected = attention_flow(eager_maps(subject, text).double()).mean(dim=0)
    np.testing.assert_allclose(found.scores, expected.numpy(), atol=1e-6)


def test_more_flows_than_allowed_are_refused_with_a_way_out(bert):
    settings = build(Settings, {"attention_flow": {"most_flows": 5}}, "test")
    with pytest.raises(
        UnsupportedModelError, match=r"reads one row of a text of .* tokens.*most_flows \(5\)"
    ) as refused:
        list(attribute(bert, TEXTS, method="attention_flow", settings=settings))
    assert refused.value.code == "too_many_flows"


def test_the_residual_is_a_setting(bert):
    settings = build(Settings, {"attention_flow": {"residual": 0.0}}, "test")
    (found,) = attribute(bert, TEXTS[:1], method="attention_flow", settings=settings)
    expected = flow_row(eager_maps(bert, TEXTS[0]).double(), 0, residual=0.0)
    np.testing.assert_allclose(found.scores, expected.numpy(), atol=1e-6)
    assert found.options["residual"] == 0.0
