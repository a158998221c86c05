"""Which slot class a found term fills in its text: adjective or noun, number and agreement; None where it is not sure.

Looks at the words beside the term only, and parses nothing: a wrong guess would put ungrammatical rows into an audit, a
None excludes one row and says so.
"""

import re

from veedor.evaluation.lexicon import WORD, Lexicon, Match, fold

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
