"""Public formats, recognised by their columns. What each file means is said in the file of its name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from veedor.evaluation.catalogue import CATALOGUE, CatalogueEntry
from veedor.evaluation.columns import Reading
from veedor.evaluation.hatecheck import LABEL_MEANING as HATECHECK_LABELS
from veedor.evaluation.hatecheck import read_hatecheck
from veedor.evaluation.lexicon import Lexicon
from veedor.evaluation.madlibs import LABEL_MEANING as MADLIBS_LABELS
from veedor.evaluation.madlibs import read_madlibs


@dataclass(frozen=True)
class Format:
    """A public format: its entry in the catalogue, what its labels mean, and the function that reads it."""

    entry: CatalogueEntry
    label_meaning: Mapping[str, str]
    read: Callable[[pd.DataFrame, Lexicon, Path], Reading]


FORMATS: Mapping[str, Format] = {
    "bias-madlibs": Format(CATALOGUE["bias-madlibs"], MADLIBS_LABELS, read_madlibs),
    "hatecheck": Format(CATALOGUE["hatecheck"], HATECHECK_LABELS, read_hatecheck),
}


def recognise(columns: Iterable[str]) -> Format | None:
    """The public format that has these columns, or None for a set of the user's own.

    >>> recognise(["Text", "Label", "Template"]).entry.name
    'bias-madlibs'
    >>> recognise(["text", "label"]) is None
    True
    """
    names = set(columns)
    if "text" in names:
        return None
    return next((form for form in FORMATS.values() if set(form.entry.recognised_by) <= names), None)
