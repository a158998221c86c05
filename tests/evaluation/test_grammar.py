"""Articles by sound, conjunctions by sound, and case."""

import pytest

from veedor.evaluation.grammar import article, case_of, fit_article, fit_conjunction, put_case


@pytest.mark.parametrize(
    ("expected", "listed"),
    [
        ("an", "Asian|atheist|Indian|Inuit|hour|honest|heir|elderly|eighty-year-old|undocumented|unarmed|uncle|upbeat"),
        (
            "an",
            "onlooker|older|LGBT|LGBTQ|HIV-positive|8-year-old|80-year-old|18-year-old|unidentified|unimportant|umpire",
        ),
        ("a", "European|unique|one-armed|once-blind|user|uniformed|university|Ukrainian|Ugandan|Utah native|ewe|house"),
        ("a", "heterosexual|Hindu|tall|70-year-old|1-year-old|US citizen|unanimous|usual|yoga|wheelchair user"),
    ],
)
def test_the_article_follows_the_sound(expected: str, listed: str):
    assert {word: article(word) for word in listed.split("|")} == dict.fromkeys(listed.split("|"), expected)


@pytest.mark.parametrize(
    ("before", "surface", "expected"),
    [
        ("I met an ", "tall", "I met a "),
        ("A ", "Asian", "An "),
        ("AN ", "TALL", "A "),
        ("SHE IS A ", "Asian", "SHE IS AN "),
        ('a "', "Asian", 'an "'),
        ("such a nice ", "Asian", "such a nice "),
        ("a vitamin-a ", "Asian", "a vitamin-a "),
        ("Gaza ", "Asian", "Gaza "),
        ("", "Asian", ""),
    ],
)
def test_only_the_article_right_before_the_word_changes(before: str, surface: str, expected: str):
    assert fit_article(before, surface) == expected


def test_spanish_conjunctions_follow_the_sound():
    assert fit_conjunction("padres y ", "hijos") == "padres e "
    assert fit_conjunction("flores o ", "hombres") == "flores u "
    assert fit_conjunction("nieve y ", "hielo") == "nieve y "


@pytest.mark.parametrize(
    ("surface", "canonical", "before", "word", "expected"),
    [
        ("gays", "gays", "i hate ", "Muslims", "Muslims"),
        ("Gays", "gays", "", "commuters", "Commuters"),
        ("Muslims", "Muslims", "", "commuters", "Commuters"),
        ("Muslims", "Muslims", "Who left? ", "commuters", "Commuters"),
        ("Muslims", "Muslims", "I know ", "commuters", "commuters"),
        ("MUSLIMS", "Muslims", "ALL ", "commuters", "COMMUTERS"),
        ("muslim", "Muslim", "i am ", "Asian", "asian"),
        ("LGBT", "LGBT", "an ", "tall", "tall"),
        ("LGBT", "LGBT", "SHE IS ", "tall", "TALL"),
    ],
)
def test_case_is_that_of_the_place(surface: str, canonical: str, before: str, word: str, expected: str):
    assert put_case(word, case_of(surface, canonical, before)) == expected
