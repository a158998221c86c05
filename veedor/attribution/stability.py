"""Is an explanation the same a hair's breadth away? The input a method starts from, where it is or moved a little.

Max-sensitivity (Yeh et al., 2019, equation 3) asks a method again at embeddings a small step from the text's own. To do
so, put a `Jitter` on the question: `replace(question, jitter=Jitter(radius=0.02, draw=3))`. Every method that reads
embeddings or attention then starts from `embedded(question, batch)`, or goes forward by `outputs(question, batch)`, and
so answers at the moved point; methods that change the text itself (occlusion, surrogates) have no such point and ignore
it. Every real token, special ones too, moves in a direction drawn at random by `radius` times its own L2 norm, so that
the whole text moves by `radius` times its L2 norm; padding stays. What is drawn hangs on the text, the question's seed
and the draw alone: batches change nothing. The distance of two answers is not measured here.
"""

from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.question import Question
from veedor.subjects.perturbation import content_seed

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch


MOVES, NOISE = 0, 1  # streams of random numbers, so that a moved point is not one of SmoothGrad's noisy copies


def embedded(question: Question, batch: "Batch") -> "torch.Tensor":
    """Word embeddings (b, n, d) that a method starts from: the batch's own, or moved by the question's jitter."""
    points = question.subject.embed(batch).detach()
    if question.jitter is None:
        return points
    directions = draws(question, batch, width=points.shape[-1], draw=question.jitter.draw, stream=MOVES).to(points)
    steps = directions / directions.norm(dim=-1, keepdim=True).clamp_min(1e-12)
    moved: torch.Tensor = points + question.jitter.radius * points.norm(dim=-1, keepdim=True) * steps
    return moved


def outputs(question: Question, batch: "Batch") -> "torch.Tensor":
    """The classifier's outputs, (b, outputs), at the ids, or at embeddings that the question's jitter moved."""
    if question.jitter is None:
        return question.subject.logits(batch)
    return question.subject.logits_from_embeddings(embedded(question, batch), batch)


def draws(question: Question, batch: "Batch", *, width: int, draw: int, stream: int) -> "torch.Tensor":
    """Independent standard normal numbers for every real token, 0 for padding, (b, n, width) float32.

    `draw` numbers the draws of one text in a stream; the same text and seed give the same numbers in any batch.
    """
    import torch

    found = torch.zeros(*batch.ids.shape, width)
    for place, row in enumerate(batch.rows):
        real = batch.mask[place].bool().cpu()
        generator = np.random.default_rng([content_seed(question.encodings[row], question.seed), draw, stream])
        numbers = generator.standard_normal((int(real.sum()), width), dtype=np.float32)
        found[place, real] = torch.from_numpy(numbers)
    return found
