"""Whether a method's word scores say what the model does: the formulas, on numbers that the model already gave.

Comprehensiveness and sufficiency (DeYoung et al., 2020, section 4.2), normalised as by Carton et al. (2020), infidelity
and max-sensitivity (Yeh et al., 2019), Kendall's tau with leave-one-out drops, areas under deletion and insertion
curves (Petsiuk et al., 2018), rank correlation after randomisation (Adebayo et al., 2018). What is undefined is None.

Texts without words removed are off the model's data, and which operator removes them changes every number here but
those of randomisation: no value means anything but beside its random reference, under more than one operator.
Who asks the model: `faithfulness_texts`; what follows for a method: `faithfulness_marks`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veedor.metrics.agreement import kendall, spearman
from veedor.metrics.crossed import Floats
from veedor.records import finite

SHARES = (10, 20, 30, 40, 50)  # per cent of a text's words that a rationale holds
DRAWS = 10  # of max-sensitivity
ROOM = 0.01  # the least drop, from the whole text to the empty one, that a normalised value may be a share of


def ranking(scores: ArrayLike) -> NDArray[np.intp]:
    """Words by score, the highest first, equal ones in reading order. (n,) -> (n,) indices.

    Signed scores are ranked as they are: what speaks most for the target comes first, what speaks against it last.

    >>> ranking([0.1, -2.0, 0.5, 0.1]).tolist()
    [2, 0, 3, 1]
    """
    return np.argsort(-_vector(scores), kind="stable")


def rationale_sizes(words: int, shares: Sequence[int] = SHARES) -> tuple[int, ...]:
    """How many words the rationales of a text hold: these per cents rounded up, equal ones once.

    >>> rationale_sizes(4), rationale_sizes(20)
    ((1, 2), (2, 4, 6, 8, 10))
    """
    return tuple(sorted({-(-words * share // 100) for share in shares}))


def comprehensiveness(whole: float, without: ArrayLike) -> float:
    """Mean of m(x) − m(x without the rationale) over the rationales; higher is better. No term for the empty one.

    whole: the model's answer to the text; without: (rationales,). DeYoung et al. 2020, equation 1, on several sizes.

    >>> round(comprehensiveness(0.9, [0.6, 0.3]), 2)
    0.45
    """
    return float(np.mean(whole - _vector(without)))


def sufficiency(whole: float, only: ArrayLike) -> float:
    """Mean of m(x) − m(the rationale alone) over the rationales; lower is better. DeYoung et al. 2020, equation 2.

    >>> round(sufficiency(0.9, [0.5, 0.8]), 2)
    0.25
    """
    return float(np.mean(whole - _vector(only)))


def normalised_comprehensiveness(whole: float, empty: float, without: ArrayLike) -> float | None:
    """Mean of max(0, m(x) − m(x without)) / (m(x) − m(empty)); None where that is below .01. (Carton et al. 2020.)

    >>> round(normalised_comprehensiveness(0.9, 0.3, [0.6, 0.3]), 2), normalised_comprehensiveness(0.2, 0.3, [0.1])
    (0.75, None)
    """
    room = whole - empty
    return float(np.mean(np.maximum(0.0, whole - _vector(without)))) / room if room >= ROOM else None


def normalised_sufficiency(whole: float, empty: float, only: ArrayLike) -> float | None:
    """Mean of (s(rationale) − s(empty)) / (1 − s(empty)), s(r) = 1 − max(0, m(x) − m(r)); 1 is best. None as above.

    >>> round(normalised_sufficiency(0.9, 0.3, [0.3, 0.9]), 2)
    0.5
    """
    room = whole - empty
    return 1.0 - float(np.mean(np.maximum(0.0, whole - _vector(only)))) / room if room >= ROOM else None


@dataclass(frozen=True)
class Infidelity:
    """Mean squared miss of what scores promise about removals, in squared units of the explained score; 0 is best.

    `as_is`: with the scores themselves. `scaled`: with the scores times `factor`, the least-squares factor of zero or
    more: scores of another scale are forgiven, scores that point the wrong way are not turned round.
    """

    as_is: float
    scaled: float
    factor: float


def infidelity(scores: ArrayLike, removed: ArrayLike, drops: ArrayLike) -> Infidelity | None:
    """Mean of (Iᵀφ − (F(x) − F(x without I)))² over removals I of words (Yeh et al. 2019, definition 2.1).

    scores φ: (n,); removed: (draws, n) of 0 and 1; drops: F(x) − F(x without), (draws,). None without draws.

    >>> infidelity([1.0, -2.0], [[1, 0], [0, 1]], [1.0, -2.0])
    Infidelity(as_is=0.0, scaled=0.0, factor=1.0)
    """
    masks, measured = np.asarray(removed, dtype=np.float64), _vector(drops)
    if not len(measured):
        return None
    promised = masks @ _vector(scores)
    power = float(promised @ promised)
    factor = max(0.0, float(promised @ measured) / power) if power > 0 else 0.0
    miss = [float(np.mean((scale * promised - measured) ** 2)) for scale in (1.0, factor)]
    return Infidelity(miss[0], miss[1], factor)


def max_sensitivity(scores: ArrayLike, moved: Callable[[int], ArrayLike], *, draws: int = DRAWS) -> float | None:
    """Largest ‖φ′ − φ‖₂ / ‖φ‖₂ over draws of a slightly moved input (Yeh et al. 2019, definition 3.1); 0 is best.

    moved: from the number of a draw to the scores φ′ that it gives. None where φ is zero throughout.

    >>> max_sensitivity([3.0, 4.0], lambda draw: [3.0, 4.0 + draw], draws=3)
    0.4
    """
    found = _vector(scores)
    length = float(np.linalg.norm(found))
    if length == 0:
        return None
    return max(float(np.linalg.norm(_vector(moved(draw)) - found)) / length for draw in range(draws))


def tau_leave_one_out(scores: ArrayLike, drops: ArrayLike, *, signed: bool = True) -> float | None:
    """Kendall's tau-b of scores with F(x) − F(x without one word), over words; 1 is best.

    Scores without a sign are held against the size of the drops. None where either side does not vary.

    >>> tau_leave_one_out([3.0, 2.0, 1.0], [-5.0, 0.5, 0.1], signed=False)
    1.0
    """
    measured = _vector(drops)
    return kendall(scores, measured if signed else np.abs(measured))


def curve_area(shares: ArrayLike, heights: ArrayLike) -> float:
    """Area under a curve by the trapezoid rule; shares rise from 0 to 1.

    >>> curve_area([0.0, 0.5, 1.0], [1.0, 0.5, 0.0])
    0.5
    """
    at, height = _vector(shares), _vector(heights)
    return float(np.sum(np.diff(at) * (height[1:] + height[:-1]) / 2))


def magnitude_agreement(first: ArrayLike, second: ArrayLike) -> float | None:
    """Spearman's correlation of |φ| under one model with |φ| under another; None below three words or without spread.

    What stays high when the weights are drawn anew did not come from the weights (Adebayo et al. 2018).

    >>> magnitude_agreement([1.0, -2.0, 3.0], [-10.0, 20.0, -30.0])
    1.0
    """
    return spearman(np.abs(_vector(first)), np.abs(_vector(second)))


def _vector(values: ArrayLike) -> Floats:
    found: Floats = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise ValueError(f"shape {found.shape}: expected one number a word or rationale")
    if not np.isfinite(found).all():
        raise ValueError(
            "the scores or answers hold NaN or infinite numbers; what is undefined must be left out, and counted"
        )
    return found


def mean_of(values: Sequence[float | None]) -> float | None:
    """Mean of what is defined; None where nothing is."""
    defined = [value for value in values if value is not None]
    return finite(float(np.mean(defined))) if defined else None
