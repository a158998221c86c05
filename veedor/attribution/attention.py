"""Methods that read attention maps of a model: raw attention of the last layer, and rollout over all layers.

What is read is the row (or the mean of rows) that the classification head reads. From the forward pass only queries and
keys are kept; their maps are made again, a block of rows at a time, on the way down from the head's row to the input.
So no stack of layers and heads is ever held. Neither method has a target: the classifier's weights change nothing.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.rollout import Mixing, fuse_heads, rows_drawn
from veedor.attribution.stability import outputs

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, LayerAttention, Subject

BLOCK_WEIGHTS = 2**23  # attention weights that are held at a time: 32 MiB of float32


def attention(question: Question) -> list[Scored]:
    """Weights of the last layer, mean over heads, in the row that the head reads; they sum to 1."""
    return _read_rows(question, Mixing(residual=0.0), last_only=True)


def attention_rollout(question: Question) -> list[Scored]:
    """Rollout over all layers, in the row that the head reads; it sums to 1 unless special tokens are dropped."""
    options = question.settings.rollout
    mixing = Mixing(residual=options.residual, fusion=options.fusion, discard=options.discard)
    answers = _read_rows(question, mixing, last_only=False)
    if options.specials == "keep":
        return answers
    return [_without_specials(question, row, answer) for row, answer in enumerate(answers)]


class _Layers:
    """Collects what is needed to make the maps of one forward pass again."""

    def __init__(self, mixing: Mixing, *, last_only: bool) -> None:
        self.mixing, self.last_only = mixing, last_only
        self.seen: list[LayerAttention] = []

    def see(self, layer: "LayerAttention") -> None:
        if self.last_only:
            self.seen.clear()
        if layer.observed is None:
            self.seen.append(replace(layer, value=None))
        else:  # only the softmax was seen: keep its map, but not one a head
            self.seen.append(replace(layer, observed=fuse_heads(layer.observed, self.mixing.fusion)[:, None]))


def _read_rows(question: Question, mixing: Mixing, *, last_only: bool) -> list[Scored]:
    import torch

    from veedor.subjects import capture

    subject, answers = question.subject, dict[int, Scored]()
    layers = _Layers(mixing, last_only=last_only)
    with undisturbed(subject), torch.no_grad(), capture(subject) as captured:
        captured.on_layer(layers.see)
        for batch in subject.batches(question.encodings, size=question.settings.batch_size):
            layers.seen.clear()
            outputs(question, batch)
            block = max(1, BLOCK_WEIGHTS // (batch.ids.numel() * _heads(layers.seen)))
            drawn = rows_drawn(read_weights(subject, batch), layers.seen, mixing, batch.mask.bool(), block=block)
            scores = real_tokens(batch, drawn.cpu().numpy())
            answers.update(zip(batch.rows, map(Scored, scores), strict=True))
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def read_weights(subject: "Subject", batch: "Batch") -> "torch.Tensor":
    """How much the head reads each row, (b, n) float64: all of one row, or a mean over rows."""
    import torch

    where = subject.read_row(batch)
    if where.ndim > 1:
        return where
    return torch.nn.functional.one_hot(where, batch.ids.shape[1]).double()


def _heads(layers: "list[LayerAttention]") -> int:
    return max((1 if layer.query is None else layer.query.shape[1] for layer in layers), default=1)


def _without_specials(question: Question, row: int, answer: Scored) -> Scored:
    special = question.encodings[row].special
    kept = tuple(at for at, flag in enumerate(special) if not flag)
    scores = answer.scores[list(kept)]
    share = float(answer.scores.sum() - scores.sum())
    return replace(answer, scores=scores, kept=kept, facts={"specials_share": share})
