"""Group metrics against scipy and scikit-learn, and where a cell is empty."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, mannwhitneyu
from sklearn.metrics import roc_auc_score

from tests.metrics.synthetic import as_records, made_up
from veedor.metrics.flat import flatten
from veedor.metrics.group_table import group_table
from veedor.metrics.groups import (
    average_equality_gap,
    bnsp_auc,
    bpsn_auc,
    generalised_mean,
    impact_ratios,
    subgroup_auc,
)
from veedor.metrics.rates import clopper_pearson


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores with many ties, and a group of a third that scores higher."""
    rng = np.random.default_rng(8)
    labels, group = rng.integers(0, 2, 300), rng.integers(0, 3, 300) == 0
    scores = np.round(rng.normal(labels + 0.5 * group, 1.0), 1)
    return labels, scores, group


def test_aucs_agree_with_scikit_learn(data) -> None:
    labels, scores, group = data
    mine = {
        subgroup_auc: group,
        bpsn_auc: (group & (labels == 0)) | (~group & (labels == 1)),
        bnsp_auc: (group & (labels == 1)) | (~group & (labels == 0)),
    }
    for measure, cells in mine.items():
        assert measure(labels, scores, group) == pytest.approx(roc_auc_score(labels[cells], scores[cells]))


def test_average_equality_gap_agrees_with_mann_whitney(data) -> None:
    labels, scores, group = data
    for label, gap in zip((0, 1), average_equality_gap(labels, scores, group), strict=True):
        outside, inside = scores[(labels == label) & ~group], scores[(labels == label) & group]
        u = mannwhitneyu(outside, inside).statistic
        assert gap == pytest.approx(0.5 - u / (len(outside) * len(inside)))


def test_a_subgroup_whose_negatives_score_higher_has_a_positive_gap_and_a_bpsn_of_a_half() -> None:
    labels, group = [0, 0, 1, 1, 0, 0, 1, 1], [1, 1, 1, 1, 0, 0, 0, 0]
    scores = [0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.9, 0.9]
    assert average_equality_gap(labels, scores, group) == (0.5, 0.0)
    assert bpsn_auc(labels, scores, group) == 0.5


def test_integer_and_boolean_labels_mean_the_same(data) -> None:
    """`~` on integers gives -1 and -2: a label that is cast wrongly turns every row into a positive."""
    labels, scores, group = data
    for measure in (subgroup_auc, bpsn_auc, bnsp_auc, average_equality_gap):
        assert measure(labels, scores, group.astype(int)) == measure(labels.astype(bool), scores, group)
        assert measure(list(labels), list(scores), list(group)) == measure(labels, scores, group)


def test_labels_that_are_no_yes_or_no_are_refused() -> None:
    for labels in ([0, 2], ["a", "b"], [0, float("nan")]):
        with pytest.raises(ValueError, match="labels holds"):
            subgroup_auc(labels, [0.1, 0.2], [True, True])
    with pytest.raises(ValueError, match="finite"):
        subgroup_auc([0, 1], [0.1, float("nan")], [True, True])


def test_an_empty_cell_gives_none_never_a_half() -> None:
    labels, scores = [0, 0, 1, 0], [0.1, 0.2, 0.9, 0.3]
    nobody_positive = [True, True, False, False]
    assert subgroup_auc(labels, scores, nobody_positive) is None
    assert bnsp_auc(labels, scores, nobody_positive) is None
    assert bpsn_auc(labels, scores, nobody_positive) == 1.0
    assert average_equality_gap(labels, scores, nobody_positive) == (pytest.approx(-0.5), None)
    assert subgroup_auc([], [], []) is None


def test_impact_ratios_are_rates_over_the_highest_rate() -> None:
    assert impact_ratios({"a": (30, 60), "b": (10, 40), "c": (0, 5)}) == {"a": 1.0, "b": 0.5, "c": 0.0}


def test_impact_ratios_are_undefined_for_nobody_and_where_nobody_is_selected() -> None:
    assert impact_ratios({"a": (0, 0), "b": (1, 2)}) == {"a": None, "b": 1.0}
    assert impact_ratios({"a": (0, 3), "b": (0, 2)}) == {"a": None, "b": None}
    assert impact_ratios({}) == {}
    with pytest.raises(ValueError, match="5 selected of 3"):
        impact_ratios({"a": (5, 3)})


def test_generalised_mean_of_a_zero_is_zero_without_a_warning() -> None:
    assert generalised_mean([0.9, 0.0]) == 0.0
    assert generalised_mean([]) is None


def test_exact_bounds_are_quantiles_of_the_beta_distribution() -> None:
    expected = (beta.ppf(0.025, 7, 14), beta.ppf(0.975, 8, 13))
    assert clopper_pearson(7, 20, level=0.975) == pytest.approx(expected)
    assert clopper_pearson(20, 20)[1] == 1.0 and clopper_pearson(0, 20)[0] == 0.0
    with pytest.raises(ValueError, match="3 of 2"):
        clopper_pearson(3, 2)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    evaluation, decisions = as_records(rows)
    flat = flatten(evaluation.rows, decisions.rows)
    return group_table(flat, target="bad")[0].set_index(["axis", "group"])


def test_rows_without_a_group_are_counted_as_unknown_not_dropped() -> None:
    rows = made_up()
    stray = rows["term"] == "muslim 0"
    rows.loc[stray, "group"] = None
    found = table(rows)
    assert found.loc[("religion", "unknown"), "n"] == stray.sum() == 14
    assert found["n"].sum() == len(rows)


def test_a_group_without_positives_has_no_auc_and_says_why() -> None:
    rows = made_up()
    rows.loc[rows["group"] == "older", "label_mapped"] = "good"
    line = table(rows).loc[("age", "older")]
    assert line["reason"] == "no_positives"
    assert line[["subgroup_auc", "bnsp_auc", "false_negative_rate"]].isna().all()
    assert 0 <= line["false_positive_rate"] <= 1


def test_rates_of_a_group_are_counts_over_its_own_labelled_rows() -> None:
    rows = made_up(effects={"religion/muslim": 1.0})
    mine = rows[rows["group"] == "muslim"]
    line = table(rows).loc[("religion", "muslim")]
    benign = mine[mine["label_mapped"] == "good"]
    assert line["false_positive_rate"] == pytest.approx((benign["predicted"] == "bad").mean())
    assert line["rate"] == pytest.approx((mine["predicted"] == "bad").mean())
    assert line["subgroup_auc"] == pytest.approx(roc_auc_score(mine["label_mapped"] == "bad", mine["margin"]))


def test_swaps_that_may_change_the_true_label_have_no_label() -> None:
    rows = made_up()
    some = (rows["group"] == "jewish") & (rows["template"] == "c001")
    rows.loc[some, "symmetric"], rows.loc[some, "inserted"] = "no", True
    assert table(rows).loc[("religion", "jewish"), "n_labelled"] == 84 - 6


def test_a_set_without_labels_keeps_what_needs_none() -> None:
    rows = made_up()
    rows["label_mapped"] = None
    evaluation, decisions = as_records(rows)
    found, notes = group_table(flatten(evaluation.rows, decisions.rows), target="bad")
    assert [note.code for note in notes] == ["labels_unmapped"]
    assert set(found["reason"]) == {"no_labels"} and found["rate"].notna().all()


def test_neither_row_order_nor_a_missing_group_relabels_the_others() -> None:
    """Groups are keyed by name: leaving one out leaves the counts and rates of the others alone."""
    rows = made_up()
    pd.testing.assert_frame_equal(table(rows), table(rows.sample(frac=1, random_state=3)))
    fewer = table(rows[rows["group"] != "jewish"])
    columns = ["n", "rate", "mean_margin", "subgroup_auc", "false_positive_rate"]
    pd.testing.assert_frame_equal(fewer[columns], table(rows).loc[fewer.index, columns])
