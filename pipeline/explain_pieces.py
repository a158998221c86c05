"""A text cut into words or tokens that can be shown one after another, each with its score."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.explain_answers import Explained, Told

Span = tuple[int, int]


@dataclass(frozen=True)
class Piece:
    """A word or token: what stands before it in the text, its characters there, and its name in a table."""

    before: str
    shown: str
    name: str
    special: bool = False


@dataclass(frozen=True)
class Scored:
    """A piece with its score, None where a method left it out, and its share of the largest score."""

    piece: Piece
    score: float | None
    share: float

    @property
    def against(self) -> bool:
        """Whether it lowers the score."""
        return self.score is not None and self.score < 0


def words_of(explained: Explained) -> tuple[list[Piece], str]:
    """The words of what was kept, and the rest of the text."""
    spans = explained.encoding.words
    names = [explained.text[start:end] for start, end in spans]
    return cut(explained.text, spans, names, [False] * len(spans))


def tokens_of(explained: Explained) -> tuple[list[Piece], str]:
    """The tokens, special ones with no characters of their own, and the rest of the text."""
    of = explained.encoding
    return cut(explained.text, of.offsets, explained.token_names, of.special)


def cut(text: str, spans: Sequence[Span], names: Sequence[str], special: Sequence[bool]) -> tuple[list[Piece], str]:
    """Pieces in order; no character is shown twice where tokens share it.

    >>> pieces, rest = cut("a bc!", [(0, 0), (0, 1), (2, 4), (3, 4)], ["[CLS]", "a", "bc", "c"], [True] + [False] * 3)
    >>> [(piece.before, piece.shown) for piece in pieces], rest
    ([('', ''), ('', 'a'), (' ', 'bc'), ('', '')], '!')
    """
    pieces, end = [], 0
    for (start, stop), name, own in zip(spans, names, special, strict=True):
        first, last = max(start, end), max(stop, end)
        seen = stop > start
        pieces.append(Piece(text[end:first] if seen else "", text[first:last] if seen else "", name, own))
        end = last if seen else end
    return pieces, text[end:]


def scored(explained: Explained, told: Told, *, tokens: bool = False) -> Iterator[Scored]:
    """Words (or tokens) in order with their scores."""
    pieces, _ = tokens_of(explained) if tokens else words_of(explained)
    scores = told.tokens if tokens else tuple(map(float, told.attribution.word_scores))
    largest = max((abs(score) for score in scores if score is not None), default=0.0) or 1.0
    for piece, score in zip(pieces, scores, strict=True):
        yield Scored(piece, score, abs(score or 0.0) / largest)
