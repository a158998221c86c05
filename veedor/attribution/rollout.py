"""Attention rollout (Abnar and Zuidema, 2020, section 3, equation 1).

How much of each input token reaches each output token if attention were all that mixed them. Blind to values and MLPs,
without a target, and never negative: it shows where from, not for or against. Max and min fusion and the discard ratio
are later additions by others, not the paper's. Pure functions of arrays: nothing here knows a model.
"""

from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from veedor.errors import UsageError, unknown

if TYPE_CHECKING:
    import torch

Fusion = Literal["mean", "max", "min"]
FUSIONS: tuple[Fusion, ...] = ("mean", "max", "min")
Array = TypeVar("Array", "np.ndarray", "torch.Tensor")
MAPS, LAYERS_OF_HEADS = 3, 4  # dimensions of (layers, n, n) and of (layers, heads, n, n)


def rollout(attention: Array, *, residual: float = 0.5, fusion: Fusion = "mean", discard: float = 0.0) -> Array:
    """Flow from every input to every output: R = A_L … A_2 A_1, A_l = (1 - residual) fused attention_l + residual I.

    (layers, heads, n, n) or (layers, n, n) -> (n, n); the layer next to the input comes first, rows sum to 1, R[i, j]
    is what output i draws from input j. `discard`: share of the smallest off-diagonal weights of each row set to 0.
    NumPy in, NumPy out; torch in, torch out. Accumulates in float64 for NumPy float64, else at least in float32.

    >>> low, high = [[0, 1, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    >>> rollout(np.array([low, high], dtype=float), residual=0.0).astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    """
    if isinstance(attention, np.ndarray):
        import torch

        kept = np.float64 if attention.dtype == np.float64 else np.float32
        rolled = rollout(torch.from_numpy(attention.astype(kept)), residual=residual, fusion=fusion, discard=discard)
        return rolled.numpy()
    check_options(residual=residual, fusion=fusion, discard=discard)
    check_maps(attention)
    flow = None
    for number, layer in enumerate(in_full_precision(attention)):
        heads = layer if attention.ndim == LAYERS_OF_HEADS else layer[None]
        mixed = mix(heads, layer=number, residual=residual, fusion=fusion, discard=discard)
        flow = mixed if flow is None else mixed @ flow
    assert flow is not None  # check_maps refused an empty stack
    return flow


def mix(
    heads: "torch.Tensor",
    *,
    layer: int,
    residual: float = 0.5,
    fusion: Fusion = "mean",
    discard: float = 0.0,
    real: "torch.Tensor | None" = None,
) -> "torch.Tensor":
    """One layer's map with its residual stream: (..., heads, n, n) -> (..., n, n), rows sum to 1.

    `real` (..., n) marks the tokens that are no padding: a row of padding may hold zeros, a column of it is not counted
    by `discard`. `layer` only names the culprit where a row cannot be made to sum to 1.
    """
    import torch

    fused = fuse_heads(heads, fusion)
    if discard:
        fused = drop_smallest(fused, discard, real=real)
    mixed = (1 - residual) * fused + residual * torch.eye(fused.shape[-1], dtype=fused.dtype, device=fused.device)
    if fusion == "mean" and not discard:
        return mixed  # a mean of rows that sum to 1 sums to 1
    return rows_to_one(mixed, layer=layer, real=real)


def fuse_heads(heads: "torch.Tensor", fusion: Fusion) -> "torch.Tensor":
    """(..., heads, n, n) -> (..., n, n) by mean, maximum or minimum over the heads; not renormalised."""
    if fusion == "mean":
        return heads.mean(dim=-3)
    return heads.amax(dim=-3) if fusion == "max" else heads.amin(dim=-3)


def drop_smallest(fused: "torch.Tensor", discard: float, *, real: "torch.Tensor | None" = None) -> "torch.Tensor":
    """Set the smallest share of each row's off-diagonal weights to 0, rounded down; ties by position. (..., n, n)."""
    import torch

    size = fused.shape[-1]
    candidate = ~torch.eye(size, dtype=torch.bool, device=fused.device).expand_as(fused)
    if real is not None:
        candidate = candidate & real[..., None, :]
    order = fused.masked_fill(~candidate, torch.inf).argsort(dim=-1, stable=True)
    rank = torch.empty_like(order).scatter_(-1, order, torch.arange(size, device=fused.device).expand_as(order))
    number = torch.floor(candidate.sum(dim=-1, keepdim=True) * discard + 1e-9)  # .29 * 100 is 28.999...
    return fused.masked_fill(candidate & (rank < number), 0.0)


def rows_to_one(mixed: "torch.Tensor", *, layer: int, real: "torch.Tensor | None" = None) -> "torch.Tensor":
    """Divide each row by its sum; UsageError names the layer and the row that has nothing to divide."""
    total = mixed.sum(dim=-1, keepdim=True)
    empty = total[..., 0] <= 0
    if real is not None:
        empty = empty & real
    if bool(empty.any()):
        row = int(empty.nonzero()[0, -1])
        raise UsageError(
            f"rollout: row {row} of layer {layer} holds only zeros after fusing and discarding, so it cannot be made "
            "to sum to 1; use fusion='mean', a residual above 0 or a smaller discard"
        )
    return mixed / total.masked_fill(total <= 0, 1.0)


def check_options(*, residual: float, fusion: str, discard: float) -> None:
    """UsageError where an option is outside its range."""
    if fusion not in FUSIONS:
        raise UsageError(unknown("fusion", fusion, FUSIONS))
    if not 0 <= residual <= 1:
        raise UsageError(f"rollout: residual is {residual}, expected a share between 0 and 1 (0.5 is the paper's)")
    if not 0 <= discard < 1:
        raise UsageError(f"rollout: discard is {discard}, expected a share from 0 up to, not including, 1")


def check_maps(attention: "torch.Tensor") -> None:
    """UsageError unless this is a non-empty stack of square maps of non-negative weights."""
    shape = tuple(attention.shape)
    if attention.ndim not in (MAPS, LAYERS_OF_HEADS) or shape[-1] != shape[-2] or 0 in shape:
        raise UsageError(
            f"rollout: attention has shape {shape}, expected (layers, heads, n, n) or (layers, n, n); "
            "stack the layers, the one next to the input first, one text at a time"
        )
    if not bool((attention >= 0).all()):
        raise UsageError("rollout: attention holds negative or undefined weights; pass it as it is after the softmax")


def in_full_precision(attention: "torch.Tensor") -> "torch.Tensor":
    """Half precision loses row sums (2e-3 over 12 layers in bfloat16): float32 at least."""
    return attention.float() if attention.element_size() < 4 or not attention.is_floating_point() else attention
