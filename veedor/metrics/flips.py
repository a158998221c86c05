"""Flips: where the model's own decision with a term is not the one it takes with most control words.

The share of contexts and of terms with any flip, each with exact bounds. Pairs are counted for description only: they
are not independent. Contexts in which the controls are split evenly have no majority and are left out.
"""

from dataclasses import replace

import numpy as np

from veedor.metrics.crossed import Floats, Integers
from veedor.metrics.material import Material, Panel, rows_in
from veedor.metrics.rates import clopper_pearson


def majority(material: Material) -> Floats:
    """What most controls of each context get: 1 the target, 0 not, NaN for an even split or no control. (contexts,)."""
    share = replace(material, value=material.rows["positive"].to_numpy(dtype=np.float64)).control_mean()
    return np.where(np.isnan(share) | (share == 0.5), np.nan, np.where(share > 0.5, 1.0, 0.0))


def flips(material: Material, shown: Panel, usual: Floats) -> dict[str, float | int | None]:
    """Contexts (or forms), terms and pairs of a panel's first side with a flip; `usual` is `majority(material)`."""
    positive = material.rows["positive"].to_numpy(dtype=np.float64)
    mine = _comparable(material, rows_in(material, shown), usual)
    flipped = mine[positive[mine] != usual[material.context[mine]]]
    to_target = int((positive[flipped] == 1).sum())
    cluster = material.cluster_name
    counts = {
        "contexts": _different(cluster[material.context[mine]]),
        "contexts_flipped": _different(cluster[material.context[flipped]]),
        "terms": _different(material.word[mine]),
        "terms_flipped": _different(material.word[flipped]),
        "pairs": len(mine),
        "pairs_flipped": len(flipped),
        "to_target": to_target,
        "from_target": len(flipped) - to_target,
    }
    bounds: dict[str, float | int | None] = {}
    for unit in ("contexts", "terms"):
        low, high = clopper_pearson(counts[f"{unit}_flipped"], counts[unit])
        bounds |= {f"{unit}_low": low, f"{unit}_high": high}
    return {**counts, **bounds, **_of_controls(material, shown, usual, positive)}


def _of_controls(material: Material, shown: Panel, usual: Floats, positive: Floats) -> dict[str, float | int | None]:
    """How often single controls differ from their majority, in the same contexts: what ordinary words do."""
    here = np.isin(material.context, shown.context) & material.is_control
    mine = _comparable(material, np.flatnonzero(here), usual)
    return {
        "control_pairs": len(mine),
        "control_pairs_flipped": int((positive[mine] != usual[material.context[mine]]).sum()),
    }


def _comparable(material: Material, rows: Integers, usual: Floats) -> Integers:
    chosen: Integers = rows[~np.isnan(usual[material.context[rows]])]
    return chosen


def _different(names: np.ndarray) -> int:
    return len(np.unique(names.astype(str)))
