"""One text, one method, on the terminal or as a page: which words hold the score up, which hold it down."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.console import print_table, stdout
from pipeline.run import lent_subject
from pipeline.tracking import tracking_uri_for
from veedor.errors import UsageError, unknown
from veedor.settings import Settings

if TYPE_CHECKING:
    from rich.text import Text

    from veedor.attribution import Attribution
    from veedor.subjects import Subject

FOR = (214, 96, 77)  # raises the score
AGAINST = (67, 130, 195)  # lowers it; told apart from FOR also by the colour-blind
BAR = 24


@dataclass(frozen=True)
class Word:
    """A word as it is shown: what stands before it in the text, its score, and its share of the largest score."""

    before: str
    text: str
    score: float
    share: float

    @property
    def colour(self) -> tuple[int, int, int]:
        """Red for, blue against."""
        return FOR if self.score >= 0 else AGAINST


def explain_text(
    model: str, text: str, settings: Settings, *, method: str, html: Path | None, tracking_uri: str | None
) -> None:
    """Print the explanation of one text and, if a file is named, write it as a page."""
    from veedor.attribution import METHODS, attribute

    if method not in METHODS:
        raise UsageError(unknown("method", method, METHODS))
    if not text.strip():
        raise UsageError("TEXT is empty; give the text to explain, in quotation marks")
    from steps.predict import resolve_target

    with lent_subject(model, settings, tracking_uri_for(Path("audits/explain"), tracking_uri)) as subject:
        found = next(iter(attribute(subject, [text], method=method, target=settings.target, settings=settings)))
        answers = answers_of(subject, text)
        assumed = found.target is not None and resolve_target(subject, settings).source == "label_1"
    show(found, answers, assumed=assumed)
    if html is not None:
        write_page(html, page(found, answers, subject.card.name, assumed=assumed))


def answers_of(subject: "Subject", text: str) -> list[tuple[str, float]]:
    """The probability of each label."""
    import torch

    [batch] = subject.batches(subject.encode([text]))
    with torch.no_grad():
        probabilities = subject.probabilities(subject.logits(batch))[0]
    return [(label, float(value)) for label, value in zip(subject.labels, probabilities, strict=True)]


def words_of(found: "Attribution") -> Iterator[Word]:
    """The words in order, each with its share of the largest score."""
    largest = max((abs(float(score)) for score in found.word_scores), default=0.0) or 1.0
    end = 0
    for word, (start, stop), score in zip(found.words, found.word_offsets, found.word_scores, strict=True):
        yield Word(found.text[end:start], word, float(score), abs(float(score)) / largest)
        end = stop


def rest_of(found: "Attribution") -> str:
    """What follows the last word."""
    return found.text[found.word_offsets[-1][1] :] if found.word_offsets else found.text


def about(found: "Attribution", *, assumed: bool = False) -> str:
    """Method, target (and whether anybody named it) and completeness in a line."""
    by_default = "; assumed: label 1 of two, name it with --target" if assumed else ""
    target = f", target {found.target!r} ({found.score_function}{by_default})" if found.target else ", about no label"
    gap = "" if found.gap is None else f", completeness gap {100 * found.gap:.2g} %"
    cut = ", cut to the model's window" if "truncated" in found.flags else ""
    return f"{found.method}{target}{gap}{cut}"


def signed(found: "Attribution") -> bool:
    """Whether the method tells for from against."""
    from veedor.attribution import METHODS

    return METHODS[found.method].signed


def show(found: "Attribution", answers: list[tuple[str, float]], *, assumed: bool = False) -> None:
    """Coloured words, a table of scores with bars, and the answers; NO_COLOR leaves the table to say it."""
    words = list(words_of(found))
    console = stdout()
    console.print(coloured(words, rest_of(found)))
    console.print(about(found, assumed=assumed))
    rows = [(word.text, f"{word.score:+.4f}", bar(word)) for word in words]
    print_table(None, ("word", ">score", "- lowers, + raises" if signed(found) else "how much"), rows)
    print_table(None, ("label", ">probability"), [(label, f"{value:.4f}") for label, value in answers])


def coloured(words: list[Word], rest: str) -> "Text":
    """The text with each word's ground coloured by its score, faint for little."""
    from rich.text import Text

    line = Text()
    for word in words:
        line.append(word.before)
        shade = ",".join(str(round(255 - (255 - part) * word.share)) for part in word.colour)
        line.append(word.text, style=f"black on rgb({shade})" if word.share > 0 else "")
    line.append(rest)
    return line


def bar(word: Word) -> str:
    """The score as a bar of signs.

    >>> bar(Word("", "x", -0.5, 0.25))
    '------'
    """
    return ("+" if word.score >= 0 else "-") * round(BAR * word.share)


def write_page(file: Path, content: str) -> None:
    """Write the page and say where; UsageError where it cannot be written."""
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error}; name another file with --html") from error
    stdout().print(f"page      {file}")


def page(found: "Attribution", answers: list[tuple[str, float]], model: str, *, assumed: bool = False) -> str:
    """The explanation as one self-contained page; everything that comes from text or model is escaped and visible."""
    from veedor.report.language import visible
    from veedor.report.render import render_template

    words = [
        {
            "before": visible(word.before),
            "text": visible(word.text),
            "score": f"{word.score:+.4f}",
            "colour": ", ".join(map(str, word.colour)),
            "opacity": f"{word.share:.3f}",
        }
        for word in words_of(found)
    ]
    values = {
        "title": visible(f"{found.method}: {model}"),
        "about": visible(about(found, assumed=assumed)),
        "legend": "red raises the score, blue lowers it" if signed(found) else "the stronger the colour, the more",
        "words": words,
        "rest": visible(rest_of(found)),
        "answers": [{"label": visible(label), "probability": f"{value:.4f}"} for label, value in answers],
    }
    return render_template("explain.html.j2", values)
