"""Diagnostics of models equal the pure functions on the maps that the models themselves return."""

import copy

import numpy as np
import pytest
import torch

from tests.subjects.families import TEXTS, assert_same, model, snapshot, tokenizer
from veedor.attribution import Question
from veedor.attribution.diagnostics import diagnose_maps
from veedor.attribution.diagnostics_of_model import diagnose, untrained
from veedor.errors import UsageError
from veedor.settings import Settings, build
from veedor.subjects import Subject

FAMILIES = ("bert", "gpt2", "llama", "mistral", "gemma2", "deberta-v2", "modernbert", "modernbert-mean")


def subject_of(family):
    return Subject(model(family), tokenizer(family))


def asked(subject, texts, *, size=32, **options):
    settings = build(Settings, {"rollout": options, "batch_size": size}, "test")
    return Question(subject, subject.encode(texts), 1, "rollout", settings=settings)


def exact_maps(subject, text):
    eager = copy.deepcopy(subject.model).double()
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        found = eager(**subject.tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
    return torch.cat(found).double().numpy()


def weights_of_head(family, n):
    if family.endswith("mean"):
        return np.full(n, 1 / n)
    return np.eye(n)[0 if family in ("bert", "deberta-v2", "modernbert") else n - 1]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_depth_and_reference_is_that_of_the_models_own_maps(family):
    subject = subject_of(family)
    fresh = untrained(subject, seed=5)
    for text, found in zip(TEXTS, diagnose(asked(subject, TEXTS, residual=0.3), seed=5), strict=True):
        maps = exact_maps(subject, text)
        read, seen = weights_of_head(family, maps.shape[-1]), (maps > 0).any(axis=1)
        expected = diagnose_maps(maps, read, seen=seen, residual=0.3)
        np.testing.assert_allclose(found.found.entropy, expected.found.entropy, atol=1e-5)
        np.testing.assert_allclose(found.uniform.entropy, expected.uniform.entropy, atol=1e-9)
        without = diagnose_maps(exact_maps(fresh, text), read, residual=0.3)
        np.testing.assert_allclose(found.untrained.entropy, without.found.entropy, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_and_padding_change_nothing(family):
    subject = subject_of(family)
    for one, other in zip(diagnose(asked(subject, TEXTS)), diagnose(asked(subject, TEXTS, size=1)), strict=True):
        for name in ("found", "uniform", "untrained"):
            np.testing.assert_allclose(getattr(one, name).entropy, getattr(other, name).entropy, atol=1e-5)


def test_long_texts_are_streamed_to_the_same_numbers():
    subject = Subject(model("llama", max_position_embeddings=400), tokenizer("llama", model_max_length=400))
    text = " ".join(TEXTS * 4)
    [found] = diagnose(asked(subject, [text]))
    maps = exact_maps(subject, text)
    expected = diagnose_maps(maps, weights_of_head("llama", maps.shape[-1]), seen=np.tril(np.ones(maps.shape[-2:])) > 0)
    assert maps.shape[-1] > 128
    np.testing.assert_allclose(found.found.entropy, expected.found.entropy, atol=1e-5)
    np.testing.assert_allclose(found.uniform.entropy, expected.uniform.entropy, atol=1e-9)


def test_only_the_layers_that_were_asked_for_count():
    subject = subject_of("bert")
    [found] = diagnose(asked(subject, TEXTS[:1], layers=(1, 2)))
    expected = diagnose_maps(exact_maps(subject, TEXTS[0])[1:], weights_of_head("bert", found.tokens))
    np.testing.assert_allclose(found.found.entropy, expected.found.entropy, atol=1e-5)


def test_the_fresh_model_is_the_same_bytes_for_the_same_seed_and_others_for_another():
    subject = subject_of("bert")
    first, again, other = (untrained(subject, seed=seed).model.state_dict() for seed in (3, 3, 4))
    name = "bert.encoder.layer.1.attention.self.query.weight"
    assert all(torch.equal(tensor, again[key]) for key, tensor in first.items())
    assert not torch.equal(first[name], other[name])
    assert not torch.equal(first[name], subject.model.state_dict()[name])


@pytest.mark.parametrize("family", ["bert", "deberta-v2"])
def test_the_model_and_the_stream_of_random_numbers_are_left_as_they_were(family):
    subject = subject_of(family)
    before, state = snapshot(subject.model), torch.get_rng_state()
    diagnose(asked(subject, TEXTS))
    assert_same(before, snapshot(subject.model))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("options", [{"fusion": "min"}, {"discard": 0.5}, {"head": 1}])
def test_what_is_not_the_mean_of_all_heads_is_refused(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        diagnose(asked(subject_of("bert"), TEXTS[:1], **options))
