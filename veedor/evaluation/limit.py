"""Fewer rows, whole contexts: a sample that is still a crossed design. Nothing about the model is known here."""

import hashlib
from collections.abc import Iterator

import pandas as pd

from veedor.errors import UsageError
from veedor.evaluation.files import count
from veedor.evaluation.rows import content_digest
from veedor.records import EvaluationSet, Note


def limit_rows(evaluation: EvaluationSet, limit: int | None, *, seed: int) -> EvaluationSet:
    """At most `limit` rows, inserted ones counted: whole contexts, from every form in turn, by a seeded hash.

    At least one context stays, even where it alone is longer, and a note says so. Rows keep their order; a set that
    fits is returned as is.
    """
    if limit is None or len(evaluation.rows) <= limit:
        return evaluation
    if limit < 1:
        raise UsageError(f"limit is {limit}; expected 1 or more rows, or no limit")
    chosen = _contexts(evaluation.rows, limit, seed)
    rows = evaluation.rows[evaluation.rows["template"].isin(chosen)].reset_index(drop=True)
    values = {
        "limit": limit,
        "rows": len(rows),
        "contexts": len(chosen),
        "of_contexts": int(evaluation.rows["template"].nunique()),
        "seed": seed,
    }
    notes = [Note(code="limited", values=values)]
    if len(rows) > limit:
        notes.insert(0, Note(code="limit_exceeded", values={"limit": limit, "rows": len(rows)}))
    return evaluation.model_copy(
        update={
            "rows": rows,
            "digest": content_digest(rows),
            "counts": {**evaluation.counts, **count(rows)},
            "notes": (*evaluation.notes, *notes),
            "validation": {},
        }
    )


def _contexts(rows: pd.DataFrame, limit: int, seed: int) -> set[str]:
    """The contexts taken: each that still fits, until none does."""
    sizes = rows["template"].value_counts()
    chosen: set[str] = set()
    left = limit
    for context in _in_turn(rows, seed):
        size = int(sizes.get(context, 0))
        if size <= left or not chosen:
            chosen.add(context)
            left -= size
    return chosen


def _in_turn(rows: pd.DataFrame, seed: int) -> Iterator[str]:
    """Contexts in an order of their own: one of each form, then the next of each; forms and contexts by hash."""
    forms: dict[str, list[str]] = {}
    pairs = rows[["form", "template"]].astype(object).where(rows[["form", "template"]].notna(), "")
    for form, context in pairs.drop_duplicates("template").itertuples(index=False):
        forms.setdefault(form, []).append(context)
    queues = [sorted(forms[form], key=lambda context: _rank(context, seed)) for form in _by_rank(forms, seed)]
    for turn in range(max(map(len, queues), default=0)):
        yield from (queue[turn] for queue in queues if turn < len(queue))


def _by_rank(names: dict[str, list[str]], seed: int) -> list[str]:
    return sorted(names, key=lambda name: _rank(name, seed))


def _rank(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()
