"""Value zeroing: an independent run of each layer without one value at a time, rounding, padding, restoration."""

import copy

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import FAMILIES, TEXTS, eager_maps, tokenizer
from tests.subjects import families
from veedor.attribution import attribute
from veedor.attribution.value_zeroing import Zeroing, _layers, moved
from veedor.settings import Settings
from veedor.subjects import Subject, capture


def test_a_vector_that_turns_by_a_right_angle_moves_by_one_and_one_that_turns_about_by_two():
    clean = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    changed = torch.tensor([[0.0, 3.0], [-2.0, 0.0], [5.0, 0.0]])
    np.testing.assert_allclose(moved(clean, changed).numpy(), [1.0, 2.0, 0.0], atol=1e-12)


def test_small_angles_are_kept_and_rounding_is_not_taken_for_movement():
    """By 1e-4: 1 - cos = 5e-9, which float32 could not tell from 0. By 1e-7, float32's own step: nothing."""
    clean = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = moved(clean, torch.tensor([[1.0, 1e-4], [1.0, 1e-7]]))
    assert float(found[0]) == pytest.approx(5e-9, rel=1e-4) and float(found[1]) == 0.0


def test_a_vector_of_zeros_has_no_angle_and_counts_as_not_moved():
    found = moved(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    assert found.tolist() == [0.0, 0.0]


def stages(subject):
    """The layers, the projection of values within one, and how its width is cut into a token's values."""
    kind = subject.model.config.model_type
    if kind == "bert":
        return subject.model.bert.encoder.layer, "attention.self.value", slice(None)
    if kind == "gpt2":
        return subject.model.transformer.h, "attn.c_attn", slice(-subject.model.config.hidden_size, None)
    return subject.model.model.layers, "self_attn.v_proj", slice(None)


def by_hand(subject, text):
    """The map of each layer, (layers, n, n): the whole model is run n times a layer, its value projection cut open."""
    subject = Subject(copy.deepcopy(subject.model).double(), subject.tokenizer)
    layers, path, part = stages(subject)
    given = subject.tokenizer(text, return_tensors="pt")
    states = {}

    def output_of(layer):
        hook = layer.register_forward_hook(
            lambda _, __, made: states.update(now=(made[0] if isinstance(made, tuple) else made)[0].clone())
        )
        with torch.no_grad():
            subject.model(**given)
        hook.remove()
        return states["now"].numpy()

    found = []
    for layer in layers:
        clean, columns = output_of(layer), []
        for token in range(given["input_ids"].shape[1]):

            def cut(_, __, made, token=token):
                made = made.clone()
                made[:, token, part] = 0
                return made

            hook = layer.get_submodule(path).register_forward_hook(cut)
            changed = output_of(layer)
            hook.remove()
            angle = (clean * changed).sum(1) / np.linalg.norm(clean, axis=1) / np.linalg.norm(changed, axis=1)
            columns.append(1 - angle)
        found.append(np.stack(columns, axis=1))
    return np.stack(found)


def rolled(maps):
    flow = None
    for one in maps:
        own = np.where(one < 1e-11, 0.0, one)
        total = own.sum(axis=1, keepdims=True)
        shares = own / np.where(total > 0, total, 1.0)
        flow = shares if flow is None else shares @ flow
    return flow


def test_scores_are_those_of_the_model_run_again_without_each_value(subject):
    row = 0 if subject.model.config.model_type == "bert" else -1
    for text, found in zip(TEXTS[:3], attribute(subject, TEXTS[:3], method="value_zeroing"), strict=True):
        expected = rolled(by_hand(subject, text))[row]
        np.testing.assert_allclose(found.scores, expected, atol=2e-5 * expected.max())


def maps_of(subject, text):
    """Each layer's shares for one text, by the method's own passes, before they are multiplied."""
    with torch.no_grad(), capture(subject) as captured:
        (batch,) = subject.batches(subject.encode([text]))
        zeroing = Zeroing(captured)
        with zeroing.watching(_layers(subject, captured, batch)):
            zeroing.flow(subject, batch)
    return [torch.cat(columns, dim=-1)[0].numpy() for columns in zeroing.columns]


def test_every_layer_has_a_map_of_its_own_that_is_no_rounding_under_fused_attention(subject):
    """Scores that are the same in all layers, or all about 0, would mean that no value was ever zeroed."""
    assert subject.model.config._attn_implementation == "sdpa"
    maps = maps_of(subject, TEXTS[0])
    assert len(maps) == 3
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert np.abs(maps[one] - maps[other]).max() > 1e-3
    np.testing.assert_allclose(maps, by_hand(subject, TEXTS[0]), atol=1e-6)


def test_a_layer_whose_values_go_nowhere_leaves_rows_of_zeros_and_no_blown_up_rounding(bert):
    """Without an output projection no value moves anything in layer 1: nothing flows on, and that is said."""
    from veedor.attribution import UnsupportedModelError

    with torch.no_grad():
        bert.model.bert.encoder.layer[1].attention.output.dense.weight.zero_()
    assert maps_of(bert, TEXTS[0])[1].max() == 0.0
    with pytest.raises(UnsupportedModelError, match="no token contributes to the row that the head reads"):
        list(attribute(bert, TEXTS, method="value_zeroing"))


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_no_value_of_the_future_moves_anything(family):
    found = maps_of(FAMILIES[family](), TEXTS[0])
    assert all(np.triu(own, 1).max() == 0 for own in found)


@pytest.mark.parametrize("tokens", [1, 40, 2**13])
def test_how_many_copies_run_at_a_time_changes_nothing(monkeypatch, subject, tokens):
    whole = [found.scores for found in attribute(subject, TEXTS[:3], method="value_zeroing")]
    monkeypatch.setattr("veedor.attribution.value_zeroing.TOKENS", tokens)
    for one, found in zip(whole, attribute(subject, TEXTS[:3], method="value_zeroing"), strict=True):
        np.testing.assert_allclose(found.scores, one, atol=1e-5 * one.max())


def test_a_model_on_eager_attention_gives_the_same(subject):
    fused = [found.scores for found in attribute(subject, TEXTS, method="value_zeroing")]
    subject.model.set_attn_implementation("eager")
    for one, found in zip(fused, attribute(subject, TEXTS, method="value_zeroing"), strict=True):
        np.testing.assert_allclose(found.scores, one, atol=1e-5 * one.max())


@pytest.mark.parametrize(
    "family", ["modernbert-mean", "deberta-v2", "bloom", "gemma2", "mistral", "albert", "opt", "roberta", "mpnet"]
)
def test_other_families_batched_equal_single_and_keep_their_state(family):
    subject = families.subject(family)
    before = families.snapshot(subject.model)
    together = [found.scores for found in attribute(subject, families.TEXTS, method="value_zeroing")]
    alone = attribute(subject, families.TEXTS, method="value_zeroing", settings=Settings(batch_size=1))
    for one, found in zip(together, alone, strict=True):
        assert np.isfinite(one).all() and one.max() > 0
        np.testing.assert_allclose(found.scores, one, atol=1e-5 * one.max())
    families.assert_same(before, families.snapshot(subject.model))


def test_the_tokens_that_are_attended_are_the_ones_that_count(bert):
    """One head, one layer that looks at one token only: its value is the only one that moves the first row."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(tokenizer()),
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
            max_position_embeddings=64,
            pad_token_id=0,
            num_labels=2,
            problem_type="single_label_classification",
        )
    )
    with torch.no_grad():
        own = model.bert.encoder.layer[0].attention.self
        own.query.weight.mul_(4000)
        own.query.bias.normal_(std=30)
        own.key.weight.mul_(50)
    subject = Subject(model.eval(), tokenizer())
    (found,) = attribute(subject, TEXTS[:1], method="value_zeroing")
    attended = eager_maps(subject, TEXTS[0])[0, 0, 0].numpy()
    assert attended.max() > 0.999
    assert found.scores.argmax() == attended.argmax() and found.scores.max() > 0.999


def test_the_model_is_as_it_was_after_a_pass_with_zeroed_values_that_raised(bert):
    before = families.snapshot(bert.model)
    calls = []

    def fail(*_):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("the third pass is broken")

    hook = bert.model.bert.encoder.layer[2].register_forward_hook(fail)
    with pytest.raises(RuntimeError, match="third pass"):
        list(attribute(bert, TEXTS, method="value_zeroing"))
    hook.remove()
    families.assert_same(before, families.snapshot(bert.model))
