"""Attention flow of a model: the row, or mean of rows, that the classification head reads. One text at a time.

A text of n tokens costs n maximum flows, n² where the head reads a mean of rows: more than `most_flows` are refused.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.attention import read_weights
from veedor.attribution.flow import cuts_below, row_of, widths_of
from veedor.attribution.question import Question, Scored, UnsupportedModelError, in_order, undisturbed

if TYPE_CHECKING:
    from veedor.subjects import LayerAttention

BLOCK_WEIGHTS = 2**21  # attention weights that are held at a time


def attention_flow_read(question: Question) -> list[Scored]:
    """Flow through heads' mean attention to the row that the head reads; each row sums to 1 before any mean."""
    import torch

    from veedor.subjects import capture

    subject, answers, maps = question.subject, dict[int, Scored](), list[np.ndarray]()
    batches = subject.batches(question.encodings, size=1)
    reads = [read_weights(subject, batch)[0].cpu().numpy() for batch in batches]
    for read in reads:  # before any work is done
        _require_few(question, rows=int(np.count_nonzero(read)), tokens=len(read))
    with undisturbed(subject), torch.no_grad(), capture(subject) as captured:
        captured.on_layer(lambda layer: maps.append(mean_map(layer)))
        for batch, read in zip(batches, reads, strict=True):
            maps.clear()
            subject.logits(batch)
            scores = read_flow(np.stack(maps), read, residual=question.settings.attention_flow.residual)
            answers[batch.rows[0]] = Scored(scores)
            question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def read_flow(maps: np.ndarray, read: np.ndarray, *, residual: float) -> np.ndarray:
    """The mean of flow rows by the weights `read` (n,): maps (layers, n, n) -> (n,) float64."""
    widths = widths_of(maps, residual)
    below = cuts_below(widths)
    rows = [read[row] * row_of(widths, int(row), below) for row in np.flatnonzero(read)]
    total: np.ndarray = np.sum(rows, axis=0)
    return total


def mean_map(layer: "LayerAttention") -> np.ndarray:
    """A layer's attention of one text, mean over heads, (n, n) float64; made a block of rows at a time."""
    import torch

    own = replace(layer)  # the model goes on with its own kernel
    _, heads, n = (layer.queries() if layer.observed is None else layer.observed).shape[:3]
    size = max(1, BLOCK_WEIGHTS // (heads * n))
    blocks: list[torch.Tensor] = [own.weights(slice(first, first + size))[0].mean(dim=0) for first in range(0, n, size)]
    found: np.ndarray = torch.cat(blocks).double().cpu().numpy()
    return found


def _require_few(question: Question, *, rows: int, tokens: int) -> None:
    most = question.settings.attention_flow.most_flows
    if rows * tokens > most:
        read = "one row" if rows == 1 else f"the mean of {rows} rows"
        raise UnsupportedModelError(
            f"attention_flow: the head of {question.subject.card.name} reads {read} of a text of {tokens} tokens: that "
            f"takes {rows * tokens} maximum flows, more than attention_flow.most_flows ({most}); raise it, shorten the "
            "text, or choose rollout",
            code="too_many_flows",
        )
