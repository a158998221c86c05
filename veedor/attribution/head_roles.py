"""Which attention heads move the answer, by how much, and how differently the heads of a layer look.

Effect: what the margin loses without a head. Cheap, from one backward pass: Σ A ⊙ ∂F/∂A over the head's weights A,
which is the derivative along a factor on the head's output (Michel, Levy and Neubig, 2019, section 4.1; they take the
mean of its absolute value over texts). Exact: the head's output set to 0 and the model asked again, a forward pass for
every head of every layer. Where heads make up for each other, or softmax and norms bend the margin, the two differ.
Diversity: Jensen-Shannon distance between the heads' rows that the classifier's head reads. Neither says that a head
has a function; an idle head on these texts may act on others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from veedor.attribution.attention import read_weights
from veedor.attribution.backward import Wanted, backward
from veedor.attribution.column_form import require_one_stack
from veedor.attribution.question import Question, UnsupportedModelError, undisturbed
from veedor.attribution.stability import outputs
from veedor.errors import UsageError, unknown

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, LayerAttention

By = Literal["gradient", "zeroing"]
WAYS: tuple[By, ...] = ("gradient", "zeroing")
WEIGHTS = Wanted(seen=frozenset({"weights"}))


@dataclass(frozen=True, eq=False)
class HeadRoles:
    """`falls` (texts, layers, heads) float64: how far the margin falls without the head; below 0 where it rises.

    `distances`: for each text and layer the mean Jensen-Shannon distance between two heads' rows, from 0, alike, to 1,
    nothing in common; None where fewer than two heads have a row.
    """

    by: By
    falls: np.ndarray
    distances: tuple[tuple[float | None, ...], ...]

    @property
    def effect(self) -> np.ndarray:
        """Mean over texts of the fall's absolute value, (layers, heads)."""
        found: np.ndarray = np.abs(self.falls).mean(axis=0)
        return found

    @property
    def diversity(self) -> tuple[float | None, ...]:
        """Mean over texts of each layer's distance, where there is one."""
        by_layer = [[own for own in layer if own is not None] for layer in zip(*self.distances, strict=True)]
        return tuple(float(np.mean(own)) if own else None for own in by_layer)


def head_roles(question: Question, *, by: By = "gradient") -> HeadRoles:
    """Effect of every head on the margin of the question's target, and diversity of every layer; texts in input order.

    By "gradient" to first order, one backward pass; by "zeroing" one forward pass for every head. UsageError without
    texts or for another way; UnsupportedModelError for encoder-decoders.
    """
    if by not in WAYS:
        raise UsageError(unknown("way", by, WAYS))
    if not question.encodings:
        raise UsageError("head roles: there are no texts, expected one or more")
    require_one_stack(question)
    falls, distances = dict[int, np.ndarray](), dict[int, tuple[float | None, ...]]()
    measure = _by_gradient if by == "gradient" else _by_zeroing
    with undisturbed(question.subject):
        for batch in question.subject.batches(question.encodings, size=question.settings.batch_size):
            lost, rows = measure(question, batch)
            falls.update(zip(batch.rows, lost, strict=True))
            distances.update(zip(batch.rows, (tuple(map(distance, own)) for own in rows), strict=True))
            question.progress(question.method, len(falls), len(question.encodings))
    order = range(len(question.encodings))
    return HeadRoles(by, np.stack([falls[row] for row in order]), tuple(distances[row] for row in order))


def first_order(weights: "torch.Tensor", gradient: "torch.Tensor") -> "torch.Tensor":
    """Σ A ⊙ ∂F/∂A of every head: (..., heads, n, n) twice -> (..., heads) float64; signed."""
    return (weights.double() * gradient.double()).sum(dim=(-1, -2))


def distance(rows: np.ndarray) -> float | None:
    """Mean Jensen-Shannon distance, base 2, between any two of these rows (heads, n); each is made to sum to 1.

    Rows without weight have no distance and are left out; None where fewer than two are left.

    >>> distance(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    0.6666666666666666
    """
    from scipy.special import rel_entr

    total = rows.sum(axis=-1, keepdims=True)
    shares = (rows / np.where(total > 0, total, 1.0))[total[:, 0] > 0]
    found = []
    for one, other in combinations(shares, 2):
        middle = (one + other) / 2
        bits = (rel_entr(one, middle) + rel_entr(other, middle)).sum() / 2 / np.log(2)
        found.append(np.sqrt(max(0.0, bits)))
    return float(np.mean(found)) if found else None


Measured = tuple[np.ndarray, np.ndarray]
"""A batch's falls, (b, layers, heads), and the heads' rows that are read, (b, layers, heads, n)."""


def _by_gradient(question: Question, batch: "Batch") -> Measured:
    found = backward(question, batch, WEIGHTS)
    start = read_weights(question.subject, batch)
    falls, rows = [], []
    for layer in found.layers:
        assert layer.weights is not None  # they were wanted
        falls.append(first_order(layer.weights, layer.of["weights"]))
        rows.append(read_rows(start, layer.weights))
    return _stacked(question, falls), _stacked(question, rows)


def _by_zeroing(question: Question, batch: "Batch") -> Measured:
    """The margin as it is, then once without each head."""
    import torch

    from veedor.subjects import capture

    start, rows = read_weights(question.subject, batch), list[torch.Tensor]()
    with torch.no_grad(), capture(question.subject) as seen:
        seen.on_layer(lambda layer: rows.append(read_rows(start, layer.weights())))
        outputs(question, batch)
    read = _stacked(question, rows)
    falls = np.zeros(read.shape[:3])
    with torch.no_grad(), capture(question.subject) as seen:
        whole = _margin(question, batch)
        for layer, head in np.ndindex(*read.shape[1:3]):
            seen.answer_with(without(layer, head), watched=True)
            falls[:, layer, head] = whole - _margin(question, batch)
    return falls, read


def without(number: int, head: int) -> "Callable[[LayerAttention], torch.Tensor | None]":
    """A rule for `Capture.answer_with`: the output of this layer with 0 in the place of one head's."""

    def rule(layer: "LayerAttention") -> "torch.Tensor | None":
        if layer.index != number:
            return None
        output = layer.output().clone()
        output[:, head] = 0.0
        return output

    return rule


def read_rows(start: "torch.Tensor", weights: "torch.Tensor") -> "torch.Tensor":
    """What each head gives the row, or mean of rows, that is read: (b, n) and (b, heads, n, m) -> (b, heads, m)."""
    return (start.to(weights.dtype)[:, None, None] @ weights)[:, :, 0].double()


def _margin(question: Question, batch: "Batch") -> np.ndarray:
    logits = outputs(question, batch)
    found: np.ndarray = question.subject.margin(logits, question.target_index, scale=question.scale).cpu().numpy()
    return found


def _stacked(question: Question, layers: "list[torch.Tensor]") -> np.ndarray:
    """Layers (b, heads, …) as one array (b, layers, heads, …); UnsupportedModelError where they differ in heads."""
    import torch

    heads = {layer.shape[1] for layer in layers}
    if len(heads) > 1:
        raise UnsupportedModelError(
            f"head roles do not fit {question.subject.name}: its layers have {sorted(heads)} heads, expected as many "
            "in each; read one layer at a time with attention.layer and attention.head",
            code="uneven_heads",
        )
    found: np.ndarray = torch.stack(layers, dim=1).detach().cpu().numpy()
    return found
