"""The words that name people, and the neutral words they are compared with: one lexicon a language.

Finds terms in texts at word boundaries, whatever their case, longest first. Decides nothing about grammar (see `swaps`)
and holds no given names and no slurs. Reading and checking the YAML is `lexicon_file`.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Literal

Search = Literal["always", "people", "never"]

# Letters, digits and combining accents: decomposed text ("e" + U+0301) is one word too.
WORD = re.compile(r"[\w\u0300-\u036f]+")
_GAP = re.compile(r"\s+|[-\u2010\u2011'\u2019]")
_HYPHENS = "-\u2010\u2011"
_APOSTROPHES = "'\u2019"
_MAY_LINK = re.compile(r"://|www\.|@")
_LINKS = re.compile(r"\S+://\S+|www\.\S+|\S*@\S+")
_SENTENCE_MARK = re.compile(r"[.!?…:;¿¡\n]")
_PLURAL_NOUNS = ("noun-p", "noun-mp", "noun-fp")


@dataclass(frozen=True)
class Form:
    """One surface of a term or control word, in one slot class.

    `slot`: "adj", "noun", "noun-p", "phrase" in English; "adj-fs", "noun-ms", "noun-mp", "phrase" in Spanish.
    `generate`: may be put into sentences (else only recognised). `search`: "always", "people" (only where the text
    speaks of people) or "never" (ambiguous outside sentences of ours).
    """

    surface: str
    slot: str
    term: str
    axis: str | None = None
    group: str | None = None
    band: float | None = None
    generate: bool = True
    search: Search = "always"

    @property
    def control(self) -> bool:
        """True for a neutral word."""
        return self.axis is None


@dataclass(frozen=True)
class Match:
    """A term found in a text: `text[start:end] == surface`; `forms` are all readings of that surface."""

    start: int
    end: int
    surface: str
    forms: tuple[Form, ...]

    @property
    def term(self) -> str:
        """Canonical word."""
        return self.forms[0].term

    @property
    def axis(self) -> str:
        """Axis of the term."""
        return str(self.forms[0].axis)

    @property
    def group(self) -> str:
        """Group of the term."""
        return str(self.forms[0].group)


@dataclass(frozen=True)
class People:
    """The words by which a text shows that it speaks of people: needed for terms with `search: people`."""

    side: Literal["after", "before"] = "after"  # where the noun stands, seen from the adjective
    nouns: frozenset[str] = frozenset()
    copulas: frozenset[str] = frozenset()
    subjects: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    followers: frozenset[str] = frozenset()  # words that may follow a noun, but no adjective before its noun
    articles: frozenset[str] = frozenset()  # "a Moroccan was": between these and `verbs` a singular noun is a person
    verbs: frozenset[str] = frozenset()
    things: frozenset[str] = frozenset()  # nouns that are surely no person: "country", "food"


@dataclass(frozen=True)
class Lexicon:
    """Terms by axis and group, control words by slot class, in one language."""

    language: str
    version: int
    forms: tuple[Form, ...]
    group_names: Mapping[str, Mapping[str, str]]  # "axis" and "axis/group" -> {"en": ..., "es": ...}
    people: People = People()
    _index: dict[str, list[tuple[tuple[str, ...], tuple[Form, ...]]]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _by_word: dict[tuple[str, ...], list[Form]] = field(default_factory=dict, repr=False, compare=False)
    _controls: dict[str, list[Form]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the surfaces by their first word, longest first."""
        by_words: dict[tuple[str, ...], list[Form]] = {}
        for form in self.forms:
            if form.control:
                self._controls.setdefault(form.slot, []).append(form)
            else:
                by_words.setdefault(words(form.surface), []).append(form)
                for key in dict.fromkeys((words(form.term), words(form.surface))):
                    self._by_word.setdefault(key, []).append(form)
        for key in sorted(by_words, key=lambda k: (-len(k), k)):
            self._index.setdefault(key[0], []).append((key, tuple(by_words[key])))

    def terms(
        self, slot: str | None = None, *, axis: str | None = None, generate: bool | None = True
    ) -> tuple[Form, ...]:
        """Forms of demographic terms in file order; `generate=None`: also those that are only recognised."""
        return tuple(
            form
            for form in self.forms
            if not form.control
            and slot in (None, form.slot)
            and axis in (None, form.axis)
            and generate in (None, form.generate)
        )

    def controls(self, slot: str) -> tuple[Form, ...]:
        """Control words of one slot class, in file order; empty where the lexicon has none."""
        return tuple(self._controls.get(slot, ()))

    @property
    def slots(self) -> tuple[str, ...]:
        """Slot classes for which there are control words."""
        return tuple(sorted(self._controls))

    def forms_of(self, term: str) -> tuple[Form, ...]:
        """All forms of a demographic term, by canonical word or surface, whatever the case; empty if unknown."""
        key = words(term)
        found = self._by_word.get(key, ())
        if not found and key[1:] and key[-1] in self.people.nouns:  # "gay people" is the term "gay"
            found = self._by_word.get(key[:-1], ())
        return tuple(found)

    def find(self, text: str, *, ambiguous: bool = False) -> list[Match]:
        """Terms in a text, left to right, never overlapping, longest first.

        `ambiguous=True` also finds words that mean people only in some texts ("straight", "old", "white"): for files
        that are known to name people there. Parts of hyphenated words, links and handles never match.
        """
        tokens = _tokens(text)
        found: list[Match] = []
        at = 0
        while at < len(tokens):
            match, length = self._match_at(text, tokens, at, ambiguous)
            if match:
                found.append(match)
            at += length
        return found

    def _match_at(self, text: str, tokens: list["Token"], at: int, ambiguous: bool) -> tuple[Match | None, int]:
        for key, forms in self._index.get(tokens[at].key, ()):
            last = at + len(key) - 1
            if last >= len(tokens) or not _matches(text, tokens[at : last + 1], key):
                continue
            start, end = tokens[at].start, tokens[last].end
            if _inside_compound(text, start, end):
                continue
            allowed = tuple(form for form in forms if ambiguous or self._allowed(form, text, tokens, (at, last)))
            if allowed:
                return Match(start, end, text[start:end], allowed), len(key)
        return None, 1

    def _allowed(self, form: Form, text: str, tokens: list["Token"], span: tuple[int, int]) -> bool:
        if form.search != "people":
            return form.search != "never"
        noun = form.slot.startswith("noun")
        if noun and self._stands_alone(form, _beside(text, tokens, span[0], -1), _beside(text, tokens, span[1], 1)):
            return True
        # "hombres chinos": where the adjective follows, the word after a noun is no noun.
        return not (noun and self.people.side == "before") and self._described(tokens, *span)

    def _stands_alone(self, form: Form, previous: str, following: str) -> bool:
        """True for the nouns of "los chinos" and "un marroquí fue", not of "productos chinos" and "un viejo coche"."""
        people = self.people
        if form.slot not in _PLURAL_NOUNS:
            return previous in people.articles and following in people.verbs
        if people.side == "after":  # "blacks", "Mexicans": an English adjective has no plural
            return True
        # "los viejos libros": the plural noun that a Spanish plural adjective describes ends in s.
        open_end = not following.endswith("s") or following in people.followers | people.copulas
        return open_end and (not previous or previous in people.determiners)

    def _described(self, tokens: list["Token"], first: int, last: int) -> bool:
        """True where a noun for people stands beside ("black people"), or the text says who is so ("I am black")."""
        beside = last + 1 if self.people.side == "after" else first - 1
        if 0 <= beside < len(tokens) and tokens[beside].key in self.people.nouns:
            return True
        before = [token.key for token in tokens[max(0, first - 2) : first]]
        if len(before) < 2 or before[1] not in self.people.copulas:
            return False
        return before[0] in self.people.subjects or before[0] in self.people.nouns


@dataclass(frozen=True)
class Token:
    """A word of a text: its characters, and the key under which it is looked up."""

    start: int
    end: int
    key: str


def _tokens(text: str) -> list[Token]:
    links = [found.span() for found in _LINKS.finditer(text)] if _MAY_LINK.search(text) else []
    return [
        Token(found.start(), found.end(), fold(found.group()))
        for found in WORD.finditer(text)
        if not any(start <= found.start() < end for start, end in links)
    ]


def _beside(text: str, tokens: list[Token], at: int, step: int) -> str:
    """The word next to a token; "" where the sentence begins or ends there, a comma for any other mark between."""
    if not 0 <= at + step < len(tokens):
        return ""
    left, right = sorted((at, at + step))
    gap = text[tokens[left].end : tokens[right].start]
    if gap.isspace():
        return tokens[at + step].key
    return "" if _SENTENCE_MARK.search(gap) else ","


def fold(word: str) -> str:
    """A word as it is looked up: composed accents, case folded.

    >>> fold("MUSULMA\\u0301N") == "musulmán"
    True
    """
    return unicodedata.normalize("NFC", word).casefold()


@lru_cache(maxsize=8192)
def words(surface: str) -> tuple[str, ...]:
    """The folded words of a surface; hyphens and spaces separate alike.

    >>> words("African-American")
    ('african', 'american')
    """
    return tuple(fold(word) for word in WORD.findall(surface))


def _matches(text: str, tokens: list[Token], key: tuple[str, ...]) -> bool:
    if tuple(token.key for token in tokens) != key:
        return False
    return all(_GAP.fullmatch(text[a.end : b.start]) for a, b in pairwise(tokens))


def _inside_compound(text: str, start: int, end: int) -> bool:
    """True for "anti-Muslim", "gay-friendly", "O'Black"; a possessive ("a Muslim's") is no compound."""
    before = start >= 2 and text[start - 1] in _HYPHENS + _APOSTROPHES and text[start - 2].isalnum()
    after = end + 1 < len(text) and text[end] in _HYPHENS and text[end + 1].isalnum()
    return before or after


@lru_cache(maxsize=4)
def load_lexicon(language: str) -> Lexicon:
    """The lexicon of a language; UsageError names the languages that exist, EvaluationSetError a fault in the file."""
    from veedor.evaluation.lexicon_file import path_of, read_lexicon

    return read_lexicon(path_of(language))
