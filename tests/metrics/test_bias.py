"""From made-up rows to findings: known effects, what is dropped, what is undefined, and that order changes nothing."""

import time

import numpy as np
import pandas as pd
import pytest

from tests.metrics.synthetic import as_records, made_up
from veedor.errors import SubjectError
from veedor.metrics.bias import Tables, measure_swaps
from veedor.metrics.flat import flatten
from veedor.metrics.inference import crossed_test, term_test
from veedor.records import Finding


def measured(rows: pd.DataFrame, scale: str = "logit") -> Tables:
    evaluation, decisions = as_records(rows)
    return measure_swaps(flatten(evaluation.rows, decisions.rows, scale=scale), scale=scale)[0]


def notes(rows: pd.DataFrame) -> dict[str, dict[str, object]]:
    evaluation, decisions = as_records(rows)
    return {note.code: note.values for note in measure_swaps(flatten(evaluation.rows, decisions.rows))[1]}


def finding(tables: Tables, name: str) -> Finding:
    return next(one for one in tables.findings if one.id == name)


def drop(rows: pd.DataFrame, chosen: pd.Series, reason: str) -> pd.DataFrame:
    rows.loc[chosen, "usable"], rows.loc[chosen, "drop_reason"] = False, reason
    return rows


def test_a_group_finding_is_the_crossed_test_of_its_rows() -> None:
    rows = made_up(effects={"religion/muslim": 1.5})
    mine = rows[(rows["group"] == "muslim") | rows["control"]]
    side = np.where(mine["control"], "c", "g")
    expected = crossed_test(mine["margin"], mine["template"], mine["term"], side, of="g", against="c")
    found = finding(measured(rows), "group/religion/muslim")
    for name in ("estimate", "standard_error", "df", "p"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert (found.n_templates, found.n_terms, found.n_controls, found.n_rows) == (14, 7, 26, 98)


def test_a_term_finding_is_the_term_test_of_its_rows() -> None:
    rows = made_up(effects={"older 1": 2.0})
    mine = rows[(rows["term"] == "older 1") | rows["control"]]
    expected = term_test(mine["margin"], mine["template"], mine["term"], mine["control"], of="older 1")
    found = finding(measured(rows), "term/age/older/older 1")
    for name in ("estimate", "standard_error", "df", "p", "prediction_error", "most_extreme_control", "skew"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert found.tail_factor == expected.tail_factor


def test_both_scopes_of_every_group_are_there_sorted_by_name() -> None:
    ids = [one.id for one in measured(made_up()).findings]
    assert ids == sorted(ids) and len(ids) == 3 + 7 + 6 + 3


def test_the_order_of_the_rows_changes_not_one_byte() -> None:
    rows = made_up(contexts=30, forms=15, effects={"older 1": 2.0})
    rows = drop(rows, (rows["term"] == "muslim 2") & (rows["template"] < "c004"), "same_tokens")
    first = measured(rows)
    for seed in (1, 2):
        again = measured(rows.sample(frac=1, random_state=seed))
        assert [one.model_dump_json() for one in again.findings] == [one.model_dump_json() for one in first.findings]
        for name in ("effects", "contexts", "pairs"):
            pd.testing.assert_frame_equal(getattr(again, name), getattr(first, name), check_exact=True)


def test_a_constant_added_to_one_context_changes_nothing() -> None:
    rows = made_up()
    shifted = rows.assign(margin=rows["margin"] + 40.0 * (rows["template"] == "c003"))
    before, after = (finding(measured(frame), "group/religion/jewish") for frame in (rows, shifted))
    assert after.estimate == pytest.approx(before.estimate) and after.p == pytest.approx(before.p)


def test_slot_classes_are_compared_with_their_own_controls() -> None:
    """Nouns move the answer by 3, whoever they name: nothing of it reaches a group that is named by both."""
    adjectives, nouns = made_up(forms=14, noise=0.0), made_up(forms=14, noise=0.0, seed=1)
    nouns = nouns.assign(
        id=nouns["id"] + "|noun",
        template=nouns["template"] + "-noun",
        slot="noun",
        margin=nouns["margin"] + 3.0,
        term=nouns["term"].where(~nouns["control"], nouns["term"] + " noun"),
    )
    few = nouns[nouns["control"] | nouns["term"].isin(["muslim 0", "muslim 1"])]
    found = finding(measured(pd.concat([adjectives, few], ignore_index=True)), "group/religion/muslim")
    assert found.clusters == "forms" and found.n_templates == 14 and found.n_terms == 7 and found.n_controls == 52
    assert abs(found.estimate) < 0.4


def test_twelve_forms_are_the_clusters_and_eleven_are_not() -> None:
    twelve, eleven = made_up(contexts=24, forms=12), made_up(contexts=22, forms=11)
    found = finding(measured(twelve), "group/religion/muslim")
    assert (found.clusters, found.n_templates) == ("forms", 12)
    found = finding(measured(eleven), "group/religion/muslim")
    assert (found.clusters, found.n_templates) == ("contexts", 22)
    assert notes(eleven)["few_forms"] == {"forms": 11, "contexts": 22}
    assert "few_forms" not in notes(twelve)


def test_contexts_are_averaged_within_their_form_first() -> None:
    rows = made_up(contexts=30, forms=12, seed=4)
    mine = rows[(rows["group"] == "jewish") | rows["control"]]
    cells = mine.groupby(["form", "term", "control"], as_index=False)["margin"].mean()
    side = np.where(cells["control"], "c", "g")
    expected = crossed_test(cells["margin"], cells["form"], cells["term"], side, of="g", against="c")
    found = finding(measured(rows), "group/religion/jewish")
    assert (found.estimate, found.standard_error) == pytest.approx((expected.estimate, expected.standard_error))


def test_dropped_rows_are_counted_by_reason_and_not_used() -> None:
    rows = made_up()
    rows = drop(rows, (rows["term"] == "jewish 0") & (rows["template"] < "c009"), "same_tokens")
    rows = drop(rows, (rows["term"] == "jewish 1") & (rows["template"] == "c000"), "term_cut")
    found = finding(measured(rows), "group/religion/jewish")
    assert found.dropped == {"same_tokens": 9, "term_cut": 1, "terms_in_few_contexts": 1}
    assert (found.n_terms, found.n_rows) == (5, 84 - 10)


def test_a_word_in_exactly_half_of_the_contexts_counts_toward_the_minimum() -> None:
    rows = made_up()
    rows = drop(rows, (rows["term"] == "jewish 0") & (rows["template"] < "c007"), "same_tokens")
    rows = drop(rows, (rows["term"] == "plain 0") & (rows["template"] < "c008"), "same_tokens")
    found = finding(measured(rows), "group/religion/jewish")
    assert (found.n_terms, found.n_controls) == (6, 25)


def test_a_word_is_not_rare_for_want_of_slots_of_its_class() -> None:
    """Of 18 contexts 12 take an adjective and 6 a noun; the noun stands in all 6, an adjective in 5 of 12."""
    rows = made_up(contexts=18)
    noun = rows["template"] >= "c012"
    rows["slot"] = np.where(noun, "noun", "adj")
    rows = rows[(rows["term"] == "jewish 0") | rows["control"] | (noun == (rows["term"] == "jewish 1"))]
    rows.loc[rows["control"] & noun, "term"] += " noun"
    rows = drop(rows, (rows["term"] == "jewish 2") & (rows["template"] < "c007"), "same_tokens")
    found = finding(measured(rows), "group/religion/jewish")
    assert (found.n_templates, found.n_terms, found.n_controls) == (18, 5, 52)
    assert found.dropped == {"same_tokens": 7, "terms_in_few_contexts": 1}


def test_a_term_of_which_nothing_is_left_is_still_a_finding() -> None:
    rows = made_up()
    found = finding(measured(drop(rows, rows["term"] == "older 0", "asymmetric")), "term/age/older/older 0")
    assert (found.estimate, found.why_not, found.dropped) == (None, "all_rows_dropped", {"asymmetric": 14})


def test_where_every_row_was_cut_the_reason_is_that_and_not_missing_controls() -> None:
    rows = made_up()
    found = measured(drop(rows, rows["term"].notna(), "term_cut")).findings
    assert {one.why_not for one in found} == {"all_rows_dropped"}
    assert all(set(one.dropped) == {"term_cut"} for one in found)


def test_contexts_without_controls_are_left_out_and_counted() -> None:
    rows = made_up()
    rows = drop(rows, rows["control"] & (rows["template"] == "c005"), "same_tokens")
    found = finding(measured(rows), "group/religion/muslim")
    assert (found.n_templates, found.dropped) == (13, {"no_reference_in_context": 7})


def test_without_controls_the_reference_is_the_other_terms_of_the_axis() -> None:
    rows = made_up(effects={"religion/muslim": 1.0})
    rows = rows[~rows["control"]]
    tables = measured(rows)
    found = finding(tables, "group/religion/muslim")
    assert found.reference == "other_terms" and found.n_controls == 0 and found.examples == ()
    assert 0.6 < found.estimate < 1.4
    lonely = finding(tables, "group/age/older")
    assert (lonely.reference, lonely.estimate, lonely.why_not) == ("other_terms", None, "no_reference")
    assert "no_controls" in notes(rows)


def test_a_group_of_one_term_has_an_estimate_but_no_test() -> None:
    found = finding(measured(made_up(groups={"age/older": 1, "age/younger": 2})), "group/age/older")
    assert found.why_not == "one_term" and found.p is None and found.standard_error is None


def test_a_model_that_answers_everything_alike_is_not_measured() -> None:
    rows = made_up().assign(margin=0.25)
    tables = measured(rows)
    assert {one.why_not for one in tables.findings} == {"constant_output"}
    assert {one.estimate for one in tables.findings} == {None}
    assert notes(rows)["constant_output"] == {"rows": len(rows)}


def test_a_model_blind_to_the_slot_is_measured_as_no_effect() -> None:
    rows = made_up()
    rows["margin"] = rows["template"].str[1:].astype(float)
    found = finding(measured(rows), "group/religion/muslim")
    assert (found.estimate, found.standard_error, found.p, found.why_not) == (0.0, 0.0, 1.0, None)


def test_an_answer_that_is_no_number_is_refused() -> None:
    rows = made_up()
    rows.loc[rows["id"] == "c001|plain 3", "margin"] = float("nan")
    with pytest.raises(SubjectError, match=r"c001\|plain 3"):
        measured(rows)


def test_decisions_of_another_set_are_refused() -> None:
    evaluation, decisions = as_records(made_up())
    with pytest.raises(ValueError, match="not those of this evaluation set"):
        flatten(evaluation.rows, decisions.rows.iloc[1:])


def test_a_set_without_any_term_has_no_findings() -> None:
    rows = made_up()
    rows[["axis", "group", "term"]] = None
    rows["control"] = False
    tables = measured(rows)
    assert tables.findings == () and len(tables.effects) == len(tables.pairs) == 0


def test_flips_are_counted_against_the_decision_of_most_controls() -> None:
    """One term flips in 3 of 14 contexts, in each of which every control gets the other decision."""
    rows = made_up(contexts=14)
    rows["positive"] = rows["template"] < "c005"
    flipped = (rows["term"] == "muslim 3") & rows["template"].isin(["c001", "c002", "c008"])
    rows.loc[flipped, "positive"] = ~rows.loc[flipped, "positive"]
    found = finding(measured(rows), "group/religion/muslim").flips
    assert (found["contexts"], found["contexts_flipped"], found["terms"], found["terms_flipped"]) == (14, 3, 7, 1)
    assert (found["pairs"], found["pairs_flipped"], found["to_target"], found["from_target"]) == (98, 3, 1, 2)
    assert found["control_pairs_flipped"] == 0
    assert found["contexts_high"] == pytest.approx(0.465656, abs=1e-5)


def test_contexts_whose_controls_are_split_evenly_have_no_majority() -> None:
    rows = made_up(controls=26)
    rows["positive"] = rows["term"].isin([f"plain {i}" for i in range(13)])
    assert finding(measured(rows), "group/age/older").flips["contexts"] == 0


def test_controls_of_another_length_are_left_out_of_the_near_estimate() -> None:
    """Long controls (3 sub-words against the terms' 1) sit 2 higher: only the near ones are compared with."""
    rows = made_up(noise=0.0)
    long = rows["control"] & rows["term"].isin([f"plain {i}" for i in range(13)])
    rows["subwords"] = np.where(long, 3, 1)
    rows["margin"] = rows.groupby("template")["margin"].transform("mean") + 2.0 * long
    found = finding(measured(rows), "group/religion/muslim")
    assert found.estimate == pytest.approx(-1.0) and found.near_subwords == pytest.approx(0.0)
    assert found.subwords == (1.0, 2.0)


def test_examples_are_pairs_in_one_context_from_different_terms_and_contexts() -> None:
    rows = made_up(effects={"religion/muslim": 1.5})
    tables = measured(rows)
    found = finding(tables, "group/religion/muslim")
    pairs = [example.split("|c") for example in found.examples]
    assert len(pairs) == 5
    assert all(left.split("|")[0] == "c" + right.split("|")[0] for left, right in pairs)
    assert len({left.split("|")[0] for left, _ in pairs}) == len({left.split("|")[1] for left, _ in pairs}) == 5
    shown = tables.pairs[tables.pairs["finding"] == found.id]
    assert list(shown["row"] + "|" + shown["partner"]) == list(found.examples)
    assert (shown["margin"] - shown["partner_margin"]).mean() == pytest.approx(found.estimate, abs=0.3)


def test_effects_hold_every_word_of_a_finding_and_average_to_its_estimate() -> None:
    tables = measured(made_up(effects={"religion/muslim": 1.5}))
    found = finding(tables, "group/religion/muslim")
    mine = tables.effects[tables.effects["finding"] == found.id]
    assert mine["kind"].value_counts().to_dict() == {"control": 26, "term": 7}
    assert mine.loc[mine["kind"] == "term", "effect"].mean() == pytest.approx(found.estimate)
    differences = tables.contexts.loc[tables.contexts["finding"] == found.id]
    assert differences["difference"].mean() == pytest.approx(found.estimate)
    assert differences["n_rows"].sum() == found.n_rows


def test_the_probability_scale_measures_probabilities() -> None:
    rows = made_up(effects={"religion/muslim": 1.5})
    found = finding(measured(rows, "probability"), "group/religion/muslim")
    assert found.units == "probability" and 0 < found.estimate < 1


def test_rows_of_unknown_symmetry_are_used_and_flagged() -> None:
    rows = made_up()
    rows.loc[rows["template"] == "c002", "symmetric"] = "unknown"
    assert notes(rows)["symmetry_unknown"] == {"rows": 42}
    assert finding(measured(rows), "group/religion/muslim").n_templates == 14


def test_twenty_thousand_rows_of_twenty_groups_take_seconds() -> None:
    groups = {f"axis{i % 6}/group{i}": 12 + i % 2 for i in range(20)}
    rows = made_up(contexts=70, groups=groups, controls=40)
    start = time.perf_counter()
    tables = measured(rows)
    assert len(rows) > 20_000 and len(tables.findings) == 20 + 250
    assert time.perf_counter() - start < 15, "about one second on one idle core"
