"""Attention seen from inside the model, layer by layer, as a forward pass goes through it.

transformers routes most models through one interface (`interface.py`): the model is switched to our attention function
and back. Hand-written attentions (DeBERTa, XLNet, BLOOM …) are watched where they are made (`softmax_watch.py`).
Nothing is stored: a callback sees each layer and the layer is let go of. The model's config, hooks and modules are put
back on exit, also after an error. Attentions without an n × n map are refused by name (`unreadable.py`).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from veedor.errors import SubjectError
from veedor.subjects.layer_attention import LayerAttention

if TYPE_CHECKING:
    import torch

    from veedor.subjects.subject import Subject

OnLayer = Callable[[LayerAttention], None]
Rule = Callable[[LayerAttention], "torch.Tensor | None"]


class AttentionNotSeenError(SubjectError):
    """A model's attention cannot be read; `code` is the reason, for a report."""

    code = "no_attention"


class Capture:
    """Hands each attention layer of each forward pass to the callbacks, in the order of their calls."""

    def __init__(self, model: Any, name: str) -> None:
        """Watch nothing yet; `capture` makes one and switches the model. `name` is what errors call the model."""
        self.model, self.name = model, name
        self.modules = dict(model.named_modules())
        self.names = {id(module): path for path, module in self.modules.items()}
        self.layers = 0
        self.crossing = False
        self.thread = threading.get_ident()
        self._callbacks: list[OnLayer] = []
        self._rule: Rule | None = None
        self._of_watched = False

    def on_layer(self, callback: OnLayer) -> None:
        """Call this with every layer of every forward pass while the capture lasts."""
        self._callbacks.append(callback)

    def answer_with(self, rule: Rule | None, *, watched: bool = False) -> None:
        """Let `rule` say what a layer gives back, (b, heads, n, d), or None for its own output.

        For methods that change attention (value zeroing) or its derivative (LRP). With `watched` it is asked too where
        only the softmax is seen; there it knows weights and values, no queries and keys. A callback may put other
        weights in `layer.observed` of such a layer, and the model goes on with them.
        """
        self._rule, self._of_watched = rule, watched

    def answered(self, layer: LayerAttention, *, watched: bool = False) -> "torch.Tensor | None":
        """What the rule wants the model to go on with, (b, heads, n, d); None where the layer's own output is meant."""
        return None if self._rule is None or (watched and not self._of_watched) else self._rule(layer)

    def output_of(self, layer: LayerAttention) -> "torch.Tensor":
        """What the model goes on with, (b, heads, n, d)."""
        answered = self.answered(layer)
        return layer.output() if answered is None else answered

    def see(self, layer: LayerAttention) -> None:
        """Hand one layer to the callbacks."""
        self.layers += 1
        for callback in self._callbacks:
            callback(layer)

    def refuse(self, reason: str) -> AttentionNotSeenError:
        """The error that says why this model's attention cannot be read; attribution adds the methods that work."""
        called = type(self.model).__name__
        shown = self.name if self.name == called else f"{self.name} ({called})"
        return AttentionNotSeenError(
            f"the attention of {shown} cannot be read: {reason}; choose a method that needs no attention"
        )

    def begin(self) -> None:
        """A forward pass begins: count its layers anew."""
        if threading.get_ident() != self.thread:
            raise RuntimeError(
                f"{self.name} was called while its attention is being captured in another thread; ask a copy of the "
                "model, or wait until that capture ends"
            )
        self.layers, self.crossing = 0, False

    def end(self) -> None:
        """A forward pass is over; AttentionNotSeenError unless all of its layers were seen."""
        from veedor.subjects.anatomy import text_config

        if self.layers == 0:
            raise self.refuse("no attention layer was seen")
        if not self.model.config.is_encoder_decoder:
            self.require_layers_of(text_config(self.model))

    def require_layers_of(self, config: Any, *, part: str = "") -> None:
        """AttentionNotSeenError unless as many layers were seen so far as this config says there are."""
        expected = getattr(config, "num_hidden_layers", None)
        if expected is not None and self.layers != expected:
            raise self.refuse(
                f"{self.layers} attention maps were seen in {expected} layers{part}, so tokens are mixed by other "
                "means too"
            )


_TAKEN: set[int] = set()
_TAKING = threading.Lock()


@contextmanager
def capture(asked: "Subject | Any") -> Iterator[Capture]:
    """See the attention of every forward pass of a subject, or of a transformers model, within the block.

    `captured.on_layer(callback)` is called with a `LayerAttention`. AttentionNotSeenError where this model's attention
    cannot be read, at the latest when its first forward pass ends. RuntimeError where it is being captured already:
    captures of different models may be nested and may run in threads of their own, two of one model may not.
    """
    from transformers import PreTrainedModel

    from veedor.subjects.interface import routes_through_interface, switched
    from veedor.subjects.own_switches import attention_type_kept
    from veedor.subjects.softmax_watch import watched
    from veedor.subjects.unreadable import why_unreadable

    model = asked if isinstance(asked, PreTrainedModel) else asked.model
    captured = Capture(model, type(model).__name__ if model is asked else asked.name)
    reason = why_unreadable(model)
    if reason is not None:
        raise captured.refuse(reason)
    with ExitStack() as undo:
        undo.enter_context(taken(captured))
        undo.enter_context(attention_type_kept(model))
        undo.enter_context(counted(captured))
        undo.enter_context(switched(captured) if routes_through_interface(model) else watched(captured))
        yield captured


@contextmanager
def taken(captured: Capture) -> Iterator[None]:
    """Let nobody else capture any module of this model: the one that ends first would switch it back for both."""
    mine = set(captured.names)
    with _TAKING:
        if not _TAKEN.isdisjoint(mine):
            raise RuntimeError(
                f"the attention of {captured.name} is being captured already; one capture of a model at a time: end "
                "the other one first, or give it several callbacks with on_layer"
            )
        _TAKEN.update(mine)
    try:
        yield
    finally:
        with _TAKING:
            _TAKEN.difference_update(mine)


@contextmanager
def counted(captured: Capture) -> Iterator[None]:
    """Tell the capture where each forward pass begins and ends, and what is cross-attention."""
    model = captured.model
    hooks = [
        model.base_model.register_forward_pre_hook(lambda *_: captured.begin()),
        model.base_model.register_forward_hook(lambda *_: captured.end()),
    ]
    if model.config.is_encoder_decoder:
        encoder = model.get_encoder()
        part = f" of {type(encoder).__name__}"
        hooks.append(encoder.register_forward_hook(lambda *_: captured.require_layers_of(encoder.config, part=part)))
    if model.config.is_encoder_decoder or getattr(model.config, "add_cross_attention", False):
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
