"""What one text is asked without some of its words, and every metric of every method from the answers.

Each value stands beside that of chance on the same text: 20 random rankings for what depends on the order of words, the
method's own scores dealt out to other words for what depends on their size; and beside that of scores that are the same
for every word, among which the first words of a text come first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from veedor.metrics import faithfulness as f
from veedor.metrics.crossed import Floats
from veedor.metrics.faithfulness_words import Order, Words, bits, prefixes, why_not

Triple = tuple[float | None, float | None, float | None]  # of the method, of chance, of uniform scores
RANKED = (
    "comprehensiveness",
    "sufficiency",
    "comprehensiveness_margin",
    "sufficiency_margin",
    "normalised_comprehensiveness",
    "normalised_sufficiency",
)
AREAS = ("deletion_area", "insertion_area")
SIZED = ("infidelity", "infidelity_scaled")
LEAVE_ONE_OUT = "tau_leave_one_out"
TENTHS = tuple(range(10, 100, 10))
PROBABILITY, MARGIN = 0, 1  # columns of the answers


@dataclass(eq=False)
class Asked:
    """One text under one operator. `scores`: of each method's words; `explained`: the answer that they explain.

    `answers`: (probability, margin) of the target by the set of words that is gone; filled in once it was asked.
    """

    words: Words
    operator: str
    scores: Mapping[str, Floats]
    signed: Mapping[str, bool]
    explained: int = MARGIN
    curves: bool = False
    answers: dict[int, Floats] = field(default_factory=dict)

    def questions(self) -> list[int]:
        """Every set of words whose removal is asked about, sorted; none where no method ranks anything."""
        scores = [own for own in self.scores.values() if why_not(own) is None]
        if not scores:
            return []
        n = len(self.words)
        asked = {0, self.everything, *(bits(np.flatnonzero(mask)) for mask in self.words.removed)}
        asked |= {1 << word for word in range(n)} if self.operator == "mask" else set()
        for order in (*map(f.ranking, scores), np.arange(n), *self.words.orders):
            gone = prefixes(order, self.sizes)
            asked |= {*gone, *(self.everything ^ part for part in gone)}
        return sorted(asked)

    def values(self) -> Iterator[dict[str, object]]:
        """Every metric of every method, as rows."""
        for method, scores in self.scores.items():
            for metric, triple in self._of_method(method, scores):
                reason = None if triple[0] is not None else why_not(scores) or self._undefined(metric)
                yield row(self.words.row, method, self.operator, metric, triple, reason)

    def metrics(self) -> tuple[str, ...]:
        """What is measured under this operator."""
        tau = (LEAVE_ONE_OUT,) if self.operator == "mask" else ()
        return (*RANKED, *(AREAS if self.curves else ()), *SIZED, *tau)

    def curve(self, order: Order) -> tuple[Floats, Floats, Floats]:
        """Shares of words; the probability with the first of them gone; and with the others gone."""
        n = len(order)
        sizes = (0, *f.rationale_sizes(n, (*TENTHS, 100)))
        gone = prefixes(order, sizes)
        left = [self.everything ^ part for part in gone]
        return np.array(sizes) / n, self.heights(gone)[:, PROBABILITY], self.heights(left)[:, PROBABILITY]

    def heights(self, gone: Sequence[int]) -> Floats:
        """The model's answers without these words, (k, 2)."""
        return np.array([self.answers[part] for part in gone])

    @property
    def everything(self) -> int:
        """All words."""
        return (1 << len(self.words)) - 1

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Of the sets of first words that are asked about."""
        return f.rationale_sizes(len(self.words), (*TENTHS, 100) if self.curves else f.SHARES)

    @cached_property
    def chance(self) -> dict[str, float | None]:
        """What random rankings get."""
        found = [self.ranked(order) for order in self.words.orders]
        return {metric: f.mean_of([one[metric] for one in found]) for metric in found[0]}

    @cached_property
    def uniform(self) -> dict[str, float | None]:
        """What the order of reading gets."""
        return self.ranked(np.arange(len(self.words)))

    def ranked(self, order: Order) -> dict[str, float | None]:
        """The metrics that depend on the order of words alone."""
        (whole, empty), found = self.heights([0, self.everything]), {}
        gone = prefixes(order, f.rationale_sizes(len(order)))
        without, only = self.heights(gone), self.heights([self.everything ^ part for part in gone])
        for at, suffix in ((PROBABILITY, ""), (MARGIN, "_margin")):
            found[f"comprehensiveness{suffix}"] = f.comprehensiveness(whole[at], without[:, at])
            found[f"sufficiency{suffix}"] = f.sufficiency(whole[at], only[:, at])
        p, nothing = whole[PROBABILITY], empty[PROBABILITY]
        values: dict[str, float | None] = dict(found)
        values["normalised_comprehensiveness"] = f.normalised_comprehensiveness(p, nothing, without[:, PROBABILITY])
        values["normalised_sufficiency"] = f.normalised_sufficiency(p, nothing, only[:, PROBABILITY])
        if self.curves:
            shares, deletion, insertion = self.curve(order)
            values |= zip(AREAS, (f.curve_area(shares, deletion), f.curve_area(shares, insertion)), strict=True)
        return values

    def _of_method(self, method: str, scores: Floats) -> Iterator[tuple[str, Triple]]:
        if why_not(scores) is not None:
            yield from ((metric, (None, None, None)) for metric in self.metrics())
            return
        own = self.ranked(f.ranking(scores))
        yield from ((metric, (own[metric], self.chance[metric], self.uniform[metric])) for metric in own)
        yield from self._infidelity(scores)
        if self.operator == "mask":
            yield LEAVE_ONE_OUT, self._tau(scores, signed=self.signed[method])

    def _infidelity(self, scores: Floats) -> Iterator[tuple[str, Triple]]:
        masks = self.words.removed
        left = self.heights([bits(np.flatnonzero(mask)) for mask in masks])[:, self.explained]
        drops = self.answers[0][self.explained] - left
        found = [
            f.infidelity(phi, masks, drops)
            for phi in (scores, np.full(len(scores), scores.mean()), *(scores[order] for order in self.words.orders))
        ]
        for metric, part in zip(SIZED, ("as_is", "scaled"), strict=True):
            own, uniform, *chance = (None if one is None else float(getattr(one, part)) for one in found)
            yield metric, (own, f.mean_of(chance), uniform)

    def _tau(self, scores: Floats, *, signed: bool) -> Triple:
        singles = self.heights([1 << word for word in range(len(scores))])[:, self.explained]
        drops = self.answers[0][self.explained] - singles
        own = f.tau_leave_one_out(scores, drops, signed=signed)
        chance = [f.tau_leave_one_out(scores[order], drops, signed=signed) for order in self.words.orders]
        return own, f.mean_of(chance), None

    def _undefined(self, metric: str) -> str:
        return "no_room" if metric.startswith("normalised") else "drops_alike"


def row(text: int, method: str, operator: str, metric: str, triple: Triple, reason: str | None) -> dict[str, Any]:
    """One value beside its references."""
    value, chance, uniform = triple
    return {
        "text": text,
        "method": method,
        "operator": operator,
        "metric": metric,
        "value": value,
        "random": chance,
        "uniform": uniform,
        "reason": reason,
    }
