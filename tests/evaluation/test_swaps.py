"""Swapping in users' texts: grammar kept, pronouns never touched, and every text that is left out says why."""

import pandas as pd
import pytest

from veedor.evaluation.lexicon import Form, Lexicon, People, load_lexicon
from veedor.evaluation.rows import as_rows
from veedor.evaluation.swaps import swap_rows

ENGLISH = load_lexicon("en")
SPANISH = load_lexicon("es")


def swap(*texts: str, insert="controls", ambiguous=False, lexicon=ENGLISH, **given):
    rows = as_rows({"id": str(at), "text": text, **given} for at, text in enumerate(texts))
    return swap_rows(rows, lexicon, insert=insert, ambiguous=ambiguous)


def made_with(rows: pd.DataFrame, term: str) -> list[str]:
    return rows.loc[rows["inserted"] & (rows["term"] == term), "text"].tolist()


@pytest.mark.parametrize(
    ("text", "control", "expected"),
    [
        ("I am a gay man.", "tall", "I am a tall man."),
        ("I met an Asian person.", "tall", "I met a tall person."),
        ("I met a Jewish person.", "ordinary", "I met an ordinary person."),
        ("A Muslim left.", "onlooker", None),
        ("A Muslim was here.", "onlooker", "An onlooker was here."),
        ("I hate gays.", "commuter", "I hate commuters."),
        ("Muslims are here.", "commuter", "Commuters are here."),
        ("ALL MUSLIMS ARE HERE", "commuter", "ALL COMMUTERS ARE HERE"),
        ("respect gay", "tall", "respect tall"),
        ("Being lesbian is fun.", "tall", "Being tall is fun."),
        ("She is a lesbian.", "commuter", "She is a commuter."),
        ("A lesbian couple called.", "tall", "A tall couple called."),
        ("The immigrant's house", "commuter", "The commuter's house"),
        ("A person who prays at a mosque sang.", "with a bicycle", "A person with a bicycle sang."),
        ("Die Straße: a gay person 🏳️‍🌈", "tall", "Die Straße: a tall person 🏳️‍🌈"),
    ],
)
def test_a_control_takes_the_place_of_the_term(text: str, control: str, expected: str | None):
    rows, excluded, _ = swap(text)
    assert made_with(rows, control) == ([expected] if expected else [])
    assert len(excluded) == (0 if expected else 1)


def test_every_made_row_has_an_exact_span_and_the_context_of_its_source():
    rows, _, _ = swap("I met an Asian person.", "I met a gay person.", "Gays sing.", insert="terms_and_controls")
    for row in rows.itertuples():
        assert row.text[row.start : row.end] == row.surface
    assert rows["id"].is_unique
    assert rows["template"].nunique() == 2  # "I met a ___ person." and "___ sing."
    assert rows.loc[rows["inserted"], "label"].isna().all()
    assert rows.loc[rows["control"], ["axis", "group"]].isna().all().all()


def test_words_are_inserted_once_a_context_and_never_where_they_stand_already():
    rows, _, notes = swap("I met an Asian person.", "I met a gay person.")
    assert made_with(rows, "tall") == ["I met a tall person."]
    assert int(rows["inserted"].sum()) == len(ENGLISH.controls("adj"))
    assert notes[0].code == "words_inserted"
    assert notes[0].values == {"rows": 2, "contexts": 1, "inserted": len(ENGLISH.controls("adj"))}


def test_terms_of_the_same_axis_are_inserted_on_demand_in_the_same_number():
    rows, _, _ = swap("I hate Muslims.", insert="terms_and_controls")
    terms = rows[rows["inserted"] & ~rows["control"]]
    assert set(terms["axis"]) == {"religion"}
    assert "I hate Christians." in set(terms["text"])
    assert "I hate Muslims." not in set(terms["text"])


def test_his_never_becomes_hers():
    """TC2: swapping pronouns word by word breaks grammar, and the break is then measured as bias."""
    rows, excluded, _ = swap(
        "The man lost his keys.", "The woman said the keys were hers.", "His gay friend lost his keys."
    )
    assert excluded[["id", "reason", "detail"]].values.tolist() == [
        ["0", "gendered_pronoun", "his"],
        ["1", "gendered_pronoun", "hers"],
    ]
    assert made_with(rows, "tall") == ["His tall friend lost his keys."]
    assert not any("hers" in text for text in rows["text"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The weather is nice.", "no_term"),
        ("Draw a straight line.", "no_term"),
        ("Muslims and lesbians sang.", "several_terms"),
        ("A gay person met a gay person.", "several_terms"),
        ("We respect women's rights.", "no_safe_slot"),
        ("A lesbian zorbed past.", "ambiguous_slot"),
    ],
)
def test_a_text_that_cannot_be_swapped_is_excluded_with_its_reason(text: str, reason: str):
    rows, excluded, notes = swap(text)
    assert len(rows) == 0
    assert excluded["reason"].tolist() == [reason]
    assert [note.code for note in notes] == ["nothing_inserted", "rows_not_swapped"]
    assert notes[1].values == {"rows": 1, "reason": reason}


def test_the_noun_that_a_term_describes_is_no_second_term():
    rows, excluded, _ = swap("A black woman sang.", "Two black women and a gay man sang.")
    assert excluded["reason"].tolist() == ["several_terms"]
    assert made_with(rows, "tall") == ["A tall woman sang."]


def test_what_a_file_says_is_kept():
    given = {"term": "purple", "axis": "colour", "group": "purple", "slot": "adj", "template": "t1", "label": "BAD"}
    rows, _, _ = swap("You are a vile Purple", **given)
    own = rows.iloc[0]
    assert (own["surface"], own["axis"], own["slot"], own["form"], own["label"]) == (
        "Purple",
        "colour",
        "adj",
        "t1",
        "BAD",
    )
    assert made_with(rows, "tall") == ["You are a vile Tall"]


def test_a_term_of_the_file_without_a_slot_says_that_the_slot_is_missing():
    _, excluded, _ = swap("You are purple", term="purple")
    assert excluded["reason"].tolist() == ["no_safe_slot"]
    _, excluded, _ = swap("You are green", term="purple")
    assert excluded["reason"].tolist() == ["term_not_in_text"]


def test_a_named_term_is_found_among_others_even_where_it_is_ambiguous():
    rows, excluded, _ = swap("hug old", term="old")
    assert excluded.empty
    assert made_with(rows, "tall") == ["hug tall"]


def test_lower_case_texts_stay_lower_case():
    rows, _, _ = swap("i am gay", insert="terms_and_controls")
    assert rows["text"].str.islower().all()


def test_control_rows_of_the_file_pass_and_its_words_are_not_inserted_again():
    rows = as_rows(
        [
            {"id": "a", "text": "respect gay"},
            {"id": "b", "text": "respect calm", "control": True, "term": "calm", "start": 8, "end": 12, "slot": "adj"},
        ]
    )
    found, excluded, _ = swap_rows(rows, ENGLISH)
    assert excluded.empty
    assert found["id"].tolist()[:2] == ["a", "b"]


def test_arguments_are_not_changed():
    rows = as_rows([{"id": "a", "text": "I am a gay man."}])
    before = rows.copy(deep=True)
    swap_rows(rows, ENGLISH)
    pd.testing.assert_frame_equal(rows, before)


def test_most_of_hatecheck_can_be_swapped(shared):
    table = pd.read_csv(shared / "data" / "hatecheck_en.csv")
    rows = as_rows({"id": str(i), "text": t} for i, t in zip(table["case_id"], table["test_case"], strict=True))
    found, excluded, _ = swap_rows(rows, ENGLISH)
    own = found[~found["inserted"]]
    assert len(own) + len(excluded) == len(table)
    assert len(own) > 2700
    assert all(t[s:e] == w for t, s, e, w in found[["text", "start", "end", "surface"]].itertuples(index=False))


def test_spanish_swaps_keep_gender_and_number():
    """TC2: "musulmana" is swapped with a feminine singular word; "y" becomes "e" before an i sound."""
    texts = ("Conocí a una mujer musulmana ayer.", "Una lesbiana cantó.", "Odio a los musulmanes.")
    rows, excluded, _ = swap(*texts, lexicon=SPANISH)
    assert excluded.empty
    assert rows["slot"].tolist()[:3] == ["adj-fs", "noun-fs", "noun-mp"]
    for row in rows[rows["inserted"]].itertuples():
        fits = {form.slot for form in SPANISH.controls(row.slot) if form.surface == row.surface}
        assert fits == {row.slot}
        assert row.text[row.start : row.end] == row.surface


CLAUSES = {"en": "who ", "es": "que "}


def phrases_put_in(text: str, lexicon: Lexicon, **options) -> tuple[set[str], set[str]]:
    """Phrases with a verb, and those without, that were put into a text."""
    rows, excluded, _ = swap(text, lexicon=lexicon, **options)
    assert excluded.empty
    found = set(rows.loc[rows["inserted"], "surface"])
    clauses = {surface for surface in found if surface.startswith(CLAUSES[lexicon.language])}
    return clauses, found - clauses


@pytest.mark.parametrize("insert", ["controls", "terms_and_controls"])
@pytest.mark.parametrize(
    ("lexicon", "text"),
    [
        (ENGLISH, "People with a disability are here."),
        (ENGLISH, "Plumbers with depression sang."),
        (ENGLISH, "She is in a wheelchair."),
        (ENGLISH, "People who left the church sang."),
        (SPANISH, "Las personas con depresión merecen ayuda."),
        (SPANISH, "Ayudan a fontaneros con depresión."),
        (SPANISH, "Ella va en silla de ruedas."),
    ],
)
def test_a_clause_with_a_singular_verb_never_follows_a_plural_or_unknown_noun(lexicon, text: str, insert: str):
    """Never "people who wears a scarf", "las personas que colecciona sellos" or "she is who drinks coffee"."""
    clauses, plain = phrases_put_in(text, lexicon, insert=insert)
    assert clauses == set()
    assert len(plain) >= 20


@pytest.mark.parametrize(
    ("lexicon", "text", "clause"),
    [
        (ENGLISH, "A person with depression called.", "who drinks coffee"),
        (ENGLISH, "Someone with depression called.", "who drinks coffee"),
        (ENGLISH, "An actress who left the church called.", "who drinks coffee"),
        (SPANISH, "Una mujer con depresión llamó.", "que lee novelas"),
        (SPANISH, "Conozco a gente que reza en la mezquita.", "que lee novelas"),
    ],
)
def test_all_phrases_follow_a_singular_noun(lexicon, text: str, clause: str):
    clauses, plain = phrases_put_in(text, lexicon)
    assert clause in clauses
    assert len(clauses | plain) == len(lexicon.controls("phrase"))


@pytest.mark.parametrize(
    ("lexicon", "text"),
    [
        (ENGLISH, "I know who prays at a mosque."),
        (ENGLISH, "A plumber who never goes to church sang."),
        (SPANISH, "Dice que reza en la mezquita."),
        (SPANISH, "Vi al que reza en la mezquita."),
    ],
)
def test_a_clause_after_an_unknown_noun_is_swapped_with_clauses_only(lexicon, text: str):
    """ "I know with a dog" and "dice con un gato" would be no sentences."""
    clauses, plain = phrases_put_in(text, lexicon)
    assert len(clauses) >= 20
    assert plain == set()


def test_a_clause_that_does_not_show_its_number_is_left_alone_after_an_unknown_noun():
    _, excluded, _ = swap("Plumbers who left the church sang.", "I know who left the church.")
    assert excluded["reason"].tolist() == ["no_safe_slot", "no_safe_slot"]


def test_a_place_for_which_fewer_than_two_controls_are_safe_is_excluded():
    def lexicon(*plain: str) -> Lexicon:
        phrases = ("who reads", "who sings", *plain)
        forms = (Form("in pain", "phrase", "in pain", "a", "g"), *(Form(p, "phrase", p) for p in phrases))
        return Lexicon("en", 1, forms, {}, People(nouns=frozenset(("people", "person"))))

    text = "People in pain sang."
    _, excluded, _ = swap(text, lexicon=lexicon("with a dog"))
    assert excluded[["reason", "detail"]].values.tolist() == [["no_safe_slot", "in pain (phrase)"]]
    rows, excluded, _ = swap(text, lexicon=lexicon("with a dog", "at home"))
    assert excluded.empty
    assert rows["text"].tolist() == [text, "People with a dog sang.", "People at home sang."]
    rows, _, _ = swap("A person in pain sang.", lexicon=lexicon("with a dog"))
    assert len(rows) == 1 + 3


@pytest.mark.parametrize(
    ("lexicon", "text", "detail"),
    [
        (ENGLISH, "Muslim countries are far.", "Muslim (countries)"),
        (ENGLISH, "He visited many Muslim countries.", "Muslim (countries)"),
        (ENGLISH, "A gay bar opened.", "gay (bar)"),
        (ENGLISH, "The refugee camp is full.", "refugee (camp)"),
        (ENGLISH, "I like music of African descent.", "of African descent (music)"),
        (SPANISH, "Vive en países musulmanes.", "musulmanes (países)"),
        (SPANISH, "La comida judía me gusta.", "judía (comida)"),
        (SPANISH, "Vende productos de origen asiático.", "de origen asiático (productos)"),
    ],
)
def test_a_word_that_describes_a_thing_is_not_about_people(lexicon, text: str, detail: str):
    rows, excluded, notes = swap(text, lexicon=lexicon)
    assert rows.empty
    assert excluded[["reason", "detail"]].values.tolist() == [["not_about_people", detail]]
    assert notes[1].values == {"rows": 1, "reason": "not_about_people"}


def test_a_word_that_the_file_names_is_swapped_whatever_it_describes():
    rows, excluded, _ = swap("Muslim countries are far.", term="muslim")
    assert excluded.empty
    assert made_with(rows, "tall") == ["Tall countries are far."]


@pytest.mark.parametrize(
    ("lexicon", "text"),
    [
        (ENGLISH, "Chinese products are cheap."),
        (ENGLISH, "A black car was here."),
        (ENGLISH, "I bought a German. Is it good?"),
        (SPANISH, "Los productos chinos son baratos."),
        (SPANISH, "Vende productos, chinos y baratos."),
        (SPANISH, "Los viejos libros arden."),
        (SPANISH, "Viejos libros."),
        (SPANISH, "Un viejo coche pasó."),
        (SPANISH, "Hablo un francés muy malo."),
        (SPANISH, "El chino es difícil."),
        (SPANISH, "Este alemán es difícil."),
        (SPANISH, "Compré un chino. Es grande."),
    ],
)
def test_a_word_that_may_mean_things_is_found_only_where_the_text_speaks_of_people(lexicon, text: str):
    """Never "los productos ciclistas", "los ciclistas libros" or "hablo un ciclista muy malo"."""
    rows, excluded, _ = swap(text, lexicon=lexicon)
    assert rows.empty
    assert excluded["reason"].tolist() == ["no_term"]


@pytest.mark.parametrize(
    ("lexicon", "text", "slot", "control", "expected"),
    [
        (ENGLISH, "A Moroccan was arrested.", "noun", "onlooker", "An onlooker was arrested."),
        (ENGLISH, "Mexicans sing.", "noun-p", "commuter", "Commuters sing."),
        (SPANISH, "Un marroquí fue detenido.", "noun-ms", "ciclista", "Un ciclista fue detenido."),
        (SPANISH, "Una marroquí fue detenida.", "noun-fs", "ciclista", "Una ciclista fue detenida."),
        (SPANISH, "Odio a los chinos.", "noun-mp", "ciclista", "Odio a los ciclistas."),
        (SPANISH, "Muchas negras viven aquí.", "noun-fp", "ciclista", "Muchas ciclistas viven aquí."),
        (SPANISH, "¡Negros fuera!", "noun-mp", "ciclista", "¡Ciclistas fuera!"),
        (SPANISH, "Los turistas chinos cantan.", "adj-mp", "alto", "Los turistas altos cantan."),
        (SPANISH, "Ellos son negros.", "adj-mp", "alto", "Ellos son altos."),
    ],
)
def test_a_noun_is_found_by_its_determiner_and_verb(lexicon, text: str, slot: str, control: str, expected: str):
    rows, excluded, _ = swap(text, lexicon=lexicon)
    assert excluded.empty
    assert rows["slot"].tolist()[0] == slot
    assert made_with(rows, control) == [expected]


@pytest.mark.parametrize("lexicon", [ENGLISH, SPANISH])
def test_no_noun_is_listed_both_as_a_person_and_as_a_thing(lexicon):
    assert not lexicon.people.nouns & lexicon.people.things
