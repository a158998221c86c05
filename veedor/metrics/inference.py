"""Tests over templates and words: of a group of terms, and of one term, against control words.

The arithmetic is in `crossed`, Student's t in `student`, corrections for many tests in `corrections`; all that other
programs use can be imported from here. Rows are never counted as independent: the units are templates and words. What
is undefined is None and `reason` says why; a NaN that comes in is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veedor.metrics.constants import HEAVY_TAIL_FACTOR, LIGHT_TAIL_FACTOR, TAIL_LIMIT
from veedor.metrics.corrections import benjamini_hochberg, holm
from veedor.metrics.crossed import Bools, Contrast, Floats, contrast, grid, satterthwaite
from veedor.metrics.student import equivalence_test, interval, two_sided_p, upper_p
from veedor.records import finite

__all__ = [
    "CrossedResult",
    "TermResult",
    "benjamini_hochberg",
    "crossed_test",
    "equivalence_test",
    "holm",
    "interval",
    "term_test",
    "two_sided_p",
    "upper_p",
]

Strings = NDArray[np.str_]


@dataclass(frozen=True)
class CrossedResult:
    """A group of words against a reference: estimate and interval in the values' units, two-sided p."""

    estimate: float | None
    standard_error: float | None
    df: float | None
    low: float | None
    high: float | None
    p: float | None
    n_templates: int
    n_terms: int
    n_against: int
    level: float
    reason: str | None = None  # "no_shared_context" | "one_context" | "one_term" | "one_control"


@dataclass(frozen=True)
class TermResult:
    """One word against what single ordinary words do. `p` is that of t = estimate / prediction_error."""

    estimate: float | None
    standard_error: float | None  # of the estimate itself, over contexts and controls
    df: float | None
    prediction_error: float | None  # s_c * sqrt(1 + 1/K_c): the term as one more ordinary word
    prediction_df: float | None
    p: float | None
    n_templates: int
    n_controls: int
    most_extreme_control: float | None
    skew: float | None
    excess_kurtosis: float | None
    tail_factor: float | None
    reason: str | None = None


def crossed_test(
    values: ArrayLike,
    template: ArrayLike,
    term: ArrayLike,
    group: ArrayLike,
    *,
    of: str,
    against: str,
    level: float = 0.95,
) -> CrossedResult:
    """Test the terms of group `of` against those of `against`, templates and terms both random, missing cells allowed.

    One entry a row in each array; several rows of one cell are averaged. Templates without both sides are dropped.

    >>> values = [1.0, 3.0, 0.0, 0.5, 2.0, 3.0, 0.0, 1.0]
    >>> result = crossed_test(values, [*"aaaabbbb"], [*"pqrspqrs"], [*"ggccggcc"], of="g", against="c")
    >>> result.estimate, result.n_templates, result.n_terms
    (1.875, 2, 2)
    """
    if of == against:
        raise ValueError(f"a group cannot be tested against itself (of and against are both {of!r})")
    if not 0 < level < 1:
        raise ValueError(f"level {level} is no confidence level; give one between 0 and 1, such as 0.95")
    numbers, (templates, terms, groups) = align(values, template=template, term=term, group=group)
    chosen = (groups == str(of)) | (groups == str(against))
    cells, words, _ = cell_means(numbers[chosen], templates[chosen], terms[chosen], groups[chosen])
    return crossed_result(contrast(cells, words == str(of), words == str(against)), level=level)


def term_test(values: ArrayLike, template: ArrayLike, term: ArrayLike, control: ArrayLike, *, of: str) -> TermResult:
    """Test one term as if it were one more control word, in the templates that hold it and a control.

    `control` is true for rows of control words; rows of other terms are left out. The estimate's own standard error
    is s^2(template differences)/T + s_c^2/K_c; the tail factor is 2 where the controls' tails are heavy or unknown.
    """
    numbers, (templates, terms) = align(values, template=template, term=term)
    controls = as_mask(control, len(numbers), "control")
    mine = (terms == str(of)) & ~controls
    chosen = mine | controls
    sides = np.where(controls, "control", "term")[chosen]
    cells, words, _ = cell_means(numbers[chosen], templates[chosen], terms[chosen], sides)
    return term_result(contrast(cells, words == "term", words == "control"), words == "control")


def crossed_result(found: Contrast, *, level: float = 0.95) -> CrossedResult:
    """Read one contrast as a group's: interval, p, and why something is undefined."""
    estimate, error, df = (finite(float(x)) for x in (found.estimate, found.standard_error, found.df))
    low, high = interval(estimate, error, df, level=level)
    return CrossedResult(
        estimate=estimate,
        standard_error=error,
        df=df if error is not None else None,
        low=low,
        high=high,
        p=two_sided_p(estimate, error, df),
        n_templates=int(found.used.sum()),
        n_terms=int(found.n_of),
        n_against=int(found.n_against),
        level=level,
        reason=_why_undefined(found, single_term=False),
    )


def term_result(found: Contrast, controls: Bools) -> TermResult:
    """Read one contrast as a single term's against control words (K,)."""
    effects = found.effects[controls & (found.held > 0)]
    count = len(effects)
    templates = int(found.used.sum())
    centre = float(effects.mean()) if count else float("nan")
    estimate = finite(float(found.estimate) - centre)
    spread = float(effects.std(ddof=1)) if count > 1 else float("nan")
    skew, kurtosis = tails(effects)
    parts = (float(found.variance_templates), float(found.variance_against))
    error = finite(float(np.sqrt(sum(parts))))
    prediction = finite(spread * float(np.sqrt(1 + 1 / max(count, 1))))
    return TermResult(
        estimate=estimate,
        standard_error=error,
        df=finite(float(satterthwaite(parts, (templates - 1, count - 1)))) if error is not None else None,
        prediction_error=prediction,
        prediction_df=float(count - 1) if prediction is not None else None,
        p=two_sided_p(estimate, prediction, float(count - 1)),
        n_templates=templates,
        n_controls=count,
        most_extreme_control=float(np.abs(effects - centre).max()) if count else None,
        skew=skew,
        excess_kurtosis=kurtosis,
        tail_factor=tail_factor(skew, kurtosis) if count else None,
        reason=_why_undefined(found, single_term=True),
    )


def tails(effects: Floats) -> tuple[float | None, float | None]:
    """Bias-corrected skew (from 3 numbers) and excess kurtosis (from 4); None below that or without any spread."""
    n = len(effects)
    away = effects - effects.mean() if n else effects
    second = float((away**2).mean()) if n else 0.0
    if second <= 0.0 or n < 3:
        return None, None
    skew = float((away**3).mean()) / second**1.5 * float(np.sqrt(n * (n - 1))) / (n - 2)
    if n < 4:
        return finite(skew), None
    excess = float((away**4).mean()) / second**2 - 3
    return finite(skew), finite((n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6))


def tail_factor(skew: float | None, excess_kurtosis: float | None) -> float:
    """How many times the most extreme control a term must exceed; tails that are not known count as heavy.

    >>> tail_factor(0.2, -0.5), tail_factor(-1.2, 0.3), tail_factor(None, None)
    (1.0, 2.0, 2.0)
    """
    if skew is None or excess_kurtosis is None or max(abs(skew), excess_kurtosis) > TAIL_LIMIT:
        return HEAVY_TAIL_FACTOR
    return LIGHT_TAIL_FACTOR


def as_mask(flags: ArrayLike, size: int, name: str) -> Bools:
    """Cast 0/1 or booleans to booleans; anything else is refused (`~1` is -2, not false)."""
    raw = np.asarray(flags)
    if raw.shape != (size,):
        raise ValueError(f"{name} has shape {raw.shape}, expected ({size},): one entry a row")
    try:
        numbers = raw.astype(np.float64)
    except (TypeError, ValueError):
        numbers = np.full(size, np.nan)
    strange = ~np.isin(numbers, (0.0, 1.0))
    if strange.any():
        raise ValueError(f"{name} holds {raw[strange][0]!r}, expected only true and false (or 1 and 0)")
    return numbers.astype(bool)


def _why_undefined(found: Contrast, *, single_term: bool) -> str | None:
    checks: Sequence[tuple[bool, str]] = (
        (int(found.used.sum()) == 0, "no_shared_context"),
        (int(found.used.sum()) == 1, "one_context"),
        (int(found.n_of) < 2 and not single_term, "one_term"),
        (int(found.n_against) < 2, "one_control"),
    )
    return next((code for broken, code in checks if broken), None)


def align(values: ArrayLike, **keys: ArrayLike) -> tuple[Floats, tuple[Strings, ...]]:
    """Values as floats, labels as strings, one entry a row; what is undefined or of another length is refused."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise ValueError(f"values has shape {numbers.shape}, expected one number a row")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise ValueError(f"values[{bad[0]}] is {numbers[bad[0]]}; drop undefined rows, and count them, before the test")
    names = []
    for name, key in keys.items():
        labels = np.asarray(key).astype(str)
        if labels.shape != numbers.shape:
            raise ValueError(f"{name} has shape {labels.shape}, expected {numbers.shape}: one entry a row")
        names.append(labels)
    return numbers, tuple(names)


def cell_means(numbers: Floats, template: Strings, term: Strings, side: Strings) -> tuple[Floats, Strings, Strings]:
    """Cell means (T, K) in alphabetical order, whatever the order of the rows; each word's side, and its name."""
    if not len(numbers):
        return np.empty((0, 0)), np.empty(0, dtype=str), np.empty(0, dtype=str)
    templates, row = np.unique(template, return_inverse=True)
    sides, side_code = np.unique(side, return_inverse=True)
    terms, term_code = np.unique(term, return_inverse=True)
    words, column = np.unique(side_code * len(terms) + term_code, return_inverse=True)
    order = np.lexsort((numbers, column, row))
    cells = grid(numbers[order], row[order], column[order], (len(templates), len(words)))
    return cells, sides[words // len(terms)], terms[words % len(terms)]
