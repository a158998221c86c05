"""Small tokenizers of every family, trained in a moment on a few sentences of several scripts."""

from collections.abc import Callable
from functools import cache
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "the old sailor sings and the tenant sings again, unbelievably loudly",
    "El niño pequeño comió piñas en la montaña; ¿qué más quería el señor Muñoz?",
    "你好世界 我喜欢学习中文",
    "吾輩は猫である。名前はまだ無い。カタカナも読む",
    "مرحبا بالعالم كيف حالك اليوم",
    "Ein größeres Straßenfest, finally office affairs",
    "👍🏽 👩‍👩‍👧 emoji 🎉 party",
] * 8
BERT_MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECE_MARKS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def wordpiece(normalizer: Any = None) -> Tokenizer:
    """BERT's: cleans, lowercases, strips accents, sets spaces around Chinese characters."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizer or normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=400, special_tokens=BERT_MARKS, show_progress=False)
    )
    return framed(made, "[CLS]", "[SEP]")


def cased_wordpiece() -> Tokenizer:
    return wordpiece(normalizers.BertNormalizer(lowercase=False, strip_accents=False))


def byte_bpe(*, prefix: bool = False, trim: bool = True) -> Tokenizer:
    """GPT-2's and RoBERTa's: bytes, the space before a word is part of its first token."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, special_tokens=PIECE_MARKS, show_progress=False),
    )
    if not prefix:
        made.post_processor = processors.ByteLevel(trim_offsets=trim)
        return made
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=trim, add_prefix_space=prefix
    )
    return made


def roberta() -> Tokenizer:
    return byte_bpe(prefix=True)


def untrimmed_bpe() -> Tokenizer:
    return byte_bpe(trim=False)


def unigram(*, split: bool = True) -> Tokenizer:
    """XLM-R's and T5's: pieces that carry a mark for the space, NFKC, runs of spaces made one."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=split)
    made.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(vocab_size=300, special_tokens=PIECE_MARKS, unk_token="<unk>", show_progress=False),
    )
    return framed(made, "<s>", "</s>")


def unigram_across_spaces() -> Tokenizer:
    """Pieces may span words: nothing is split before the model sees it."""
    return unigram(split=False)


def llama_bpe() -> Tokenizer:
    """Llama's: spaces become a mark, pieces were learned within words but nothing is split, the unknown are bytes."""
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    octets = [f"<0x{number:02X}>" for number in range(256)]
    made.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=600, special_tokens=PIECE_MARKS + octets, show_progress=False)
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return made


def word_level() -> Tokenizer:
    """Whole words and marks, lower case, accents stripped; most characters of other scripts are unknown."""
    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.train_from_iterator(CORPUS, trainers.WordLevelTrainer(special_tokens=BERT_MARKS, show_progress=False))
    return framed(made, "[CLS]", "[SEP]")


def replacing() -> Tokenizer:
    """Composes characters, and writes digits and dashes in other words, longer and shorter ones."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace("&", "and"), normalizers.Replace(Regex("[0-9]+"), "0")]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    made.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=400, special_tokens=BERT_MARKS, show_progress=False)
    )
    return framed(made, "[CLS]", "[SEP]")


def framed(made: Tokenizer, first: str, last: str) -> Tokenizer:
    ids = [(mark, made.token_to_id(mark)) for mark in (first, last)]
    made.post_processor = processors.TemplateProcessing(single=f"{first} $A {last}", special_tokens=ids)
    return made


MAKERS: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": wordpiece,
    "cased_wordpiece": cased_wordpiece,
    "byte_bpe": byte_bpe,
    "roberta": roberta,
    "untrimmed_bpe": untrimmed_bpe,
    "unigram": unigram,
    "unigram_across_spaces": unigram_across_spaces,
    "llama_bpe": llama_bpe,
    "word_level": word_level,
    "replacing": replacing,
}


@cache
def tokenizer(family: str, window: int = 4096) -> Any:
    """A trained tokenizer of the family, as transformers wraps it."""
    made = MAKERS[family]()
    marks = BERT_MARKS if made.token_to_id("[UNK]") is not None else PIECE_MARKS
    if marks is BERT_MARKS:
        names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), marks, strict=True))
    else:
        names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), marks, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=window, **names)
