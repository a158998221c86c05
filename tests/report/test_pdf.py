"""PDFs are accessible, repeat byte for byte, carry the audit and load nothing; without Pango there is a note."""

import io
import sys
from pathlib import Path

import pytest

from veedor.report.pdf import INSTALL, data_only, to_pdf

DATE = "2026-11-30T09:19:41+00:00"
PAGE = """<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>A title</title></head>
<body><h1>A title</h1><p>{}</p></body></html>"""


def reader(content: bytes):
    pypdf = pytest.importorskip("pypdf")
    return pypdf.PdfReader(io.BytesIO(content))


def laid_out(text: str) -> bytes:
    made = to_pdf(PAGE.format(text), b'{"a": 1}', date=DATE)
    assert made.content is not None
    return made.content


def test_the_same_page_gives_the_same_bytes():
    assert laid_out("plain") == laid_out("plain")


def test_the_pdf_is_tagged_titled_and_says_its_language():
    document = reader(laid_out("plain"))
    root = document.trailer["/Root"]
    assert root["/Lang"] == "en"
    assert root["/MarkInfo"]["/Marked"]
    assert document.metadata.title == "A title"


def test_the_audit_is_attached():
    attached = reader(laid_out("plain")).attachments
    assert attached["audit.json"] == [b'{"a": 1}']


def test_the_pdf_loads_neither_files_nor_networks(tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    hostile = (
        f'<img src="file://{secret}" alt="x"><img src="http://127.0.0.1:9/x.png" alt="y">'
        f'<link rel="attachment" href="file://{secret}"><style>@import url("file://{secret}");</style>'
    )
    content = laid_out(hostile)
    assert b"SECRET" not in content
    assert list(reader(content).attachments) == ["audit.json"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://127.0.0.1/", "https://127.0.0.1/", "ftp://127.0.0.1/"])
def test_the_fetcher_refuses_everything_but_data(url: str):
    with pytest.raises(Exception, match=r"(?i)not allowed|protocol|forbidden|unsupported|disallowed"):
        data_only().fetch(url)


def test_letters_that_no_font_here_has_become_a_note():
    made = to_pdf(PAGE.format("a \U0001fae8\U00013000 b"), b"{}", date=None)
    assert made.content is not None
    codes = {note.code: note.values for note in made.warnings}
    if codes:  # a machine with a font for them has nothing to warn of
        assert set(codes) == {"glyph_missing"}
        assert "\U00013000" in codes["glyph_missing"]["characters"]


def test_without_pango_there_is_a_note_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch):
    class NoPango:
        """What importing WeasyPrint does where its libraries are missing."""

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name == "weasyprint":
                raise OSError("cannot load library 'libgobject-2.0-0'")

    for name in [name for name in sys.modules if name.split(".")[0] == "weasyprint"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoPango(), *sys.meta_path])
    made = to_pdf(PAGE.format("x"), b"{}", date=None)
    assert made.content is None
    assert made.warnings[0].code == "pdf_unavailable"
    assert made.warnings[0].values["install"] == INSTALL
    assert "libpangoft2-1.0-0 libharfbuzz-subset0" in INSTALL
