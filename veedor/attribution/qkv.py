"""Gradients of queries, keys and values, beside the attention they make: do attended tokens also move the output?

For every layer, head and token: the L2 norm of the score's gradient at the token's query, key and value, as the
attention function receives them (after rotary positions). A value's gradient is sum_i A[i, j] ∂F/∂o_i over the rows i
that read it, so the attention weight is part of it already; a query's says how much what the token reads matters, a
key's how much being read more or less would. Key heads that several query heads share have one gradient, that of all
their readers. Where attention and value gradients rank tokens differently, attention does not tell what matters.

The score of a token is the L2 norm over heads of one part's gradient (the value's unless the settings say otherwise),
mean over layers: unsigned. Models of which only the softmax is seen are refused.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from veedor.attribution.backward import Backward, Wanted

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch

Part = Literal["query", "key", "value"]
ALL = Wanted(seen=frozenset({"query", "key", "value", "weights"}))
FEWEST = 3  # tokens: two of them rank alike or opposite by chance


@dataclass(frozen=True, eq=False)
class QkvGradients:
    """One text's gradient norms by layer, head and token, float64, and the attention that each token receives.

    `query` (layers, heads, n); `key`, `value` (layers, key heads, n); `read` (layers, heads, n): weight of the token in
    the row (or mean of rows) that the classifier's head reads; `received` (layers, heads, n): mean weight of the token
    over the rows of all real tokens.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    read: np.ndarray
    received: np.ndarray

    def agreement(self, attention: Literal["received", "read"] = "received") -> list[float | None]:
        """Spearman's correlation, layer by layer, of attention and value gradient over tokens.

        Mean attention over heads against the L2 norm over heads. None where a layer has fewer than 3 tokens, or gives
        all of them the same.
        """
        weights = self.received if attention == "received" else self.read
        moved = np.sqrt((self.value**2).sum(axis=1))
        return [rank_correlation(*pair) for pair in zip(weights.mean(axis=1), moved, strict=True)]


def wanted(part: Part) -> Wanted:
    """The gradients of one part in every layer."""
    return Wanted(seen=frozenset({part}))


def token_norms(found: Backward, part: Part) -> "torch.Tensor":
    """L2 norm over heads and their dimensions of one part's gradient, mean over layers, (b, n) float64."""
    import torch

    norms = [layer.of[part].double().square().sum(dim=(1, 3)).sqrt() for layer in found.layers]
    return torch.stack(norms).mean(dim=0)


def by_head(found: Backward, batch: "Batch", read: "torch.Tensor") -> list[QkvGradients]:
    """The full structure of every text of a batch, padding cut off; `read` (b, n) float64: weights of rows."""
    import torch

    real = batch.mask.bool()
    every = real.double() / real.sum(dim=1, keepdim=True)
    maps = [layer.weights.double() for layer in found.layers if layer.weights is not None]
    parts = {part: _stacked([layer.of[part].double().norm(dim=-1) for layer in found.layers]) for part in _PARTS}
    rows = {
        name: _stacked([torch.einsum("bi,bhij->bhj", weight, own) for own in maps])
        for name, weight in (("read", read), ("received", every))
    }
    kept = real.cpu().numpy()
    return [
        QkvGradients(**{name: values[place][:, :, kept[place]] for name, values in (parts | rows).items()})
        for place in range(len(kept))
    ]


_PARTS: tuple[Part, ...] = ("query", "key", "value")


def _stacked(layers: "list[torch.Tensor]") -> np.ndarray:
    """(b, heads, n) a layer -> (b, layers, heads, n)."""
    import torch

    return torch.stack(layers, dim=1).cpu().numpy()


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    """Spearman's correlation of two vectors (n,); None under 3 entries, or where one of them is constant."""
    from scipy.stats import spearmanr

    if len(one) < FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(spearmanr(one, other).statistic)
