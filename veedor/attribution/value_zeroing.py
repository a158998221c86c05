"""Value zeroing (Mohebbi et al., 2023, section 3): how far each token's new vector moves when another's value is zero.

In one layer at a time, on that layer's clean input: token j's value vector is set to zero in every head, and the layer
is run again. c_ij = 1 - cos(x_i, x_i without j), x the layer's output behind its MLP, as in the paper. Rows to sum 1,
then the product of layers, the higher from the left, without identity: the residual stream is in x. No target, never
negative. Costs n forward passes. Rows that nothing moves stay 0; nothing is divided by rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from veedor.attribution.attention import read_weights
from veedor.attribution.mixing import read_off, shares
from veedor.attribution.question import Question, Scored, UnsupportedModelError, in_order, undisturbed
from veedor.subjects.blocks import layer_of, states_in

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Capture, LayerAttention, Subject

TOKENS = 2**13  # tokens of a forward pass in which values are zeroed
BLOCK_WEIGHTS = 2**21  # attention weights that are held at a time
ROUNDING = 64  # units in the last place by which a vector may move for no reason


def value_zeroing(question: Question) -> list[Scored]:
    """Rollout of value-zeroing scores in the row that the head reads.

    It sums to 1 but for `undefined_share`: what would flow through rows that no token's value moves.
    """
    import torch

    from veedor.subjects import capture

    subject, answers = question.subject, dict[int, Scored]()
    with undisturbed(subject), torch.no_grad(), capture(subject) as captured:
        batches = subject.batches(question.encodings, size=question.settings.batch_size)
        zeroing = Zeroing(captured)
        with zeroing.watching(_layers(subject, captured, batches[0])):
            for batch in batches:
                flow = zeroing.flow(subject, batch)
                read = read_weights(subject, batch)
                for text, row in enumerate(batch.rows):
                    answers[row] = _answer(read[text], flow[text], batch.mask[text].bool(), question.method)
                question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def moved(clean: "torch.Tensor", changed: "torch.Tensor") -> "torch.Tensor":
    """1 - cos(clean, changed) over the last dimension, float64; 0 where no more than rounding moved.

    Computed as half the squared distance of the unit vectors, which keeps small angles; 0 where one of the two is 0.
    """
    import torch

    unit, other = (torch.nn.functional.normalize(states.double(), dim=-1, eps=1e-300) for states in (clean, changed))
    distance = (unit - other).square().sum(dim=-1) / 2
    known = clean.any(dim=-1) & changed.any(dim=-1)
    least = (ROUNDING * torch.finfo(clean.dtype).eps) ** 2 / 2
    return distance.masked_fill((distance <= least) | ~known, 0.0)


@dataclass(eq=False)
class Zeroing:
    """Clean passes and passes with zeroed values through the same layers.

    In a pass with zeroed values every layer answers without them, is held against its clean output, and hands the clean
    output on: so each layer has clean input, and one pass serves all layers.
    """

    captured: "Capture"
    clean: "list[torch.Tensor]" = field(default_factory=list)
    sights: "list[torch.Tensor]" = field(default_factory=list)
    tokens: range = field(default_factory=lambda: range(0))
    columns: "list[list[torch.Tensor]]" = field(default_factory=list)
    layer: int = 0
    shape: tuple[int, int] = (0, 0)

    @contextmanager
    def watching(self, layers: list[Any]) -> Iterator[None]:
        """Hold what these layers give back against their clean outputs while the block lasts."""
        self.captured.on_layer(self._look)
        hooks = [layer.register_forward_hook(self._compare) for layer in layers]
        try:
            yield
        finally:
            self.captured.answer_with(None)
            for hook in hooks:
                hook.remove()

    def flow(self, subject: "Subject", batch: "Batch") -> "torch.Tensor":
        """The product of all layers' shares, (b, n, n) float64."""
        import torch

        self._pass(subject, batch, range(0))
        self.columns = [[] for _ in self.clean]
        texts, n = batch.ids.shape
        for first in range(0, n, size := max(1, TOKENS // (texts * n))):
            self._pass(subject, batch, range(first, min(n, first + size)))
        real = batch.mask.bool()
        flow = None
        for columns, seen in zip(self.columns, self.sights, strict=True):
            mixed = shares(torch.cat(columns, dim=-1) * (seen & real[:, :, None] & real[:, None, :]))
            flow = mixed if flow is None else mixed @ flow
        assert flow is not None  # a capture that sees no layer raises
        return flow

    def _pass(self, subject: "Subject", batch: "Batch", tokens: range) -> None:
        """One forward pass: clean without tokens, else copy k of each text goes without the value of tokens[k]."""
        self.tokens, self.layer = tokens, 0
        self.shape = (batch.ids.shape[0] * (len(tokens) or 1), batch.ids.shape[1])
        if tokens:
            self.captured.answer_with(self._without, watched=True)
            subject.logits(_copies(batch, len(tokens)))
            return
        self.clean, self.sights = [], []
        self.captured.answer_with(None)
        subject.logits(batch)
        if len(self.clean) != len(self.sights):
            raise UnsupportedModelError(
                f"value_zeroing does not fit {subject.card.name}: {len(self.sights)} attention maps were seen in "
                f"{len(self.clean)} layers, expected one in each; choose rollout or attention_flow",
                code="block_not_understood",
            )

    def _look(self, layer: "LayerAttention") -> None:
        import torch

        if self.tokens:
            return
        own = replace(layer)  # the model goes on with its own kernel
        n = int(layer.observed.shape[-1] if layer.observed is not None else layer.queries().shape[-2])
        texts, heads = (layer.observed if layer.observed is not None else layer.queries()).shape[:2]
        size = max(1, BLOCK_WEIGHTS // (texts * heads * n))
        blocks = [(own.weights(slice(first, first + size)) > 0).any(dim=1) for first in range(0, n, size)]
        self.sights.append(torch.cat(blocks, dim=1))

    def _without(self, layer: "LayerAttention") -> "torch.Tensor":
        assert layer.value is not None  # asked for by `answer_with` only where there are values
        value = layer.value.clone()
        for copy, token in enumerate(self.tokens):
            value[copy :: len(self.tokens), :, token] = 0.0
        return replace(layer, value=value).output()

    def _compare(self, _: object, __: object, output: Any) -> Any:
        states = states_in(output)
        if tuple(getattr(states, "shape", ())[:2]) != self.shape:  # XLNet's stand the other way round
            raise UnsupportedModelError(
                f"value_zeroing does not fit {self.captured.name}: its layers do not give back states of shape (texts, "
                "tokens, width); choose rollout or attention_flow",
                code="block_not_understood",
            )
        if not self.tokens:
            self.clean.append(states)
            return None
        clean = self.clean[self.layer].repeat_interleave(len(self.tokens), dim=0)
        distance = moved(clean, states)
        self.columns[self.layer].append(distance.view(-1, len(self.tokens), distance.shape[-1]).transpose(1, 2))
        self.layer += 1
        return (clean, *output[1:]) if isinstance(output, tuple) else clean


def _answer(read: "torch.Tensor", flow: "torch.Tensor", real: "torch.Tensor", method: str) -> Scored:
    return read_off(read[real], flow[real][:, real], method)


def _copies(batch: "Batch", number: int) -> "Batch":
    """Every text so many times, its copies together."""

    def copied(tensor: "torch.Tensor") -> "torch.Tensor":
        return tensor.repeat_interleave(number, dim=0)

    positions = None if batch.position_ids is None else copied(batch.position_ids)
    rows = tuple(row for row in batch.rows for _ in range(number))
    return replace(
        batch,
        rows=rows,
        ids=copied(batch.ids),
        mask=copied(batch.mask),
        special=copied(batch.special),
        position_ids=positions,
    )


def _layers(subject: "Subject", captured: "Capture", batch: "Batch") -> list[Any]:
    """The modules of the layers that attention is seen in, each once, found by one forward pass."""
    names: list[str] = []

    def note(layer: "LayerAttention") -> None:
        if not found:
            names.append(layer.module)

    found: dict[str, Any] = {}
    captured.on_layer(note)
    subject.logits(batch)
    for name in names:
        layer = layer_of(subject.model, name)
        if layer is None:
            raise UnsupportedModelError(
                f"value_zeroing does not fit {subject.card.name}: {name} stands in no list of layers; choose rollout "
                "or attention_flow",
                code="block_not_understood",
            )
        found[layer[0]] = layer[1]
    return list(found.values())
