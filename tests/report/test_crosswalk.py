"""The crosswalk points only to evidence that exists, is dated, and claims no compliance."""

import csv
import re
from typing import Any

from tests.report.conftest import LANGUAGES, words_of
from veedor.report import project_root
from veedor.report.crosswalk import FILES, by_instrument, present, read_crosswalk, supported

FILE = project_root() / "reports" / "crosswalk.csv"


def rows() -> list[dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_every_location_is_in_the_audit_or_a_file_of_the_report(audit: dict[str, Any]):
    for row in rows():
        assert present(row["location"], audit), row["location"]
        assert row["location"].startswith("audit.json#/") or row["location"] in FILES


def test_evidence_that_an_audit_lacks_is_not_told(audit: dict[str, Any]):
    clauses = read_crosswalk(FILE, "en")
    without = {**audit, "signoff": {"value": None, "why_not": "not_measured"}}
    told = supported(clauses, without)
    assert {clause.evidence for clause in clauses} - {clause.evidence for clause in told} == {"E17"}


def test_every_row_is_complete_dated_and_once_only():
    seen = set()
    for row in rows():
        assert all(value.strip() for value in row.values()), row
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["as_of"])
        assert re.fullmatch(r"E\d\d", row["evidence"])
        seen.add((row["evidence"], row["instrument"], row["clause"]))
    assert len(seen) == len(rows())


def test_support_levels_have_words_in_both_languages():
    for language in LANGUAGES:
        assert {row["support"] for row in rows()} <= set(words_of(language)["support"])


def test_an_instrument_is_told_with_one_date_and_one_reading():
    for language in LANGUAGES:
        for _, clauses in by_instrument(read_crosswalk(FILE, language)):
            assert len({(clause.applies, clause.checked) for clause in clauses}) == 1


def test_the_page_says_when_it_was_valid_and_that_it_is_no_legal_advice(pages: dict[str, str]):
    assert "As of 2026-11-30; not legal advice" in pages["en"]
    assert "A fecha de 2026-11-30; no es asesoramiento jurídico" in pages["es"]
