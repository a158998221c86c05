"""Reports of the made-up audit, each made once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.report.sample import PROVENANCE, sample
from veedor.report import Dossier, build_dossier, project_root, write_report
from veedor.report.figures import draw
from veedor.report.language import Words, read_words
from veedor.report.page import render_page
from veedor.report.prose import Prose

LANGUAGES = ("en", "es")


def dossier_of(**options: Any) -> Dossier:
    made = sample(**options)
    records = (made.evaluation, made.decisions, made.attributions, made.findings, made.verdict)
    return build_dossier(*records, made.settings, made.reliability)


def words_of(language: str) -> Words:
    return read_words(project_root() / "reports" / "words", language)


def page_of(dossier: Dossier, language: str, *, printed: bool = False) -> str:
    words = words_of(language)
    figures = draw(Prose(dossier, words))
    return render_page(dossier, words, PROVENANCE, {"verdict": "d" * 64}, figures=figures, printed=printed)


@pytest.fixture(scope="session")
def dossier() -> Dossier:
    return dossier_of()


@pytest.fixture(scope="session")
def hostile() -> Dossier:
    return dossier_of(hostile=True)


@pytest.fixture(scope="session")
def audit(dossier: Dossier) -> Any:
    return json.loads(dossier.model_dump_json())


@pytest.fixture(scope="session")
def pages(dossier: Dossier) -> dict[str, str]:
    return {language: page_of(dossier, language) for language in LANGUAGES}


@pytest.fixture(scope="session")
def hostile_page(hostile: Dossier) -> str:
    return page_of(hostile, "en")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, dossier: Dossier) -> Path:
    """An audit folder with everything written into it, one language."""
    root = tmp_path_factory.mktemp("audit")
    (root / "provenance.json").write_text("{}", encoding="utf-8")
    (root / "settings.yaml").write_text("seed: 0\n", encoding="utf-8")
    (root / "findings").mkdir()
    (root / "findings" / "record.json").write_text("{}", encoding="utf-8")
    write_report(dossier, root, ("en",), provenance=PROVENANCE)
    return root
