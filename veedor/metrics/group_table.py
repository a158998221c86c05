"""The table of groups: how often each gets the target, its error rates where the set has labels, and its AUCs.

Every row of the set counts, whichever group it has: rows without one are the group "unknown", control words "controls".
A number that a cell is too empty for is missing, and `reason` says why. Bounds are exact, 95 %; since texts from
templates are not independent they are description.
"""

import numpy as np
import pandas as pd

from veedor.metrics.crossed import Bools
from veedor.metrics.groups import bnsp_auc, bpsn_auc, subgroup_auc
from veedor.metrics.rates import clopper_pearson
from veedor.records import Note

UNKNOWN = "unknown"
CONTROLS = "controls"
TABLE = {
    "axis": "str", "group": "str", "n": "int64", "n_positive": "int64", "rate": "float64", "low": "float64",
    "high": "float64", "mean_margin": "float64", "n_labelled": "int64", "false_positive_rate": "float64",
    "fpr_low": "float64", "fpr_high": "float64", "false_negative_rate": "float64", "fnr_low": "float64",
    "fnr_high": "float64", "subgroup_auc": "float64", "bpsn_auc": "float64", "bnsp_auc": "float64", "reason": "object",
}  # fmt: skip


def group_table(flat: pd.DataFrame, *, target: str) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """One line for each group of a flat frame (see `flat.flatten`), by name, whatever the order of the rows."""
    places = _places(flat)
    positive = flat["positive"].to_numpy(dtype=bool)
    labelled = _labelled(flat)
    harmful = labelled & (flat["label_mapped"] == target).to_numpy(dtype=bool)
    lines = []
    for axis, group in sorted(set(places.itertuples(index=False, name=None))):
        mine = ((places["axis"] == axis) & (places["group"] == group)).to_numpy()
        lines.append(
            {"axis": axis, "group": group}
            | _answers(flat, mine, positive)
            | _errors(mine & labelled, positive, harmful)
            | _ranking(flat, mine, labelled, harmful)
        )
    table = pd.DataFrame(lines, columns=list(TABLE)).astype(TABLE)
    notes = () if labelled.any() else (Note(code="labels_unmapped"),)
    return table, notes


def _places(flat: pd.DataFrame) -> pd.DataFrame:
    control = flat["control"].astype(bool)
    axis = flat["axis"].fillna(UNKNOWN).mask(control, CONTROLS)
    return pd.DataFrame({"axis": axis.astype(str), "group": flat["group"].fillna(UNKNOWN).mask(control, CONTROLS)})


def _labelled(flat: pd.DataFrame) -> Bools:
    """Rows whose label holds: mapped to the model's, and not of a text whose meaning a swap may have changed."""
    changed = flat["inserted"].astype(bool) & (flat["symmetric"] == "no")
    mask: Bools = (flat["label_mapped"].notna() & ~changed).to_numpy(dtype=bool)
    return mask


def _answers(flat: pd.DataFrame, mine: Bools, positive: Bools) -> dict[str, object]:
    total, count = int(mine.sum()), int((mine & positive).sum())
    low, high = clopper_pearson(count, total, level=0.975)
    margins = flat["margin"].to_numpy(dtype=np.float64)[mine]
    return {
        "n": total,
        "n_positive": count,
        "rate": count / total,
        "low": low,
        "high": high,
        "mean_margin": float(margins.mean()),
    }


def _errors(mine: Bools, positive: Bools, harmful: Bools) -> dict[str, object]:
    line: dict[str, object] = {"n_labelled": int(mine.sum())}
    kinds = (("false_positive_rate", "fpr", ~harmful, positive), ("false_negative_rate", "fnr", harmful, ~positive))
    for name, short, truth, wrong in kinds:
        total, count = int((mine & truth).sum()), int((mine & truth & wrong).sum())
        low, high = clopper_pearson(count, total, level=0.975)
        line |= {name: count / total if total else None, f"{short}_low": low, f"{short}_high": high}
    return line


def _ranking(flat: pd.DataFrame, mine: Bools, labelled: Bools, harmful: Bools) -> dict[str, object]:
    truth, group = harmful[labelled], mine[labelled]
    scores = flat["margin"].to_numpy(dtype=np.float64)[labelled]
    measures = {"subgroup_auc": subgroup_auc, "bpsn_auc": bpsn_auc, "bnsp_auc": bnsp_auc}
    line: dict[str, object] = {name: measure(truth, scores, group) for name, measure in measures.items()}
    checks = (
        (not labelled.any(), "no_labels"),
        (not group.any(), "no_labels_in_group"),
        (not (group & truth).any(), "no_positives"),
        (not (group & ~truth).any(), "no_negatives"),
        (not (~group & truth).any() or not (~group & ~truth).any(), "no_background"),
    )
    return line | {"reason": next((code for broken, code in checks if broken), None)}
