"""Operators on ids: what is taken out, what stays, and what is put in its place."""

import numpy as np
import pytest
import torch

from tests.subjects import families
from veedor.errors import UsageError
from veedor.subjects import Subject
from veedor.subjects.perturbation import (
    NoFillerError,
    Variants,
    answers,
    content_seed,
    eraser,
    pool_of,
    resampled,
    score,
    units_of,
    without,
)

TEXT = "the tall tenant, sings!"  # [CLS] the tall tenant , sings ! [SEP]


@pytest.fixture(scope="module")
def bert() -> Subject:
    return families.subject("bert")


@pytest.fixture(scope="module")
def encoding(bert):
    return bert.encode([TEXT])[0]


def test_words_go_with_all_their_sub_words_and_special_tokens_are_in_no_unit(encoding):
    assert units_of(encoding) == [[1], [2], [3, 4], [5, 6]]


def test_units_may_be_single_tokens(encoding):
    assert units_of(encoding, unit="token") == [[1], [2], [3], [4], [5], [6]]


@pytest.mark.parametrize(("unit", "rest"), [("word", [[1], [4], [5, 6]]), ("token", [[1], [4], [5], [6]])])
def test_a_span_is_one_unit_apart_from_the_rest_of_its_words(encoding, unit, rest):
    span = (TEXT.index("tall"), TEXT.index(","))
    assert sorted(units_of(encoding, span, unit=unit)) == sorted([[2, 3], *rest])


def test_masked_tokens_are_replaced_where_they_stood(bert, encoding):
    changed = without(encoding, [2, 4], 4)
    assert changed.ids == (*encoding.ids[:2], 4, encoding.ids[3], 4, *encoding.ids[5:])
    assert (changed.special, changed.token_word) == (encoding.special, encoding.token_word)


def test_deleted_tokens_take_their_places_with_them(encoding):
    changed = without(encoding, [2, 4], None)
    stay = [0, 1, 3, 5, 6, 7]
    assert changed.ids == tuple(encoding.ids[place] for place in stay)
    assert changed.special == tuple(encoding.special[place] for place in stay)
    assert changed.offsets == tuple(encoding.offsets[place] for place in stay)


def test_one_filler_for_each_token_is_read_at_the_tokens_own_place(encoding):
    changed = without(encoding, [1, 5], list(range(100, 108)))
    assert changed.ids == (encoding.ids[0], 101, *encoding.ids[2:5], 105, *encoding.ids[6:])


def test_the_pool_holds_every_token_as_often_as_it_stands_and_no_special_one(bert):
    texts = ["the tall tenant", "[SEP] the Muslim", "unheard of"]
    encodings = bert.encode(texts)
    ids = [bert.tokenizer.convert_tokens_to_ids(word) for word in "the tall tenant the muslim [UNK] of".split()]
    assert pool_of(bert, encodings) == tuple(sorted(ids))
    assert pool_of(bert, encodings[::-1]) == pool_of(bert, encodings)


def test_replacements_hang_on_the_text_and_the_seed_alone(encoding, bert):
    pool = range(10, 30)
    first = resampled(encoding, pool, seed=3, draws=4)
    assert first == resampled(encoding, pool, seed=3, draws=4) and len(first) == 4
    assert all(len(row) == len(encoding.ids) for row in first) and {index for row in first for index in row} <= set(
        pool
    )
    assert first != resampled(encoding, pool, seed=4, draws=4)
    (other,) = bert.encode(["the tall tenant, sings."])
    assert first != resampled(other, pool, seed=3, draws=4)


def test_replacements_are_drawn_evenly_from_the_pool(encoding):
    drawn = np.array(resampled(encoding, [7, 7, 7, 9], seed=0, draws=4000))
    assert abs((drawn == 7).mean() - 0.75) < 0.01


def test_a_position_gets_the_same_ids_whatever_else_is_taken_out(bert, encoding):
    erase = eraser(bert, "resample", [encoding], seed=1, draws=3)
    alone, together = erase.variants(encoding, [2]), erase.variants(encoding, [2, 5])
    assert [one.ids[2] for one in alone] == [both.ids[2] for both in together]


def test_resample_gives_one_text_a_draw_and_the_other_operators_one(bert, encoding):
    number = {
        name: len(eraser(bert, name, [encoding], draws=3).variants(encoding, [2]))
        for name in ("mask", "delete", "resample")
    }
    assert number == {"mask": 1, "delete": 1, "resample": 3}


@pytest.mark.parametrize("operator", ["mask", "delete", "resample"])
def test_taking_nothing_out_gives_the_text_itself(bert, encoding, operator):
    assert eraser(bert, operator, [encoding]).variants(encoding, []) == [encoding]


@pytest.mark.parametrize("operator", ["mask", "delete", "resample"])
def test_special_tokens_stay_where_everything_else_is_taken_out(bert, encoding, operator):
    gone = [place for unit in units_of(encoding) for place in unit]
    for changed in eraser(bert, operator, [encoding]).variants(encoding, gone):
        assert changed.ids[0] == families.CLS and changed.ids[-1] == families.SEP


def test_a_pool_that_is_given_is_the_only_one_drawn_from(bert, encoding):
    (changed,) = eraser(bert, "resample", pool=[12], draws=1).variants(encoding, [1, 2])
    assert changed.ids[1:3] == (12, 12)


def test_an_empty_pool_is_refused_with_the_way_out(bert, encoding):
    with pytest.raises(UsageError, match="operator: mask"):
        eraser(bert, "resample", pool=[]).variants(encoding, [1])


def test_an_unknown_operator_names_the_nearest(bert):
    with pytest.raises(UsageError, match="did you mean 'mask'"):
        eraser(bert, "masks")


def test_without_mask_and_unknown_token_masking_is_refused_with_a_code():
    subject = Subject(families.model("gpt2"), families.tokenizer("gpt2", mask_token=None, unk_token=None))
    with pytest.raises(NoFillerError, match="operator: delete") as refused:
        eraser(subject, "mask")
    assert refused.value.code == "no_mask_token"


def test_without_a_mask_token_the_unknown_token_is_put_in():
    subject = Subject(families.model("gpt2"), families.tokenizer("gpt2", mask_token=None))
    assert eraser(subject, "mask").filler == subject.unk_id


def test_each_distinct_text_is_asked_once(encoding):
    variants = Variants()
    masked = without(encoding, [1], 4)
    assert variants.add_all([encoding, masked, encoding, without(encoding, [1], 4)]) == [0, 1, 0, 1]
    assert variants.encodings == [encoding, masked]


def test_scores_and_answers_come_in_the_order_of_the_texts_and_equal_the_model_alone(bert):
    encodings = bert.encode(families.TEXTS)
    alone = torch.stack([families.alone(bert, text) for text in families.TEXTS])
    torch.testing.assert_close(answers(bert, encodings, size=2), alone, atol=1e-5, rtol=1e-5)
    expected = (alone[:, 1] - alone[:, 0]).double().numpy()
    np.testing.assert_allclose(score(bert, encodings, 1, size=3), expected, atol=1e-5)
    probability = 1 / (1 + np.exp(-expected))
    np.testing.assert_allclose(score(bert, encodings, 1, scale="probability"), probability, atol=1e-5)


def test_no_texts_have_no_scores(bert):
    assert score(bert, [], 1).shape == (0,)


def test_the_seed_of_a_text_is_the_digest_of_its_ids(encoding):
    import hashlib

    content = "5:" + ",".join(map(str, encoding.ids))
    assert content_seed(encoding, 5) == int(hashlib.sha256(content.encode()).hexdigest()[:16], 16)
