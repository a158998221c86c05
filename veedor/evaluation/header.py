"""The names of a file's columns: is there a header at all, what separates its fields, and is a name given twice.

Knows the columns of an evaluation set and what people call them elsewhere; values are `columns`' business.
"""

import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from veedor.errors import EvaluationSetError

KNOWN = (
    "text",
    "label",
    "template",
    "axis",
    "group",
    "term",
    "set",
    "control",
    "symmetric",
    "id",
    "slot",
    "start",
    "end",
)
# What other files call the text; never read silently, only suggested.
_CALLED_TEXT = frozenset(
    "sentence tweet comment comment_text content body review review_text document post message utterance texto frase "
    "oracion oración tuit comentario contenido mensaje reseña".split()
)
_NAME = re.compile(r"[^\W\d][\w .:/()\[\]-]{0,59}|")


def delimiter_of(text: str) -> str:
    """What separates the fields of the first line: a comma, or a semicolon or tab where only those make columns.

    >>> delimiter_of("text;label\\na;b")
    ';'
    """
    first = text.split("\n", 1)[0]
    counts = {mark: first.count(mark) for mark in ",;\t"}
    for mark in ",;\t":
        names = [name.strip(' "\r') for name in first.split(mark)]
        if counts[mark] and {"text", "Text", "test_case"} & set(names):
            return mark
    return max(",;\t", key=lambda mark: counts[mark])


def looks_like_prose(fields: Sequence[str]) -> bool:
    """True where a first line is a row and not a header: a field reads as a sentence, a number or a long text.

    >>> looks_like_prose(["I am a tall woman.", "positive"]), looks_like_prose(["Tweet text", "y"])
    (True, False)
    """
    if set(fields) & set(KNOWN):
        return False
    return any(not _NAME.fullmatch(field.strip()) or len(field.split()) > 4 or field.endswith(".") for field in fields)


def check_names(names: Sequence[str], source: Path) -> None:
    """EvaluationSetError where two columns have one name."""
    twice = [name for name, count in Counter(name.strip() for name in names).items() if count > 1 and name]
    if twice:
        raise EvaluationSetError(f"{source} names the column {twice[0]!r} twice; expected each name once")


def no_text_column(names: Sequence[str], source: Path) -> EvaluationSetError:
    """The error for a table without `text`, naming the column that was probably meant."""
    folded = {name.strip().casefold().replace(" ", "_"): name for name in names}
    meant = [folded[key] for key in folded if key in _CALLED_TEXT or key == "text"]
    meant = meant or [folded[key] for key in get_close_matches("text", list(folded), n=1, cutoff=0.6)]
    hint = f"; if {meant[0]!r} holds the texts, rename it to 'text'" if meant else ""
    return EvaluationSetError(f"{source} has no column 'text'; its columns: {', '.join(names)}{hint}")
