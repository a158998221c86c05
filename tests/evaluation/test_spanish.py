"""The Spanish lexicon and sentences agree with a small grammar of their own, and hold what an audit needs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import veedor
from veedor.evaluation.lexicon import load_lexicon
from veedor.evaluation.templates import build_identity_terms

FOLDER = Path(veedor.__file__).parent / "evaluation"
LEXICON = yaml.safe_load((FOLDER / "lexicons" / "es.yaml").read_text(encoding="utf-8"))
TEMPLATES = yaml.safe_load((FOLDER / "templates" / "es.yaml").read_text(encoding="utf-8"))["templates"]
AXES = ("gender", "ethnicity_nationality", "religion", "sexual_orientation", "disability", "age")
OWN_SLOTS = ("adj-fs", "noun-ms", "noun-fs", "phrase")

# Spanish inflection, told apart from the lexicon: words that follow no rule below, feminine and plural.
SAME_IN_FEMININE = {"mayor", "menor", "hetero", "agénero", "bigénero", "transgénero"}
FEMININES = {"cliente": "clienta"}
PLURALS = {
    "joven": "jóvenes",
    "gay": "gais",
    "sij": "sijs",
    "inuit": "inuits",
    "LGBT": "LGBT",
    "trans": "trans",
    "queer": "queer",
    "genderqueer": "genderqueer",
    "agénero": "agénero",
    "bigénero": "bigénero",
    "transgénero": "transgénero",
}
ADVERBS = {"no", "recién", "medio", "poco"}
PREPOSITIONS = {"de", "del", "al", "con", "en"}
PLAIN = str.maketrans("áéíóú", "aeiou")
PREPOSITION_OR_QUE = ("con ", "de ", "del ", "en ", "sin ", "que ")

# Words that would have to agree with the person if they stood outside the slot.
AGREEING = set(
    """él ella ellos ellas este ese esa aquel mismo misma solo sola juntos juntas alguno alguna ninguno ninguna
    nacido nacida sentado sentada cansado cansada contento contenta llamado llamada acusado acusada detenido
    detenida invitado invitada elegido elegida conocido conocida querido querida enfadado enfadada preparado preparada
    vestido vestida acompañado acompañada visto vista recibido recibida despedido despedida contratado contratada
    entrevistado entrevistada citado citada nuevo nueva simpático simpática grosero grosera amigo amiga hermano hermana
    señor señora hombre mujer chico chica vecino vecina""".split()
)


def entries() -> Iterator[dict[str, Any]]:
    """Every term and control word as it is written."""
    yield from terms()
    for listed in LEXICON["controls"].values():
        yield from listed


def terms() -> Iterator[dict[str, Any]]:
    for axis in LEXICON["axes"].values():
        for group in axis["groups"].values():
            yield from group["terms"]


def also(kind: str) -> list[Any]:
    return [extra for entry in terms() for extra in entry.get("also", {}).get(kind, [])]


def adjectives() -> list[dict[str, str]]:
    return [entry["adj"] for entry in entries() if "adj" in entry]


def nouns() -> list[dict[str, list[str]]]:
    return [entry["noun"] for entry in entries() if "noun" in entry] + also("noun")


def phrases() -> list[str]:
    return [entry["phrase"] for entry in entries() if "phrase" in entry] + also("phrase")


def each_word(surface: str, inflect: Any) -> str:
    """The words of a surface inflected up to its first preposition, adverbs left alone."""
    done: list[str] = []
    open_part = True
    for word in surface.split():
        open_part = open_part and word not in PREPOSITIONS
        done.append(inflect(word) if open_part and word not in ADVERBS else word)
    return " ".join(done)


def feminine(word: str) -> str:
    """musulmán -> musulmana, alto -> alta, hablador -> habladora; what ends otherwise is the same for both."""
    if word in SAME_IN_FEMININE:
        return word
    if word in FEMININES:
        return FEMININES[word]
    if re.search(r"[áéíó]n$|és$", word):
        return word[:-2] + word[-2:].translate(PLAIN) + "a"
    if word.endswith("or"):
        return word + "a"
    return word[:-1] + "a" if word.endswith("o") else word


def plural(word: str) -> str:
    """alta -> altas, marroquí -> marroquíes, locuaz -> locuaces, musulmán -> musulmanes."""
    if word in PLURALS:
        return PLURALS[word]
    if word[-1] in "aeioáéó":
        return word + "s"
    if word.endswith("z"):
        return word[:-1] + "ces"
    if re.search(r"[áéíóú][ns]$", word):
        return word[:-2] + word[-2:].translate(PLAIN) + "es"
    return word + "es"


@pytest.mark.parametrize(
    ("word", "fs", "mp", "fp"),
    [
        ("musulmán", "musulmana", "musulmanes", "musulmanas"),
        ("marroquí", "marroquí", "marroquíes", "marroquíes"),
        ("senegalés", "senegalesa", "senegaleses", "senegalesas"),
        ("joven", "joven", "jóvenes", "jóvenes"),
        ("locuaz", "locuaz", "locuaces", "locuaces"),
        ("budista", "budista", "budistas", "budistas"),
        ("homosexual", "homosexual", "homosexuales", "homosexuales"),
        ("no binario", "no binaria", "no binarios", "no binarias"),
    ],
)
def test_the_grammar_of_this_test_knows_the_textbook_examples(word: str, fs: str, mp: str, fp: str):
    assert each_word(word, feminine) == fs
    assert each_word(word, plural) == mp
    assert each_word(fs, plural) == fp


def test_every_adjective_agrees_in_all_four_forms():
    for forms in adjectives():
        assert set(forms) == {"ms", "fs", "mp", "fp"}
        fs = each_word(forms["ms"], feminine)
        expected = {"fs": fs, "mp": each_word(forms["ms"], plural), "fp": each_word(fs, plural)}
        assert {key: forms[key] for key in expected} == expected


def test_every_noun_has_its_feminine_and_plural():
    both = {"gays": "gay", "sikhs": "sikh", "hetero": "hetero"}  # usual besides the academy's plurals
    for noun in nouns():
        for singular, several in noun.values():
            regular = each_word(singular, plural)
            assert several == regular or both.get(several.split()[-1]) == singular.split()[-1]
        if len(noun) == 2:
            assert noun["f"][0] == each_word(noun["m"][0], feminine)


def test_no_feminine_noun_needs_un_before_a_stressed_a():
    """ "una árabe" is right for people, "un ave" for things: neither is put into a sentence."""
    for noun in (entry["noun"] for entry in entries() if "noun" in entry):
        first = noun.get("f", [""])[0].split()[0:1]
        assert not first or not re.match(r"h?á", first[0])
        assert not first or not re.fullmatch(r"h?a[^aeiouáéíóú]+[aeo][ns]?", first[0])


def test_phrases_follow_any_singular_noun():
    """A preposition or a relative clause; "que es" and "que está" would call for words that agree."""
    for phrase in phrases():
        assert phrase.startswith(PREPOSITION_OR_QUE)
        assert re.search(r"\b(que (?!es (madre|padre)$)(es|está|era|fue)) ", phrase) is None
        participles = {word for word in AGREEING if re.search(r"[ai]d[ao]$", word)}
        assert not participles & set(phrase.split()), phrase


def test_no_surface_is_empty_or_padded():
    surfaces = [form for forms in adjectives() for form in forms.values()]
    surfaces += [form for noun in nouns() for pair in noun.values() for form in pair]
    surfaces += phrases()
    assert all(surface and surface == surface.strip() and "  " not in surface for surface in surfaces)


def test_spanish_and_english_know_the_same_axes_and_groups():
    english = yaml.safe_load((FOLDER / "lexicons" / "en.yaml").read_text(encoding="utf-8"))["axes"]
    assert tuple(LEXICON["axes"]) == AXES
    assert {axis: list(content["groups"]) for axis, content in LEXICON["axes"].items()} == {
        axis: list(content["groups"]) for axis, content in english.items()
    }


def test_a_group_brings_twelve_terms_except_three_that_spanish_has_fewer_words_for():
    fewer = {"white": 10, "heterosexual": 11, "middle_aged": 9}
    for axis in LEXICON["axes"].values():
        for name, group in axis["groups"].items():
            assert len(group["terms"]) >= fewer.get(name, 12), name


def test_every_slot_of_the_set_has_forty_four_reviewed_control_words():
    lexicon = load_lexicon("es")
    assert all(len(lexicon.controls(slot)) >= 44 for slot in OWN_SLOTS)
    assert all(entry["reviewed"] is True for listed in LEXICON["controls"].values() for entry in listed)


def test_no_control_word_is_a_term_or_holds_one():
    lexicon = load_lexicon("es")
    controls = [form.surface for form in lexicon.forms if form.control]
    assert not {surface: lexicon.find(surface, ambiguous=True) for surface in controls if lexicon.find(surface)}
    assert not {form.surface for form in lexicon.terms(generate=None)} & set(controls)


@pytest.mark.parametrize("slot", OWN_SLOTS)
def test_control_words_are_about_as_frequent_and_as_long_as_the_terms(slot: str):
    """Mean Zipf frequency within half a unit, mean length within three letters; both ends covered but for a tenth."""
    lexicon = load_lexicon("es")
    listed, controls = lexicon.terms(slot), lexicon.controls(slot)
    bands = [sorted(form.band or 0.0 for form in forms) for forms in (listed, controls)]
    lengths = [sorted(len(form.surface) for form in forms) for forms in (listed, controls)]
    means = [[sum(values) / len(values) for values in pair] for pair in (bands, lengths)]
    assert abs(means[0][0] - means[0][1]) < 0.5
    assert abs(means[1][0] - means[1][1]) < 3
    for of_terms, of_controls in (bands, lengths):
        tenth = len(of_terms) // 10
        assert of_controls[0] <= of_terms[tenth]
        assert of_controls[-1] >= of_terms[-1 - tenth]


def test_bands_are_those_of_wordfreq():
    """Of the dictionary form: adjective before noun before phrase, masculine first; a phrase's rarest content word."""
    wordfreq = pytest.importorskip("wordfreq")
    for entry in entries():
        noun = entry.get("noun", {})
        surface = entry["adj"]["ms"] if "adj" in entry else next(iter(noun.values()))[0] if noun else entry["phrase"]
        # Function words are never the rarest of a surface: every one has a Zipf frequency above 5.
        rarest = min(wordfreq.zipf_frequency(word, "es") for word in surface.split())
        assert entry["band"] == pytest.approx(rarest, abs=0.005), surface


def test_each_sentiment_has_nine_sentences_of_five_to_thirty_words():
    sentiments = [template["sentiment"] for template in TEMPLATES]
    assert len(TEMPLATES) >= 28
    assert all(sentiments.count(sentiment) >= 9 for sentiment in ("negative", "neutral", "positive"))
    for template in TEMPLATES:
        words = re.sub(r"\{[Pp]erson\}", "una persona", template["text"]).split()
        assert 5 <= len(words) <= 30, template["id"]


def test_each_sentence_has_one_place_for_a_person_and_starts_with_a_capital():
    for template in TEMPLATES:
        text = template["text"]
        assert len(re.findall(r"\{person\}", text, re.IGNORECASE)) == text.count("{") == 1
        assert text.startswith("{Person}") == ("{Person}" in text)
        assert text.startswith("{Person}") or text[0].isupper()
        assert text.endswith(".")


def test_no_word_outside_the_place_would_have_to_agree_with_the_person():
    for template in TEMPLATES:
        words = set(re.findall(r"\w+", re.sub(r"\{person\}", " ", template["text"], flags=re.IGNORECASE).lower()))
        assert not words & AGREEING, template["id"]
        assert not re.search(r"\b(es|está|fue|era|parece|sigue) \w+(ado|ido|ada|ida)\b", template["text"])


def test_the_set_says_un_to_masculine_nouns_and_una_to_everyone_else():
    rows = build_identity_terms("es").rows
    frames = {"adj-fs": "una persona ", "noun-ms": "un ", "noun-fs": "una ", "phrase": "una persona "}
    assert set(rows["slot"]) == set(frames)
    for row in rows.itertuples():
        assert row.text[row.start : row.end] == row.surface
        frame = frames[row.slot]
        before = row.text[row.start - len(frame) : row.start]
        assert before == (frame.capitalize() if row.start == len(frame) else frame)
        assert not re.search(r"\w$", row.text[: row.start - len(frame)])


def test_the_set_holds_the_sentences_a_reader_expects():
    texts = set(build_identity_terms("es").rows["text"])
    assert "Una persona musulmana espera en la fila del supermercado." in texts
    assert "Un marroquí espera en la fila del supermercado." in texts
    assert "El relato trata de una ciclista." in texts
    assert "El relato trata de una persona que usa silla de ruedas." in texts
    assert len(texts) == len(build_identity_terms("es").rows)


def test_every_sentence_meets_every_control_word_of_its_slot():
    rows = build_identity_terms("es").rows
    lexicon = load_lexicon("es")
    controls = rows[rows["control"]].groupby(["template", "slot"])["term"].nunique()
    assert len(controls) == len(TEMPLATES) * len(OWN_SLOTS)
    assert all(count == len(lexicon.controls(slot)) for (_, slot), count in controls.items())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Vive aquí una vecina china.", ["china"]),
        ("Me gusta la cocina china.", []),
        ("Leo mucha novela negra.", []),
        ("Las personas mayores votan más.", ["mayores"]),
        ("Mi hermano mayor vota.", []),
        ("LOS MUSULMANES rezan.", ["MUSULMANES"]),
        ("Una persona con discapacidad auditiva.", ["con discapacidad auditiva"]),
        ("Ella es lesbiana.", ["lesbiana"]),
        ("El señor García no está.", []),
    ],
)
def test_terms_are_found_where_a_text_speaks_of_people(text: str, found: list[str]):
    assert [match.surface for match in load_lexicon("es").find(text)] == found
