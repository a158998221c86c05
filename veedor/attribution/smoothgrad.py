"""SmoothGrad (Smilkov et al., 2017, section 2): the gradient averaged over noisy copies of the text, then its norm.

Noise is normal and added to every real token's embedding; signed gradients are averaged before the L2 norm over the
embedding dimension, so that what changes its sign from copy to copy cancels. The paper gives the noise as a share of
the input's range. Embeddings have a few dimensions that are many times larger than the rest, and 15 % of the range
would be three to four times the embeddings of a MiniLM; so here the noise is a share of the text's L2 norm: the
standard deviation is `noise` times the root mean square of the embeddings of its real tokens, so that the noise has
`noise` times the text's L2 norm. Special tokens move too. Seeded by the text: batches change nothing. Unsigned.
"""

from typing import TYPE_CHECKING

from veedor.attribution.gradients import gradients_at
from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.stability import NOISE, draws, embedded

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch


def smoothgrad(question: Question) -> list[Scored]:
    """L2 norm of each token's mean gradient over the noisy copies; unsigned."""
    subject, samples = question.subject, question.settings.smoothgrad.samples
    answers: dict[int, Scored] = {}
    with undisturbed(subject):
        for batch in subject.batches(question.encodings, size=question.settings.batch_size):
            norms = mean_gradient(question, batch).norm(dim=-1).cpu().numpy()
            own = (Scored(scores, nodes=samples) for scores in real_tokens(batch, norms))
            answers.update(zip(batch.rows, own, strict=True))
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def mean_gradient(question: Question, batch: "Batch") -> "torch.Tensor":
    """Mean over noisy copies of the gradient, (b, n, d) float64; as many copies at a time as a batch may hold."""
    import torch

    options, points = question.settings.smoothgrad, embedded(question, batch)
    deviation = options.noise * deviations(points, batch.mask.bool())
    texts, at_once = len(batch.rows), max(1, question.settings.batch_size // len(batch.rows))
    total = torch.zeros(points.shape, dtype=torch.float64, device=points.device)
    for first in range(0, options.samples, at_once):
        copies = range(first, min(first + at_once, options.samples))
        noise = [draws(question, batch, width=points.shape[-1], draw=copy, stream=NOISE) for copy in copies]
        noisy = torch.cat([points + deviation[:, None, None] * own.to(points) for own in noise])
        rows = torch.arange(texts, device=points.device).repeat(len(copies))
        _, gradient = gradients_at(question, noisy, batch.take(rows))
        total += gradient.double().reshape(len(copies), *points.shape).sum(dim=0)
    return total / options.samples


def deviations(points: "torch.Tensor", real: "torch.Tensor") -> "torch.Tensor":
    """Root mean square of the embeddings of each text's real tokens: (b, n, d) and (b, n) -> (b,)."""
    squares = points.square().mean(dim=-1).masked_fill(~real, 0.0).sum(dim=1)
    root: torch.Tensor = (squares / real.sum(dim=1)).sqrt()
    return root
