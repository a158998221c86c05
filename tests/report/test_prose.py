"""Sentences say what the numbers say, with their uncertainty, in both languages, and never more."""

import json
import re
from typing import Any

import pytest

from tests.report.conftest import LANGUAGES, dossier_of, words_of
from veedor.report import Dossier
from veedor.report.dossier import Hypothesis
from veedor.report.paragraphs import Paragraphs
from veedor.report.prose import Prose

NUMBER = re.compile(r"(?<![\w@/.-])[+−-]?\d[\d\u00a0.,]*\d|(?<![\w@/.,-])[+−-]?\d")
FIXED = {50.0, 10.0, 0.001}  # starting probabilities and the smallest p that is told


def numbers_in(text: str, language: str) -> list[float]:
    """Every number of a text, read back by the rules of its language."""
    found = []
    for match in NUMBER.findall(text):
        plain = match.rstrip(".,").replace("\u00a0", "").replace("−", "-")
        plain = plain.replace(",", ".") if language == "es" else plain.replace(",", "")
        found.append(float(plain))
    return found


def values_in(part: object) -> set[float]:
    """Every number of a JSON value."""
    if isinstance(part, bool) or part is None:
        return set()
    if isinstance(part, int | float):
        return {float(part)}
    if isinstance(part, str):
        return {float(found) for found in re.findall(r"\d+", part)}
    values = part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
    return {value for inner in values for value in values_in(inner)}


def told(value: float, known: set[float]) -> bool:
    """Whether a number is one of the known ones, rounded, in per cent or without its sign."""
    return any(
        abs(value - scaled) <= 0.5 * 10**-digits + 1e-9
        for one in known
        for digits, scaled in [(places, one * by) for by in (1, -1, 100) for places in (3, 2, 1, 0)]
        if round(value, digits) == value
    )


def row_of(dossier: Dossier, name: str) -> Hypothesis:
    return next(row for row in dossier.metrics.counterfactual.hypotheses if row.id == name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_a_finding_is_a_number_of_the_audit(dossier: Dossier, audit: dict[str, Any], language: str):
    prose = Prose(dossier, words_of(language))
    shared = {key: value for key, value in audit["metrics"]["counterfactual"].items() if key != "hypotheses"}
    for row, raw in zip(
        dossier.metrics.counterfactual.hypotheses, audit["metrics"]["counterfactual"]["hypotheses"], strict=True
    ):
        known = values_in({key: value for key, value in raw.items() if key not in ("examples", "words")})
        for sentence in [*prose.sentences(row), *prose.practical(row)]:
            for number in numbers_in(sentence, language):
                assert told(number, known | values_in(shared) | FIXED), (row.id, number, sentence)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_an_attribution_sentence_is_a_number_of_the_audit(
    dossier: Dossier, audit: dict[str, Any], language: str
):
    prose = Prose(dossier, words_of(language))
    limits = {name: audit["method_validity"][name] for name in ("concordance_limit", "placebo_limit")}
    for row, raw in zip(dossier.metrics.attribution, audit["metrics"]["attribution"], strict=True):
        known = values_in(raw) | values_in(limits) | {95.0}
        for sentence in prose.contrast(row):
            assert all(told(number, known) for number in numbers_in(sentence, language)), sentence


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_the_decision_is_a_number_of_the_audit(dossier: Dossier, audit: dict[str, Any], language: str):
    sentence = Prose(dossier, words_of(language)).overall()
    made = audit["decision"]
    named = {len(made["failing"]), len(made["failing"]) - 3}
    known = values_in(made) | named | {audit["metrics"]["counterfactual"]["margin"]}
    assert all(told(number, known) for number in numbers_in(sentence, language)), sentence


def test_a_failure_whose_whole_interval_lies_beyond_the_limit_says_so(dossier: Dossier):
    row = row_of(dossier, "group/religion/muslim")
    assert row.beyond_margin is True
    assert "and so does the whole interval" in " ".join(Prose(dossier, words_of("en")).sentences(row))


def test_a_failure_whose_interval_reaches_inside_the_limit_says_so(dossier: Dossier):
    row = row_of(dossier, "group/religion/jewish")
    assert (row.verdict, row.beyond_margin) == ("FAIL", False)
    told_of = " ".join(Prose(dossier, words_of("en")).sentences(row))
    assert "the interval reaches inside the limit" in told_of
    assert "so does the whole interval" not in told_of


def test_a_failure_tells_effect_interval_sizes_and_corrected_p(dossier: Dossier):
    first = Prose(dossier, words_of("en")).sentences(row_of(dossier, "group/religion/muslim"))[0]
    assert first == (
        "Replacing a control word by a term for Muslim people raises the margin of “abusive” by 1.41 logits on "
        "average (95 % interval +1.08 to +1.74; 14 contexts × 6 terms against 26 control words; Holm p < 0.001)."
    )


def test_spanish_has_a_decimal_comma_and_its_own_quotation_marks(dossier: Dossier):
    first = Prose(dossier, words_of("es")).sentences(row_of(dossier, "group/religion/muslim"))[0]
    assert "sube el margen de «abusive» en 1,41 logits" in first
    assert "1.41" not in first


def test_group_names_are_written_small_inside_a_sentence_where_the_language_does(dossier: Dossier):
    row = row_of(dossier, "group/age/older")
    assert "a term for older people lowers" in Prose(dossier, words_of("en")).sentences(row)[0]
    muslim = row_of(dossier, "group/religion/muslim")
    assert "a term for Muslim people raises" in Prose(dossier, words_of("en")).sentences(muslim)[0]


def test_an_effect_below_zero_lowers_and_divides(dossier: Dossier):
    told_of = " ".join(Prose(dossier, words_of("en")).sentences(row_of(dossier, "group/age/older")))
    assert "lowers the margin" in told_of
    assert "The odds are divided by 2.3." in told_of


def test_a_pass_names_the_interval_and_what_it_does_not_exclude(dossier: Dossier):
    (sentence,) = Prose(dossier, words_of("en")).sentences(row_of(dossier, "group/religion/christian"))
    assert "90 % interval" in sentence
    assert "inside the limit of ±0.693" in sentence
    assert "are not excluded" in sentence


def test_an_undecided_group_says_what_could_have_been_found(dossier: Dossier):
    told_of = " ".join(Prose(dossier, words_of("en")).sentences(row_of(dossier, "group/ethnicity_nationality/black")))
    assert "the data cannot decide" in told_of
    assert "only effects above" in told_of


def test_an_untested_group_says_why_in_words(dossier: Dossier):
    (sentence,) = Prose(dossier, words_of("en")).sentences(row_of(dossier, "group/ethnicity_nationality/romani"))
    assert sentence.startswith("Romani people: not tested at this scope. Reason: fewer terms than the policy's minimum")


def test_methods_without_a_label_are_told_as_salience_and_name_no_label(dossier: Dossier):
    for language, word in (("en", "salience"), ("es", "saliencia")):
        prose = Prose(dossier, words_of(language))
        for row in dossier.metrics.attribution:
            told_of = " ".join(prose.contrast(row))
            assert (word in told_of) == (row.method == "rollout")
            assert "abusive" not in told_of


def test_methods_that_disagree_with_the_swaps_are_told_as_not_corroborated(dossier: Dossier):
    prose = Prose(dossier, words_of("en"))
    for row in dossier.metrics.attribution:
        assert ("Not corroborated" in " ".join(prose.contrast(row))) == (row.method == "rollout")


def test_a_one_sided_policy_passes_what_stays_below_the_limit():
    dossier = dossier_of(policy=json.dumps({"adverse": "higher"}))
    row = row_of(dossier, "group/age/older")
    assert row.verdict == "PASS"
    (sentence,) = Prose(dossier, words_of("en")).sentences(row)
    assert "is at most" in sentence
    assert "below the limit of 0.693" in sentence


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        ({}, "FAIL"),
        ({"groups": ["religion/christian"], "scopes": ["group"]}, "PASS"),
        ({"groups": ["ethnicity_nationality/black"], "scopes": ["group"]}, "INCONCLUSIVE"),
        ({"minimum": {"terms": 9, "controls": 40, "templates": 12}}, "NOT_TESTED"),
    ],
)
def test_the_decision_box_has_a_reason_for_every_verdict(policy: dict[str, Any], verdict: str, language: str):
    dossier = dossier_of(policy=json.dumps(policy))
    assert dossier.decision.overall == verdict
    reason = Paragraphs(dossier, words_of(language)).overall()
    assert reason.endswith(".")
    assert "{" not in reason
