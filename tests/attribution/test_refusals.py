"""A model that a method does not fit is refused by name, with the methods that do work on that very model."""

import pytest
from transformers import logging

from tests.subjects import families
from tools.architecture_configs import FAMILIES
from tools.architecture_oracles import model_of
from veedor.attribution.methods import METHODS, attribute, without_attention
from veedor.attribution.question import UnsupportedModelError
from veedor.subjects import AttentionNotSeenError, Subject

NEED_ATTENTION = sorted(name for name, method in METHODS.items() if method.needs_attention)


@pytest.fixture(autouse=True)
def quiet():
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    yield
    logging.set_verbosity(before)


@pytest.mark.parametrize("method", NEED_ATTENTION)
def test_a_model_without_attention_is_refused_before_it_is_run_and_what_works_is_named(method):
    with pytest.raises(UnsupportedModelError, match="cannot be read: it has no attention") as refused:
        list(attribute(families.subject("fnet"), families.TEXTS[:1], method=method))
    assert refused.value.code == "no_attention"
    assert str(refused.value).endswith(f"choose one of {', '.join(sorted(set(METHODS) - set(NEED_ATTENTION)))}")


@pytest.mark.parametrize("method", without_attention(families.subject("fnet")))
def test_what_is_named_works(method):
    assert list(attribute(families.subject("fnet"), families.TEXTS[1:2], method=method))


def test_methods_with_gradients_are_not_named_for_a_model_that_gives_none():
    subject = families.subject("longformer")
    with pytest.raises(UnsupportedModelError) as refused:
        list(attribute(subject, families.TEXTS[:1], method="rollout"))
    named = str(refused.value).rpartition("choose one of ")[2].split(", ")
    assert named == without_attention(subject) and "occlusion" in named
    assert not any(METHODS[name].needs_gradient for name in named)
    with pytest.raises(UnsupportedModelError, match="no gradient can be taken; choose one of") as no_gradient:
        list(attribute(subject, families.TEXTS[:1], method="gradient"))
    assert no_gradient.value.code == "no_embeddings"


def test_what_only_shows_when_the_model_is_run_is_refused_with_the_same_list():
    words = families.tokenizer()
    subject = Subject(model_of(FAMILIES["Jamba"], vocabulary=len(words)), words)
    with pytest.raises(AttentionNotSeenError, match="1 attention maps were seen in 2 layers") as refused:
        list(attribute(subject, families.TEXTS[:1], method="rollout"))
    assert str(refused.value).endswith(f"needs no attention: {', '.join(without_attention(subject))}")


@pytest.mark.parametrize("name", ["XLNet", "GPT (OpenAI)"])
def test_layers_that_give_back_states_in_another_layout_are_refused_by_value_zeroing(name):
    words = families.tokenizer()
    subject = Subject(model_of(FAMILIES[name], vocabulary=len(words)), words)
    with pytest.raises(UnsupportedModelError, match="do not give back states of shape") as refused:
        list(attribute(subject, families.TEXTS[:1], method="value_zeroing"))
    assert refused.value.code == "block_not_understood"
