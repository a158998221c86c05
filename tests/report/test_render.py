"""What lies in an audit folder after the report was written."""

import hashlib
import io
import json
from pathlib import Path

import pytest

from tests.report.conftest import words_of
from tests.report.sample import PROVENANCE, sample
from veedor.report import Dossier, write_manifest
from veedor.report.render import write_bytes
from veedor.report.summary import plain, summarise


def test_all_files_are_there_and_no_half_ones(folder: Path):
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {
        "audit.json", "manifest.json", "provenance.json", "report.en.html", "report.en.pdf", "settings.yaml",
        "summary.md",
    }  # fmt: skip


def test_the_manifest_holds_every_file_but_itself_and_the_provenance(folder: Path):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert set(manifest) == present - {"manifest.json", "provenance.json"}
    assert "findings/record.json" in manifest
    for name, digest in manifest.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_writing_the_manifest_again_changes_nothing(folder: Path):
    before = (folder / "manifest.json").read_bytes()
    assert write_manifest(folder).read_bytes() == before


def test_audit_json_is_the_dossier(folder: Path, dossier: Dossier):
    assert Dossier.model_validate_json((folder / "audit.json").read_text(encoding="utf-8")) == dossier


def test_the_pdf_has_pages_bookmarks_and_the_audit(folder: Path):
    pypdf = pytest.importorskip("pypdf")
    document = pypdf.PdfReader(io.BytesIO((folder / "report.en.pdf").read_bytes()))
    assert 10 < len(document.pages) <= 40
    assert document.attachments["audit.json"] == [(folder / "audit.json").read_bytes()]
    titles = [entry.title for entry in document.outline if not isinstance(entry, list)]
    assert titles[:3] == ["Scope and out of scope", "Emphasis of matter", "Findings"]
    last = document.pages[-1].extract_text()
    assert f"{len(document.pages)} / {len(document.pages)}" in last


def test_the_summary_says_the_verdict_the_reason_and_the_next_step(folder: Path):
    text = (folder / "summary.md").read_text(encoding="utf-8")
    assert text.startswith("# FAIL: models:/abuse\\-detector/3")
    assert "judged hypotheses exceed the limit" in text
    assert "| FAIL | Religion: Muslim people | +1.41 |" in text


def test_a_hostile_summary_shows_its_markup(hostile: Dossier):
    text = summarise(hostile, words_of("en"))
    assert "<script>" not in text
    assert "\\<script\\>" in text
    assert "[x](javascript:y)" not in plain("[x](javascript:y)")


def test_a_file_is_replaced_whole(tmp_path: Path):
    target = tmp_path / "a.txt"
    write_bytes(target, b"one")
    write_bytes(target, b"two")
    assert target.read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.slow
def test_publishing_hostile_records_works_in_both_languages_and_repeats(tmp_path: Path):
    from steps.publish import publish

    made = sample(hostile=True)
    records = (made.evaluation, made.decisions, made.attributions, made.findings, made.verdict, made.settings)
    first, second = (publish(*records, provenance=PROVENANCE, folder=tmp_path / name) for name in ("a", "b"))
    assert first.files == second.files
    assert {"report.en.html", "report.es.html", "report.en.pdf", "report.es.pdf"} <= set(first.files)
