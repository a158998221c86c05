"""How faithful is each method on one model: every method of this installation on the same texts, beside chance.

The measures and marks are those of an audit's challenge step, here over texts that the user gives, with deletion and
insertion curves, and, for methods that draw, agreement between two seeds. Files: `benchmark.json`, `benchmark.csv`,
`benchmark.svg`, `benchmark.png` and the page `benchmark.html`. Nothing is logged.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.benchmark_texts import Texts, read_texts
from pipeline.run import lent_subject
from pipeline.tracking import tracking_uri_for
from veedor.errors import SubjectError, UsageError, unknown
from veedor.progress import Progress
from veedor.settings import Settings

if TYPE_CHECKING:
    from steps.challenge import Exam, WordScores
    from veedor.attribution import Attribution, Question
    from veedor.report.benchmark import Benchmark
    from veedor.subjects import Subject

LIMIT = 100  # texts, unless the user says otherwise
ALL = "all"
STORE = Path("audits/benchmark")  # beside it lies the store that models are looked for in
FILES = ("benchmark.json", "benchmark.csv", "benchmark.svg", "benchmark.png", "benchmark.html")


@dataclass(frozen=True)
class Asked:
    """What the user wants: texts from a file, methods by name (None: all), a control model, a folder for files."""

    texts: Path
    methods: tuple[str, ...] | None = None
    limit: int = LIMIT
    control_model: str | None = None
    out: Path | None = None
    tracking_uri: str | None = None


def run_benchmark(model: str, asked: Asked, settings: Settings, progress: Progress) -> "Benchmark":
    """Measure, write the files if a folder is named, and return what there is to show."""
    names = methods_asked(asked.methods)
    texts = read_texts(asked.texts, limit=asked.limit, seed=settings.seed)
    if asked.out is not None:
        require_writable(asked.out)
    uri = tracking_uri_for(STORE, asked.tracking_uri)
    with lent_subject(model, settings, uri) as subject, control_of(asked, subject, settings, uri) as control:
        question = question_of(subject, texts, settings, progress)
        found = measure(question, texts, names, control)
    if asked.out is not None:
        write_files(found, asked.out)
    return found


def methods_asked(methods: Sequence[str] | None) -> tuple[str, ...]:
    """Every method where none is named; UsageError for a name that is not known."""
    from veedor.attribution import METHODS

    if not methods or tuple(methods) == (ALL,):
        return tuple(METHODS)
    for name in methods:
        if name not in METHODS:
            raise UsageError(f"{unknown('method', name, METHODS)}; {ALL} asks for every one")
    return tuple(dict.fromkeys(methods))


@contextmanager
def control_of(asked: Asked, subject: "Subject", settings: Settings, uri: str) -> "Iterator[Subject | None]":
    """The control model, if one is named; UsageError where it is no twin of the model."""
    if asked.control_model is None:
        yield None
        return
    with lent_subject(asked.control_model, settings, uri) as control:
        for what, own, other in (
            ("is a", subject.card.architecture, control.card.architecture),
            ("has the labels", ", ".join(subject.labels), ", ".join(control.labels)),
            ("has the tokenizer", subject.card.tokenizer_digest[:12], control.card.tokenizer_digest[:12]),
            ("has as many parameters:", str(subject.card.parameters), str(control.card.parameters)),
        ):
            if own != other:
                raise UsageError(
                    f"--control-model {asked.control_model} {what} {other}, the model {own}; give the same "
                    "architecture with the same tokenizer, trained on permuted labels"
                )
        if control.card.weights_digest == subject.card.weights_digest:
            raise UsageError("--control-model is the model itself; give one that was trained on permuted labels")
        yield control


def question_of(subject: "Subject", texts: Texts, settings: Settings, progress: Progress) -> "Question":
    """What every method is asked."""
    from veedor.attribution import Question
    from veedor.attribution.methods import label_index

    target = label_index(subject, settings.target)
    encodings = subject.encode(texts.texts)
    return Question(subject, encodings, target, "", seed=settings.seed, settings=settings, progress=progress)


def measure(question: "Question", texts: Texts, names: Sequence[str], control: "Subject | None") -> "Benchmark":
    """Explain the texts by every method that the model allows, and put each to the test."""
    from steps.challenge import examine

    explained, refused = explain_all(question, texts, names)
    if not explained:
        raise SubjectError(
            f"{question.subject.name} allows none of the methods: "
            f"{'; '.join(f'{name} ({why})' for name, why in refused.items())}"
        )
    scores = {name: [own.word_scores for own in found] for name, found in explained.items()}
    exam = examine(question, texts.texts, scores, curves=True, control=control)
    return gathered(question, texts, explained, refused, exam)


def explain_all(
    question: "Question", texts: Texts, names: Sequence[str]
) -> "tuple[dict[str, list[Attribution]], dict[str, str]]":
    """What each method says of each text, and why others could not be asked."""
    from veedor.attribution import attributions

    explained: dict[str, list[Attribution]] = {}
    refused: dict[str, str] = {}
    for name in names:
        try:
            explained[name] = attributions(replace(question, method=name), texts.texts)
        except SubjectError as error:
            refused[name] = str(error)
    return explained, refused


def between_seeds(question: "Question", texts: Texts, scores: "WordScores") -> "dict[str, float | None]":
    """Kendall's tau of each method's words under this seed and the next; 1 where no dice are thrown."""
    from steps.challenge import word_scores
    from veedor.attribution import METHODS
    from veedor.metrics.agreement import kendall
    from veedor.metrics.faithfulness import mean_of

    found: dict[str, float | None] = {}
    for name, own in scores.items():
        if METHODS[name].deterministic:
            found[name] = 1.0
            continue
        settings = question.settings.model_copy(update={"seed": question.seed + 1})
        other = word_scores(replace(question, seed=question.seed + 1, settings=settings), texts.texts, name)
        found[name] = mean_of([kendall(a, b) for a, b in zip(own, other, strict=True)])
    return found


def gathered(
    question: "Question",
    texts: Texts,
    explained: "dict[str, list[Attribution]]",
    refused: dict[str, str],
    exam: "Exam",
) -> "Benchmark":
    """Everything there is to show, as plain values."""
    from steps.challenge import record, sheet
    from veedor.attribution import METHODS
    from veedor.attribution.methods import score_function
    from veedor.report.benchmark import Benchmark, MethodLine

    settings, subject = question.settings, question.subject
    scores = {name: [own.word_scores for own in found] for name, found in explained.items()}
    seeds = between_seeds(question, texts, scores)
    sheets = {name: sheet(name, exam, gaps(found, settings), settings) for name, found in explained.items()}
    target, explained_score = subject.labels[question.target_index], score_function(subject, question.scale)
    made = record(target, explained_score, sheets, exam, settings, notes=exam.notes)
    return Benchmark(
        subject=subject.card,
        texts=len(texts.texts),
        of_texts=texts.available,
        left_out={"blank": texts.blank, "repeated": texts.repeated},
        seed=question.seed,
        options=settings.challenge.model_dump(mode="json"),
        methods={
            name: MethodLine(
                summary=METHODS[name].summary,
                properties=METHODS[name].properties(),
                between_seeds=seeds[name],
                evaluations=sum(own.nodes for own in found) / len(found),
            )
            for name, found in explained.items()
        },
        refused=refused,
        reliability=made,
        curves=exam.curves,
        words=sum(len(one.words) for one in question.encodings) / len(texts.texts),
    )


def gaps(found: "Sequence[Attribution]", settings: Settings) -> float | None:
    """Share of the texts whose completeness gap is above tolerance; None for methods without a gap."""
    known = [own.gap for own in found if own.gap is not None]
    return sum(gap > settings.integrated_gradients.tolerance for gap in known) / len(known) if known else None


def require_writable(folder: Path) -> None:
    """UsageError unless this is a new folder, an empty one, or one that holds an earlier benchmark."""
    try:
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--out {folder} is a file; name a folder")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / FILES[0]).is_file():
            raise UsageError(f"--out {folder} holds files that no benchmark wrote; name another folder")
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("it cannot be written")
    except OSError as error:
        raise UsageError(f"--out {folder}: {error}; name another folder") from error


def write_files(found: "Benchmark", folder: Path) -> None:
    """Write the figure, the table, the page and everything as JSON, each whole or not at all."""
    from veedor.report.benchmark import as_json, as_page
    from veedor.report.benchmark_figure import draw
    from veedor.report.render import write_bytes, write_text

    figure: dict[str, Any] = draw(found)
    write_bytes(folder / "benchmark.svg", figure["svg"])
    write_bytes(folder / "benchmark.png", figure["png"])
    write_text(folder / "benchmark.csv", found.reliability.scores.to_csv(index=False))
    write_text(folder / "benchmark.html", as_page(found, figure["svg"]))
    write_text(folder / "benchmark.json", as_json(found))
