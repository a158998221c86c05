"""Methods that read attention maps of a model: raw attention of the last layer, and rollout over all layers.

Each map is folded as it passes through the model and let go of, so that no stack of layers and heads is ever held.
What is read is the row (or the mean of rows) that the classification head reads. Neither method has a target.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from veedor.attribution.question import UnsupportedModelError, Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.rollout import mix

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Encoding


def attention(question: Question) -> list[Scored]:
    """Weights of the last layer, mean over heads, in the row that the head reads; they sum to 1."""
    return _fold_batches(question, lambda layer, weights, below, real: weights.mean(dim=-3))


def attention_rollout(question: Question) -> list[Scored]:
    """Rollout over all layers, in the row that the head reads; it sums to 1."""
    raise NotImplementedError


def _fold_batches(question, fold):
    raise NotImplementedError
