"""Explain a sample of the scored rows with every method asked for that the model allows. No judgement here."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from veedor.progress import Progress, silent
from veedor.records import Attributions, Decisions, EvaluationSet, Note
from veedor.settings import Settings

if TYPE_CHECKING:
    from veedor.attribution import Attribution, Question
    from veedor.attribution.sampling import Sample
    from veedor.subjects import Subject

LISTS = (
    "tokens",
    "token_starts",
    "token_ends",
    "scores",
    "words",
    "word_starts",
    "word_ends",
    "word_scores",
)
COLUMNS = ("id", "method", *LISTS, "span_score", "gap", "nodes", "flags")


@dataclass
class _Evidence:
    """What has been found so far, method by method."""

    rows: list[dict[str, object]] = field(default_factory=list)
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def attribute_sample(
    evaluation: EvaluationSet,
    decisions: Decisions,
    subject: "Subject",
    settings: Settings,
    progress: Progress = silent,
) -> Attributions:
    """Draw rows that hold a term or control word and were scored without a flaw; score their words by each method."""
    from veedor.attribution.methods import find_method
    from veedor.attribution.sampling import draw

    methods = tuple(dict.fromkeys(settings.methods))
    for name in methods:
        find_method(name)
    evidence = _Evidence()
    rows = usable(evaluation, decisions)
    if settings.attribution_rows == 0:
        evidence.notes.append(Note(code="attribution_off"))
        return _record(decisions, evidence, {})
    if rows.empty:
        evidence.notes.append(Note(code="attribution_nothing_to_explain"))
        return _record(decisions, evidence, {})
    sample = draw(rows, budget=settings.attribution_rows, seed=settings.seed)
    evidence.notes.extend(_sample_notes(sample, len(rows), settings))
    drawn = rows[rows["id"].isin(sample.ids)]
    for name in methods:
        _explain(name, drawn, _question(drawn, decisions, subject, settings, progress), evidence)
    return _record(decisions, evidence, sample.counts)


def usable(evaluation: EvaluationSet, decisions: Decisions) -> pd.DataFrame:
    """Rows with a term or control word that `predict` found fit for comparison."""
    fit = decisions.rows.loc[decisions.rows["usable"], "id"]
    rows = evaluation.rows
    named = rows["term"].notna() & (rows["control"] | rows["group"].notna()) & (rows["start"] >= 0)
    found: pd.DataFrame = rows[named & rows["id"].isin(fit)]
    return found


def _question(
    drawn: pd.DataFrame, decisions: Decisions, subject: "Subject", settings: Settings, progress: Progress
) -> "Question":
    from veedor.attribution import Question

    def of_attribution(method: str, done: int, total: int) -> None:
        progress(f"attribute: {method}", done, total)

    return Question(
        subject=subject,
        encodings=subject.encode(list(drawn["text"])),
        target_index=subject.target_index(decisions.target),
        method="",
        scale="probability" if decisions.score_function.startswith("probability") else "logit",
        seed=settings.seed,
        settings=settings,
        spans=list(zip(drawn["start"].tolist(), drawn["end"].tolist(), strict=True)),
        progress=of_attribution,
    )


def _explain(name: str, drawn: pd.DataFrame, question: "Question", evidence: _Evidence) -> None:
    """Run one method; a refusal is evidence too, and the other methods go on."""
    from dataclasses import replace

    from veedor.attribution import attributions
    from veedor.attribution.methods import find_method, options_of
    from veedor.errors import SubjectError

    method = find_method(name)
    try:
        found = attributions(replace(question, method=name), list(drawn["text"]))
    except SubjectError as error:
        code = getattr(error, "code", "not_supported")
        evidence.refused[name] = code
        evidence.notes.append(Note(code="method_refused", values={"method": name, "why": code}))
        return
    evidence.methods[name] = {"options": options_of(method, question.settings), **method.properties()}
    evidence.notes.extend(_method_notes(name, found, question.settings))
    for identity, span, own in zip(drawn["id"], question.spans or (), found, strict=True):
        evidence.rows.append(_row(identity, own, span))


def _row(identity: str, own: "Attribution", span: tuple[int, int] | None) -> dict[str, object]:
    from veedor.attribution import span_score

    return {
        "id": identity,
        "method": own.method,
        "tokens": own.tokens,
        "token_starts": [start for start, _ in own.offsets],
        "token_ends": [end for _, end in own.offsets],
        "scores": own.scores.tolist(),
        "words": own.words,
        "word_starts": [start for start, _ in own.word_offsets],
        "word_ends": [end for _, end in own.word_offsets],
        "word_scores": own.word_scores.tolist(),
        "span_score": span_score(own, *span) if span is not None else None,
        "gap": own.gap,
        "nodes": own.nodes,
        "flags": "|".join(own.flags),
    }


def _sample_notes(sample: "Sample", available: int, settings: Settings) -> list[Note]:
    notes = []
    if len(sample.ids) < available:
        notes.append(Note(code="attribution_sample", values={"available": available, **sample.counts}))
    if sample.over_budget:
        values = {"rows": len(sample.ids), "budget": settings.attribution_rows}
        notes.append(Note(code="attribution_floors", values=values))
    return notes


def _method_notes(name: str, found: "Sequence[Attribution]", settings: Settings) -> list[Note]:
    notes = []
    unfinished = sum("not_converged" in own.flags for own in found)
    if unfinished:
        values = {"method": name, "rows": unfinished, "tolerance": settings.integrated_gradients.tolerance}
        notes.append(Note(code="attribution_not_converged", values=values))
    left_out = [own.options["specials_share"] for own in found if "specials_share" in own.options]
    if left_out:
        share = round(sum(float(value or 0.0) for value in left_out) / len(left_out), 4)
        notes.append(Note(code="specials_dropped", values={"method": name, "share": share}))
    return notes


def _record(decisions: Decisions, evidence: _Evidence, counts: dict[str, int]) -> Attributions:
    return Attributions(
        target=decisions.target,
        score_function=decisions.score_function,
        methods=evidence.methods,
        refused=evidence.refused,
        sample=counts,
        notes=tuple(evidence.notes),
        rows=pd.DataFrame(evidence.rows, columns=list(COLUMNS)),
    )
