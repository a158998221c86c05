"""Attention rollout (Abnar and Zuidema, 2020, section 3, equation 1).

How much of each input token reaches each output token if attention were all that mixed them. Blind to values and MLPs,
without a target, and never negative: it shows where from, not for or against. Max and min fusion and the discard ratio
are later additions by others, not the paper's. Pure functions of arrays: nothing here knows a model.
"""

from dataclasses import dataclass
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
    mixing = Mixing(residual=residual, fusion=fusion, discard=discard)
    check_maps(attention)
    flow = None
    for number, layer in enumerate(in_full_precision(attention)):
        mixed = mix(layer if attention.ndim == LAYERS_OF_HEADS else layer[None], mixing, layer=number)
        flow = mixed if flow is None else mixed @ flow
    assert flow is not None  # check_maps refused an empty stack
    return flow


@dataclass(frozen=True)
class Mixing:
    """How a layer's heads and the residual stream become one map; UsageError where an option is out of range."""

    residual: float = 0.5
    fusion: Fusion = "mean"
    discard: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.fusion not in FUSIONS:
            raise UsageError(unknown("fusion", self.fusion, FUSIONS))
        if not 0 <= self.residual <= 1:
            raise UsageError(f"rollout: residual is {self.residual}, expected a share from 0 to 1 (the paper's is 0.5)")
        if not 0 <= self.discard < 1:
            raise UsageError(f"rollout: discard is {self.discard}, expected a share from 0 up to, not including, 1")


def mix(
    heads: "torch.Tensor",
    mixing: Mixing,
    *,
    layer: int,
    first: int = 0,
    real: "torch.Tensor | None" = None,
    used: "torch.Tensor | None" = None,
) -> "torch.Tensor":
    """Rows of one layer's map with its residual stream: (..., heads, rows, n) -> (..., rows, n), each sums to 1.

    `first`: which row of the map the first of these is. `real` (..., n) marks the columns that are no padding, `used`
    (..., rows) the rows that must be sound. `layer` names the culprit where a row cannot be made to sum to 1.
    """
    import torch

    fused = fuse_heads(heads, mixing.fusion)
    rows = torch.arange(first, first + fused.shape[-2], device=fused.device)
    own = rows[:, None] == torch.arange(fused.shape[-1], device=fused.device)
    if mixing.discard:
        fused = drop_smallest(fused, mixing.discard, own=own, real=real)
    mixed = (1 - mixing.residual) * fused + mixing.residual * own.to(fused.dtype)
    if mixing.fusion == "mean" and not mixing.discard:
        return mixed  # a mean of rows that sum to 1 sums to 1
    return rows_to_one(mixed, layer=layer, first=first, used=used)


def fuse_heads(heads: "torch.Tensor", fusion: Fusion) -> "torch.Tensor":
    """(..., heads, rows, n) -> (..., rows, n) by mean, maximum or minimum over the heads; not renormalised."""
    if fusion == "mean":
        return heads.mean(dim=-3)
    return heads.amax(dim=-3) if fusion == "max" else heads.amin(dim=-3)


def drop_smallest(
    fused: "torch.Tensor", discard: float, *, own: "torch.Tensor", real: "torch.Tensor | None" = None
) -> "torch.Tensor":
    """Set the smallest share of each row's weights but its own (`own`) to 0, rounded down; ties by position."""
    import torch

    candidate = ~own.expand_as(fused)
    if real is not None:
        candidate = candidate & real[..., None, :]
    order = fused.masked_fill(~candidate, torch.inf).argsort(dim=-1, stable=True)
    places = torch.arange(fused.shape[-1], device=fused.device).expand_as(order)
    rank = torch.empty_like(order).scatter_(-1, order, places)
    number = torch.floor(candidate.sum(dim=-1, keepdim=True) * discard + 1e-9)  # .29 * 100 is 28.999...
    return fused.masked_fill(candidate & (rank < number), 0.0)


def rows_to_one(
    mixed: "torch.Tensor", *, layer: int, first: int = 0, used: "torch.Tensor | None" = None
) -> "torch.Tensor":
    """Divide each row by its sum; UsageError names the layer and the row that has nothing to divide."""
    total = mixed.sum(dim=-1, keepdim=True)
    empty = total[..., 0] <= 0
    if used is not None:
        empty = empty & used
    refuse_empty(empty, layer=layer, first=first)
    return mixed / total.masked_fill(total <= 0, 1.0)


def refuse_empty(empty: "torch.Tensor", *, layer: int, first: int = 0) -> None:
    """UsageError that names the layer and the first row, counted from `first`, that is `empty` (..., rows)."""
    if bool(empty.any()):
        raise UsageError(
            f"rollout: row {first + int(empty.nonzero()[0, -1])} of layer {layer} holds only zeros after fusing and "
            "discarding, so it cannot be made to sum to 1; use fusion='mean', a residual above 0 or a smaller discard"
        )


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
