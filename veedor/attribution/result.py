"""One text's explanation as its reader sees it: tokens, words and spans with their scores, and how they were got."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from veedor.attribution.question import Span
from veedor.records import Scalar

Fusion = Literal["sum", "max", "mean"]


@dataclass(frozen=True, eq=False)
class Attribution:
    """Which tokens one method holds responsible for one text's score.

    `scores` (n_tokens,) and `word_scores` (n_words,) are float64. `target` is None for methods without a target.
    `gap` is |sum − (F(x) − F(baseline))| / max(|F(x) − F(baseline)|, .1), None where the method has no such sum.
    `subwords`: how sub-words became words, "sum", "max" or "mean". `nodes` counts model evaluations; `covered` is the
    run of characters that the model saw. Special tokens have offsets (0, 0).
    """

    text: str
    tokens: list[str]
    offsets: list[Span]
    scores: np.ndarray
    words: list[str]
    word_offsets: list[Span]
    word_scores: np.ndarray
    method: str
    target: str | None
    score_function: str
    additive: bool
    covered: Span
    subwords: Fusion = "max"
    gap: float | None = None
    nodes: int = 1
    options: dict[str, Scalar] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


def span_score(attribution: Attribution, start: int, end: int) -> float | None:
    """Score of the characters [start, end): sum over its sub-words for additive methods, else maximum (or mean).

    None where the span was cut off with the rest of a long text, or holds no token.
    """
    if start < attribution.covered[0] or end > attribution.covered[1]:
        return None
    inside = [
        score
        for score, (first, last) in zip(attribution.scores, attribution.offsets, strict=True)
        if first < end and last > start and last > first
    ]
    return combine(inside, "sum" if attribution.additive else attribution.subwords) if inside else None


def combine(scores: Sequence[float], how: Fusion) -> float:
    """Sub-words to one score: their sum, the largest, or their mean; at least one score.

    >>> combine([0.5, -0.25], "sum"), combine([0.5, 0.25], "max"), combine([0.5, 0.25], "mean")
    (0.25, 0.5, 0.375)
    """
    if how == "max":
        return float(max(scores))
    total = float(sum(scores))
    return total if how == "sum" else total / len(scores)
