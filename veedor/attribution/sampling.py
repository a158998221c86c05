"""Which rows are explained: the same words in every context chosen, because a contrast needs both sides everywhere.

Contexts are drawn first, spread over forms, the same forms for every slot class and axis; then words: at least 6 terms
a group and 24 controls a slot class, then as many more words, then contexts, as fit. What is drawn depends on names and
the seed alone, never on the order of rows. Knows no model and no method.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import pandas as pd

CONTEXTS, TERMS, CONTROLS = 12, 6, 24  # floors: what a policy needs by default
CONTROLS_A_TERM = 4  # how controls grow beside terms
CONTEXT, GROUP = ["template", "_slot"], ["_axis", "group"]


@dataclass(frozen=True)
class Size:
    """How much is drawn: contexts for each slot class and axis, terms a group, controls a slot class."""

    contexts: int = CONTEXTS
    terms: int = TERMS
    controls: int = CONTROLS


@dataclass(frozen=True)
class Sample:
    """The ids drawn, in the order of the rows, how many of what, and whether the floors exceed what was allowed."""

    ids: tuple[str, ...]
    counts: dict[str, int]
    over_budget: bool


def draw(rows: pd.DataFrame, *, budget: int, seed: int) -> Sample:
    """Draw from rows that hold a term or control word: the floors at least, where the rows have as much.

    rows: id, template, form, slot, axis, group, term, control, as in EvaluationSet. Contexts with words of both sides
    come first.
    """
    ranked = ranks(rows, seed)
    size = Size()
    taken = _taken(ranked, size)
    over_budget = int(taken.sum()) > budget
    for grow in () if over_budget else (_more_words, _more_contexts):
        size = _grown(ranked, size, grow, budget)
    taken = _taken(ranked, size)
    return Sample(tuple(ranked.loc[taken, "id"]), _counts(ranked[taken]), over_budget)


def ranks(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The rows with `context_rank` and `word_rank`: a row is drawn once both are below the sample's size."""
    named = rows.reset_index(drop=True).assign(
        _form=rows["form"].fillna(rows["template"]).to_numpy(),
        _slot=rows["slot"].fillna("").to_numpy(),
        _axis=rows["axis"].fillna("").to_numpy(),
    )
    return named.assign(context_rank=_context_ranks(named, seed), word_rank=_word_ranks(named, seed))


def _context_ranks(rows: pd.DataFrame, seed: int) -> pd.Series:
    """Rank of each row's context among those of its slot class and axis; controls go with the first axis drawn."""
    terms = rows[~rows["control"]]
    controlled = pd.MultiIndex.from_frame(rows.loc[rows["control"], CONTEXT])
    contexts = terms[[*CONTEXT, "_axis", "_form"]].drop_duplicates([*CONTEXT, "_axis"])
    contexts = contexts.assign(
        _lonely=~pd.MultiIndex.from_frame(contexts[CONTEXT]).isin(controlled),
        _by_form=[_draw_key(seed, form) for form in contexts["_form"]],
        _by_name=[_draw_key(seed, *name) for name in contexts[CONTEXT].itertuples(index=False)],
    ).sort_values("_by_name")
    contexts["_turn"] = contexts.groupby(["_slot", "_axis", "_lonely", "_form"]).cumcount()
    contexts = contexts.sort_values(["_lonely", "_turn", "_by_form", "_by_name"])
    contexts["rank"] = contexts.groupby(["_slot", "_axis"]).cumcount()
    of_terms = rows[[*CONTEXT, "_axis"]].merge(contexts, how="left", on=[*CONTEXT, "_axis"])["rank"]
    first = contexts.groupby(CONTEXT, as_index=False)["rank"].min()
    of_controls = rows[CONTEXT].merge(first, how="left", on=CONTEXT)["rank"]
    return of_controls.where(rows["control"], of_terms)


def _word_ranks(rows: pd.DataFrame, seed: int) -> pd.Series:
    """Rank of each term in its group and of each control in its slot class; words that fill half the contexts first."""
    contexts = rows.drop_duplicates([*CONTEXT, "_axis"]).groupby(["_slot", "_axis"]).size().rename("of").reset_index()
    ranked = pd.Series(0, index=rows.index)
    for control, home in ((False, GROUP), (True, ["_slot"])):
        own = rows[rows["control"] == control]
        words = own.groupby([*home, "term", *{"_slot", "_axis"}.difference(home)], as_index=False).size()
        words = (
            words.merge(contexts, on=["_slot", "_axis"]).groupby([*home, "term"], as_index=False)[["size", "of"]].sum()
        )
        words["_rare"] = 2 * words["size"] < words["of"]
        words["_key"] = [_draw_key(seed, *map(str, name)) for name in words[[*home, "term"]].itertuples(index=False)]
        words = words.sort_values(["_rare", "_key"])
        words["rank"] = words.groupby(home).cumcount()
        ranked[own.index] = own[[*home, "term"]].merge(words, on=[*home, "term"], how="left")["rank"].to_numpy()
    return ranked


def _taken(ranked: pd.DataFrame, size: Size) -> pd.Series:
    words = ranked["control"].map({True: size.controls, False: size.terms})
    taken: pd.Series = (ranked["context_rank"] < size.contexts) & (ranked["word_rank"] < words)
    return taken


def _more_words(size: Size) -> Size:
    return replace(size, terms=size.terms + 1, controls=size.controls + CONTROLS_A_TERM)


def _more_contexts(size: Size) -> Size:
    return replace(size, contexts=size.contexts + 1)


def _grown(ranked: pd.DataFrame, size: Size, grow: Callable[[Size], Size], budget: int) -> Size:
    """Grow step by step while the sample fits the budget and there is more to take."""
    most = int(max(ranked["context_rank"].max(), ranked["word_rank"].max(), 0)) + 1
    for _ in range(most):
        larger = grow(size)
        if int(_taken(ranked, larger).sum()) > budget:
            break
        size = larger
    return size


def _counts(drawn: pd.DataFrame) -> dict[str, int]:
    terms, controls = drawn[~drawn["control"]], drawn[drawn["control"]]
    return {
        "rows": len(drawn),
        "contexts": len(drawn.drop_duplicates(CONTEXT)),
        "forms": int(drawn["_form"].nunique()),
        "terms": len(terms.drop_duplicates([*GROUP, "term"])),
        "controls": len(controls.drop_duplicates(["term"])),
    }


def _draw_key(seed: int, *name: str) -> str:
    return hashlib.sha256("\x1f".join((str(seed), *name)).encode()).hexdigest()
