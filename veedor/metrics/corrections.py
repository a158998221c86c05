"""Corrections of p-values for many tests: Holm (1979) and Benjamini and Hochberg (1995).

A list in gives a list, an array an array, in the order given; nothing in gives nothing.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers = TypeVar("Numbers", list[float], NDArray[np.float64])


def holm(p_values: Numbers) -> Numbers:
    """Adjust p-values for the chance of any false alarm among them (Holm, 1979), in the order given.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    values = _probabilities(p_values)
    order = np.argsort(values, kind="stable")
    steps = values[order] * (len(values) - np.arange(len(values)))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return _like(adjusted, p_values)


def benjamini_hochberg(p_values: Numbers) -> Numbers:
    """Adjust p-values for the expected share of false alarms among the rejected (1995), in the order given.

    >>> [round(p, 3) for p in benjamini_hochberg([0.01, 0.04, 0.03])]
    [0.03, 0.04, 0.04]
    """
    values = _probabilities(p_values)
    order = np.argsort(values, kind="stable")
    steps = values[order] * len(values) / np.arange(1, len(values) + 1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return _like(adjusted, p_values)


def _probabilities(p_values: Numbers) -> NDArray[np.float64]:
    values = np.asarray(p_values, dtype=np.float64)
    outside = ~((values >= 0) & (values <= 1))
    if values.ndim != 1 or outside.any():
        found = values[outside][0] if outside.any() else f"an array of shape {values.shape}"
        raise ValueError(f"p_values holds {found}, expected numbers from 0 to 1; leave out hypotheses without a p")
    return values


def _like(adjusted: NDArray[np.float64], given: Numbers) -> Numbers:
    return adjusted if isinstance(given, np.ndarray) else [float(p) for p in adjusted]
