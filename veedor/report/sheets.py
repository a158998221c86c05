"""The parts of a dossier that describe: the evaluation set, its checks, the groups' answers, the methods.

Counts and codes only. Nothing here is judged.
"""

import math
from typing import Any

import pandas as pd

from veedor.records import Attributions, Decisions, EvaluationSet, Findings, Reliability, finite
from veedor.report.dossier import (
    Check,
    DatasetChecks,
    DataSheet,
    GroupCell,
    GroupRow,
    MethodSheet,
    MethodValidity,
    Quantiles,
)
from veedor.report.faithfulness import faithfulness
from veedor.report.hypotheses import PLACEBO_LIMIT

LEVELS = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}
WHOLE = ("n", "n_positive", "n_labelled")


def data_sheet(evaluation: EvaluationSet) -> DataSheet:
    """E04: sizes of everything, per group and in all."""
    rows = evaluation.rows
    control = rows["control"].astype(bool)
    counts = {
        "rows": len(rows),
        "rows_with_terms": int((rows["term"].notna() & ~control).sum()),
        "rows_with_controls": int(control.sum()),
        "contexts": int(rows["template"].nunique()),
        "forms": int(rows["form"].nunique()),
        "groups": len(rows.loc[~control, ["axis", "group"]].dropna().drop_duplicates()),
        "terms": int(rows.loc[~control, "term"].nunique()),
        "controls": int(rows.loc[control, "term"].nunique()),
        "excluded": len(evaluation.excluded),
    }
    said = evaluation.model_dump(include=_SAID)
    return DataSheet(
        **said,
        columns=tuple(str(name) for name in rows.columns),
        counts=counts,
        cells=_cells(rows[~control]),
        excluded=counted(evaluation.excluded["reason"]),
    )


_SAID = {
    "name", "language", "licence", "source", "intended_construct", "digest", "known_validity_issues", "not_valid_for",
    "label_meaning", "group_names",
}  # fmt: skip


def _cells(rows: pd.DataFrame) -> tuple[GroupCell, ...]:
    named = rows.dropna(subset=["axis", "group"])
    return tuple(
        GroupCell(
            axis=str(axis),
            group=str(group),
            terms=int(own["term"].nunique()),
            rows=len(own),
            contexts=int(own["template"].nunique()),
        )
        for (axis, group), own in sorted(named.groupby(["axis", "group"], observed=True), key=lambda part: part[0])
    )


def dataset_checks(validation: dict[str, Any]) -> DatasetChecks:
    """E05: the validation result; texts never enter it."""
    if not validation:
        return DatasetChecks(success=None, great_expectations_version=None, checks=(), why_not="not_validated")
    version = validation.get("great_expectations_version")
    return DatasetChecks(
        success=bool(validation.get("success")),
        great_expectations_version=None if version is None else str(version),
        checks=tuple(_check(check) for check in validation.get("checks", [])),
        why_not=None,
    )


def _check(check: dict[str, Any]) -> Check:
    observed, cell, column = (check.get(name) for name in ("observed", "cell", "column"))
    return Check(
        id=str(check["id"]),
        column=None if column is None else str(column),
        expectation=str(check.get("expectation", "")),
        success=bool(check["success"]),
        severity=str(check.get("severity", "critical")),
        observed=None if observed is None else _plain(observed),
        unexpected_count=check.get("unexpected_count"),
        unexpected_ids=tuple(str(identity) for identity in check.get("unexpected_ids") or ()),
        cell=None if cell is None else _plain(cell),
    )


def _plain(value: object) -> str:
    return ", ".join(_plain(part) for part in value) if isinstance(value, list | tuple) else str(value)


def group_rows(evaluation: EvaluationSet, decisions: Decisions, findings: Findings) -> tuple[GroupRow, ...]:
    """E06: the groups' table, with the spread of the target's probability over each group's rows."""
    spread = _quantiles(evaluation, decisions)
    found = []
    for row in findings.groups.to_dict("records"):
        numbers = {str(name): _number(str(name), value) for name, value in row.items()}
        key = (str(row["axis"]), str(row["group"]))
        reason = None if row["reason"] is None or pd.isna(row["reason"]) else str(row["reason"])
        names = {"axis": key[0], "group": key[1], "reason": reason}
        found.append(GroupRow(**{**numbers, **names, "probability": spread.get(key)}))
    return tuple(found)


def _number(name: str, value: object) -> float | int | None:
    if not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return int(value) if name in WHOLE else float(value)


def _quantiles(evaluation: EvaluationSet, decisions: Decisions) -> dict[tuple[str, str], Quantiles]:
    rows = evaluation.rows[["id", "axis", "group", "control"]].merge(decisions.rows[["id", "probability"]], on="id")
    control = rows["control"].astype(bool)
    axis = rows["axis"].astype(object).where(~control, "controls")
    group = rows["group"].astype(object).where(~control, "controls")
    keyed = rows.assign(axis=axis.where(axis.notna(), "unknown"), group=group.where(group.notna(), "unknown"))
    found = {}
    for (axis_name, group_name), own in keyed.groupby(["axis", "group"])["probability"]:
        values = own.quantile(list(LEVELS.values()))
        quantiles = {name: float(value) for name, value in zip(LEVELS, values, strict=True)}
        found[(str(axis_name), str(group_name))] = Quantiles(**quantiles)
    return found


def method_validity(
    findings: Findings, attributions: Attributions | None, reliability: Reliability | None, concordance: float
) -> MethodValidity:
    """E09: what is known of each method's trustworthiness on this model."""
    names = () if attributions is None else tuple(sorted(attributions.methods))
    sheets = [] if attributions is None else [_method(name, findings, attributions, reliability) for name in names]
    refused = (
        [] if attributions is None else [_refused(name, why) for name, why in sorted(attributions.refused.items())]
    )
    return MethodValidity(
        sample={} if attributions is None else attributions.sample,
        methods=tuple([*sheets, *refused]),
        concordance_limit=concordance,
        placebo_limit=PLACEBO_LIMIT,
        faithfulness=faithfulness(reliability),
    )


def _method(name: str, findings: Findings, attributions: Attributions, reliability: Reliability | None) -> MethodSheet:
    tested = None if reliability is None else reliability.methods.get(name)
    declared = attributions.methods[name]
    rows = attributions.rows[attributions.rows["method"] == name]
    gaps = rows["gap"].dropna().abs().astype(float)
    own = [finding for finding in findings.findings if finding.method == name]
    flags = pd.Series(
        [flag for text in rows["flags"].fillna("") for flag in str(text).split("|") if flag], dtype=object
    )
    return MethodSheet(
        name=name,
        refused=None,
        unreliable=None if tested is None else tested.unreliable,
        marks=() if tested is None else tested.marks,
        gap_share=None if tested is None else tested.gap_share,
        targeted=bool(declared.get("targeted")),
        signed=bool(declared.get("signed")),
        options=dict(sorted((declared.get("options") or {}).items())),
        rows=len(rows),
        placebo_rate=next((one.placebo_rate for one in own if one.placebo_rate is not None), None),
        concordance=next((one.concordance for one in own if one.concordance is not None), None),
        gap_median=finite(float(gaps.median())) if len(gaps) else None,
        gap_largest=finite(float(gaps.max())) if len(gaps) else None,
        flags=counted(flags),
    )


def _refused(name: str, why: str) -> MethodSheet:
    nothing = dict.fromkeys(("placebo_rate", "concordance", "gap_median", "gap_largest"))
    return MethodSheet(name=name, refused=why, targeted=False, signed=False, options={}, rows=0, flags={}, **nothing)


def counted(values: "pd.Series[Any]") -> dict[str, int]:
    """How often each value occurs, by value."""
    return {str(value): int(count) for value, count in sorted(values.value_counts().items())}
