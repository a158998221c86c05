"""What an attention mask amounts to for the tokens of a batch that are no padding.

A padded batch brings n × n masks that say no more than "not the padding" and "not the future". Where that is all, rows
and columns of padding are left out and the mask is not needed any more.
"""

from typing import TYPE_CHECKING, Literal

from veedor.subjects.layer_attention import hidden

if TYPE_CHECKING:
    import torch

    from veedor.subjects import LayerAttention

Sight = Literal["all", "past", "other"]
BATCH_OF_MAPS = 4  # dimensions of (b, heads, n, n)


class Masks:
    """Says once for each mask of a forward pass what it amounts to; layers share masks."""

    def __init__(self, real: "torch.Tensor") -> None:
        """`real` (b, n) bool: the tokens that are no padding."""
        self.real = real
        self._known: list[tuple[torch.Tensor, Sight, bool]] = []

    def sight(self, layer: "LayerAttention") -> Sight:
        """Whether each token sees all tokens of its text, those up to itself, or others."""
        return self._find(layer)[0]

    def blind_to_the_future(self, layer: "LayerAttention") -> bool:
        """Whether no token sees one behind itself."""
        return self._find(layer)[1]

    def _find(self, layer: "LayerAttention") -> "tuple[Sight, bool]":
        if layer.mask is None:
            return ("past" if layer.causal else "all"), layer.causal or self.real.shape[1] == 1
        for mask, known, blind in self._known:
            if mask is layer.mask:
                return known, blind
        found = sight(layer.mask, self.real)
        blind = found == "past" or layer.causal or not bool((~hidden(layer.mask)).triu(1).any())
        self._known.append((layer.mask, found, blind))
        return found, blind


def sight(mask: "torch.Tensor", real: "torch.Tensor") -> Sight:
    """What a mask, bool, broadcastable to (b, 1, n, n), amounts to; anything else is "other"."""
    import torch

    texts, n = real.shape
    if not shared_by_heads(mask):
        return "other"
    seen = mask.expand(texts, 1, n, n)[:, 0]
    padding_apart = ~real[:, :, None]  # rows of padding are read by nobody
    if bool(((seen == real[:, None, :]) | padding_apart).all()):
        return "all"
    past = torch.ones(n, n, dtype=torch.bool, device=real.device).tril() & real[:, None, :]
    return "past" if bool(((seen == past) | padding_apart).all()) else "other"


def shared_by_heads(mask: "torch.Tensor") -> bool:
    """Whether this is a mask of yes and no, (b, 1, n, n), the same for every head."""
    import torch

    return mask.dtype == torch.bool and mask.ndim == BATCH_OF_MAPS and mask.shape[1] == 1
