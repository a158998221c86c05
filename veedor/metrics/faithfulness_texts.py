"""The model asked about texts without some of their words, for every method's ranking and for chance.

What all methods and references ask of a block of texts is gathered first, and each distinct text goes through the model
once: the rationales of a random ranking and of a method are often the same few words. A text of n words costs at most
2ⁿ forwards an operator, and a long one about 20 rankings × 2 × 5 sizes + 50 removals, however many methods there are
(some 10 for each on top). Also here: methods asked again, at moved embeddings or of a model with other weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from veedor.metrics import faithfulness as f
from veedor.metrics.faithfulness_asked import MARGIN, PROBABILITY, Asked, row
from veedor.metrics.faithfulness_words import RANKINGS, REMOVALS, Words, why_not, words_of
from veedor.progress import Progress, silent

if TYPE_CHECKING:
    from veedor.subjects import Encoding, Subject
    from veedor.subjects.heads import Scale
    from veedor.subjects.perturbation import Operator

Scores = Mapping[str, Sequence[ArrayLike]]
"""Method -> a vector of word scores for each text, as in `Attribution.word_scores`."""

COLUMNS = ("text", "method", "operator", "metric", "value", "random", "uniform", "reason")
CURVES = ("operator", "kind", "method", "share", "value")  # method "": random rankings
BLOCK = 16  # texts whose variants are held at a time
TENTHS = np.linspace(0, 1, 11)


@dataclass(frozen=True)
class Trial:
    """What is asked, of whom. `scale`: the score that the methods explain; infidelity and tau are held against it."""

    subject: "Subject"
    target_index: int
    operators: "tuple[Operator, ...]" = ("mask", "delete")
    scale: "Scale" = "logit"
    seed: int = 0
    rankings: int = RANKINGS
    removals: int = REMOVALS
    curves: bool = False
    batch_size: int = 32
    progress: Progress = silent


@dataclass(frozen=True)
class Measured:
    """`values`: one row a text, method, operator and metric; `curves`: means over texts; `forwards`: texts asked."""

    values: pd.DataFrame
    curves: pd.DataFrame
    forwards: int


def text_words(trial: Trial, encodings: "Sequence[Encoding]") -> list[Words]:
    """The words of each text with its random rankings and removals."""
    return [
        words_of(at, encoding, seed=trial.seed, rankings=trial.rankings, removals=trial.removals)
        for at, encoding in enumerate(encodings)
    ]


def measure_texts(
    trial: Trial, encodings: "Sequence[Encoding]", scores: Scores, signed: Mapping[str, bool]
) -> Measured:
    """Every metric that takes words out, for every text, method and operator.

    `text` is the position in `encodings`; `random` and `uniform` are the references' values on the same text; where
    `value` is None, `reason` is "no_words", "one_word", "no_spread" (all words score alike), "no_room" (normalised: the
    answer hardly falls without any words) or "drops_alike" (tau: no word matters more than another).
    """
    values: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    words, forwards = text_words(trial, encodings), 0
    for first in range(0, len(words), BLOCK):
        block = [
            Asked(
                own,
                operator,
                {name: own.of_units(of[own.row]) for name, of in scores.items()},
                signed,
                MARGIN if trial.scale == "logit" else PROBABILITY,
                trial.curves,
            )
            for own in words[first : first + BLOCK]
            for operator in trial.operators
        ]
        forwards += ask(trial, encodings, block)
        for asked in block:
            values.extend(asked.values())
            curves.extend(_curves(asked))
        trial.progress("faithfulness", min(first + BLOCK, len(words)), len(words))
    table = pd.DataFrame(curves, columns=list(CURVES))
    means = table.groupby(list(CURVES[:-1]), sort=False)[["value"]].mean().reset_index()
    return Measured(_table(values), means, forwards)


def ask(trial: Trial, encodings: "Sequence[Encoding]", block: Sequence[Asked]) -> int:
    """Give every text of a block its answers, each distinct text asked once; returns how many that were."""
    from veedor.subjects.perturbation import Variants, answers, eraser

    variants = Variants()
    places: list[tuple[Asked, int, list[int]]] = []
    erasers = {name: eraser(trial.subject, name, encodings, seed=trial.seed) for name in trial.operators}
    for asked in block:
        encoding, erase = encodings[asked.words.row], erasers[asked.operator]  # type: ignore[index]
        for gone in asked.questions():
            found = variants.add_all(erase.variants(encoding, asked.words.positions(gone)))
            places.append((asked, gone, found))
    if not places:
        return 0
    logits = answers(trial.subject, variants.encodings, size=trial.batch_size)
    scales: tuple[Scale, Scale] = ("probability", "logit")  # in the order of PROBABILITY, MARGIN
    columns = [trial.subject.margin(logits, trial.target_index, scale=scale).double().cpu().numpy() for scale in scales]
    heights = np.stack(columns, axis=1)
    for asked, gone, found in places:
        asked.answers[gone] = heights[found].mean(axis=0)
    return len(variants.encodings)


def measure_moved(
    words: Sequence[Words], scores: Scores, moved: Mapping[str, Callable[[int], Sequence[ArrayLike]]], *, draws: int
) -> pd.DataFrame:
    """Max-sensitivity; moved: method -> from the number of a draw to all texts' scores at that draw's embeddings."""
    rows = []
    for method, again in moved.items():
        found = [again(draw) for draw in range(draws)]
        for own in words:
            here = own.of_units(scores[method][own.row])
            there = [own.of_units(one[own.row]) for one in found]
            chance = [here[order] for order in own.orders]
            value = f.max_sensitivity(here, there.__getitem__, draws=draws)
            by_chance = f.max_sensitivity(here, chance.__getitem__, draws=min(draws, len(chance)))
            reason = None if value is not None else why_not(here) or "no_spread"
            rows.append(row(own.row, method, "", "max_sensitivity", (value, by_chance, None), reason))
    return _table(rows)


def measure_likeness(metric: str, words: Sequence[Words], scores: Scores, other: Scores) -> pd.DataFrame:
    """Rank correlation of |φ| with |φ| under another model, for the methods that `other` holds."""
    rows = []
    for method, found in other.items():
        for own in words:
            here, there = own.of_units(scores[method][own.row]), own.of_units(found[own.row])
            value = f.magnitude_agreement(here, there)
            chance = f.mean_of([f.magnitude_agreement(here[order], there) for order in own.orders])
            reason = None if value is not None else why_not(here) or why_not(there) or "two_words"
            rows.append(row(own.row, method, "", metric, (value, chance, None), reason))
    return _table(rows)


def not_measured(metric: str, words: Sequence[Words], method: str, reason: str) -> pd.DataFrame:
    """Rows without a value for what was not measured, with the reason."""
    return _table([row(own.row, method, "", metric, (None, None, None), reason) for own in words])


def _table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    table = table.astype(dict.fromkeys(("value", "random", "uniform"), np.float64))
    return table.assign(reason=pd.Series([one["reason"] for one in rows], dtype=object))


def _curves(asked: Asked) -> list[dict[str, Any]]:
    """One text's curves at every tenth of the words, for each method and for chance; nothing unless asked for."""
    if not asked.curves or not asked.answers:
        return []
    orders = {name: [f.ranking(own)] for name, own in asked.scores.items() if why_not(own) is None}
    rows = []
    for method, rankings in {**orders, "": list(asked.words.orders)}.items():
        found = [asked.curve(order) for order in rankings]
        for kind, place in (("deletion", 1), ("insertion", 2)):
            mean = np.mean([np.interp(TENTHS, one[0], one[place]) for one in found], axis=0)
            for share, value in zip(TENTHS.tolist(), mean.tolist(), strict=True):
                rows.append(dict(zip(CURVES, (asked.operator, kind, method, share, value), strict=True)))
    return rows
