"""Kernel SHAP (Lundberg and Lee, 2017) and LIME (Ribeiro et al., 2016): a linear model of what the words do together.

Both ask the model about the text with some of its words left in, and fit a sum over words to the answers; captum's
LimeBase runs the fit. Its features are here the words themselves, present or absent, and never token ids: a distance
between ids, which is what its default would take, says nothing. Which coalitions are asked, and how the fit is solved,
is in `coalitions`: captum's own Kernel SHAP asks the same coalitions again and again, draws no complements, and binds
the ends by a weight of 10^6 in float32. Coalitions are drawn from the text's tokens and the seed; the variants of many
texts are scored together and each distinct one once. Scores are shared evenly by the sub-words of a word.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from veedor.attribution.coalitions import bound_fit, budget, even_coalitions, free_fit, shapley_coalitions
from veedor.attribution.perturbation import Taking, eraser_of, heights, in_blocks, shared_evenly
from veedor.attribution.question import Question, Scored
from veedor.subjects.perturbation import Eraser, Variants, content_seed, units_of

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Encoding

LEAST_CHANGE = 0.1  # of a score, for a gap that is relative to it
Draw = Callable[[int, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""Words, samples and random numbers to coalitions (m, M) bool and weights (m,)."""
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Coalitions (m, M), heights (m,) and weights (m,) to a coefficient for each word, (M,)."""


def kernel_shap(question: Question) -> list[Scored]:
    """Shapley values of the words, estimated where there are too many coalitions; they sum to F(x) − F(no words)."""
    options = question.settings.kernel_shap
    return _Surrogate(question, options, options.samples, shapley_coalitions, bound_fit).answers()


def lime(question: Question) -> list[Scored]:
    """Coefficients of the words in a linear model that is fitted most closely where most of the text is left."""
    options = question.settings.lime
    draw = partial(even_coalitions, width=options.kernel_width)
    return _Surrogate(question, options, options.samples, draw, free_fit).answers()


@dataclass(frozen=True)
class _Asked:
    """One text's words, the coalitions of them, and where the answers of each coalition's draws will stand."""

    units: list[list[int]]
    rows: np.ndarray
    weights: np.ndarray
    places: list[list[int]]


@dataclass(frozen=True)
class _Surrogate:
    """A way of drawing coalitions and a way of fitting them, put to a question."""

    question: Question
    options: Taking
    samples: int
    draw: Draw
    fit: Fit

    def answers(self) -> list[Scored]:
        removal = eraser_of(self.question, self.options)
        return in_blocks(self.question, partial(self._block, removal), variants=self._variants)

    def _variants(self, encoding: "Encoding") -> int:
        words = len(set(encoding.token_word) - {-1})
        return budget(words, self.samples) * (self.options.draws if self.options.operator == "resample" else 1)

    def _block(self, removal: Eraser, rows: Sequence[int]) -> list[Scored]:
        variants = Variants()
        asked = [self._ask(removal, row, variants) for row in rows]
        height = heights(self.question, variants)
        return [self._scored(row, own, height) for row, own in zip(rows, asked, strict=True)]

    def _ask(self, removal: Eraser, row: int, variants: Variants) -> _Asked:
        encoding = self.question.encodings[row]
        units = units_of(encoding, self.question.span(row))
        if not units:
            return _Asked([], np.zeros((0, 0)), np.zeros(0), [])
        random = np.random.default_rng(content_seed(encoding, self.question.seed))
        rows, weights = self.draw(len(units), self.samples, random)
        absent = [[at for unit, left in zip(units, own, strict=True) if not left for at in unit] for own in rows]
        return _Asked(units, rows, weights, [variants.add_all(removal.variants(encoding, own)) for own in absent])

    def _scored(self, row: int, asked: _Asked, height: np.ndarray) -> Scored:
        tokens = len(self.question.encodings[row].ids)
        if not asked.units:
            return Scored(np.zeros(tokens), nodes=0)
        answers = np.array([height[places].mean() for places in asked.places])
        fitted = surrogate(asked.rows, answers, asked.weights, self.fit)
        nodes = len({place for places in asked.places for place in places})
        gap = completeness_gap(fitted, answers) if self.fit is bound_fit else None
        return Scored(shared_evenly(tokens, asked.units, fitted), gap=gap, nodes=nodes)


def completeness_gap(scores: np.ndarray, answers: np.ndarray) -> float:
    """|Σ − (F(all) − F(none))| / max(|F(all) − F(none)|, .1); the answers begin with these two."""
    change = float(answers[0] - answers[1])
    return abs(float(scores.sum()) - change) / max(abs(change), LEAST_CHANGE)


def surrogate(rows: np.ndarray, answers: np.ndarray, weights: np.ndarray, fit: Fit) -> np.ndarray:
    """What captum's LimeBase makes of coalitions (m, M), the model's answers (m,) and weights (m,): (M,) float64.

    It hands data on in float32, and its data loader draws from torch's random numbers: their state is put back.
    """
    import torch
    from captum.attr import LimeBase

    told = iter(torch.split(torch.from_numpy(weights).float(), 1))

    def coalitions(_: "torch.Tensor", **__: object) -> "Iterator[torch.Tensor]":
        yield from torch.split(torch.from_numpy(rows).float(), 1)

    with torch.random.fork_rng(devices=[]):
        found: torch.Tensor = LimeBase(
            forward_func=lambda _: torch.from_numpy(answers),
            interpretable_model=_Fitted(fit),
            similarity_func=lambda *_, **__: next(told),
            perturb_func=coalitions,
            perturb_interpretable_space=True,
            from_interp_rep_transform=lambda row, *_, **__: row,
            to_interp_rep_transform=None,
        ).attribute(torch.ones(1, rows.shape[1]), n_samples=len(rows), perturbations_per_eval=len(rows))
    return found.numpy()


class _Fitted:
    """A least-squares fit in float64, as captum asks for an interpretable model."""

    def __init__(self, fit: Fit) -> None:
        self._fit = fit

    def fit(self, batches: Any) -> None:
        rows, answers, weights = (part.double().numpy() for part in next(iter(batches)))
        self._found = self._fit(rows, answers, weights)

    def representation(self) -> "torch.Tensor":
        import torch

        return torch.from_numpy(self._found)
