"""Attention weights of hand-written attention modules, caught where they are made: at a softmax over keys.

Works for DeBERTa, MPNet and others that do not go through transformers' attention interface. Only the weights are seen,
no queries, keys or values. What is not a square map (windowed, block-sparse or pooled attention) is refused.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from veedor.subjects.capture import Capture
from veedor.subjects.layer_attention import LayerAttention

if TYPE_CHECKING:
    import torch

ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
BATCH_OF_MAPS = 4  # dimensions of (b, heads, n, n)


@contextmanager
def watched(captured: Capture) -> Iterator[None]:
    """Hand every softmax inside an attention module to the capture while the block lasts."""
    inside: list[str] = []
    hooks = []
    for module in captured.subject.model.modules():
        if ATTENTION.search(type(module).__name__):
            name = captured.names.get(id(module), "")
            hooks.append(module.register_forward_pre_hook(entering(inside, name)))
            hooks.append(module.register_forward_hook(lambda *_: (inside.pop(), None)[1], always_call=True))
    try:
        with watching_mode(captured, inside):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def entering(inside: list[str], name: str) -> Callable[..., None]:
    """A hook that notes which attention module is being run."""

    def enter(*_: object) -> None:
        inside.append(name)

    return enter


def watching_mode(captured: Capture, inside: list[str]) -> Any:
    """The mode that sees every torch call; made here because torch is imported late."""
    import torch
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    softmaxes = (torch.softmax, torch.Tensor.softmax, functional.softmax)

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            if not inside or func not in softmaxes:
                return result
            layer = seen(captured, inside[-1], args[0] if args else (kwargs or {})["input"], result)
            captured.see(layer)
            return layer.observed  # the model goes on with what was handed out, so that gradients reach it

    return Watch()


def seen(captured: Capture, module: str, scores: "torch.Tensor", weights: "torch.Tensor") -> LayerAttention:
    """The layer of one softmax; rows that may see no key are 0."""
    import torch

    if weights.ndim != BATCH_OF_MAPS or weights.shape[-1] != weights.shape[-2]:
        raise captured.refuse(
            f"{module} makes weights of shape {tuple(weights.shape)}, expected (texts, heads, tokens, tokens)"
        )
    blocked = ~(scores > torch.finfo(scores.dtype).min / 2)
    blind = blocked.all(dim=-1, keepdim=True)
    observed = weights.masked_fill(blind, 0.0)
    return LayerAttention(index=captured.layers, module=module, kind="self", observed=observed)
