"""Minimal pairs for the dossier: two texts, what the model answered, and what each method saw in them.

A pair shows where a number comes from; it decides nothing. Strips exist for pairs whose two texts were both in the
attribution sample.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from veedor.records import Attributions, EvaluationSet, Findings
from veedor.report.dossier import Pair, Strip

MOST = 5  # pairs told of one hypothesis
TEXT_LIMIT = 600  # characters of a text shown; longer ones are cut around nothing: the record holds them whole
Side = Literal["term", "control"]


class Examples:
    """Finds the pairs of a finding, with strips where both texts were explained."""

    def __init__(self, evaluation: EvaluationSet, findings: Findings, attributions: Attributions | None) -> None:
        """Index what the records hold by row."""
        rows = evaluation.rows
        starts, ends = rows["start"].astype(int), rows["end"].astype(int)
        self._spans = dict(zip(rows["id"], zip(starts, ends, strict=True), strict=True))
        self._pairs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in findings.pairs.to_dict("records"):
            self._pairs[str(row["finding"])].append({str(key): value for key, value in row.items()})
        self._explained = _by_text(attributions)

    def of(self, hypothesis: str, beside: Iterable[str], *, strips: bool) -> tuple[Pair, ...]:
        """Pairs of a hypothesis; where none of them was explained, the first explained one of `beside` comes too."""
        pairs = [self._pair(row, strips=strips) for row in self._pairs.get(hypothesis, [])[:MOST]]
        if strips and pairs and not any(pair.strips for pair in pairs):
            other = (self._pair(row, strips=True) for name in beside for row in self._pairs.get(name, []))
            explained = next((pair for pair in other if pair.strips), None)
            pairs = [*pairs[: MOST - 1], explained] if explained else pairs
        return tuple(pairs)

    def _pair(self, row: Mapping[str, Any], *, strips: bool) -> Pair:
        first, second = str(row["row"]), str(row["partner"])
        return Pair(
            row=first,
            partner=second,
            text=str(row["text"])[:TEXT_LIMIT],
            partner_text=str(row["partner_text"])[:TEXT_LIMIT],
            span=self._spans.get(first, (-1, -1)),
            partner_span=self._spans.get(second, (-1, -1)),
            margin=float(row["margin"]),
            partner_margin=float(row["partner_margin"]),
            probability=float(row["probability"]),
            partner_probability=float(row["partner_probability"]),
            predicted=str(row["predicted"]),
            partner_predicted=str(row["partner_predicted"]),
            strips=self._strips(first, second) if strips else (),
        )

    def _strips(self, first: str, second: str) -> tuple[Strip, ...]:
        methods = self._explained.get(first, {}).keys() & self._explained.get(second, {}).keys()
        found: list[Strip] = []
        for method in sorted(methods):
            sides: list[tuple[Side, str]] = [("term", first), ("control", second)]
            scores = [self._explained[text][method] for _, text in sides]
            largest = max((abs(score) for _, side in scores for score in side), default=0.0)
            found.extend(strip(method, side, *self._explained[text][method], largest) for side, text in sides)
        return tuple(found)


def strip(method: str, side: Side, words: Sequence[str], scores: Sequence[float], largest: float) -> Strip:
    """One text's words and weights, scaled to the pair's largest.

    >>> strip("rollout", "term", ["a", "b"], [1.0, -2.0], 4.0).strengths
    (0.25, -0.5)
    """
    strengths = tuple(round(score / largest, 3) if largest > 0 else 0.0 for score in scores)
    return Strip(method=method, side=side, words=tuple(words), scores=tuple(scores), strengths=strengths)


def _by_text(attributions: Attributions | None) -> dict[str, dict[str, tuple[list[str], list[float]]]]:
    found: dict[str, dict[str, tuple[list[str], list[float]]]] = defaultdict(dict)
    if attributions is None or attributions.rows.empty:
        return found
    columns: pd.DataFrame = attributions.rows[["id", "method", "words", "word_scores"]]
    for identity, method, words, scores in columns.itertuples(index=False):
        found[str(identity)][str(method)] = ([str(word) for word in words], [float(score) for score in scores])
    return found
