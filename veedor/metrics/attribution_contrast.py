"""How much of the answer a method puts on the term, against what it puts on control words in the same slots.

Secondary evidence, never a verdict of its own. The inference is that of the term-swap effect. Beside each method stand
its false alarms among random splits of the control words, and how well it agrees with what swapping the word does.
Methods without a sign may be contrasted, but say nothing about direction.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from veedor.metrics.agreement import sign_agreement, spearman
from veedor.metrics.bias import Tables, assemble
from veedor.metrics.constants import PLACEBO_ALPHA, PLACEBO_SPLITS
from veedor.metrics.contrasts import Dropped, Measured, Quantity, measure_contrasts
from veedor.metrics.crossed import Floats, contrast
from veedor.metrics.inference import two_sided_p
from veedor.metrics.material import Material, Panel, by_cluster, choose_clusters, prepare, rows_in
from veedor.records import finite


@dataclass(frozen=True)
class Explained:
    """One method's span scores, and what may be said of them."""

    method: str
    units: str
    signed: bool
    rows: pd.DataFrame  # id, span_score


def measure_attribution(flat: pd.DataFrame, explained: Explained, *, seed: int) -> Tables:
    """Contrast of one method's scores for every group and term of the rows it explained."""
    scores = explained.rows.set_index("id")["span_score"].astype(np.float64)
    sample = flat[flat["id"].isin(scores.index)].reset_index(drop=True)
    value = np.asarray(scores.reindex(sample["id"]), dtype=np.float64)
    usable = sample["usable"].to_numpy(dtype=bool) & np.isfinite(value)
    clusters, _ = choose_clusters(flat)
    material = prepare(sample[usable], value[usable], clusters)
    swap = prepare(sample[usable], sample.loc[usable, "value"].to_numpy(dtype=np.float64), clusters)
    reasons = sample["drop_reason"].fillna("").astype(str).where(~sample["usable"].astype(bool), "")
    reasons = reasons.mask(sample["usable"].astype(bool) & ~np.isfinite(value), "no_span_score")
    quantity = Quantity("attribution_contrast", explained.units, explained.method)
    measured = measure_contrasts(material, quantity, Dropped.of(sample, reasons), None)
    beside = _Beside(material, swap, explained.signed, placebo_rate(material, seed=seed))
    return assemble(material, [beside.told(one) for one in measured])


def placebo_rate(material: Material, *, seed: int) -> float | None:
    """False alarms of the whole procedure: control words split at random into two groups, 200 times.

    Each split is a crossed test of one half against the other at .05; None where no split can be tested.
    """
    words = np.flatnonzero(material.words["control"].to_numpy(dtype=bool))
    cells = _control_cells(material)
    generator = np.random.default_rng(seed)
    order = generator.permuted(np.tile(np.arange(len(words)), (PLACEBO_SPLITS, 1)), axis=1)
    first = order < len(words) // 2
    found = contrast(cells[None, :, :], first, ~first)
    p = [
        two_sided_p(*(finite(float(x)) for x in numbers))
        for numbers in zip(found.estimate, found.standard_error, found.df, strict=True)
    ]
    tested = [value for value in p if value is not None]
    return float(np.mean([value < PLACEBO_ALPHA for value in tested])) if tested else None


def _control_cells(material: Material) -> Floats:
    """Centred values of the controls, (clusters, controls)."""
    words = np.flatnonzero(material.words["control"].to_numpy(dtype=bool))
    rows = np.flatnonzero(material.is_control)
    context, row = np.unique(material.context[rows], return_inverse=True)
    cells = np.full((len(context), len(words)), np.nan)
    cells[row, np.searchsorted(words, material.word[rows])] = material.centred()[rows]
    everything = np.ones(len(words), dtype=bool)
    return by_cluster(material, Panel(cells, context, words, everything, everything))[0]


class _Beside:
    """What stands beside every contrast of one method."""

    def __init__(self, material: Material, swap: Material, signed: bool, placebo: float | None) -> None:
        self.material, self.signed, self.placebo = material, signed, placebo
        self.attributed, self.moved = material.centred(), swap.centred()
        terms = ~material.is_control & np.isfinite(self.attributed)
        # Over all terms of the method's sample: within one group, whose terms all move alike, ranks would be noise.
        moved = self.moved if signed else np.abs(self.moved)
        self.concordance = spearman(self.attributed[terms], moved[terms])

    def told(self, one: Measured) -> Measured:
        """The finding with its placebo rate, its concordance and, for signed methods, the agreement in sign."""
        if one.finding.reference != "controls" or one.panel is None or one.finding.estimate is None:
            return one
        rows = rows_in(self.material, one.panel)
        agreed = sign_agreement(self.attributed[rows], self.moved[rows]) if self.signed else None
        update = {"placebo_rate": self.placebo, "concordance": self.concordance, "sign_agreement": agreed}
        return Measured(one.finding.model_copy(update=update), one.panel, one.effects, one.contexts)
