"""Kernel SHAP and LIME on models: against brute force, sums worked by hand, and what must hold for short texts."""

from itertools import product
from math import factorial

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import TEXTS
from veedor.attribution import Question, attribute, attributions, span_score
from veedor.attribution.coalitions import free_fit
from veedor.attribution.surrogates import surrogate
from veedor.settings import Settings, build

NAMES = ["kernel_shap", "lime"]
TEXT = "the old sailor met a commuter."  # six words, the last of two tokens


def one(subject, text, method, **settings):
    return next(iter(attribute(subject, [text], method=method, settings=build(Settings, settings, "test"))))


def values_of_all_subsets(subject, text, filler):
    """Log-odds of label 1 with each subset of the words left in, the others replaced or deleted."""
    (encoding,) = subject.encode([text])
    words = len(encoding.words)
    found = {}
    for left in product((False, True), repeat=words):
        keep = [word < 0 or left[word] for word in encoding.token_word]
        ids = [index if stays else filler for index, stays in zip(encoding.ids, keep, strict=True)]
        with torch.no_grad():
            logits = subject.model(torch.tensor([[index for index in ids if index is not None]])).logits[0].double()
        found[left] = float(logits[1] - logits[0])
    return words, found


def shapley(words, values):
    found = np.zeros(words)
    for left, value in values.items():
        size = sum(left)
        for word in range(words):
            others = size - left[word]
            weight = factorial(others) * factorial(words - others - 1) / factorial(words)
            found[word] += weight * value * (1 if left[word] else -1)
    return found


@pytest.mark.parametrize("operator", ["mask", "delete"])
def test_kernel_shap_of_a_short_text_is_the_shapley_value_of_its_words(bert, operator):
    filler = bert.mask_id if operator == "mask" else None
    expected = shapley(*values_of_all_subsets(bert, TEXT, filler))
    found = one(bert, TEXT, "kernel_shap", kernel_shap={"operator": operator})
    np.testing.assert_allclose(found.word_scores, expected, atol=1e-4 * np.abs(expected).max())


def test_sampled_kernel_shap_is_near_the_shapley_value_and_sums_to_the_difference(bert):
    words, values = values_of_all_subsets(bert, TEXT, bert.mask_id)
    expected = shapley(words, values)
    found = one(bert, TEXT, "kernel_shap", kernel_shap={"samples": 40})
    change = values[(True,) * words] - values[(False,) * words]
    assert found.word_scores.sum() == pytest.approx(change, abs=1e-5 * np.abs(expected).max())
    assert np.abs(found.word_scores - expected).sum() < 0.25 * np.abs(expected).sum()


@pytest.mark.parametrize("text", TEXTS)
def test_kernel_shap_sums_to_the_difference_between_the_text_and_none_of_its_words(subject, text):
    found = one(subject, text, "kernel_shap")
    assert found.gap is not None and found.gap < 1e-5


def test_lime_is_the_weighted_least_squares_fit_over_all_subsets(bert):
    _, values = values_of_all_subsets(bert, TEXT, bert.mask_id)
    rows = np.array(list(values), dtype=float)
    distance = 1 - np.sqrt(rows.mean(axis=1))
    root = np.sqrt(np.exp(-(distance**2) / (2 * 0.4**2)))
    design = np.column_stack((np.ones(len(rows)), rows))
    expected = np.linalg.lstsq(design * root[:, None], np.array(list(values.values())) * root, rcond=None)[0][1:]
    found = one(bert, TEXT, "lime", lime={"kernel_width": 0.4})
    np.testing.assert_allclose(found.word_scores, expected, atol=1e-4 * np.abs(expected).max())


def test_captums_lime_with_the_same_coalitions_finds_the_same_coefficients():
    from captum._utils.models.linear_model import SkLearnLinearRegression
    from captum.attr import Lime
    from captum.attr._core.lime import get_exp_kernel_similarity_function

    random = np.random.default_rng(0)
    rows = random.random((200, 5)) < 0.5
    heights = rows @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) + random.normal(size=200)

    def replay(*_, **__):
        yield from torch.from_numpy(rows).long().split(1)

    theirs = Lime(
        lambda _: torch.from_numpy(heights),
        interpretable_model=SkLearnLinearRegression(),
        similarity_func=get_exp_kernel_similarity_function("cosine", kernel_width=0.25),
        perturb_func=replay,
    ).attribute(torch.ones(1, 5), n_samples=200, perturbations_per_eval=200, return_input_shape=False)
    distance = 1 - np.sqrt(rows.mean(axis=1))
    ours = surrogate(rows, heights, np.exp(-(distance**2) / (2 * 0.25**2)), free_fit)
    np.testing.assert_allclose(ours, theirs[0].numpy(), atol=1e-4)


@pytest.mark.parametrize("method", NAMES)
def test_the_score_of_a_text_of_one_word_is_what_its_loss_costs(subject, method):
    text = "sailor"
    (encoding,) = subject.encode([text])
    masked = [
        subject.mask_id if word == 0 else index for index, word in zip(encoding.ids, encoding.token_word, strict=True)
    ]
    with torch.no_grad():
        logits = subject.model(torch.tensor([encoding.ids, tuple(masked)])).logits.double()
    change = float((logits[0, 1] - logits[0, 0]) - (logits[1, 1] - logits[1, 0]))
    found = one(subject, text, method)
    np.testing.assert_allclose(found.word_scores, [change], atol=1e-5)
    assert found.nodes == 2


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_a_text_without_words_has_scores_of_zero(subject, method, text):
    found = one(subject, text, method)
    assert found.words == [] and not found.scores.any()


@pytest.mark.parametrize("method", NAMES)
def test_the_sub_words_of_a_word_share_its_score_evenly(bert, method):
    found = one(bert, TEXT, method)
    assert found.scores[6] == found.scores[7] != 0.0
    assert found.word_scores[-1] == pytest.approx(found.scores[6] + found.scores[7])


@pytest.mark.parametrize("method", NAMES)
def test_special_tokens_have_no_score(bert, method):
    found = one(bert, TEXT, method)
    assert found.scores[0] == found.scores[-1] == 0.0


@pytest.mark.parametrize("method", NAMES)
def test_a_phrase_that_is_asked_about_is_one_feature(bert, method):
    text = "a person who sings loudly met the sailor"
    span = (text.index("who"), text.index(" met"))
    question = Question(bert, bert.encode([text]), 1, method, spans=[span])
    (found,) = attributions(question, [text])
    assert found.nodes <= 2**6, "six features: three words before and after it, and the phrase"
    assert len(set(found.word_scores[2:5])) == 1
    assert span_score(found, *span) == pytest.approx(found.word_scores[2:5].sum())


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("operator", ["mask", "delete", "resample"])
def test_batch_size_and_company_change_nothing(subject, method, operator):
    """`resample` draws from a pool that is given: the texts' own tokens would be others in other company."""
    settings = build(Settings, {method: {"operator": operator, "draws": 2, "samples": 30}}, "test")
    small = settings.model_copy(update={"batch_size": 3})
    encodings = subject.encode(TEXTS)
    together = Question(subject, encodings, 1, method, settings=settings, pool=range(5, 20))
    found = attributions(together, TEXTS)
    for row, text in enumerate(TEXTS):
        alone = Question(subject, [encodings[row]], 1, method, settings=small, pool=range(5, 20))
        (own,) = attributions(alone, [text])
        np.testing.assert_allclose(own.scores, found[row].scores, atol=2e-5 * np.abs(own.scores).max() + 1e-6)


@pytest.mark.parametrize("method", NAMES)
def test_the_seed_decides_which_coalitions_of_a_long_text_are_asked(bert, method):
    first, again, other = (one(bert, TEXTS[2], method, seed=seed).scores for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes() and not np.array_equal(first, other)


@pytest.mark.parametrize("method", NAMES)
def test_torchs_random_numbers_go_on_as_if_nothing_had_been_drawn(bert, method):
    torch.manual_seed(8)
    expected = torch.rand(3)
    torch.manual_seed(8)
    one(bert, TEXTS[0], method)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("method", NAMES)
def test_no_more_texts_are_asked_than_samples(bert, method):
    assert all(one(bert, text, method, **{method: {"samples": 70}}).nodes <= 80 for text in TEXTS)


@pytest.mark.parametrize("method", NAMES)
def test_what_was_drawn_and_how_travels_with_the_scores(bert, method):
    options = one(bert, "sailor sings", method, seed=4).options
    assert options["samples"] == 128 and options["seed"] == 4 and options["operator"] == "mask"
    assert "draws" not in options
