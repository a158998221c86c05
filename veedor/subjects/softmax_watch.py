"""Attention of modules that do not go through transformers' interface, watched from within torch's calls.

Where such a module calls the fused kernel, its queries, keys, values and mask are seen as the interface would show
them. Where it makes a softmax over keys (DeBERTa, XLNet, BLOOM …) its weights are seen, no queries and keys, and then
followed, past dropout and changes of shape, to the product with the values. What is not a square map (windowed,
block-sparse or pooled attention), or is not used as weights of values, is refused.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from veedor.subjects.capture import Capture
from veedor.subjects.layer_attention import LayerAttention, hidden
from veedor.subjects.products import product_of

if TYPE_CHECKING:
    import torch

ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
BATCH_OF_MAPS = 4  # dimensions of (b, heads, n, n)
CARRIES = (  # calls that hand weights on as they are
    *("dropout", "to", "type", "type_as", "float", "double", "half", "bfloat16", "view", "reshape", "contiguous"),
    *("clone", "detach", "nan_to_num"),
)


@dataclass
class Watching:
    """The attention modules that are being run, innermost last, and the weights that are not yet used."""

    captured: Capture
    inside: list[str] = field(default_factory=list)
    pending: "list[Weights]" = field(default_factory=list)

    def enter(self, name: str) -> None:
        """An attention module begins."""
        self.inside.append(name)

    def leave(self, *, failed: bool) -> None:
        """An attention module ends; unless it failed, its weights must have been used by then."""
        module = self.inside.pop() if self.inside else ""
        if not self.inside and self.pending and not failed:
            raise self.captured.refuse(f"{module} makes a softmax that is not multiplied by values in a known way")

    def start(self) -> None:
        """A forward pass begins, or was interrupted: what is left of another one is forgotten."""
        self.inside.clear()
        self.pending.clear()


@dataclass
class Weights:
    """A layer's weights on their way from softmax to product: `now` is the tensor they are in."""

    layer: LayerAttention
    now: "torch.Tensor"
    shape: "torch.Size"


@contextmanager
def watched(captured: Capture) -> Iterator[None]:
    """Hand every attention inside an attention module to the capture while the block lasts."""
    watching = Watching(captured)
    hooks = [captured.model.base_model.register_forward_pre_hook(lambda *_: watching.start())]
    for name, module in captured.modules.items():
        if ATTENTION.search(type(module).__name__):
            hooks.append(module.register_forward_pre_hook(entering(watching, name)))
            hooks.append(module.register_forward_hook(leaving(watching), always_call=True))
    try:
        with watching_mode(watching):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def entering(watching: Watching, name: str) -> Callable[..., None]:
    """A hook that notes which attention module is being run."""

    def enter(*_: object) -> None:
        watching.enter(name)

    return enter


def leaving(watching: Watching) -> Callable[..., None]:
    """A hook that notes that an attention module has ended; one that raised has no result."""

    def leave(_: object, __: object, result: object) -> None:
        watching.leave(failed=result is None)

    return leave


def watching_mode(watching: Watching) -> Any:
    """The mode that sees every torch call; made here because torch is imported late."""
    import torch
    from torch.nn import functional
    from torch.overrides import TorchFunctionMode

    softmaxes = (torch.softmax, torch.Tensor.softmax, functional.softmax)

    class Watch(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            given = kwargs or {}
            try:
                if not watching.inside:
                    return func(*args, **given)
                if func is functional.scaled_dot_product_attention:
                    return fused(watching, args, given)
                if func in softmaxes:
                    return begun(watching, args[0] if args else given["input"], func(*args, **given))
                return followed(watching, func, args, given)
            except KeyboardInterrupt:  # hooks of modules are not called on the way out
                watching.start()
                raise

    return Watch()


def fused(watching: Watching, args: tuple[Any, ...], given: dict[str, Any]) -> "torch.Tensor":
    """A direct call of the fused kernel: seen as a layer of the interface is."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    known = dict(zip(names, args, strict=False)) | given
    query, scale = known["query"], known.get("scale")
    layer = LayerAttention(
        index=watching.captured.layers,
        module=watching.inside[-1],
        kind="cross" if watching.captured.crossing else "self",
        query=query,
        key=known["key"],
        value=known["value"],
        mask=known.get("attn_mask"),
        causal=bool(known.get("is_causal", False)),
        scaling=query.shape[-1] ** -0.5 if scale is None else scale,
    )
    watching.captured.see(layer)
    output = watching.captured.output_of(layer)
    layer.forget()
    return output


def begun(watching: Watching, scores: "torch.Tensor", weights: "torch.Tensor") -> "torch.Tensor":
    """Weights are made: their layer is seen, and the model goes on with what was handed out; blind rows are 0."""
    captured, module = watching.captured, watching.inside[-1]
    if weights.ndim != BATCH_OF_MAPS or weights.shape[-1] != weights.shape[-2]:
        raise captured.refuse(
            f"{module} makes weights of shape {tuple(weights.shape)}, expected (texts, heads, tokens, tokens)"
        )
    observed = weights.masked_fill(hidden(scores).all(dim=-1, keepdim=True), 0.0)
    kind: Literal["self", "cross"] = "cross" if captured.crossing else "self"
    layer = LayerAttention(index=captured.layers, module=module, kind=kind, observed=observed)
    captured.see(layer)
    handed = layer.weights()
    watching.pending.append(Weights(layer, handed, handed.shape))
    return handed


def followed(watching: Watching, func: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """Any other call: the product with the values if it is that, else whether the weights are handed on by it."""
    for weights in watching.pending:
        product = product_of(func, args, weights.now, weights.shape)
        if product is not None:
            watching.pending.remove(weights)
            weights.layer.value = product.value()
            answered = watching.captured.answered(weights.layer, watched=True)
            return func(*args, **given) if answered is None else product.laid_out(answered)
    result = func(*args, **given)
    if getattr(func, "__name__", "") in CARRIES:
        for weights in watching.pending:
            if any(one is weights.now for one in args) and result.shape[-2:] == weights.shape[-2:]:
                weights.now = result
    return result
