"""Rollout of one head, and what a decoder's mask alone makes of rollout (Abnar and Zuidema, 2020, sections 3, 5, A.1).

Causal rollout measures position first: every layer can only pass weight towards the first token, whatever a model has
learned. The paper asks to "normalize based on the receptive field of attention" and gives no formula; here are a
comparison with uniform attention and a rule by columns, under names of their own. Pure functions of arrays.
"""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from veedor.attribution.rollout import LAYERS_OF_HEADS, Fusion, rollout
from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", "np.ndarray", "torch.Tensor")


def rollout_of_head(
    attention: Array,
    head: int,
    layer: int = -1,
    *,
    residual: float = 0.5,
    fusion: Fusion = "mean",
    discard: float = 0.0,
) -> Array:
    """Rollout of one head: its own mixed map of one layer times the rollout of fused heads below (appendix A.1).

    (layers, heads, n, n) -> (n, n); rows sum to 1. `head` and `layer` count from 0, the layer next to the input, or
    from -1 backwards. Not the product of head k with head k: layers below are treated as having a single head.

    >>> low = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])  # two heads
    >>> high = np.array([[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    >>> rollout_of_head(np.stack([low, high]), 1, residual=0.0).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    if attention.ndim != LAYERS_OF_HEADS:
        raise UsageError(f"rollout: attention has shape {tuple(attention.shape)}, expected (layers, heads, n, n)")
    for name, number, count in (("layer", layer, attention.shape[0]), ("head", head, attention.shape[1])):
        if not -count <= number < count:
            raise UsageError(f"rollout: {name} {number} of {count}; expected 0 to {count - 1}, or from -1 backwards")
    top = range(attention.shape[0])[layer]
    own = range(attention.shape[1])[head]
    above = rollout(attention[top : top + 1, own : own + 1], residual=residual, fusion=fusion, discard=discard)
    return above if top == 0 else above @ rollout(attention[:top], residual=residual, fusion=fusion, discard=discard)


def uniform_causal(n: int, layers: int, residual: float = 0.5) -> np.ndarray:
    """Rollout of a decoder that looks at everything behind it alike, P[i, j] = 1 / (i + 1) for j ≤ i: (n, n) float64.

    What of a decoder's rollout is position: read R minus this.

    >>> uniform_causal(2, 1, residual=0.0).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    >>> float(uniform_causal(15, 8)[-1, 0].round(3))
    0.575
    """
    if n < 1 or layers < 1 or not 0 <= residual <= 1:
        raise UsageError(
            f"uniform_causal: n = {n}, layers = {layers}, residual = {residual}; expected 1 or more, 1 or more, 0 to 1"
        )
    uniform = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
    mixed: np.ndarray = np.linalg.matrix_power((1 - residual) * uniform + residual * np.eye(n), layers)
    return mixed


def uniform_causal_row(start: np.ndarray, layers: int, *, residual: float = 0.5) -> np.ndarray:
    """`start @ uniform_causal(n, layers, residual)` for row weights (n,), without the map: (n,) float64."""
    flow, share = np.asarray(start, dtype=np.float64), 1.0 / np.arange(1, len(start) + 1)
    for _ in range(layers):
        flow = (1 - residual) * np.cumsum((flow * share)[::-1])[::-1] + residual * flow
    return flow


def by_receptive_field(flow: Array) -> Array:
    """Divide column j by the number of queries that may see it, n - j under a causal mask; then rows to sum to 1.

    (n, n) lower triangular -> (n, n). UsageError where something flows from the future: without a causal mask every
    query sees every column, and there is nothing to divide by. Rows of zeros stay.

    >>> by_receptive_field(np.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
    [[1.0, 0.0], [0.3333, 0.6667]]
    """
    n = flow.shape[-1]
    if flow.ndim != 2 or flow.shape[0] != n:
        raise UsageError(f"by_receptive_field: flow has shape {tuple(flow.shape)}, expected (n, n)")
    if isinstance(flow, np.ndarray):
        if np.triu(flow, 1).any():
            raise UsageError("by_receptive_field: something flows from the future; this rule is for causal masks")
        return np.apply_along_axis(receptive_row, 1, flow)
    import torch

    return torch.from_numpy(by_receptive_field(flow.detach().cpu().numpy())).to(flow)


def receptive_row(row: np.ndarray) -> np.ndarray:
    """One row of `by_receptive_field`, (n,) -> (n,); a row of zeros stays."""
    divided = row / np.arange(len(row), 0, -1)
    total = divided.sum()
    scaled: np.ndarray = divided / total if total > 0 else divided
    return scaled
