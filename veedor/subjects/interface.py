"""Attention through transformers' own interface: one attention function and one mask function of ours, registered once.

A model is switched to them by its config while a capture lasts and put back as it was, every sub-config included. The
function honours whatever transformers hands over: boolean and additive masks (sliding windows are in the mask),
scaling, a relative position bias (T5), soft-capping (Gemma 2), sinks (gpt-oss) and shared key heads. Dropout is off.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from veedor.subjects.layer_attention import LayerAttention, hidden

if TYPE_CHECKING:
    import torch

    from veedor.subjects.capture import Capture

NAME = "veedor_capture"  # must not contain sdpa, flash or flex_attention: those names start support checks
_ACTIVE: "ContextVar[tuple[Capture, ...]]" = ContextVar("captures of this thread", default=())


def routes_through_interface(model: Any) -> bool:
    """Whether every part of the model takes its attention function from transformers' interface."""
    from transformers import PreTrainedModel

    parts = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return bool(parts) and all(part._can_set_attn_implementation() for part in parts)


@contextmanager
def switched(captured: "Capture") -> Iterator[None]:
    """Route the model's attention through ours, and put every config back as it was."""
    register()
    before = [(config, config._attn_implementation_internal) for config in configs_of(captured.model)]
    _ACTIVE.set((*_ACTIVE.get(), captured))
    try:
        captured.model.set_attn_implementation(NAME)
        yield
    finally:
        _ACTIVE.set(tuple(other for other in _ACTIVE.get() if other is not captured))
        for config, implementation in before:
            config._attn_implementation_internal = implementation


def configs_of(model: Any) -> list[Any]:
    """Every config that says which attention a part of the model uses, each once."""
    found: dict[int, Any] = {}
    pending = [module.config for module in model.modules() if hasattr(module, "config")]
    while pending:
        config = pending.pop()
        if id(config) in found or not hasattr(config, "_attn_implementation_internal"):
            continue
        found[id(config)] = config
        pending.extend(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))
    return list(found.values())


def register() -> None:
    """Make our attention and mask functions known to transformers, once."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    if NAME not in AttentionInterface._global_mapping:
        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, sdpa_mask)  # without it padded and sliding masks never arrive


def attend(
    module: Any,
    query: "torch.Tensor",
    key: "torch.Tensor",
    value: "torch.Tensor",
    attention_mask: "torch.Tensor | None",
    *,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **options: Any,
) -> "tuple[torch.Tensor, None]":
    """The attention function that transformers calls: (b, heads, n, d) -> (b, n, heads, d), no weights returned."""
    captured = capture_of(module)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    layer = LayerAttention(
        index=captured.layers,
        module=captured.names[id(module)],
        kind="cross" if captured.crossing else "self",
        query=query,
        key=key,
        value=value,
        mask=with_bias(attention_mask, options.get("position_bias")),
        causal=bool(causal) and attention_mask is None and query.shape[2] > 1,
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        softcap=options.get("softcap"),
        sinks=options.get("s_aux"),
    )
    captured.see(layer)
    output = captured.output_of(layer).transpose(1, 2).contiguous()
    layer.forget()
    return output, None


def capture_of(module: Any) -> "Capture":
    """The capture of this thread whose model the module belongs to."""
    for captured in reversed(_ACTIVE.get()):
        if id(module) in captured.names:
            return captured
    raise RuntimeError(
        f"{type(module).__name__} is switched to {NAME} by a capture that is not of this thread; ask a copy of the "
        "model, or wait until that capture ends"
    )


def with_bias(mask: "torch.Tensor | None", bias: "torch.Tensor | None") -> "torch.Tensor | None":
    """One additive mask from a mask and a relative position bias (T5)."""
    import torch

    if bias is None or mask is None:
        return mask if bias is None else bias
    return (bias if mask.dtype == torch.bool else bias + mask).masked_fill(hidden(mask), -torch.inf)
