"""A method that is marked unreliable on this model is marked wherever its scores appear, in both languages."""

import re

import pytest

from tests.report.conftest import LANGUAGES, page_of, words_of
from tests.report.sample import sample
from veedor.metrics import faithfulness_marks
from veedor.metrics.faithfulness_summary import better
from veedor.report import Dossier, build_dossier
from veedor.report.paragraphs import Paragraphs
from veedor.report.summary import summarise

MARKED = {
    "en": "Attention rollout (unreliable on this model)",
    "es": "Despliegue de la atención (rollout) (no fiable en este modelo)",
}
SHOUTED = {"en": "UNRELIABLE", "es": "NO FIABLE"}


def section(page: str, name: str) -> str:
    return page.split(f'id="{name}"', 1)[1].split("<h2", 1)[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_has_a_section_on_trust_with_every_tested_method_beside_chance(pages: dict[str, str], language: str):
    told = section(pages[language], "trust")
    assert words_of(language)["ui"]["trust"] in told and told.count("<tr>") == 4
    assert told.count(SHOUTED[language]) == 1
    decimal = words_of(language)["language"]["decimal"]
    assert f"0{decimal}62" in told and f"0{decimal}17" in told, "a value and that of chance"
    assert words_of(language)["marks"]["not_beyond_random"] in told


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_marked_method_is_marked_in_cards_strips_and_tables(pages: dict[str, str], language: str):
    page = pages[language]
    plain = words_of(language)["method_names"]["rollout"]
    for place in ("findings", "method", "annex"):
        told = section(page, place)
        assert MARKED[language] in told, place
        assert len(re.findall(re.escape(plain), told)) == told.count(MARKED[language]), place


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_unmarked_method_is_not(pages: dict[str, str], language: str):
    name = words_of(language)["method_names"]["occlusion"]
    assert MARKED[language].partition("(")[2] in pages[language]
    assert f"{name} (" + MARKED[language].partition("(")[2] not in pages[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_summary_names_marked_methods_with_the_reason(dossier: Dossier, language: str):
    words = words_of(language)
    told = summarise(dossier, words)
    told = told.replace("\\", "")  # Markdown's escapes
    assert SHOUTED[language] in told and words["method_names"]["rollout"] in told
    assert words["method_names"]["occlusion"] not in told


def test_the_page_says_where_the_methods_were_not_tested():
    made = sample()
    dossier = build_dossier(
        made.evaluation, made.decisions, made.attributions, made.findings, made.verdict, made.settings
    )
    told = section(page_of(dossier, "en"), "trust")
    assert words_of("en")["ui"]["trust_absent"] in told and "<table" not in told
    assert "unreliable" not in summarise(dossier, words_of("en")).lower()


def test_what_lies_beyond_chance_is_what_the_metrics_say(dossier: Dossier):
    trust = Paragraphs(dossier, words_of("en")).trust()
    assert trust is not None
    for row in trust.rows:
        for metric, cells in (("comprehensiveness", row.comprehensiveness), ("sufficiency", row.sufficiency)):
            for cell, operator in zip(cells, ("mask", "delete"), strict=True):
                (own,) = [
                    one
                    for one in dossier.method_validity.faithfulness.rows
                    if (words_of("en")["method_names"][one.method], one.metric, one.operator)
                    == (row.name, metric, operator)
                ]
                assert cell.beyond == better(metric, own.low, own.high)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_mark_has_words(language: str):
    codes = {value for name, value in vars(faithfulness_marks).items() if name.isupper() and isinstance(value, str)}
    assert codes == set(words_of(language)["marks"]) == set(words_of(language)["explain"]["marks"])
