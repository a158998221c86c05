"""Records in, findings out: everything there, whatever the order of the rows, and the same bytes again."""

from pathlib import Path

import pandas as pd
import pytest

from steps.measure import measure
from tests.metrics.synthetic import as_records, made_up
from veedor.records import Attributions, Findings
from veedor.settings import Policy, Settings


def attributions(rows: pd.DataFrame) -> Attributions:
    """Two methods over all rows: one additive and signed that is right, one unsigned that says little."""
    right = pd.DataFrame({"id": rows["id"], "method": "occlusion", "span_score": rows["margin"]})
    flat = pd.DataFrame({"id": rows["id"], "method": "rollout", "span_score": rows["tokens"] / 9.0})
    return Attributions(
        target="bad",
        score_function="log-odds of the target",
        methods={"occlusion": {"signed": True, "additive": True}, "rollout": {"signed": False, "additive": False}},
        rows=pd.concat([right, flat], ignore_index=True),
    )


def measured(rows: pd.DataFrame, settings: Settings | None = None, explain: bool = True) -> Findings:
    evaluation, decisions = as_records(rows)
    return measure(evaluation, decisions, attributions(rows) if explain else None, settings or Settings())


def test_swaps_come_first_then_each_method_by_name() -> None:
    found = measured(made_up()).findings
    kinds = [(one.metric, one.method) for one in found]
    assert list(dict.fromkeys(kinds)) == [
        ("term_swap_effect", None),
        ("attribution_contrast", "occlusion"),
        ("attribution_contrast", "rollout"),
    ]
    assert len({one.id for one in found}) == len(found) == 3 * 19


def test_a_method_that_says_the_same_of_every_word_has_no_contrast_and_no_concordance() -> None:
    found = next(one for one in measured(made_up()).findings if one.method == "rollout")
    assert (found.estimate, found.concordance, found.units) == (0.0, None, "method")


def test_without_attributions_everything_else_is_measured() -> None:
    found = measured(made_up(), explain=False)
    assert {one.metric for one in found.findings} == {"term_swap_effect"}


def test_the_same_rows_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    rows = made_up(contexts=24, forms=12, effects={"religion/muslim": 1.0})
    first = measured(rows).save(tmp_path / "first")
    second = measured(rows.sample(frac=1, random_state=5)).save(tmp_path / "second")
    assert first == second


def test_findings_read_from_parquet_records_are_the_same(tmp_path: Path) -> None:
    """Missing names come back from Parquet as another kind of nothing."""
    rows = made_up()
    evaluation, decisions = as_records(rows)
    evaluation.save(tmp_path / "evaluation")
    decisions.save(tmp_path / "decisions")
    reread = measure(
        type(evaluation).load(tmp_path / "evaluation"), type(decisions).load(tmp_path / "decisions"), None, Settings()
    )
    assert reread.findings == measured(rows, explain=False).findings
    pd.testing.assert_frame_equal(reread.groups, measured(rows, explain=False).groups)


def test_the_scale_of_the_policy_is_what_is_measured() -> None:
    found = measured(made_up(), Settings(policy=Policy(scale="probability", margin=0.1)))
    assert found.scale == "probability" and {one.units for one in found.findings if not one.method} == {"probability"}


def test_progress_goes_from_nothing_to_all() -> None:
    rows = made_up()
    seen: list[tuple[int, int]] = []
    measure(*as_records(rows), attributions(rows), Settings(), lambda _, done, total: seen.append((done, total)))
    assert seen[0] == (0, 4) and seen[-1] == (4, 4) and seen == sorted(seen)


@pytest.mark.parametrize("name", ["effects", "contexts", "groups", "pairs"])
def test_tables_have_the_columns_that_the_record_promises(name: str) -> None:
    promised = {
        "effects": "finding word kind effect n_contexts subwords band",
        "contexts": "finding context difference n_rows",
        "groups": "axis group n n_positive rate low high mean_margin n_labelled false_positive_rate fpr_low fpr_high "
        "false_negative_rate fnr_low fnr_high subgroup_auc bpsn_auc bnsp_auc reason",
        "pairs": "finding row partner text partner_text margin partner_margin probability partner_probability "
        "predicted partner_predicted",
    }
    table = getattr(measured(made_up()), name)
    assert list(table.columns) == promised[name].split() and len(table)
