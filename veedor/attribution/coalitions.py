"""Which words are left in a text at a time, and what a linear surrogate makes of the answers. Pure arrays: no model.

Kernel SHAP (Lundberg and Lee, 2017, theorem 2): coalitions weighted by (M − 1) / (C(M, k) k (M − k)), k of M words left
in, and a least-squares fit that is bound to the two ends: its sum is F(all) − F(none). As in the authors' own
implementation, and in Covert and Lee (2021), sizes are enumerated from the outside in as far as the budget reaches, the
rest is drawn without repetition, and each coalition is asked together with its complement. Where all 2^M fit, nothing
is drawn and the result is the Shapley value itself.

LIME (Ribeiro et al., 2016, equation 2): each word is left in with probability one half, and the fit is weighted by how
much of the text is left; no penalty, so no word's coefficient is shrunk.
"""

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

A_WORD = 4  # coalitions a word at least: fewer do not determine a fit
TRIES = 16  # draws a coalition that is wanted, before fewer distinct ones are taken


def budget(words: int, samples: int) -> int:
    """Coalitions that are asked for a text of so many words: 2^M where that is enough.

    >>> budget(3, 128), budget(12, 128), budget(60, 128)
    (8, 128, 240)
    """
    most = max(samples, A_WORD * words)
    return 2**words if words < most.bit_length() and 2**words <= most else most


def shapley_coalitions(words: int, samples: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Coalitions of M words, (m, M) bool, all and none first, and their weights, (m,) float64; the ends' are 0."""
    ends = np.array([[True] * words, [False] * words])
    found, weights = list(ends), [0.0, 0.0]
    sizes = np.arange(1, words)
    chance = 1 / (sizes * (words - sizes))  # of a size; C(M, k) coalitions share it
    smallest, left = 1, budget(words, samples) - 2
    while 2 * smallest <= words and left >= _enough(words, smallest, chance):
        for size in dict.fromkeys((smallest, words - smallest)):
            rows = [_row(words, chosen) for chosen in combinations(range(words), size)]
            found += rows
            weights += [float(chance[size - 1]) / len(rows)] * len(rows)
            left -= len(rows)
        smallest += 1
    inner = slice(smallest - 1, words - smallest)
    if 2 * smallest <= words and left > 1:
        seen = _pairs(words, sizes[inner], chance[inner], left, random)
        share = float(chance[inner].sum()) / sum(seen.values())
        found += [np.frombuffer(key, dtype=bool) for key in seen]
        weights += [share * times for times in seen.values()]
    return np.array(found), np.array(weights)


def _enough(words: int, size: int, chance: np.ndarray) -> float:
    """The budget at which as many coalitions of this size and its complement would be drawn as there are."""
    both = {size, words - size}
    share = sum(chance[own - 1] for own in both) / chance[size - 1 : words - size].sum()
    return float(sum(comb(words, own) for own in both) / share) - 1e-9


def _pairs(
    words: int, sizes: np.ndarray, chance: np.ndarray, left: int, random: np.random.Generator
) -> dict[bytes, int]:
    """Distinct coalitions and their complements, how often each was drawn; as many as are left, to the even number."""
    seen: dict[bytes, int] = {}
    for size in random.choice(sizes, size=TRIES * left, p=chance / chance.sum()):
        row = _row(words, random.permutation(words)[:size])
        for own in (row, ~row):
            seen[own.tobytes()] = seen.get(own.tobytes(), 0) + 1
        if len(seen) >= left - 1:
            break
    return seen


def _row(words: int, chosen: "np.ndarray | tuple[int, ...]") -> np.ndarray:
    row = np.zeros(words, dtype=bool)
    row[list(chosen)] = True
    return row


def even_coalitions(
    words: int, samples: int, random: np.random.Generator, *, width: float
) -> tuple[np.ndarray, np.ndarray]:
    """Each word in with probability one half, (m, M) bool, the whole text first, and their weights by `closeness`.

    Each coalition once where all 2^M fit.
    """
    asked = budget(words, samples)
    if asked == 2**words:
        drawn = np.array(list(_all(words)))
    else:
        drawn = random.random((asked, words)) < 0.5
        drawn[0] = True
    return drawn, closeness(drawn, width)


def closeness(rows: np.ndarray, width: float) -> np.ndarray:
    """How near to the whole text: exp(−d² / 2 width²), d the cosine distance of presence vectors, (m,) in (0, 1].

    >>> closeness(np.array([[True] * 4, [True, False, False, False]]), 0.5).round(4).tolist()
    [1.0, 0.6065]
    """
    distance = 1 - np.sqrt(rows.mean(axis=1))
    return np.asarray(np.exp(-(distance**2) / (2 * width**2)))


def _all(words: int) -> Iterator[np.ndarray]:
    for size in range(words, -1, -1):
        yield from (_row(words, chosen) for chosen in combinations(range(words), size))


def bound_fit(rows: np.ndarray, heights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Least squares whose coefficients, (M,) float64, sum to F(all) − F(none): rows and heights begin with these two.

    The bound is kept exactly, not by a large weight: at 10^6 and in float32 a fit for 60 words is off by half its size.
    Words that the coalitions do not tell apart share what is left evenly.

    >>> all_none_and_two = np.array([[1, 1], [0, 0], [1, 0], [0, 1]])
    >>> bound_fit(all_none_and_two, np.array([3.0, 0.0, 2.0, 0.0]), np.array([0, 0, 0.5, 0.5])).round(12).tolist()
    [2.5, 0.5]
    """
    words = rows.shape[1]
    even = (heights[0] - heights[1]) / words
    inner = rows[2:].astype(np.float64)
    rest = heights[2:] - heights[1] - even * inner.sum(axis=1)
    root = np.sqrt(weights[2:])
    centred = inner - inner.mean(axis=1, keepdims=True)  # moves no sum
    moved = np.linalg.lstsq(centred * root[:, None], rest * root, rcond=None)[0] if len(inner) else np.zeros(words)
    return np.asarray(even + moved - moved.mean())


def free_fit(rows: np.ndarray, heights: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted least squares with an intercept; the coefficients, (M,) float64, without it.

    >>> free_fit(np.array([[1, 1], [0, 1], [1, 0]]), np.array([6.0, 5.0, 2.0]), np.ones(3)).round(12).tolist()
    [1.0, 4.0]
    """
    share = weights / weights.sum()
    root = np.sqrt(share)
    centred = rows - share @ rows
    moved = heights - heights[0]  # exactly nothing where all answers are the same
    fitted = np.linalg.lstsq(centred * root[:, None], (moved - share @ moved) * root, rcond=None)[0]
    return np.asarray(fitted)
