"""Which words a text has, and which tokens are whose: characters on one side, whatever the tokenizer made of them.

A word is a maximal run of non-space characters; in a run with characters of a script that puts no spaces between words,
it is what the tokenizer itself sets apart before it looks up sub-words (a pre-token). What a reader sees as one sign is
never cut: a letter with its accents, an emoji with its skin tone, a family joined by zero-width joiners. Where one
token spans several runs, as tokenizers that do not split at spaces allow, these are one word: its score cannot be told
apart. Words that the tokenizer dropped altogether, such as a lone control character, are no words.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any

Span = tuple[int, int]

RUN = re.compile(r"\S+")
UNSPACED = re.compile("[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]")
JOINER = "\u200d"
SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
BEYOND = 1 << 62


def visible(text: str, start: int, end: int) -> Span:
    """The span without white space at its ends; (0, 0) where nothing is left.

    >>> visible("a gay man", 1, 5), visible("a  b", 1, 3)
    ((2, 5), (0, 0))
    """
    part = text[start:end]
    inner = part.strip()
    if not inner:
        return (0, 0)
    first = start + len(part) - len(part.lstrip())
    return (first, first + len(inner))


def runs_of(text: str, encoded: Any, covered: Span) -> list[Span]:
    """Runs of non-space characters in what was kept; pre-tokens where a run is in a script without spaces."""
    runs = [match.span() for match in RUN.finditer(text, covered[0], covered[1])]
    if not UNSPACED.search(text):
        return runs
    starts = pre_tokens(encoded)
    words: list[Span] = []
    for start, end in runs:
        spaced = not UNSPACED.search(text, start, end)
        cuts = [] if spaced else [at for at in starts if start < at < end and begins_sign(text, at)]
        words.extend(pairwise([start, *cuts, end]))
    return words


def pre_tokens(encoded: Any) -> list[int]:
    """Characters at which the tokenizer's own words begin, in order."""
    begin: dict[int, int] = {}
    for word, (start, end) in zip(encoded.word_ids, encoded.offsets, strict=True):
        if word is not None and end > start:
            begin[word] = min(start, begin.get(word, start))
    return sorted(set(begin.values()))


def begins_sign(text: str, at: int) -> bool:
    """Whether a character is no addition to the one before it: an accent, a variation, a skin tone, a joined part.

    >>> begins_sign("ab", 1), begins_sign("e\u0301", 1)
    (True, False)
    """
    added = unicodedata.category(text[at]).startswith("M") or text[at] in SKIN_TONES or text[at] == JOINER
    return not added and text[at - 1] != JOINER


def join_spanned(words: list[Span], spans: Sequence[Span]) -> list[Span]:
    """Words that a token spans together are one.

    >>> join_spanned([(0, 1), (2, 3), (4, 5)], [(0, 3), (4, 5)])
    [(0, 3), (4, 5)]
    """
    inner: set[int] = set()
    for start, end in spans:
        at = word_at(words, (start, end))
        while 0 <= at < len(words) - 1 and words[at + 1][0] < end:
            at += 1
            inner.add(at)
    if not inner:
        return words
    kept = [at for at in range(len(words)) if at not in inner]
    return [(words[at][0], words[after - 1][1]) for at, after in pairwise([*kept, len(words)])]


def with_tokens(words: Sequence[Span], spans: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """The words that have a token, and the index of each token's word among them."""
    found = [word_at(words, span) for span in spans]
    used = sorted({at for at in found if at >= 0})
    if len(used) == len(words):
        return list(words), found
    place = {at: number for number, at in enumerate(used)} | {-1: -1}
    return [words[at] for at in used], [place[at] for at in found]


def word_at(words: Sequence[Span], span: Span) -> int:
    """Index of the word in which the span begins, -1 where it stands for nothing visible.

    >>> word_at([(0, 1), (2, 5)], (3, 5)), word_at([(0, 1)], (0, 0))
    (1, -1)
    """
    if span[1] <= span[0]:
        return -1
    at = bisect_right(words, (span[0], BEYOND)) - 1
    return at if at >= 0 and span[0] < words[at][1] else -1


def cover(words: Sequence[Span], token_word: Sequence[int], spans: Sequence[Span]) -> list[Span]:
    """Spans that leave no character of a word out.

    A tokenizer drops characters (accents, controls) or says of several that were made one only where the first of them
    stands. They go to the token before them, or, at the beginning of a word, to the one after.

    >>> cover([(0, 5)], [0, 0], [(1, 2), (3, 4)])
    [(0, 3), (3, 5)]
    """
    found = list(spans)
    tokens = [place for place, word in enumerate(token_word) if word >= 0]
    for word, members in groupby(sorted(tokens, key=token_word.__getitem__), key=token_word.__getitem__):
        _cover_word(words[word], sorted(members, key=lambda place: spans[place]), found)
    return found


def _cover_word(word: Span, places: Sequence[int], found: list[Span]) -> None:
    reach, last = word[0], list[int]()  # tokens that end where the word is covered up to
    for place in places:
        start, end = found[place]
        if start > reach:
            for before in last:
                found[before] = (found[before][0], start)
            start = start if last else word[0]
            found[place] = (start, end)
        last = [place] if end > reach else [*last, place] if end == reach else last
        reach = max(reach, end)
    for before in last if reach < word[1] else ():
        found[before] = (found[before][0], word[1])
