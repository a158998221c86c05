"""Rollout's column form: how much of chosen input tokens reaches every output, in the same pass as the model.

R[:, S] summed over the chosen tokens S is A_last … A_first s with s their indicator, so it is pushed forward while the
model runs: x becomes (1 - residual) mean_h P_h x + residual x at every layer (Abnar and Zuidema, 2020, equation 1).
Nothing is kept of a layer. An audit's question: what does the head draw from the demographic term?
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.attention import read_weights
from veedor.attribution.fused import attended_with, fits
from veedor.attribution.kept_layers import BLOCK_WEIGHTS
from veedor.attribution.question import (
    Question,
    Span,
    UnsupportedModelError,
    real_tokens,
    undisturbed,
)
from veedor.attribution.rollout import Mixing
from veedor.attribution.row_form import SHORT, Course, layers_of
from veedor.attribution.stability import outputs
from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Encoding, LayerAttention
    from veedor.subjects.capture import Capture


@dataclass(frozen=True, eq=False)
class Reached:
    """What one text's chosen tokens reach: `outputs` (n,) float64, the share of them in each output, from 0 to 1.

    `read`: their share in what the head reads: one of these outputs, or a mean of them.
    """

    outputs: np.ndarray
    read: float


def reach(question: Question, positions: Sequence[Sequence[int]]) -> list[Reached]:
    """How much each output draws from the tokens at these positions of its text, together; in input order.

    `positions`: for each text at least one token, from 0, special tokens counted; one named twice counts once. The
    residual weight, layers and head are those of `settings.rollout`; heads are averaged. UsageError where the settings
    ask for what is not linear (max, min, discard) or has no column form (a reference, the receptive field).
    """
    import torch

    from veedor.subjects import capture

    subject, answers = question.subject, dict[int, Reached]()
    course = linear_course(question)
    _check(question, positions)
    if not positions:
        return []
    with undisturbed(subject), torch.no_grad():
        batches = subject.batches(question.encodings, size=question.settings.batch_size)
        layers = layers_of(subject, batches[0])
        with capture(subject) as captured:
            stream = ColumnStream(captured, course, layers)
            for batch in batches:
                stream.begin(batch, indicators(batch, positions))
                outputs(question, batch)
                flow = stream.flow[..., 0]
                read = (flow * read_weights(subject, batch)).sum(dim=-1).tolist()
                own = map(Reached, real_tokens(batch, flow.cpu().numpy()), read)
                answers.update(zip(batch.rows, own, strict=True))
                question.progress(question.method, len(answers), len(question.encodings))
    return [answers[row] for row in range(len(answers))]


def reach_of_spans(question: Question) -> list[Reached | None]:
    """`reach` of the tokens that share a character with each text's span (`question.spans`); in input order.

    None where a text has no span, where the span was cut off with the rest of a long text, or holds no token.
    """
    spans = [question.span(row) for row in range(len(question.encodings))]
    inside = [positions_of(own, span) for own, span in zip(question.encodings, spans, strict=True)]
    asked = [row for row, found in enumerate(inside) if found]
    chosen = replace(
        question, encodings=[question.encodings[row] for row in asked], spans=[spans[row] for row in asked]
    )
    answers = dict(zip(asked, reach(chosen, [inside[row] for row in asked]), strict=True))
    return [answers.get(row) for row in range(len(inside))]


def positions_of(encoding: "Encoding", span: Span | None) -> list[int]:
    """Tokens that share a character with the span; none where it is None or was not kept as a whole."""
    if span is None or not encoding.covers(*span):
        return []
    return [
        at
        for at, (first, last) in enumerate(encoding.offsets)
        if first < span[1] and last > span[0] and last > first  # special tokens stand at (0, 0)
    ]


class ColumnStream:
    """Pushes columns (b, n, c) through the layers of one forward pass at a time, as the model passes through them."""

    flow: "torch.Tensor"

    def __init__(self, captured: "Capture", course: Course, layers: int) -> None:
        """Watch every layer of this capture of a model with so many layers."""
        self.course = course
        self.first, self.last = course.within(layers)
        captured.on_layer(self.see)
        captured.answer_with(self.answer)

    def begin(self, batch: "Batch", columns: "torch.Tensor") -> None:
        """A forward pass of this batch is about to come; these columns go in, (b, n, c) float64."""
        self.real, self.flow = batch.mask.bool(), columns

    def see(self, layer: "LayerAttention") -> None:
        """Pass through a layer that is read from its weights: all of them, or a block of rows at a time."""
        if not self.first <= layer.index <= self.last or self._by_the_kernel(layer):
            return
        n = self.real.shape[1]
        if n <= SHORT or layer.observed is not None:
            self._pass(layer, self._drawn(layer, layer.weights()))
            return
        block = max(1, BLOCK_WEIGHTS // (self.real.numel() * layer.queries().shape[1]))
        parts = [self._drawn(layer, layer.weights(slice(at, at + block))) for at in range(0, n, block)]
        self._pass(layer, _joined(parts))

    def answer(self, layer: "LayerAttention") -> "torch.Tensor | None":
        """Run a layer by one fused call that takes the columns along."""
        if not self.first <= layer.index <= self.last or not self._by_the_kernel(layer):
            return None
        output, drawn = attended_with(layer, self.flow)
        heads = self.course.heads_of(drawn, top=layer.index == self.last)
        self._pass(layer, heads.double().mean(dim=1))
        return output

    def _by_the_kernel(self, layer: "LayerAttention") -> bool:
        return self.real.shape[1] > SHORT and fits(layer)

    def _drawn(self, layer: "LayerAttention", weights: "torch.Tensor") -> "torch.Tensor":
        fused = self.course.heads_of(weights, top=layer.index == self.last).mean(dim=1)
        return (fused @ self.flow.to(fused.dtype)).double()

    def _pass(self, layer: "LayerAttention", drawn: "torch.Tensor") -> None:
        """Mix with the residual stream; what rows of padding draw is read by nobody, and may be undefined."""
        residual = self.course.mixing.residual
        mixed = (1 - residual) * drawn + residual * self.flow
        self.flow = mixed.masked_fill(~self.real[..., None], 0.0)


def _joined(parts: "list[torch.Tensor]") -> "torch.Tensor":
    import torch

    return torch.cat(parts, dim=1)


def indicators(batch: "Batch", positions: Sequence[Sequence[int]]) -> "torch.Tensor":
    """1 at the chosen tokens of each text, (b, n, 1) float64."""
    import torch

    columns = torch.zeros(*batch.ids.shape, 1, dtype=torch.float64)
    for place, row in enumerate(batch.rows):
        start = int(batch.mask[place].bool().int().argmax())  # padding may stand before a text
        columns[place, [start + at for at in positions[row]]] = 1.0
    return columns.to(batch.ids.device)


def linear_course(question: Question) -> Course:
    """The course that the rollout settings ask for; UsageError where it is not linear or has a reference.

    UnsupportedModelError as `require_one_stack`.
    """
    options = question.settings.rollout
    require_one_stack(question)
    for name, value, wanted in (
        ("fusion", options.fusion, "mean"),
        ("discard", options.discard, 0.0),
        ("reference", options.reference, "none"),
        ("receptive_field", options.receptive_field, "none"),
    ):
        if value != wanted:
            raise UsageError(
                f"rollout: {name} is {value!r}, expected {wanted!r} here: only plain means of heads can be pushed "
                "through layer by layer; leave it out, or read rows with method='rollout'"
            )
    return Course(Mixing(residual=options.residual), *options.layers, options.head)


def require_one_stack(question: Question) -> None:
    """UnsupportedModelError where an encoder and a decoder attend to each other: their layers are no one chain."""
    name = question.subject.name
    if question.subject.model.config.is_encoder_decoder:
        raise UnsupportedModelError(
            f"{name} is an encoder-decoder, whose layers are no one chain; choose a method without attention: "
            "occlusion, integrated_gradients",
            code="encoder_decoder",
        )


def _check(question: Question, positions: Sequence[Sequence[int]]) -> None:
    """UsageError unless there is at least one known token for each text."""
    if len(positions) != len(question.encodings):
        raise UsageError(f"rollout: positions of {len(positions)} texts for {len(question.encodings)} texts")
    for row, (chosen, own) in enumerate(zip(positions, question.encodings, strict=True)):
        count = max(1, len(own.ids))
        wrong = [at for at in chosen if not 0 <= at < count]
        if wrong or not len(chosen):
            said = f"position {wrong[0]}" if wrong else "no position"
            raise UsageError(f"rollout: {said} in text {row}, expected one or more from 0 to {count - 1}")
