"""Integrated gradients (Sundararajan et al., 2017, equation 1), on the word-embedding output.

(x − x′) times the integral of the gradient from the baseline x′ to x. By proposition 1 the scores of a text sum to
F(x) − F(x′); what is missing to that is the gap, and nothing is rescaled to hide it. The baseline keeps special tokens
and puts the mask token (or what the settings say) in every other place. The rule is in `quadrature`; what happens here
is that the pending nodes of many texts go through the model together, in batches of a fixed size, so that memory does
not grow with the number of nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.gradients import gradients_at
from veedor.attribution.quadrature import Integral, integrate
from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.stability import embedded

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch

NOT_CONVERGED = "not_converged"


def integrated_gradients(question: Question) -> list[Scored]:
    """Scores that sum to F(x) − F(baseline), with vector error and gap within the tolerance or flagged."""
    options, subject = question.settings.integrated_gradients, question.subject
    answers: dict[int, Scored] = {}
    with undisturbed(subject):
        for batch in subject.batches(question.encodings, size=question.settings.batch_size):
            paths = StraightPaths(question, batch, embedded(question, batch), baseline(question, batch))
            found = integrate(paths.evaluate, len(batch.rows), tolerance=options.tolerance, max_nodes=options.max_nodes)
            scores = real_tokens(batch, np.stack([integral.values for integral in found]))
            answers.update(zip(batch.rows, map(_scored, scores, found), strict=True))
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def baseline(question: Question, batch: "Batch") -> "torch.Tensor":
    """Embeddings of the baseline, (b, n, d): special tokens as they are, the rest without content."""
    return question.subject.baseline(batch, question.settings.integrated_gradients.baseline).detach()


@dataclass(frozen=True)
class StraightPaths:
    """The straight lines from the baselines to the texts of one batch."""

    question: Question
    batch: "Batch"
    ends: "torch.Tensor"  # (b, n, d)
    starts: "torch.Tensor"

    def evaluate(self, owners: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivative of the score along each token's part of the path, (m, n), and the score itself, (m,)."""
        parts = [self._chunk(owners[part], positions[part]) for part in self._chunks(len(owners))]
        return np.concatenate([part for part, _ in parts]), np.concatenate([height for _, height in parts])

    def _chunks(self, number: int) -> Iterator[slice]:
        size = self.question.settings.batch_size
        return (slice(first, first + size) for first in range(0, number, size))

    def _chunk(self, owners: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import torch

        rows = torch.as_tensor(owners, device=self.ends.device)
        at = torch.as_tensor(positions, dtype=self.ends.dtype, device=self.ends.device)[:, None, None]
        steps = (self.ends - self.starts)[rows]
        heights, gradient = gradients_at(self.question, self.starts[rows] + at * steps, self.batch.take(rows))
        derivative = (gradient.double() * steps.double()).sum(dim=-1)
        return derivative.cpu().numpy(), heights.cpu().numpy()


def _scored(scores: np.ndarray, integral: Integral) -> Scored:
    flags = () if integral.converged else (NOT_CONVERGED,)
    return Scored(scores, gap=integral.gap, nodes=integral.nodes, flags=flags)
