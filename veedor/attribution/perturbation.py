"""What perturbation methods share: the operator that the settings name, texts block by block, and one scorer for all.

The variants of a block of texts are scored together, in batches cut by length, and each distinct row of ids once: that
is where these methods spend their time.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from veedor.attribution.question import Question, Scored, in_order, undisturbed
from veedor.subjects.encoding import by_content
from veedor.subjects.perturbation import Eraser, Operator, Variants, eraser, score

BLOCK = 64  # texts whose variants are held at a time


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


def in_blocks(question: Question, block: Callable[[Sequence[int]], list[Scored]]) -> list[Scored]:
    """Answer texts of similar length together; in input order, the model left as it was."""
    answers: dict[int, Scored] = {}
    order = by_content(question.encodings)
    with undisturbed(question.subject):
        for first in range(0, len(order), BLOCK):
            rows = order[first : first + BLOCK]
            answers.update(zip(rows, block(rows), strict=True))
            question.progress(question.method, len(answers), len(order))
    return in_order(answers)


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
