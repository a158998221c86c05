"""Adaptive integration of a vector along [0, 1], for many paths at once: Boole over Simpson, halving the worst.

The nested pair has 5 and 3 nodes, both ends among them, and a halved piece keeps all its nodes: only the two midpoints
of each half are new. So refinement wastes nothing, which is why a pair of low order beats Gauss-Kronrod here: the
gradient of a fine-tuned classifier is concentrated on a small part of the path, and an open rule throws its nodes away
when that part is halved (measured on two MiniLM classifiers: 22 nodes a text against 55 for the same true error).

The integrand is the derivative of a known function along the path, so that each piece has, beside the difference of its
two rules, an error that can be seen: its sum against the function's rise over the piece. Nothing is ever rescaled.
Knows no model: the caller evaluates.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""(paths (m,) int, positions (m,) in [0, 1]) -> (derivative by component (m, width), height of the function (m,))."""

BOOLE = np.array([7.0, 32.0, 12.0, 32.0, 7.0]) / 90
SIMPSON = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 6
START = np.linspace(0.0, 1.0, 9)  # two pieces
NEW_NODES = 4  # of a piece that is halved
# Boole's error is far below the pair's difference; a sixth of it, beside the visible error, kept the true one under
# the tolerance in all trials, smooth and sharp (a fifteenth, which is Simpson's own error, did not).
SHARE_OF_DIFFERENCE = 1 / 6
FLOOR = 1e-3  # in units of the function (logits): an integral smaller than this matters to nobody
ROUNDING = 1e-6  # of the function in float32, relative: halving a piece cannot remove it
GAP_FLOOR = 0.1


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of one path with its five nodes: vectors (5, width), heights (5,)."""

    low: float
    high: float
    vectors: np.ndarray
    heights: np.ndarray

    @cached_property
    def integral(self) -> np.ndarray:
        """Boole's rule, (width,)."""
        estimate: np.ndarray = (self.high - self.low) * (BOOLE @ self.vectors)
        return estimate

    @cached_property
    def length(self) -> float:
        """Boole's rule for the L1 of the derivative: the mean L1 over the piece times its width."""
        return float((self.high - self.low) * (BOOLE @ np.abs(self.vectors).sum(axis=1)))

    @cached_property
    def error(self) -> float:
        """L1 error of the integral: what is missing to the function's rise, and a share of the rules' difference."""
        boole = self.integral
        simpson = (self.high - self.low) * (SIMPSON @ self.vectors)
        missing = abs(boole.sum() - (self.heights[-1] - self.heights[0])) - ROUNDING * np.abs(self.heights).max()
        return float(max(missing, 0.0) + SHARE_OF_DIFFERENCE * np.abs(boole - simpson).sum())

    def midpoints(self) -> np.ndarray:
        """The four positions that halving adds."""
        return self.low + (self.high - self.low) * np.array([1, 3, 5, 7]) / 8

    def halves(self, vectors: np.ndarray, heights: np.ndarray) -> "tuple[Piece, Piece]":
        """The two halves, given the vectors and heights at the midpoints."""
        order = [0, 5, 1, 6, 2, 7, 3, 8, 4]  # old nodes 0-4, new ones 5-8, from low to high
        nodes, tops = np.concatenate((self.vectors, vectors))[order], np.concatenate((self.heights, heights))[order]
        middle = (self.low + self.high) / 2
        return Piece(self.low, middle, nodes[:5], tops[:5]), Piece(middle, self.high, nodes[4:], tops[4:])


@dataclass(frozen=True)
class Integral:
    """The integral of one path, (width,), and how good it is.

    `error`: estimated L1 error over the integral's L1. `gap`: |sum − rise| / max(|rise|, .1), the rise being that of
    the function between the ends. `nodes`: evaluations. `converged`: both within the tolerance. `end_slope`: L1 of the
    derivative at the path's end over its mean along the path, 1 on a straight line; None where the mean is 0.
    """

    values: np.ndarray
    error: float
    gap: float
    nodes: int
    converged: bool
    rise: float
    end_slope: float | None


def integrate(evaluate: Evaluate, paths: int, *, tolerance: float, max_nodes: int) -> list[Integral]:
    """Integrate every path until error and gap are within the tolerance or max_nodes are spent.

    >>> found = integrate(lambda path, at: (3 * at[:, None] ** 2, at**3), 1, tolerance=0.01, max_nodes=50)
    >>> round(float(found[0].values[0]), 12), found[0].nodes
    (1.0, 9)
    """
    pieces = _start(evaluate, paths)
    nodes = [len(START)] * paths
    while True:
        chosen = [_to_halve(own, tolerance, max_nodes - spent) for own, spent in zip(pieces, nodes, strict=True)]
        if not any(chosen):
            return [judge(own, spent, tolerance) for own, spent in zip(pieces, nodes, strict=True)]
        _halve(evaluate, pieces, chosen)
        nodes = [spent + NEW_NODES * len(worst) for spent, worst in zip(nodes, chosen, strict=True)]


def judge(pieces: list[Piece], nodes: int, tolerance: float) -> Integral:
    """Add the pieces of one path up, from its start to its end, and say how good the sum is."""
    ordered = sorted(pieces, key=lambda piece: piece.low)
    values = np.sum([piece.integral for piece in ordered], axis=0)
    error = sum(piece.error for piece in ordered) / max(float(np.abs(values).sum()), FLOOR)
    rise = float(ordered[-1].heights[-1] - ordered[0].heights[0])
    gap = completeness_gap(values, rise)
    length = sum(piece.length for piece in ordered)
    end_slope = float(np.abs(ordered[-1].vectors[-1]).sum()) / length if length > 0 else None
    return Integral(values, error, gap, nodes, bool(error <= tolerance and gap <= tolerance), rise, end_slope)


def completeness_gap(values: np.ndarray, rise: float) -> float:
    """|sum − rise| / max(|rise|, .1).

    >>> completeness_gap(np.array([1.0, 0.5]), 2.0)
    0.25
    """
    return float(abs(values.sum() - rise) / max(abs(rise), GAP_FLOOR))


def _start(evaluate: Evaluate, paths: int) -> list[list[Piece]]:
    owners = np.repeat(np.arange(paths), len(START))
    vectors, heights = evaluate(owners, np.tile(START, paths))
    shaped, tops = vectors.reshape(paths, len(START), -1), heights.reshape(paths, len(START))
    return [
        [Piece(0.0, 0.5, nodes[:5], top[:5]), Piece(0.5, 1.0, nodes[4:], top[4:])]
        for nodes, top in zip(shaped, tops, strict=True)
    ]


def _to_halve(pieces: list[Piece], tolerance: float, nodes_left: int) -> list[int]:
    """The fewest worst pieces whose error must go for the rest to be within the tolerance; none when it is."""
    state = judge(pieces, 0, tolerance)
    if state.converged:
        return []
    errors = [piece.error for piece in pieces]
    allowed = tolerance * max(float(np.abs(state.values).sum()), FLOOR)
    worst: list[int] = []
    rest = sum(errors)
    for index in sorted(range(len(pieces)), key=lambda index: (-errors[index], index)):
        if worst and rest <= allowed:
            break
        worst.append(index)
        rest -= errors[index]
    return worst[: max(0, nodes_left // NEW_NODES)]


def _halve(evaluate: Evaluate, pieces: list[list[Piece]], chosen: list[list[int]]) -> None:
    """Replace the chosen pieces of every path by their halves, with one evaluation for all of them."""
    todo = [(path, index) for path, worst in enumerate(chosen) for index in worst]
    owners = np.repeat([path for path, _ in todo], NEW_NODES)
    vectors, heights = evaluate(owners, np.concatenate([pieces[path][index].midpoints() for path, index in todo]))
    for number, (path, index) in enumerate(todo):
        own = slice(number * NEW_NODES, (number + 1) * NEW_NODES)
        left, right = pieces[path][index].halves(vectors[own], heights[own])
        pieces[path][index] = left
        pieces[path].append(right)
