"""Capture of models as others call them: half precision, left padding, position ids, several at once, in threads."""

import copy
import threading

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from tests.subjects import families
from tests.subjects.families import PAD, TEXTS, snapshot, tokenizer
from tools.architecture_configs import FAMILIES
from tools.architecture_oracles import batch_of, model_of
from veedor.subjects import LayerAttention, Subject, capture, heads
from veedor.subjects.interface import with_bias
from veedor.subjects.layer_attention import hidden


def weights_of(model, **given) -> list[torch.Tensor]:
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(model) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights()))
        model(**given)
    return maps


def text(family: str, row: int = 0) -> torch.Tensor:
    return tokenizer(family)(TEXTS[row], return_tensors="pt")["input_ids"]


def padded_left(ids: torch.Tensor, by: int) -> tuple[torch.Tensor, torch.Tensor]:
    mask = torch.ones_like(ids)
    return torch.nn.functional.pad(ids, (by, 0), value=PAD), torch.nn.functional.pad(mask, (by, 0))


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "bloom"])
def test_a_left_padded_text_with_position_ids_has_the_maps_of_the_text_alone(family):
    """GPT-2 counts padding as positions where it is not told, so the ids are given; BLOOM counts from the mask."""
    model, ids = families.model(family), text(family)
    longer, mask = padded_left(ids, 3)
    given = {"input_ids": longer, "attention_mask": mask}
    if family != "bloom":
        given["position_ids"] = (mask.cumsum(dim=1) - 1).clamp(min=0)
    for mine, own in zip(weights_of(model, **given), weights_of(model, input_ids=ids), strict=True):
        assert (mine[..., 3:, 3:] - own).abs().max() <= 1e-5
        assert mine[..., 3:, :3].abs().max() == 0 and mine.triu(1).abs().max() == 0


@pytest.mark.parametrize("family", ["gpt2", "llama", "bloom"])
def test_padding_on_the_left_of_a_causal_model_has_rows_of_zeros_and_not_uniform_ones(family):
    longer, mask = padded_left(text(family), 3)
    for weights in weights_of(families.model(family), input_ids=longer, attention_mask=mask):
        assert weights[..., :3, :].abs().max() == 0
        assert torch.isfinite(weights).all()


@pytest.mark.parametrize("asked", [True, False])
def test_rows_without_a_visible_key_put_no_nan_into_the_answers(asked):
    model = families.model("llama")
    longer, mask = padded_left(text("llama"), 3)
    with torch.no_grad(), capture(model) as seen:
        seen.on_layer(lambda layer: layer.weights() if asked else None)
        assert torch.isfinite(model(input_ids=longer, attention_mask=mask).logits).all()


def test_roberta_given_embeddings_needs_the_position_ids_of_the_ids_and_gets_them_from_a_subject():
    """Given embeddings it counts padding as text: the maps of a left-padded text are others. Our batches say where."""
    subject = families.subject("roberta", padding_side="left")
    longer, mask = padded_left(text("roberta"), 3)
    embedded = subject.model.get_input_embeddings()(longer)
    naive = weights_of(subject.model, inputs_embeds=embedded, attention_mask=mask)
    by_ids = weights_of(subject.model, input_ids=longer, attention_mask=mask)
    assert (naive[0] - by_ids[0])[..., 3:, :].abs().max() > 1e-3
    (batch,) = subject.batches(subject.encode([TEXTS[0], TEXTS[2]]))
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights()))
        subject.logits(batch)
        subject.logits_from_embeddings(subject.embed(batch), batch)
    for one, other in zip(maps[:3], maps[3:], strict=True):
        assert (one - other).abs().max() <= 1e-6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("family", ["bert", "llama", "gemma2"])
def test_weights_of_a_half_precision_model_are_computed_in_float32(family, dtype):
    model = families.model(family).to(dtype)
    ids, mask = padded_left(text(family), 2)
    for weights in weights_of(model, input_ids=ids, attention_mask=mask):
        assert weights.dtype == torch.float32
        assert (weights.sum(dim=-1)[..., 2:] - 1).abs().max() <= 1e-6  # in bfloat16 off by 2e-3
        assert weights[..., 2:, :2].abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_least_number_of_any_type_hides_a_key_exactly(dtype):
    mask = torch.tensor([0.0, torch.finfo(dtype).min, -3.0], dtype=dtype).expand(1, 1, 3, 3)
    assert hidden(mask)[0, 0, 0].tolist() == [False, True, False]
    layer = LayerAttention(0, "made", "self", *torch.randn(3, 1, 2, 3, 4).to(dtype), mask=mask)
    assert layer.weights()[..., 1].abs().max() == 0 and layer.weights()[..., 2].min() > 0


def test_a_position_bias_and_masks_of_either_kind_become_one_additive_mask():
    bias = torch.tensor([[1.0, 2.0], [3.0, 4.0]])[None, None]
    boolean = torch.tensor([[True, False], [True, True]])[None, None]
    additive = torch.zeros(1, 1, 2, 2).masked_fill(~boolean, torch.finfo(torch.float32).min)
    for mask in (boolean, additive):
        assert with_bias(mask, bias)[0, 0].tolist() == [[1.0, -torch.inf], [3.0, 4.0]]
    assert with_bias(None, bias) is bias and with_bias(boolean, None) is boolean


def test_query_heads_read_the_key_head_of_their_group():
    """Four query heads over two key heads, against a loop in float64: head h reads key head h // 2."""
    generator = torch.Generator().manual_seed(3)
    query = torch.randn(2, 4, 5, 3, generator=generator)
    key, value = torch.randn(2, 2, 2, 5, 3, generator=generator)
    layer = LayerAttention(0, "made", "self", query, key, value, causal=True, scaling=0.7)
    for text_, head in [(t, h) for t in range(2) for h in range(4)]:
        for row in range(5):
            heights = [0.7 * float(query[text_, head, row].double() @ key[text_, head // 2, column].double())
                       for column in range(row + 1)]  # fmt: skip
            weights = torch.tensor(heights, dtype=torch.float64).softmax(dim=0)
            assert (layer.weights()[text_, head, row, : row + 1] - weights).abs().max() <= 1e-6
            own = weights @ value[text_, head // 2, : row + 1].double()
            assert (layer.output()[text_, head, row] - own).abs().max() <= 1e-6


@pytest.mark.parametrize("mask", ["none", "bool", "bias", "blind"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_the_fused_output_is_that_of_the_weights(mask, causal, key_heads):
    generator = torch.Generator().manual_seed(4)
    query = torch.randn(2, 4, 6, 3, generator=generator)
    key, value = torch.randn(2, 2, key_heads, 6, 3, generator=generator)
    drawn = torch.randn(2, 1, 6, 6, generator=generator)
    masks = {
        "none": None,
        "bool": drawn > -1,
        "bias": drawn,
        "blind": (drawn > -1).index_fill(2, torch.tensor(2), False),
    }
    layer = LayerAttention(0, "made", "self", query, key, value, mask=masks[mask], causal=causal)
    fused = layer.output()
    layer.weights()
    assert torch.isfinite(fused).all()
    assert (fused - layer.output()).abs().max() <= 1e-6
    assert (fused - layer.weights() @ layer.values()).abs().max() <= 1e-6


def test_shared_heads_are_not_repeated_and_stay_with_the_kernel_that_holds_no_map():
    from torch.profiler import ProfilerActivity, profile

    key = value = torch.randn(1, 2, 16, 8)
    layer = LayerAttention(
        0, "made", "self", torch.randn(1, 8, 16, 8), key, value, mask=torch.ones(16, 16).bool().tril()
    )
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        layer.output()
    called = {event.key for event in seen.key_averages()}
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in called
    assert not any("repeat" in name for name in called)


@pytest.mark.parametrize("name", ["DeBERTa v2 and v3", "XLNet", "Funnel, one block", "BLOOM", "SqueezeBERT"])
def test_a_rule_answers_for_a_watched_layer_in_the_layout_the_model_wants(name):
    """By matmul, bmm or einsum: its own output changes nothing, values of other heads change the answer."""
    model = model_of(FAMILIES[name])
    given = batch_of(model, FAMILIES[name])
    with torch.no_grad(), capture(model) as seen:
        own = model(**given).logits
        seen.answer_with(lambda layer: layer.weights() @ layer.values(), watched=True)
        assert (model(**given).logits - own).abs().max() <= 1e-5 * own.abs().max()
        seen.answer_with(lambda layer: layer.weights() @ layer.values().flip(1), watched=True)
        assert (model(**given).logits - own).abs().max() > 1e-2 * own.abs().max()


def test_a_rule_is_not_asked_for_watched_layers_unless_it_wants_to_be():
    model = families.model("deberta-v2")
    with torch.no_grad(), capture(model) as seen:
        seen.answer_with(lambda layer: pytest.fail("asked"))
        model(input_ids=text("deberta-v2"))


def test_the_empty_tuple_that_fused_attention_returns_for_its_maps_is_not_what_is_read():
    """Asked for attentions, a model on SDPA answers with nothing and without an error; the capture has every layer."""
    model, ids = families.model("bert"), text("bert")
    assert model.config._attn_implementation == "sdpa"
    with torch.no_grad():
        returned = model(input_ids=ids, output_attentions=True).attentions
    assert not returned or all(one is None for one in returned)
    assert len(weights_of(model, input_ids=ids)) == 3
    with torch.no_grad(), capture(model) as seen:
        maps: list[torch.Tensor] = []
        seen.on_layer(lambda layer: maps.append(layer.weights()))
        model(input_ids=ids, output_attentions=True)
    assert len(maps) == 3


def test_identical_texts_in_a_batch_get_identical_maps_even_of_a_model_in_training_mode():
    """Dropout is never applied to captured weights: rows sum to 1."""
    model = families.model("bert", attention_probs_dropout_prob=0.5).train()
    ids = text("bert").repeat(2, 1)
    (first, *_) = weights_of(model, input_ids=ids)
    assert (first.sum(dim=-1) - 1).abs().max() <= 1e-6
    subject = Subject(model, tokenizer())
    (batch,) = subject.batches(subject.encode([TEXTS[0], TEXTS[0]]))
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights()))
        subject.logits(batch)
    assert all(torch.equal(weights[0], weights[1]) for weights in maps)


@pytest.mark.parametrize(("mask", "last"), [([0, 0, 1, 1], 3), ([1, 1, 0, 0], 1), ([0, 1, 1, 0], 2)])
def test_the_last_token_is_the_last_that_is_no_padding_on_whichever_side_that_is(mask, last):
    """mask.sum() - 1 would say 1 to all three."""
    ids = torch.tensor([[9, 8, 7, 6]])
    assert heads.read_row(ids, torch.tensor([mask]), reading="last", marker=None).tolist() == [last]


def test_captures_of_different_models_may_be_nested_and_each_sees_its_own():
    outer, inner, ids = families.model("bert"), families.model("roberta"), text("bert")
    expected = len(weights_of(outer, input_ids=ids)), len(weights_of(inner, input_ids=ids))
    seen_by: dict[str, int] = {"outer": 0, "inner": 0}

    def note(whose: str):
        def count(_):
            seen_by[whose] += 1

        return count

    with torch.no_grad(), capture(outer) as first:
        first.on_layer(note("outer"))
        with capture(inner) as second:
            second.on_layer(note("inner"))
            inner(input_ids=ids)
            outer(input_ids=ids)  # the outer model within the inner capture is still the outer one's
        outer(input_ids=ids)
    assert (seen_by["outer"] / 2, seen_by["inner"]) == expected


@pytest.mark.parametrize("family", ["bert", "deberta-v2"])
def test_a_second_capture_of_one_model_is_refused_and_harms_neither_the_first_nor_the_model(family):
    subject = families.subject(family)
    before = snapshot(subject.model)
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(subject) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights()))
        with pytest.raises(RuntimeError, match="is being captured already; one capture of a model at a time"):
            capture(subject.model.base_model).__enter__()
        subject.logits(subject.batches(subject.encode(TEXTS))[0])
    assert len(maps) == 3
    families.assert_same(before, snapshot(subject.model))
    assert len(weights_of(subject.model, input_ids=text(family))) == 3


def in_a_thread(call) -> list[BaseException]:
    caught: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return caught


@pytest.mark.parametrize("family", ["bert", "deberta-v2"])
def test_a_model_that_is_captured_cannot_be_asked_by_another_thread_which_is_told_so(family):
    model, ids = families.model(family), text(family)
    maps: list[torch.Tensor] = []
    with torch.no_grad(), capture(model) as seen:
        seen.on_layer(lambda layer: maps.append(layer.weights()))
        (refused,) = in_a_thread(lambda: model(input_ids=ids))
        (again,) = in_a_thread(lambda: weights_of(model, input_ids=ids))
        model(input_ids=ids)
    assert isinstance(refused, RuntimeError) and "captured in another thread; ask a copy" in str(refused)
    assert isinstance(again, RuntimeError) and "is being captured already" in str(again)
    assert len(maps) == 3


def test_threads_may_capture_models_of_their_own_at_the_same_time():
    original, ids = families.model("llama"), text("llama")
    expected = weights_of(original, input_ids=ids)
    copies = [copy.deepcopy(original) for _ in range(3)]
    found: dict[int, list[torch.Tensor]] = {}
    together = threading.Barrier(3)

    def run(at: int) -> None:
        maps: list[torch.Tensor] = []
        with torch.no_grad(), capture(copies[at]) as seen:
            seen.on_layer(lambda layer: maps.append(layer.weights()))
            together.wait(timeout=30)
            copies[at](input_ids=ids)
            together.wait(timeout=30)
        found[at] = maps

    threads = [threading.Thread(target=run, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for maps in found.values():
        assert all(torch.equal(mine, own) for mine, own in zip(maps, expected, strict=True))
    assert sorted(found) == [0, 1, 2]


def test_the_kernel_itself_gives_zero_to_a_row_that_sees_no_key():
    """What the fused output relies on; a NaN there would spread through values of weight 0."""
    query = torch.randn(1, 1, 3, 4)
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool).index_fill(2, torch.tensor(1), False)
    assert scaled_dot_product_attention(query, query, query, attn_mask=mask)[0, 0, 1].tolist() == [0.0] * 4
