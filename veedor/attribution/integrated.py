"""Integrated gradients (Sundararajan et al., 2017, equation 1), on the word-embedding output.

(x − x′) times the integral of the gradient from the baseline x′ to x. By proposition 1 the scores of a text sum to
F(x) − F(x′); what is missing to that is the gap, and nothing is rescaled to hide it. What the path starts from is in
`baselines`, where a second one can be asked for; the rule is in `quadrature`; what happens here
is that the pending nodes of many texts, sorted by length, go through the model together in full batches without more
padding than they need; no pass holds more rows than a batch, so memory does not grow with the number of nodes.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.baselines import agreement, starts_of
from veedor.attribution.gradients import gradients_at
from veedor.attribution.quadrature import Integral, integrate
from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.stability import embedded

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Encoding

NOT_CONVERGED = "not_converged"
SATURATED = "saturated"
LEAST_RISE, FLAT = 0.1, 0.05  # of the score from baseline to text; of the slope at the text over its mean on the way
BATCHES = 4  # whose texts are integrated together: the few nodes that each still needs fill passes between them
TOKENS = 32_768  # of these texts at most, padding counted: ends and baselines of all of them are in memory


def integrated_gradients(question: Question) -> list[Scored]:
    """Scores that sum to F(x) − F(baseline), with vector error and gap within the tolerance or flagged."""
    answers: dict[int, Scored] = {}
    with undisturbed(question.subject):
        for batch in question.subject.batches(question.encodings, size=texts_at_once(question)):
            answers.update(zip(batch.rows, _of_batch(question, batch), strict=True))
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def _of_batch(question: Question, batch: "Batch") -> list[Scored]:
    """The texts of one batch from their baseline, and from the second one where the settings ask for it."""
    second = question.settings.integrated_gradients.second_baseline
    ends, starts = embedded(question, batch), starts_of(question, batch)
    found = integrals(question, batch, starts, ends)
    scores = real_tokens(batch, np.stack([integral.values for integral in found]))
    scored = list(map(_scored, scores, found))
    others = starts_of(question, batch, second) if second != "none" else starts
    if bool((others == starts).all()):  # no second baseline, or on this model the same
        return scored
    checks = integrals(question, batch, others, ends)
    vectors = real_tokens(batch, np.stack([integral.values for integral in checks]))
    encodings = [question.encodings[row] for row in batch.rows]
    return [_compared(*each) for each in zip(scored, vectors, checks, encodings, strict=True)]


def integrals(question: Question, batch: "Batch", starts: "torch.Tensor", ends: "torch.Tensor") -> list[Integral]:
    """Each text's integral from its start to its end, both (b, n, d); values (n,), padding 0."""
    options = question.settings.integrated_gradients
    paths = StraightPaths(question, batch, starts, ends - starts)
    return integrate(paths.evaluate, len(batch.rows), tolerance=options.tolerance, max_nodes=options.max_nodes)


def texts_at_once(question: Question) -> int:
    """How many texts share their passes: some batches of short ones, one batch of long ones."""
    size = question.settings.batch_size
    longest = max(len(own.ids) for own in question.encodings)
    return max(size, min(BATCHES * size, TOKENS // max(longest, 1)))


@dataclass(frozen=True)
class StraightPaths:
    """The straight lines from the baselines to the texts of one batch, which is sorted by length."""

    question: Question
    batch: "Batch"
    starts: "torch.Tensor"  # (b, n, d)
    steps: "torch.Tensor"  # (b, n, d), to the text

    def evaluate(self, owners: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivative of the score along each token's part of the path, (m, n), and the score itself, (m,)."""
        derivative, heights = np.zeros((len(owners), self.steps.shape[1])), np.zeros(len(owners))
        passes = -(-len(owners) // self.question.settings.batch_size)
        for part in np.array_split(np.argsort(owners, kind="stable"), passes):
            found, heights[part] = self._pass(owners[part], positions[part])
            derivative[part, : found.shape[1]] = found
        return derivative, heights

    def _pass(self, owners: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One pass forward and back; the derivative is as wide as the longest of these texts."""
        import torch

        rows = torch.as_tensor(owners, device=self.starts.device)
        at = torch.as_tensor(positions, dtype=self.starts.dtype, device=self.starts.device)[:, None, None]
        batch = self.batch.take(rows).trimmed()
        width = batch.ids.shape[1]
        steps = self.steps[rows, :width]
        heights, gradient = gradients_at(self.question, self.starts[rows, :width] + at * steps, batch)
        derivative = (gradient.double() * steps.double()).sum(dim=-1)
        return derivative.cpu().numpy(), heights.cpu().numpy()


def _scored(scores: np.ndarray, integral: Integral) -> Scored:
    flags: tuple[str, ...] = () if integral.converged else (NOT_CONVERGED,)
    flags += (SATURATED,) if saturated(integral) else ()
    return Scored(scores, gap=integral.gap, nodes=integral.nodes, flags=flags)


def saturated(integral: Integral) -> bool:
    """Whether the score is flat at the text although it rose on the way: a plain gradient would see nothing there.

    |F(x) − F(x′)| is at least .1, and the L1 of the derivative along the path is at x under 5 % of its mean on the way.
    """
    return abs(integral.rise) >= LEAST_RISE and integral.end_slope is not None and integral.end_slope < FLAT


def _compared(scored: Scored, scores: np.ndarray, check: Integral, encoding: "Encoding") -> Scored:
    """The same scores with the agreement of the second baseline's; without where that one was not reached."""
    facts = agreement(scored.scores, scores, encoding) if check.converged else {}
    return replace(scored, nodes=scored.nodes + check.nodes, facts={**scored.facts, **facts})
