"""What is kept of one attention layer so that row weights can be sent down through it after the forward pass.

Three ways, for the same numbers. Short texts: the fused map itself. Longer ones with heads averaged: queries and keys
with the log-sum-exp of each row, from which exp(q·k - lse) makes a block of weights at a time, in one product. All else
(max, min, discard, soft caps, sinks): blocks of weights as the softmax gives them.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from veedor.attribution.masks import Sight
from veedor.attribution.rollout import Mixing, mix, refuse_empty

if TYPE_CHECKING:
    import torch

    from veedor.subjects import LayerAttention

BLOCK_WEIGHTS = 2**21  # attention weights that are held at a time: 8 MiB of float32
TALL = 256  # rows of a block worth having before several heads are taken together
NOTHING = -1e30  # exp of it, whatever is added to it, is 0; infinities could meet and make NaN


class HeadRows(Protocol):
    """A layer that can be asked for some rows of its heads' maps."""

    def weights(self, rows: slice) -> "torch.Tensor":
        """Attention weights of these query rows, (b, heads, rows, n)."""


class Kept(Protocol):
    """One layer that row weights can go down through."""

    def below(self, through: "torch.Tensor") -> "torch.Tensor":
        """Weights of this layer's inputs from weights of its outputs, (b, n) -> (b, n) float64."""


@dataclass(eq=False)
class WholeMap:
    """The mixed map of short texts, (b, n, n); rows without any weight are 0, and refused where something flows."""

    mixed: "torch.Tensor"
    number: int

    def below(self, through: "torch.Tensor") -> "torch.Tensor":
        """One product."""
        refuse_empty((through > 0) & ~self.mixed.any(dim=-1), layer=self.number)
        return (through.to(self.mixed.dtype)[:, None] @ self.mixed)[:, 0].double()


@dataclass(eq=False)
class InBlocks:
    """A layer whose weights are asked for a block of rows at a time; rows that nothing flows through are not."""

    layer: HeadRows
    mixing: Mixing
    real: "torch.Tensor"
    number: int
    block: int

    def below(self, through: "torch.Tensor") -> "torch.Tensor":
        """Fuse, mix and sum block by block."""
        import torch

        below = torch.zeros_like(through)
        for first in range(0, through.shape[-1], self.block):
            own = through[:, first : first + self.block]
            if bool(own.any()):
                heads = self.layer.weights(slice(first, first + self.block))
                mixed = mix(heads, self.mixing, layer=self.number, first=first, real=self.real, used=own > 0)
                below += torch.einsum("bi,bij->bj", own.to(mixed.dtype), mixed).double()
        return below


@dataclass(eq=False)
class Fused:
    """Queries with their row's -lse as a feature more, (b, key heads, groups, n, d + 1), and keys with a 1.

    Where heads are averaged, row weights w become Σ_h Σ_i w_i exp(q_hi·k_hj - lse_hi) / heads, never held but for a
    block of rows. `mask` (b, 1, n, n) bool only where a token's sight is neither all nor the past.
    """

    query: "torch.Tensor"
    key: "torch.Tensor"
    real: "torch.Tensor"
    sight: Sight
    residual: float
    mask: "torch.Tensor | None" = None

    def below(self, through: "torch.Tensor") -> "torch.Tensor":
        """Only rows that something flows through are made, and only the columns that they may see."""
        import torch

        rows = through.any(dim=0).nonzero()
        drawn = torch.zeros_like(through)
        if len(rows):
            self._add(drawn, through, int(rows[0]), int(rows[-1]) + 1)
        heads = self.query.shape[1] * self.query.shape[2]
        drawn = (drawn / heads).masked_fill(~self.real, 0.0)
        return (1 - self.residual) * drawn + self.residual * through

    def _add(self, drawn: "torch.Tensor", through: "torch.Tensor", start: int, stop: int) -> None:
        import torch

        texts, key_heads, groups, n = self.query.shape[:4]
        query, key = self.query.flatten(0, 1), self.key.flatten(0, 1)
        of = torch.arange(texts, device=key.device).repeat_interleave(key_heads)
        room = self.query.new_empty(max(BLOCK_WEIGHTS, groups * n))
        together = min(len(key), max(1, BLOCK_WEIGHTS // (groups * n * min(TALL, stop - start))))
        block = max(1, len(room) // (together * groups * n))
        for one in range(0, len(key), together):
            part = slice(one, one + together)
            for first in range(start, stop, block):
                rows = slice(first, min(first + block, stop))
                low, high = self._columns(rows)
                wanted = query[part, :, rows].flatten(1, 2)
                weights = room[: wanted.shape[0] * wanted.shape[1] * (high - low)].view(*wanted.shape[:2], high - low)
                torch.bmm(wanted, key[part, low:high].transpose(1, 2), out=weights).exp_()
                self._hide(weights.view(len(wanted), groups, -1, high - low), of[part], rows, low, high)
                flowing = through[of[part], rows].to(weights.dtype).repeat(1, groups)
                drawn[:, low:high].index_add_(0, of[part], (flowing[:, None] @ weights)[:, 0].double())

    def _columns(self, rows: slice) -> tuple[int, int]:
        """The range of columns that these rows may see."""
        if self.sight == "past":
            return 0, rows.stop
        if self.mask is None:
            return 0, self.key.shape[2]
        seen = self.mask[:, 0, rows].any(dim=1).any(dim=0).nonzero()
        return (int(seen[0]), int(seen[-1]) + 1) if len(seen) else (0, 1)

    def _hide(self, weights: "torch.Tensor", of: "torch.Tensor", rows: slice, low: int, high: int) -> None:
        """Set to 0 what these rows, (parts, groups, rows, columns), may not see."""
        import torch

        if self.sight == "past":
            count = rows.stop - rows.start
            future = torch.ones(count, count, dtype=torch.bool, device=weights.device).triu(1)
            weights[..., rows.start - low :].masked_fill_(future, 0.0)
        elif self.mask is not None:
            weights.masked_fill_(~self.mask[of, :, rows, low:high], 0.0)


def keep_fused(
    layer: "LayerAttention", sums: "torch.Tensor", *, real: "torch.Tensor", sight: Sight, residual: float
) -> Fused:
    """Keep copies of queries and keys (the model's own may hang on larger tensors), with log-sums (b, heads, n)."""
    import torch

    query, key = layer.queries(), layer.key
    assert key is not None  # a layer that fits the kernel
    sound = real[:, None, :] & sums.isfinite()
    shift = torch.where(sound, -sums, NOTHING).to(query.dtype)
    seen = None if sight != "other" or layer.mask is None else layer.mask.expand(len(real), 1, *layer.mask.shape[-2:])
    wide, ones = (each.new_empty(*each.shape[:-1], each.shape[-1] + 1) for each in (query, key))
    torch.mul(query, layer.scaling, out=wide[..., :-1])  # into place: a product beside it would be a third copy
    wide[..., -1] = shift
    ones[..., :-1], ones[..., -1] = key, 1.0
    return Fused(
        query=wide.view(len(wide), key.shape[1], -1, *wide.shape[2:]),
        key=ones,
        real=real,
        sight=sight,
        residual=residual,
        mask=seen,
    )
