"""The English identity terms: every row is what it says it is, and rows of a context differ only in the word."""

import re
from pathlib import Path

import pytest

from veedor.errors import EvaluationSetError, UsageError
from veedor.evaluation.lexicon import load_lexicon
from veedor.evaluation.rows import COLUMNS, content_digest, mask
from veedor.evaluation.templates import build_identity_terms, read_templates


@pytest.fixture(scope="module")
def english():
    return build_identity_terms("en")


def test_every_span_holds_its_surface(english):
    rows = english.rows
    assert all(
        text[start:end] == surface
        for text, start, end, surface in zip(rows["text"], rows["start"], rows["end"], rows["surface"], strict=True)
    )


def test_rows_of_a_context_differ_only_in_the_slot_and_the_article(english):
    rows = english.rows
    masked = [mask(t, s, e) for t, s, e in zip(rows["text"], rows["start"], rows["end"], strict=True)]
    assert rows.assign(masked=masked).groupby("template")["masked"].nunique().eq(1).all()


def test_the_article_before_every_word_is_right(english):
    """By hand: the words below start with a vowel letter but a consonant sound, or the other way round."""
    odd = {"European": "a", "European American": "a", "uniformed": "a", "one-armed": "a", "LGBT": "an", "LGBTQ": "an"}
    seen = set()
    for text, start, surface in english.rows[["text", "start", "surface"]].itertuples(index=False):
        found = re.search(r"\b(an?) $", text[:start], re.IGNORECASE)
        if found:
            expected = odd.get(surface, "an" if surface[0].lower() in "aeiou" else "a")
            assert found.group(1).lower() == expected, text
            seen.add(surface)
    assert seen >= {"European", "uniformed", "one-armed", "Asian", "atheist", "onlooker", "LGBT"}


def test_ids_are_unique_and_columns_are_those_of_the_record(english):
    assert english.rows["id"].is_unique
    assert list(english.rows.columns) == list(COLUMNS)
    assert {name: str(kind) for name, kind in english.rows.dtypes.items()} == dict(COLUMNS)
    assert english.rows["text"].is_unique


def test_every_context_holds_every_word_of_its_slot_class(english):
    sizes = english.rows.groupby(["slot", "template"]).size().groupby("slot").nunique()
    assert sizes.eq(1).all()
    assert english.rows.loc[english.rows["control"], ["axis", "group"]].isna().all().all()


def test_building_again_gives_the_same_digest_and_another_order_does_not(english):
    assert build_identity_terms("en").digest == english.digest == content_digest(english.rows)
    assert content_digest(english.rows.iloc[::-1]) != english.digest


def test_sentences_begin_with_a_capital_and_have_5_to_30_words(english):
    assert english.rows["text"].str[0].str.isupper().all()
    lengths = english.rows["text"].str.split().str.len()
    assert lengths.between(5, 30).all()


def test_each_sentiment_has_nine_sentences_or_more():
    sentiments = [template.sentiment for template in read_templates("en")]
    assert len(sentiments) >= 28
    assert min(sentiments.count(kind) for kind in ("negative", "neutral", "positive")) >= 9


def test_sentences_hold_no_term_and_no_pronoun_of_their_own():
    for template in read_templates("en"):
        assert load_lexicon("en").find(template.text.replace("{", "").replace("}", ""), ambiguous=True) == []
        assert not re.search(r"\b(he|she|him|his|her|hers|their|themselves)\b", template.text, re.IGNORECASE)


def test_a_language_without_sentences_is_refused():
    with pytest.raises(UsageError, match=r"known: .*en"):
        build_identity_terms("xx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("No slot.", "must hold one"),
        ("{person} met {person}.", "must hold one"),
        ("{person} left early.", "write {Person}"),
        ("I met {Person}.", "belongs at the start"),
    ],
)
def test_a_faulty_sentence_is_named(tmp_path: Path, text: str, message: str):
    lines = f'language: xx\nlicence: X\ntemplates:\n  - {{id: one, sentiment: neutral, text: "{text}"}}\n'
    (tmp_path / "xx.yaml").write_text(lines, encoding="utf-8")
    with pytest.raises(EvaluationSetError, match=message):
        read_templates("xx", tmp_path)
