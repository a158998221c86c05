"""A model whose answer is a sum over words: what every method must say of it can be read off its weights."""

import numpy as np
import pytest
import torch
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from tests.attribution.tiny_models import tokenizer
from veedor.attribution import Question, attribute
from veedor.attribution.integrated import integrals
from veedor.attribution.question import undisturbed
from veedor.settings import Settings, build
from veedor.subjects import Subject

WEIGHTS = {"tall": 0.5, "quiet": -1.25, "sailor": 2.0, "[MASK]": 0.25}
TEXT = "a tall quiet sailor"


class BagConfig(PreTrainedConfig):
    model_type = "bag"


class BagOfWords(PreTrainedModel):
    """Log-odds of label 1 = sum over real tokens of the first embedding dimension; the second is ignored."""

    config_class = BagConfig

    def __init__(self, config):
        super().__init__(config)
        self.table = torch.nn.Embedding(config.vocab_size, 2)
        self.post_init()

    def get_input_embeddings(self):
        return self.table

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **_):
        points = self.table(input_ids) if inputs_embeds is None else inputs_embeds
        mask = torch.ones(points.shape[:2]) if attention_mask is None else attention_mask
        total = (points[..., 0] * mask).sum(dim=1)
        return SequenceClassifierOutput(logits=torch.stack((torch.zeros_like(total), total), dim=1))


class BentBag(BagOfWords):
    """The same sum, bent: log-odds = height · tanh(2 · sum)."""

    height = 2.0

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, **_):
        straight = super().forward(input_ids, attention_mask, inputs_embeds).logits
        return SequenceClassifierOutput(logits=self.height * torch.tanh(2 * straight))


@pytest.fixture
def bag() -> Subject:
    return subject_of(BagOfWords)


def subject_of(kind) -> Subject:
    made = tokenizer()
    model = kind(
        BagConfig(
            vocab_size=len(made),
            num_labels=2,
            max_position_embeddings=64,
            architectures=["BagForSequenceClassification"],
            problem_type="single_label_classification",
        )
    )
    with torch.no_grad():
        model.table.weight.zero_()
        model.table.weight[:, 1] = 7.0
        for word, weight in WEIGHTS.items():
            model.table.weight[made.convert_tokens_to_ids(word), 0] = weight
    return Subject(model.eval(), made)


def words(subject, method, **settings):
    found = next(iter(attribute(subject, [TEXT], method=method, settings=build(Settings, settings, "test"))))
    return found.word_scores.tolist(), found


def test_input_x_gradient_is_each_words_weight(bag):
    assert words(bag, "input_x_gradient")[0] == [0.0, 0.5, -1.25, 2.0]


def test_integrated_gradients_are_the_weights_above_that_of_the_mask(bag):
    scores, found = words(bag, "integrated_gradients")
    np.testing.assert_allclose(scores, [-0.25, 0.25, -1.5, 1.75], atol=1e-6)
    assert found.gap < 1e-6


def test_occlusion_by_mask_is_the_weight_above_that_of_the_mask(bag):
    np.testing.assert_allclose(words(bag, "occlusion")[0], [-0.25, 0.25, -1.5, 1.75], atol=1e-6)


def test_occlusion_by_deletion_is_the_weight(bag):
    np.testing.assert_allclose(
        words(bag, "occlusion", occlusion={"operator": "delete"})[0], [0.0, 0.5, -1.25, 2.0], atol=1e-6
    )


def test_the_gradient_norm_is_the_same_for_every_token_because_every_token_counts_alike(bag):
    assert words(bag, "gradient")[1].scores.tolist() == [1.0] * 6


def integral_of(kind, text):
    subject = subject_of(kind)
    question = Question(subject, subject.encode([text]), 1, "integrated_gradients")
    with undisturbed(subject):
        [batch] = subject.batches(question.encodings)
        return integrals(question, batch, subject.baseline(batch).detach(), subject.embed(batch).detach())[0]


def test_the_slope_at_the_text_is_held_against_its_mean_on_the_way():
    """The sum goes from .25 + .25 to .5 + 2, all steps upwards: slope 4 (1 − tanh² 5) · 2 over 2 (tanh 5 − tanh 1)."""
    mean = 2 * (np.tanh(5) - np.tanh(1))
    assert integral_of(BentBag, "tall sailor").end_slope == pytest.approx(8 * (1 - np.tanh(5) ** 2) / mean, rel=0.02)
    assert integral_of(BagOfWords, "tall sailor").end_slope == pytest.approx(1)


def test_a_score_that_is_flat_at_the_text_although_it_rose_is_flagged_and_a_linear_one_is_not(bag):
    (flat,) = attribute(subject_of(BentBag), ["tall sailor"], method="integrated_gradients")
    (steep,) = attribute(subject_of(BentBag), ["tall"], method="integrated_gradients")
    assert "saturated" in flat.flags and "saturated" not in steep.flags
    assert not any("saturated" in own.flags for own in attribute(bag, [TEXT, "sailor"], method="integrated_gradients"))


def test_a_score_that_hardly_rose_is_not_flagged_however_flat_it_is(monkeypatch):
    monkeypatch.setattr(BentBag, "height", 0.4)  # rises by .4 (tanh 5 − tanh 1) = .095
    (found,) = attribute(subject_of(BentBag), ["tall sailor"], method="integrated_gradients")
    assert "saturated" not in found.flags
    monkeypatch.setattr(BentBag, "height", 0.5)  # and by .119
    (found,) = attribute(subject_of(BentBag), ["tall sailor"], method="integrated_gradients")
    assert "saturated" in found.flags
