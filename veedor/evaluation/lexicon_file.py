"""Read a lexicon's YAML and refuse what is wrong in it: unknown keys, repeated words, a term that is a control too.

The format is told in docs and by the models below. What a lexicon can do once it is read is `lexicon`.
"""

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field

from veedor.errors import EvaluationSetError, UsageError, unknown
from veedor.evaluation.lexicon import Form, Lexicon, People, Search, words
from veedor.settings import Closed, build

LEXICONS = Path(__file__).parent / "lexicons"
_AGREEMENT = {"ms": "-ms", "fs": "-fs", "mp": "-mp", "fp": "-fp"}
# YAML 1.1 reads a bare `no` or `false` as a boolean: `search: false` is how a file says "never".
_SEARCH = {True: "always", False: "never", "people": "people"}

Agreeing = dict[Literal["ms", "fs", "mp", "fp"], str]
Pair = Annotated[tuple[str, str], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
Gendered = dict[Literal["m", "f"], Pair]


class Surfaces(Closed):
    """How a word looks in each slot class it can fill."""

    adj: str | Agreeing | None = None
    noun: Pair | Gendered | None = None  # singular and plural
    phrase: str | None = None


class Also(Closed):
    """Further spellings and uses that are recognised in texts but never put into sentences."""

    adj: tuple[str | Agreeing, ...] = ()
    noun: tuple[Pair | Gendered, ...] = ()
    phrase: tuple[str, ...] = ()


class Entry(Surfaces):
    """A word: canonical key, surfaces, Zipf frequency."""

    term: str = Field(min_length=1)
    band: float | None = Field(None, ge=0, le=8)


class TermEntry(Entry):
    """A word that names a group."""

    search: Literal[True, False, "people"] = True
    also: Also = Also()


class ControlEntry(Entry):
    """A neutral word; its valence is that of a published lexicon, or a person has reviewed it."""

    valence: float | None = Field(None, ge=0, le=0)
    reviewed: bool | None = None


class Names(Closed):
    """What readers call an axis or group, in the languages of the reports."""

    en: str
    es: str


class Group(Closed):
    """A group and its terms."""

    names: Names
    terms: tuple[TermEntry, ...] = Field(min_length=1)


class Axis(Closed):
    """A protected characteristic and its groups."""

    names: Names
    groups: dict[str, Group] = Field(min_length=1)


class PeopleEntry(Closed):
    """The words that show that a text speaks of people."""

    side: Literal["after", "before"]
    nouns: tuple[str, ...]
    copulas: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    determiners: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    things: tuple[str, ...] = ()


class LexiconFile(Closed):
    """A lexicon as it is written."""

    language: str
    version: int = Field(ge=1)
    people: PeopleEntry | None = None
    axes: dict[str, Axis] = Field(min_length=1)
    controls: dict[Literal["adj", "noun", "phrase"], tuple[ControlEntry, ...]]


def path_of(language: str, folder: Path = LEXICONS) -> Path:
    """The lexicon file of a language; UsageError where there is none."""
    path = folder / f"{language}.yaml"
    known = [found.stem for found in folder.glob("*.yaml")]
    if language not in known:
        raise UsageError(unknown("lexicon language", language, known))
    return path


def read_lexicon(path: Path) -> Lexicon:
    """Read, check and index a lexicon file; EvaluationSetError lists what is wrong in it."""
    content = read_strict_yaml(path)
    try:
        file = build(LexiconFile, content, str(path))
    except UsageError as error:
        raise EvaluationSetError(str(error)) from error
    forms = (*_term_forms(file), *_control_forms(file))
    faults = [*_faults(file), *_clashes(forms)]
    if faults:
        raise EvaluationSetError(f"{path}: " + "; ".join(faults))
    return Lexicon(
        language=file.language,
        version=file.version,
        forms=forms,
        group_names=_group_names(file),
        people=_people(file.people),
    )


def _people(entry: PeopleEntry | None) -> People:
    if entry is None:
        return People()
    return People(
        side=entry.side,
        nouns=frozenset(entry.nouns),
        copulas=frozenset(entry.copulas),
        subjects=frozenset(entry.subjects),
        determiners=frozenset(entry.determiners),
        followers=frozenset(entry.followers),
        articles=frozenset(entry.articles),
        verbs=frozenset(entry.verbs),
        things=frozenset(entry.things),
    )


def _group_names(file: LexiconFile) -> dict[str, dict[str, str]]:
    names = {}
    for axis, content in file.axes.items():
        names[axis] = content.names.model_dump()
        for group, entry in content.groups.items():
            names[f"{axis}/{group}"] = entry.names.model_dump()
    return names


def _term_forms(file: LexiconFile) -> Iterator[Form]:
    for axis, group, entry in _entries(file):
        search: Search = _SEARCH[entry.search]  # type: ignore[assignment]
        for slot, surface in surfaces(entry):
            yield Form(surface, slot, entry.term, axis, group, entry.band, True, search)
        for adj in entry.also.adj:
            yield from _recognised(axis, group, entry, Surfaces(adj=adj))
        for noun in entry.also.noun:
            yield from _recognised(axis, group, entry, Surfaces(noun=noun))
        for phrase in entry.also.phrase:
            yield from _recognised(axis, group, entry, Surfaces(phrase=phrase))


def _recognised(axis: str, group: str, entry: TermEntry, also: Surfaces) -> Iterator[Form]:
    search: Search = _SEARCH[entry.search]  # type: ignore[assignment]
    for slot, surface in surfaces(also):
        yield Form(surface, slot, entry.term, axis, group, entry.band, False, search)


def _control_forms(file: LexiconFile) -> Iterator[Form]:
    for entries in file.controls.values():
        for entry in entries:
            for slot, surface in surfaces(entry):
                yield Form(surface, slot, entry.term, band=entry.band)


def _entries(file: LexiconFile) -> Iterator[tuple[str, str, TermEntry]]:
    for axis, content in file.axes.items():
        for group, members in content.groups.items():
            for entry in members.terms:
                yield axis, group, entry


def surfaces(entry: Surfaces) -> Iterator[tuple[str, str]]:
    """Slot class and surface of every form of an entry.

    >>> list(surfaces(Surfaces(noun=["Muslim", "Muslims"])))
    [('noun', 'Muslim'), ('noun-p', 'Muslims')]
    """
    if isinstance(entry.adj, str):
        yield "adj", entry.adj
    elif entry.adj:
        yield from ((f"adj{_AGREEMENT[key]}", surface) for key, surface in entry.adj.items())
    if isinstance(entry.noun, tuple):
        yield from zip(("noun", "noun-p"), entry.noun, strict=True)
    elif entry.noun:
        for gender, pair in entry.noun.items():
            yield from zip((f"noun-{gender}s", f"noun-{gender}p"), pair, strict=True)
    if entry.phrase:
        yield "phrase", entry.phrase


def _faults(file: LexiconFile) -> Iterator[str]:
    for axis, content in file.axes.items():
        seen: dict[str, str] = {}
        for group, members in content.groups.items():
            for entry in members.terms:
                yield from _entry_faults(entry, f"{axis}/{group}", file.people is not None)
                if entry.term in seen:
                    yield f"term {entry.term!r} stands twice in axis {axis} ({seen[entry.term]} and {group}); keep one"
                seen[entry.term] = group
    for slot, controls in file.controls.items():
        keys = [control.term for control in controls]
        for control in controls:
            yield from _entry_faults(control, f"controls/{slot}", True)
            other = [name for name in ("adj", "noun", "phrase") if name != slot and getattr(control, name)]
            if other or not getattr(control, slot):
                yield f"control {control.term!r} in controls/{slot} must have the key {slot!r} and no other slot class"
            if control.valence is None and not control.reviewed:
                yield f"control {control.term!r} says neither `valence: 0.0` nor `reviewed: true`"
        yield from (f"control {key!r} stands twice in controls/{slot}; keep one" for key in _repeated(keys))


def _entry_faults(entry: Entry, where: str, has_people: bool) -> Iterator[str]:
    if entry.term != entry.term.lower():
        yield f"{where}: key {entry.term!r} must be lower case: {entry.term.lower()!r}"
    if not any(True for _ in surfaces(entry)):
        yield f"{where}: {entry.term!r} has no surface; give it adj, noun or phrase"
    if isinstance(entry, TermEntry) and entry.search == "people" and not has_people:
        yield f"{where}: {entry.term!r} has `search: people`, but the file has no `people:` section"


def _clashes(forms: tuple[Form, ...]) -> Iterator[str]:
    """Surfaces that mean two things: a term and a control, or two terms."""
    owner: dict[tuple[str, ...], Form] = {}
    for form in forms:
        key = words(form.surface)
        first = owner.setdefault(key, form)
        if first.control != form.control:
            yield f"{form.surface!r} is both the term {first.term!r} of {first.axis}/{first.group} and a control"
        elif not form.control and (first.axis, first.term) != (form.axis, form.term):
            one, two = (f"{f.term!r} ({f.axis}/{f.group})" for f in (first, form))
            yield f"{form.surface!r} is a surface of {one} and of {two}; a word in a text must have one meaning"


def _repeated(keys: list[str]) -> list[str]:
    return sorted({key for key in keys if keys.count(key) > 1})


class _Strict(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error (YAML readers usually keep the last, silently)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def read_strict_yaml(path: Path) -> dict[str, Any]:
    """A YAML mapping without repeated keys; EvaluationSetError names file and line otherwise."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Strict)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise EvaluationSetError(
            f"cannot read {path}: {error}; expected YAML in UTF-8 without repeated keys"
        ) from error
    if not isinstance(content, dict):
        raise EvaluationSetError(f"{path} holds a {type(content).__name__}, expected keys and values (key: value)")
    return content
