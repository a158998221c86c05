"""Minimal pairs: the same context with a term and with a control word, for a reader to look at.

Typical, not extreme: those whose effect lies nearest to the finding's estimate, from different contexts and, for a
group, of different terms. The partner is the control row nearest to the controls' mean in the same context.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from veedor.metrics.constants import GROUP_EXAMPLES, TERM_EXAMPLES
from veedor.metrics.contrasts import Measured
from veedor.metrics.crossed import Floats, Integers
from veedor.metrics.material import Material, rows_in
from veedor.records import Finding

TABLE = {
    "finding": "str", "row": "str", "partner": "str", "text": "str", "partner_text": "str",
    "margin": "float64", "partner_margin": "float64", "probability": "float64", "partner_probability": "float64",
    "predicted": "str", "partner_predicted": "str",
}  # fmt: skip


def typical_controls(material: Material) -> Integers:
    """Row of the control nearest to the controls' mean in each context, -1 where there is none. (contexts,)."""
    controls = np.flatnonzero(material.is_control)
    context = material.context[controls]
    # Rounded, so that which of two equally near controls is shown does not hang on the last bit of a sum.
    away = np.round(np.abs(material.centred()[controls]), 9)
    order = np.lexsort((controls, away, context))
    first, position = np.unique(context[order], return_index=True)
    nearest = np.full(len(material.contexts), -1, dtype=np.intp)
    nearest[first] = controls[order][position]
    return nearest


def choose_pairs(material: Material, measured: Measured, centred: Floats, partners: Integers) -> list[tuple[int, int]]:
    """Rows of the examples of a finding, and of their partners; `centred` and `partners` are the material's."""
    finding = measured.finding
    if finding.estimate is None or measured.panel is None or finding.reference != "controls":
        return []
    rows = rows_in(material, measured.panel)
    away = np.round(np.abs(centred[rows] - finding.estimate), 9)
    wanted = TERM_EXAMPLES if finding.scope == "term" else GROUP_EXAMPLES
    chosen: list[int] = []
    contexts: set[int] = set()
    words: set[int] = set()
    for row in rows[np.lexsort((rows, away))]:
        context, word = int(material.context[row]), int(material.word[row])
        if context not in contexts and (finding.scope == "term" or word not in words):
            chosen.append(int(row))
            contexts.add(context)
            words.add(word)
        if len(chosen) == wanted:
            break
    return [(row, int(partners[material.context[row]])) for row in chosen]


def named(ids: Sequence[str], pairs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Pairs as "id|id"."""
    return tuple(f"{ids[row]}|{ids[partner]}" for row, partner in pairs)


def pairs_table(material: Material, found: Sequence[tuple[Finding, Sequence[tuple[int, int]]]]) -> pd.DataFrame:
    """One line a pair, with both texts and what the model answered to each."""
    names = [finding.id for finding, pairs in found for _ in pairs]
    rows = [row for _, pairs in found for row, _ in pairs]
    partners = [partner for _, pairs in found for _, partner in pairs]
    columns = ["id", "text", "margin", "probability", "predicted"]
    left = material.rows.iloc[rows][columns].reset_index(drop=True).rename(columns={"id": "row"})
    right = material.rows.iloc[partners][columns].reset_index(drop=True).rename(columns={"id": "partner"})
    right = right.rename(columns={name: f"partner_{name}" for name in columns[1:]})
    table = pd.concat([pd.Series(names, name="finding", dtype=object), left, right], axis=1)
    return table[list(TABLE)].astype(TABLE)
