"""After a capture, however it ended, a model is as it was found: weights, configs, modules, hooks, flags."""

import hashlib
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from tests.subjects import families
from tools.architecture_configs import FAMILIES
from tools.architecture_oracles import batch_of, model_of
from veedor.subjects import AttentionNotSeenError, capture
from veedor.subjects.interface import configs_of

HOOKS = [
    "_forward_hooks", "_forward_pre_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_always_called", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks",
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    from transformers import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    yield
    logging.set_verbosity(before)


def fingerprint(model: PreTrainedModel) -> dict[str, Any]:
    """Everything that must be as before, deep enough for one changed byte, hook or attribute to show."""
    digest = hashlib.sha256()
    for name, tensor in [*model.state_dict().items(), *model.named_buffers()]:
        digest.update(name.encode())
        digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    modules = list(model.named_modules())
    configs = configs_of(model)
    return {
        "weights": digest.hexdigest(),
        "configs": [config.to_json_string(use_diff=False) for config in configs],
        "config attributes": [sorted(config.__dict__) for config in configs],
        "attention": [config._attn_implementation_internal for config in configs],
        "modules": [(name, id(module)) for name, module in modules],
        "attributes": [sorted(module.__dict__) for _, module in modules],
        "plain values": [
            {key: value for key, value in module.__dict__.items() if isinstance(value, (bool, int, float, str))}
            for _, module in modules
        ],
        "hooks": [[len(module.__dict__[kind]) for kind in HOOKS] for _, module in modules],
        "gradients": [(parameter.requires_grad, parameter.grad is None) for parameter in model.parameters()],
    }


def assert_as_found(before: dict[str, Any], model: PreTrainedModel) -> None:
    now = fingerprint(model)
    assert [name for name in before if before[name] != now[name]] == []


def ask(model: PreTrainedModel, given: dict[str, torch.Tensor], callback=None) -> None:
    """One forward pass within a capture, gradients and all."""
    with capture(model) as seen:
        seen.on_layer(callback or (lambda layer: layer.weights()))
        model(**given)


def prepared(name: str) -> tuple[PreTrainedModel, dict[str, torch.Tensor]]:
    """A model with a mixture of flags, so that setting all alike would show."""
    family = FAMILIES[name]
    model = model_of(family)
    next(model.parameters()).requires_grad_(False)
    list(model.modules())[-1].train()
    given = batch_of(model, family)
    if family.type == "funnel":  # notes the length of the text on itself in every forward pass, captured or not
        model(**given)
    return model, given


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_is_as_it_was_found_after_a_capture_and_after_a_refusal(name):
    model, given = prepared(name)
    before = fingerprint(model)
    try:
        ask(model, given)
    except AttentionNotSeenError:
        assert name not in ("BERT", "GPT-2", "DeBERTa", "BART")
    assert_as_found(before, model)


SEEN = [
    "BERT", "DistilBERT", "ALBERT", "ModernBERT", "DeBERTa v2 and v3", "XLNet", "BigBird, block-sparse", "GPT-2",
    "BLOOM", "Falcon, rotary", "Llama", "Gemma 2, soft-cap, sliding", "gpt-oss, sinks, sliding", "T5", "BART",
]  # fmt: skip


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("name", SEEN)
def test_a_model_is_as_it_was_found_after_an_error_in_a_callback(name, error):
    model, given = prepared(name)
    before = fingerprint(model)

    def fail(layer):
        if layer.index == 1:
            raise error(layer.index)

    with pytest.raises(error):
        ask(model, given, fail)
    assert_as_found(before, model)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("name", SEEN)
def test_a_model_is_as_it_was_found_after_an_error_in_its_forward(name, error):
    model, given = prepared(name)
    first_norm = next(module for module in model.base_model.modules() if "norm" in type(module).__name__.lower())

    def fail(*_):
        raise error("broken")

    broken = first_norm.register_forward_hook(fail)
    before = fingerprint(model)
    with pytest.raises(error):
        ask(model, given)
    assert_as_found(before, model)
    broken.remove()
    try:
        ask(model, given)  # and it can be captured again
    finally:
        assert model.config._attn_implementation != "veedor_capture"


@pytest.mark.parametrize("name", ["DeBERTa", "BERT"])
def test_a_capture_goes_on_after_a_forward_that_was_interrupted(name):
    """Nothing that the interrupted pass left behind is counted or followed in the next."""
    model, given = prepared(name)
    stop = [True]

    def fail_once(layer):
        seen_layers.append(layer.index)
        if stop and stop.pop():
            raise KeyboardInterrupt

    seen_layers: list[int] = []
    with capture(model) as seen:
        seen.on_layer(fail_once)
        with pytest.raises(KeyboardInterrupt):
            model(**given)
        torch.softmax(torch.randn(1, 2, 3, 4), dim=-1)  # no attention of the model's
        model(**given)
    assert seen_layers == [0, 0, 1]


def test_a_bigbird_answers_a_long_text_as_before_when_short_ones_were_asked_in_between():
    """By itself it goes over to full attention at the first short text, and stays there."""
    from veedor.subjects import Subject

    words = families.tokenizer(model_max_length=64)
    family = FAMILIES["BigBird, block-sparse"]
    model = model_of(family, vocabulary=len(words))
    long = {"input_ids": torch.arange(60)[None] % len(words), "attention_mask": torch.ones(1, 60, dtype=torch.long)}
    with torch.no_grad():
        expected = model(**long).logits
        subject = Subject(model, words)
        assert model.base_model.attention_type == "block_sparse"
        batches = subject.batches(subject.encode(["Muslim!", "the old sailor sings"]))
        assert len(batches) == 2  # texts of different lengths are read by different attention: never in one batch
        for batch in batches:
            subject.logits(batch)
        assert torch.equal(model(**long).logits, expected)


def test_a_long_text_of_a_block_sparse_bigbird_is_refused_by_name():
    model = model_of(FAMILIES["BigBird, block-sparse"])
    before = fingerprint(model)
    with pytest.raises(AttentionNotSeenError, match=r"attention\.self makes weights of shape \(1, 4, 4, 60\)"):
        ask(model, {"input_ids": torch.ones(1, 60, dtype=torch.long)})
    assert_as_found(before, model)
