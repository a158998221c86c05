"""How rollout's row spreads out with depth, beside what it would do without anything learned.

After every layer: entropy and effective support of the row that the head reads, and the same of a stack that looks at
everything it may see alike. Rollout tends to one of two ends as layers are added: a row like that of uniform attention,
from which nothing can be read ("diffuse"), or one token that holds it all ("collapsed"). The words say where a row
stands, not whether a model is good. Pure functions of arrays; products are taken in logarithms, so that no depth makes
them 0.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from veedor.attribution.rollout import LAYERS_OF_HEADS, MAPS
from veedor.attribution.spread import log_entropy
from veedor.errors import UsageError

Word = Literal["diffuse", "collapsed"]
FEW = 2.0  # tokens: a row with a smaller effective support is called collapsed
NEAR = 0.9  # of a reference's effective support: a row that reaches it is called diffuse


@dataclass(frozen=True, eq=False)
class Spread:
    """By depth: entry l - 1 is of the row after layers 1 to l. `entropy` in nats, (layers,) float64."""

    entropy: np.ndarray

    @property
    def effective_support(self) -> np.ndarray:
        """exp of the entropy, (layers,): how many tokens would have it if they shared evenly, from 1 to n."""
        support: np.ndarray = np.exp(self.entropy)
        return support


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """One text's row by depth, and its references; `tokens`: how many there are.

    `uniform`: attention that looks at all it may see alike; `untrained`: the same architecture with fresh weights, None
    where only maps are known.
    """

    tokens: int
    found: Spread
    uniform: Spread
    untrained: Spread | None = None

    @property
    def word(self) -> Word | None:
        """Where the row stands after the last layer; None where it is neither, or there is but one token.

        "collapsed": effective support under 2 tokens. Else "diffuse": at least 0.9 of the effective support of the
        less spread of the references. Deep decoders collapse by their mask alone: `uniform` then is under 2 as well.
        """
        support = self.found.effective_support[-1]
        references = [own for own in (self.uniform, self.untrained) if own is not None]
        if self.tokens == 1:
            return None
        if support < FEW:
            return "collapsed"
        return "diffuse" if support >= NEAR * min(own.effective_support[-1] for own in references) else None


def diagnose_maps(
    attention: np.ndarray, read: np.ndarray, *, seen: np.ndarray | None = None, residual: float = 0.5
) -> Diagnosis:
    """Diagnosis of attention (layers, heads, n, n) or (layers, n, n), the layer next to the input first.

    `read` (n,): how much the head reads of each row. `seen` (n, n) or (layers, n, n) bool: which inputs a row may see;
    None: all of them. Heads are averaged.
    """
    layers, n = attention.shape[0], attention.shape[-1]
    fused = attention.mean(axis=1) if attention.ndim == LAYERS_OF_HEADS else attention
    sight = np.broadcast_to(np.ones((n, n), dtype=bool) if seen is None else seen, (layers, n, n))
    return Diagnosis(
        tokens=n,
        found=spread_by_depth(fused, read, residual=residual),
        uniform=spread_by_depth(uniform_maps(sight), read, residual=residual),
    )


def spread_by_depth(maps: np.ndarray, read: np.ndarray, *, residual: float = 0.5) -> Spread:
    """Entropy of read A_l … A_1 for l = 1 … layers, A = (1 - residual) map + residual I; maps (layers, n, n).

    >>> one = np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> spread_by_depth(np.stack([one, one]), np.array([1.0, 0.0]), residual=0.0).effective_support.round(3).tolist()
    [2.0, 1.755]
    """
    return Spread(np.array([log_entropy(row) for row in log_rows(maps, read, residual=residual)]))


def log_rows(maps: np.ndarray, read: np.ndarray, *, residual: float = 0.5) -> np.ndarray:
    """Natural logarithms of read A_l … A_1 for l = 1 … layers: (layers, n, n) -> (layers, n) float64.

    -inf is a weight of exactly 0: however many layers are multiplied, nothing that flows becomes it.
    """
    layers, n = _checked(maps, read, residual)
    flows = np.full((layers, n), -np.inf)
    with np.errstate(divide="ignore"):
        start = np.log(read.astype(np.float64))
    for layer in reversed(range(layers)):
        flows[layer] = start  # the row after this layer begins here; those of deeper ones are on their way down
        with np.errstate(divide="ignore"):
            logs = np.log((1 - residual) * maps[layer].astype(np.float64) + residual * np.eye(n))
        for depth in range(layer, layers):
            flows[depth] = log_sum(flows[depth][:, None] + logs)
    return flows


def log_sum(logs: np.ndarray) -> np.ndarray:
    """Logarithms of sums over the first axis, given logarithms of the terms: (n, m) -> (m,); -inf where all are."""
    top = logs.max(axis=0)
    level = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        summed: np.ndarray = np.log(np.exp(logs - level).sum(axis=0)) + level
    return summed


def uniform_maps(seen: np.ndarray) -> np.ndarray:
    """Attention that looks alike at every input that may be seen, (..., n, n) bool -> float64; blind rows stay 0.

    >>> uniform_maps(np.tril(np.ones((2, 2), dtype=bool))).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    count = seen.sum(axis=-1, keepdims=True)
    alike: np.ndarray = seen / np.maximum(count, 1)
    return alike


def _checked(maps: np.ndarray, read: np.ndarray, residual: float) -> tuple[int, int]:
    """Layers and tokens; UsageError unless these are square maps, a row of weights for them, and a share."""
    shape = maps.shape
    if maps.ndim != MAPS or shape[1] != shape[2] or 0 in shape or not (maps >= 0).all():
        raise UsageError(f"diagnostics: maps have shape {shape}, expected (layers, n, n) of weights of 0 or more")
    if read.shape != shape[1:2] or not (read >= 0).all() or not read.any():
        raise UsageError(
            f"diagnostics: weights of the rows that are read have shape {read.shape} and sum to {read.sum()}; expected "
            f"({shape[1]},), none below 0 and some above"
        )
    if not 0 <= residual <= 1:
        raise UsageError(f"diagnostics: residual is {residual}, expected a share from 0 to 1")
    return shape[0], shape[1]
