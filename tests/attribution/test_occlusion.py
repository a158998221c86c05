"""Occlusion against a loop written out, captum, and a model whose answer is a sum over words."""

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS, gpt2_model, tokenizer
from veedor.attribution import METHODS, Question, attribute, attributions, span_score
from veedor.settings import Settings, build
from veedor.subjects import Subject


def log_odds(subject, ids):
    with torch.no_grad():
        logits = subject.model(input_ids=torch.tensor([ids])).logits[0].double()
    return float(logits[1] - logits[0])


def word_positions(subject, text):
    """Token positions of each run of characters without space, found from the tokenizer's offsets alone."""
    encoded = subject.tokenizer(text, return_offsets_mapping=True)
    spans, start = [], 0
    for word in text.split():
        start = text.index(word, start)
        spans.append((start, start + len(word)))
        start += len(word)
    offsets = encoded["offset_mapping"]
    return encoded["input_ids"], [
        [at for at, (first, last) in enumerate(offsets) if last > first and low <= first < high] for low, high in spans
    ]


@pytest.mark.parametrize("operator", ["mask", "delete"])
def test_word_scores_equal_a_loop_over_words(subject, operator):
    settings = build(Settings, {"occlusion": {"operator": operator}}, "test")
    for text, found in zip(TEXTS, attribute(subject, TEXTS, method="occlusion", settings=settings), strict=True):
        ids, words = word_positions(subject, text)
        if operator == "delete" and len(words) == 1 and subject.model.config.model_type != "bert":
            continue  # a decoder without any token has no score
        whole = log_odds(subject, ids)
        loop = []
        for word in words:
            masked = [subject.tokenizer.mask_token_id if at in word else index for at, index in enumerate(ids)]
            left = [index for at, index in enumerate(ids) if at not in word]
            loop.append(whole - log_odds(subject, masked if operator == "mask" else left))
        np.testing.assert_allclose(found.word_scores, loop, atol=1e-4 * np.abs(loop).max())


def test_word_scores_equal_feature_ablation_of_captum(bert):
    from captum.attr import FeatureAblation

    contrast = torch.tensor([-1.0, 1.0])
    ablation = FeatureAblation(lambda rows: bert.model(rows).logits @ contrast)
    for text, found in zip(TEXTS, attribute(bert, TEXTS, method="occlusion"), strict=True):
        ids, words = word_positions(bert, text)
        feature = torch.full((1, len(ids)), len(words))
        for number, word in enumerate(words):
            feature[0, word] = number
        row = torch.tensor([ids])
        baseline = torch.where(feature < len(words), bert.tokenizer.mask_token_id, row)
        with torch.no_grad():
            theirs = ablation.attribute(row, baselines=baseline, feature_mask=feature)[0]
        expected = [float(theirs[word[0]]) for word in words]
        np.testing.assert_allclose(found.word_scores, expected, atol=1e-4 * np.abs(expected).max())


def test_special_tokens_are_never_taken_out(bert):
    for found in attribute(bert, TEXTS, method="occlusion"):
        assert found.scores[0] == found.scores[-1] == 0.0


def test_the_number_of_evaluations_is_one_more_than_the_number_of_words(bert):
    assert [found.nodes for found in attribute(bert, TEXTS, method="occlusion")] == [
        1 + len(text.split()) for text in TEXTS
    ]


def test_a_span_is_taken_out_apart_from_the_full_stop_that_shares_its_word(bert):
    """'tall.' is one word of two tokens; asked about 'tall', the span's score is that of masking 'tall' alone."""
    text = "the commuter is tall."
    span = (text.index("tall"), text.index("."))
    question = Question(bert, bert.encode([text]), 1, "occlusion", spans=[span])
    found = attributions(question, [text])[0]
    ids, _ = word_positions(bert, text)
    masked = [bert.tokenizer.mask_token_id if at == 4 else index for at, index in enumerate(ids)]
    assert bert.tokenizer.convert_ids_to_tokens(ids)[4] == "tall"
    assert span_score(found, *span) == pytest.approx(log_odds(bert, ids) - log_odds(bert, masked), abs=1e-5)


def test_a_phrase_that_is_asked_about_is_taken_out_at_once_and_not_word_by_word(bert):
    text = "a person who sings loudly met the sailor"
    start = text.index("who sings loudly")
    span = (start, start + len("who sings loudly"))
    question = Question(bert, bert.encode([text]), 1, "occlusion", spans=[span])
    found = attributions(question, [text])[0]
    ids, words = word_positions(bert, text)
    gone = {position for word in words[2:5] for position in word}
    masked = [bert.tokenizer.mask_token_id if at in gone else index for at, index in enumerate(ids)]
    at_once = log_odds(bert, ids) - log_odds(bert, masked)
    assert span_score(found, *span) == pytest.approx(at_once, abs=1e-5)
    one_by_one = next(iter(attribute(bert, [text], method="occlusion"))).word_scores[2:5].sum()
    assert abs(at_once - one_by_one) > 1e-4, "the two differ, or this test shows nothing"


def test_a_phrase_that_nobody_asked_about_is_the_sum_of_its_words(bert):
    text = "a person who sings loudly met the sailor"
    start = text.index("who sings loudly")
    found = next(iter(attribute(bert, [text], method="occlusion")))
    assert span_score(found, start, start + len("who sings loudly")) == pytest.approx(found.word_scores[2:5].sum())


def test_a_tokenizer_without_mask_or_unknown_token_is_refused_with_the_way_out():
    bare = tokenizer(bert=False)
    bare.mask_token = bare.unk_token = None
    subject = Subject(gpt2_model(), bare)
    with pytest.raises(Exception, match="operator: delete") as refused:
        list(attribute(subject, TEXTS, method="occlusion"))
    assert refused.value.code == "no_mask_token"


def test_span_scores_are_sums_for_additive_methods_and_maxima_for_the_others(bert):
    text = "the old sailor sings"
    for method in METHODS:
        found = next(iter(attribute(bert, [text], method=method)))
        inside = found.scores[2:4]
        expected = inside.sum() if METHODS[method].additive else inside.max()
        assert span_score(found, 4, 14) == pytest.approx(expected)


def test_a_span_that_was_cut_off_has_no_score():
    subject = Subject(gpt2_model(), tokenizer(bert=False))
    text = "sings " * 80 + "Muslim"
    found = next(iter(attribute(subject, [text], method="random")))
    assert "truncated" in found.flags
    assert span_score(found, len(text) - 6, len(text)) is None
    assert span_score(found, 0, 5) is not None


def with_options(subject, text, **options):
    settings = build(Settings, {"occlusion": options}, "test")
    return next(iter(attribute(subject, [text], method="occlusion", settings=settings)))


def test_token_by_token_each_token_is_masked_alone(bert):
    text = "the commuter is tall."
    found = with_options(bert, text, unit="token")
    ids, _ = word_positions(bert, text)
    whole = log_odds(bert, ids)
    loop = [
        whole - log_odds(bert, [*ids[:at], bert.tokenizer.mask_token_id, *ids[at + 1 :]])
        for at in range(1, len(ids) - 1)
    ]
    np.testing.assert_allclose(found.scores, [0.0, *loop, 0.0], atol=1e-5)
    assert found.options["unit"] == "token; the term as one phrase"


def test_resampled_words_are_replaced_by_tokens_of_the_texts_and_the_losses_averaged(bert):
    from veedor.subjects.perturbation import pool_of, resampled

    settings = build(Settings, {"occlusion": {"operator": "resample", "draws": 4}, "seed": 3}, "test")
    pool = pool_of(bert, bert.encode(TEXTS))
    for text, found in zip(TEXTS, attribute(bert, TEXTS, method="occlusion", settings=settings), strict=True):
        (encoding,) = bert.encode([text])
        ids, words = word_positions(bert, text)
        drawn = resampled(encoding, pool, seed=3, draws=4)
        losses = []
        for word in words:
            changed = [[row[at] if at in word else index for at, index in enumerate(ids)] for row in drawn]
            losses.append(log_odds(bert, ids) - np.mean([log_odds(bert, row) for row in changed]))
        np.testing.assert_allclose(found.word_scores, losses, atol=1e-4 * np.abs(losses).max())


def test_the_order_of_texts_does_not_change_what_is_drawn(bert):
    settings = build(Settings, {"occlusion": {"operator": "resample"}}, "test")
    straight = [found.scores for found in attribute(bert, TEXTS, method="occlusion", settings=settings)]
    turned = [found.scores for found in attribute(bert, TEXTS[::-1], method="occlusion", settings=settings)]
    for one, other in zip(straight, turned[::-1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(one).max() + 1e-6)


def test_a_text_is_scored_once_however_often_it_is_given(bert):
    """The same sentence twice, and words that repeat, ask the model nothing new."""
    calls = []
    hook = bert.model.register_forward_pre_hook(lambda *_, **__: calls.append(1))
    list(attribute(bert, ["the old sailor sings"] * 40, method="occlusion", settings=Settings(batch_size=5)))
    hook.remove()
    assert len(calls) == 1, "one batch of the text and its four variants"
