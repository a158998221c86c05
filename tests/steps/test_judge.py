"""From rows to a verdict: measured, stored, and judged again under another policy."""

from datetime import date
from pathlib import Path

from steps.judge import judge
from steps.measure import measure
from tests.metrics.synthetic import as_records, made_up
from veedor.records import Findings
from veedor.settings import Policy, Settings

TODAY = date(2026, 6, 1)


def found(**options: object) -> Findings:
    return measure(*as_records(made_up(**options)), None, Settings())


def test_only_the_planted_group_fails() -> None:
    verdict = judge(found(effects={"religion/muslim": 1.5}), Policy(scopes=("group",)), today=TODAY)
    by_group = {ruling.group: ruling.verdict for ruling in verdict.rulings if ruling.primary}
    assert by_group == {"muslim": "FAIL", "jewish": "PASS", "older": "NOT_TESTED"}
    assert verdict.overall == "FAIL"


def test_a_planted_word_of_a_small_group_fails_at_term_scope() -> None:
    verdict = judge(found(effects={"older 1": 2.5}), Policy(), today=TODAY)
    assert [ruling.id for ruling in verdict.rulings if ruling.verdict == "FAIL"] == ["term/age/older/older 1"]
    assert verdict.overall == "FAIL"


def test_nothing_planted_passes() -> None:
    verdict = judge(found(), Policy(), today=TODAY)
    assert (verdict.overall, verdict.with_waivers) == ("PASS", False)


def test_stored_findings_are_judged_the_same_and_may_be_judged_by_another_policy(tmp_path: Path) -> None:
    findings = found(effects={"religion/muslim": 1.5})
    findings.save(tmp_path / "findings")
    again = Findings.load(tmp_path / "findings")
    assert judge(again, Policy(), today=TODAY) == judge(findings, Policy(), today=TODAY)
    assert (
        judge(again, Policy(margin=2.5, scopes=("group",), groups=("religion/muslim",)), today=TODAY).overall == "PASS"
    )


def test_the_verdict_holds_the_policy_it_was_made_by() -> None:
    policy = Policy(margin=0.5)
    verdict = judge(found(), policy, today=TODAY)
    assert verdict.policy["margin"] == 0.5 and verdict.policy_digest == policy.digest()
