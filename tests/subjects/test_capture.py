"""Attention as it is captured is that of the model: equal to eager maps, and it makes the module's own output."""

import copy

import pytest
import torch

from tests.subjects import families
from tests.subjects.families import TEXTS, assert_same, snapshot, tokenizer
from veedor.errors import SubjectError
from veedor.subjects import AttentionNotSeenError, LayerAttention, Subject, capture

INTERFACE = [
    "bert", "roberta", "camembert", "distilbert", "albert", "electra", "modernbert", "gpt2", "opt", "llama", "mistral",
    "qwen2", "gemma2", "gpt_neox",
]  # fmt: skip
WATCHED = ["deberta-v2", "mpnet", "bloom"]
EMPTY = torch.zeros(0)


def captured(subject: Subject, batch, *, weights: bool = True) -> list[torch.Tensor]:
    """Every layer's weights over one batch."""
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights() if weights else EMPTY))
        subject.logits(batch)
    return maps


def one_batch(subject: Subject):
    (batch,) = subject.batches(subject.encode(TEXTS))
    return batch


def eager_maps(subject: Subject, text: str) -> tuple[torch.Tensor, ...]:
    """One text's maps as a copy of the model returns them."""
    model = copy.deepcopy(subject.model)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**subject.tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
    assert len(maps) == 3
    return maps


@pytest.mark.parametrize("family", [*INTERFACE, *WATCHED])
def test_weights_in_a_padded_batch_are_the_models_own_eager_maps_of_each_text(family):
    subject = families.subject(family)
    batch = one_batch(subject)
    maps = captured(subject, batch)
    assert len(maps) == 3
    for at, row in enumerate(batch.rows):
        n = int(batch.mask[at].sum())
        for mine, own in zip(maps, eager_maps(subject, TEXTS[row]), strict=True):
            assert (mine[at, :, :n, :n] - own[0]).abs().max() <= 1e-5
            assert mine[at, :, :n, n:].abs().max() == 0 if n < mine.shape[-1] else True


@pytest.mark.parametrize("family", [*INTERFACE, *WATCHED])
def test_rows_are_distributions_over_tokens_that_are_no_padding(family):
    subject = families.subject(family)
    batch = one_batch(subject)
    for weights in captured(subject, batch):
        assert weights.dtype == torch.float32
        assert weights.masked_select(~batch.mask.bool()[:, None, None, :]).abs().max() == 0
        rows = weights.sum(dim=-1)[batch.mask.bool()[:, None, :].expand(weights.shape[:-1])]
        assert torch.allclose(rows, torch.ones_like(rows), atol=1e-6)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "bloom"])
def test_no_token_of_a_decoder_attends_to_the_future(family):
    subject = families.subject(family)
    for weights in captured(subject, one_batch(subject)):
        assert weights.triu(1).abs().max() == 0


def test_a_sliding_window_is_exactly_zero_outside():
    subject = families.subject("mistral")
    for weights in captured(subject, one_batch(subject)):
        n = weights.shape[-1]
        far = torch.arange(n)[:, None] - torch.arange(n)[None, :] >= 4
        assert weights[..., far].abs().max() == 0 and weights[..., ~far].abs().max() > 0


OUTPUT = {  # the projection behind an attention module: what enters it is weights times values
    "bert": "attention.output.dense",
    "roberta": "attention.output.dense",
    "distilbert": "attention.out_lin",
    "albert": "attention.dense",
    "modernbert": "attn.Wo",
    "gpt2": "attn.c_proj",
    "llama": "self_attn.o_proj",
    "deberta-v2": "attention.output.dense",
}
VALUES = "attention.self.value_proj"


def watched_inputs(model, suffix: str, *, output: bool = False) -> list[torch.Tensor]:
    """Collect what enters (or leaves) each module whose name ends so, in the order of calls."""
    found: list[torch.Tensor] = []
    for name, module in model.named_modules():
        if name.endswith(suffix):
            module.register_forward_hook(lambda _, given, made: found.append(made if output else given[0]))
    return found


@pytest.mark.parametrize("family", sorted(OUTPUT))
def test_weights_times_values_are_what_the_untouched_model_hands_to_its_output_projection(family):
    subject = families.subject(family)
    batch = one_batch(subject)
    untouched = Subject(copy.deepcopy(subject.model), subject.tokenizer)
    expected = watched_inputs(untouched.model, OUTPUT[family])
    values = watched_inputs(untouched.model, VALUES, output=True)
    with torch.no_grad():
        untouched.logits(batch)
    made: list[torch.Tensor] = []

    def multiply(layer: LayerAttention) -> None:
        if layer.value is not None:
            value = layer.values()
        else:  # seen by its softmax only
            own = values[layer.index]
            value = own.view(*own.shape[:2], 4, -1).transpose(1, 2)
        made.append((layer.weights() @ value).transpose(1, 2).flatten(2))

    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(multiply)
        subject.logits(batch)
    assert len(made) == len(expected) == 3
    real = batch.mask.bool()
    for mine, own in zip(made, expected, strict=True):
        assert (mine - own)[real].abs().max() <= 1e-5 * max(1.0, float(own[real].abs().max()))


@pytest.mark.parametrize("family", [*INTERFACE, *WATCHED])
@pytest.mark.parametrize("weights", [True, False])
def test_answers_are_the_same_within_a_capture(family, weights):
    subject = families.subject(family)
    batch = one_batch(subject)
    with torch.no_grad():
        before = subject.logits(batch)
        with capture(subject) as seen:
            seen.on_layer(lambda layer: layer.weights() if weights else None)
            within = subject.logits(batch)
    assert (within - before).abs().max() <= 1e-5 * max(1.0, float(before.abs().max()))


@pytest.mark.parametrize("family", ["bert", "llama", "gemma2"])
def test_a_block_of_query_rows_is_that_part_of_the_whole_map(family):
    subject = families.subject(family)
    blocks: list[torch.Tensor] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: blocks.append(layer.weights(slice(3, 7))))
        subject.logits(one_batch(subject))
    for block, whole in zip(blocks, captured(subject, one_batch(subject)), strict=True):
        assert (block - whole[:, :, 3:7]).abs().max() <= 1e-6


def test_the_weights_of_a_layer_that_was_held_on_to_can_be_asked_for_later():
    subject = families.subject("llama")
    held: list[LayerAttention] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(held.append)
        subject.logits(one_batch(subject))
    for layer, weights in zip(held, captured(subject, one_batch(subject)), strict=True):
        assert layer.groups == 2 and layer.queries().shape == layer.keys().shape  # shared heads are repeated
        assert (layer.weights() - weights).abs().max() <= 1e-5


def test_layers_are_counted_by_their_calls_where_one_module_serves_them_all():
    subject = families.subject("albert")
    places: list[tuple[int, str]] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: places.append((layer.index, layer.module)))
        subject.logits(one_batch(subject))
        subject.logits(one_batch(subject))
    assert [index for index, _ in places] == [0, 1, 2, 0, 1, 2]
    assert len({module for _, module in places}) == 1


@pytest.mark.parametrize("family", ["bert", "gpt2", "deberta-v2"])
def test_gradients_reach_the_weights_that_were_handed_out(family):
    subject = families.subject(family)
    maps: list[torch.Tensor] = []

    def hold(layer: LayerAttention) -> None:
        weights = layer.weights()
        weights.retain_grad()
        maps.append(weights)

    with capture(subject) as seen:
        seen.on_layer(hold)
        subject.margin(subject.logits(one_batch(subject)), 1).sum().backward()
    reached = [weights.grad.abs().max() for weights in maps]
    assert len(reached) == 3 and min(reached) > 0


def test_self_and_cross_attention_of_an_encoder_decoder_are_told_apart():
    subject = families.subject("bart")
    kinds: list[str] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: kinds.append(layer.kind))
        subject.logits(one_batch(subject))
    assert kinds == ["self", "self", "self", "cross", "self", "cross"]


def test_a_query_that_may_see_no_key_has_a_row_of_zeros():
    blind = torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()
    blind[..., 1, :] = False
    layer = LayerAttention(0, "made", "self", *torch.randn(3, 1, 2, 3, 4), mask=blind)
    assert layer.weights()[..., 1, :].abs().max() == 0
    assert layer.weights()[..., 2, :].sum(-1).flatten().tolist() == pytest.approx([1.0, 1.0])


def test_an_additive_mask_that_is_merely_very_negative_hides_a_key_exactly():
    mask = torch.tensor([0.0, torch.finfo(torch.float32).min, 0.0]).expand(1, 1, 3, 3)
    layer = LayerAttention(0, "made", "self", *torch.randn(3, 1, 2, 3, 4), mask=mask)
    assert layer.weights()[..., 1].abs().max() == 0


def test_a_sink_takes_its_part_of_a_row_and_shows_no_column():
    """Equal scores of 0 for two keys and for the sink: a third each, and the sink's third is gone."""
    query = key = torch.zeros(1, 1, 2, 4)
    layer = LayerAttention(0, "made", "self", query, key, key, sinks=torch.zeros(1))
    assert layer.weights().flatten().tolist() == pytest.approx([1 / 3] * 4)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "deberta-v2"])
def test_weights_config_and_hooks_are_as_before_after_a_capture(family):
    subject = families.subject(family)
    before = snapshot(subject.model)
    captured(subject, one_batch(subject))
    assert_same(before, snapshot(subject.model))


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart", "deberta-v2"])
def test_weights_config_and_hooks_are_as_before_after_an_error_inside(family):
    subject = families.subject(family)
    before = snapshot(subject.model)

    def fail(layer: LayerAttention) -> None:
        raise KeyError(layer.index)

    def ask() -> None:
        with capture(subject) as seen:
            seen.on_layer(fail)
            subject.logits(one_batch(subject))

    with pytest.raises(KeyError):
        ask()
    assert_same(before, snapshot(subject.model))
    assert len(captured(families.subject("bert"), one_batch(families.subject("bert")))) == 3


def test_a_model_loaded_with_eager_attention_goes_back_to_eager():
    made = families.model("bert")
    made.set_attn_implementation("eager")
    subject = Subject(made, tokenizer())
    captured(subject, one_batch(subject))
    assert made.config._attn_implementation == "eager"


def test_a_model_without_attention_is_refused_by_name_before_it_is_run():
    subject = families.subject("fnet")
    with pytest.raises(AttentionNotSeenError, match=r"FNet.* cannot be read: it has no attention"), capture(subject):
        pytest.fail("the block was entered")
    assert issubclass(AttentionNotSeenError, SubjectError) and AttentionNotSeenError.code == "no_attention"


def test_windowed_attention_without_a_square_map_is_refused_by_name():
    subject = families.subject("longformer")
    with pytest.raises(AttentionNotSeenError, match="is cut into windows and makes no map of tokens by tokens"):
        captured(subject, one_batch(subject))
