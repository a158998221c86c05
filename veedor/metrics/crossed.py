"""The arithmetic of a contrast between two sets of words over templates, cells missing or not.

Templates and words are both random: statistics of Clark (1973) and Raaijmakers et al. (1999), with separate variances
of the words of each side and Satterthwaite's degrees of freedom. Works on any number of leading axes at once, so that
a simulation or 200 placebo splits are one call. What is undefined is NaN in here and nowhere else: `inference` turns
it into None with a reason. Sums run in a fixed order without BLAS, so that the same cells give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.intp]


@dataclass(frozen=True)
class Contrast:
    """Everything about one contrast (or, with leading axes, many). NaN where undefined."""

    estimate: Floats  # (...) mean over templates of the difference
    standard_error: Floats
    df: Floats
    used: Bools  # (..., T) templates that hold both sides
    differences: Floats  # (..., T) mean of one side minus mean of the other; NaN where not used
    effects: Floats  # (..., K) of every word, against the other side's mean in the same templates
    held: Integers  # (..., K) used templates that hold the word
    n_of: Integers  # (...) words of the side in question, in the used templates
    n_against: Integers
    variance_of: Floats  # (...) of the mean of that side's words
    variance_against: Floats
    variance_templates: Floats


def contrast(values: Floats, of: Bools, against: Bools) -> Contrast:
    """Contrast the words `of` with the words `against`. values (..., T, K), NaN for missing; masks (..., K).

    d_t = mean of one side in template t - mean of the other, d = mean of d_t; u_k = mean over the templates that hold
    word k of (y_tk - mean of the other side in t); se^2 = s^2(u of)/K_of + s^2(u against)/K_against + s^2(d_t)/T;
    df = se^4 / (sum of each part squared over its own degrees of freedom).
    """
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    count_of, mean_of = _side_means(filled, present, of)
    count_against, mean_against = _side_means(filled, present, against)
    used = (count_of > 0) & (count_against > 0)
    differences = np.where(used, mean_of - mean_against, np.nan)
    cells = present & used[..., :, None]
    held = cells.sum(axis=-2)
    residuals = np.where(cells, filled - np.where(used, mean_against, 0.0)[..., :, None], 0.0)
    effects = _ratio(residuals.sum(axis=-2), held)
    n_of, _, variance_of = _mean_and_variance(effects, of & (held > 0))
    n_against, _, variance_against = _mean_and_variance(effects, against & (held > 0))
    _, estimate, variance_templates = _mean_and_variance(differences, used)
    parts = (variance_of, variance_against, variance_templates)
    freedoms = (n_of - 1, n_against - 1, used.sum(axis=-1) - 1)
    return Contrast(
        estimate=estimate,
        standard_error=np.sqrt(parts[0] + parts[1] + parts[2]),
        df=satterthwaite(parts, freedoms),
        used=used,
        differences=differences,
        effects=effects,
        held=held,
        n_of=n_of,
        n_against=n_against,
        variance_of=variance_of,
        variance_against=variance_against,
        variance_templates=variance_templates,
    )


def satterthwaite(parts: Sequence[Any], freedoms: Sequence[Any]) -> Floats:
    """Degrees of freedom of a sum of independent variance estimates; the smallest of them where all are exactly zero.

    >>> round(float(satterthwaite((1.0, 1.0), (9, 9))), 6)
    18.0
    >>> float(satterthwaite((0.0, 0.0), (3, 9)))
    3.0
    """
    stacked = np.stack([np.asarray(part, dtype=np.float64) for part in parts])
    freedom = np.stack([np.asarray(free, dtype=np.float64) for free in freedoms])
    total = stacked.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(total > 0, stacked / total, 0.0)
        df = 1.0 / (shares**2 / freedom).sum(axis=0)
    smallest = np.where(freedom.min(axis=0) > 0, freedom.min(axis=0), np.nan)
    return np.where(np.isnan(total), np.nan, np.where(total > 0, df, smallest))


def grid(values: Floats, rows: Integers, columns: Integers, shape: tuple[int, int]) -> Floats:
    """Mean value of each cell (row, column), NaN where there is none. Values must come in a canonical order."""
    flat = rows * shape[1] + columns
    size = shape[0] * shape[1]
    return _ratio(np.bincount(flat, weights=values, minlength=size), np.bincount(flat, minlength=size)).reshape(shape)


def _side_means(filled: Floats, present: Bools, side: Bools) -> tuple[Integers, Floats]:
    mask = present & side[..., None, :]
    count = mask.sum(axis=-1)
    return count, _ratio(np.where(mask, filled, 0.0).sum(axis=-1), count)


def _mean_and_variance(numbers: Floats, chosen: Bools) -> tuple[Integers, Floats, Floats]:
    """Count, mean, and s^2/n of the chosen numbers along the last axis; NaN below one and two of them."""
    count = chosen.sum(axis=-1)
    kept = np.where(chosen, numbers, 0.0)
    mean = _ratio(kept.sum(axis=-1), count)
    away = np.where(chosen, numbers - mean[..., None], 0.0)
    variance = _ratio((away**2).sum(axis=-1), np.maximum(count - 1, 0))
    return count, mean, _ratio(variance, count)


def _ratio(top: Any, bottom: Any) -> Floats:
    """Quotient, NaN where the denominator is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(np.asarray(bottom) > 0, top / bottom, np.nan)
    return result
