"""Finding terms: word boundaries, case, accents, longest first, and words that name people only in some texts."""

import pandas as pd
import pytest

from veedor.errors import UsageError
from veedor.evaluation.lexicon import Form, Lexicon, load_lexicon

ENGLISH = load_lexicon("en")


def surfaces(text: str, **options: bool) -> list[str]:
    return [match.surface for match in ENGLISH.find(text, **options)]


def test_a_straight_line_is_not_heterosexual():
    assert surfaces("Draw a straight line to the old white house and go straight home.") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I hate gays.", ["gays"]),
        ("Gay people deserve better", ["Gay"]),
        ("MUSLIMS ARE HERE", ["MUSLIMS"]),
        ("a Muslim's car, the Muslims' car", ["Muslim", "Muslims"]),
        ("My friend is African-American.", ["African-American"]),
        ("an african american person", ["african american"]),
        ("She met a trans woman who prays at a mosque", ["trans woman", "who prays at a mosque"]),
        ("We are black", ["black"]),
        ("These black people and that old man", ["black", "old", "man"]),
        ("a nonbinary, non-binary or NON BINARY person", ["nonbinary", "non-binary", "NON BINARY"]),
        ("“lesbian” (lesbian) #lesbian lesbian—lesbian", ["lesbian"] * 5),
    ],
)
def test_terms_are_found_whatever_their_case_and_punctuation(text: str, found: list[str]):
    assert surfaces(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "anti-Muslim laws",
        "a gay-friendly bar",
        "lesbians_united",
        "https://example.org/gay/lesbian",
        "www.gay.example",
        "write to muslim@example.org or @lesbian",
        "megayacht and manatee",
        "a black car, a blind alley, male plugs are another matter: female-led",
        "The road was black, the map old and the deaf-mute's blind spot large",
    ],
)
def test_parts_of_words_links_and_compounds_are_not_terms(text: str):
    found = [surface for surface in surfaces(text) if surface not in {"male", "deaf", "old"}]
    assert found == []


def test_ambiguous_words_are_found_where_a_file_is_known_to_name_people():
    assert surfaces("hug old") == []
    assert surfaces("hug old", ambiguous=True) == ["old"]
    assert surfaces("You are a vile straight", ambiguous=True) == ["straight"]


def test_spans_are_exact_in_text_beyond_ascii_even_with_decomposed_accents():
    text = "İstanbul 🏳️‍🌈 straße — a Ma\u0304ori man, Māori people; 서윤 is a LESBIAN"
    for match in ENGLISH.find(text):
        assert text[match.start : match.end] == match.surface
    assert surfaces(text) == ["Ma\u0304ori", "man", "Māori", "LESBIAN"]


def test_the_longest_term_wins_and_matches_never_overlap():
    match = ENGLISH.find("a transgender woman")[0]
    assert (match.surface, match.group) == ("transgender woman", "transgender")
    assert [m.term for m in ENGLISH.find("a physically disabled person in a wheelchair")] == [
        "physically disabled",
        "in a wheelchair",
    ]


def test_a_term_is_known_by_its_key_any_surface_or_with_people_behind_it():
    for name in ("muslim", "Muslims", "MUSLIM", "Muslim people"):
        assert {form.term for form in ENGLISH.forms_of(name)} == {"muslim"}
    assert ENGLISH.forms_of("commuter") == ()


def test_an_unknown_language_names_those_that_exist():
    with pytest.raises(UsageError, match=r"lexicon language 'xx'.*known: .*en"):
        load_lexicon("xx")


def test_a_lexicon_of_two_terms_finds_the_longer_first():
    forms = (
        Form("red", "adj", "red", "a", "g"),
        Form("red hot", "adj", "red hot", "a", "g"),
        Form("calm", "adj", "calm"),
    )
    lexicon = Lexicon("en", 1, forms, {})
    assert [m.term for m in lexicon.find("Red-hot red calm")] == ["red hot", "red"]


def test_every_madlibs_identity_term_is_found_once(shared):
    rows = pd.read_csv(shared / "data" / "bias_madlibs_77k.csv")
    texts = rows.loc[rows["Template"].isin(["verb_adj", "am_hate_adj", "being_adj"]), "Text"]
    missed = [text for text in texts if len(ENGLISH.find(text, ambiguous=True)) != 1]
    assert missed == []


def test_every_hatecheck_target_is_found_in_its_plain_sentences(shared):
    rows = pd.read_csv(shared / "data" / "hatecheck_en.csv")
    plain = rows[rows["functionality"].isin(["derog_neg_emote_h", "ident_neutral_nh", "ident_pos_nh", "threat_norm_h"])]
    plain = plain[plain["case_templ"].str.contains(r"\[IDENTITY_[SP]\]", regex=True)]
    found = plain["test_case"].map(lambda text: {match.group for match in ENGLISH.find(text)})
    expected = plain["target_ident"].map(
        {
            "gay people": "lgb",
            "women": "women",
            "disabled people": "physical",
            "Muslims": "muslim",
            "black people": "black",
            "trans people": "transgender",
            "immigrants": "migrants",
        }
    )
    missed = [t for t, f, e in zip(plain["test_case"], found, expected, strict=True) if e not in f]
    assert len(plain) > 300
    assert missed == []
