"""What is read from a model's maps equals the pure functions on the maps that the model itself returns."""

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS, eager_maps
from veedor.attribution import attribute
from veedor.attribution.rollout import rollout
from veedor.settings import Settings, build

CASES = [
    {},
    {"residual": 0.2},
    {"fusion": "max"},
    {"fusion": "min"},
    {"discard": 0.3},
    {"fusion": "max", "discard": 0.5, "residual": 0.1},
]


def read_row(subject):
    """BERT's head reads [CLS]; the heads of GPT-2 and Llama read the last token of a text without padding."""
    return 0 if subject.model.config.model_type == "bert" else -1


@pytest.mark.parametrize("options", CASES)
def test_streamed_rollout_equals_rollout_of_the_models_own_maps(subject, options):
    settings = build(Settings, {"rollout": options}, "test")
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method="rollout", settings=settings), strict=True):
        whole = rollout(eager_maps(subject, text), **options)[read_row(subject)]
        np.testing.assert_allclose(found.scores, whole.numpy(), atol=1e-5 * float(whole.max()))


def test_attention_is_the_head_mean_of_the_last_layer_in_the_row_that_is_read(subject):
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method="attention"), strict=True):
        row = eager_maps(subject, text)[-1].mean(dim=0)[read_row(subject)]
        np.testing.assert_allclose(found.scores, row.numpy(), atol=1e-5 * float(row.max()))


@pytest.mark.parametrize("method", ["rollout", "attention"])
def test_a_row_is_a_distribution_over_tokens(subject, method):
    for found in attribute(subject, TEXTS, method=method):
        assert found.scores.min() >= 0
        assert found.scores.sum() == pytest.approx(1.0, abs=1e-5)


def test_dropping_special_tokens_says_which_share_went_with_them_and_renormalises_nothing(bert):
    settings = build(Settings, {"rollout": {"specials": "drop"}}, "test")
    kept = next(iter(attribute(bert, TEXTS[:1], method="rollout")))
    dropped = next(iter(attribute(bert, TEXTS[:1], method="rollout", settings=settings)))
    assert dropped.tokens == kept.tokens[1:-1]
    np.testing.assert_array_equal(dropped.scores, kept.scores[1:-1])
    assert dropped.options["specials_share"] == pytest.approx(kept.scores[0] + kept.scores[-1])
    np.testing.assert_array_equal(dropped.word_scores, kept.word_scores)


@pytest.mark.parametrize("method", ["rollout", "attention"])
def test_the_classifier_does_not_matter_because_there_is_no_target(bert, method):
    before = [found.scores for found in attribute(bert, TEXTS, method=method)]
    with torch.no_grad():
        bert.model.classifier.weight.normal_(generator=torch.Generator().manual_seed(2))
    for one, found in zip(before, attribute(bert, TEXTS, method=method), strict=True):
        np.testing.assert_array_equal(one, found.scores)


def test_a_row_without_weight_is_an_error_that_names_the_method(bert):
    """Without a residual, min fusion and a discard of nearly everything leave rows without any weight."""
    settings = build(Settings, {"rollout": {"fusion": "min", "residual": 0.0, "discard": 0.99}}, "test")
    with torch.no_grad():
        for layer in bert.model.bert.encoder.layer:
            layer.attention.self.query.weight.mul_(1e4)
    with pytest.raises(ValueError, match=r"row .* of layer .* holds only zeros"):
        list(attribute(bert, TEXTS, method="rollout", settings=settings))
