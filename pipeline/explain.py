"""One text explained, on the terminal and as a page: which words hold the score up, which hold it down.

What is computed: `pipeline.explain_answers`. How it is shown: `pipeline.explain_terminal`, `pipeline.explain_page`.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.explain_answers import Explained, explain_by, methods_asked
from pipeline.run import lent_subject
from pipeline.tracking import tracking_uri_for
from veedor.errors import UsageError
from veedor.settings import Settings

STDIN = "-"


@dataclass(frozen=True)
class Shown:
    """What the reader wants to see: methods by name, tokens in place of words, a page, in which language."""

    methods: Sequence[str] | None = None
    tokens: bool = False
    html: Path | None = None
    language: str = "en"
    audit: Path | None = None


def explain_text(model: str, text: str, settings: Settings, shown: Shown, *, tracking_uri: str | None = None) -> None:
    """Print the explanation of one text and, if a file is named, write it as a page."""
    from pipeline.console import progress_shown
    from pipeline.explain_page import may_write, write_page
    from pipeline.explain_terminal import show

    asked = methods_asked(shown.methods)
    text = read_text(text)
    if shown.html is not None:
        may_write(shown.html)
    with (
        lent_subject(model, settings, tracking_uri_for(Path("audits/explain"), tracking_uri)) as subject,
        progress_shown() as progress,
    ):
        if shown.html is None:
            explained = explain_by(subject, text, settings, asked, whole=False)
        else:
            explained = explain_by(subject, text, settings, asked, whole=True, progress=progress)
    explained = with_doubts(explained, shown.audit)
    show(explained, tokens=shown.tokens)
    if shown.html is not None:
        write_page(shown.html, explained, shown.language)


def read_text(text: str) -> str:
    """The text itself, or what stands on standard input for `-`; UsageError where there is none."""
    if text == STDIN:
        try:
            text = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
        except UnicodeDecodeError as error:
            raise UsageError(f"standard input is no UTF-8 ({error}); convert it, for instance with iconv") from error
    if not text.strip():
        raise UsageError("TEXT is empty; give the text to explain, in quotation marks, or - for standard input")
    return text


def with_doubts(explained: Explained, audit: Path | None) -> Explained:
    """The same, with what an audit of this model says about the methods' reliability."""
    if audit is None:
        return explained
    from pipeline.explain_audit import doubts_of

    return replace(explained, doubts=doubts_of(audit, explained.digest))
