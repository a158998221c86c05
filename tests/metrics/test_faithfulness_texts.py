"""Faithfulness on tiny models: against a slow loop, what chance gets, what is refused, and what is left untouched."""

import copy

import numpy as np
import pytest
import torch

from tests.attribution.tiny_models import FAMILIES, TEXTS
from veedor.metrics import faithfulness as f
from veedor.metrics.faithfulness_texts import (
    Trial,
    measure_likeness,
    measure_moved,
    measure_texts,
    text_words,
)
from veedor.subjects import Subject

TEXT = "the old sailor sings and the tenant sings"


@pytest.fixture(scope="module")
def subject() -> Subject:
    return FAMILIES["bert"]()


def scores_of(subject: Subject, texts: list[str], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=len(own.words)) for own in subject.encode(texts)]


def alone(subject: Subject, ids: list[int]) -> tuple[float, float]:
    """Probability and log-odds of label 1 by the model itself, one text at a time."""
    with torch.no_grad():
        logits = subject.model(input_ids=torch.tensor([ids])).logits[0].double()
    return float(torch.softmax(logits, 0)[1]), float(logits[1] - logits[0])


def changed(subject: Subject, gone: set[int], operator: str) -> list[int]:
    """The text without some words, whole words being tokens here: [CLS], the words, [SEP]."""
    ids = subject.tokenizer(TEXT)["input_ids"]
    if operator == "delete":
        return [own for at, own in enumerate(ids) if at - 1 not in gone]
    return [subject.tokenizer.mask_token_id if at - 1 in gone else own for at, own in enumerate(ids)]


@pytest.mark.parametrize("operator", ["mask", "delete"])
def test_comprehensiveness_and_sufficiency_are_those_of_a_slow_loop(subject: Subject, operator: str) -> None:
    (scores,) = scores_of(subject, [TEXT])
    trial = Trial(subject, 1, operators=(operator,))
    table = measure_texts(trial, subject.encode([TEXT]), {"m": [scores]}, {"m": True}).values
    found = table.set_index("metric")["value"]
    order = sorted(range(8), key=lambda word: -scores[word])
    whole = alone(subject, changed(subject, set(), operator))
    empty = alone(subject, changed(subject, set(range(8)), operator))
    without = [alone(subject, changed(subject, set(order[:k]), operator)) for k in (1, 2, 3, 4)]
    only = [alone(subject, changed(subject, set(order[k:]), operator)) for k in (1, 2, 3, 4)]
    for at, suffix in ((0, ""), (1, "_margin")):
        drops = [whole[at] - one[at] for one in without]
        assert found[f"comprehensiveness{suffix}"] == pytest.approx(np.mean(drops), abs=1e-5)
        assert found[f"sufficiency{suffix}"] == pytest.approx(np.mean([whole[at] - one[at] for one in only]), abs=1e-5)
    room = whole[0] - empty[0]
    if room >= f.ROOM:
        expected = np.mean([max(0.0, whole[0] - one[0]) for one in without]) / room
        assert found["normalised_comprehensiveness"] == pytest.approx(expected, abs=1e-4)
    else:
        assert np.isnan(found["normalised_comprehensiveness"])


def test_deletion_and_insertion_are_those_of_a_slow_loop(subject: Subject) -> None:
    (scores,) = scores_of(subject, [TEXT])
    trial = Trial(subject, 1, operators=("mask",), curves=True)
    measured = measure_texts(trial, subject.encode([TEXT]), {"m": [scores]}, {"m": True})
    found = measured.values.set_index("metric")["value"]
    order = sorted(range(8), key=lambda word: -scores[word])
    fall = [alone(subject, changed(subject, set(order[:k]), "mask"))[0] for k in range(9)]
    rise = [alone(subject, changed(subject, set(order[k:]), "mask"))[0] for k in range(9)]
    assert found["deletion_area"] == pytest.approx(np.trapezoid(fall, dx=1 / 8), abs=1e-5)
    assert found["insertion_area"] == pytest.approx(np.trapezoid(rise, dx=1 / 8), abs=1e-5)
    ends = measured.curves[measured.curves["method"] == "m"].set_index(["kind", "share"])["value"]
    assert ends["deletion", 0.0] == ends["insertion", 1.0] == pytest.approx(fall[0], abs=1e-5)


def test_leave_one_out_drops_as_scores_get_a_tau_of_one(subject: Subject) -> None:
    whole = alone(subject, changed(subject, set(), "mask"))[1]
    drops = np.array([whole - alone(subject, changed(subject, {word}, "mask"))[1] for word in range(8)])
    trial = Trial(subject, 1)
    table = measure_texts(
        trial, subject.encode([TEXT]), {"m": [drops], "n": [-drops]}, dict.fromkeys("mn", True)
    ).values
    found = table[table["metric"] == "tau_leave_one_out"].set_index("method")["value"]
    assert found["m"] == pytest.approx(1.0) and found["n"] == pytest.approx(-1.0)


def test_infidelity_takes_the_score_that_is_explained(subject: Subject) -> None:
    (scores,) = scores_of(subject, [TEXT])
    found = {}
    for place, scale in ((1, "logit"), (0, "probability")):
        trial = Trial(subject, 1, operators=("mask",), scale=scale)
        table = measure_texts(trial, subject.encode([TEXT]), {"m": [scores]}, {"m": True}).values
        (words,) = text_words(trial, subject.encode([TEXT]))
        assert words.removed.sum(axis=1).tolist() == [4] * 50, "half of eight words"
        whole = alone(subject, changed(subject, set(), "mask"))[place]
        left = [alone(subject, changed(subject, set(np.flatnonzero(mask)), "mask"))[place] for mask in words.removed]
        expected = np.mean((words.removed @ scores - (whole - np.array(left))) ** 2)
        found[scale] = table.set_index("metric")["value"]["infidelity"]
        assert found[scale] == pytest.approx(expected, abs=1e-4)
    assert found["logit"] != found["probability"]


def test_each_distinct_text_goes_through_the_model_once(subject: Subject) -> None:
    """Four words: 16 subsets, and an operator asks for the whole, 4 + 4 of one and three, 6 of two, and none."""
    text = "the old sailor sings"
    encodings = subject.encode([text, text])
    scores = {name: scores_of(subject, [text, text], seed) for seed, name in enumerate("abc")}
    trial = Trial(subject, 1, operators=("mask",), curves=True)
    assert measure_texts(trial, encodings, scores, dict.fromkeys("abc", True)).forwards == 16


def test_neither_the_order_of_texts_nor_the_batch_size_changes_a_value(subject: Subject) -> None:
    scores = scores_of(subject, TEXTS)
    there = measure_texts(Trial(subject, 1), subject.encode(TEXTS), {"m": scores}, {"m": True}).values
    trial = Trial(subject, 1, batch_size=3)
    back = measure_texts(trial, subject.encode(TEXTS[::-1]), {"m": scores[::-1]}, {"m": True}).values
    back["text"] = len(TEXTS) - 1 - back["text"]
    keys = ["text", "operator", "metric"]
    first, second = (own.sort_values(keys).reset_index(drop=True) for own in (there, back))
    for column in ("value", "random", "uniform"):
        np.testing.assert_allclose(first[column].astype(float), second[column].astype(float), atol=1e-4)


def test_what_ranks_nothing_has_no_value_and_a_reason(subject: Subject) -> None:
    texts = ["Muslim!", "", "a quiet neighbour sings."]
    flat = [np.ones(len(own.words)) for own in subject.encode(texts)]
    table = measure_texts(Trial(subject, 1), subject.encode(texts), {"m": flat}, {"m": True}).values
    assert table["value"].isna().all() and table["random"].isna().all()
    assert table.groupby("text")["reason"].agg(set).tolist() == [{"one_word"}, {"no_words"}, {"no_spread"}]


def test_words_are_taken_out_whole_with_all_their_sub_words() -> None:
    subject = FAMILIES["gpt2"]()
    encodings = subject.encode(["the sailor sings."])
    (words,) = text_words(Trial(subject, 1), encodings)
    assert len(words) == 3 and words.positions(0b100) == [2, 3], "the full stop goes with its word"


def test_uniform_scores_read_from_the_first_word_on(subject: Subject) -> None:
    falling = [np.arange(8)[::-1].astype(float)]
    table = measure_texts(Trial(subject, 1), subject.encode([TEXT]), {"m": falling}, {"m": True}).values
    own = table[table["metric"] == "comprehensiveness"]
    assert (own["value"] == own["uniform"]).all()


def test_resampling_draws_from_the_texts_and_repeats(subject: Subject) -> None:
    scores = {"m": scores_of(subject, TEXTS)}
    trial = Trial(subject, 1, operators=("resample",), rankings=3, removals=5)
    one, two = (measure_texts(trial, subject.encode(TEXTS), scores, {"m": True}).values for _ in range(2))
    assert one.equals(two) and one["value"].notna().any()


def test_the_model_is_left_as_it_was(subject: Subject) -> None:
    before = copy.deepcopy(subject.model.state_dict())
    flags = [own.requires_grad for own in subject.model.parameters()]
    measure_texts(Trial(subject, 1), subject.encode([TEXT]), {"m": scores_of(subject, [TEXT])}, {"m": True})
    assert all(torch.equal(own, subject.model.state_dict()[name]) for name, own in before.items())
    assert [own.requires_grad for own in subject.model.parameters()] == flags and not subject.model.training


def test_the_largest_move_of_scores_is_found_text_by_text(subject: Subject) -> None:
    encodings = subject.encode([TEXT, "Muslim!"])
    scores = [np.arange(1.0, 9.0), np.array([2.0])]
    moved = {"m": lambda draw: [scores[0] + (draw == 3), scores[1]]}
    table = measure_moved(text_words(Trial(subject, 1), encodings), {"m": scores}, moved, draws=5)
    length = float(np.linalg.norm(scores[0]))
    assert table["value"].tolist() == pytest.approx([np.sqrt(8) / length, 0.0])


def test_likeness_compares_sizes_and_refuses_two_words(subject: Subject) -> None:
    encodings = subject.encode([TEXT, "tenant sings"])
    scores = {"m": [np.array([1.0, -2, 3, -4, 5, -6, 7, -8]), np.array([1.0, 2.0])]}
    other = {"m": [np.arange(1.0, 9.0) ** 2, np.array([1.0, 2.0])]}
    table = measure_likeness("randomised_all", text_words(Trial(subject, 1), encodings), scores, other)
    assert table["value"][0] == 1.0 and table["reason"].tolist() == [None, "two_words"]
    assert abs(table["random"][0]) < 0.4
