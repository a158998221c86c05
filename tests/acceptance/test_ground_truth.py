"""Where the truth is known: a BERT that was trained to count one word, and what every targeted method says of it.

Sound ground, so that a method that fails is to blame itself: the word stands anywhere, among other keywords that mean
nothing; any word may be masked in training, so that the mask token is known and means nothing; the margin grows with
each further occurrence, so that it is not saturated where gradients are taken; the epsilon of the layer norms is large,
for a norm that takes all scale away makes the gradient orthogonal to what it was given, and input times gradient of a
word would be that of its position with the sign turned. And values are moved so that masked text has none: attention
rows sum to 1, so this changes no answer, but it does change Grad-CAM, whose head weights are a mean over all columns.
"""

import random
from typing import Any

import numpy as np
import pytest
import torch

from veedor.attribution import METHODS, attribute
from veedor.subjects import Subject
from veedor.subjects.perturbation import score
from veedor.subjects.tiny import whole_word_tokenizer

KEYWORD = "zephyr"
DISTRACTORS = "amber copper velvet marble saffron".split()
FILLERS = (
    "the a old young tall quiet sailor tenant nurse baker walks sings waits reads near under behind town river market "
    "house garden slowly often today"
).split()
TARGETED = sorted(name for name, method in METHODS.items() if method.targeted)
BASE, EACH = -1.0, 2.0  # margin of a text without the keyword, and what each keyword adds
STEPS, BATCH, TEXTS = 200, 64, 1200


def write(dice: random.Random, keywords: int, masked: float = 0.0) -> str:
    """Five to eleven words, two of them distractors, and so many keywords anywhere; each masked with this chance."""
    words = [dice.choice(FILLERS) for _ in range(dice.randint(5, 11))]
    for at in dice.sample(range(len(words)), 2):
        words[at] = dice.choice(DISTRACTORS)
    for _ in range(keywords):
        words.insert(dice.randint(0, len(words)), KEYWORD)
    return " ".join("[MASK]" if dice.random() < masked else word for word in words)


def trained(seed: int) -> Subject:
    """A BERT of two layers that counts the keyword."""
    from transformers import BertConfig, BertForSequenceClassification

    dice = random.Random(seed)
    tokenizer = whole_word_tokenizer([" ".join([*FILLERS, *DISTRACTORS, KEYWORD])])
    texts = [write(dice, (0, 0, 1, 1, 2, 3)[at % 6], dice.choice((0.0, 0.3))) for at in range(TEXTS)]
    margins = torch.tensor([BASE + EACH * text.split().count(KEYWORD) for text in texts])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BertForSequenceClassification(
            BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                intermediate_size=96,
                max_position_embeddings=64,
                pad_token_id=tokenizer.pad_token_id,
                layer_norm_eps=0.3,
                initializer_range=0.1,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                problem_type="single_label_classification",
                id2label={0: "other", 1: "planted"},
                label2id={"other": 0, "planted": 1},
            )
        ).train()
        fit(model, tokenizer(texts, padding=True, return_tensors="pt"), margins)
    without_value_of_the_mask(model.eval(), tokenizer)
    return Subject(model, tokenizer)


def fit(model: Any, encoded: Any, margins: torch.Tensor) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(STEPS):
        rows = torch.randint(len(margins), (BATCH,))
        logits = model(input_ids=encoded["input_ids"][rows], attention_mask=encoded["attention_mask"][rows]).logits
        optimiser.zero_grad()
        ((logits[:, 1] - logits[:, 0] - margins[rows]) ** 2).mean().backward()
        optimiser.step()


def without_value_of_the_mask(model: Any, tokenizer: Any) -> None:
    """Take the mean value of masked text out of every value and give it back behind attention: no answer changes."""
    masked = tokenizer(" ".join(["[MASK]"] * 9), return_tensors="pt")
    with torch.no_grad():
        states = model(**masked, output_hidden_states=True).hidden_states
        for layer, state in zip(model.bert.encoder.layer, states, strict=False):
            attention = layer.attention
            mean = attention.self.value(state)[0].mean(dim=0)
            attention.self.value.bias -= mean
            attention.output.dense.bias += attention.output.dense.weight @ mean


@pytest.fixture(scope="module", params=[0, 1])
def subject(request: pytest.FixtureRequest) -> Subject:
    return trained(request.param)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Texts that the model has not seen, each with the keyword once."""
    dice = random.Random(99)
    return [write(dice, 1) for _ in range(60)]


def share_first(subject: Subject, texts: list[str], method: str) -> float:
    """In which share of the texts the keyword's score is the highest of all words'."""
    found = attribute(subject, texts, method=method, target="planted" if METHODS[method].targeted else None)
    return float(np.mean([own.words[int(np.argmax(own.word_scores))] == KEYWORD for own in found]))


def test_the_model_decides_by_the_keyword_alone(subject: Subject, texts: list[str]) -> None:
    dice = random.Random(7)
    without = [write(dice, 0) for _ in range(60)]
    assert score(subject, subject.encode(texts), 1).min() > 0 > score(subject, subject.encode(without), 1).max()


def test_other_keywords_move_the_model_little(subject: Subject, texts: list[str]) -> None:
    plain = [" ".join("the" if word in DISTRACTORS else word for word in text.split()) for text in texts]
    moved = score(subject, subject.encode(texts), 1) - score(subject, subject.encode(plain), 1)
    assert np.abs(moved).mean() < 0.2 * EACH


@pytest.mark.parametrize("method", TARGETED)
def test_a_targeted_method_ranks_the_keyword_first(subject: Subject, texts: list[str], method: str) -> None:
    assert share_first(subject, texts, method) >= 0.95


def test_chance_does_not(subject: Subject, texts: list[str]) -> None:
    assert share_first(subject, texts, "random") < 0.4


@pytest.mark.parametrize("method", sorted(name for name in TARGETED if METHODS[name].signed))
def test_seen_from_the_other_label_the_keyword_comes_last(subject: Subject, texts: list[str], method: str) -> None:
    found = attribute(subject, texts, method=method, target="other")
    assert np.mean([own.words[int(np.argmin(own.word_scores))] == KEYWORD for own in found]) >= 0.95
