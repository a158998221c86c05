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
    head h // groups. `mask`: bool (True: may be seen) or additive, broadcastable to (b, heads, n, m), None where every
    key is seen; `causal`: and none behind the query. Scores are `query @ key * scaling`, then `softcap`, then `mask`;
    `sinks` (heads,) take part of each row's weight and give nothing.

    A layer that is watched at its softmax has `observed` weights (b, heads, n, m), no query and no key; the model goes
    on with the weights that stand in `observed` once the callbacks are through, and `value` is known from then on.
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
        asking = self.query if self.observed is None else self.observed
        shared = self.value if self.key is None else self.key
        return 1 if asking is None or shared is None else asking.shape[1] // shared.shape[1]

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
        """What goes into the softmax, (b, heads, rows, m), at least float32; -inf where a key may not be seen."""
        import torch

        query, key = at_least_float32(self.queries()[:, :, rows]), at_least_float32(self._known("key"))
        scores = times_shared(query, key.transpose(-1, -2)) * self.scaling
        if self.softcap is not None:
            scores = torch.tanh(scores / self.softcap) * self.softcap
        if self.mask is not None:
            mask = self.mask[..., rows, :] if self.mask.shape[-2] > 1 else self.mask
            scores = (scores if mask.dtype == torch.bool else scores + mask).masked_fill(hidden(mask), -torch.inf)
        if self.causal:
            scores = scores.masked_fill(self._future()[rows], -torch.inf)
        return scores

    def _future(self) -> "torch.Tensor":
        """Keys that stand behind each query, (n, m) bool."""
        import torch

        query, key = self.queries(), self._known("key")
        seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
        return ~seen

    def weights(self, rows: slice = slice(None)) -> "torch.Tensor":
        """Attention weights (b, heads, rows, m): padded and future keys 0, rows that see no key 0, else sums of 1.

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
        fused = self._whole is None and self.observed is None and self.softcap is None and self.sinks is None
        value = self._known("value")
        return self._fused() if fused else times_shared(self.weights().to(value.dtype), value)

    def _fused(self) -> "torch.Tensor":
        import torch
        from torch.nn.functional import scaled_dot_product_attention

        mask, causal = self.mask, self.causal
        if mask is not None and causal:  # the kernel takes one of the two (a decoder's position bias)
            future = self._future()
            mask, causal = mask & ~future if mask.dtype == torch.bool else mask.masked_fill(future, -torch.inf), False
        query, key, value = self.queries(), self._known("key"), self._known("value")
        # Shared heads cost no copies on a CPU; elsewhere a mask beside them falls back to the kernel that holds n x n.
        shares = self.groups > 1 and (mask is None or query.device.type == "cpu")
        if not shares:
            key, value = self.keys(), self.values()
        return scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, scale=self.scaling, enable_gqa=shares
        )

    def forget(self) -> None:
        """Let go of the weights once the model has passed on."""
        self._whole = None


def times_shared(rows: "torch.Tensor", shared: "torch.Tensor") -> "torch.Tensor":
    """Product by heads that query heads share, without repeating them: (b, H, n, k), (b, G, k, m) -> (b, H, n, m)."""
    if rows.shape[1] == shared.shape[1]:
        return rows @ shared
    return (rows.reshape(*shared.shape[:2], -1, rows.shape[-1]) @ shared).reshape(*rows.shape[:-1], shared.shape[-1])


def hidden(mask: "torch.Tensor") -> "torch.Tensor":
    """Where a mask, or scores, hide a key: False of a boolean one, else what is near its type's least number."""
    import torch

    return ~mask if mask.dtype == torch.bool else mask <= torch.finfo(mask.dtype).min / 2


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
