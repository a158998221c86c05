"""One forward pass and one backward pass of a batch, and the gradients of everything that was asked for.

Embeddings, attention weights, queries, keys and values of all layers are differentiated together, by one call that
returns them in the order in which they were asked for: layer l's gradient stands with layer l, although a backward pass
meets the last layer first. Parameters are frozen, so nothing below the lowest tensor that is wanted is differentiated:
the last layer's weights alone cost the backward pass of one layer. What the numbers mean is said elsewhere.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from veedor.attribution.question import Question, UnsupportedModelError
from veedor.attribution.stability import embedded, outputs

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, LayerAttention

Seen = Literal["query", "key", "value", "weights"]
SEEN: tuple[Seen, ...] = (
    "query",
    "key",
    "value",
    "weights",
)  # the weights last: they are made of what is wanted before


@dataclass(frozen=True)
class Wanted:
    """What is differentiated: the embeddings, and which tensors of which layers.

    `layers`: numbers of the layers whose weights are wanted, from 0 or, from the last, -1; None for all.
    """

    points: bool = False
    seen: frozenset[Seen] = frozenset()
    layers: frozenset[int] | None = None

    def __or__(self, other: "Wanted") -> "Wanted":
        """What either wants."""
        wants_maps = [own.layers for own in (self, other) if "weights" in own.seen]
        chosen = [own for own in wants_maps if own is not None]
        everywhere = not wants_maps or len(chosen) < len(wants_maps)
        layers = None if everywhere else frozenset[int]().union(*chosen)
        return Wanted(self.points or other.points, self.seen | other.seen, layers)


@dataclass(frozen=True, eq=False)
class LayerGradients:
    """One attention layer's weights (b, heads, n, n), and the gradients of what was wanted in it.

    `of["query"]` (b, heads, n, d), `of["key"]` and `of["value"]` (b, key heads, n, d): those of a key head hold all
    that came back from the query heads that share it; `of["weights"]` (b, heads, n, n).
    """

    index: int
    weights: "torch.Tensor | None"
    of: "dict[Seen, torch.Tensor]"


@dataclass(frozen=True, eq=False)
class Backward:
    """A batch's explained scores (b,) float64, embeddings (b, n, d), their gradient, and layers from the input up."""

    heights: "torch.Tensor"
    points: "torch.Tensor"
    gradient: "torch.Tensor | None"
    layers: tuple[LayerGradients, ...]


def backward(question: Question, batch: "Batch", wanted: Wanted) -> Backward:
    """Go forward and back once. To be called within `undisturbed`.

    UnsupportedModelError where a layer does not show what is wanted of it.
    """
    import torch

    from veedor.subjects import capture

    watch = _Watch(question, wanted)
    points = embedded(question, batch).requires_grad_(wanted.points)
    with torch.enable_grad(), ExitStack() as undo:
        if wanted.seen:
            undo.enter_context(capture(question.subject)).on_layer(watch.see)
        if wanted.points:
            logits = question.subject.logits_from_embeddings(points, batch)
        else:
            logits = outputs(question, batch)
        heights = question.subject.margin(logits, question.target_index, scale=question.scale)
    tensors = [points] * wanted.points + [tensor for layer in watch.layers for tensor in layer.tensors.values()]
    found = list(torch.autograd.grad(heights.sum(), tensors))
    gradient = found.pop(0) if wanted.points else None
    layers = tuple(layer.with_gradients(found) for layer in watch.layers)
    return Backward(heights.detach(), points.detach(), gradient, layers)


@dataclass(eq=False)
class _Layer:
    index: int
    tensors: "dict[Seen, torch.Tensor]"

    def with_gradients(self, found: "list[torch.Tensor]") -> LayerGradients:
        """Take this layer's gradients off the front of those that are left."""
        of = {name: found.pop(0) for name in self.tensors}
        weights = self.tensors.get("weights")
        return LayerGradients(self.index, None if weights is None else weights.detach(), of)


@dataclass(eq=False)
class _Watch:
    """Holds on to the wanted tensors of each layer as the model passes through it."""

    question: Question
    wanted: Wanted
    layers: list[_Layer] = field(default_factory=list)

    def see(self, layer: "LayerAttention") -> None:
        names = [name for name in SEEN if name in self.wanted.seen and (name != "weights" or self.maps(layer.index))]
        self.layers.append(_Layer(layer.index, {name: self.tracked(layer, name) for name in names}))

    def maps(self, index: int) -> bool:
        """Whether this layer's weights are wanted."""
        chosen, number = self.wanted.layers, layer_count(self.question)
        return chosen is None or number is None or index in chosen or index - number in chosen

    def tracked(self, layer: "LayerAttention", name: Seen) -> "torch.Tensor":
        """The tensor that the model goes on with, as a part of the graph."""
        tensor = layer.weights() if name == "weights" else getattr(layer, name)
        if tensor is None:
            raise UnsupportedModelError(
                f"{self.question.method} does not fit {self.question.subject.name}: of {layer.module} only the softmax "
                f"is seen, so its {name} is not known; choose attention_gradient or grad_cam",
                code="softmax_only",
            )
        return tensor if tensor.requires_grad else tensor.requires_grad_()


def layer_count(question: Question) -> int | None:
    """How many attention layers the model says it has; None where it does not say."""
    from veedor.subjects.anatomy import text_config

    number: int | None = getattr(text_config(question.subject.model), "num_hidden_layers", None)
    return number
