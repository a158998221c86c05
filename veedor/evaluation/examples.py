"""What was swapped for what, as pairs of texts a person can read: for reviewing a set before any model sees it."""

from collections.abc import Iterator

import pandas as pd

from veedor.records import EvaluationSet

COLUMNS = ("context", "slot", "term", "original", "word", "kind", "group", "changed")


def swap_examples(evaluation: EvaluationSet, *, contexts: int | None = 20, words: int = 2) -> pd.DataFrame:
    """Original texts beside changed ones: for each context and slot, `words` control words and as many other terms.

    `kind` is "control" or "term". `contexts=None` shows all. Words are spread over the slot's, not always the first.
    """
    named = evaluation.rows[evaluation.rows["term"].notna()]
    pairs = named.assign(slot=named["slot"].astype(object).where(named["slot"].notna(), ""))
    found: list[dict[str, object]] = []
    for number, ((context, slot), members) in enumerate(pairs.groupby(["template", "slot"], sort=False)):
        if contexts is not None and number >= contexts:
            break
        found += list(_of_context(str(context), str(slot), members, words, number))
    return pd.DataFrame(found, columns=list(COLUMNS))


def _of_context(context: str, slot: str, members: pd.DataFrame, words: int, turn: int) -> Iterator[dict[str, object]]:
    terms = members[~members["control"]].sort_values("inserted", kind="stable")
    if terms.empty:
        return
    original = terms.iloc[0]
    others = terms.iloc[1:]
    for kind, rows in (("control", members[members["control"]]), ("term", others)):
        for at in sorted({(turn * words + step) % len(rows) for step in range(min(words, len(rows)))}):
            changed = rows.iloc[at]
            yield {
                "context": context,
                "slot": slot,
                "term": original["term"],
                "original": original["text"],
                "word": changed["term"],
                "kind": kind,
                "group": "" if kind == "control" else f"{changed['axis']}/{changed['group']}",
                "changed": changed["text"],
            }
