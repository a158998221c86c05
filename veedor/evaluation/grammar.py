"""Fit a word into a sentence: English "a" or "an" by sound, Spanish "e" and "u" by sound, and the case of the place.

Agreement in gender and number is the business of slot classes, not of this file.
"""

import re
from typing import Literal

Case = Literal["as_is", "lower", "capital", "upper"]

# Written with a vowel, spoken with a consonant: "a European", "a one-armed", "a unique", "a user".
_CONSONANT_SOUND = re.compile(
    r"eu|ew|on(?:e|ce)(?![a-z])|u(?:ni(?![nm])|nanim|s[aeiu]|biq|[cfghrt][aeio]|k(?![a-z]*h)|ru|til|top)"
)
_UNI_IS_UN = re.compile(r"uni(?:d|ss|nt|nv)")  # un-identified, un-issued
_SILENT_H = re.compile(r"(?:hour|honest|honou?r|heir)")
_LETTERS_WITH_VOWEL_SOUND = "AEFHILMNORSX"
_NUMBER_WITH_VOWEL_SOUND = re.compile(r"8|1[18](?!\d)")
_ARTICLE = re.compile(r"(?<![\w'’-])(an?)(\s+[\"'“‘(]?)$", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:^|[.!?…:]\s+|\n)[\s\"'“‘«(¿¡]*$")


def article(surface: str) -> str:
    """The indefinite article that a word takes by its sound.

    >>> [article(word) for word in ("Asian", "European", "hour", "one-armed", "LGBT person", "unarmed")]
    ['an', 'a', 'an', 'a', 'an', 'an']
    """
    first = re.split(r"[\s\-]", surface, maxsplit=1)[0]
    if len(first) > 1 and first.isupper():
        return "an" if first[0] in _LETTERS_WITH_VOWEL_SOUND else "a"
    if first[:1].isdigit():
        return "an" if _NUMBER_WITH_VOWEL_SOUND.match(first) else "a"
    word = surface.lower()
    if word[:1] == "h":
        return "an" if _SILENT_H.match(word) else "a"
    if _CONSONANT_SOUND.match(word) and not _UNI_IS_UN.match(word):
        return "a"
    return "an" if word[:1] in "aeiouáéíóúàèìòùâêîôûäëïöü" and word else "a"


def fit_article(before: str, surface: str) -> str:
    """The text before a word with its indefinite article, if one stands there, made to agree with the word.

    >>> fit_article("She met an ", "tall")
    'She met a '
    """
    found = _ARTICLE.search(before)
    if not found:
        return before
    old, new = found.group(1), article(surface)
    if old.isupper() and (len(old) > 1 or before[: found.start()].isupper()):
        new = new.upper()
    elif old[0].isupper():
        new = new.capitalize()
    return before[: found.start(1)] + new + found.group(2)


def fit_conjunction(before: str, surface: str) -> str:
    """Spanish "y" and "o" before a word, as "e" before an i sound and "u" before an o sound.

    >>> fit_conjunction("altas y ", "inmigrantes"), fit_conjunction("altas e ", "ciclistas")
    ('altas e ', 'altas y ')
    """
    found = re.search(r"(?<!\w)([yeouYEOU])(\s+)$", before)
    if not found:
        return before
    word = surface.lower()
    i_sound = re.match(r"h?[ií](?![aeoáéó])", word) is not None
    o_sound = re.match(r"h?[oó]", word) is not None
    old = found.group(1)
    new = ("e" if i_sound else "y") if old.lower() in "ye" else ("u" if o_sound else "o")
    return before[: found.start(1)] + (new.upper() if old.isupper() else new) + found.group(2)


def case_of(surface: str, canonical: str, before: str) -> Case:
    """How a surface stands in its text, compared with how the dictionary writes it.

    >>> case_of("muslim", "Muslim", "i hate "), case_of("Gay", "gay", ""), case_of("MUSLIMS", "Muslims", "ALL ")
    ('lower', 'capital', 'upper')
    """
    if len(surface) > 1 and surface.isupper() and (not canonical.isupper() or _shouting(before)):
        return "upper"
    if surface.islower() and not canonical.islower():
        return "lower"
    if surface[:1].isupper() and (canonical[:1].islower() or _SENTENCE_START.search(before)):
        return "capital"
    return "as_is"


def _shouting(before: str) -> bool:
    return len(re.findall(r"[^\W\d_]", before)) > 3 and before.isupper()


def put_case(surface: str, case: Case) -> str:
    """A dictionary surface as it stands in a place of that case.

    >>> put_case("commuter", "capital"), put_case("Asian", "lower"), put_case("tall", "upper")
    ('Commuter', 'asian', 'TALL')
    """
    if case == "upper":
        return surface.upper()
    if case == "lower":
        return surface.lower()
    return surface[:1].upper() + surface[1:] if case == "capital" else surface
