"""Attention flow (Abnar and Zuidema, 2020, section 3.2): the largest flow that attention lets pass, pair by pair.

Layers are a network whose pipes are as wide as attention with its residual stream; what output i can draw from input j
is the largest flow from (last layer, i) to input j, one pair at a time. Blind to values and MLPs, without a target,
never negative. Pure functions of arrays: nothing here knows a model, and no network is solved where bounds settle it.
"""

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch

Array = TypeVar("Array", "np.ndarray", "torch.Tensor")
WIDEST = 1.01  # the largest sum of a row of attention, with room for half precision
SETTLED = 1e-12  # bounds nearer than this differ by rounding only
MAPS, LAYERS_OF_HEADS = 3, 4  # dimensions of (layers, n, n) and of (layers, heads, n, n)


def attention_flow(attention: Array, *, residual: float = 0.5, normalise: bool = True) -> Array:
    """Flow from every input to every output: n · n maximum flows through the heads' mean attention and the residual.

    (layers, heads, n, n) or (layers, n, n) -> (n, n); the layer next to the input comes first; [i, j] is what output i
    can draw from input j, 0 to 1. `normalise`: divide each row by its sum, as the authors' code does. Raw flows are
    off by less than 1e-6. NumPy in, NumPy out (float64); torch in, torch out, both at least float32.

    >>> first, second = [[0.2, 0.8], [1.0, 0.0]], [[0.5, 0.5], [0.1, 0.9]]
    >>> attention_flow(np.array([first, second]), residual=0.0, normalise=False).round(3).tolist()
    [[0.7, 0.5], [1.0, 0.1]]
    """
    widths = widths_of(attention, residual)
    below = cuts_below(widths)
    rows = [row_of(widths, row, below, normalise=normalise) for row in range(widths.shape[-1])]
    return _like(attention, np.stack(rows))


def flow_row(attention: Array, row: int, *, residual: float = 0.5, normalise: bool = True) -> Array:
    """One row of `attention_flow`, at an n-th of its cost: what output `row` can draw from each input, (n,)."""
    widths = widths_of(attention, residual)
    n = widths.shape[-1]
    if not -n <= row < n:
        raise UsageError(f"attention_flow: row is {row}, expected one of {n} outputs, 0 to {n - 1} (or -1, the last)")
    return _like(attention, row_of(widths, row % n, cuts_below(widths), normalise=normalise))


def widths_of(attention: "np.ndarray | torch.Tensor", residual: float) -> np.ndarray:
    """How wide each pipe is: (1 - residual) mean of heads + residual I, (layers, n, n) float64."""
    if not 0 <= residual <= 1:
        raise UsageError(f"attention_flow: residual is {residual}, expected a share from 0 to 1 (the paper's is 0.5)")
    given = attention if isinstance(attention, np.ndarray) else attention.detach().cpu().double().numpy()
    if given.ndim not in (MAPS, LAYERS_OF_HEADS) or given.shape[-1] != given.shape[-2] or 0 in given.shape:
        raise UsageError(
            f"attention_flow: attention has shape {tuple(given.shape)}, expected (layers, heads, n, n) or "
            "(layers, n, n); stack the layers, the one next to the input first, one text at a time"
        )
    maps = given.astype(np.float64)
    if not ((maps >= 0).all() and (maps.sum(axis=-1) <= WIDEST).all()):
        raise UsageError(
            "attention_flow: attention holds negative or undefined weights, or a row that sums to more than 1; pass it "
            "as it is after the softmax"
        )
    fused = maps if maps.ndim == MAPS else maps.mean(axis=1)
    mixed: np.ndarray = (1 - residual) * fused + residual * np.eye(fused.shape[-1])
    return mixed


def row_of(widths: np.ndarray, row: int, below: list[np.ndarray], *, normalise: bool = True) -> np.ndarray:
    """Maximum flow from output `row` to each input, (n,) float64; `below` is that of `cuts_below`."""
    low, high = bounds(widths, row, below)
    flows = high.copy()
    unsettled = np.flatnonzero(high - low > SETTLED)
    if len(unsettled):
        from veedor.attribution.flow_network import settle

        flows[unsettled] = settle(widths, row, unsettled, high[unsettled])
    total = flows.sum()
    if normalise and total <= 0:
        raise UsageError(
            f"attention_flow: output {row} draws nothing from any input, so its row cannot be made to sum to 1; use a "
            "residual above 0 or normalise=False"
        )
    return flows / total if normalise else flows


def bounds(widths: np.ndarray, row: int, below: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What the flow from output `row` to each input is at least and at most, (n,) each; equal up to two layers.

    At most Σ_k min(above_k, below_kj) for every layer of nodes k: what passes k can neither exceed what reaches it nor
    what leaves it for j. At least what gets through the last step if all above it split up as attention does.
    """
    above = split = widths[-1][row]
    if len(widths) == 1:
        return above, above.copy()
    high = np.full(len(above), np.inf)
    for number in range(len(widths) - 1, 0, -1):
        high = np.minimum(high, _narrowest(above, below[number - 1]))
        if number > 1:
            above, split = _narrowest(above, widths[number - 1]), split @ widths[number - 1]
    return _narrowest(np.minimum(split, 1.0), widths[0]), high


def cuts_below(widths: np.ndarray) -> list[np.ndarray]:
    """For each layer of nodes but the top: at most how much node k can send on to input j, (n, n); O(layers n³)."""
    below = [widths[0]]
    for layer in widths[1:-1]:
        below.append(np.stack([_narrowest(row, below[-1]) for row in layer]))
    return below


def _narrowest(first: np.ndarray, then: np.ndarray) -> np.ndarray:
    """Σ_k min(first_k, then_kj): (n,), (n, n) -> (n,). Two steps let this much pass."""
    passed: np.ndarray = np.minimum(first[:, None], then).sum(axis=0)
    return passed


def _like(attention: Array, flows: np.ndarray) -> Array:
    """The flows as the kind of array that the attention came as."""
    if isinstance(attention, np.ndarray):
        return flows
    import torch

    kept = attention.dtype if attention.dtype in (torch.float32, torch.float64) else torch.float32
    return torch.from_numpy(flows).to(device=attention.device, dtype=kept)
