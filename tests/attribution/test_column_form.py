"""What chosen tokens reach equals columns of the product of the maps that the model itself returns."""

import copy

import numpy as np
import pytest
import torch

from tests.subjects.families import TEXTS, assert_same, model, snapshot, tokenizer
from veedor.attribution import Question, UnsupportedModelError, explain
from veedor.attribution.column_form import reach, reach_of_spans
from veedor.attribution.rollout import rollout
from veedor.errors import UsageError
from veedor.settings import Settings, build
from veedor.subjects import Subject

FAMILIES = ("bert", "gpt2", "llama", "mistral", "gemma2", "deberta-v2", "modernbert", "modernbert-mean")
CHOSEN = [[2, 3], [1], [4, 0, 5], [0], [6, 1]]
LONG_TEXTS = [" ".join(TEXTS * 4), " ".join(TEXTS[::-1] * 5), "the old sailor " * 47]
LONG_CHOSEN = [[1, 2, 150], [20], [130, 131]]
ROLLOUT = {"residual": 0.3}


def subject_of(family, *, long=False):
    if not long:
        return Subject(model(family), tokenizer(family))
    wide = {"n_positions": 400} if family == "gpt2" else {"max_position_embeddings": 400}
    return Subject(model(family, **wide), tokenizer(family, model_max_length=400))


def asked(subject, texts, *, size=32, **options):
    settings = build(Settings, {"rollout": {**ROLLOUT, **options}, "batch_size": size}, "test")
    return Question(subject, subject.encode(texts), 1, "rollout", settings=settings)


def exact_product(subject, text, **options):
    """Rollout in float64 from the maps that a float64 copy of the model returns."""
    eager = copy.deepcopy(subject.model).double()
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        maps = eager(**subject.tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
    return rollout(torch.cat(maps).double(), **{**ROLLOUT, **options}).numpy()


def weights_of_head(family, n):
    if family.endswith("mean"):
        return np.full(n, 1 / n)
    return np.eye(n)[0 if family in ("bert", "deberta-v2", "modernbert") else n - 1]


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_tokens_reach_is_the_sum_of_their_columns_in_a_float64_product(family, long):
    subject, texts, chosen = subject_of(family, long=long), TEXTS, CHOSEN
    if long:
        texts, chosen = LONG_TEXTS, LONG_CHOSEN
    for text, own, found in zip(texts, chosen, reach(asked(subject, texts), chosen), strict=True):
        columns = exact_product(subject, text)[:, own].sum(axis=1)
        np.testing.assert_allclose(found.outputs, columns, atol=1e-5)
        assert found.read == pytest.approx(weights_of_head(family, len(columns)) @ columns, abs=1e-5)


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
@pytest.mark.parametrize("family", FAMILIES)
def test_texts_in_one_batch_reach_what_they_reach_alone(family, long):
    subject = subject_of(family, long=long)
    texts, chosen = (LONG_TEXTS, LONG_CHOSEN) if long else (TEXTS, CHOSEN)
    together = reach(asked(subject, texts), chosen)
    for one, other in zip(together, reach(asked(subject, texts, size=1), chosen), strict=True):
        np.testing.assert_allclose(one.outputs, other.outputs, atol=1e-6)
        assert one.read == pytest.approx(other.read, abs=1e-6)


@pytest.mark.parametrize("family", ["bert", "llama", "gemma2"])
def test_what_the_head_draws_from_each_token_is_its_score_in_the_row_form(family):
    subject = subject_of(family, long=True)
    settings = asked(subject, []).settings
    [row] = explain(subject, subject.encode(LONG_TEXTS[2:]), 1, method="rollout", settings=settings)
    for at in (0, 3, 77):
        [found] = reach(asked(subject, LONG_TEXTS[2:]), [[at]])
        assert found.read == pytest.approx(row.scores[at], abs=1e-6)


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_all_tokens_together_reach_every_output_whole(long):
    subject = subject_of("bert", long=long)
    question = asked(subject, LONG_TEXTS if long else TEXTS)
    everything = [range(len(own.ids)) for own in question.encodings]
    for found in reach(question, everything):
        np.testing.assert_allclose(found.outputs, 1.0, atol=1e-5)


@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_only_layers_and_the_head_that_were_asked_for_are_gone_through(long):
    """Head 2 of layer 1 over the fused heads of layer 0, by one explicit product."""
    subject, text, chosen = subject_of("llama", long=long), (LONG_TEXTS if long else TEXTS)[0], [1, 3]
    eager = copy.deepcopy(subject.model).double()
    eager.set_attn_implementation("eager")
    with torch.no_grad():
        low, high, _ = eager(**subject.tokenizer(text, return_tensors="pt"), output_attentions=True).attentions
    own = 0.3 * torch.eye(low.shape[-1]).double()
    whole = (0.7 * high[0, 2] + own) @ (0.7 * low[0].mean(dim=0) + own)
    [found] = reach(asked(subject, [text], layers=(0, 1), head=2), [chosen])
    np.testing.assert_allclose(found.outputs, whole[:, chosen].sum(dim=1).numpy(), atol=1e-5)


def test_a_span_is_the_tokens_that_share_a_character_with_it():
    subject = subject_of("bert")
    start = TEXTS[0].index("Muslim")
    spans = [(start, start + len("Muslim commuter")), None, (0, 3), (0, 7), (3, 4)]
    question = asked(subject, TEXTS)
    question = Question(subject, question.encodings, 1, "rollout", settings=question.settings, spans=spans)
    found = reach_of_spans(question)
    assert found[1] is None and found[4] is None  # no span, and nothing but the space behind a word
    expected = reach(asked(subject, [TEXTS[0], TEXTS[2], TEXTS[3]]), [[6, 7], [1], [1, 2]])
    for one, other in zip([found[0], found[2], found[3]], expected, strict=True):
        np.testing.assert_allclose(one.outputs, other.outputs, atol=1e-6)


def test_a_span_that_was_cut_off_is_none_and_not_zero():
    subject = Subject(model("bert"), tokenizer("bert", model_max_length=8))
    encodings = subject.encode(TEXTS[2:3])
    question = Question(subject, encodings, 1, "rollout", spans=[(len(TEXTS[2]) - 5, len(TEXTS[2]) - 2)])
    assert reach_of_spans(question) == [None]


@pytest.mark.parametrize(
    "options", [{"fusion": "max"}, {"discard": 0.2}, {"reference": "uniform_causal"}, {"receptive_field": "column"}]
)
def test_what_has_no_column_form_is_refused_with_the_way_out(options):
    [(name, value)] = options.items()
    with pytest.raises(UsageError, match=f"{name} is {value!r}, expected .* method='rollout'"):
        reach(asked(subject_of("gpt2"), TEXTS[:1], **options), [[1]])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([[0], [99]], "position 99 in text 1"),
        ([[0], []], "no position in text 1"),
        ([[-1], [0]], "position -1"),
        ([[0]], "positions of 1 texts for 2"),
    ],
)
def test_positions_that_no_text_has_are_refused_by_text(chosen, message):
    with pytest.raises(UsageError, match=message):
        reach(asked(subject_of("bert"), TEXTS[:2]), chosen)


def test_an_encoder_decoder_is_refused_by_name():
    subject = Subject(model("bart"), tokenizer("bart"), name="summariser")
    with pytest.raises(UnsupportedModelError, match="summariser is an encoder-decoder"):
        reach(asked(subject, TEXTS[:1]), [[1]])


def test_nobody_asks_and_nobody_is_answered():
    assert reach(asked(subject_of("bert"), []), []) == []


@pytest.mark.parametrize("family", ["bert", "deberta-v2"])
def test_the_model_is_left_as_it_was_found(family):
    subject = subject_of(family)
    before = snapshot(subject.model)
    reach(asked(subject, TEXTS), CHOSEN)
    with pytest.raises(UsageError):
        reach(asked(subject, TEXTS, head=9), CHOSEN)
    assert_same(before, snapshot(subject.model))
