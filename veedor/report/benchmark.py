"""A benchmark of attribution methods on one model: what was found, as plain values, as JSON and as a page.

The page is self-contained: the figure, what each number means, the table beside chance, the agreement of methods. Its
sentences are English only, as those of the command line.
"""

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from veedor.records import Frozen, Reliability, Scalar, SubjectCard, Table

SHOWN = ("comprehensiveness", "sufficiency")
LOWER = ("sufficiency", "deletion_area", "infidelity", "infidelity_scaled", "max_sensitivity")
MARKS = {
    "not_beyond_random": "not shown to beat random rankings under every operator",
    "survives_randomisation": "hardly changes when all layers are drawn anew",
    "gaps_too_wide": "completeness gap above tolerance on too many texts",
}
REASONS = {
    "no_words": "texts without words",
    "one_word": "texts of one word",
    "no_spread": "all words score alike",
    "no_room": "the answer hardly falls without any words",
    "drops_alike": "no word matters more than another",
    "two_words": "texts of two words",
    "not_moved": "changes the text itself, not its embeddings",
    "no_target": "reads no classifier head",
    "no_embeddings": "the model takes no embeddings",
    "no_layers": "no stack of layers that can be told apart",
    "not_supported": "refused by the changed model",
    "not_measured": "not measured",
}


class MethodLine(Frozen):
    """One method: what it declares, how alike it ranks words under two seeds, and model evaluations a text."""

    summary: str
    properties: dict[str, Scalar]
    between_seeds: float | None
    evaluations: float


class Benchmark(Frozen):
    """Every method of one model on the same texts. `left_out`: texts of the file that were blank or repeated."""

    subject: SubjectCard
    texts: int
    of_texts: int
    left_out: dict[str, int]
    seed: int
    options: dict[str, Any]
    methods: dict[str, MethodLine]
    refused: dict[str, str]
    reliability: Reliability
    curves: Table  # operator, kind, method ("": random), share, value
    words: float  # a text, on average

    def ranked(self) -> list[str]:
        """Methods, the one furthest beyond chance first (mean over operators), those without a value last."""
        table = self.reliability.scores
        own = table[table["metric"] == "comprehensiveness"].groupby("method")["difference"].mean()
        known = {str(name): float(value) for name, value in own.items() if pd.notna(value)}
        return sorted(self.methods, key=lambda name: (name not in known, -known.get(name, 0.0), name))

    def row(self, method: str, metric: str, operator: str = "") -> "Value":
        """One line of the table; nothing in it where it was not measured."""
        table = self.reliability.scores
        keys = zip(table["method"], table["metric"], table["operator"], strict=True)
        found = [at for at, key in enumerate(keys) if key == (method, metric, operator)]
        if not found:
            return Value(None, None, None, None, None, 0, "not_measured")
        line = table.iloc[found[0]].to_dict()
        numbers = {name: _number(line[name]) for name in ("estimate", "random", "difference", "low", "high")}
        reason = None if _missing(line["reason"]) else str(line["reason"])
        return Value(**numbers, n_texts=int(line["n_texts"]), reason=reason)

    def beats(self, method: str, metric: str, operator: str) -> bool | None:
        """Whether the interval of (method − random) lies wholly on the better side; None without an interval."""
        found = self.row(method, metric, operator)
        if found.low is None or found.high is None:
            return None
        return found.high < 0 if metric in LOWER else found.low > 0


@dataclass(frozen=True)
class Value:
    """A mean over texts beside that of chance; `low`, `high` bound the mean difference."""

    estimate: float | None
    random: float | None
    difference: float | None
    low: float | None
    high: float | None
    n_texts: int
    reason: str | None


def as_json(found: Benchmark) -> str:
    """Everything that was found, and the conventions behind it."""
    made = found.reliability
    tables = {"scores": made.scores, "agreement": made.agreement, "curves": found.curves}
    content = {
        "schema": 1,
        "conventions": CONVENTIONS,
        **found.model_dump(mode="json", exclude={"reliability", "curves"}),
        "reliability": made.model_dump(mode="json", exclude={"scores", "values", "agreement"}),
        **{name: [_plain(line) for line in table.to_dict("records")] for name, table in tables.items()},
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


CONVENTIONS = {
    "comprehensiveness": "p(x) - p(x without the rationale), mean over the distinct rationales of 10, 20, 30, 40 and "
    "50 % of words, rounded up; words by score, highest first; p: probability of the target (_margin: its log-odds)",
    "sufficiency": "p(x) - p(rationale alone), mean as above",
    "normalised": "Carton et al. 2020: differences below 0 count as 0, divided by p(x) - p(no words) where that is .01 "
    "or more",
    "areas": "trapezoids over every tenth of the words, rounded up",
    "infidelity": "random halves of the words, rounded up, are removed; mean of (sum of their scores - fall of the "
    "explained score) squared; scaled: scores times the least-squares factor of 0 or more",
    "max_sensitivity": "largest |scores moved - scores| / |scores|, L2 over words, among moved embeddings",
    "tau_leave_one_out": "Kendall's tau-b with the fall of the explained score when one word is masked; unsigned "
    "methods with the size of that fall",
    "randomised_head": "Spearman of |score| with a copy whose classifier head was drawn anew",
    "randomised_all": "Spearman of |score| with a copy whose head and layers were drawn anew; embeddings stay",
    "control_model": "Spearman of |score| with a model of the same architecture trained on permuted labels",
    "random": "mean of random rankings of the same text (order), or of the method's scores dealt out to other words "
    "(infidelity, tau, sensitivity, Spearman)",
    "uniform": "the same score for every word: in reading order",
    "interval": "Student's t over texts of (method - random), 95 %",
    "agreement": "Kendall's tau-b and Spearman over words, mean over texts; sizes where one of the two has no sign",
}


def as_page(found: Benchmark, figure: bytes) -> str:
    """A page that needs nothing but itself."""
    from veedor.report.page import render_template

    uri = "data:image/svg+xml;base64," + base64.b64encode(figure).decode("ascii")
    content = {
        "found": found,
        "figure": uri,
        "methods": found.ranked(),
        "operators": found.reliability.operators,
        "columns": columns(found),
        "marks": MARKS,
        "reasons": REASONS,
        "conventions": CONVENTIONS,
        "agreement": matrix(found),
        "cell": cell,
        "signed": signed,
    }
    return render_template("benchmark.html.j2", content)


def columns(found: Benchmark) -> list[tuple[str, str, str]]:
    """Heading, metric and operator of the table's columns."""
    made = found.reliability
    several = [(f"{name[:4]} {one}", name, one) for name in SHOWN for one in made.operators]
    tau = [("tau LOO", "tau_leave_one_out", "mask")] if "mask" in made.operators else []
    first = made.operators[0]
    area = [("del. area", "deletion_area", first), ("ins. area", "insertion_area", first)]
    single = [("infid.*", "infidelity_scaled", first), ("sens.", "max_sensitivity", "")]
    weights = [("head anew", "randomised_head", ""), ("all anew", "randomised_all", "")]
    control = [("control", "control_model", "")] if (made.scores["metric"] == "control_model").any() else []
    return [*several, *area, *tau, *single, *weights, *control]


def matrix(found: Benchmark) -> dict[tuple[str, str], float | None]:
    """Kendall's tau of every pair of methods, both ways round."""
    pairs: dict[tuple[str, str], float | None] = {(name, name): 1.0 for name in found.methods}
    for line in found.reliability.agreement.to_dict("records"):
        first, second = str(line["first"]), str(line["second"])
        pairs[first, second] = pairs[second, first] = _number(line["kendall"])
    return pairs


def cell(value: float | None) -> str:
    """A number with three significant places, a dash where there is none.

    >>> cell(0.1234), cell(21.46), cell(1234.5), cell(None), cell(-0.00004)
    ('0.123', '21.5', '1234', '–', '0.000')
    """
    if value is None:
        return "–"
    shown = f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def signed(value: float | None) -> str:
    """The same with a sign.

    >>> signed(0.5), signed(-0.5), signed(None)
    ('+0.500', '-0.500', '–')
    """
    shown = cell(value)
    return shown if value is None or value < 0 or float(shown) == 0 else f"+{shown}"


def named_marks(marks: Sequence[str]) -> str:
    """The reasons against a method, in words."""
    return "; ".join(MARKS.get(mark, mark) for mark in marks)


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _plain(line: dict[Any, Any]) -> dict[str, Any]:
    return {str(name): None if _missing(value) else value for name, value in line.items()}
