"""Attention seen from inside the model, layer by layer, as a forward pass goes through it.

transformers routes most models through one interface: our attention function and mask function are registered there
once, the model is switched to them and back. Hand-written attentions (DeBERTa, MPNet …) are watched at their softmax.
Nothing is stored: a callback sees each layer and the layer is let go of. The model's config, hooks and weights are put
back on exit, also after an error. Block-sparse and windowed attentions without an n × n map are refused.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from veedor.errors import SubjectError
from veedor.subjects.layer_attention import LayerAttention

if TYPE_CHECKING:
    import torch

    from veedor.subjects.subject import Subject

NAME = "veedor_capture"  # must not contain sdpa, flash or flex_attention: those names start support checks
STILL_WORK = "integrated_gradients, gradient, input_x_gradient, occlusion, random"
OnLayer = Callable[[LayerAttention], None]
Rule = Callable[[LayerAttention], "torch.Tensor | None"]


class AttentionNotSeenError(SubjectError):
    """A model's attention cannot be read; `code` is the reason, for a report."""

    code = "no_attention"


class Capture:
    """Hands each attention layer of each forward pass to the callbacks, in the order of their calls."""

    def __init__(self, subject: "Subject") -> None:
        """Watch nothing yet; `capture` makes one and switches the model."""
        self.subject = subject
        self.names = {id(module): name for name, module in subject.model.named_modules()}
        self.layers = 0
        self.crossing = False
        self._callbacks: list[OnLayer] = []
        self._rule: Rule | None = None

    def on_layer(self, callback: OnLayer) -> None:
        """Call this with every layer of every forward pass while the capture lasts."""
        self._callbacks.append(callback)

    def answer_with(self, rule: Rule | None) -> None:
        """Let `rule` say what a layer gives back, (b, heads, n, d), or None for its own output.

        For methods that change attention (value zeroing) or its derivative (LRP). Not asked for layers of which only
        the softmax is seen: there a callback may put other weights in `layer.observed`, and the model goes on with them.
        """
        self._rule = rule

    def output_of(self, layer: LayerAttention) -> "torch.Tensor":
        """What the model goes on with, (b, heads, n, d)."""
        answered = None if self._rule is None else self._rule(layer)
        return layer.output() if answered is None else answered

    def see(self, layer: LayerAttention) -> None:
        """Hand one layer to the callbacks."""
        self.layers += 1
        for callback in self._callbacks:
            callback(layer)

    def refuse(self, reason: str) -> AttentionNotSeenError:
        """The error that says why this model's attention cannot be read, and what still works."""
        return AttentionNotSeenError(
            f"the attention of {self.subject.name} ({type(self.subject.model).__name__}) cannot be read: {reason}; "
            f"methods that work without it: {STILL_WORK}"
        )

    def begin(self) -> None:
        """A forward pass begins: count its layers anew."""
        self.layers = 0

    def end(self) -> None:
        """A forward pass is over; AttentionNotSeenError unless all of its layers were seen."""
        from veedor.subjects.anatomy import text_config

        config = self.subject.model.config
        expected = getattr(text_config(self.subject.model), "num_hidden_layers", None)
        if self.layers == 0:
            raise self.refuse("no attention layer was seen")
        if not config.is_encoder_decoder and expected is not None and self.layers != expected:
            raise self.refuse(f"{self.layers} attention maps were seen in {expected} layers")


_ACTIVE: ContextVar[Capture | None] = ContextVar("active capture", default=None)


@contextmanager
def capture(subject: "Subject") -> Iterator[Capture]:
    """See the attention of every forward pass of the subject within the block.

    `captured.on_layer(callback)` is called with a `LayerAttention`. AttentionNotSeenError where this model's attention
    cannot be read, at the latest when its first forward pass ends.
    """
    from veedor.subjects.softmax_watch import watched

    captured = Capture(subject)
    with ExitStack() as undo:
        undo.enter_context(counted(captured))
        undo.enter_context(switched(captured) if routes_through_interface(subject.model) else watched(captured))
        yield captured


def routes_through_interface(model: Any) -> bool:
    """Whether every part of the model takes its attention function from transformers' interface."""
    from transformers import PreTrainedModel

    parts = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return bool(parts) and all(part._can_set_attn_implementation() for part in parts)


@contextmanager
def counted(captured: Capture) -> Iterator[None]:
    """Tell the capture where each forward pass begins and ends, and what is cross-attention."""
    model = captured.subject.model
    hooks = [
        model.base_model.register_forward_pre_hook(lambda *_: captured.begin()),
        model.base_model.register_forward_hook(lambda *_: captured.end()),
    ]
    if model.config.is_encoder_decoder:
        hooks.extend(
            module.register_forward_pre_hook(crossing_hook(captured), with_kwargs=True)
            for module in model.modules()
            if "attention" in type(module).__name__.lower()
        )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def crossing_hook(captured: Capture) -> Callable[[object, tuple[object, ...], dict[str, object]], None]:
    """Notes whether the module that is called attends to another sequence than its own."""

    def look(_: object, __: tuple[object, ...], given: dict[str, object]) -> None:
        captured.crossing = any(given.get(name) is not None for name in ("key_value_states", "encoder_hidden_states"))

    return look


@contextmanager
def switched(captured: Capture) -> Iterator[None]:
    """Route the model's attention through ours, and put every config back as it was."""
    register()
    model = captured.subject.model
    before = [(config, config._attn_implementation_internal) for config in configs_of(model)]
    token = _ACTIVE.set(captured)
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        _ACTIVE.reset(token)
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
    captured = _ACTIVE.get()
    if captured is None:
        raise RuntimeError(f"{type(module).__name__} is still switched to {NAME} outside of a capture")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    layer = LayerAttention(
        index=captured.layers,
        module=captured.names.get(id(module), type(module).__name__),
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


def with_bias(mask: "torch.Tensor | None", bias: "torch.Tensor | None") -> "torch.Tensor | None":
    """One additive mask from a mask and a relative position bias (T5)."""
    import torch

    if bias is None or mask is None:
        return mask if bias is None else bias
    return bias.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else bias + mask
