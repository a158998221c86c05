"""Diagnostics of rollout on a model: its row by depth, beside uniform attention and the same model before any training.

One forward pass shows all layers (`row_form`); the row of every depth is then sent down from its own layer, so a model
of L layers costs L (L + 1) / 2 steps down. The fresh model is drawn by a seed from the config of the given one, which
is not touched; it takes as much memory again.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.attention import read_weights
from veedor.attribution.column_form import linear_course
from veedor.attribution.diagnostics import Diagnosis, Spread
from veedor.attribution.kept_layers import Kept, WholeMap
from veedor.attribution.question import Question, real_tokens, undisturbed
from veedor.attribution.row_form import RowStream, layers_of
from veedor.attribution.spread import entropy
from veedor.attribution.stability import outputs
from veedor.errors import UsageError
from veedor.subjects.layer_attention import hidden

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, LayerAttention, Subject
    from veedor.subjects.capture import Capture


def diagnose(question: Question, *, seed: int = 0) -> list[Diagnosis]:
    """Entropy and effective support by depth of each text's row, with both references; in input order.

    Residual weight and layers are those of `settings.rollout`; heads are averaged, and other ways refused (UsageError).
    `seed` draws the fresh model's weights: the same seed, the same bytes.
    """
    if question.settings.rollout.head is not None:
        raise UsageError("diagnostics: rollout.head is set, expected none: every depth averages all heads")
    if not question.encodings:
        return []
    own = _measured(question)
    fresh = _measured(replace(question, subject=untrained(question.subject, seed=seed)))
    tokens = [max(1, len(encoding.ids)) for encoding in question.encodings]
    return [
        Diagnosis(count, found, uniform, without)
        for count, (found, uniform), (without, _) in zip(tokens, own, fresh, strict=True)
    ]


def untrained(subject: "Subject", *, seed: int = 0) -> "Subject":
    """The subject with a model of the same config whose weights were all drawn anew; the given one stays as it is."""
    import torch

    model, fresh = subject.model, copy.copy(subject)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        drawn = type(model)(copy.deepcopy(model.config))
    fresh.model = drawn.to(device=subject.device, dtype=next(model.parameters()).dtype).eval()
    fresh.name = f"{subject.name}, untrained"
    return fresh


def _measured(question: Question) -> list[tuple[Spread, Spread]]:
    """The row by depth and that of uniform attention under the same masks, for each text."""
    import torch

    from veedor.subjects import capture

    subject, answers = question.subject, dict[int, tuple[Spread, Spread]]()
    course = linear_course(question)
    with undisturbed(subject), torch.no_grad():
        batches = subject.batches(question.encodings, size=question.settings.batch_size)
        layers = layers_of(subject, batches[0])
        with capture(subject) as captured:
            stream = RowStream(captured, course, layers)
            alike = UniformLayers(captured, stream)
            for batch in batches:
                stream.begin(batch)
                alike.begin(batch)
                outputs(question, batch)
                start = read_weights(subject, batch)
                both = zip(_by_depth(stream.kept, start, batch), _by_depth(alike.kept, start, batch), strict=True)
                answers.update(zip(batch.rows, both, strict=True))
                question.progress(question.method, len(answers), len(question.encodings))
    return [answers[row] for row in range(len(answers))]


def _by_depth(kept: "list[Kept]", start: "torch.Tensor", batch: "Batch") -> list[Spread]:
    """Each text's spread after 1, 2, … layers."""
    rows = [real_tokens(batch, flow.cpu().numpy()) for flow in _flows(kept, start)]
    return [Spread(np.array([entropy(own) for own in of_text])) for of_text in zip(*rows, strict=True)]


def _flows(kept: "list[Kept]", start: "torch.Tensor") -> "Iterator[torch.Tensor]":
    for depth in range(1, len(kept) + 1):
        flow = start.double()
        for layer in reversed(kept[:depth]):
            flow = layer.below(flow)
            total = flow.sum(dim=-1, keepdim=True)  # sinks take a part of it at every layer
            flow = flow / total.masked_fill(total <= 0, 1.0)
        yield flow


@dataclass(eq=False)
class _Sight:
    mask: "torch.Tensor | None"
    causal: bool
    map: "torch.Tensor"


class UniformLayers:
    """For the layers of a row stream, maps that look alike at everything that the layers' masks let them see."""

    def __init__(self, captured: "Capture", stream: RowStream) -> None:
        """Watch the same layers."""
        self.stream = stream
        captured.on_layer(self.see)

    def begin(self, batch: "Batch") -> None:
        """A forward pass of this batch is about to come."""
        self.real = batch.mask.bool()
        self.kept: list[Kept] = []
        self._known: list[_Sight] = []

    def see(self, layer: "LayerAttention") -> None:
        """Keep the layer's uniform map; layers that share a mask share it."""
        import torch

        if not self.stream.first <= layer.index <= self.stream.last:
            return
        same = (own for own in self._known if own.mask is layer.mask and own.causal == layer.causal)
        known = next(same, None) if layer.observed is None else None
        if known is None:
            seen = visible(layer, self.real)
            alike = seen.double() / seen.sum(dim=-1, keepdim=True).clamp_min(1)
            residual = self.stream.course.mixing.residual
            own = torch.eye(alike.shape[-1], dtype=torch.float64, device=alike.device)
            known = _Sight(layer.mask, layer.causal, (1 - residual) * alike + residual * own)
            self._known.append(known)
        self.kept.append(WholeMap(known.map, layer.index))


def visible(layer: "LayerAttention", real: "torch.Tensor") -> "torch.Tensor":
    """Which keys some head of each row may see, (b, n, n) bool; where only the softmax was seen, where weight lies."""
    import torch

    texts, n = real.shape
    if layer.observed is not None:
        return (layer.observed > 0).any(dim=1) & real[:, None, :]
    seen = real[:, None, :].expand(texts, n, n)
    if layer.mask is not None:
        seen = seen & (~hidden(layer.mask)).any(dim=1)
    if layer.causal:
        seen = seen & torch.ones(n, n, dtype=torch.bool, device=real.device).tril()
    return seen
