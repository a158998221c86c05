"""What may stand in the place of a found term: its slot class (None where it is not sure), and which phrases fit there.

Looks at the words beside the term only, and parses nothing: a wrong guess would put ungrammatical rows into an audit, a
None excludes one row and says so.
"""

import re
from typing import Literal

from veedor.evaluation.lexicon import WORD, Lexicon, Match, fold, words

# A phrase is a clause with a singular verb ("who reads", "que lee") or plain, without a verb ("with a dog").
PhraseKind = Literal["clause", "plain"]

_NEXT = re.compile(r"(\s+)(" + WORD.pattern + ")")
_PREVIOUS = re.compile(r"(" + WORD.pattern + r")[\s\"'“‘«(¿¡]+$")

_SINGULAR = frozenset(("a", "an", "another", "this", "that"))
# Spanish words before a term that show its gender and number, and whether the term is then a noun or an adjective.
_SPANISH_DETERMINERS = {
    "ms": "el un este ese aquel otro algún ningún al del todo",
    "fs": "la una esta esa aquella otra alguna ninguna toda",
    "mp": "los unos estos esos aquellos otros algunos todos muchos",
    "fp": "las unas estas esas aquellas otras algunas todas muchas",
}
_SPANISH_HEADS = {
    "ms": "hombre señor chico niño joven vecino amigo compañero alumno trabajador individuo tipo",
    "fs": "persona mujer señora chica niña vecina amiga compañera alumna trabajadora gente pareja comunidad familia",
    "mp": "hombres señores chicos niños vecinos amigos compañeros alumnos trabajadores individuos tipos",
    "fp": "personas mujeres señoras chicas niñas vecinas amigas compañeras alumnas trabajadoras parejas familias vidas",
}

_RELATIVES = frozenset(("who", "que"))
# English nouns for people after which a singular verb is wrong or strange, though they do not end in s.
_PLURAL_IN_SENSE = frozenset(
    "people men women children folk those couple life community family population youth".split()
)
_SINGULAR_PRONOUNS = frozenset("someone somebody anyone anybody everyone everybody nobody".split())


def thing_described(text: str, match: Match, lexicon: Lexicon) -> str:
    """The noun of "Muslim countries" or "comida judía": what the term describes surely no person; or ""."""
    before = lexicon.people.side == "before" or match.forms[0].slot == "phrase"
    noun = _previous_word(text[: match.start]) if before else _next_word(text[match.end :])
    return noun if noun in lexicon.people.things else ""


def phrase_kind(surface: str) -> PhraseKind:
    """Whether a phrase holds a verb.

    >>> phrase_kind("who reads Braille"), phrase_kind("con perro guía")
    ('clause', 'plain')
    """
    return "clause" if words(surface)[:1] and words(surface)[0] in _RELATIVES else "plain"


def phrase_kinds(text: str, start: int, end: int, lexicon: Lexicon) -> frozenset[PhraseKind]:
    """The kinds of phrases that fit into the place of one: "people with a dog", but never "people who reads".

    After a singular noun for people both fit, after a plural one plain phrases. Where the noun is not known the kind
    that stands there fits, a clause only if its verb shows the singular ("Dice que reza ...", not "who left ...").
    """
    noun = _previous_word(text[:start])
    if noun in _SINGULAR_PRONOUNS:
        return frozenset(("clause", "plain"))
    if noun in lexicon.people.nouns or noun in _PLURAL_IN_SENSE:
        plural = noun in _PLURAL_IN_SENSE or (noun.endswith("s") and not noun.endswith("ss"))
        return frozenset(("plain",)) if plural else frozenset(("clause", "plain"))
    kind = phrase_kind(text[start:end])
    if kind == "clause" and lexicon.language == "en":
        verb = words(text[start:end])[1:3]  # "who prays", "who never goes"
        return frozenset((kind,)) if any(word.endswith("s") for word in verb) else frozenset()
    return frozenset((kind,))


def choose_slot(text: str, match: Match, lexicon: Lexicon) -> str | None:
    """The slot class of a match, or None where the words beside it do not tell."""
    slots = list(dict.fromkeys(form.slot for form in match.forms))
    if len(slots) == 1:
        return slots[0]
    if any(re.search(r"-[mf][sp]$", slot) for slot in slots):
        return _by_agreement(_previous_word(text[: match.start]), slots)
    return _adjective_or_noun(text, match, lexicon, slots)


def _previous_word(before: str) -> str:
    found = _PREVIOUS.search(before)
    return fold(found.group(1)) if found else ""


def _next_word(after: str) -> str:
    found = _NEXT.match(after)
    return fold(found.group(2)) if found else ""


def _adjective_or_noun(text: str, match: Match, lexicon: Lexicon, slots: list[str]) -> str | None:
    """English: in "a lesbian couple" and "I am lesbian" an adjective, in "a lesbian." and "a lesbian who" a noun."""
    following, previous = _next_word(text[match.end :]), _previous_word(text[: match.start])
    people = lexicon.people
    nouns = [slot for slot in slots if slot.startswith("noun")]
    if "adj" not in slots or len(nouns) != 1:
        return None
    if following in people.nouns:
        return "adj"
    if previous not in people.determiners and not _determined(text[: match.start]):
        return "adj"
    return nouns[0] if not following or following in people.followers else None


def _determined(before: str) -> bool:
    """True for "a happy ..." and "a very happy ...": an article up to three words before, nothing else between."""
    tail = re.search(r"(?:" + WORD.pattern + r"\s+){1,3}$", before)
    return tail is not None and any(fold(word) in _SINGULAR for word in WORD.findall(tail.group()))


def _by_agreement(previous: str, slots: list[str]) -> str | None:
    for kind, table in (("noun", _SPANISH_DETERMINERS), ("adj", _SPANISH_HEADS)):
        for agreement, listed in table.items():
            if previous in listed.split():
                return f"{kind}-{agreement}" if f"{kind}-{agreement}" in slots else None
    # "es musulmana": after a verb both readings take the same words, and the adjective is the safer one.
    adjectives = [slot for slot in slots if slot.startswith("adj")]
    return adjectives[0] if len(adjectives) == 1 and previous in _SPANISH_COPULAS else None


_SPANISH_COPULAS = frozenset("soy eres es somos son era eran fue fueron ser sea sean muy más tan".split())
