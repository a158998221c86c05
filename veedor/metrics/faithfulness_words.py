"""One text's words as operators take them out, and what chance draws for them; fixed by the text and the seed.

Sets of words are whole numbers with a bit for each word, so that the same set is asked once whoever names it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veedor.metrics.crossed import Bools, Floats

if TYPE_CHECKING:
    from veedor.subjects import Encoding

Order = NDArray[np.intp]
RANKINGS = 20  # random rankings of a text's words
REMOVALS = 50  # random halves of them


@dataclass(frozen=True, eq=False)
class Words:
    """The words of one text that have tokens.

    `row`: which text. `units`: token positions of each word. `index`: which of the encoding's words each is. `orders`:
    random rankings. `removed`: random halves of the words, rounded up, (draws, n).
    """

    row: int
    units: list[list[int]]
    index: list[int]
    orders: tuple[Order, ...]
    removed: Bools

    def __len__(self) -> int:
        """How many words can be taken out."""
        return len(self.units)

    def positions(self, gone: int) -> list[int]:
        """Token positions of a set of words."""
        return [position for word, unit in enumerate(self.units) if gone >> word & 1 for position in unit]

    def of_units(self, word_scores: ArrayLike) -> Floats:
        """Scores of the words that can be taken out, from those of all words of the encoding."""
        found: Floats = np.asarray(word_scores, dtype=np.float64)[self.index]
        return found


def words_of(row: int, encoding: "Encoding", *, seed: int, rankings: int = RANKINGS, removals: int = REMOVALS) -> Words:
    """Find the words of a text and draw its random rankings and halves."""
    from veedor.subjects.perturbation import content_seed, units_of

    units = units_of(encoding)
    generator = np.random.default_rng(content_seed(encoding, seed))
    orders = tuple(generator.permutation(len(units)) for _ in range(rankings))
    removed = np.zeros((removals, len(units)), dtype=bool)
    for draw in removed:
        draw[generator.permutation(len(units))[: -(-len(units) // 2)]] = True
    return Words(row, units, [encoding.token_word[unit[0]] for unit in units], orders, removed)


def bits(words: "Iterable[int | np.intp]") -> int:
    """A set of words as one number.

    >>> bits([0, 3])
    9
    """
    return sum(1 << int(word) for word in words)


def prefixes(order: Order, sizes: Sequence[int]) -> list[int]:
    """The first words of a ranking, as sets, one for each size.

    >>> prefixes(np.array([2, 0, 1]), (0, 1, 2))
    [0, 4, 5]
    """
    return [bits(order[:size]) for size in sizes]


def why_not(scores: Floats) -> str | None:
    """Why a text's scores rank nothing: "no_words", "one_word" or "no_spread" (all alike); None where they do.

    >>> why_not(np.array([0.5])), why_not(np.array([0.5, 0.5])), why_not(np.array([0.5, 0.6]))
    ('one_word', 'no_spread', None)
    """
    if len(scores) < 2:
        return "one_word" if len(scores) else "no_words"
    return "no_spread" if np.ptp(scores) == 0 else None
