"""The identity-term set: sentences of ours, crossed with every term and control word of a lexicon.

Rows of one template and slot class differ only in the word (and in "a" or "an"). Nothing is validated here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from veedor.errors import EvaluationSetError, UsageError, unknown
from veedor.evaluation.catalogue import CATALOGUE
from veedor.evaluation.grammar import article
from veedor.evaluation.lexicon import Form, Lexicon, load_lexicon
from veedor.evaluation.lexicon_file import read_strict_yaml
from veedor.evaluation.rows import as_excluded, as_rows, content_digest
from veedor.records import EvaluationSet
from veedor.settings import Closed, build

__all__ = ["Template", "build_identity_terms", "content_digest", "fill", "read_templates"]

TEMPLATES = Path(__file__).parent / "templates"
# What stands for {person}: text before and after the word, by slot class. "a" takes the word's sound.
FRAMES: dict[str, dict[str, tuple[str, str]]] = {
    "en": {"adj": ("a ", " person"), "noun": ("a ", ""), "phrase": ("a person ", "")},
    "es": {
        "adj-fs": ("una persona ", ""),
        "noun-ms": ("un ", ""),
        "noun-fs": ("una ", ""),
        "phrase": ("una persona ", ""),
    },
}
_SLUG = str.maketrans(" ", "-")


class Template(Closed):
    """A sentence with one {person} ({Person} at its start) and the sentiment it expresses."""

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    sentiment: Literal["negative", "neutral", "positive"]
    text: str


class _TemplateFile(Closed):
    language: str
    licence: str
    templates: tuple[Template, ...] = Field(min_length=1)


def read_templates(language: str, folder: Path = TEMPLATES) -> tuple[Template, ...]:
    """The sentences of a language; EvaluationSetError names what is wrong in their file."""
    path = folder / f"{language}.yaml"
    known = [found.stem for found in folder.glob("*.yaml")]
    if language not in known:
        raise UsageError(unknown("language of the identity terms", language, known))
    try:
        file = build(_TemplateFile, read_strict_yaml(path), str(path))
    except UsageError as error:
        raise EvaluationSetError(str(error)) from error
    faults = list(_faults(file.templates))
    if faults:
        raise EvaluationSetError(f"{path}: " + "; ".join(faults))
    return file.templates


def _faults(templates: tuple[Template, ...]) -> Iterator[str]:
    ids = [template.id for template in templates]
    texts = [template.text for template in templates]
    for template in templates:
        if template.text.lower().count("{person}") != 1 or template.text.count("{") != 1:
            yield f"template {template.id!r} must hold one {{person}} or {{Person}}, got {template.text!r}"
        if ("{Person}" in template.text) != template.text.startswith("{Person}"):
            yield f"template {template.id!r}: {{Person}} belongs at the start of the text and nowhere else"
        if template.text.startswith("{person}"):
            yield f"template {template.id!r} starts its sentence with {{person}}; write {{Person}}"
        if ids.count(template.id) > 1 or texts.count(template.text) > 1:
            yield f"template {template.id!r} or its text stands twice; keep one"


def fill(text: str, form: Form, language: str) -> tuple[str, int]:
    """A template's text with a word in its slot, and where the word starts.

    >>> fill("I met {person}.", Form("Asian", "adj", "asian"), "en")
    ('I met an Asian person.', 9)
    >>> fill("{Person} left.", Form("ciclista", "noun-fs", "ciclista"), "es")
    ('Una ciclista left.', 4)
    """
    before, after = FRAMES[language][form.slot]
    if before == "a ":
        before = f"{article(form.surface)} "
    at = text.lower().index("{person}")
    if text[at + 1] == "P":
        before = before[0].upper() + before[1:]
    head = text[:at] + before
    return head + form.surface + after + text[at + len("{person}") :], len(head)


def build_identity_terms(language: str) -> EvaluationSet:
    """Every template crossed with every term and control word, in file order; ids are `template/slot/word`."""
    templates, lexicon = read_templates(language), load_lexicon(language)
    forms = {slot: (*lexicon.terms(slot), *lexicon.controls(slot)) for slot in FRAMES[language]}
    rows = as_rows(_row(template, form, lexicon) for template in templates for slot in forms for form in forms[slot])
    entry = CATALOGUE[f"identity-terms-{language}"]
    return EvaluationSet(
        name=entry.name,
        language=language,
        licence=entry.licence,
        source=entry.source,
        intended_construct=entry.construct,
        digest=content_digest(rows),
        known_validity_issues=entry.known_validity_issues,
        not_valid_for=entry.not_valid_for,
        label_meaning={sentiment: sentiment for sentiment in ("negative", "neutral", "positive")},
        group_names={key: dict(names) for key, names in lexicon.group_names.items()},
        counts={
            "rows": len(rows),
            "contexts": int(rows["template"].nunique()),
            "forms": len(templates),
            "terms": int(rows.loc[~rows["control"], "term"].nunique()),
            "controls": int(rows.loc[rows["control"], "term"].nunique()),
        },
        rows=rows,
        excluded=as_excluded(()),
    )


def _row(template: Template, form: Form, lexicon: Lexicon) -> dict[str, object]:
    text, start = fill(template.text, form, lexicon.language)
    context = f"{template.id}/{form.slot}"
    return {
        "id": f"{context}/{form.term.translate(_SLUG)}",
        "text": text,
        "label": template.sentiment,
        "template": context,
        "form": template.id,
        "slot": form.slot,
        "axis": form.axis,
        "group": form.group,
        "term": form.term,
        "start": start,
        "end": start + len(form.surface),
        "control": form.control,
        "set": context,
        "symmetric": "yes",
        "surface": form.surface,
        "band": form.band,
    }
