"""Weights drawn anew from the top down: in a copy, by a seed, head first, embeddings never."""

import copy
from itertools import pairwise

import pytest
import torch

from tests.attribution.tiny_models import FAMILIES, bart_model, tokenizer
from veedor.subjects import Subject
from veedor.subjects.reinitialised import cascade, layer_stacks, parts

MODELS = {**FAMILIES, "bart": lambda: Subject(bart_model(), tokenizer())}


def changed(before: dict[str, torch.Tensor], model: torch.nn.Module) -> set[str]:
    return {name for name, own in model.state_dict().items() if not torch.equal(own, before[name])}


@pytest.mark.parametrize("family", [name for name in MODELS if name != "gpt2-left"])
def test_the_head_goes_first_then_layers_from_the_top_and_embeddings_stay(family: str) -> None:
    subject = MODELS[family]()
    before = copy.deepcopy(subject.model.state_dict())
    steps = []
    for name, other in cascade(subject, seed=3):
        steps.append((name, changed(before, other.model)))
    assert [name for name, _ in steps] == ["head", *(f"layer {n}" for n in range(len(steps) - 1, 0, -1))]
    assert steps[0][1] and all("layer" not in path and ".h." not in path for path in steps[0][1])
    assert all(first < second for (_, first), (_, second) in pairwise(steps)), "each adds to the last"
    matrices = {
        name
        for name, own in before.items()
        if own.ndim > 1 and not any(part in name for part in ("embed", "wte", "wpe", "shared"))
    }
    assert matrices <= steps[-1][1], "every matrix but those of embeddings is new"
    assert not any("embed" in name or ".wte" in name for name in steps[-1][1])


def test_the_subject_that_was_given_stays_as_it_was() -> None:
    subject = FAMILIES["bert"]()
    before = copy.deepcopy(subject.model.state_dict())
    for _, other in cascade(subject):
        assert other.model is not subject.model and not other.model.training
    assert not changed(before, subject.model)


def test_the_same_seed_draws_the_same_weights_and_leaves_the_callers_dice_alone() -> None:
    subject = FAMILIES["bert"]()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (
        [copy.deepcopy(s.model.state_dict()) for _, s in cascade(subject, seed=n)][-1] for n in (1, 1, 2)
    )
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(own, again[name]) for name, own in first.items())
    assert any(not torch.equal(own, other[name]) for name, own in first.items())


def test_weights_are_drawn_as_the_architecture_draws_them() -> None:
    subject = FAMILIES["bert"]()
    (*_, (_, other)) = cascade(subject)
    weights = torch.cat(
        [own.detach().flatten() for name, own in other.model.named_parameters() if name.endswith("dense.weight")]
    )
    assert abs(float(weights.std()) - subject.model.config.initializer_range) < 0.002
    biases = [own for name, own in other.model.named_parameters() if name.endswith("dense.bias")]
    assert all(float(own.detach().abs().max()) == 0 for own in biases)


def test_weights_that_were_loaded_are_drawn_anew_too(tmp_path) -> None:
    """transformers marks what it loaded as initialised, and its own initialisation then passes it by."""
    FAMILIES["bert"]().model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    subject = Subject.load(tmp_path)
    before = copy.deepcopy(subject.model.state_dict())
    (*_, (_, other)) = cascade(subject)
    assert "bert.encoder.layer.0.attention.self.query.weight" in changed(before, other.model)


def test_an_encoder_decoder_has_two_stacks_and_the_decoder_is_on_top() -> None:
    model = bart_model()
    assert [len(stack) for stack in layer_stacks(model)] == [2, 2]
    top = next(modules for name, modules in parts(model, "m") if name == "layer 4")
    assert any(module is model.model.decoder.layers[1] for module in top)
