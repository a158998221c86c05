"""Words and numbers in the reader's language, from reports/words/*.yaml.

A code without words shows as itself, plainly, never as an error: a report with a raw code in it is better than none.
Nothing here knows what a finding is.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from veedor.errors import UsageError, unknown
from veedor.records import Note, Scalar

MINUS = "\u2212"
CODES = {"why": "why_not", "reason": "reasons"}  # values of notes that are codes themselves
SMALLEST_P = 0.001


@dataclass(frozen=True)
class Words:
    """One language: `say` a sentence, name a `code`, write a number."""

    language: str
    content: Mapping[str, Any]

    def __getitem__(self, section: str) -> Any:
        """A section of the words file."""
        return self.content[section]

    def say(self, name: str, /, **values: str | int | None) -> str:
        """The sentence of this name with values put in; numbers come as text already, small counts as int."""
        told = {key: self.number(value) if isinstance(value, int) else str(value) for key, value in values.items()}
        sentence: str = self.content["sentences"][name]
        return sentence.format(**told)

    def text(self, name: str, /, **values: str | int | None) -> str:
        """A text of the user interface with values put in."""
        told = {key: self.number(value) if isinstance(value, int) else str(value) for key, value in values.items()}
        label: str = self.content["ui"][name]
        return label.format(**told) if told else label

    def code(self, section: str, code: str) -> str:
        """The words for a code of a section; the code itself where there are none."""
        found = self.content.get(section, {}).get(code)
        return str(found) if found is not None else code

    def reason(self, code: str) -> str:
        """The words for the code of a reason, whichever section holds it, without a full stop."""
        for section in ("why_not", "rules", "reasons"):
            found = self.content.get(section, {}).get(code)
            if found is not None:
                return inner(str(found))
        return code

    def note(self, note: Note) -> str:
        """A note as a sentence; without words, its code and values."""
        sentence = self.content.get("notes", {}).get(note.code)
        values = {key: self._value(key, value) for key, value in note.values.items()}
        if sentence is not None:
            try:
                return str(sentence).format(**values)
            except (KeyError, IndexError):
                pass  # a sentence that asks for values the note does not carry tells less than the note itself
        told = self.content["language"]["list"].join(f"{key} = {value}" for key, value in values.items())
        return f"{note.code} ({told})" if told else note.code

    def _value(self, key: str, value: Scalar | tuple[Scalar, ...]) -> str:
        if isinstance(value, tuple):
            return self.listed([self._value(key, part) for part in value])
        if isinstance(value, bool) or value is None:
            return str(value)
        if isinstance(value, int):
            return self.number(value)
        if isinstance(value, float):
            return self.number(value, 3 if abs(value) < 1 else 2)
        if key == "method":
            return self.code("method_names", value)
        return self.reason(value) if key in CODES else value

    def number(self, value: float | int | None, digits: int = 0, *, sign: bool = False) -> str:
        """A number with this language's decimal and thousands marks; an en dash where there is none."""
        if value is None:
            return "\u2013"
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value} cannot be told; what is undefined is None, with a reason beside it")
        rounded = round(abs(value), digits)
        mark = MINUS if value < 0 and rounded else "+" if sign and rounded else ""
        grouped = "," if rounded >= self.content["language"]["group_from"] else ""
        plain = f"{rounded:{grouped}.{digits}f}"
        swapped = {",": self.content["language"]["group"], ".": self.content["language"]["decimal"]}
        return mark + "".join(swapped.get(character, character) for character in plain)

    def percent(self, share: float | None, digits: int = 0) -> str:
        """A share as per cent, without the sign."""
        return self.number(None if share is None else 100 * share, digits)

    def p_value(self, p: float | None) -> str:
        """A p-value: three decimals, "< 0.001" below."""
        if p is None:
            return self.number(None)
        return self.number(p, 3) if p >= SMALLEST_P else f"< {self.number(SMALLEST_P, 3)}"

    def listed(self, parts: Sequence[str]) -> str:
        """Parts in a row, "and" before the last."""
        if len(parts) < 2:
            return "".join(parts)
        comma, last = str(self.content["language"]["list"]), str(self.content["language"]["and"])
        return comma.join(parts[:-1]) + last + parts[-1]


def inner(sentence: str) -> str:
    """A sentence made ready to stand inside another: no full stop, first letter small unless a name or acronym.

    >>> inner("The group has a single term.")
    'the group has a single term'
    """
    bare = sentence.rstrip().removesuffix(".")
    first_word = bare.split(" ", 1)[0]
    return bare[:1].lower() + bare[1:] if first_word[1:].islower() or len(first_word) == 1 else bare


def visible(text: str) -> str:
    """User text without characters that act instead of showing: controls become a sign, direction marks are dropped.

    >>> visible("a\\x00b\\u202ec")
    'a\ufffdbc'
    """
    kept = []
    for character in text:
        kind = unicodedata.category(character)
        if kind == "Cf" and character not in "\u200c\u200d":
            continue
        bad = kind in ("Cc", "Cs", "Co", "Cn") and character not in "\n\t"
        kept.append("\ufffd" if bad else character)
    return "".join(kept)


@lru_cache(maxsize=8)
def read_words(folder: Path, language: str) -> Words:
    """The words of a language; UsageError names the languages there are."""
    file = folder / f"{language}.yaml"
    if not file.is_file():
        raise UsageError(unknown("report language", language, sorted(path.stem for path in folder.glob("*.yaml"))))
    return Words(language, yaml.safe_load(file.read_text(encoding="utf-8")))
