"""Figures are the same bytes each time, hold no date, and tell in words what they show."""

import base64
import re

import pytest

from tests.report.conftest import LANGUAGES, dossier_of, words_of
from veedor.report import Dossier
from veedor.report.figures import LOOK, draw
from veedor.report.prose import Prose


def svg(uri: str) -> str:
    head, _, body = uri.partition(",")
    assert head == "data:image/svg+xml;base64"
    return base64.b64decode(body).decode("utf-8")


def test_the_same_dossier_draws_the_same_bytes(dossier: Dossier):
    first, second = (draw(Prose(dossier, words_of("en"))) for _ in range(2))
    assert [one.uri for one in first] == [one.uri for one in second]
    assert [one.id for one in first] == ["forest_groups", "forest_terms", "swarm", "distribution"]


def test_figures_hold_no_date_and_load_nothing(dossier: Dossier):
    for one in draw(Prose(dossier, words_of("en"))):
        image = svg(one.uri)
        assert "<dc:date>" not in image
        assert not re.search(r'(?:href|src)="(?!#)', image)
        assert "<script" not in image


def test_every_verdict_has_a_shape_of_its_own_besides_its_colour():
    assert len({(marker, full) for marker, _, full in LOOK.values()}) == len(LOOK)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_alternative_text_of_the_forest_lists_every_group_with_numbers_and_verdict(dossier: Dossier, language: str):
    prose = Prose(dossier, words_of(language))
    forest = draw(prose)[0]
    for row in dossier.metrics.counterfactual.hypotheses:
        if row.scope == "group":
            assert f"{prose.name(row)}: {prose.effect(row.estimate)}" in forest.alt


def test_failing_words_are_drawn_first_when_there_are_too_many(dossier: Dossier):
    failing = [
        row for row in dossier.metrics.counterfactual.hypotheses if row.scope == "term" and row.verdict == "FAIL"
    ]
    forest = draw(Prose(dossier, words_of("en")))[1]
    assert forest.alt.count(", FAIL") == len(failing)


def test_labels_with_markup_mathematics_and_other_scripts_are_drawn_as_they_are(hostile: Dossier):
    forest = draw(Prose(hostile, words_of("en")))[0]
    image = svg(forest.uri)
    assert "<script>" not in image
    assert "&lt;script&gt;" in image  # letters that outlines lack are left to the reader's fonts, as text


def test_an_audit_without_effects_draws_only_what_it_has():
    bare = dossier_of()
    nothing = tuple(
        row.model_copy(update={"estimate": None, "words": ()}) for row in bare.metrics.counterfactual.hypotheses
    )
    swaps = bare.metrics.counterfactual.model_copy(update={"hypotheses": nothing})
    metrics = bare.metrics.model_copy(update={"counterfactual": swaps})
    drawn = draw(Prose(bare.model_copy(update={"metrics": metrics}), words_of("en")))
    assert [one.id for one in drawn] == ["distribution"]
