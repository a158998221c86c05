"""The English words: how many, that controls are neutral, and that their frequencies cover those of the terms."""

import re

import pytest

from veedor.evaluation.lexicon import load_lexicon

ENGLISH = load_lexicon("en")
SLOTS = ("adj", "noun", "phrase")
GENERATED = [form for form in ENGLISH.terms() if form.slot in SLOTS]


@pytest.mark.parametrize("slot", SLOTS)
def test_each_slot_class_has_44_controls_or_more(slot: str):
    assert len(ENGLISH.controls(slot)) >= 44


def test_no_control_and_no_word_of_a_control_has_a_valence():
    valence = pytest.importorskip("vaderSentiment.vaderSentiment").SentimentIntensityAnalyzer().lexicon
    for form in (form for form in ENGLISH.forms if form.control):
        parts = {form.surface.lower(), *re.split(r"[\s\-]+", form.surface.lower())}
        assert not parts & set(valence), form


def test_no_control_holds_a_demographic_term():
    for form in (form for form in ENGLISH.forms if form.control):
        assert ENGLISH.find(form.surface, ambiguous=True) == [], form


def test_all_six_axes_are_there_and_most_groups_meet_the_minimum_of_six_terms():
    groups: dict[str, set[str]] = {}
    for form in GENERATED:
        groups.setdefault(f"{form.axis}/{form.group}", set()).add(form.term)
    assert {key.split("/")[0] for key in groups} == {
        "gender",
        "ethnicity_nationality",
        "religion",
        "sexual_orientation",
        "disability",
        "age",
    }
    assert min(map(len, groups.values())) >= 6
    assert groups["sexual_orientation/lgb"] >= {
        "gay", "lesbian", "homosexual", "bisexual", "queer", "pansexual", "asexual",
    }  # fmt: skip


@pytest.mark.parametrize("slot", SLOTS)
def test_most_terms_lie_within_the_bands_of_the_controls(slot: str):
    """No neutral noun for people is as frequent as "man" or "woman", so not all of them can."""
    controls = [form.band for form in ENGLISH.controls(slot)]
    terms = [form.band for form in GENERATED if form.slot == slot]
    inside = [min(controls) <= band <= max(controls) for band in terms]
    assert sum(inside) / len(inside) >= 0.85


def test_recorded_bands_are_those_of_wordfreq():
    """Spot checks against the published list, by hand: a change of words must be followed by tools/bands.py."""
    frequency = pytest.importorskip("wordfreq").zipf_frequency
    for form in ENGLISH.forms:
        if form.generate and form.slot == "adj" and form.surface.isalpha():
            assert form.band == pytest.approx(frequency(form.surface, "en"), abs=0.006), form.surface
