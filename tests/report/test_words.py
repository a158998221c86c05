"""Both languages say the same things, never more than an audit can know, and no code goes untold."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.conftest import LANGUAGES, words_of
from veedor.records import Note
from veedor.report import Dossier, project_root
from veedor.report.language import Words, visible

BARRED = {
    "en": r"\bprov(e|es|ed|en|ing)\b|\bfair(ly)?\b|\bunfair|\bno bias\b|\bunbiased\b|\bbias-free\b|\bbecause of\b|★",
    "es": r"\bprueba que\b|\bdemuestr|\bdemostrad|\bequitativ|\bjust[oa]s?\b|\bsin sesgos?\b|\bpor culpa de\b"
    r"|\ba causa de\b|\bdebido a\b|★",
}
CODES = ("notes", "reasons", "rules", "why_not", "flags", "constructs", "validity_issues", "not_valid_for", "checks")


def leaves(part: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(part, dict):
        for key, value in part.items():
            yield from leaves(value, f"{path}/{key}")
    elif isinstance(part, list):
        for place, value in enumerate(part):
            yield from leaves(value, f"{path}/{place}")
    else:
        yield path, str(part)


def test_both_languages_have_the_same_entries():
    paths = [
        {
            path
            for path, _ in leaves(words_of(language).content)
            if "/glossary/" not in path and "/language/" not in path
        }
        for language in LANGUAGES
    ]
    assert paths[0] == paths[1]


def test_both_languages_ask_for_the_same_values():
    for path, english in leaves(words_of("en").content):
        spanish = dict(leaves(words_of("es").content)).get(path, "")
        if path.startswith(("/sentences", "/notes", "/ui", "/recommendation")):
            assert set(re.findall(r"{(\w+)}", english)) == set(re.findall(r"{(\w+)}", spanish)), path


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_that_promise_too_much_are_barred_from_the_words_files(language: str):
    for path, text in leaves(words_of(language).content):
        assert not re.search(BARRED[language], text, re.IGNORECASE), (path, text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_that_promise_too_much_are_barred_from_the_page(pages: dict[str, str], language: str):
    text = re.sub(r"<style>.*?</style>|data:[^\"]*|<[^>]*>", " ", pages[language], flags=re.DOTALL)
    found = re.search(BARRED[language], text, re.IGNORECASE)
    assert found is None, text[max(0, found.start() - 80) : found.end() + 80]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_of_a_dossier_has_words(dossier: Dossier, language: str):
    words = words_of(language)
    limits, sheet = dossier.limitations, dossier.datasets[0]
    wanted = [("notes", note.code) for note in (*limits.notes, *limits.emphasis)]
    wanted += [("general", code) for code in limits.general]
    wanted += [("validity_issues", code) for code in sheet.known_validity_issues]
    wanted += [("not_valid_for", code) for code in sheet.not_valid_for]
    wanted += [("constructs", sheet.intended_construct), ("basis", dossier.data_protection.basis)]
    wanted += [("rules", row.rule) for row in dossier.decision.rulings] + [("rules", dossier.decision.rule)]
    wanted += [("next_action", dossier.decision.next_action), ("target_source", dossier.subject.target_source)]
    wanted += [("score_function", dossier.subject.score_function)]
    wanted += [("doubts", doubt) for row in dossier.metrics.attribution for doubt in row.doubts]
    untold = {(section, code) for section, code in wanted if code not in words.content[section]}
    assert not untold
    reasons = [*sheet.excluded, *(row.reason for row in dossier.metrics.group if row.reason)]
    reasons += [sheet.refused for sheet in dossier.method_validity.methods if sheet.refused]
    assert all(words.reason(code) != code for code in reasons)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_and_check_of_the_other_rooms_has_words(language: str):
    from veedor.evaluation.suite import CHECKS

    assert {check.id for check in CHECKS} <= set(words_of(language)["checks"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_note_that_the_code_can_write_has_words(language: str):
    root = project_root()
    files = [*(root / "veedor").rglob("*.py"), *(root / "steps").glob("*.py")]
    codes = {code for file in files for code in re.findall(r'Note\(\s*code="(\w+)"', file.read_text(encoding="utf-8"))}
    assert len(codes) > 15
    assert codes <= set(words_of(language)["notes"])


def test_a_code_without_words_shows_itself_and_its_values():
    note = Note(code="brand_new", values={"rows": 3, "share": 0.25, "names": ("a", "b")})
    assert words_of("en").note(note) == "brand_new (rows = 3, share = 0.250, names = a and b)"
    assert words_of("es").code("rules", "brand_new") == "brand_new"


def test_a_note_whose_sentence_asks_for_a_value_that_is_missing_shows_its_code():
    assert words_of("en").note(Note(code="rows_excluded")) == "rows_excluded"


@pytest.mark.parametrize(
    ("language", "value", "digits", "said"),
    [
        ("en", 1234.5, 1, "1,234.5"),
        ("es", 1234.5, 1, "1234,5"),
        ("es", 12345, 0, "12\u00a0345"),
        ("en", -0.284, 2, "−0.28"),
        ("en", -0.001, 2, "0.00"),
        ("en", None, 2, "–"),
    ],
)
def test_numbers_are_written_as_the_language_writes_them(language: str, value: float | None, digits: int, said: str):
    assert words_of(language).number(value, digits) == said


def test_small_p_values_are_not_rounded_to_nothing():
    assert words_of("en").p_value(0.00001) == "< 0.001"
    assert words_of("es").p_value(0.0316) == "0,032"


def test_a_number_that_is_none_of_the_reals_is_refused():
    with pytest.raises(ValueError, match="cannot be told"):
        words_of("en").number(float("nan"))


def test_an_unknown_language_is_refused_with_those_there_are():
    from veedor.errors import UsageError

    with pytest.raises(UsageError, match="known: en, es"):
        words_of("fr")


def test_characters_that_act_instead_of_showing_are_taken_out():
    assert visible("a\u202eb\u2066c\x00d\ue000") == "abc\ufffdd\ufffd"
    assert visible("שלום 医 😀 ñ") == "שלום 医 😀 ñ"


def test_words_are_a_mapping_of_sections():
    assert isinstance(words_of("en"), Words)
    assert set(CODES) <= set(words_of("en").content)
