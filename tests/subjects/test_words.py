"""Sub-words come back to words, for every family of tokenizers and whatever characters a stranger writes."""

import random
import unicodedata
from functools import cache

import pytest

from tests.subjects.tokenizer_families import MAKERS, tokenizer
from veedor.subjects.encoding import Encoding, encode_texts

PARTS = (
    "the sailor niño nin\u0303o 你好 猫である مرحبا 👍🏽 👩‍👩‍👧 🎉 office o\ufb03ce \u200b a\u200bb \u200d \ufeff é "
    "e\u0301\u0323 ﬁ ½ … Straße İstanbul ǅ [SEP] </s> <mask> & 12345 \x00 \x07 \ufffd กำลัง हिन्दी ﷺ ¨ a\u0308 \u0301 "
    "co\u00adop ﾊﾝｶｸ 한국어 \u1100\u1161 🇪🇸 don't U.S. ¿qué? http://x.y/z?q=1 ▁ a▁b Ġ z̷̢͠a \ue000 \u0378 ١٢٣ “q”"
).split(" ")
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2003", "\u2028", "\x1c", ""]
BLOCKS = [
    (32, 127),
    (160, 0x2FF),
    (0x300, 0x36F),
    (0x370, 0x1FFF),
    (0x2000, 0x206F),
    (0x3000, 0x9FFF),
    (0xF900, 0xFFFF),
]
BLOCKS += [(0x1F300, 0x1FAFF), (0x20000, 0x20100), (32, 32), (32, 32)]
FAMILIES = sorted(MAKERS)


def encode(family: str, texts: list[str], window: int = 4096) -> list[Encoding]:
    return encode_texts(tokenizer(family, window), texts, window=window, lone_id=0)


def hard_text(dice: random.Random) -> str:
    """Words of many scripts between spaces of many kinds, or characters from anywhere."""
    if dice.random() < 0.6:
        words = "".join(dice.choice(SPACES) + dice.choice(PARTS) for _ in range(dice.randint(1, 8)))
        return words + dice.choice(SPACES)
    return "".join(chr(dice.randint(*dice.choice(BLOCKS))) for _ in range(dice.randint(1, 12)))


@cache
def hard_texts(number: int = 250) -> list[str]:
    dice = random.Random(1)
    return [*PARTS, "x" * 300, *(hard_text(dice) for _ in range(number))]


def dropped(family: str, character: str) -> bool:
    """Whether the tokenizer itself makes nothing of a character."""
    normalizer = tokenizer(family).backend_tokenizer.normalizer
    return normalizer is not None and not normalizer.normalize_str(character).strip()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_character_but_spaces_and_what_the_tokenizer_drops_is_in_exactly_one_word(family):
    for text, found in zip(hard_texts(), encode(family, hard_texts()), strict=True):
        edges = [edge for word in found.words for edge in word]
        assert edges == sorted(edges) and all(start < end for start, end in found.words), ascii(text)
        inside = {place for start, end in found.words for place in range(start, end)}
        for place in set(range(len(text))) - inside:
            assert text[place].isspace() or dropped(family, text[place]), (ascii(text), place)


@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_lie_inside_their_word_and_cover_it(family):
    for text, found in zip(hard_texts(), encode(family, hard_texts()), strict=True):
        covered: list[set[int]] = [set() for _ in found.words]
        for (start, end), word, special in zip(found.offsets, found.token_word, found.special, strict=True):
            assert (word >= 0) == (end > start) and not (special and word >= 0), ascii(text)
            if word >= 0:
                assert found.words[word][0] <= start and end <= found.words[word][1], ascii(text)
                covered[word].update(range(start, end))
        assert covered == [set(range(start, end)) for start, end in found.words], ascii(text)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_word_begins_or_ends_with_space_or_holds_one_that_no_token_spans(family):
    for text, found in zip(hard_texts(), encode(family, hard_texts()), strict=True):
        for word, (start, end) in enumerate(found.words):
            shown = text[start:end]
            assert shown == shown.strip()
            spaces = {start + at for at, character in enumerate(shown) if character.isspace()}
            spans = [
                set(range(*span)) for span, own in zip(found.offsets, found.token_word, strict=True) if own == word
            ]
            assert all(any(space in span for span in spans) for space in spaces), ascii(text)


@pytest.mark.parametrize("window", [8, 13])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_cut_text_keeps_words_and_tokens_within_what_is_covered(family, window):
    texts = [f"{text} {text} the sailor" for text in hard_texts() if text.strip()][::4]
    cut = [found for found in encode(family, texts, window) if found.truncated]
    assert len(cut) > 5
    for found in cut:
        assert len(found.ids) <= window
        assert all(found.covers(*span) for span in (*found.words, *found.offsets) if span != (0, 0))


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "unigram_across_spaces"])
@pytest.mark.parametrize(
    "text",
    [
        "  the sailor\tsings\n\nagain ",
        "El niño comió piñas; ¿qué más?",
        "El nin\u0303o comio\u0301 pin\u0303as",
        "مرحبا بالعالم",
        "a 👩‍👩‍👧 b 👍🏽 c 🇪🇸",
        "Straße o\ufb03ce ½ İstanbul",
        "x" * 700 + " y",
        "co\u00adop a\u200bb",
    ],
)
def test_words_of_scripts_with_spaces_are_what_stands_between_spaces(family, text):
    (found,) = encode(family, [text])
    assert [text[start:end] for start, end in found.words] == text.split()


@pytest.mark.parametrize(("family", "words"), [("wordpiece", "你 好 world. 世 界"), ("byte_bpe", "你好 world. 世界")])
def test_chinese_words_are_what_the_tokenizer_sets_apart(family, words):
    text = "你好 world. 世界"
    (found,) = encode(family, [text])
    assert [text[start:end] for start, end in found.words] == words.split()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sign", ["👩\u200d👩\u200d👧", "👍🏽", "กำ", "が"])
def test_what_a_reader_sees_as_one_sign_is_never_cut(family, sign):
    """Decomposed, and inside a run of a script that is cut at pre-tokens."""
    sign = unicodedata.normalize("NFD", sign)
    text = f"猫{sign}猫"
    (found,) = encode(family, [text])
    edges = {edge for word in found.words for edge in word}
    assert not any(1 < edge < 1 + len(sign) for edge in edges)


def test_tokens_of_one_character_share_its_span():
    (found,) = encode("byte_bpe", ["𝔘"])
    assert len(found.ids) > 1 and set(found.offsets) == {(0, 1)} and set(found.token_word) == {0}


def test_an_unknown_word_is_a_word_of_one_token():
    text = "the ☃☃☃ sings"
    (found,) = encode("word_level", [text])
    assert text[slice(*found.offsets[2])] == "☃☃☃" and found.token_word == (-1, 0, 1, 2, -1)


def test_accents_that_the_tokenizer_strips_belong_to_their_letter():
    text = "nin\u0303o e\u0301"
    (found,) = encode("wordpiece", [text])
    assert "".join(text[slice(*span)] for span in found.offsets) == "nin\u0303oe\u0301"


def test_a_replaced_run_of_digits_is_covered_by_the_token_it_became():
    text = "a 12345 b"
    (found,) = encode("replacing", [text])
    assert [text[slice(*span)] for span in found.offsets if span[1]] == ["a", "12345", "b"]


def test_words_that_one_token_spans_are_one_word():
    """Nothing is split at spaces here, so that 'the sailor' may be one token, whose score cannot be told apart."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"[UNK]": 0, "in the": 1, " ": 2, "town": 3}
    made = Tokenizer(models.Unigram([(token, -1.0) for token in vocabulary], unk_id=0, byte_fallback=False))
    text = "in the town"
    (found,) = encode_texts(PreTrainedTokenizerFast(tokenizer_object=made), [text], window=64, lone_id=0)
    assert [text[start:end] for start, end in found.words] == ["in the", "town"]
    assert found.token_word == (0, -1, 1)


def test_a_word_that_the_tokenizer_drops_is_no_word():
    (found,) = encode("wordpiece", ["the \u200b\x07 sailor"])
    assert found.words == ((0, 3), (7, 13))


def test_a_special_token_that_a_stranger_wrote_is_a_word_of_the_text():
    text = "the [SEP] sailor"
    (found,) = encode("wordpiece", [text])
    assert [text[start:end] for start, end in found.words] == ["the", "[SEP]", "sailor"]
    assert found.special[0] and found.special[-1] and sum(found.special) == 2
