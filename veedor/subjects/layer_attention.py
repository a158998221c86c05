"""One attention layer of one forward pass, as it is seen from inside: queries, keys, values, mask, and the weights.

Weights are computed when they are asked for, for all query rows or for a block of them, and nothing is kept.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class LayerAttention:
    """What passes through an attention layer; hold on to it and you hold on to its tensors.

    `index` counts the layers of this forward in the order of their calls, `module` is the layer's name in the model.
    `query` (b, heads, n, d), `key` and `value` (b, key heads, m, d) are as the model made them; query head h reads key
    head h // groups. None where only the softmax was seen. `mask`: bool (True: may be seen) or additive, broadcastable to (b, heads, n, n), None where every
    key is seen; `causal`: and none behind the query. Scores are `query @ key * scaling`, then `softcap`, then `mask`;
    `sinks` (heads,) take part of each row's weight and give nothing.
    """

    index: int
    module: str
    kind: Literal["self", "cross"]
    query: "torch.Tensor | None" = None
    key: "torch.Tensor | None" = None
    value: "torch.Tensor | None" = None
    mask: "torch.Tensor | None" = None
    causal: bool = False
    scaling: float = 1.0
    softcap: float | None = None
    sinks: "torch.Tensor | None" = None
    observed: "torch.Tensor | None" = None
    _whole: "torch.Tensor | None" = field(default=None, repr=False)

    @property
    def groups(self) -> int:
        """How many query heads share a key head (grouped-query attention); 1 where none do."""
        return 1 if self.query is None or self.key is None else self.query.shape[1] // self.key.shape[1]

    def keys(self) -> "torch.Tensor":
        """The keys, repeated for every query head that reads them: (b, heads, m, d)."""
        return repeated(self._known("key"), self.groups)

    def values(self) -> "torch.Tensor":
        """The values, repeated for every query head that reads them: (b, heads, m, d)."""
        return repeated(self._known("value"), self.groups)

    def queries(self) -> "torch.Tensor":
        """The queries, (b, heads, n, d)."""
        return self._known("query")

    def _known(self, name: str) -> "torch.Tensor":
        tensor: torch.Tensor | None = getattr(self, name)
        if tensor is None:
            raise ValueError(
                f"layer {self.index} ({self.module}) was seen by its softmax only, so its {name} is not known; ask for "
                "its weights"
            )
        return tensor

    def scores(self, rows: slice = slice(None)) -> "torch.Tensor":
        """What goes into the softmax, (b, heads, rows, n), at least float32; -inf where a key may not be seen."""
        import torch

        query, key = at_least_float32(self.queries()[:, :, rows]), at_least_float32(self.keys())
        scores = query @ key.transpose(-1, -2) * self.scaling
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        if self.mask is not None:
            mask = self.mask[..., rows, :] if self.mask.shape[-2] > 1 else self.mask
            scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        if self.causal:
            at = torch.arange(self.queries().shape[-2], device=scores.device)
            scores = scores.masked_fill(at[None, : key.shape[-2]] > at[rows, None], -torch.inf)
        return scores.masked_fill(scores <= torch.finfo(scores.dtype).min / 2, -torch.inf)

    def weights(self, rows: slice = slice(None)) -> "torch.Tensor":
        """Attention weights (b, heads, rows, n): padded and future keys 0, rows that see no key 0, else sums of 1.

        A row of a layer with sinks sums to less than 1. Differentiable; where all rows are asked for inside a capture,
        the model goes on with these very weights, so that gradients reach them.
        """
        known = self._whole if self.observed is None else self.observed
        if known is not None:
            return known if rows == slice(None) else known[:, :, rows]
        found = softmax_seen(self.scores(rows), self.sinks)
        if rows == slice(None):
            self._whole = found
        return found

    def output(self) -> "torch.Tensor":
        """Weights times values, (b, heads, n, d): by the fused kernel where nobody asked for the weights."""
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        query, key, values = self.queries(), self.keys(), self.values()
        if self._whole is None and self.softcap is None and self.sinks is None:
            return scaled_dot_product_attention(
                query, key, values, attn_mask=self.mask, is_causal=self.causal, scale=self.scaling
            )
        result: torch.Tensor = self.weights().to(values.dtype) @ values
        return result

    def forget(self) -> None:
        """Let go of the weights once the model has passed on."""
        self._whole = None


def repeated(heads: "torch.Tensor", groups: int) -> "torch.Tensor":
    """Each key head as often as query heads read it: (b, key heads, m, d) -> (b, heads, m, d)."""
    return heads if groups == 1 else heads.repeat_interleave(groups, dim=1)


def at_least_float32(tensor: "torch.Tensor") -> "torch.Tensor":
    """Half precision widened: rows of 12 layers of bfloat16 weights are off by 2e-3."""
    import torch

    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def softmax_seen(scores: "torch.Tensor", sinks: "torch.Tensor | None" = None) -> "torch.Tensor":
    """Softmax over the last dimension in which -inf gets exactly 0 and a row of nothing but -inf is 0, not NaN."""
    import torch

    blind = (scores == -torch.inf).all(dim=-1, keepdim=True)
    scores = scores.masked_fill(blind, 0.0)
    if sinks is not None:
        sink = sinks.to(scores.dtype).reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat((scores, sink), dim=-1)
    weights = scores.softmax(dim=-1).masked_fill(blind, 0.0)
    return weights[..., :-1] if sinks is not None else weights
