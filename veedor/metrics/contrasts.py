"""From material to findings: one contrast a group, one a term, with all that a verdict and a reader need of it.

Serves term-swap effects and attributions alike; what only one of them has (flips, placebo rates) is added elsewhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from veedor.metrics.constants import HALF_OF_CONTEXTS, NEAR_SUBWORDS
from veedor.metrics.crossed import Contrast, Floats, Integers, contrast
from veedor.metrics.inference import crossed_result, term_result
from veedor.metrics.material import Material, Panel, by_cluster, narrow, offered, panel, rows_in
from veedor.records import Finding, finite

EFFECTS = {"finding": "str", "word": "str", "kind": "str", "effect": "float64", "n_contexts": "int64",
           "subwords": "float64", "band": "float64"}  # fmt: skip
GROUP_NUMBERS = ("estimate", "standard_error", "df", "p")
TERM_NUMBERS = (*GROUP_NUMBERS, "prediction_error", "prediction_df", "most_extreme_control", "skew",
                "excess_kurtosis", "tail_factor")  # fmt: skip
CONTEXTS = {"finding": "str", "context": "str", "difference": "float64", "n_rows": "int64"}


Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Quantity:
    """What is contrasted."""

    metric: Literal["term_swap_effect", "attribution_contrast"]
    units: str
    method: str | None = None

    @property
    def prefix(self) -> str:
        """Of the ids of its findings."""
        return f"attribution/{self.method}/" if self.method else ""


@dataclass(frozen=True)
class Measured:
    """A finding, the panel that it was read from (None without one), and its rows of the tables."""

    finding: Finding
    panel: Panel | None = None
    effects: Columns | None = None
    contexts: Columns | None = None


@dataclass(frozen=True)
class Dropped:
    """How many rows of each group and of each term could not be used, by reason."""

    counts: dict[tuple[str, ...], dict[str, int]]

    @classmethod
    def of(cls, rows: pd.DataFrame, reasons: pd.Series) -> "Dropped":
        """Count `reasons` ("" for a row that is used) over the rows of `flat.flatten`."""
        counts: dict[tuple[str, ...], dict[str, int]] = {}
        hypothetical = ~rows["control"].astype(bool) & rows["group"].notna()
        named = rows.loc[hypothetical, ["axis", "group", "term"]].fillna("")
        for (axis, group, term), reason in zip(
            named.itertuples(index=False, name=None), reasons[hypothetical], strict=True
        ):
            for key in ((axis, group), (axis, group, term)):
                found = counts.setdefault(key, {})
                if reason:
                    found[reason] = found.get(reason, 0) + 1
        return cls({key: dict(sorted(counts[key].items())) for key in sorted(counts)})

    def hypotheses(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Axis, group, and its terms; every one that the set names, whether or not anything of it is left."""
        for axis, group in (key for key in self.counts if len(key) == 2):
            terms = (key[2] for key in self.counts if len(key) == 3 and key[:2] == (axis, group) and key[2])
            yield axis, group, tuple(terms)


def measure_contrasts(material: Material, quantity: Quantity, dropped: Dropped, why_not: str | None) -> list[Measured]:
    """Contrast every group and every term the set names; with `why_not`, say of each why it was not done."""
    found: list[Measured] = []
    words = material.words
    for axis, group, terms in dropped.hypotheses():
        mine = _codes(words, (words["axis"] == axis) & (words["group"] == group) & ~words["control"])
        shown, reference = _beside_reference(material, axis, mine)
        build = _Builder(material, quantity, dropped, axis, group, reference)
        found.append(build.of_group(mine, shown, why_not))
        code = {str(words["term"][word]): int(word) for word in mine}
        found.extend(build.of_term(term, code.get(term), shown, why_not) for term in terms)
    return sorted(found, key=lambda one: (one.finding.scope, one.finding.id))


def _beside_reference(
    material: Material, axis: str, mine: Integers
) -> tuple[Panel, Literal["controls", "other_terms"]]:
    """The group beside the controls of its contexts; where it has none, beside the other terms of its axis."""
    words = material.words
    shown = panel(material, mine, _codes(words, words["control"]))
    if len(shown.context):
        return shown, "controls"
    others = np.setdiff1d(_codes(words, (words["axis"] == axis) & ~words["control"]), mine)
    substitute = panel(material, mine, others)
    if len(substitute.context):
        return substitute, "other_terms"
    return shown, "controls" if words["control"].any() else "other_terms"


@dataclass(frozen=True)
class _Builder:
    material: Material
    quantity: Quantity
    dropped: Dropped
    axis: str
    group: str
    reference: Literal["controls", "other_terms"]

    def of_group(self, mine: Integers, shown: Panel, why_not: str | None) -> Measured:
        cells, clusters = by_cluster(self.material, shown)
        found = contrast(cells, shown.of, shown.against)
        result = crossed_result(found)
        missing = why_not or self._nothing_left(shown, bool(len(mine))) or result.reason
        numbers = {name: None if why_not else getattr(result, name) for name in GROUP_NUMBERS}
        return self._measured((self.axis, self.group), shown, (cells, clusters, found), missing, numbers)

    def of_term(self, term: str, word: int | None, wide: Panel, why_not: str | None) -> Measured:
        absent = word is None or word not in wide.word
        shown = _empty(wide) if absent or word is None else self._narrow(wide, word)
        cells, clusters = by_cluster(self.material, shown)
        found = contrast(cells, shown.of, shown.against)
        result = term_result(found, shown.against)
        missing = why_not or self._nothing_left(shown, word is not None) or result.reason
        numbers = {name: None if why_not else getattr(result, name) for name in TERM_NUMBERS}
        return self._measured((self.axis, self.group, term), shown, (cells, clusters, found), missing, numbers)

    def _narrow(self, wide: Panel, word: int) -> Panel:
        if self.reference == "controls":
            return narrow(wide, word)
        words = self.material.words
        others = _codes(words, (words["axis"] == self.axis) & ~words["control"])
        return panel(self.material, np.array([word]), others[others != word])

    def _nothing_left(self, shown: Panel, any_usable: bool) -> str | None:
        if len(shown.context):
            return None
        if not any_usable:
            return "all_rows_dropped"
        return "no_shared_context" if self.material.words["control"].any() else "no_reference"

    def _measured(
        self,
        key: tuple[str, ...],
        shown: Panel,
        read: tuple[Floats, Sequence[str], Contrast],
        why_not: str | None,
        numbers: dict[str, Any],
    ) -> Measured:
        cells, clusters, found = read
        subwords, band = (self.material.of_words(column)[shown.word] for column in ("subwords", "band"))
        finding = Finding(
            id=self.quantity.prefix + "/".join(("group" if len(key) == 2 else "term", *key)),
            metric=self.quantity.metric,
            method=self.quantity.method,
            scope="group" if len(key) == 2 else "term",
            axis=self.axis,
            group=self.group,
            term=None if len(key) == 2 else key[2],
            reference=self.reference,
            units=self.quantity.units,
            clusters=self.material.clusters,
            why_not=why_not,
            subwords=_both_sides(subwords, shown),
            band=_both_sides(band, shown),
            near_subwords=None if why_not else near_subwords(cells, subwords, shown),
            **numbers,
            **self._counts(key, shown, found, clusters),
        )
        effects = effects_columns(finding.id, self.material, shown, found)
        return Measured(finding, shown, effects, contexts_columns(finding.id, self.material, shown, clusters, found))

    def _counts(self, key: tuple[str, ...], shown: Panel, found: Contrast, clusters: Sequence[str]) -> dict[str, Any]:
        """What is left for the minima, rows lost by reason, and words in too few contexts to count for a minimum."""
        used, rows = int(found.used.sum()), len(rows_in(self.material, shown))
        often = found.held >= np.maximum(1.0, HALF_OF_CONTEXTS * offered(self.material, shown, clusters, found.used))
        rare = (found.held > 0) & ~often
        words = self.material.words
        same = (words["axis"] == self.axis) & (words["group"] == self.group) & ~words["control"]
        own = _codes(words, same if len(key) == 2 else same & (words["term"] == key[2]))
        lost = {
            "no_reference_in_context": int(self.material.rows_of_word[own].sum()) - rows,
            "terms_in_few_contexts": int((rare & shown.of).sum()),
            "controls_in_few_contexts": int((rare & shown.against).sum()),
        }
        return {
            "n_templates": used,
            "n_terms": int((often & shown.of).sum()),
            "n_controls": int((often & shown.against).sum()) if self.reference == "controls" else 0,
            "n_rows": rows,
            "dropped": self.dropped.counts.get(key, {}) | {code: count for code, count in lost.items() if count},
        }


def near_subwords(cells: Floats, subwords: Floats, shown: Panel) -> float | None:
    """Mean over the terms of their effect against only those controls whose length differs by at most a sub-word."""
    terms, controls = np.flatnonzero(shown.of), np.flatnonzero(shown.against)
    near = np.abs(subwords[terms][:, None] - subwords[controls][None, :]) <= NEAR_SUBWORDS
    effects = [
        float(found.estimate)
        for term, mask in zip(terms, near, strict=True)
        if mask.any()
        for chosen in [np.append(controls[mask], term)]
        for found in [contrast(cells[:, chosen], chosen == term, chosen != term)]
        if found.used.any()
    ]
    return finite(float(np.mean(effects))) if effects else None


def effects_columns(name: str, material: Material, shown: Panel, found: Contrast) -> Columns:
    """Effect of every word of both sides, against the mean of the reference in the same contexts."""
    control = material.control_word[shown.word]
    # The other terms that stand in for missing controls are no words of the finding: no verdict rests on them.
    own = (found.held > 0) & (shown.of | control)
    word = shown.word[own]
    return {
        "finding": np.full(len(word), name, dtype=object),
        "word": material.term_name[word],
        "kind": np.where(control[own], "control", "term").astype(object),
        "effect": found.effects[own],
        "n_contexts": found.held[own],
        "subwords": material.of_words("subwords")[word],
        "band": material.of_words("band")[word],
    }


def contexts_columns(name: str, material: Material, shown: Panel, clusters: Sequence[str], found: Contrast) -> Columns:
    """Difference between both sides in every context (or form) used, and the rows of the first side in it."""
    place = material.cluster_name[material.context[rows_in(material, shown)]].astype(str)
    names = np.asarray(clusters, dtype=str)
    counts = np.bincount(np.searchsorted(names, place), minlength=len(names)) if len(names) else np.empty(0, dtype=int)
    used = found.used
    return {
        "finding": np.full(int(used.sum()), name, dtype=object),
        "context": names[used].astype(object),
        "difference": found.differences[used],
        "n_rows": counts[used],
    }


def _both_sides(numbers: Floats, shown: Panel) -> tuple[float | None, float | None]:
    known = (numbers[mask & ~np.isnan(numbers)] for mask in (shown.of, shown.against))
    terms, controls = (float(side.mean()) if len(side) else None for side in known)
    return terms, controls


def _codes(words: pd.DataFrame, chosen: "pd.Series[bool]") -> Integers:
    return np.flatnonzero(chosen.to_numpy(dtype=bool))


def _empty(wide: Panel) -> Panel:
    nothing = np.empty(0, dtype=np.intp)
    none = np.empty(0, dtype=bool)
    return Panel(np.empty((0, 0)), nothing, nothing, none, none)
