"""Relevance by attention and its gradient (Chefer, Gur and Wolf, ICCV 2021, equations 5 and 6).

In each layer Ā is the mean over heads of (∇A ⊙ A)^+, clamped before the mean: what a head would take from the score is
set to 0, not set off against what another gives. R starts as the identity and grows by R ← R + Ā R, the layer next to
the input first. R[i, j] is what input j lends to output i; never negative, and with a target. Self-attention of one
stack only: the rules for two modalities and for encoder-decoders (7 to 11) are left out.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from veedor.attribution.backward import Backward, Wanted
from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", "np.ndarray", "torch.Tensor")
STACK = 4  # dimensions of (layers, heads, n, n)
WANTED = Wanted(seen=frozenset({"weights"}))


def relevance(attention: Array, gradient: Array) -> Array:
    """R = (I + Ā_L) … (I + Ā_1), rules 5 and 6: attention and its gradient (layers, heads, n, n) -> (n, n).

    The layer next to the input comes first; gradient[l] is the score's gradient at attention[l]. NumPy in, NumPy out;
    torch in, torch out. Computes in float64 for float64, else in float32. UsageError where the stacks do not match.

    >>> weights = np.array([[[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]]])
    >>> slopes = np.array([[[[2.0, 4.0], [0.0, 0.0]], [[-2.0, 0.0], [2.0, -8.0]]]])
    >>> relevance(weights, slopes).tolist()
    [[1.5, 1.0], [0.5, 1.0]]
    """
    if isinstance(attention, np.ndarray) and isinstance(gradient, np.ndarray):
        import torch

        kept = np.float64 if np.float64 in (attention.dtype, gradient.dtype) else np.float32
        found = relevance(torch.from_numpy(attention.astype(kept)), torch.from_numpy(gradient.astype(kept)))
        return found.numpy()
    check_stacks(attention, gradient)
    grown = None
    for weights, slopes in zip(attention, gradient, strict=True):
        layer = gain(weights, slopes)
        grown = layer + layer.new_ones(layer.shape[-1]).diag() if grown is None else grown + layer @ grown
    assert grown is not None  # check_stacks refused an empty stack
    return grown


def gain(attention: "torch.Tensor", gradient: "torch.Tensor") -> "torch.Tensor":
    """Ā of one layer, equation 5: (..., heads, n, n) twice -> (..., n, n), at least float32."""
    import torch

    product = attention * gradient
    product = product if product.dtype == torch.float64 else product.float()
    return product.clamp_min(0).mean(dim=-3)


def relevant_row(read: "torch.Tensor", layers: "Sequence[tuple[torch.Tensor, torch.Tensor]]") -> "torch.Tensor":
    """read R for row weights read (b, n), without R: from the last layer down, r ← r + r Ā. (b, n) float64.

    `layers`: each layer's attention and gradient, (b, heads, n, n), the layer next to the input first.
    """
    import torch

    row = read.double()
    for attention, gradient in reversed(layers):
        row = row + torch.einsum("bi,bij->bj", row, gain(attention, gradient).double())
    return row


def relevance_row(found: Backward, read: "torch.Tensor") -> "torch.Tensor":
    """The row that the head reads, its own entry with the identity's 1, (b, n) float64."""
    pairs = [(layer.weights, layer.of["weights"]) for layer in found.layers if layer.weights is not None]
    return relevant_row(read, pairs)


def check_stacks(attention: "torch.Tensor", gradient: "torch.Tensor") -> None:
    """UsageError unless these are two stacks of square maps of one shape, weights not negative, nothing undefined."""
    import torch

    if not isinstance(attention, torch.Tensor) or not isinstance(gradient, torch.Tensor):
        kinds = f"{type(attention).__name__} and {type(gradient).__name__}"
        raise UsageError(f"relevance: attention and gradient are {kinds}, expected two NumPy arrays or two tensors")
    shape = tuple(attention.shape)
    if len(shape) != STACK or shape[-1] != shape[-2] or 0 in shape:
        raise UsageError(
            f"relevance: attention has shape {shape}, expected (layers, heads, n, n); stack the layers, the one next "
            "to the input first, one text at a time"
        )
    if tuple(gradient.shape) != shape:
        raise UsageError(f"relevance: gradient has shape {tuple(gradient.shape)}, expected attention's, {shape}")
    if not bool((attention >= 0).all()):
        raise UsageError("relevance: attention holds negative or undefined weights; pass it as it is after the softmax")
    if not bool(gradient.isfinite().all()):
        raise UsageError("relevance: gradient holds undefined or infinite numbers; take it in float32 or float64")
