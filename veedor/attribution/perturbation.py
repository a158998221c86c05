"""What perturbation methods share: the operator that the settings name, texts block by block, and one scorer for all.

The variants of a block of texts are scored together, in batches cut by length, and each distinct row of ids once: that
is where these methods spend their time.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from veedor.attribution.question import Question, Scored, in_order, undisturbed
from veedor.subjects.encoding import Encoding, by_content
from veedor.subjects.perturbation import Eraser, Operator, Variants, eraser, score

BLOCK = 64  # texts whose variants are held at a time
BLOCK_TOKENS = 2**20  # and tokens of these variants


class Taking(Protocol):
    """Settings that say how words are taken out."""

    @property
    def operator(self) -> Operator:
        """mask, delete or resample."""

    @property
    def draws(self) -> int:
        """Replacements that `resample` averages over."""


def eraser_of(question: Question, options: Taking) -> Eraser:
    """The operator, ready for the question's subject; `resample` draws from the question's pool or from its texts."""
    return eraser(
        question.subject,
        options.operator,
        question.encodings,
        pool=question.pool,
        seed=question.seed,
        draws=options.draws,
    )


def in_blocks(
    question: Question,
    block: Callable[[Sequence[int]], list[Scored]],
    *,
    variants: Callable[[Encoding], int] = lambda encoding: len(encoding.ids),
) -> list[Scored]:
    """Answer texts of similar length together; in input order, the model left as it was.

    `variants`: how many texts one text becomes; a block holds as many texts as these let it.
    """
    answers: dict[int, Scored] = {}
    with undisturbed(question.subject):
        for rows in cut_blocks(question.encodings, variants):
            answers.update(zip(rows, block(rows), strict=True))
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def cut_blocks(encodings: Sequence[Encoding], variants: Callable[[Encoding], int]) -> Iterator[list[int]]:
    """Positions of texts, by length, whose variants are held at a time: at least one text, at most `BLOCK`."""
    rows: list[int] = []
    held = 0
    for row in by_content(encodings):
        tokens = variants(encodings[row]) * len(encodings[row].ids)
        if rows and (len(rows) == BLOCK or held + tokens > BLOCK_TOKENS):
            yield rows
            rows, held = [], 0
        rows.append(row)
        held += tokens
    if rows:
        yield rows


def heights(question: Question, variants: Variants) -> np.ndarray:
    """The explained score of each variant, (n,) float64."""
    size = question.settings.batch_size
    return score(question.subject, variants.encodings, question.target_index, size=size, scale=question.scale)


def shared_evenly(tokens: int, units: Sequence[Sequence[int]], scores: Sequence[float] | np.ndarray) -> np.ndarray:
    """A score for each token, (tokens,) float64: each unit's divided by the number of its tokens; 0 for the others."""
    found = np.zeros(tokens)
    for unit, own in zip(units, scores, strict=True):
        found[list(unit)] = own / len(unit)
    return found
