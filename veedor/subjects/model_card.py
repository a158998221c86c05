"""Who a model is: what can be computed from it, and what its maker declares in the front matter of a model card."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from veedor.records import SubjectCard
from veedor.subjects.digests import tokenizer_digest, weights_digest

if TYPE_CHECKING:
    from veedor.subjects.subject import Subject


@dataclass(frozen=True)
class Declared:
    """What a folder says of its model and cannot be computed."""

    stored_dtype: str | None = None
    language: tuple[str, ...] = ()
    licence: str | None = None


def describe(subject: "Subject", declared: Declared) -> SubjectCard:
    """The card of a subject: architecture, labels, size, precision and digests."""
    from veedor.subjects.anatomy import dtype_of

    model = subject.model
    audited = dtype_of(model)
    stored = declared.stored_dtype or audited
    return SubjectCard(
        name=subject.name,
        architecture=type(model).__name__,
        model_type=str(model.config.model_type),
        labels=subject.labels,
        head=subject.head,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        window=subject.window,
        stored_dtype=stored,
        audited_dtype=audited,
        weights_digest=weights_digest(model, stored_dtype=stored),
        tokenizer_digest=tokenizer_digest(subject.tokenizer),
        language=declared.language,
        licence=declared.licence,
    )


def read_model_card(files: Sequence[Path], *, stored_dtype: str | None = None) -> Declared:
    """Language and licence from the first of these files that declares either; a card that cannot be read says none."""
    for file in files:
        matter = front_matter(file)
        languages = plain(matter.get("language", matter.get("languages")))
        licence = plain(matter.get("license", matter.get("licence")))
        if languages or licence:
            return Declared(stored_dtype, tuple(languages), licence[0] if licence else None)
    return Declared(stored_dtype)


def front_matter(file: Path) -> dict[str, Any]:
    """The YAML of a `.yaml` file or between the first two `---` lines of a Markdown file; empty where there is none."""
    if not file.is_file():
        return {}
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".md":
        lines = text.splitlines()
        if not lines or lines[0].strip() != "---":
            return {}
        text = "\n".join(lines[1 : next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), 1)])
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError:
        return {}  # cards are prose: one that is no YAML declares nothing
    return content if isinstance(content, dict) else {}


def plain(value: object) -> list[str]:
    """One value or a list of them as text; YAML reads Norwegian, `no`, as false.

    >>> plain("es"), plain(["en", False]), plain(None)
    (['es'], ['en', 'no'], [])
    """
    values = value if isinstance(value, list) else [value]
    return ["no" if own is False else str(own) for own in values if own not in (None, "")]
