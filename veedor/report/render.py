"""Write the report of an audit into its folder: audit.json, pages, PDFs, a summary, and the manifest over all of it.

Each file appears whole or not at all; the manifest comes last. It leaves out itself and provenance.json, which goes on
changing (run id, exit code) after the report is written and is no evidence.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from veedor.progress import Progress, silent
from veedor.records import Note, Report, manifest_of, sha256, write_json
from veedor.report.dossier import Dossier
from veedor.report.figures import draw
from veedor.report.language import read_words
from veedor.report.page import project_root, render_page, render_template
from veedor.report.pdf import metadata_dates, to_pdf
from veedor.report.prose import Prose
from veedor.report.summary import summarise

__all__ = ["project_root", "render_template", "write_manifest", "write_report"]

RECORDS = ("evaluation", "decisions", "attributions", "reliability", "findings", "verdict")
NOT_IN_MANIFEST = ("manifest.json", "provenance.json")


def write_report(
    dossier: Dossier,
    folder: str | Path,
    languages: Sequence[str] = ("en", "es"),
    *,
    provenance: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Report:
    """Write all files of a report; returns their paths in the folder, with SHA-256, and what a reader must know."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    told = provenance or {}
    _write_audit(dossier, target)
    records = record_digests(target)
    warnings: dict[str, Note] = {}
    for done, language in enumerate(languages):
        progress("publish", done, len(languages))
        for note in _in_language(dossier, target, language, told, records):
            warnings[note.model_dump_json()] = note
    words = read_words(project_root() / "reports" / "words", languages[0])
    write_text(target / "summary.md", summarise(dossier, words))
    progress("publish", len(languages), len(languages))
    names = ["audit.json", "summary.md", *(f"report.{one}.{kind}" for one in languages for kind in ("html", "pdf"))]
    write_manifest(target)
    files = {name: sha256(target / name) for name in (*names, "manifest.json") if (target / name).is_file()}
    return Report(files=files, warnings=tuple(warnings.values()))


def _write_audit(dossier: Dossier, folder: Path) -> None:
    partial = folder / "audit.json.partial"
    write_json(dossier.model_dump(mode="json"), partial)
    os.replace(partial, folder / "audit.json")


def _in_language(
    dossier: Dossier, folder: Path, language: str, provenance: Mapping[str, Any], records: Mapping[str, str]
) -> tuple[Note, ...]:
    words = read_words(project_root() / "reports" / "words", language)
    figures = draw(Prose(dossier, words))
    page = render_page(dossier, words, provenance, records, figures=figures)
    write_text(folder / f"report.{language}.html", page)
    printed = render_page(dossier, words, provenance, records, figures=figures, printed=True)
    made = to_pdf(printed, (folder / "audit.json").read_bytes(), date=metadata_dates(provenance))
    place = folder / f"report.{language}.pdf"
    if made.content is None:
        place.unlink(missing_ok=True)  # one of an earlier audit would tell of other evidence
    else:
        write_bytes(place, made.content)
    return made.warnings


def record_digests(folder: Path) -> dict[str, str]:
    """The digest of each finished record in an audit folder."""
    found = {name: manifest_of(folder / name) for name in RECORDS}
    return {name: str(manifest["digest"]) for name, manifest in found.items() if manifest is not None}


def write_manifest(folder: str | Path) -> Path:
    """manifest.json: the SHA-256 of every file of an audit folder but itself and provenance.json."""
    root = Path(folder)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.name.endswith(".partial"))
    names = {path.relative_to(root).as_posix(): path for path in files}
    content = {name: sha256(path) for name, path in names.items() if name not in NOT_IN_MANIFEST}
    partial = root / "manifest.json.partial"
    write_json({"schema": 1, "files": content}, partial)
    os.replace(partial, root / "manifest.json")
    return root / "manifest.json"


def write_text(path: Path, text: str) -> None:
    """Put a text file in place whole."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Put a file in place whole: a reader never finds half of one."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    os.replace(partial, path)
