"""Gradient norm (Simonyan et al., 2014) and input times gradient, on the word-embedding output.

One backward pass each. The sum of the raw gradient over the hidden dimension is never offered: where the embeddings
feed a layer norm it is 0 for every token, whatever the model thinks (the norm removes the mean). The norm is unsigned;
input times gradient is signed but not complete: its sum is not a difference of scores.
"""

from typing import TYPE_CHECKING

from veedor.attribution.backward import Backward
from veedor.attribution.question import Question

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch


def norms(found: Backward) -> "torch.Tensor":
    """L2 norm over the embedding dimension of each token's gradient; unsigned. (b, n) float64."""
    assert found.gradient is not None
    norm: torch.Tensor = found.gradient.double().norm(dim=-1)
    return norm


def products(found: Backward) -> "torch.Tensor":
    """Each token's embedding times its gradient, summed over the embedding dimension; signed. (b, n) float64."""
    assert found.gradient is not None
    return (found.points.double() * found.gradient.double()).sum(dim=-1)


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
