"""The term-swap effect: how much terms move the model's answer more than control words do in the same contexts.

A lexical perturbation measure, after the counterfactual fairness metrics of Prabhakaran et al. (2019) and Garg et al.
(2019), with control words for the null. It says what the model does with words, nothing causal about people.
Policy-free: verdicts are `veedor.verdicts`'.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from veedor.metrics.constants import CONSTANT_OUTPUT
from veedor.metrics.contrasts import CONTEXTS, EFFECTS, Columns, Dropped, Measured, Quantity, measure_contrasts
from veedor.metrics.flat import Scale
from veedor.metrics.flips import flips, majority
from veedor.metrics.material import Material, choose_clusters, prepare
from veedor.metrics.pairs import choose_pairs, named, pairs_table, typical_controls
from veedor.records import Finding, Note

UNITS: dict[Scale, str] = {"logit": "logits", "probability": "probability"}


@dataclass(frozen=True)
class Tables:
    """Findings and the tables of `records.Findings` that go with them."""

    findings: tuple[Finding, ...]
    effects: pd.DataFrame
    contexts: pd.DataFrame
    pairs: pd.DataFrame


def measure_swaps(flat: pd.DataFrame, *, scale: Scale = "logit") -> tuple[Tables, tuple[Note, ...]]:
    """The term-swap effect of every group and every term of a flat frame (see `flat.flatten`), with its evidence."""
    clusters, forms = choose_clusters(flat)
    usable = flat["usable"].to_numpy(dtype=bool)
    material = prepare(flat[usable], flat.loc[usable, "value"].to_numpy(dtype=np.float64), clusters)
    constant = "constant_output" if answers_alike(material) else None
    dropped = Dropped.of(flat, flat["drop_reason"].fillna("").astype(str).where(~flat["usable"], ""))
    measured = measure_contrasts(material, Quantity("term_swap_effect", UNITS[scale]), dropped, constant)
    usual = majority(material)
    with_flips = [_with_flips(one, material, usual) for one in measured]
    return assemble(material, with_flips), _notes(material, forms, constant)


def answers_alike(material: Material) -> bool:
    """Whether the model gives every usable text, whatever its context, the same answer."""
    return len(material.value) > 0 and float(np.ptp(material.value)) <= CONSTANT_OUTPUT


def assemble(material: Material, measured: list[Measured]) -> Tables:
    """Put findings and their rows of the tables together, with minimal pairs."""
    partners, centred = typical_controls(material), material.centred()
    ids = list(material.rows["id"].astype(str))
    paired = [(one, choose_pairs(material, one, centred, partners)) for one in measured]
    findings = [(one.finding.model_copy(update={"examples": named(ids, pairs)}), pairs) for one, pairs in paired]
    return Tables(
        findings=tuple(finding for finding, _ in findings),
        effects=tabulate([one.effects for one in measured if one.effects is not None], EFFECTS),
        contexts=tabulate([one.contexts for one in measured if one.contexts is not None], CONTEXTS),
        pairs=pairs_table(material, findings),
    )


def tabulate(parts: list[Columns], kinds: dict[str, str]) -> pd.DataFrame:
    """One table of the columns of many findings, one below the other."""
    joined = {name: [part[name] for part in parts if len(part[name])] for name in kinds}
    return pd.DataFrame(
        {name: pd.Series(np.concatenate(joined[name]) if joined[name] else [], dtype=kinds[name]) for name in kinds}
    )


def stack(tables: list[pd.DataFrame], columns: dict[str, str]) -> pd.DataFrame:
    """Tables of the same columns, one below the other; empty ones keep their columns' kinds."""
    empty = pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})
    full = [table for table in tables if len(table)]
    return pd.concat(full, ignore_index=True)[list(columns)] if full else empty


def _with_flips(one: Measured, material: Material, usual: np.ndarray) -> Measured:
    if one.panel is None or one.finding.reference != "controls":
        return one
    finding = one.finding.model_copy(update={"flips": flips(material, one.panel, usual)})
    return Measured(finding, one.panel, one.effects, one.contexts)


def _notes(material: Material, forms: int, constant: str | None) -> tuple[Note, ...]:
    notes = []
    if constant:
        notes.append(Note(code="constant_output", values={"rows": len(material.rows)}))
    if not material.words["control"].any() and len(material.rows):
        notes.append(Note(code="no_controls"))
    if material.clusters == "contexts" and forms:
        notes.append(Note(code="few_forms", values={"forms": forms, "contexts": len(material.contexts)}))
    unknown = int((material.rows["symmetric"] == "unknown").sum())
    if unknown:
        notes.append(Note(code="symmetry_unknown", values={"rows": unknown}))
    return tuple(notes)
