"""HTML to PDF with WeasyPrint, which may load nothing but data: URIs.

The same page gives the same bytes. Where Pango is missing there is no PDF but a note with the line that installs it;
characters that no font here can draw become a note as well.
"""

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from veedor.records import Note

INSTALL = "apt-get install --no-install-recommends libpangoft2-1.0-0 libharfbuzz-subset0"
NOTDEF = re.compile(r'notdef glyph.*?"(.*)"', re.DOTALL)
MOST_CHARACTERS = 40


@dataclass(frozen=True)
class Pdf:
    """The bytes of a PDF, or None where none could be made, and what a reader must know."""

    content: bytes | None
    warnings: tuple[Note, ...] = ()


def to_pdf(html: str, attached: bytes, *, date: str | None) -> Pdf:
    """Lay out a page as an accessible PDF (PDF/UA-1), audit.json attached with this `date` (ISO 8601)."""
    try:
        import weasyprint  # noqa: F401  only to see whether its libraries are there
    except OSError:
        return Pdf(None, (Note(code="pdf_unavailable", values={"install": INSTALL}),))
    with _quiet() as said:
        content, notes = _written(html, attached, date)
    return Pdf(content, (*notes, *_glyph_notes(said)))


def _written(html: str, attached: bytes, date: str | None) -> tuple[bytes, tuple[Note, ...]]:
    """The bytes of the PDF; where tagging fails, a plain one and a note."""
    try:
        return _rendered(html, attached, date).write_pdf(pdf_variant="pdf/ua-1"), ()
    except (AttributeError, AssertionError, IndexError, KeyError, TypeError, ValueError) as error:
        # Some layouts crash WeasyPrint only while it writes tags; a plain PDF is better than none.
        note = Note(code="pdf_untagged", values={"error": f"{type(error).__name__}: {error}"})
        return _rendered(html, attached, date).write_pdf(), (note,)


def _rendered(html: str, attached: bytes, date: str | None) -> Any:
    from weasyprint import HTML

    document = HTML(string=html, url_fetcher=data_only()).render()
    document.metadata.attachments.append(_attachment(attached, date))
    return document


def data_only() -> Any:
    """A fetcher that refuses everything but data: URIs: a text under audit must not make us read anything else."""
    from weasyprint.urls import URLFetcher

    return URLFetcher(allowed_protocols={"data"})


def _attachment(content: bytes, date: str | None) -> Any:
    from datetime import UTC, datetime

    from weasyprint import Attachment

    moment = datetime.fromisoformat(date) if date else datetime(2000, 1, 1, tzinfo=UTC)
    return Attachment(
        string=content,
        name="audit.json",
        relationship="Data",
        created=moment,
        modified=moment,
        base_url="audit.json",
        url_fetcher=data_only(),
    )


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """What WeasyPrint logs, kept instead of printed."""
    said: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, handler = logging.getLogger("weasyprint"), Keep(level=logging.WARNING)
    others, passes_on = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [handler], False
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*[Hh]arf[Bb]uzz")
            yield said
    finally:
        logger.handlers, logger.propagate = others, passes_on


def _glyph_notes(said: list[str]) -> tuple[Note, ...]:
    found = [match.group(1) for line in said if (match := NOTDEF.search(line))]
    characters = sorted({character for text in found for character in text})
    if not characters:
        return ()
    return (Note(code="glyph_missing", values={"characters": tuple(characters[:MOST_CHARACTERS])}),)


def metadata_dates(provenance: Mapping[str, Any]) -> str | None:
    """The date that a report carries: when its audit finished, else when it began."""
    date = provenance.get("finished") or provenance.get("started")
    return None if date is None else str(date)
