"""What makes an evaluation set valid, as Great Expectations suites over four tables, reduced to plain JSON.

The row table holds the set and derived truth columns (is the term really in the text, at word boundaries?); contexts,
counterfactual sets and groups are tables of their own, because a built-in expectation on a derived table is a hundred
times faster than a custom one on the rows. Texts never enter a result. Nothing about the model is checked here.
"""

import math
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from veedor.evaluation.coverage import TABLES, tables_of
from veedor.evaluation.rows import COLUMNS
from veedor.records import EvaluationSet, finite

Severity = Literal["critical", "warning"]
SHOWN_IDS = 20
# What a group-scope verdict asks for by default (`Policy.minimum`); a set below it is valid, but says less.
TERMS_A_GROUP = 6
CONTEXTS_A_GROUP = 12
CONTROLS_A_CONTEXT = 24
COVERAGE = 0.5


@dataclass(frozen=True)
class Check:
    """One expectation: `kind` names a class of Great Expectations, `table` is rows, contexts, sets or groups."""

    id: str
    table: str
    kind: str
    severity: Severity = "critical"
    arguments: Mapping[str, Any] = field(default_factory=dict)


def _true(id: str, table: str, column: str, severity: Severity = "critical") -> Check:
    return Check(id, table, "ExpectColumnValuesToBeInSet", severity, {"column": column, "value_set": [True]})


def _at_least(id: str, table: str, column: str, least: float) -> Check:
    return Check(id, table, "ExpectColumnValuesToBeBetween", "warning", {"column": column, "min_value": least})


def _present(column: str) -> Check:
    return Check(f"{column}_present", "rows", "ExpectColumnValuesToNotBeNull", "critical", {"column": column})


# An empty table passes every expectation about values: the counts come first.
CHECKS: tuple[Check, ...] = (
    Check(
        *("columns", "rows", "ExpectTableColumnsToMatchSet", "critical"),
        {"column_set": list(COLUMNS), "exact_match": False},
    ),
    Check("rows_exist", "rows", "ExpectTableRowCountToBeBetween", "critical", {"min_value": 1}),
    Check("terms_exist", "groups", "ExpectTableRowCountToBeBetween", "critical", {"min_value": 1}),
    Check("testable_contexts_exist", "sets", "ExpectTableRowCountToBeBetween", "warning", {"min_value": 1}),
    _present("id"),
    Check("id_unique", "rows", "ExpectColumnValuesToBeUnique", "critical", {"column": "id"}),
    _present("text"),
    _true("text_not_blank", "rows", "text_not_blank"),
    _present("template"),
    Check(
        *("symmetric_known", "rows", "ExpectColumnValuesToBeInSet", "critical"),
        {"column": "symmetric", "value_set": ["yes", "no", "unknown"]},
    ),
    _true("term_has_group", "rows", "term_has_group"),
    _true("control_has_no_group", "rows", "control_has_no_group"),
    _true("term_in_text", "rows", "term_in_text"),
    _true("term_at_word_boundaries", "rows", "term_at_word_boundaries"),
    Check(
        *("texts_distinct_in_context", "rows", "ExpectCompoundColumnsToBeUnique", "warning"),
        {"column_list": ["context", "text"]},
    ),
    _true("alike_in_context", "rows", "alike_in_context", "warning"),
    _true("one_label_in_set", "sets", "one_label", "warning"),
    _true("set_has_term", "sets", "has_term", "warning"),
    _true("set_has_control", "sets", "has_control", "warning"),
    _at_least("controls_in_context", "contexts", "controls", CONTROLS_A_CONTEXT),
    _at_least("terms_in_context", "contexts", "terms", 1),
    _at_least("terms_in_group", "groups", "terms", TERMS_A_GROUP),
    _at_least("contexts_of_group", "groups", "contexts", CONTEXTS_A_GROUP),
    _at_least("coverage_of_group", "groups", "coverage", COVERAGE),
)


def validate(evaluation: EvaluationSet) -> EvaluationSet:
    """The set with its validation result: every check, in order, and whether all critical ones hold."""
    return evaluation.model_copy(update={"validation": check_rows(evaluation.rows)})


def check_rows(rows: pd.DataFrame) -> dict[str, Any]:
    """The validation result of a table of rows, as JSON without texts, NaN or anything that depends on time."""
    tables = tables_of(rows)
    outcomes: dict[str, dict[str, Any]] = {}
    for table in TABLES:
        wanted = [check for check in CHECKS if check.table == table]
        for check, result in zip(wanted, run_suite(table, tables[table], wanted), strict=True):
            outcomes[check.id] = reduced(check, result)
    checks = [outcomes[check.id] for check in CHECKS]
    return {
        "success": all(check["success"] for check in checks if check["severity"] == "critical"),
        "checks": checks,
        "great_expectations_version": _version(),
    }


def failing(validation: Mapping[str, Any], severity: Severity = "critical") -> list[dict[str, Any]]:
    """The checks of one severity that do not hold."""
    checks: Iterable[dict[str, Any]] = validation.get("checks", ())
    return [check for check in checks if check["severity"] == severity and not check["success"]]


def run_suite(name: str, table: pd.DataFrame, checks: Iterable[Check]) -> list[dict[str, Any]]:
    """The raw result of each check on one table, in the order of the checks."""
    with warnings.catch_warnings():
        # Great Expectations imports modules that Python deprecates; its users can do nothing about it.
        warnings.simplefilter("ignore")
        import great_expectations as gx

        context: Any = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False}
        batch = (
            context.data_sources.add_pandas("veedor")
            .add_dataframe_asset(name)
            .add_batch_definition_whole_dataframe("all")
        )
        ordered = list(checks)
        suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=[_expectation(c) for c in ordered]))
        definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=suite))
        found: Any = definition.run(
            batch_parameters={"dataframe": table},
            result_format={"result_format": "SUMMARY", "unexpected_index_column_names": ["id"]},
        )
    by_id = {r["expectation_config"]["meta"]["check"]: r for r in found.to_json_dict()["results"]}
    return [by_id[check.id] for check in ordered]


def reduced(check: Check, result: Mapping[str, Any]) -> dict[str, Any]:
    """A result without texts: what was expected, whether it holds, how many and which rows break it.

    `cell` says what the ids name: row, context, set or group. An exception inside the expectation is a failure.
    """
    detail = result.get("result") or {}
    raised = _raised(result.get("exception_info") or {})
    indices = detail.get("partial_unexpected_index_list") or []
    ids = [str(entry.get("id") or "(no id)") for entry in indices if isinstance(entry, Mapping)]
    return {
        "id": check.id,
        "column": check.arguments.get("column"),
        "expectation": result["expectation_config"]["type"],
        "success": bool(result.get("success")) and not raised,
        "severity": check.severity,
        "observed": "exception" if raised else _observed(check, detail),
        "unexpected_count": int(detail.get("unexpected_count") or 0),
        "unexpected_ids": sorted(dict.fromkeys(ids))[:SHOWN_IDS],
        "cell": check.table.removesuffix("s"),
    }


def _expectation(check: Check) -> Any:
    import great_expectations.expectations as gxe

    return getattr(gxe, check.kind)(**check.arguments, severity=check.severity, meta={"check": check.id})


def _raised(info: Mapping[str, Any]) -> bool:
    """True where Great Expectations caught an exception: one flag, or one entry a metric that broke."""
    if "raised_exception" in info:
        return bool(info["raised_exception"])
    return any(isinstance(entry, Mapping) and entry.get("raised_exception", True) for entry in info.values())


def _observed(check: Check, detail: Mapping[str, Any]) -> str | int | float | None:
    if check.id == "columns":
        missing = (detail.get("details") or {}).get("mismatched", {}).get("missing") or []
        return ", ".join(map(str, missing)) or None
    seen = detail.get("observed_value", detail.get("element_count"))
    if isinstance(seen, bool) or not isinstance(seen, int | float):
        return None
    return finite(seen) if isinstance(seen, float) and not math.isnan(seen) else int(seen)


def _version() -> str:
    from importlib.metadata import version

    return version("great_expectations")
