"""What an evaluation set covers, as small tables: rows with truth columns, contexts, counterfactual sets, groups.

Pure counting on frames; what the counts should be is said in `suite`. Only symmetric rows count towards coverage: the
others never enter a term-swap measure.
"""

import numpy as np
import pandas as pd

from veedor.evaluation.rows import mask

TABLES = ("rows", "contexts", "sets", "groups")
# A table that lacks a column is still counted, with the column empty; the suite says that it is missing.
_ASSUMED: dict[str, str | int | bool | None] = {
    **dict.fromkeys(
        ("id", "text", "label", "template", "slot", "axis", "group", "term", "set", "symmetric", "surface")
    ),
    **{"start": -1, "end": -1, "control": False, "inserted": False},
}


def tables_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The four tables that the suite looks at, each with an `id` that names its rows without quoting a text."""
    marked = with_truth_columns(rows)
    usable = marked[marked["symmetric"] != "no"]
    return {
        "rows": marked.drop(columns=[column for column in _ASSUMED if column not in rows]),
        "contexts": contexts(usable),
        "sets": counterfactual_sets(usable),
        "groups": groups(marked, usable),
    }


def with_truth_columns(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows, and what is true of each: blank text, group known, term in the text at word boundaries."""
    found = rows.copy()
    for column, neutral in _ASSUMED.items():
        if column not in found:
            found[column] = neutral
    slot = found["slot"].astype(object).where(found["slot"].notna(), "")
    found["context"] = found["template"].astype(object).where(found["template"].notna(), "").astype(str) + "|" + slot
    spans = [_span(*values) for values in found[["text", "start", "end", "surface"]].itertuples(index=False)]
    named = found["term"].notna()
    control = found["control"].astype(bool)
    grouped = found["axis"].notna() & found["group"].notna()
    found["text_not_blank"] = [isinstance(text, str) and bool(text.strip()) for text in found["text"]]
    found["term_has_group"] = ~named | control | grouped
    found["control_has_no_group"] = ~control | (named & found["axis"].isna() & found["group"].isna())
    found["term_in_text"] = ~named | np.array([inside for inside, _ in spans], dtype=bool)
    found["alike_in_context"] = _alike(found)
    found["term_at_word_boundaries"] = ~named | np.array([bounded for _, bounded in spans], dtype=bool)
    return found


def _alike(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Whether a row of the file differs from the first of its context and slot in its term only (and "a" or "an")."""
    alike = pd.Series(True, index=rows.index)
    own = rows[rows["term"].notna() & rows["text"].notna() & (rows["start"] >= 0)]
    own = own[~own["inserted"].astype(bool)]
    masked = pd.Series(
        [mask(text, start, end) for text, start, end in own[["text", "start", "end"]].itertuples(index=False)],
        index=own.index,
        dtype=object,
    )
    first = masked.groupby(own["context"]).transform("first")
    alike[own.index] = masked == first
    return alike


def contexts(usable: pd.DataFrame) -> pd.DataFrame:
    """One row a context and slot class: how many distinct terms and controls stand in it."""
    return _sides(usable, ["context"])


def counterfactual_sets(usable: pd.DataFrame) -> pd.DataFrame:
    """One row a set and slot class: whether it holds a term, a control, and one label."""
    named = usable.assign(set=usable["set"].astype(object).where(usable["set"].notna(), usable["template"]))
    found = _sides(named[named["term"].notna()], ["set", "context"])
    labels = named.groupby(["set", "context"], dropna=False, sort=True)["label"].nunique()
    found["one_label"] = [int(labels.get(key, 0)) <= 1 for key in zip(found["set"], found["context"], strict=True)]
    found["has_term"] = found["terms"] > 0
    found["has_control"] = found["controls"] > 0
    return found


def groups(marked: pd.DataFrame, usable: pd.DataFrame) -> pd.DataFrame:
    """One row a group: its rows, and among symmetric ones terms, contexts, and the share of their cells that exist."""
    keys = ["axis", "group"]
    terms = marked[marked["term"].notna() & ~marked["control"].astype(bool) & marked["group"].notna()]
    found = terms.groupby(keys, sort=True).size().rename("rows").reset_index()
    mine = usable.loc[usable.index.intersection(terms.index)]
    counted = mine.groupby(keys).agg(terms=("term", "nunique"), contexts=("context", "nunique"))
    cells = mine.drop_duplicates([*keys, "term", "context"]).groupby(keys).size().rename("cells")
    found = found.merge(counted.join(cells).reset_index(), on=keys, how="left").fillna({"terms": 0, "contexts": 0})
    full = (found["terms"] * found["contexts"]).clip(lower=1)
    found["coverage"] = found["cells"].fillna(0).astype(float) / full.astype(float)
    found["id"] = found["axis"].astype(str) + "/" + found["group"].astype(str)
    return found


def _sides(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    named = rows[rows["term"].notna()]
    control = named["control"].astype(bool)
    counted = pd.DataFrame(
        {
            "terms": named[~control].groupby(keys, sort=True)["term"].nunique(),
            "controls": named[control].groupby(keys, sort=True)["term"].nunique(),
        }
    )
    counted = counted.fillna(0).astype(int)
    # A context is named by its first row: its own name may quote the text.
    counted["id"] = named.groupby(keys, sort=True)["id"].first()
    return counted.reset_index()


def _span(text: object, start: int, end: int, surface: object) -> tuple[bool, bool]:
    """Whether the surface stands at [start, end), and whether no letter or digit touches it there."""
    if not isinstance(text, str) or not 0 <= start < end <= len(text):
        return False, False
    inside = not isinstance(surface, str) or text[start:end] == surface
    before = start == 0 or not text[start - 1].isalnum()
    after = end == len(text) or not text[end].isalnum()
    return inside, before and after
