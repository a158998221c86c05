"""Methods that read attention maps of a model: raw attention of one layer, and rollout over layers.

What is read is the row (or the mean of rows) that the classification head reads; no stack of layers and heads is ever
held. Neither method has a target: the classifier's weights change nothing. Under a causal mask rollout measures
position first (uniform attention of 8 layers puts more than half of a row of 15 tokens on the first): hold it against
`reference: uniform_causal`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.rollout import Mixing
from veedor.attribution.rollout_references import receptive_row, uniform_causal_row
from veedor.attribution.row_form import Course, RowStream, layers_of
from veedor.attribution.spread import effective_support, entropy
from veedor.attribution.stability import outputs
from veedor.errors import UsageError

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Subject


def attention(question: Question) -> list[Scored]:
    """Weights of one layer (the last), heads fused (mean), in the row that the head reads; they sum to 1."""
    options = question.settings.attention
    course = Course(Mixing(residual=0.0, fusion=options.fusion), options.layer, options.layer, options.head)
    return _read_rows(question, course, lambda row, *_: Scored(row))


def attention_rollout(question: Question) -> list[Scored]:
    """Rollout in the row that the head reads; it sums to 1 unless specials are dropped or a reference is taken off.

    `facts`: entropy (nats) and effective support (its exponential, tokens) of the row as rollout gave it, before any
    reference; `specials_share` where special tokens are dropped.
    """
    options = question.settings.rollout
    mixing = Mixing(residual=options.residual, fusion=options.fusion, discard=options.discard)
    answers = _read_rows(question, Course(mixing, *options.layers, options.head), _refer(question))
    if options.specials == "keep":
        return answers
    return [_without_specials(question, row, answer) for row, answer in enumerate(answers)]


Finish = Callable[[np.ndarray, np.ndarray, RowStream], Scored]
"""One text's row, the weights it is read by, both (n,), and what was seen -> the answer."""


def _refer(question: Question) -> Finish:
    """Put a row beside what the decoder's mask alone would give, as the settings say."""
    options = question.settings.rollout

    def finish(row: np.ndarray, start: np.ndarray, stream: RowStream) -> Scored:
        facts = {"entropy": entropy(row), "effective_support": effective_support(row)}
        if options.reference == "none" and options.receptive_field == "none":
            return Scored(row, facts=facts)
        if not stream.causal:
            raise UsageError(
                f"rollout: {question.subject.card.name} is no decoder: its tokens see those behind them, so there is "
                "no causal mask to allow for; leave reference and receptive_field at none"
            )
        layers = stream.last - stream.first + 1
        flat = uniform_causal_row(start, layers, residual=options.residual)
        if options.receptive_field == "column":
            row, flat = receptive_row(row), receptive_row(flat)
        return Scored(row - flat if options.reference == "uniform_causal" else row, facts=facts)

    return finish


def _read_rows(question: Question, course: Course, finish: Finish) -> list[Scored]:
    import torch

    from veedor.subjects import capture

    subject, answers = question.subject, dict[int, Scored]()
    with undisturbed(subject), torch.no_grad():
        batches = subject.batches(question.encodings, size=question.settings.batch_size)
        layers = layers_of(subject, batches[0])
        with capture(subject) as captured:
            stream = RowStream(captured, course, layers)
            for batch in batches:
                stream.begin(batch)
                outputs(question, batch)
                start = read_weights(subject, batch)
                found = real_tokens(batch, stream.drawn(start).cpu().numpy())
                starts = real_tokens(batch, start.cpu().numpy())
                own = [finish(row, begun, stream) for row, begun in zip(found, starts, strict=True)]
                answers.update(zip(batch.rows, own, strict=True))
                question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def read_weights(subject: "Subject", batch: "Batch") -> "torch.Tensor":
    """How much the head reads each row, (b, n) float64: all of one row, or a mean over rows."""
    import torch

    where = subject.read_row(batch)
    if where.ndim > 1:
        return where
    return torch.nn.functional.one_hot(where, batch.ids.shape[1]).double()


def _without_specials(question: Question, row: int, answer: Scored) -> Scored:
    special = question.encodings[row].special
    kept = tuple(at for at, flag in enumerate(special) if not flag)
    scores = answer.scores[list(kept)]
    share = float(answer.scores.sum() - scores.sum())
    return replace(answer, scores=scores, kept=kept, facts={**answer.facts, "specials_share": share})
