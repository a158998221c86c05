"""Gradient norm (Simonyan et al., 2014) and input times gradient, on the word-embedding output.

One backward pass each. The sum of the raw gradient over the hidden dimension is never offered: where the embeddings
feed a layer norm it is 0 for every token, whatever the model thinks (the norm removes the mean). The norm is unsigned;
input times gradient is signed but not complete: its sum is not a difference of scores.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.stability import embedded

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch


def gradient_norm(question: Question) -> list[Scored]:
    """L2 norm over the embedding dimension of each token's gradient; unsigned."""
    return _one_backward(question, lambda _, gradient: gradient.double().norm(dim=-1))


def input_x_gradient(question: Question) -> list[Scored]:
    """Each token's embedding times its gradient, summed over the embedding dimension; signed."""
    return _one_backward(question, lambda point, gradient: (point.double() * gradient.double()).sum(dim=-1))


def gradients_at(question: Question, points: "torch.Tensor", batch: "Batch") -> "tuple[torch.Tensor, torch.Tensor]":
    """The explained score at these embeddings, (b,) float64, and its gradient, (b, n, d).

    Texts of a batch do not see each other, so the gradient of the sum holds each text's own.
    """
    import torch

    with torch.enable_grad():
        leaf = points.detach().requires_grad_()
        logits = question.subject.logits_from_embeddings(leaf, batch)
        height = question.subject.margin(logits, question.target_index, scale=question.scale)
        (gradient,) = torch.autograd.grad(height.sum(), leaf)
    return height.detach().double(), gradient


def _one_backward(question: Question, reduce: "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]") -> list[Scored]:
    answers: dict[int, Scored] = {}
    subject = question.subject
    with undisturbed(subject):
        for batch in subject.batches(question.encodings, size=question.settings.batch_size):
            points = embedded(question, batch)
            _, gradient = gradients_at(question, points, batch)
            scores = reduce(points.detach(), gradient).cpu().numpy()
            answers.update(zip(batch.rows, (Scored(own) for own in real_tokens(batch, scores)), strict=True))
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)
