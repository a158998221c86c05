"""Texts to token ids with what is needed to come back to characters, and batches of them.

How tokens become words is in `words`. Here: texts cut to the window, and how much of each was kept.

Batches are cut by content (length, then ids), so that neither the order of the input nor who else is asked changes a
text's neighbours. They are padded on the right, whatever side the tokenizer prefers: behind a text, padding is seen by
no token under a causal mask and moves no position, and every head is read at the row of its own text.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from veedor.subjects.words import Span, cover, join_spanned, runs_of, visible, with_tokens

if TYPE_CHECKING:
    import torch

CHARACTERS_PER_TOKEN = 64  # far above what real text needs; a longer text is cut before it is tokenized
CHUNK = 1024  # texts handed to the tokenizer at a time
UNPAIRED = re.compile("[\ud800-\udfff]")  # half of a character: no tokenizer takes it


@dataclass(frozen=True)
class Encoding:
    """One text as the model reads it.

    `offsets` are character spans without the space before a word, (0, 0) for special tokens. `words` are maximal runs
    of non-space characters in what was kept (pre-tokens where a script has no spaces; see `words`); `token_word` is the
    index of each token's word, -1 for special tokens and for tokens that stand for no visible character. A token lies
    inside its word, and the tokens of a word cover it. `covered`: the text was kept up to this character;
    `covered_from`: and from this one (0 unless the tokenizer cuts on the left).
    """

    ids: tuple[int, ...]
    offsets: tuple[Span, ...]
    special: tuple[bool, ...]
    words: tuple[Span, ...]
    token_word: tuple[int, ...]
    truncated: bool
    covered: int
    covered_from: int = 0

    def covers(self, start: int, end: int) -> bool:
        """Whether the characters [start, end) were kept."""
        return self.covered_from <= start and end <= self.covered

    def tokens_in(self, start: int, end: int) -> int:
        """How many tokens share a character with [start, end)."""
        return sum(first < end and last > start for first, last in self.offsets if last > first)


@dataclass(frozen=True, eq=False)
class Batch:
    """Encodings of similar length, padded on the right to the longest.

    `rows`: positions in the list that was given. `ids` (b, n) int64; `mask` (b, n) int64, 1 for tokens that are no
    padding; `position_ids` (b, n) where the model must be told them, else None; `special` (b, n) bool, with padding.
    """

    rows: tuple[int, ...]
    ids: "torch.Tensor"
    mask: "torch.Tensor"
    position_ids: "torch.Tensor | None"
    special: "torch.Tensor"

    def take(self, rows: "torch.Tensor") -> "Batch":
        """The texts at these positions of the batch, each as often as it is named."""
        return replace(
            self,
            rows=tuple(self.rows[int(row)] for row in rows),
            ids=self.ids[rows],
            mask=self.mask[rows],
            position_ids=None if self.position_ids is None else self.position_ids[rows],
            special=self.special[rows],
        )

    def trimmed(self) -> "Batch":
        """The same texts without the columns that are padding in all of them."""
        width = int(self.mask.sum(dim=1).max())
        return replace(
            self,
            ids=self.ids[:, :width],
            mask=self.mask[:, :width],
            position_ids=None if self.position_ids is None else self.position_ids[:, :width],
            special=self.special[:, :width],
        )


def encode_texts(tokenizer: Any, texts: Sequence[str], *, window: int, lone_id: int) -> list[Encoding]:
    """Encode each text, cut to the window; a text without any token becomes the special token `lone_id` alone."""
    found: list[Encoding] = []
    left = tokenizer.truncation_side == "left"
    with tokenizer_restored(tokenizer):
        for first in range(0, len(texts), CHUNK):
            kept = [keep(text, window, left=left) for text in texts[first : first + CHUNK]]
            encoded = tokenizer([part for part, _, _ in kept], truncation=True, max_length=window).encodings
            found.extend(map(partial(describe, left=left, lone_id=lone_id), kept, encoded))
    return found


def keep(text: str, window: int, *, left: bool) -> tuple[str, int, bool]:
    """The part of a text that is worth tokenizing, where it begins, and whether visible characters were left out.

    >>> keep("  a" * 100, 2, left=False)[1:]
    (0, True)
    """
    most = (window + 1) * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return UNPAIRED.sub("\ufffd", text), 0, False
    shift = len(text) - most if left else 0
    part = text[shift : shift + most]
    rest = text[:shift] if left else text[most:]
    return UNPAIRED.sub("\ufffd", part), shift, not rest.isspace()


def describe(kept: tuple[str, int, bool], encoded: Any, *, left: bool, lone_id: int) -> Encoding:
    """Offsets, words and coverage of one tokenized part of a text (see `keep`), in characters of the whole text."""
    text, shift, was_cut = kept
    special = tuple(bool(flag) for flag in encoded.special_tokens_mask)
    offsets = [
        (0, 0) if own else visible(text, start, end) for own, (start, end) in zip(special, encoded.offsets, strict=True)
    ]
    truncated = was_cut or bool(encoded.overflowing)
    seen = [span for span in offsets if span[1] > span[0]]
    first = min((start for start, _ in seen), default=len(text)) if truncated and left else 0
    last = max((end for _, end in seen), default=0) if truncated and not left else len(text)
    words, token_word = with_tokens(join_spanned(runs_of(text, encoded, (first, last)), offsets), offsets)
    return Encoding(
        ids=tuple(encoded.ids) or (lone_id,),
        offsets=tuple(moved(span, shift) for span in cover(words, token_word, offsets)) or ((0, 0),),
        special=special or (True,),
        words=tuple(moved(span, shift) for span in words),
        token_word=tuple(token_word) or (-1,),
        truncated=truncated,
        covered=last + shift,
        covered_from=first + shift,
    )


def moved(span: Span, shift: int) -> Span:
    """The span in the whole text; a span without characters stays (0, 0)."""
    return (span[0] + shift, span[1] + shift) if span[1] > span[0] else (0, 0)


@contextmanager
def tokenizer_restored(tokenizer: Any) -> Iterator[None]:
    """Put truncation and padding of the tokenizer back as they were: every call to it sets them."""
    backend = tokenizer.backend_tokenizer
    truncation, padding = backend.truncation, backend.padding
    try:
        yield
    finally:
        backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
        backend.no_padding() if padding is None else backend.enable_padding(**padding)


def by_content(encodings: Sequence[Encoding]) -> list[int]:
    """Positions sorted by length, then ids."""
    return sorted(range(len(encodings)), key=lambda row: (len(encodings[row].ids), encodings[row].ids))


def cut(encodings: Sequence[Encoding], *, size: int, equal_lengths: bool) -> Iterator[list[int]]:
    """Positions of at most `size` encodings at a time; `equal_lengths`: never of two lengths together."""
    block: list[int] = []
    for row in by_content(encodings):
        other = equal_lengths and block and len(encodings[row].ids) != len(encodings[block[0]].ids)
        if len(block) == size or other:
            yield block
            block = []
        block.append(row)
    if block:
        yield block


def pad(values: Sequence[Sequence[int]], filler: int) -> list[list[int]]:
    """Rows of one length, filled on the right.

    >>> pad([[1], [2, 3]], 0)
    [[1, 0], [2, 3]]
    """
    longest = max(map(len, values))
    return [[*row, *[filler] * (longest - len(row))] for row in values]
