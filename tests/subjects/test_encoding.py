"""Encodings come back to characters: offsets, words, what was kept."""

import time

import pytest
import torch

from tests.subjects import families
from tests.subjects.families import tokenizer
from veedor.subjects import Subject


@pytest.fixture(scope="module")
def bert() -> Subject:
    return families.subject("bert")


def byte_level() -> Subject:
    """A GPT-2 tokenizer whose tokens carry the space before them, trained on three words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    made.train_from_iterator(["a tall sailor sings", "a tall sailor"] * 20, trainer)
    words = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", model_max_length=64)
    return Subject(families.model("gpt2", vocab_size=len(words), eos_token_id=0, pad_token_id=0), words)


def test_offsets_and_words_are_those_of_the_characters(bert):
    text = "  the tall tenant,  sings!"
    (found,) = bert.encode([text])
    spans = [text[start:end] for start, end in found.offsets]
    assert spans == ["", "the", "tall", "tenant", ",", "sings", "!", ""]
    assert [text[start:end] for start, end in found.words] == ["the", "tall", "tenant,", "sings!"]
    assert found.token_word == (-1, 0, 1, 2, 2, 3, 3, -1)
    assert found.special == (True, *[False] * 6, True)
    assert (found.truncated, found.covered, found.covered_from) == (False, len(text), 0)


def test_the_space_that_a_token_carries_is_not_part_of_it():
    subject, text = byte_level(), "a tall  sailor"
    (found,) = subject.encode([text])
    spans = [text[start:end] for start, end in found.offsets]
    assert "".join(spans) == "atallsailor" and not any(" " in span for span in spans)
    assert found.tokens_in(8, 14) == sum(word == 2 for word in found.token_word) >= 1


def test_a_token_of_nothing_but_space_belongs_to_no_word():
    subject = byte_level()
    (found,) = subject.encode(["a  \n a"])
    blank = [at for at, span in enumerate(found.offsets) if span == (0, 0)]
    assert blank and all(found.token_word[at] == -1 for at in blank)


def test_a_script_without_spaces_is_cut_into_the_tokenizers_own_words(shared):
    subject = Subject.load(shared / "models" / "abuse-minilm")
    text = "hello 你好 world."
    (found,) = subject.encode([text])
    assert [text[start:end] for start, end in found.words] == ["hello", "你", "好", "world."]


def test_a_text_without_tokens_is_one_special_token():
    subject = byte_level()
    (found,) = subject.encode([""])
    assert (found.ids, found.special, found.words, found.token_word) == ((0,), (True,), (), (-1,))


def test_half_a_character_is_read_as_one_that_is_not_known(bert):
    (found,) = bert.encode(["the \ud83d tenant"])
    assert found.words == ((0, 3), (4, 5), (6, 12))


def test_a_long_text_is_cut_to_the_window_and_says_up_to_where():
    subject = families.subject("bert")
    text = "tall " * 100
    (found,) = subject.encode([text])
    assert len(found.ids) == subject.window == 64
    assert found.truncated and found.covered == 62 * 5 - 1  # 62 words between [CLS] and [SEP], the last without space
    assert len(found.words) == 62
    assert found.covers(0, 4) and not found.covers(62 * 5, 62 * 5 + 4)


def test_a_text_of_just_the_windows_length_is_not_cut():
    (found,) = families.subject("bert").encode(["tall " * 62])
    assert len(found.ids) == 64 and not found.truncated and found.covered == 310


def test_a_tokenizer_that_cuts_on_the_left_keeps_the_end_of_the_text():
    subject = Subject(families.model("bert"), tokenizer(truncation_side="left"))
    text = "quiet " + "tall " * 99 + "sailor"
    (found,) = subject.encode([text])
    assert found.truncated and found.covered == len(text)
    assert found.covered_from == len(text) - len("sailor") - 61 * 5
    assert not found.covers(0, 5) and found.covers(len(text) - 6, len(text))
    assert text[slice(*found.offsets[-2])] == "sailor"


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_text_of_a_million_characters_is_cut_before_it_is_tokenized(side):
    subject = Subject(families.model("bert"), tokenizer(truncation_side=side))
    text = "quiet " + "tall " * 200_000 + "sailor"
    began = time.process_time()
    (found,) = subject.encode([text])
    assert time.process_time() - began < 1.0
    kept = "sailor" if side == "left" else "quiet"
    shown = [text[start:end] for start, end in found.offsets if end]
    assert found.truncated and len(found.ids) == 64 and kept in (shown[0], shown[-1])


def test_a_million_spaces_behind_a_text_cut_nothing_off(bert):
    (found,) = bert.encode(["the tenant" + " " * 1_000_000])
    assert not found.truncated and found.words == ((0, 3), (4, 10))


def test_the_window_is_the_smaller_of_tokenizer_and_positions():
    assert families.subject("bert").window == 64
    assert Subject(families.model("bert"), tokenizer(model_max_length=10**30)).window == 66
    roberta = Subject(families.model("roberta"), tokenizer(model_max_length=10**30))
    assert roberta.window == 66 - (families.PAD + 1)  # positions begin behind that of padding


def test_a_full_window_of_a_model_with_offset_positions_is_answered():
    roberta = Subject(families.model("roberta"), tokenizer(model_max_length=10**30))
    (batch,) = roberta.batches(roberta.encode(["tall " * 100]))
    assert torch.isfinite(roberta.logits(batch)).all()


def test_every_row_is_in_one_batch_and_batches_grow_in_length(bert):
    encodings = bert.encode([*families.TEXTS, *families.TEXTS])
    batches = bert.batches(encodings, size=3)
    assert sorted(row for batch in batches for row in batch.rows) == list(range(10))
    lengths = [len(encodings[row].ids) for batch in batches for row in batch.rows]
    assert lengths == sorted(lengths) and [len(batch.rows) for batch in batches] == [3, 3, 3, 1]


def test_texts_can_be_taken_from_a_batch_more_than_once(bert):
    (batch,) = bert.batches(bert.encode(families.TEXTS))
    taken = batch.take(torch.tensor([2, 0, 2]))
    assert taken.rows == (batch.rows[2], batch.rows[0], batch.rows[2])
    assert torch.equal(taken.ids, batch.ids[[2, 0, 2]]) and torch.equal(taken.special, batch.special[[2, 0, 2]])


def test_a_batch_trimmed_keeps_the_tokens_of_its_longest_text_and_no_column_of_padding_alone(bert):
    (batch,) = bert.batches(bert.encode(["Muslim!", "a quiet neighbour sings.", " ".join(["tall"] * 20)]))
    taken = batch.take(torch.tensor([1, 0])).trimmed()
    assert taken.ids.shape == taken.mask.shape == taken.special.shape == (2, int(batch.mask[1].sum()))
    assert torch.equal(taken.ids, batch.ids[[1, 0], : taken.ids.shape[1]]) and taken.mask.sum() == batch.mask[:2].sum()
    assert taken.rows == (batch.rows[1], batch.rows[0])


def test_the_baseline_keeps_special_tokens_and_masks_the_rest(bert):
    (batch,) = bert.batches(bert.encode(["a quiet neighbour sings.", "Muslim!"]))
    ids = bert.baseline_ids(batch)
    assert ids[0].tolist() == [2, 4, 4, 3, 0, 0, 0]  # [CLS] [MASK] [MASK] [SEP] and padding
    assert torch.equal(bert.baseline(batch), bert.embed(ids))


def test_without_a_mask_token_the_baseline_is_padding_and_without_that_zero():
    texts = ["a quiet neighbour sings."]
    padding = Subject(families.model("gpt2"), tokenizer("gpt2", mask_token=None))
    (batch,) = padding.batches(padding.encode(texts))
    assert set(padding.baseline_ids(batch).flatten().tolist()) == {families.PAD}
    neither = Subject(families.model("gpt2"), tokenizer("gpt2", mask_token=None, pad_token=None))
    (batch,) = neither.batches(neither.encode(texts))
    assert neither.baseline_ids(batch) is None and neither.baseline(batch).abs().max() == 0


def test_the_mean_baseline_is_the_mean_row_of_the_embeddings(bert):
    (batch,) = bert.batches(bert.encode(["Muslim!"]))
    found = bert.baseline(batch, "mean")
    expected = bert.model.get_input_embeddings().weight.double().mean(dim=0)
    assert torch.allclose(found[0, 1].double(), expected, atol=1e-7)
    assert torch.equal(found[0, 0], bert.embed(batch)[0, 0])
