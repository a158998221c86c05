"""audit.json holds what the records hold, adds up, and is the same for the same evidence."""

import json
from typing import Any

import jsonschema
import pytest

from tests.report.conftest import dossier_of
from tests.report.sample import PROVENANCE, sample
from veedor.records import Note
from veedor.report import Dossier, build_dossier, project_root
from veedor.report.dossier import Absent, Faithfulness, schema
from veedor.report.practical import practical

EVIDENCE = {
    "subject", "intended_use", "policy", "datasets", "dataset_checks", "metrics", "method_validity", "decision",
    "ll144", "comparison", "limitations", "provenance", "signoff", "schedule", "data_protection",
}  # fmt: skip


def test_the_audit_holds_every_evidence_item(audit: dict[str, Any]):
    assert set(audit) == EVIDENCE | {"schema_version"}
    assert set(audit["metrics"]) == {"group", "counterfactual", "attribution", "intersectional"}


def test_the_audit_follows_the_schema_that_is_committed(audit: dict[str, Any]):
    committed = json.loads((project_root() / "reports" / "audit.schema.json").read_text(encoding="utf-8"))
    assert committed == schema(), "run veedor.report.dossier.write_schema on reports/audit.schema.json"
    jsonschema.Draft202012Validator.check_schema(committed)
    jsonschema.validate(audit, committed)


def test_a_dossier_read_back_is_the_same(dossier: Dossier):
    assert Dossier.model_validate_json(dossier.model_dump_json()) == dossier


def test_the_same_records_give_the_same_audit_without_times_hosts_or_paths(dossier: Dossier):
    sample.cache_clear()
    text = dossier.model_dump_json()
    assert dossier_of().model_dump_json() == text
    for trace in ("2026-11-30T", str(PROVENANCE["host"]["name"]), "/srv/audits", "glibc"):  # type: ignore[index]
        assert trace not in text


def test_every_hypothesis_is_told_with_the_numbers_of_its_ruling_and_its_finding(dossier: Dossier):
    made = sample()
    rulings = {ruling.id: ruling for ruling in made.verdict.rulings}
    findings = {finding.id: finding for finding in made.findings.findings}
    told = dossier.metrics.counterfactual.hypotheses
    assert {row.id for row in told} == set(rulings)
    for row in told:
        for name in ("verdict", "estimate", "low", "high", "adjusted_p", "equivalence_p", "beyond_margin", "rule"):
            assert getattr(row, name) == getattr(rulings[row.id], name), (row.id, name)
        for name in ("n_templates", "n_terms", "n_controls", "n_rows", "flips", "most_extreme_control"):
            assert getattr(row, name) == getattr(findings[row.id], name), (row.id, name)


def test_the_margins_of_the_decision_add_up(dossier: Dossier):
    made, rows = dossier.decision, dossier.metrics.counterfactual.hypotheses
    for scope, tally in made.counts.items():
        assert tally["all"] == sum(count for name, count in tally.items() if name != "all")
        assert tally["all"] == sum(row.scope == scope for row in rows)
    assert len(made.failing) + len(made.waived) == made.gating["FAIL"]
    assert len(made.rulings) == len(rows) == len({row.id for row in rows})
    assert sum(made.family.values()) == sum(row.adjusted_p is not None for row in rows)


def test_the_data_sheet_adds_up(dossier: Dossier):
    sheet = dossier.datasets[0]
    assert sheet.counts["rows"] == sheet.counts["rows_with_terms"] + sheet.counts["rows_with_controls"]
    assert sum(cell.rows for cell in sheet.cells) == sheet.counts["rows_with_terms"]
    assert sum(sheet.excluded.values()) == sheet.counts["excluded"] == 3


def test_every_group_appears_once_with_its_quantiles(dossier: Dossier):
    keys = [(row.axis, row.group) for row in dossier.metrics.group]
    assert len(keys) == len(set(keys)) == 16
    for row in dossier.metrics.group:
        assert row.probability is not None
        assert row.probability.q05 <= row.probability.q50 <= row.probability.q95


def test_failures_come_first_and_each_has_an_example_with_both_texts(dossier: Dossier):
    groups = [row for row in dossier.metrics.counterfactual.hypotheses if row.scope == "group"]
    verdicts = [row.verdict for row in groups]
    assert verdicts == sorted(verdicts, key=["FAIL", "INCONCLUSIVE", "NOT_TESTED", "PASS"].index)
    failing = [row for row in dossier.metrics.counterfactual.hypotheses if row.verdict == "FAIL"]
    assert failing
    for row in failing:
        assert row.examples
        assert all(pair.text != pair.partner_text for pair in row.examples)


def test_the_swapped_word_is_where_the_pair_says(dossier: Dossier):
    for row in dossier.metrics.counterfactual.hypotheses:
        for pair in row.examples:
            start, end = pair.span
            assert pair.text[:start].rstrip().lower().endswith("a")
            assert pair.text[end:].startswith(" person")


def test_strips_are_scaled_to_the_largest_weight_of_the_pair(dossier: Dossier):
    pair = next(pair for row in dossier.metrics.counterfactual.hypotheses for pair in row.examples if pair.strips)
    for method in {strip.method for strip in pair.strips}:
        both = [abs(value) for strip in pair.strips if strip.method == method for value in strip.strengths]
        assert max(both) == 1.0


def test_attribution_below_the_policys_concordance_or_with_false_alarms_is_not_corroborated(dossier: Dossier):
    doubts = {row.method: row.doubts for row in dossier.metrics.attribution}
    assert doubts == {
        "rollout": ("unreliable", "concordance_low", "placebo_high"),
        "integrated_gradients": (),
        "occlusion": (),
    }
    assert all(row.corroborated == (not row.doubts) for row in dossier.metrics.attribution)


def test_the_interval_of_an_attribution_contrast_is_students(dossier: Dossier):
    """t(.975, 11 df) = 2.20099 by table."""
    row = next(row for row in dossier.metrics.attribution if row.method == "occlusion")
    assert row.high == pytest.approx(row.estimate + 2.20099 * row.standard_error, rel=1e-5)


def test_what_was_not_done_says_why(audit: dict[str, Any]):
    for part in (audit["ll144"], audit["comparison"], audit["schedule"], audit["metrics"]["intersectional"]):
        assert part["value"] is None
        assert part["why_not"]


def test_a_bare_note_beside_a_fuller_one_of_the_same_code_is_left_out():
    from veedor.report import build_dossier

    made = sample()
    fuller, bare = Note(code="labels_unmapped", values={"labels": ("a",)}), Note(code="labels_unmapped")
    decisions = made.decisions.model_copy(update={"notes": (fuller,)})
    findings = made.findings.model_copy(update={"notes": (bare,)})
    told = build_dossier(made.evaluation, decisions, None, findings, made.verdict, made.settings)
    assert [note for note in told.limitations.notes if note.code == "labels_unmapped"] == [fuller]


def test_nobody_has_signed(audit: dict[str, Any]):
    assert all(audit["signoff"][name] is None for name in ("reviewer", "role", "date", "decision", "signature"))


def test_ln_4_quadruples_the_odds_and_takes_even_chances_to_eighty_per_cent():
    told = practical(1.3862943611198906, "logit")
    assert told is not None
    assert (told.odds_factor, told.half_to, told.half_points, told.tenth_to) == (4.0, 80.0, 30.0, 30.8)


def test_a_fall_takes_points_away():
    told = practical(-1.3862943611198906, "logit")
    assert told is not None
    assert (told.odds_factor, told.half_points, told.tenth_points) == (4.0, -30.0, -7.3)


def test_effects_of_probability_need_no_translation():
    assert practical(0.2, "probability") is None


def test_a_waived_failure_is_told_apart_and_lets_the_rest_decide():
    policy = {"groups": ["age/older"], "scopes": ["group"], "waivers": [WAIVER]}
    made = dossier_of(policy=json.dumps(policy)).decision
    assert (made.overall, made.failing, made.waived) == ("PASS", (), ("group/age/older",))
    assert made.next_action == "release_with_waivers"


WAIVER = {"hypothesis": "group/age/older", "owner": "Ana", "reason": "accepted for one month", "expires": "2026-12-31"}


def test_an_audit_without_attribution_or_validation_still_has_a_dossier():
    from veedor.report import build_dossier

    made = sample()
    bare = made.evaluation.model_copy(update={"validation": {}})
    told = build_dossier(bare, made.decisions, None, made.findings, made.verdict, made.settings)
    assert told.method_validity.methods == ()
    assert told.dataset_checks.success is None
    assert told.dataset_checks.why_not == "not_validated"
    assert "set_not_validated" in {note.code for note in told.limitations.emphasis}


def test_what_the_methods_got_beside_chance_and_their_marks_are_in_the_dossier(dossier: Dossier):
    validity = dossier.method_validity
    marks = {sheet.name: (sheet.unreliable, sheet.marks) for sheet in validity.methods}
    assert marks["rollout"] == (True, ("not_beyond_random",)) and marks["occlusion"] == (False, ())
    assert isinstance(validity.faithfulness, Faithfulness)
    found = {(row.method, row.metric, row.operator): row for row in validity.faithfulness.rows}
    own = found["integrated_gradients", "comprehensiveness", "mask"]
    assert (own.estimate, own.random) == (0.62, 0.17) and own.low is not None and own.low > 0
    assert found["rollout", "randomised_head", ""].estimate is None
    assert found["rollout", "randomised_head", ""].reason == "not_moved"


def test_methods_that_were_not_tested_are_absent_and_unmarked():
    made = sample()
    dossier = build_dossier(
        made.evaluation, made.decisions, made.attributions, made.findings, made.verdict, made.settings
    )
    assert isinstance(dossier.method_validity.faithfulness, Absent)
    assert {sheet.unreliable for sheet in dossier.method_validity.methods} == {None}
    assert all("unreliable" not in row.doubts for row in dossier.metrics.attribution)
