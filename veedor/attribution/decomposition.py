"""An attention block's output as a sum over its input tokens (Kobayashi et al., 2020 and 2021; Ferrando et al., 2022).

With attention weights and the norm's spread held at their true values a block is linear: y_i = Σ_j T_i(x_j) + bias_i.
Norm after (BERT): T_i(x_j) = γ/σ_i ⊙ centre(Σ_h A^h_ij W_O^h W_V^h x_j + δ_ij x_i). Norm before (GPT-2, Llama): values
are made of the norm's linear part at x_j instead, the residual δ_ij x_i is added, and no norm follows. Biases and the
norms' shifts are in bias_i; the MLP is left out, behind the block or beside it. Sums that are not the model's own are
refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from veedor.attribution.question import UnsupportedModelError
from veedor.subjects.blocks import KNOWN
from veedor.subjects.layer_attention import LayerAttention, repeated
from veedor.subjects.norms import LinearNorm, linear_norm

if TYPE_CHECKING:
    import torch

    from veedor.subjects.block_watch import SeenBlock

BLOCK_PARTS = 2**21  # numbers of T_i(x_j) that are held at a time: 8 MiB of float32
TOLERANCE = 1e-4  # of the largest number of the output: above float32 rounding, far below any missing term


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of one text's block: `parts` (rows, n, d) is T_i(x_j), `bias` and `whole` (rows, d), `first` row."""

    first: int
    parts: "torch.Tensor"
    bias: "torch.Tensor"
    whole: "torch.Tensor"


def decomposed(seen: "SeenBlock", text: int, length: int) -> Iterator[Rows]:
    """The rows of one text of the batch without its padding, some at a time; holds rows · n · d numbers at most.

    UnsupportedModelError where the parts do not sum to what the model made of this text (relative 1e-4).
    """
    layer = text_of(seen.attention, text, length)
    states, output = seen.states[text, :length], seen.output[text, :length]
    norm = linear_norm(seen.block.norm, states.shape[-1])
    if layer.value is None or norm is None:
        what = (
            "its values are not seen" if layer.value is None else f"{type(seen.block.norm).__name__} is no known norm"
        )
        raise not_understood(seen.block.attention, what)
    spread = norm.spread(seen.summed[text, :length])
    offers, bias = _offers(seen, layer, states, norm)
    after = seen.block.anatomy.place == "after"
    own = norm.gain * norm.centre(states) if after else states
    for first in range(0, length, max(1, BLOCK_PARTS // states.numel())):
        rows = slice(first, min(length, first + max(1, BLOCK_PARTS // states.numel())))
        weights = layer.weights(rows)[0].to(states.dtype)
        parts = (weights.permute(2, 1, 0) @ offers).transpose(0, 1)  # (n, rows, heads) @ (n, heads, d)
        at = range(rows.start, rows.stop)
        parts[range(len(at)), at] += own[rows]
        constant = weights.sum(dim=-1).T @ bias + (0 if seen.block.out.bias is None else seen.block.out.bias)
        if after:
            parts /= spread[rows, None]
            constant = norm.part(constant, spread[rows]) + norm.shift
        _require_sum(seen, parts, constant, output[rows], limit=TOLERANCE * float(output.abs().max()))
        yield Rows(first, parts, constant, output[rows])


def text_of(layer: LayerAttention, text: int, length: int) -> LayerAttention:
    """One text of a batch that is padded on the right, without its padding."""

    def cut(tensor: "torch.Tensor | None") -> "torch.Tensor | None":
        return None if tensor is None else tensor[text : text + 1, :, :length]

    mask = layer.mask
    if mask is not None:
        mask = mask[text : text + 1] if mask.shape[0] > 1 else mask
        mask = mask[..., :length, :length] if mask.shape[-2] > 1 else mask[..., :length]
    return replace(layer, query=cut(layer.query), key=cut(layer.key), value=cut(layer.value), mask=mask, _whole=None)


def not_understood(where: str, reason: str) -> UnsupportedModelError:
    """The refusal of a block, naming it, why, and what works."""
    return UnsupportedModelError(
        f"the attention block at {where} cannot be taken apart token by token: {reason}; norm_rollout and alti work on "
        f"{KNOWN}; rollout and value_zeroing ask for less",
        code="block_not_understood",
    )


def _offers(
    seen: "SeenBlock", layer: LayerAttention, states: "torch.Tensor", norm: LinearNorm
) -> "tuple[torch.Tensor, torch.Tensor]":
    """What each token offers to all rows by each head, (n, heads, d), and each head's constant share, (heads, d)."""
    after = seen.block.anatomy.place == "after"
    shift = (norm.shift * 0 if after else norm.shift).to(states)
    fed = states if after else norm.part(states, norm.spread(states)) + shift
    value = layer.value
    assert value is not None  # the caller refused
    made = seen.block.values_of(fed[None], value)
    if float((made - value).abs().max()) > TOLERANCE * float(value.abs().max()):
        raise not_understood(seen.block.attention, f"its values are not what {type(seen.block.value).__name__} makes")
    constant = seen.block.values_of(shift[None, None], value)
    matrices = seen.block.out_matrices(layer.queries().shape[1])
    offers = (repeated(value - constant, layer.groups)[0] @ matrices).transpose(0, 1)
    bias = (repeated(constant, layer.groups)[0] @ matrices)[:, 0]
    return (norm.gain * norm.centre(offers) if after else offers).contiguous(), bias


def _require_sum(
    seen: "SeenBlock", parts: "torch.Tensor", bias: "torch.Tensor", output: "torch.Tensor", *, limit: float
) -> None:
    off = float((parts.sum(dim=1) + bias - output).abs().max())
    if not off <= limit:
        raise not_understood(
            seen.block.attention, f"its parts sum to something else than the model's own output (off by {off:.3g})"
        )
