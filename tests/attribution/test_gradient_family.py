"""The gradient family on models, against the authors' formulas over eager attention maps with their gradients."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from tests.attribution.tiny_models import FAMILIES, TEXTS
from tests.subjects import families
from veedor.attribution import Question, UnsupportedModelError, answer, attribute
from veedor.attribution.gradient_family import MEMBERS, gradient_family, qkv_gradients
from veedor.errors import UsageError
from veedor.settings import Settings, build

ON_ATTENTION = ("attention_gradient", "grad_cam", "qkv_gradient")


def question(subject, method="qkv_gradient", texts=TEXTS, **settings):
    return Question(subject, subject.encode(texts), 1, method, settings=build(Settings, settings, "test"))


def eager(subject, text):
    """Attention maps of an eager copy in float64 and their gradients, (layers, heads, n, n); the row read."""
    model = copy.deepcopy(subject.model).double()
    model.set_attn_implementation("eager")
    encoded = subject.tokenizer(text, return_tensors="pt")
    found = model(**encoded, output_attentions=True)
    for layer in found.attentions:
        layer.retain_grad()
    (found.logits[0, 1] - found.logits[0, 0]).backward()
    maps = torch.cat([layer.detach() for layer in found.attentions])
    slopes = torch.cat([layer.grad for layer in found.attentions])
    return maps.numpy(), slopes.numpy(), 0 if hasattr(model, "bert") else -1


def close(found, expected):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=2e-5 * scale, rtol=0)


def test_attention_gradient_equals_the_authors_rule_over_eager_maps(subject):
    for text, own in zip(TEXTS, attribute(subject, TEXTS, method="attention_gradient"), strict=True):
        maps, slopes, row = eager(subject, text)
        grown = np.eye(maps.shape[-1])
        for layer, gradient in zip(maps, slopes, strict=True):
            grown = grown + np.clip(layer * gradient, 0, None).mean(axis=0) @ grown
        close(own.scores, grown[row])


@pytest.mark.parametrize("layer", [-1, 0, 1])
def test_grad_cam_equals_the_rule_over_eager_maps(subject, layer):
    asked = question(subject, "grad_cam", grad_cam={"layer": layer})
    pairs = list(zip(answer(asked), answer(replace(asked, target_index=0)), strict=True))
    assert max(own.scores.max() for pair in pairs for own in pair) > 1e-3
    for text, pair in zip(TEXTS, pairs, strict=True):
        maps, slopes, row = eager(subject, text)
        heads = slopes[layer].mean(axis=(-2, -1))
        summed = (heads[:, None, None] * maps[layer]).sum(axis=0)[row]
        for own, expected in zip(pair, (summed, -summed), strict=True):
            np.testing.assert_allclose(own.scores, expected.clip(min=0), atol=2e-5 * np.abs(heads).max())


def by_projections(subject, text):
    """Norms of gradients at BERT's own query, key and value projections, (layers, heads, n) each, by hooks."""
    model, kept = copy.deepcopy(subject.model).double(), {"query": [], "key": [], "value": []}
    for layer in model.bert.encoder.layer:
        for name, found in kept.items():

            def keep(_, __, output, found=found):
                output.retain_grad()
                found.append(output)

            getattr(layer.attention.self, name).register_forward_hook(keep)
    logits = model(**subject.tokenizer(text, return_tensors="pt")).logits
    (logits[0, 1] - logits[0, 0]).backward()
    heads = model.config.num_attention_heads
    return {
        name: np.stack([own.grad[0].unflatten(-1, (heads, -1)).norm(dim=-1).T.numpy() for own in found])
        for name, found in kept.items()
    }


def test_gradients_of_queries_keys_and_values_are_those_of_the_models_own_projections(bert):
    for text, own in zip(TEXTS, qkv_gradients(question(bert)), strict=True):
        for name, expected in by_projections(bert, text).items():
            close(getattr(own, name), expected)


def test_a_tokens_score_is_its_value_gradients_norm_over_heads_then_the_mean_over_layers(bert):
    expected = np.sqrt((by_projections(bert, TEXTS[0])["value"] ** 2).sum(axis=1)).mean(axis=0)
    close(answer(question(bert))[0].scores, expected)


def test_another_part_can_make_the_score(bert):
    expected = np.sqrt((by_projections(bert, TEXTS[0])["query"] ** 2).sum(axis=1)).mean(axis=0)
    close(answer(question(bert, qkv_gradient={"part": "query"}))[0].scores, expected)


def test_key_and_value_gradients_of_grouped_heads_are_counted_once_for_all_their_readers():
    """Llama, 4 query heads on 2 key heads: gradients at the value projection's own output, by a hook."""
    subject = FAMILIES["llama"]()
    model, kept = copy.deepcopy(subject.model), []

    def keep(_, __, output):
        output.retain_grad()
        kept.append(output)

    for layer in model.model.layers:
        layer.self_attn.v_proj.register_forward_hook(keep)
    logits = model(**subject.tokenizer(TEXTS[0], return_tensors="pt")).logits
    (logits[0, 1] - logits[0, 0]).backward()
    expected = np.stack([own.grad[0].unflatten(-1, (2, -1)).norm(dim=-1).T.numpy() for own in kept])
    found = qkv_gradients(question(subject))[0]
    assert found.query.shape[1] == 4 and found.key.shape[1] == found.value.shape[1] == 2
    close(found.value, expected)


def test_attention_stands_beside_the_gradients_and_their_ranks_are_compared_by_layer(subject):
    found = qkv_gradients(question(subject))[0]
    maps, _, row = eager(subject, TEXTS[0])
    close(found.read, maps[:, :, row])
    close(found.received, maps.mean(axis=2))
    for layer, own in enumerate(found.agreement()):
        moved = np.sqrt((found.value[layer] ** 2).sum(axis=0))
        assert own == pytest.approx(spearmanr(maps[layer].mean(axis=(0, 1)), moved).statistic, abs=1e-6)


def test_ranks_of_two_tokens_are_not_compared(subject):
    found = qkv_gradients(question(subject, texts=["sailor"]))[0]
    assert found.agreement() == [None] * 3 if found.read.shape[-1] < 3 else all(found.agreement())


def test_all_members_together_say_what_each_says_alone(subject):
    together = gradient_family(question(subject)).scores
    for name in MEMBERS:
        for one, other in zip(together[name], answer(question(subject, name)), strict=True):
            np.testing.assert_allclose(one.scores, other.scores, atol=1e-5 * np.abs(other.scores).max() + 1e-9)


def test_a_batch_goes_forward_and_back_once_for_all_members(bert):
    """Counted at the first layer's query projection: calls forward, and gradients that come back."""
    forward, back = [], []
    query = bert.model.bert.encoder.layer[0].attention.self.query

    def count(_, __, output):
        forward.append(1)
        if output.requires_grad:
            output.register_hook(lambda _: back.append(1))

    hook = query.register_forward_hook(count)
    gradient_family(question(bert))
    hook.remove()
    assert (len(forward), len(back)) == (1, 1)


def test_grad_cam_alone_differentiates_nothing_below_its_layer(bert):
    tracked = []
    layers = [layer.attention.self.query for layer in bert.model.bert.encoder.layer]
    hooks = [own.register_forward_hook(lambda _, __, output: tracked.append(output.requires_grad)) for own in layers]
    answer(question(bert, "grad_cam"))
    for hook in hooks:
        hook.remove()
    assert tracked == [False, False, False]


@pytest.mark.parametrize("method", ON_ATTENTION)
def test_a_text_in_a_batch_gets_the_scores_it_gets_alone(subject, method):
    for one, other in zip(
        answer(question(subject, method)), answer(question(subject, method, batch_size=1)), strict=True
    ):
        assert np.abs(one.scores - other.scores).max() <= 1e-5 * np.abs(other.scores).max() + 1e-8


@pytest.mark.parametrize("method", ON_ATTENTION)
def test_the_other_label_of_two_has_another_map_unless_only_norms_are_told(subject, method):
    asked = question(subject, method)
    for one, other in zip(answer(asked), answer(replace(asked, target_index=0)), strict=True):
        if len(one.scores) < 3:
            continue
        same = np.allclose(one.scores, other.scores, rtol=1e-4)
        assert same == (method == "qkv_gradient"), "the margin of label 0 is minus that of label 1"


@pytest.mark.parametrize("method", ON_ATTENTION)
def test_a_model_in_training_mode_is_read_without_dropout(bert, method):
    quiet = answer(question(bert, method))
    bert.model.train()
    for one, other in zip(quiet, answer(question(bert, method)), strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("method", ON_ATTENTION)
def test_scores_exceed_rounding(subject, method):
    asked = question(subject, method)
    found = answer(asked) + answer(replace(asked, target_index=0))
    assert max(own.scores.max() for own in found) > 1e-3


def test_a_model_loaded_as_eager_and_as_sdpa_gets_the_same_scores(bert):
    for method in (*ON_ATTENTION, "gradient"):
        fused = answer(question(bert, method))
        bert.model.set_attn_implementation("eager")
        for one, other in zip(fused, answer(question(bert, method)), strict=True):
            assert np.abs(one.scores - other.scores).max() <= 1e-5 * np.abs(other.scores).max()
        bert.model.set_attn_implementation("sdpa")


@pytest.mark.parametrize("family", ["deberta-v2", "mpnet", "bloom"])
def test_models_seen_by_their_softmax_have_attention_gradients_as_eager_gives_them(family):
    subject = families.subject(family)
    found = next(iter(attribute(subject, families.TEXTS[:1], method="attention_gradient")))
    model = copy.deepcopy(subject.model)
    answered = model(**subject.tokenizer(families.TEXTS[0], return_tensors="pt"), output_attentions=True)
    slopes = torch.autograd.grad(answered.logits[0, 1] - answered.logits[0, 0], answered.attentions)
    grown = torch.eye(len(found.scores))
    for layer, gradient in zip(answered.attentions, slopes, strict=True):
        grown = grown + (layer * gradient)[0].clamp(min=0).mean(dim=0) @ grown
    close(found.scores, grown[-1 if family == "bloom" else 0].detach().numpy())


@pytest.mark.parametrize("family", ["deberta-v2", "bloom"])
def test_values_that_are_not_seen_are_refused_by_the_methods_name(family):
    with pytest.raises(UnsupportedModelError, match="qkv_gradient does not fit") as refused:
        list(attribute(families.subject(family), families.TEXTS, method="qkv_gradient"))
    assert refused.value.code == "softmax_only"


@pytest.mark.parametrize("method", ON_ATTENTION)
def test_an_encoder_decoder_is_refused(bart, method):
    with pytest.raises(UnsupportedModelError, match="encoder-decoder"):
        attribute(bart, TEXTS, method=method)


def test_a_layer_that_is_not_there_is_refused_with_those_that_are(bert):
    with pytest.raises(UsageError, match=r"grad_cam.layer is 3, but .* has 3 layers; expected a number from 0 to 2"):
        answer(question(bert, "grad_cam", grad_cam={"layer": 3}))


def test_an_unknown_member_names_the_nearest(bert):
    with pytest.raises(UsageError, match="did you mean 'grad_cam'"):
        gradient_family(question(bert), ("gradcam",))
