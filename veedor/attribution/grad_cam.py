"""Grad-CAM on self-attention (Selvaraju et al., 2017, equations 1 and 2, with heads in the place of channels).

A head's weight w_h is the mean of the score's gradient over its map, over real query and key positions alone, so that
padding changes nothing; the map is (sum_h w_h A_h)^+, clamped after the sum: a head against the label takes away what
a head for it gives. Read in the row that the head of the classifier reads. Of one layer, the last unless another is
chosen; where only one row of the last layer reaches the classifier, the other rows' gradients are 0, not their weights.
"""

from typing import TYPE_CHECKING

from veedor.attribution.backward import Backward, Wanted, layer_count
from veedor.attribution.question import Question
from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch


def cam(attention: "torch.Tensor", gradient: "torch.Tensor", real: "torch.Tensor") -> "torch.Tensor":
    """(sum_h w_h A_h)^+ of one layer: attention and gradient (b, heads, n, n), real (b, n) -> (b, n, n)."""
    weights = head_weights(gradient, real)
    summed: torch.Tensor = (weights[..., None, None] * attention).sum(dim=1)
    return summed.clamp_min(0)


def head_weights(gradient: "torch.Tensor", real: "torch.Tensor") -> "torch.Tensor":
    """Mean of each head's gradient over pairs of real positions: (b, heads, n, n) and (b, n) -> (b, heads)."""
    pairs = (real[:, :, None] & real[:, None, :])[:, None]
    total: torch.Tensor = gradient.masked_fill(~pairs, 0.0).sum(dim=(-2, -1))
    return total / pairs.sum(dim=(-2, -1))


def cam_row(found: Backward, read: "torch.Tensor", real: "torch.Tensor", *, layer: int) -> "torch.Tensor":
    """The map of a layer in the row (or mean of rows) with these weights `read` (b, n) float64, (b, n) float64."""
    import torch

    chosen = found.layers[layer]
    assert chosen.weights is not None
    return torch.einsum("bi,bij->bj", read, cam(chosen.weights, chosen.of["weights"], real).double())


def wanted(question: Question) -> Wanted:
    """The weights of one layer; UsageError where the model has no layer of this number."""
    layer, number = question.settings.grad_cam.layer, layer_count(question)
    if number is not None and not -number <= layer < number:
        raise UsageError(
            f"grad_cam.layer is {layer}, but {question.subject.name} has {number} layers; expected a number from 0 to "
            f"{number - 1}, or from -1 (the last) back to -{number}"
        )
    return Wanted(seen=frozenset({"weights"}), layers=frozenset({layer}))
