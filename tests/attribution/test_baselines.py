"""What integrated gradients start from: baselines of one's own and a second one to compare."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau, spearmanr

from tests.attribution.tiny_models import TEXTS, gpt2_model, tokenizer
from veedor.attribution import Question, answer, attributions
from veedor.attribution.baselines import agreement
from veedor.errors import UsageError
from veedor.settings import Settings, build
from veedor.subjects import Subject

TEXT = "the old sailor sings and the tenant sings"
BASE = {"tolerance": 1e-3, "max_nodes": 2000}


def question(subject, texts=(TEXT,), own=None, **options):
    settings = build(Settings, {"integrated_gradients": BASE | options}, "test")
    encodings = subject.encode(list(texts))
    return Question(subject, encodings, 1, "integrated_gradients", settings=settings, baseline=own)


def log_odds(subject, **given):
    with torch.no_grad():
        logits = subject.model(**given).logits
    return float(logits[0, 1] - logits[0, 0])


def of_words(subject, content):
    """The model's own answer to [CLS], these words or masks, [SEP]."""
    return log_odds(subject, **subject.tokenizer(content, return_tensors="pt"))


# --- baselines of one's own


def test_scores_from_a_baseline_text_sum_to_the_difference_of_the_models_two_answers(bert):
    other = "a quiet commuter met a tall neighbour he"
    (found,) = answer(question(bert, own=other))
    assert len(bert.tokenizer(other)["input_ids"]) == len(found.scores)
    assert found.scores.sum() == pytest.approx(of_words(bert, TEXT) - of_words(bert, other), abs=2e-3)


def test_a_shorter_baseline_text_is_filled_up_with_the_settings_baseline_and_a_longer_one_is_cut(bert):
    rise = of_words(bert, TEXT) - of_words(bert, "Muslim! " + "[MASK] " * 6)
    assert len(bert.encode(["Muslim!"])[0].ids) == 4
    (short,) = answer(question(bert, own="Muslim!"))
    assert short.scores.sum() == pytest.approx(rise, abs=2e-3)
    (long,) = answer(question(bert, texts=["tall sailor"], own="a quiet commuter met"))
    assert long.scores.sum() == pytest.approx(of_words(bert, "tall sailor") - of_words(bert, "a quiet"), abs=2e-3)


def test_ids_and_their_text_are_the_same_baseline_in_a_batch_of_several_lengths_and_alone(bert):
    ids = bert.tokenizer("a quiet commuter", add_special_tokens=False)["input_ids"]
    by_text, by_ids = (answer(question(bert, TEXTS, own=own)) for own in ("a quiet commuter", ids))
    for row, (one, other) in enumerate(zip(by_text, by_ids, strict=True)):
        np.testing.assert_array_equal(one.scores, other.scores)
        (alone,) = answer(question(bert, [TEXTS[row]], own=ids))
        np.testing.assert_allclose(one.scores, alone.scores, atol=2e-3 * np.abs(alone.scores).sum())


def test_a_vector_stands_in_every_place_but_those_of_special_tokens(bert):
    vector = np.linspace(-1, 1, 16)
    (found,) = answer(question(bert, own=vector))
    points = bert.model.get_input_embeddings()(bert.tokenizer(TEXT, return_tensors="pt")["input_ids"]).detach().clone()
    points[0, 1:-1] = torch.tensor(vector, dtype=torch.float32)
    rise = of_words(bert, TEXT) - log_odds(bert, inputs_embeds=points)
    assert found.scores.sum() == pytest.approx(rise, abs=2e-3) and found.scores[0] == found.scores[-1] == 0


@pytest.mark.parametrize(
    "wrong", [np.zeros(15), np.full(16, np.nan), np.zeros((2, 16)), [-1, 2], [10**6], [], [True, False], ["a"]]
)
def test_a_baseline_that_does_not_fit_is_refused_with_what_would(bert, wrong):
    with pytest.raises(UsageError, match=r"expected a text, token ids \(integers from 0 to \d+\), or 16 finite floats"):
        answer(question(bert, own=wrong))


def test_a_method_without_a_baseline_refuses_one(bert):
    with pytest.raises(UsageError, match="choose integrated_gradients"):
        answer(replace(question(bert, own="sings"), method="gradient"))


@pytest.mark.parametrize(
    ("own", "told"), [("a quiet one", "text: a quiet one"), ([5, 6], "2 token ids"), (np.ones(16), "vector (16,)")]
)
def test_the_record_says_what_the_baseline_was(bert, own, told):
    (found,) = attributions(question(bert, own=own), [TEXT])
    assert found.options["baseline"].startswith(told)


# --- a second one


def test_agreement_is_that_of_the_word_scores_of_two_runs_and_the_scores_stay_those_of_the_first(bert):
    both = attributions(question(bert, TEXTS, second_baseline="zero"), TEXTS)
    first = attributions(question(bert, TEXTS), TEXTS)
    other = attributions(question(bert, TEXTS, baseline="zero"), TEXTS)
    for own, one, two in zip(both, first, other, strict=True):
        np.testing.assert_array_equal(own.scores, one.scores)
        if len(own.words) < 2:
            assert "baseline_agreement" not in own.options
            continue
        assert own.options["baseline_agreement"] == pytest.approx(spearmanr(one.word_scores, two.word_scores).statistic)
        assert own.options["baseline_kendall"] == pytest.approx(kendalltau(one.word_scores, two.word_scores).statistic)
        assert own.nodes == one.nodes + two.nodes
    assert min(own.options.get("baseline_agreement", 1.0) for own in both) < 0.99


def test_words_are_summed_before_they_are_ranked(bert):
    """Tokens [CLS] Muslim ! sings [SEP]: words 3 − 4 = −1 and 1; then 1 + 1 = 2 and 0: the order is turned round."""
    (encoding,) = bert.encode(["Muslim! sings"])
    found = agreement(np.array([9.0, 3, -4, 1, 0]), np.array([0.0, 1, 1, 0, 7]), encoding)
    assert found == {"baseline_agreement": pytest.approx(-1), "baseline_kendall": pytest.approx(-1)}


def test_there_is_no_agreement_where_no_order_is(bert):
    (one,), (two,) = bert.encode(["Muslim!"]), bert.encode(["the sailor"])
    assert agreement(np.arange(4.0), np.arange(4.0), one) == {}
    assert agreement(np.zeros(4), np.arange(4.0), two) == {}


def test_there_is_no_agreement_where_a_model_has_only_one_of_the_two_baselines():
    """Without a mask token the mask baseline is the padding token's: nothing would be compared."""
    made = tokenizer(bert=False)
    made.mask_token = None
    subject = Subject(gpt2_model(), made)
    same, other = (answer(question(subject, [TEXT], second_baseline=kind)) for kind in ("pad", "zero"))
    assert same[0].facts == {} and "baseline_agreement" in other[0].facts


def test_there_is_no_agreement_with_a_second_integral_that_did_not_converge(sharp_bert):
    options = {"second_baseline": "zero", "tolerance": 1e-6, "max_nodes": 15}
    assert all(own.facts == {} for own in answer(question(sharp_bert, TEXTS, **options)))


def test_the_second_baseline_must_be_another_one():
    with pytest.raises(match="second_baseline is pad, as baseline is"):
        build(Settings, {"integrated_gradients": {"baseline": "pad", "second_baseline": "pad"}}, "test")
