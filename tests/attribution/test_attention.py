"""What is read from a model's maps equals the pure functions on the maps that the model itself returns."""

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS, eager_maps, sized, tokenizer
from veedor.attribution import attribute
from veedor.attribution.kept_layers import InBlocks
from veedor.attribution.rollout import Mixing, rollout
from veedor.settings import Settings, build
from veedor.subjects import Subject

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


def modernbert_with_mean_pooling():
    from transformers import ModernBertConfig, ModernBertForSequenceClassification

    config = ModernBertConfig(
        vocab_size=len(tokenizer()),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=64,
        local_attention=4,
        pad_token_id=0,
        bos_token_id=2,
        cls_token_id=2,
        eos_token_id=3,
        sep_token_id=3,
        classifier_pooling="mean",
        num_labels=2,
        problem_type="single_label_classification",
    )
    return Subject(sized(ModernBertForSequenceClassification(config), scale=0.3), tokenizer())


def deberta_with_hand_written_attention():
    from transformers import DebertaV2Config, DebertaV2ForSequenceClassification

    config = DebertaV2Config(
        vocab_size=len(tokenizer()),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=64,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        pad_token_id=0,
        num_labels=2,
        problem_type="single_label_classification",
    )
    return Subject(sized(DebertaV2ForSequenceClassification(config), scale=0.3), tokenizer())


def test_a_head_that_pools_by_the_mean_is_read_by_the_mean_of_the_rows():
    subject = modernbert_with_mean_pooling()
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method="rollout"), strict=True):
        mean = rollout(eager_maps(subject, text)).mean(dim=0)
        np.testing.assert_allclose(found.scores, mean.numpy(), atol=1e-5 * float(mean.max()))


@pytest.mark.parametrize("options", CASES)
def test_an_attention_that_is_only_seen_at_its_softmax_gives_the_same_rollout(options):
    subject = deberta_with_hand_written_attention()
    settings = build(Settings, {"rollout": options}, "test")
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method="rollout", settings=settings), strict=True):
        row = rollout(eager_maps(subject, text), **options)[0]
        np.testing.assert_allclose(found.scores, row.numpy(), atol=1e-5 * float(row.max()))


def test_the_row_form_in_blocks_of_any_size_equals_the_product_of_maps():
    """Two texts, the second one token shorter; rows weighted unevenly, a block of two of five rows at a time."""
    attention = torch.softmax(torch.randn(3, 2, 4, 5, 5, generator=torch.Generator().manual_seed(1)).double(), dim=-1)
    attention[:, 1, :, :, 4] = 0
    attention = attention / attention.sum(dim=-1, keepdim=True)
    real = torch.tensor([[True] * 5, [True] * 4 + [False]])
    start = torch.tensor([[0.0, 0.5, 0.0, 0.25, 0.25], [0.1, 0.9, 0, 0, 0]]).double()

    class Layer:
        def __init__(self, number):
            self.number = number

        def weights(self, rows):
            return attention[self.number, :, :, rows]

    mixing = Mixing(residual=0.3, fusion="max", discard=0.4)
    for block in (1, 2, 5, 100):
        drawn = start
        for number in (2, 1, 0):
            drawn = InBlocks(Layer(number), mixing, real, number, block).below(drawn)
        for text, length in ((0, 5), (1, 4)):
            whole = rollout(attention[:, text, :, :length, :length], residual=0.3, fusion="max", discard=0.4)
            np.testing.assert_allclose(drawn[text, :length], start[text, :length] @ whole, atol=1e-12)
