"""Challenge the methods themselves: is what they say of this model more than chance, and does it come from its weights?

A small sample of the explained rows, drawn over contexts. The rules by which a method is marked unreliable are fixed in
the settings beforehand; a mark is told wherever the method's scores are shown, and decides nothing else.
"""

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from veedor.progress import Progress, silent
from veedor.records import Attributions, Decisions, EvaluationSet, MethodReliability, Note, Reliability
from veedor.settings import Settings

if TYPE_CHECKING:
    from veedor.attribution import Question
    from veedor.metrics.agreement import Agreement
    from veedor.metrics.faithfulness_words import Words
    from veedor.subjects import Subject
    from veedor.subjects.perturbation import Operator

WordScores = dict[str, list[np.ndarray]]  # method -> a vector of word scores for each text


def challenge(
    evaluation: EvaluationSet,
    decisions: Decisions,
    attributions: Attributions,
    subject: "Subject",
    settings: Settings,
    progress: Progress = silent,
) -> Reliability:
    """Test every method that explained something, on `challenge_rows` of the rows it explained."""
    names = [name for name in attributions.methods if (attributions.rows["method"] == name).any()]
    if settings.challenge_rows == 0 or not names:
        code = "challenge_off" if settings.challenge_rows == 0 else "challenge_nothing_to_test"
        return record(decisions.target, decisions.score_function, {}, None, settings, notes=(Note(code=code),))
    explained = attributions.rows[attributions.rows["method"] == names[0]]["id"]
    drawn = draw(evaluation.rows[evaluation.rows["id"].isin(explained)], settings.challenge_rows, seed=settings.seed)
    scores = {name: stored(attributions, name, drawn["id"]) for name in names}
    exam = examine(question_of(drawn, decisions, subject, settings, progress), list(drawn["text"]), scores)
    exam = replace(exam, clusters=dict(enumerate(drawn["template"])), ids=tuple(drawn["id"]))
    sheets = {name: sheet(name, exam, gap_share(attributions.rows, name, settings), settings) for name in names}
    marked = [Note(code="method_unreliable", values={"method": name}) for name in names if sheets[name].unreliable]
    counts = {"rows": len(drawn), "of": len(explained), "contexts": int(drawn["template"].nunique())}
    sampled = Note(code="challenge_sample", values=counts)
    return record(
        decisions.target, decisions.score_function, sheets, exam, settings, notes=(sampled, *exam.notes, *marked)
    )


def draw(rows: pd.DataFrame, number: int, *, seed: int) -> pd.DataFrame:
    """Some of the rows, in the order in which they stand: contexts of every form in turn, then words in each; by name.

    rows: id, template, form, as in EvaluationSet. What is drawn depends on names and the seed, never on order.
    """
    form = rows["form"].fillna(rows["template"])
    frame = pd.DataFrame({"id": rows["id"], "context": rows["template"].astype(str), "form": form.astype(str)})
    frame["key"] = [_key(seed, own) for own in frame["id"].astype(str)]
    frame["place"] = [_key(seed, own) for own in frame["context"]]
    frame = frame.sort_values("key")
    frame["turn"] = frame.groupby("context").cumcount()
    contexts = frame.drop_duplicates("context").sort_values("place")
    ranks = dict(zip(contexts["context"], contexts.groupby("form").cumcount(), strict=True))
    frame["rank"] = frame["context"].map(ranks)
    chosen = frame.sort_values(["turn", "rank", "place"]).head(number)["id"]
    return rows[rows["id"].isin(chosen)]


def _key(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed}\x1f{name}".encode()).hexdigest()


def stored(attributions: Attributions, method: str, ids: "pd.Series[Any]") -> list[np.ndarray]:
    """A method's word scores of these rows, in this order."""
    own = attributions.rows[attributions.rows["method"] == method].set_index("id")["word_scores"]
    return [np.asarray(own[identity], dtype=np.float64) for identity in ids]


def question_of(
    drawn: pd.DataFrame, decisions: Decisions, subject: "Subject", settings: Settings, progress: Progress
) -> "Question":
    """What the methods were asked about these rows, to be asked again of moved inputs and of other weights."""
    from veedor.attribution import Question

    return Question(
        subject=subject,
        encodings=subject.encode(list(drawn["text"])),
        target_index=subject.target_index(decisions.target),
        method="",
        scale="probability" if decisions.score_function.startswith("probability") else "logit",
        seed=settings.seed,
        settings=settings,
        spans=list(zip(drawn["start"].tolist(), drawn["end"].tolist(), strict=True)),
        progress=progress,
    )


@dataclass(frozen=True)
class Exam:
    """What came out: one value a text, method, operator and metric; agreement of methods; curves, where asked for."""

    values: pd.DataFrame
    agreement: "list[Agreement]"
    curves: pd.DataFrame
    operators: tuple[str, ...]
    forwards: int
    notes: tuple[Note, ...] = ()
    clusters: Mapping[int, Hashable] | None = None
    ids: tuple[str, ...] = ()

    def table(self) -> pd.DataFrame:
        """Means beside their references, with intervals over clusters."""
        from veedor.metrics.faithfulness_summary import summarise

        return summarise(self.values, self.clusters)


def examine(
    question: "Question",
    texts: Sequence[str],
    scores: WordScores,
    *,
    curves: bool = False,
    control: "Subject | None" = None,
) -> Exam:
    """Every metric of every method. scores: what each method gave these texts; control: a model of permuted labels."""
    from veedor.attribution import METHODS
    from veedor.metrics.agreement import agreement_matrix
    from veedor.metrics.faithfulness_texts import Trial, measure_texts, text_words

    options = question.settings.challenge
    operators, notes = usable_operators(question.subject, options.operators)
    trial = Trial(
        question.subject,
        question.target_index,
        operators,
        question.scale,
        question.seed,
        options.rankings,
        options.removals,
        curves,
        question.settings.batch_size,
        progress=lambda _, done, total: question.progress("challenge: words taken out", done, total),
    )
    signed = {name: METHODS[name].signed for name in scores}
    words = text_words(trial, question.encodings)
    measured = measure_texts(trial, question.encodings, scores, signed)
    tables = [measured.values, *moved_inputs(question, texts, scores, words)]
    tables += other_weights(question, texts, scores, words)
    if control is not None:
        tables += against(question, texts, scores, words, control)
    values = pd.concat([table for table in tables if len(table)], ignore_index=True)
    return Exam(values, agreement_matrix(scores, signed), measured.curves, operators, measured.forwards, notes)


def usable_operators(
    subject: "Subject", asked: "Sequence[Operator]"
) -> "tuple[tuple[Operator, ...], tuple[Note, ...]]":
    """The operators that this tokenizer allows, and a note for one that it does not."""
    from veedor.subjects.perturbation import NoFillerError, filler_id

    try:
        filler_id(subject)
    except NoFillerError:
        left = tuple(name for name in dict.fromkeys(asked) if name != "mask")
        return left or ("delete",), (Note(code="challenge_no_mask"),)
    return tuple(dict.fromkeys(asked)), ()


def word_scores(question: "Question", texts: Sequence[str], method: str) -> list[np.ndarray]:
    """A method's word scores."""
    from veedor.attribution import attributions

    return [own.word_scores for own in attributions(replace(question, method=method), texts)]


def moved_inputs(
    question: "Question", texts: Sequence[str], scores: WordScores, words: "Sequence[Words]"
) -> list[pd.DataFrame]:
    """Max-sensitivity of the methods that start from embeddings; the others change the text itself."""
    from veedor.attribution import METHODS, Jitter
    from veedor.errors import SubjectError
    from veedor.metrics.faithfulness_texts import measure_moved, not_measured

    options, found = question.settings.challenge, []
    for done, name in enumerate(scores if options.draws else ()):
        question.progress("challenge: inputs moved", done, len(scores))
        method = METHODS[name]
        if not (method.needs_gradient or method.needs_attention):
            found.append(not_measured("max_sensitivity", words, name, "not_moved"))
            continue

        def again(draw: int, name: str = name) -> list[np.ndarray]:
            jitter = Jitter(radius=options.radius, draw=draw)
            return word_scores(replace(question, jitter=jitter, progress=silent), texts, name)

        try:
            found.append(measure_moved(words, scores, {name: again}, draws=options.draws))
        except SubjectError as error:
            found.append(not_measured("max_sensitivity", words, name, getattr(error, "code", "not_supported")))
    if options.draws:
        question.progress("challenge: inputs moved", len(scores), len(scores))
    return found


def other_weights(
    question: "Question", texts: Sequence[str], scores: WordScores, words: "Sequence[Words]"
) -> list[pd.DataFrame]:
    """Likeness to the scores of a copy whose head, and then whose layers too, were drawn anew.

    Methods without a target do not read the head, and are spared its step.
    """
    from veedor.attribution import METHODS
    from veedor.errors import SubjectError
    from veedor.metrics.faithfulness_texts import not_measured
    from veedor.subjects.reinitialised import HEAD, cascade

    if not question.settings.challenge.randomise:
        return []
    targeted = {name: own for name, own in scores.items() if METHODS[name].targeted}
    found, last = [], None
    try:
        for step, last in cascade(question.subject, seed=question.seed):
            if step == HEAD:
                found += likeness(question, texts, targeted, words, "randomised_head", last)
    except SubjectError:
        return [not_measured("randomised_all", words, name, "no_layers") for name in scores]
    for name in scores:
        if name not in targeted:
            found.append(not_measured("randomised_head", words, name, "no_target"))
    return found + likeness(question, texts, scores, words, "randomised_all", last)


def against(
    question: "Question", texts: Sequence[str], scores: WordScores, words: "Sequence[Words]", control: "Subject"
) -> list[pd.DataFrame]:
    """Likeness to the scores of a model of the same architecture that learnt permuted labels."""
    return likeness(question, texts, scores, words, "control_model", control)


def likeness(
    question: "Question",
    texts: Sequence[str],
    scores: WordScores,
    words: "Sequence[Words]",
    metric: str,
    other: "Subject | None",
) -> list[pd.DataFrame]:
    """Rank correlation of |φ| with that under another model, method by method."""
    from veedor.errors import SubjectError
    from veedor.metrics.faithfulness_texts import measure_likeness, not_measured

    found = []
    asked = replace(question, subject=other or question.subject, progress=silent)
    for done, name in enumerate(scores):
        question.progress(f"challenge: {metric.replace('_', ' ')}", done, len(scores))
        try:
            there = {name: word_scores(asked, texts, name)}
            found.append(measure_likeness(metric, words, scores, there))
        except SubjectError as error:
            found.append(not_measured(metric, words, name, getattr(error, "code", "not_supported")))
    question.progress(f"challenge: {metric.replace('_', ' ')}", len(scores), len(scores))
    return found


def gap_share(rows: pd.DataFrame, method: str, settings: Settings) -> float | None:
    """Share of a method's texts whose completeness gap is above tolerance; None for methods without a gap."""
    gaps = rows.loc[rows["method"] == method, "gap"].dropna().astype(float)
    return float((gaps > settings.integrated_gradients.tolerance).mean()) if len(gaps) else None


def sheet(name: str, exam: Exam, gaps: float | None, settings: Settings) -> MethodReliability:
    """One method's marks, by the limits of the settings."""
    from veedor.attribution import METHODS
    from veedor.metrics.faithfulness_marks import Limits, marks

    table = exam.table()
    limits = Limits(settings.challenge.cascade_limit, settings.challenge.gap_limit)
    targeted = METHODS[name].targeted
    found = marks(table[table["method"] == name], targeted=targeted, gap_share=gaps, limits=limits)
    return MethodReliability(
        unreliable=None if found is None else bool(found), marks=found or (), targeted=targeted, gap_share=gaps
    )


def record(
    target: str,
    score_function: str,
    sheets: dict[str, MethodReliability],
    exam: Exam | None,
    settings: Settings,
    *,
    notes: tuple[Note, ...],
) -> Reliability:
    """The record; empty tables where nothing was tested."""
    from veedor.metrics.faithfulness_summary import COLUMNS, LEVEL
    from veedor.metrics.faithfulness_texts import COLUMNS as VALUES

    pairs = ("first", "second", "kendall", "spearman", "texts")
    values = pd.DataFrame(columns=list(VALUES)) if exam is None else exam.values
    if exam is not None and exam.ids:
        values = values.assign(text=[exam.ids[at] for at in values["text"]])
    return Reliability(
        target=target,
        score_function=score_function,
        operators=() if exam is None else exam.operators,
        level=LEVEL,
        cascade_limit=settings.challenge.cascade_limit,
        gap_limit=settings.challenge.gap_limit,
        methods=sheets,
        forwards=0 if exam is None else exam.forwards,
        notes=notes,
        scores=pd.DataFrame(columns=list(COLUMNS)) if exam is None else exam.table(),
        values=values.rename(columns={"text": "id"}),
        agreement=pd.DataFrame([] if exam is None else [one.__dict__ for one in exam.agreement], columns=list(pairs)),
    )
