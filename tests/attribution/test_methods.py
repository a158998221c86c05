"""Claims that hold for every method: properties, refusals, batches, order, and a model left as it was found."""

import random

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS
from veedor.attribution import METHODS, UnsupportedModelError, attribute
from veedor.errors import SubjectError, UsageError
from veedor.settings import Settings, build

NAMES = sorted(METHODS)
ONE_BY_ONE = Settings(batch_size=1)
# Adaptive nodes may differ where an error estimate stands at the tolerance; everything else is rounding.
TOLERANCE = {"integrated_gradients": 0.01}
ROUNDING = 1e-6  # of a difference of two float32 scores, however small it is


def vectors(subject, texts, method, settings=None):
    return [found.scores for found in attribute(subject, texts, method=method, settings=settings)]


def assert_same(first, second, method):
    for one, other in zip(first, second, strict=True):
        assert np.abs(one - other).max() <= TOLERANCE.get(method, 1e-5) * np.abs(one).max() + ROUNDING


PUBLISHED = """attention rollout attention_flow norm_rollout alti value_zeroing attention_gradient grad_cam gradient
input_x_gradient smoothgrad integrated_gradients
qkv_gradient attn_lrp cp_lrp occlusion kernel_shap lime random""".split()
BLIND = {"attention", "rollout", "attention_flow", "norm_rollout", "alti", "value_zeroing", "random"}
SIGNED = {"input_x_gradient", "integrated_gradients", "attn_lrp", "cp_lrp", "occlusion", "kernel_shap", "lime"}


def test_there_are_exactly_the_published_methods_under_their_own_names():
    assert NAMES == sorted(PUBLISHED)
    assert all(name == method.name for name, method in METHODS.items())


@pytest.mark.parametrize(
    ("declared", "names"),
    [
        ("targeted", set(PUBLISHED) - BLIND),
        ("signed", SIGNED),
        ("additive", SIGNED),
        ("complete", {"integrated_gradients", "kernel_shap"}),
    ],
)
def test_methods_declare_what_their_scores_mean(declared, names):
    assert {name for name, method in METHODS.items() if getattr(method, declared)} == names


@pytest.mark.parametrize("method", NAMES)
def test_every_score_belongs_to_a_token_and_every_word_to_its_text(subject, method):
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method=method), strict=True):
        assert found.text == text
        assert found.scores.shape == (len(found.tokens),) == (len(found.offsets),)
        assert found.words == text.split() and len(found.word_scores) == len(found.words)
        assert np.isfinite(found.scores).all() and np.isfinite(found.word_scores).all()
        assert found.target == ("LABEL_1" if METHODS[method].targeted else None)


@pytest.mark.parametrize("method", NAMES)
def test_a_text_alone_and_among_longer_ones_gets_the_same_scores(subject, method):
    """Batches of one have no padding; a batch of all pads every text but the longest."""
    assert_same(vectors(subject, TEXTS, method), vectors(subject, TEXTS, method, ONE_BY_ONE), method)


@pytest.mark.parametrize("method", NAMES)
def test_the_order_of_the_texts_changes_nothing(subject, method):
    order = list(range(len(TEXTS)))
    random.Random(4).shuffle(order)
    shuffled = vectors(subject, [TEXTS[place] for place in order], method)
    straight = vectors(subject, TEXTS, method)
    assert_same([straight[place] for place in order], shuffled, method)


@pytest.mark.parametrize("method", NAMES)
def test_two_calls_give_the_same_bits(subject, method):
    for one, other in zip(vectors(subject, TEXTS, method), vectors(subject, TEXTS, method), strict=True):
        np.testing.assert_array_equal(one, other)


def state(model):
    hooks = [
        (name, len(module._forward_hooks), len(module._forward_pre_hooks), len(module._backward_hooks))
        for name, module in model.named_modules()
    ]
    return {
        "training": [(name, module.training) for name, module in model.named_modules()],
        "gradients": [(name, parameter.requires_grad, parameter.grad) for name, parameter in model.named_parameters()],
        "attention": model.config._attn_implementation,
        "config": model.config.to_dict(),
        "hooks": hooks,
        "weights": {name: tensor.clone() for name, tensor in model.state_dict().items()},
    }


def assert_unchanged(before, after):
    weights, now = before.pop("weights"), after.pop("weights")
    assert before == after
    assert all(torch.equal(weights[name], now[name]) for name in weights)


@pytest.mark.parametrize("method", NAMES)
def test_the_model_is_left_as_it_was_found(subject, method):
    subject.model.train()
    next(subject.model.parameters()).requires_grad_(False)
    before = state(subject.model)
    list(attribute(subject, TEXTS[:2], method=method))
    assert_unchanged(before, state(subject.model))


@pytest.mark.parametrize("method", sorted(set(NAMES) - {"random"}))
def test_the_model_is_left_as_it_was_found_by_a_call_that_raised(subject, method):
    def fail(*_):
        raise RuntimeError("the last layer is broken")

    hook = list(subject.model.base_model.modules())[-1].register_forward_hook(fail)
    subject.model.train()
    before = state(subject.model)
    with pytest.raises(RuntimeError, match="the last layer is broken"):
        list(attribute(subject, TEXTS[:2], method=method))
    assert_unchanged(before, state(subject.model))
    hook.remove()


@pytest.mark.parametrize("method", NAMES)
def test_a_model_in_training_mode_is_explained_without_dropout(bert, method):
    quiet = vectors(bert, TEXTS, method)
    bert.model.train()
    assert_same(quiet, vectors(bert, TEXTS, method), method)


@pytest.mark.parametrize("method", NAMES)
def test_an_empty_text_has_no_words_and_finite_scores(bert, method):
    found = next(iter(attribute(bert, [""], method=method)))
    assert found.words == [] and found.word_scores.shape == (0,)
    assert np.isfinite(found.scores).all()


def test_no_texts_give_no_attributions(bert):
    assert list(attribute(bert, [], method="occlusion")) == []


def test_an_unknown_method_names_the_nearest_before_anything_is_computed(bert):
    with pytest.raises(UsageError, match="did you mean 'rollout'"):
        attribute(bert, TEXTS, method="rolout")


def test_one_string_is_not_taken_for_a_list_of_letters(bert):
    with pytest.raises(UsageError, match="wrap one as"):
        attribute(bert, "a quiet neighbour", method="random")


def test_an_unknown_target_is_refused(bert):
    with pytest.raises(UsageError, match="LABEL_1"):
        attribute(bert, TEXTS, method="random", target="LABEL_l")


@pytest.mark.parametrize("method", ["rollout", "attention"])
def test_attention_methods_refuse_an_encoder_decoder_and_name_what_works(bart, method):
    with pytest.raises(SubjectError, match=r"encoder-decoder.*gradient, input_x_gradient") as refused:
        attribute(bart, TEXTS, method=method)
    assert isinstance(refused.value, UnsupportedModelError) and refused.value.code == "encoder_decoder"


@pytest.mark.parametrize("method", ["integrated_gradients", "gradient", "occlusion"])
def test_other_methods_work_on_an_encoder_decoder(bart, method):
    found = vectors(bart, TEXTS, method)
    assert all(np.abs(scores).max() > 1e-6 for scores in found)
    assert_same(found, vectors(bart, TEXTS, method, ONE_BY_ONE), method)


def test_the_other_label_of_two_has_the_opposite_scores(bert):
    one, other = (
        next(iter(attribute(bert, TEXTS[:1], method="input_x_gradient", target=label)))
        for label in ("LABEL_0", "LABEL_1")
    )
    np.testing.assert_allclose(one.scores, -other.scores, atol=1e-6)


def test_random_scores_depend_on_text_and_seed_alone(bert):
    first, second = vectors(bert, TEXTS[:2], "random")
    assert np.array_equal(vectors(bert, TEXTS[1:2], "random")[0], second)
    other = vectors(bert, TEXTS[:1], "random", Settings(seed=1))[0]
    assert not np.array_equal(other, first)


def test_progress_counts_texts_to_the_end(bert):
    calls = []
    list(attribute(bert, TEXTS, method="gradient", settings=ONE_BY_ONE, progress=lambda *call: calls.append(call)))
    assert calls[0] == ("gradient", 1, len(TEXTS)) and calls[-1] == ("gradient", len(TEXTS), len(TEXTS))


def test_options_that_fix_the_numbers_travel_with_them(bert):
    settings = build(Settings, {"integrated_gradients": {"baseline": "pad", "tolerance": 0.05}}, "test")
    found = next(iter(attribute(bert, TEXTS, method="integrated_gradients", settings=settings)))
    assert found.options["baseline"] == "pad" and found.options["tolerance"] == 0.05
    assert found.score_function == "log-odds of the target"
