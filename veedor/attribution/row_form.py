"""Rollout's row form over a forward pass: what the row that the head reads draws from every input, by streaming.

start A_L … A_1 is worked out from the left: row weights go down, layer by layer, after the forward pass. Each layer is
reduced to what this needs as soon as the pass shows it. Memory grows with layers · n, not with n².
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from veedor.attribution.fused import attended, fits
from veedor.attribution.kept_layers import BLOCK_WEIGHTS, InBlocks, Kept, WholeMap, keep_fused
from veedor.attribution.masks import Masks, shared_by_heads
from veedor.attribution.rollout import Mixing, fuse_heads, mix
from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, LayerAttention, Subject
    from veedor.subjects.capture import Capture

SHORT = 128  # tokens up to which a layer's map is smaller than its queries and keys, and quicker to make


@dataclass(frozen=True)
class Course:
    """Which layers are gone through and how; `head`: of the last of them, None for all of its heads, fused.

    Layers count from 0 at the input, or from -1, the last of the model, backwards; `last` is counted in.
    """

    mixing: Mixing = field(default_factory=Mixing)
    first: int = 0
    last: int = -1
    head: int | None = None

    def within(self, layers: int) -> "tuple[int, int]":
        """First and last as counted from the input; UsageError where the model has no such layers."""
        first, last = (number + layers if number < 0 else number for number in (self.first, self.last))
        if not 0 <= first <= last < layers:
            raise UsageError(
                f"rollout: layers {self.first} to {self.last} of a model with {layers}; expected the first no later "
                f"than the last, from 0 to {layers - 1}, or from -1 backwards"
            )
        return first, last

    def heads_of(self, by_head: "torch.Tensor", *, top: bool) -> "torch.Tensor":
        """All heads of (b, heads, ...), or the one that was asked for where this is the last layer, `top`."""
        head = self.head
        if head is None or not top:
            return by_head
        if not 0 <= head < by_head.shape[1]:
            raise UsageError(f"rollout: head {head} of {by_head.shape[1]}; expected 0 to {by_head.shape[1] - 1}")
        return by_head[:, head : head + 1]


class RowStream:
    """Collects the layers of one forward pass at a time, and sends row weights down through them."""

    def __init__(self, captured: "Capture", course: Course, layers: int) -> None:
        """Watch every layer of this capture of a model with so many layers."""
        self.course = course
        self.first, self.last = course.within(layers)
        captured.on_layer(self.see)
        captured.answer_with(self.answer)

    def begin(self, batch: "Batch") -> None:
        """Forget what was seen: a forward pass of this batch is about to come."""
        self.real = batch.mask.bool()
        self.masks = Masks(self.real)
        self.kept: list[Kept] = []
        self.causal = True  # so far no layer lets anything be seen of the future

    def drawn(self, start: "torch.Tensor") -> "torch.Tensor":
        """start A_last … A_first, (b, n) -> (b, n) float64."""
        flow = start.double()
        for layer in reversed(self.kept):
            flow = layer.below(flow)
        return flow

    def see(self, layer: "LayerAttention") -> None:
        """Keep a layer that is read from its weights."""
        if not self.first <= layer.index <= self.last or self._by_the_kernel(layer):
            return
        mixing, number = self.course.mixing, layer.index
        self.causal &= self._blind_to_the_future(layer)
        if self.real.shape[1] <= SHORT:
            heads = self._chosen(layer, layer.weights())
            mixed = mix(heads, mixing, layer=number, real=self.real, used=self.real & False)
            self.kept.append(WholeMap(mixed, number))
        elif layer.observed is not None:  # only the softmax was seen: keep its map, but not one a head
            fused = fuse_heads(self._chosen(layer, layer.observed), mixing.fusion)[:, None]
            self.kept.append(self._in_blocks(replace(layer, observed=fused)))
        else:
            self.kept.append(self._in_blocks(self._own_head(layer)))

    def answer(self, layer: "LayerAttention") -> "torch.Tensor | None":
        """Run a layer by the fused kernel where its queries, keys and log-sums are all that is kept."""
        if not self.first <= layer.index <= self.last or not self._by_the_kernel(layer):
            return None
        output, sums = attended(layer)
        self.causal &= self._blind_to_the_future(layer)
        sight, residual = self.masks.sight(layer), self.course.mixing.residual
        own = self._own_head(layer), self._chosen(layer, sums)
        self.kept.append(keep_fused(*own, real=self.real, sight=sight, residual=residual))
        return output

    def _by_the_kernel(self, layer: "LayerAttention") -> bool:
        mixing, mask = self.course.mixing, layer.mask
        linear = mixing.fusion == "mean" and not mixing.discard
        shared = mask is None or shared_by_heads(mask)
        return linear and shared and self.real.shape[1] > SHORT and fits(layer)

    def _in_blocks(self, layer: "LayerAttention") -> InBlocks:
        heads = 1 if layer.query is None else layer.query.shape[1]
        block = max(1, BLOCK_WEIGHTS // (self.real.numel() * heads))
        return InBlocks(layer, self.course.mixing, self.real, layer.index, block)

    def _blind_to_the_future(self, layer: "LayerAttention") -> bool:
        if layer.observed is None:
            return self.masks.blind_to_the_future(layer)
        return not bool(layer.observed.triu(1).any())

    def _chosen(self, layer: "LayerAttention", by_head: "torch.Tensor") -> "torch.Tensor":
        return self.course.heads_of(by_head, top=layer.index == self.last)

    def _own_head(self, layer: "LayerAttention") -> "LayerAttention":
        """The layer without its values, narrowed to the one head where one was asked for."""
        head, mask = self.course.head, layer.mask
        if head is None or layer.index != self.last:
            return replace(layer, value=None)
        return replace(
            layer,
            query=self._chosen(layer, layer.queries()),
            key=layer.keys()[:, head : head + 1],
            value=None,
            mask=mask if mask is None or mask.shape[1] == 1 else self._chosen(layer, mask),
            sinks=None if layer.sinks is None else layer.sinks[head : head + 1],
        )


def layers_of(subject: "Subject", batch: "Batch") -> int:
    """How many attention layers a forward pass goes through: as the config says, or as a forward pass shows."""
    import torch

    from veedor.subjects import capture
    from veedor.subjects.anatomy import text_config

    declared = getattr(text_config(subject.model), "num_hidden_layers", None)
    if declared is not None:
        return int(declared)
    with torch.no_grad(), capture(subject) as captured:
        subject.logits(batch)
        return captured.layers
