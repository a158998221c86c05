"""Attention blocks found by the names of their parts, and norms that are linear once their spread is known."""

import pytest
import torch

from tests.subjects import families
from veedor.subjects import capture
from veedor.subjects.block_watch import blocks_seen
from veedor.subjects.blocks import blocks_of, layer_of
from veedor.subjects.norms import linear_norm

UNDERSTOOD = [
    "bert", "roberta", "camembert", "distilbert", "albert", "electra", "modernbert", "gpt2", "opt", "llama", "mistral",
    "qwen2", "gpt_neox",
]  # fmt: skip
AFTER = {"bert", "roberta", "camembert", "distilbert", "albert", "electra"}


def one_batch(subject):
    (batch,) = subject.batches(subject.encode(families.TEXTS))
    return batch


def seen_blocks(subject, batch):
    found = []
    with torch.no_grad(), capture(subject) as captured, blocks_seen(captured, blocks_of(subject.model), found.append):
        subject.logits(batch)
    return found


@pytest.mark.parametrize("family", UNDERSTOOD)
def test_every_layer_is_seen_once_in_order_with_its_own_values(family):
    subject = families.subject(family)
    batch = one_batch(subject)
    found = seen_blocks(subject, batch)
    assert [seen.index for seen in found] == [0, 1, 2]
    for seen in found:
        assert seen.block.anatomy.place == ("after" if family in AFTER else "before")
        fed = seen.states if family in AFTER else seen.block.norm(seen.states)
        value = seen.attention.value
        assert torch.allclose(seen.block.values_of(fed, value), value, atol=1e-5)


@pytest.mark.parametrize("family", UNDERSTOOD)
def test_joined_heads_and_the_residual_stream_make_the_blocks_output(family):
    """Weights times values, times each head's part of the output projection, and the norm where it stands after."""
    subject = families.subject(family)
    for seen in seen_blocks(subject, one_batch(subject)):
        heads = seen.attention.weights() @ seen.attention.values()
        joined = torch.einsum("bhns,hsd->bnd", heads, seen.block.out_matrices(heads.shape[1])) + seen.states
        joined = joined if seen.block.out.bias is None else joined + seen.block.out.bias
        made = seen.block.norm(joined) if family in AFTER else joined
        real = one_batch(subject).mask.bool()
        assert (made - seen.output)[real].abs().max() < 1e-5 * seen.output[real].abs().max()


@pytest.mark.parametrize("family", UNDERSTOOD)
def test_a_norm_at_its_known_spread_is_linear_in_its_parts(family):
    norm = blocks_of(families.model(family))
    for block in norm.values():
        generator = torch.Generator().manual_seed(3)
        one, other = torch.randn(2, 5, 16, generator=generator)
        own = linear_norm(block.norm, 16)
        spread = own.spread(one + other)
        with torch.no_grad():
            expected = block.norm(one + other)
        assert torch.allclose(own.part(one, spread) + own.part(other, spread) + own.shift, expected, atol=1e-5)


def test_a_norm_that_scales_by_one_more_than_its_weight_is_known_by_what_it_does():
    class ShiftedRMSNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.eps, self.weight = 1e-6, torch.nn.Parameter(torch.tensor([0.5, -0.25, 1.0]))

        def forward(self, states):
            return states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)

    own = linear_norm(ShiftedRMSNorm(), 3)
    assert torch.allclose(own.gain, torch.tensor([1.5, 0.75, 2.0]), atol=1e-6) and not own.centred


def test_what_is_no_norm_is_not_taken_for_one():
    assert linear_norm(torch.nn.Linear(3, 3), 3) is None


def test_opt_may_norm_after_the_sum():
    subject = families.subject("opt", do_layer_norm_before=False)
    assert {block.anatomy.place for block in blocks_of(subject.model).values()} == {"after"}
    for seen in seen_blocks(subject, one_batch(subject)):
        assert torch.equal(seen.block.norm(seen.summed), seen.output)


@pytest.mark.parametrize("parallel", [True, False])
def test_gpt_neox_may_add_its_parts_side_by_side_or_one_behind_the_other(parallel):
    subject = families.subject("gpt_neox", use_parallel_residual=parallel)
    assert {block.anatomy.parallel for block in blocks_of(subject.model).values()} == {parallel}
    assert len(seen_blocks(subject, one_batch(subject))) == 3


@pytest.mark.parametrize("family", ["deberta-v2", "mpnet", "bloom"])
def test_blocks_with_other_parts_are_not_taken_for_known_ones(family):
    assert blocks_of(families.model(family)) == {}


def test_the_layer_of_an_attention_is_its_nearest_ancestor_in_a_list():
    model = families.model("albert")
    name, layer = layer_of(model, "albert.encoder.albert_layer_groups.0.albert_layers.0.attention")
    assert name == "albert.encoder.albert_layer_groups.0.albert_layers.0" and layer is model.get_submodule(name)
    assert layer_of(model, "albert.pooler") is None


def test_hooks_are_gone_after_an_error():
    subject = families.subject("bert")
    before = families.snapshot(subject.model)

    def fail(_):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError), capture(subject) as captured:
        with torch.no_grad(), blocks_seen(captured, blocks_of(subject.model), fail):
            subject.logits(one_batch(subject))
    families.assert_same(before, families.snapshot(subject.model))
