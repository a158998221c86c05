"""Gradients against finite differences, and against the trap of a sum that is always zero."""

import copy

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS
from veedor.attribution import attribute

# (step, closeness): Llama's norms compute in float32 even in a float64 model, so its differences need a longer step.
DIFFERENCES = {"bert": (1e-5, 1e-4), "gpt2": (1e-5, 1e-4), "llama": (1e-3, 1e-2)}


def log_odds(model, embeddings):
    logits = model(inputs_embeds=embeddings).logits
    return logits[:, 1] - logits[:, 0]


def slopes(subject, text):
    """Gradient at every embedding by central differences in float64, (n, d), and the embeddings themselves."""
    model = copy.deepcopy(subject.model).double()
    ids = subject.tokenizer(text, return_tensors="pt")["input_ids"]
    point = model.get_input_embeddings()(ids).detach()
    found = torch.zeros_like(point[0])
    length, _ = DIFFERENCES[model.config.model_type]
    with torch.no_grad():
        for at, dimension in np.ndindex(*found.shape):
            step = torch.zeros_like(point)
            step[0, at, dimension] = length
            found[at, dimension] = (log_odds(model, point + step) - log_odds(model, point - step))[0] / (2 * length)
    return found.numpy(), point[0].numpy()


def test_gradient_is_the_norm_of_the_slopes(subject):
    found = next(iter(attribute(subject, TEXTS[1:2], method="gradient")))
    gradient, _ = slopes(subject, TEXTS[1])
    np.testing.assert_allclose(
        found.scores, np.linalg.norm(gradient, axis=-1), rtol=DIFFERENCES[subject.model.config.model_type][1]
    )


def test_input_x_gradient_is_the_inner_product_of_embedding_and_slopes(subject):
    found = next(iter(attribute(subject, TEXTS[1:2], method="input_x_gradient")))
    gradient, point = slopes(subject, TEXTS[1])
    expected = (gradient * point).sum(axis=-1)
    closeness = DIFFERENCES[subject.model.config.model_type][1] * np.abs(expected).max()
    np.testing.assert_allclose(found.scores, expected, atol=closeness)


@pytest.mark.parametrize("method", ["gradient", "input_x_gradient"])
def test_scores_exceed_rounding_where_the_sum_of_the_raw_gradient_is_zero(bert, method):
    """BERT's embeddings feed a layer norm: the slopes of every token sum to 0 over the hidden dimension."""
    gradient, _ = slopes(bert, TEXTS[1])
    assert np.abs(gradient.sum(axis=-1)).max() < 1e-6 * np.linalg.norm(gradient, axis=-1).max()
    for found in attribute(bert, TEXTS, method=method):
        assert np.abs(found.scores).max() > 1e-3


def test_norms_are_never_negative(subject):
    assert all((found.scores >= 0).all() for found in attribute(subject, TEXTS, method="gradient"))
