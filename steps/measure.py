"""Measure term-swap effects, attribution contrasts and group metrics. No policy but the scale, and no judgement."""

from typing import TYPE_CHECKING

from veedor.progress import Progress, silent
from veedor.records import Attributions, Decisions, EvaluationSet, Findings
from veedor.settings import Settings

if TYPE_CHECKING:
    from veedor.metrics.attribution_contrast import Explained


def measure(
    evaluation: EvaluationSet,
    decisions: Decisions,
    attributions: Attributions | None,
    settings: Settings,
    progress: Progress = silent,
) -> Findings:
    """Everything measured on an audit's rows, whatever the policy will make of it."""
    from veedor.metrics.attribution_contrast import measure_attribution
    from veedor.metrics.bias import measure_swaps, stack
    from veedor.metrics.contrasts import CONTEXTS, EFFECTS
    from veedor.metrics.flat import flatten
    from veedor.metrics.group_table import group_table
    from veedor.metrics.pairs import TABLE as PAIRS

    explained = explained_methods(attributions, settings)
    total = len(explained) + 2
    flat = flatten(evaluation.rows, decisions.rows, scale=settings.policy.scale)
    progress("measure", 0, total)
    swaps, notes = measure_swaps(flat, scale=settings.policy.scale)
    progress("measure", 1, total)
    groups, group_notes = group_table(flat, target=decisions.target)
    parts = [swaps]
    for done, method in enumerate(explained, start=2):
        progress("measure", done, total)
        parts.append(measure_attribution(flat, method, seed=settings.seed))
    progress("measure", total, total)
    return Findings(
        scale=settings.policy.scale,
        target=decisions.target,
        findings=tuple(finding for part in parts for finding in part.findings),
        notes=(*notes, *group_notes),
        effects=stack([part.effects for part in parts], EFFECTS),
        contexts=stack([part.contexts for part in parts], CONTEXTS),
        groups=groups,
        pairs=stack([part.pairs for part in parts], PAIRS),
    )


def explained_methods(attributions: Attributions | None, settings: Settings) -> "list[Explained]":
    """What each method found, by name; additive signed methods speak in the units of the score."""
    from veedor.metrics.attribution_contrast import Explained
    from veedor.metrics.bias import UNITS

    if attributions is None or attributions.rows.empty:
        return []
    found = []
    for name, rows in sorted(attributions.rows.groupby("method"), key=lambda part: str(part[0])):
        declared = attributions.methods.get(str(name), {})
        signed, additive = bool(declared.get("signed")), bool(declared.get("additive"))
        units = UNITS[settings.policy.scale] if signed and additive else "method"
        found.append(Explained(str(name), units, signed, rows[["id", "span_score"]]))
    return found
