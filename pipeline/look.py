"""What this installation offers, and what an evaluation set holds: lists for the terminal, no audit."""

from typing import TYPE_CHECKING

from pipeline.console import print_table, stdout
from pipeline.summary import print_validation

if TYPE_CHECKING:
    import pandas as pd

    from veedor.records import EvaluationSet
    from veedor.settings import Settings

SWAPS_SHOWN = 40
CHARACTERS_SHOWN = 200


def print_methods() -> None:
    """METHODS with what each declares."""
    from veedor.attribution import METHODS

    rows = []
    for name, method in METHODS.items():
        kinds = ("targeted", "signed", "additive", "complete", "needs_attention")
        traits = ", ".join(kind.replace("_", " ") for kind in kinds if getattr(method, kind))
        rows.append((name, method.cost, traits, method.summary))
    print_table(None, ("method", "cost", "scores are", "what it does"), rows)


def print_metrics() -> None:
    """METRICS with where each comes from."""
    from veedor.metrics import METRICS

    rows = [(name, metric.range, metric.direction, metric.summary, metric.source) for name, metric in METRICS.items()]
    print_table(None, ("metric", "range", "better", "what it is", "source"), rows)


def print_sets() -> None:
    """The catalogue: sets that are built in, and formats that are known by their columns."""
    from veedor.evaluation.catalogue import CATALOGUE

    rows = []
    for name, entry in CATALOGUE.items():
        how = f"file with {', '.join(entry.recognised_by)}" if entry.recognised_by else "built in"
        rows.append((name, entry.language or "any", entry.licence, how, ", ".join(entry.known_validity_issues)))
    print_table(None, ("evaluation set", "language", "licence", "how it comes", "known limits"), rows)


def print_set(settings: "Settings", *, swaps: bool) -> None:
    """Every check of the set; then, if asked for, its rows; EvaluationSetError at last where a critical check fails."""
    from steps.collect import find, require_valid
    from veedor.evaluation.limit import limit_rows
    from veedor.evaluation.suite import validate

    evaluation = validate(limit_rows(find(settings), settings.limit, seed=settings.seed))
    console = stdout()
    console.print(f"{evaluation.name}  {evaluation.language}, {len(evaluation.rows)} rows, {evaluation.licence}")
    print_validation(evaluation.validation, evaluation.counts, reasons(evaluation))
    if swaps:
        print_swaps(evaluation)
    require_valid(evaluation)
    console.print("valid")


def reasons(evaluation: "EvaluationSet") -> list[tuple[str, int]]:
    """Why rows were left out, and how many for each reason, the most frequent first."""
    counted = evaluation.excluded["reason"].value_counts()
    return [(str(reason), int(count)) for reason, count in counted.items()]


def print_swaps(evaluation: "EvaluationSet") -> None:
    """Some contexts with every word in them, then the rows that were left out, with the reason."""
    rows: pd.DataFrame = evaluation.rows
    shown = rows[rows["template"].isin(rows["template"].drop_duplicates().head(5))].head(SWAPS_SHOWN)
    cells = [
        (crop(template), "control" if control else f"{axis}/{group}", crop(term), crop(text, int(start), int(end)))
        for template, control, axis, group, term, text, start, end in shown[
            ["template", "control", "axis", "group", "term", "text", "start", "end"]
        ].itertuples(index=False)
    ]
    print_table(f"{len(shown)} of {len(rows)} rows", ("context", "group", "word", "text"), cells)
    left_out = evaluation.excluded.head(SWAPS_SHOWN)
    if not left_out.empty:
        reasons_and_texts = [
            (str(reason), crop(text)) for reason, text in left_out[["reason", "text"]].itertuples(index=False)
        ]
        title = f"{len(left_out)} of {len(evaluation.excluded)} left out"
        print_table(title, ("reason", "text"), reasons_and_texts)


def crop(text: object, start: int = 0, end: int = 0, *, room: int = CHARACTERS_SHOWN) -> str:
    """At most `room` characters of a text, around the span from `start` to `end`; an ellipsis for the rest.

    >>> crop("aaaaaaaaaa gay bbbbbbbbbb", 11, 14, room=7)
    '…a gay b…'
    """
    whole = str(text)
    if len(whole) <= room:
        return whole
    first = min(max(0, start - max(0, room - (end - start)) // 2), len(whole) - room)
    last = first + room
    return f"{'…' if first else ''}{whole[first:last]}{'…' if last < len(whole) else ''}"
