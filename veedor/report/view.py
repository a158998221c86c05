"""What a template shows of each hypothesis: strings ready to be put in, in reading order. Templates only arrange.

No HTML here, and no numbers of our own: they come from the dossier through `Prose`.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from veedor.report.dossier import AttributionContrast, Hypothesis, Pair, Strip
from veedor.report.language import visible
from veedor.report.prose import Prose

STRONG = 0.25  # of the pair's largest weight: from here on the number is printed below the word
WARM, COLD, GREY = (159, 42, 31), (29, 79, 115), (70, 80, 95)
DEEPEST = 0.55  # of full colour, so that ink on it stays readable (contrast 4.5 and more)
STRIPS = 3  # methods shown of one pair


@dataclass(frozen=True)
class Side:
    """One text of a pair, cut where the swapped word stands."""

    label: str
    before: str
    word: str
    after: str
    direction: str
    probability: str
    margin: str
    answer: str


@dataclass(frozen=True)
class Cell:
    """A word of a strip: its background, and its weight where it is worth reading."""

    word: str
    background: str
    value: str


@dataclass(frozen=True)
class Heat:
    """A strip: one text through the eyes of one method."""

    direction: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Card:
    """One finding, as told."""

    number: str
    anchor: str
    row: Hypothesis
    title: str
    sentences: list[str]
    practical: list[str]
    numbers: list[tuple[str, str]]
    pairs: list[tuple[Side, Side]]
    strips: list[tuple[str, Heat, Heat]]
    contrasts: list[list[str]]
    recommendation: str
    pointer: str


class View:
    """Builds the parts of a page from a dossier."""

    def __init__(self, prose: Prose) -> None:
        """Index the dossier by hypothesis."""
        self.prose, self.words, self.swaps = prose, prose.words, prose.swaps
        self._place = {row.id: place for place, row in enumerate(self.swaps.hypotheses)}
        self._contrasts: dict[str, list[AttributionContrast]] = {}
        self._blind = {sheet.name for sheet in prose.validity.methods if not sheet.signed}
        for one in sorted(prose.dossier.metrics.attribution, key=lambda one: (not one.signed, one.method)):
            self._contrasts.setdefault(one.hypothesis, []).append(one)

    def rows(self, scope: str, *verdicts: str) -> list[Hypothesis]:
        """Hypotheses of a scope with one of these verdicts, failures first, then by size."""
        return [
            row for row in self.swaps.hypotheses if row.scope == scope and (not verdicts or row.verdict in verdicts)
        ]

    def cards(self, rows: Sequence[Hypothesis], *, prefix: str, pairs: int) -> list[Card]:
        """Hypotheses told in full, numbered."""
        return [self.card(row, f"{prefix}{place}", pairs) for place, row in enumerate(rows, start=1)]

    def card(self, row: Hypothesis, number: str, pairs: int) -> Card:
        """One hypothesis told in full."""
        return Card(
            number=number,
            anchor=f"h-{self._place[row.id]}",
            row=row,
            title=self.prose.title(row),
            sentences=self.prose.sentences(row),
            practical=self.prose.practical(row) if row.verdict != "NOT_TESTED" else [],
            numbers=self.numbers(row),
            pairs=[self.pair(pair) for pair in row.examples[:pairs]],
            strips=self.strips(row),
            contrasts=[self.prose.contrast(one) for one in self._contrasts.get(row.id, [])],
            recommendation=self.prose.recommendation(row),
            pointer=self.pointer(row),
        )

    def pointer(self, row: Hypothesis) -> str:
        """Where audit.json holds the hypothesis."""
        return f"audit.json#/metrics/counterfactual/hypotheses/{self._place[row.id]}"

    def numbers(self, row: Hypothesis) -> list[tuple[str, str]]:
        """The figures of a hypothesis as label and value; what does not exist is left out."""
        prose, text = self.prose, self.words.text
        counts = " × ".join(self.words.number(count) for count in (row.n_templates, row.n_terms))
        told = [
            (text("effect"), prose.effect(row.estimate) if row.estimate is not None else None),
            (text("interval", level=prose.level(self.swaps.level)), self._range(row.low, row.high)),
            (text("adjusted"), None if row.adjusted_p is None else self.words.p_value(row.adjusted_p)),
            (text("equivalence"), None if row.equivalence_p is None else self.words.p_value(row.equivalence_p)),
            (text("contexts_terms"), counts),
            (text("against"), self.words.number(row.n_controls)),
            (text("detectable"), self._size(row.minimum_detectable_effect)),
        ]
        return [(label, value) for label, value in told if value is not None]

    def _range(self, low: float | None, high: float | None) -> str | None:
        return None if low is None or high is None else self.prose.range(low, high)

    def _size(self, value: float | None) -> str | None:
        return None if value is None else self.prose.effect(value, sign=False)

    def pair(self, pair: Pair) -> tuple[Side, Side]:
        """The two texts of a minimal pair."""
        first = self._side("term_side", pair.text, pair.span, (pair.probability, pair.margin), pair.predicted)
        partner = (pair.partner_probability, pair.partner_margin)
        return first, self._side("control_side", pair.partner_text, pair.partner_span, partner, pair.partner_predicted)

    def _side(self, label: str, text: str, span: tuple[int, int], scores: tuple[float, float], predicted: str) -> Side:
        start, end = span if 0 <= span[0] < span[1] <= len(text) else (len(text), len(text))
        return Side(
            label=self.words.text(label),
            before=visible(text[:start]),
            word=visible(text[start:end]),
            after=visible(text[end:]),
            direction=direction(text),
            probability=self.words.number(scores[0], 3),
            margin=self.words.number(scores[1], 2, sign=True),
            answer=visible(predicted.replace("|", ", ")) or self.words.number(None),
        )

    def strips(self, row: Hypothesis) -> list[tuple[str, Heat, Heat]]:
        """Method, term's side, control's side: of the first pair that was explained, methods with direction first."""
        explained = next((pair.strips for pair in row.examples if pair.strips), ())
        sides = {(strip.method, strip.side): strip for strip in explained}
        methods = sorted({strip.method for strip in explained}, key=lambda name: (name in self._blind, name))
        return [
            (
                self.prose.method(method),
                self.heat(sides[method, "term"], signed=method not in self._blind),
                self.heat(sides[method, "control"], signed=method not in self._blind),
            )
            for method in methods[: STRIPS if row.scope == "group" else 1]
        ]

    def heat(self, strip: Strip, *, signed: bool) -> Heat:
        """A strip's words with their colours; the number is told of the strong ones."""
        cells = tuple(
            Cell(visible(word), shade(strength, signed=signed), self._weight(score, strength))
            for word, score, strength in zip(strip.words, strip.scores, strip.strengths, strict=True)
        )
        return Heat(direction(" ".join(strip.words)), cells)

    def _weight(self, score: float, strength: float) -> str:
        return self.words.number(score, 2, sign=True) if abs(strength) >= STRONG else ""


def shade(strength: float, *, signed: bool) -> str:
    """Background of a word: warm for the label, cold against it, grey without direction; paler when weaker.

    >>> shade(0.0, signed=True), shade(1.0, signed=True)
    ('#ffffff', '#ca8a84')
    """
    full = (WARM if strength > 0 else COLD) if signed else GREY
    depth = DEEPEST * min(1.0, abs(strength))
    return "#" + "".join(f"{round(255 - depth * (255 - part)):02x}" for part in full)


def direction(text: str) -> str:
    """Reading direction of a text, by its first letter that has one.

    >>> direction("… שלום"), direction("12 tall")
    ('rtl', 'ltr')
    """
    strong = (kind for kind in _bidi(text) if kind in ("L", "R", "AL"))
    return "ltr" if next(strong, "L") == "L" else "rtl"


def _bidi(text: str) -> Iterator[str]:
    return (unicodedata.bidirectional(character) for character in text)
