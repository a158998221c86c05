"""Attention by the fused kernel, with what rollout needs of it besides the output and without any map.

Two by-products: the log-sum-exp of every row, with which weights can be made again by one product and one exponential;
and what each output draws from a few more columns, which ride along as further features of the values. Nothing of size
(heads, n, n) is made. Layers with a soft cap, sinks, or a softmax that was only watched do not fit.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from veedor.subjects import LayerAttention

WITH_LOG_SUMS = "_scaled_dot_product_flash_attention_for_cpu"  # not public: used where it is there, else blocks
BLOCK_SCORES = 2**21  # scores that are held at a time where the kernel does not give log-sums: 8 MiB of float32
EVEN = 8  # the kernel's products are fastest where the number of features is a multiple of this


def fits(layer: "LayerAttention") -> bool:
    """Whether the fused kernel computes this very layer."""
    known = layer.query is not None and layer.key is not None and layer.value is not None
    odd = layer.softcap is not None or layer.sinks is not None or (layer.causal and layer.mask is not None)
    return known and not odd and layer.kind == "self" and layer.observed is None


def attended(layer: "LayerAttention") -> "tuple[torch.Tensor, torch.Tensor]":
    """The layer's output (b, heads, n, d), and the log of the sum of exp(scores) of every row, (b, heads, n)."""
    import torch

    query, key, value = layer.query, layer.key, layer.value  # the kernel knows shared heads
    assert query is not None and key is not None and value is not None  # as `fits` says
    kernel = getattr(torch.ops.aten, WITH_LOG_SUMS, None)
    if kernel is None or query.device.type != "cpu" or query.shape[-1] != value.shape[-1]:
        return layer.output(), log_sums(layer)
    mask = additive(layer.mask, query)
    output, sums = kernel(query, key, value, 0.0, layer.causal, attn_mask=mask, scale=layer.scaling)
    return output, sums


def additive(mask: "torch.Tensor | None", like: "torch.Tensor") -> "torch.Tensor | None":
    """A mask that is added to scores: 0 where a key may be seen and -inf where not."""
    import torch

    if mask is None or mask.dtype != torch.bool:
        return mask if mask is None else mask.to(like.dtype)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill_(~mask, -torch.inf)


def log_sums(layer: "LayerAttention") -> "torch.Tensor":
    """Log-sum-exp of each row's scores, a block of rows at a time: (b, heads, n); -inf where no key is seen."""
    import torch

    batch, heads, rows = layer.queries().shape[:3]
    block = max(1, BLOCK_SCORES // (batch * heads * rows))
    return torch.cat(
        [layer.scores(slice(first, first + block)).logsumexp(dim=-1) for first in range(0, rows, block)], dim=-1
    )


def attended_with(layer: "LayerAttention", columns: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
    """The layer's output (b, heads, n, d), and its heads' weights times `columns` (b, n, c): (b, heads, n, c).

    One call: the columns are further features of every head's values, matched by zeros in queries and keys.
    """
    import torch
    from torch.nn.functional import pad, scaled_dot_product_attention

    query, key, value = layer.queries(), layer.keys(), layer.values()
    size, extra = value.shape[-1], columns.shape[-1]
    wide = -(-(max(size + extra, query.shape[-1])) // EVEN) * EVEN
    shared = columns.to(value.dtype)[:, None].expand(-1, value.shape[1], -1, -1)
    values = torch.cat((value, shared, value.new_zeros(*value.shape[:-1], wide - size - extra)), dim=-1)
    both = scaled_dot_product_attention(
        pad(query, (0, wide - query.shape[-1])),
        pad(key, (0, wide - key.shape[-1])),
        values,
        attn_mask=layer.mask,
        is_causal=layer.causal,
        scale=layer.scaling,
    )
    return both[..., :size], both[..., size : size + extra]
