"""Rows made ready for contrasts: which word stands in which context, its value, and what the controls say there.

A context is a template and a slot class. Values are centred within each context at the mean of its reference words, so
that adjective, noun and phrase slots can be averaged. Contexts are then averaged within their form where forms are the
clusters. Everything is sorted by name, so the order of the rows that come in changes no bit of what goes out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from veedor.metrics.constants import FORMS_AS_CLUSTERS
from veedor.metrics.crossed import Bools, Floats, Integers, grid

Clusters = Literal["contexts", "forms"]
WORD_KEYS = ["control", "axis", "group", "term"]


@dataclass(frozen=True)
class Material:
    """Usable rows with a word and a value, as codes into the tables of contexts and words."""

    rows: pd.DataFrame  # sorted by id
    value: Floats  # (rows,)
    context: Integers  # (rows,) code into `contexts`
    word: Integers  # (rows,) code into `words`
    contexts: pd.DataFrame  # cluster, template, slot; sorted
    words: pd.DataFrame  # control, axis, group, term, subwords, band; sorted
    clusters: Clusters

    @cached_property
    def control_word(self) -> Bools:
        """Whether each word is a control. (words,)."""
        return self.words["control"].to_numpy(dtype=bool)

    @cached_property
    def is_control(self) -> Bools:
        """Whether each row is a control's. (rows,)."""
        mask: Bools = self.control_word[self.word]
        return mask

    @cached_property
    def term_name(self) -> NDArray[np.object_]:
        """Canonical word of each word. (words,)."""
        return self.words["term"].to_numpy(dtype=object)

    @cached_property
    def cluster_name(self) -> NDArray[np.object_]:
        """Cluster of each context. (contexts,)."""
        return self.contexts["cluster"].to_numpy(dtype=object)

    @cached_property
    def rows_of_word(self) -> Integers:
        """Number of rows of each word. (words,)."""
        return np.bincount(self.word, minlength=len(self.words))

    def of_words(self, column: str) -> Floats:
        """A numeric column of the table of words: subwords or band. (words,)."""
        return self.words[column].to_numpy(dtype=np.float64)

    def control_mean(self) -> Floats:
        """Mean value of the control rows of each context, NaN where there are none. (contexts,)."""
        return _mean_by(self.context, self.value, self.is_control, len(self.contexts))

    def centred(self) -> Floats:
        """Value of each row minus the mean of the controls in its context, NaN without controls. (rows,)."""
        centred: Floats = self.value - self.control_mean()[self.context]
        return centred


@dataclass(frozen=True)
class Panel:
    """Centred cell means of the words of two sides, over the contexts that hold both."""

    cells: Floats  # (contexts, words), NaN where missing
    context: Integers  # (contexts,) codes
    word: Integers  # (words,) codes
    of: Bools  # (words,)
    against: Bools


def prepare(rows: pd.DataFrame, value: Floats, clusters: Clusters) -> Material:
    """Material of the rows that have a word; `rows` is a flat frame (see `flat`), `value` one number a row."""
    kept = rows["term"].notna().to_numpy() & (rows["control"].to_numpy(dtype=bool) | rows["group"].notna().to_numpy())
    chosen, numbers = rows[kept].reset_index(drop=True), value[kept]
    cluster = chosen["form"].fillna(chosen["template"]) if clusters == "forms" else chosen["template"]
    places = pd.DataFrame({"cluster": cluster, "template": chosen["template"], "slot": chosen["slot"].fillna("")})
    context, contexts = _codes(places.astype(str))
    names = chosen[WORD_KEYS].assign(control=chosen["control"].astype(bool))
    names[["axis", "group"]] = names[["axis", "group"]].fillna("").where(~names["control"], "")
    word, words = _codes(names.astype({key: str for key in WORD_KEYS[1:]}))
    for column in ("subwords", "band"):
        known = chosen[column].to_numpy(dtype=np.float64)
        words[column] = _mean_by(word, np.nan_to_num(known), ~np.isnan(known), len(words))
    return Material(chosen, numbers, context, word, contexts, words, clusters)


def choose_clusters(rows: pd.DataFrame) -> tuple[Clusters, int]:
    """Forms where the set names enough of them, else contexts; and how many forms it names."""
    forms = int(rows.loc[rows["term"].notna(), "form"].nunique())
    return ("forms" if forms >= FORMS_AS_CLUSTERS else "contexts"), forms


def panel(material: Material, of: Integers, against: Integers) -> Panel:
    """The words `of` beside the words `against` (codes), in the contexts that hold both sides."""
    side = np.zeros(len(material.words), dtype=np.int8)
    side[against], side[of] = 2, 1
    role = side[material.word]
    size = len(material.contexts)
    both = _seen(material.context[role == 1], size) & _seen(material.context[role == 2], size)
    used = np.flatnonzero((role > 0) & both[material.context])
    centre = _mean_by(material.context[used], material.value[used], role[used] == 2, size)
    centred = material.value[used] - centre[material.context[used]]
    context, row = np.unique(material.context[used], return_inverse=True)
    word, column = np.unique(material.word[used], return_inverse=True)
    cells = grid(centred, row, column, (len(context), len(word)))
    return Panel(cells, context, word, side[word] == 1, side[word] == 2)


def narrow(wide: Panel, word: int) -> Panel:
    """The panel of one word of the first side: the contexts that hold it, and the second side's words in them."""
    column = np.flatnonzero(wide.word == word)
    here = ~np.isnan(wide.cells[:, column]).all(axis=1)
    kept = (~np.isnan(wide.cells[here]).all(axis=0)) & wide.against
    kept[column] = True
    chosen = np.flatnonzero(kept)
    return Panel(
        wide.cells[np.ix_(here, chosen)],
        wide.context[here],
        wide.word[chosen],
        ~wide.against[chosen],
        wide.against[chosen],
    )


def by_cluster(material: Material, shown: Panel) -> tuple[Floats, Sequence[str]]:
    """Average a panel's contexts within their cluster. (clusters, words), and the clusters' names."""
    names = material.cluster_name[shown.context].astype(str)
    clusters, code = np.unique(names, return_inverse=True)
    if len(clusters) == len(names):
        return shown.cells, list(clusters)
    context, word = np.nonzero(~np.isnan(shown.cells))
    cells = grid(shown.cells[context, word], code[context], word, (len(clusters), len(shown.word)))
    return cells, list(clusters)


def offered(material: Material, shown: Panel, clusters: Sequence[str], used: Bools) -> Integers:
    """How many of the used clusters each word could stand in: those with a context of a slot class it has. (words,).

    An adjective is not rare for want of contexts that take a noun.
    """
    slot = material.contexts["slot"].to_numpy(dtype=object)[shown.context].astype(str)
    place = np.searchsorted(np.asarray(clusters, dtype=str), material.cluster_name[shown.context].astype(str))
    could = np.zeros((len(clusters), len(shown.word)), dtype=bool)
    for name in np.unique(slot):
        stands = (~np.isnan(shown.cells[slot == name])).any(axis=0)
        could[np.ix_(np.unique(place[slot == name]), np.flatnonzero(stands))] = True
    counts: Integers = could[used].sum(axis=0)
    return counts


def rows_in(material: Material, shown: Panel) -> Integers:
    """Positions of the rows of the first side's words in the panel's contexts."""
    mine = _seen(shown.word[shown.of], len(material.words))[material.word]
    here = _seen(shown.context, len(material.contexts))[material.context]
    return np.flatnonzero(mine & here)


def _seen(codes: Integers, size: int) -> Bools:
    mask = np.zeros(size, dtype=bool)
    mask[codes] = True
    return mask


def _mean_by(code: Integers, value: Floats, chosen: Bools, size: int) -> Floats:
    one_row = np.zeros(int(chosen.sum()), dtype=np.intp)
    means: Floats = grid(value[chosen], one_row, code[chosen], (1, size))[0]
    return means


def _codes(keys: pd.DataFrame) -> tuple[Integers, pd.DataFrame]:
    """Code of each row into the sorted table of the different rows."""
    table = keys.drop_duplicates().sort_values(list(keys.columns), ignore_index=True)
    index = pd.MultiIndex.from_frame(table)
    codes: Integers = index.get_indexer(pd.MultiIndex.from_frame(keys)).astype(np.intp)
    return codes, table
