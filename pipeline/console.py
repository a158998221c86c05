"""What the terminal shows while work runs and when it is done. Words for people; programs read audit.json.

Progress and messages go to standard error, results to standard output. Where standard error is no terminal, progress is
one plain line now and then.
"""

import logging
import os
import sys
import time
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from veedor.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.progress import Progress as Bars
    from rich.progress import TaskID
    from rich.segment import Segment

QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "GX_ANALYTICS_ENABLED": "false",
}
NOISY = ("transformers", "datasets", "great_expectations", "matplotlib", "fontTools", "weasyprint", "py.warnings")
PLAIN_SECONDS = 10.0
PLAIN_WIDTH = 140
ACTING = ("Cc", "Cs", "Zl", "Zp")  # controls, lone surrogates, line and paragraph separators
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def hush() -> None:
    """Keep the libraries' own chatter off the terminal; `python -W` and the environment win."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")


def harmless(text: str, *, kept: str = "\n\t") -> str:
    """Text that a terminal shows and does not obey: control characters and direction marks as escapes.

    >>> harmless("a\\x1b[31mb\\u202ec\\n")
    'a\\\\x1b[31mb\\\\u202ec\\n'
    """
    return "".join(
        repr(character)[1:-1]
        if (unicodedata.category(character) in ACTING and character not in kept) or character in DIRECTIONS
        else character
        for character in text
    )


def say(text: str) -> None:
    """A message on standard error."""
    print(harmless(text), file=sys.stderr, flush=True)


def stdout() -> "Console":
    """Standard output with colours where it is a terminal and NO_COLOR is not set.

    Nothing is read as markup, and no text that is printed can steer the terminal.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Harmless(Console):
        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> "Iterable[Segment]":
            for part in super().render(renderable, options):
                yield part if part.control else Segment(harmless(part.text), part.style)

    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    return Harmless(highlight=False, markup=False, soft_wrap=True, width=width)


def print_table(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that also reads well in a log file; columns named with a leading `>` are aligned right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, column in enumerate(columns):
        side: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        table.add_column(column.lstrip(">"), justify=side, overflow="fold", no_wrap=position == 0)
    for row in rows:
        table.add_row(*(Text(harmless(cell, kept="")) for cell in row))
    stdout().print(table)


@contextmanager
def progress_shown() -> Iterator[Progress]:
    """A progress callable for as long as the block lasts: bars on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield plain_progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True)) as bars:
        yield bar_progress(bars)


def bar_progress(bars: "Bars") -> Progress:
    """One bar for each thing that is being done."""
    tasks: dict[str, TaskID] = {}
    started: dict[str, float] = {}

    def show(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total, rate="")
            started[what] = time.monotonic()
        speed = rate(done, time.monotonic() - started[what])
        bars.update(tasks[what], completed=done, total=total, rate=speed)

    return show


def plain_progress() -> Progress:
    """A line when something begins and ends, and every ten seconds between."""
    started: dict[str, float] = {}
    spoke: dict[str, float] = {}

    def show(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        first = what not in started
        started.setdefault(what, now)
        if not first and done < total and now - spoke[what] < PLAIN_SECONDS:
            return
        spoke[what] = now
        say(f"{what}: {done}/{total}{left(done, total, now - started[what])}")

    return show


def rate(done: int, seconds: float) -> str:
    """How fast it goes.

    >>> rate(500, 10.0), rate(3, 60.0), rate(0, 5.0)
    ('50/s', '3/min', '')
    """
    if done <= 0 or seconds <= 0:
        return ""
    per_second = done / seconds
    return f"{per_second:.0f}/s" if per_second >= 1 else f"{per_second * 60:.0f}/min"


def left(done: int, total: int, seconds: float) -> str:
    """Rate and time left, once there is something to judge by.

    >>> left(50, 100, 10.0), left(100, 100, 10.0), left(0, 100, 0.0)
    (', 5/s, 10 s left', ', 10 s', '')
    """
    if done >= total:
        return f", {seconds:.0f} s" if seconds >= 1 else ""
    if done <= 0 or seconds < 1:
        return ""
    return f", {rate(done, seconds)}, {seconds * (total - done) / done:.0f} s left"
