"""How far the methods themselves can be trusted on this model: the challenge's record as the dossier holds it."""

import math
from typing import Any

from veedor.records import Reliability
from veedor.report.dossier import Absent, AgreementRow, Faithfulness, FaithfulnessRow, MethodValidity

NUMBERS = ("estimate", "random", "uniform", "difference", "low", "high")
COUNTS = ("n_texts", "n_clusters", "undefined")


def faithfulness(reliability: Reliability | None) -> Faithfulness | Absent:
    """Every metric of every method, and agreement between methods; absent where nothing was tested."""
    if reliability is None or reliability.scores.empty:
        return Absent(why_not="faithfulness_not_measured")
    sample = next((note.values for note in reliability.notes if note.code == "challenge_sample"), {})
    return Faithfulness(
        **reliability.model_dump(include={"operators", "level", "cascade_limit", "gap_limit", "forwards"}),
        sample={name: value for name, value in sample.items() if isinstance(value, int)},
        rows=tuple(_row(line) for line in reliability.scores.to_dict("records")),
        agreement=tuple(_agreement(line) for line in reliability.agreement.to_dict("records")),
    )


def unreliable(validity: MethodValidity) -> set[str]:
    """Names of the methods that are marked."""
    return {sheet.name for sheet in validity.methods if sheet.unreliable}


def _row(line: dict[Any, Any]) -> FaithfulnessRow:
    reason = line["reason"]
    return FaithfulnessRow(
        **{name: str(line[name]) for name in ("method", "operator", "metric")},
        **{name: _number(line[name]) for name in NUMBERS},
        **{name: int(line[name]) for name in COUNTS},
        reason=reason if isinstance(reason, str) else None,
    )


def _agreement(line: dict[Any, Any]) -> AgreementRow:
    names = {name: str(line[name]) for name in ("first", "second")}
    numbers = {name: _number(line[name]) for name in ("kendall", "spearman")}
    return AgreementRow(**names, **numbers, texts=int(line["texts"]))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
