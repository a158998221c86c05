"""The verdict table, one test a cell, and what may not pass."""

from datetime import date
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from veedor.errors import UsageError
from veedor.records import Finding, Findings, Ruling, Verdict
from veedor.settings import Policy
from veedor.verdicts import decide

TODAY = date(2026, 6, 1)
LN2 = 0.693


def group(name: str = "older", **values: Any) -> Finding:
    """A well-tested group without an effect: 12 terms, 40 controls, 24 contexts."""
    given = {"estimate": 0.0, "standard_error": 0.1, "df": 20.0, "n_terms": 12} | values
    if given["estimate"] is None:
        given |= {"standard_error": None, "df": None, "p": None, "why_not": "no_shared_context"}
    elif "p" not in given:
        given["p"] = 2 * stats.t.sf(abs(given["estimate"]) / given["standard_error"], given["df"])
    return Finding(**common("group", name) | given)


def term(name: str = "old", *, of: str = "older", **values: Any) -> Finding:
    """A well-tested word without an effect: controls differ by .3, the most extreme by .6, light tails."""
    given = {"estimate": 0.0, "standard_error": 0.1, "df": 20.0, "prediction_error": 0.3, "prediction_df": 39.0}
    given |= {"most_extreme_control": 0.6, "skew": 0.1, "excess_kurtosis": 0.1, "tail_factor": 1.0, "n_terms": 1}
    given |= values
    if given["estimate"] is None:
        given |= {"standard_error": None, "df": None, "p": None, "why_not": "no_shared_context"}
    else:
        t = abs(given["estimate"]) / given["prediction_error"]
        given.setdefault("p", 2 * stats.t.sf(t, given["prediction_df"]))
    return Finding(**common("term", of) | {"id": f"term/age/{of}/{name}", "term": name} | given)


def common(scope: str, name: str) -> dict[str, Any]:
    return {
        "id": f"{scope}/age/{name}",
        "metric": "term_swap_effect",
        "scope": scope,
        "axis": "age",
        "group": name,
        "reference": "controls",
        "units": "logits",
        "n_templates": 24,
        "n_controls": 40,
    }


def evidence(*findings: Finding, scale: str = "logit") -> Findings:
    effects, contexts = [], []
    for one in findings:
        effects += [(one.id, f"t{i}", "term", 0.5 * (-1) ** i) for i in range(one.n_terms)]
        effects += [(one.id, f"c{i}", "control", 0.4 * (-1) ** i) for i in range(one.n_controls)]
        contexts += [(one.id, f"x{i}", 0.1 * (-1) ** i) for i in range(one.n_templates)]
    return Findings(
        scale=scale,
        target="bad",
        findings=findings,
        effects=pd.DataFrame(effects, columns=["finding", "word", "kind", "effect"]),
        contexts=pd.DataFrame(contexts, columns=["finding", "context", "difference"]),
        groups=pd.DataFrame(),
        pairs=pd.DataFrame(),
    )


def verdict(*findings: Finding, **policy: Any) -> Verdict:
    return decide(evidence(*findings), Policy(**{"margin": LN2} | policy), today=TODAY)


def ruling(*findings: Finding, **policy: Any) -> Ruling:
    """The ruling on the first of the findings."""
    found = verdict(*findings, **policy)
    return next(one for one in found.rulings if one.id == findings[0].id)


GROUP_ONLY = {"scopes": ("group",)}
TERM_ONLY = {"scopes": ("term",)}


# The table, group rows


def test_a_group_fails_when_the_effect_is_shown_and_its_estimate_is_beyond_the_margin() -> None:
    found = ruling(group(estimate=0.9, standard_error=0.2), **GROUP_ONLY)
    assert (found.verdict, found.rule, found.beyond_margin) == ("FAIL", "fail_estimated", False)
    assert found.adjusted_p == pytest.approx(2 * stats.t.sf(4.5, 20))


@pytest.mark.parametrize(
    ("estimate", "name"), [(LN2 + 1e-6, "FAIL"), (LN2, "INCONCLUSIVE"), (LN2 - 1e-6, "INCONCLUSIVE")]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_estimate_just_inside_the_margin_is_no_failure_however_sure(estimate: float, name: str, sign: int) -> None:
    found = ruling(group(estimate=sign * estimate, standard_error=0.01), **GROUP_ONLY)
    assert found.verdict == name
    if name != "FAIL":
        assert found.rule == "inside_not_shown"


@pytest.mark.parametrize(("nudge", "name"), [(1.001, "FAIL"), (0.999, "INCONCLUSIVE")])
def test_a_group_fails_with_p_just_below_alpha_only(nudge: float, name: str) -> None:
    error = 0.9 / (stats.t.isf(0.025, 20) * nudge)
    found = ruling(group(estimate=0.9, standard_error=error), **GROUP_ONLY)
    assert found.verdict == name
    assert found.rule == ("fail_estimated" if name == "FAIL" else "beyond_not_shown")


def test_with_both_scopes_each_has_half_of_alpha() -> None:
    weak = group(estimate=0.9, standard_error=0.9 / stats.t.isf(0.02, 20))  # p = .04
    words = [term(f"w{i}") for i in range(3)]
    assert ruling(weak, *words, **GROUP_ONLY).verdict == "FAIL"
    assert ruling(weak, *words).verdict == "INCONCLUSIVE"


def test_a_group_passes_when_both_one_sided_tests_are_below_alpha_without_correction() -> None:
    """Twenty groups, each with an equivalence p of .04: all pass, though Holm would let none."""
    estimate = LN2 - 0.1 * stats.t.isf(0.04, 20)
    many = [group(f"g{i:02d}", estimate=estimate, p=0.9) for i in range(20)]
    found = verdict(*many, **GROUP_ONLY)
    assert found.overall == "PASS" and found.rule == "overall_pass"
    assert {one.rule for one in found.rulings} == {"pass_equivalent"}
    assert found.rulings[0].equivalence_p == pytest.approx(0.04)


@pytest.mark.parametrize(("p", "name"), [(0.0499, "PASS"), (0.0501, "INCONCLUSIVE")])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_group_passes_with_an_equivalence_p_just_below_alpha_only(p: float, name: str, sign: int) -> None:
    assert ruling(group(estimate=sign * (LN2 - 0.1 * stats.t.isf(p, 20))), **GROUP_ONLY).verdict == name


def test_no_significant_difference_is_not_a_pass() -> None:
    found = verdict(group(estimate=0.1, standard_error=0.6), **GROUP_ONLY)
    assert found.rulings[0].p > 0.8
    assert (found.overall, found.rule) == ("INCONCLUSIVE", "overall_undecided")


def test_a_significant_effect_inside_the_margin_passes() -> None:
    found = ruling(group(estimate=0.3, standard_error=0.05), **GROUP_ONLY)
    assert found.adjusted_p < 0.001 and found.verdict == "PASS"


def test_a_group_fails_demonstrated_only_where_the_effect_is_shown_to_lie_beyond() -> None:
    near, far = group(estimate=0.9, standard_error=0.2), group(estimate=1.3, standard_error=0.2)
    policy = GROUP_ONLY | {"fail_when": "demonstrated"}
    assert (ruling(near, **policy).verdict, ruling(near, **policy).rule) == ("INCONCLUSIVE", "beyond_not_demonstrated")
    found = ruling(far, **policy)
    assert (found.verdict, found.rule) == ("FAIL", "fail_demonstrated")
    assert found.adjusted_p == pytest.approx(stats.t.sf((1.3 - LN2) / 0.2, 20))


@pytest.mark.parametrize(("adverse", "sign"), [("higher", 1), ("lower", -1)])
def test_where_one_direction_harms_only_that_one_fails_and_the_other_passes(adverse: str, sign: int) -> None:
    policy = GROUP_ONLY | {"adverse": adverse}
    harmful, harmless = group(estimate=sign * 0.9, standard_error=0.2), group(estimate=-sign * 5.0, standard_error=0.2)
    found = ruling(harmful, **policy)
    assert found.verdict == "FAIL" and found.p == pytest.approx(stats.t.sf(4.5, 20))
    found = ruling(harmless, **policy)
    assert (found.verdict, found.rule, found.beyond_margin) == ("PASS", "pass_not_worse", False)


@pytest.mark.parametrize(("adverse", "sign"), [("higher", 1), ("lower", -1)])
@pytest.mark.parametrize(("p", "name"), [(0.0499, "FAIL"), (0.0501, "INCONCLUSIVE")])
def test_one_sided_failures_have_one_sided_p(adverse: str, sign: int, p: float, name: str) -> None:
    error = 0.9 / stats.t.isf(p, 20)
    found = ruling(group(estimate=sign * 0.9, standard_error=error), **GROUP_ONLY, adverse=adverse)
    assert found.verdict == name and found.p == pytest.approx(p)


@pytest.mark.parametrize(("adverse", "sign"), [("higher", 1), ("lower", -1)])
@pytest.mark.parametrize(("p", "name"), [(0.0499, "PASS"), (0.0501, "INCONCLUSIVE")])
def test_non_inferiority_is_one_test_against_the_margin(adverse: str, sign: int, p: float, name: str) -> None:
    estimate = sign * (LN2 - 0.1 * stats.t.isf(p, 20))
    assert ruling(group(estimate=estimate), **GROUP_ONLY, adverse=adverse).verdict == name


@pytest.mark.parametrize(("adverse", "sign"), [("higher", 1), ("lower", -1)])
def test_one_sided_demonstrated_failures(adverse: str, sign: int) -> None:
    policy = GROUP_ONLY | {"adverse": adverse, "fail_when": "demonstrated"}
    assert ruling(group(estimate=sign * 1.3, standard_error=0.2), **policy).verdict == "FAIL"
    assert ruling(group(estimate=sign * 0.9, standard_error=0.2), **policy).verdict == "INCONCLUSIVE"
    assert ruling(group(estimate=-sign * 1.3, standard_error=0.2), **policy).verdict == "PASS"


# The table, term rows


@pytest.mark.parametrize("sign", [1, -1])
def test_a_term_fails_when_shown_beyond_the_margin_and_beyond_every_control(sign: int) -> None:
    found = ruling(term(estimate=sign * 2.0), **TERM_ONLY)
    assert (found.verdict, found.rule) == ("FAIL", "fail_estimated")
    assert found.p == pytest.approx(2 * stats.t.sf(2.0 / 0.3, 39)), "the term as one more ordinary word"


@pytest.mark.parametrize(("extreme", "name"), [(1.999, "FAIL"), (2.0, "INCONCLUSIVE"), (2.5, "INCONCLUSIVE")])
def test_a_term_must_exceed_the_most_extreme_control(extreme: float, name: str) -> None:
    found = ruling(term(estimate=2.0, most_extreme_control=extreme), **TERM_ONLY)
    assert found.verdict == name
    if name != "FAIL":
        assert found.rule == "not_beyond_extreme_control"


@pytest.mark.parametrize(("extreme", "name"), [(0.999, "FAIL"), (1.001, "INCONCLUSIVE")])
def test_with_heavy_tails_a_term_must_exceed_twice_the_most_extreme_control(extreme: float, name: str) -> None:
    assert ruling(term(estimate=2.0, most_extreme_control=extreme, tail_factor=2.0), **TERM_ONLY).verdict == name


@pytest.mark.parametrize(("estimate", "name"), [(LN2 + 1e-6, "FAIL"), (LN2, "INCONCLUSIVE")])
def test_a_term_inside_the_margin_is_no_failure(estimate: float, name: str) -> None:
    found = term(estimate=estimate, standard_error=0.05, prediction_error=0.1, most_extreme_control=0.2)
    assert ruling(found, **TERM_ONLY).verdict == name


def test_a_term_that_ordinary_words_could_be_is_not_shown() -> None:
    """Beyond the margin and all controls, and sure over contexts, but within what control words scatter."""
    found = ruling(term(estimate=1.0, standard_error=0.01, prediction_error=0.6), **TERM_ONLY)
    assert (found.verdict, found.rule) == ("INCONCLUSIVE", "beyond_not_shown")


def test_terms_are_corrected_within_their_scope() -> None:
    """p = .03 alone fails at .05; beside one more word the smaller of two is doubled."""
    weak = term("weak", estimate=0.3 * stats.t.isf(0.015, 39) * 4, prediction_error=1.2, most_extreme_control=0.6)
    assert ruling(weak, **TERM_ONLY).verdict == "FAIL"
    beside = ruling(weak, term("other"), **TERM_ONLY)
    assert beside.adjusted_p == pytest.approx(0.06) and beside.verdict == "INCONCLUSIVE"


def test_a_term_fails_demonstrated_only_where_its_own_interval_is_beyond_as_well() -> None:
    policy = TERM_ONLY | {"fail_when": "demonstrated"}
    assert ruling(term(estimate=2.0, standard_error=0.3), **policy).verdict == "FAIL"
    found = ruling(term(estimate=2.0, standard_error=0.9), **policy)
    assert (found.verdict, found.rule) == ("INCONCLUSIVE", "beyond_not_demonstrated")
    assert ruling(term(estimate=2.0, standard_error=0.9), **TERM_ONLY).verdict == "FAIL"


@pytest.mark.parametrize(("p", "name"), [(0.0499, "PASS"), (0.0501, "INCONCLUSIVE")])
def test_a_term_passes_by_its_own_standard_error(p: float, name: str) -> None:
    found = ruling(term(estimate=LN2 - 0.1 * stats.t.isf(p, 20), prediction_error=9.0), **TERM_ONLY)
    assert found.verdict == name


@pytest.mark.parametrize(("adverse", "sign"), [("higher", 1), ("lower", -1)])
def test_where_one_direction_harms_terms_fail_in_it_and_pass_in_the_other(adverse: str, sign: int) -> None:
    policy = TERM_ONLY | {"adverse": adverse}
    found = ruling(term(estimate=sign * 2.0), **policy)
    assert found.verdict == "FAIL" and found.p == pytest.approx(stats.t.sf(2.0 / 0.3, 39))
    assert ruling(term(estimate=-sign * 2.0), **policy).verdict == "PASS"
    assert ruling(term(estimate=sign * 2.0, most_extreme_control=2.1), **policy).verdict == "INCONCLUSIVE"
    demonstrated = policy | {"fail_when": "demonstrated"}
    assert ruling(term(estimate=sign * 2.0, standard_error=0.3), **demonstrated).verdict == "FAIL"
    assert ruling(term(estimate=sign * 2.0, standard_error=0.9), **demonstrated).verdict == "INCONCLUSIVE"


# Who is primary, who can fail the audit


def test_a_group_that_meets_the_minima_is_primary_and_its_terms_can_only_fail() -> None:
    undecided = term(estimate=0.6, standard_error=0.3)
    found = verdict(group(), undecided)
    by_id = {one.id: one for one in found.rulings}
    assert by_id["group/age/older"].primary and not by_id[undecided.id].primary and by_id[undecided.id].gating
    assert by_id[undecided.id].verdict == "INCONCLUSIVE" and found.overall == "PASS"
    assert verdict(group(), term(estimate=2.0)).overall == "FAIL"


@pytest.mark.parametrize(
    ("short", "rule"),
    [
        ({"n_terms": 5}, "too_few_terms"),
        ({"n_controls": 23}, "too_few_controls"),
        ({"n_templates": 11}, "too_few_contexts"),
    ],
)
def test_a_group_below_a_minimum_is_not_tested_and_its_terms_are_primary(short: dict[str, int], rule: str) -> None:
    found = verdict(group(**short), term())
    by_scope = {one.scope: one for one in found.rulings}
    assert (by_scope["group"].verdict, by_scope["group"].rule) == ("NOT_TESTED", rule)
    assert not by_scope["group"].primary and by_scope["term"].primary
    assert by_scope["group"].adjusted_p is None and by_scope["group"].exploratory_p is not None
    assert found.overall == "PASS"


@pytest.mark.parametrize("enough", [{"n_terms": 6}, {"n_controls": 24}, {"n_templates": 12}])
def test_exactly_the_minimum_is_enough(enough: dict[str, int]) -> None:
    assert ruling(group(**enough), **GROUP_ONLY).verdict == "PASS"


@pytest.mark.parametrize(
    ("short", "rule"), [({"n_controls": 23}, "too_few_controls"), ({"n_templates": 11}, "too_few_contexts")]
)
def test_a_term_needs_the_controls_and_contexts_as_well(short: dict[str, int], rule: str) -> None:
    found = verdict(group(n_terms=3, **short), term(**short))
    assert {one.rule for one in found.rulings} == {"too_few_terms", rule}
    assert (found.overall, found.rule) == ("NOT_TESTED", "overall_nothing_decided")


def test_not_tested_at_both_scopes_leaves_the_audit_undecided() -> None:
    found = verdict(group(), term(), group("younger", n_terms=2), term("young", of="younger", estimate=None))
    assert (found.overall, found.rule) == ("INCONCLUSIVE", "overall_not_tested")


def test_a_group_below_the_minimum_is_not_forgotten_where_terms_are_not_judged() -> None:
    found = verdict(group(), term(), group("younger", n_terms=2), term("young", of="younger"), **GROUP_ONLY)
    assert (found.overall, found.rule) == ("INCONCLUSIVE", "overall_not_tested")
    by_id = {one.id: one for one in found.rulings}
    assert by_id["group/age/younger"].primary and by_id["term/age/older/old"].rule == "scope_not_selected"


def test_where_only_terms_are_judged_every_term_is_primary() -> None:
    found = verdict(group(estimate=5.0), term(), **TERM_ONLY)
    assert [(one.primary, one.verdict) for one in found.rulings] == [(False, "NOT_TESTED"), (True, "PASS")]
    assert found.overall == "PASS"


def test_groups_that_are_not_selected_are_shown_and_not_judged() -> None:
    others = [group("younger", estimate=3.0), term("young", of="younger", estimate=3.0)]
    found = verdict(group(), term(), *others, groups=("age/older",))
    stray = [one for one in found.rulings if one.group == "younger"]
    assert {(one.verdict, one.rule, one.primary, one.gating, one.adjusted_p) for one in stray} == {
        ("NOT_TESTED", "exploratory", False, False, None)
    }
    assert all(one.exploratory_p is not None and one.low is not None for one in stray)
    assert found.overall == "PASS"


def test_exploratory_hypotheses_do_not_dilute_the_family() -> None:
    strong = group(estimate=0.9, standard_error=0.9 / stats.t.isf(0.01, 20))  # p = .02
    others = [group(f"g{i}") for i in range(9)]
    assert ruling(strong, *others, **GROUP_ONLY).verdict == "INCONCLUSIVE"
    assert ruling(strong, *others, **GROUP_ONLY, groups=("age/older",)).verdict == "FAIL"


def test_without_controls_nothing_is_tested_whatever_the_estimate() -> None:
    values = {"reference": "other_terms", "n_controls": 0}
    for estimate in (0.0, 5.0):
        found = verdict(group(estimate=estimate, **values), term(estimate=estimate, **values))
        assert found.overall == "NOT_TESTED" and {one.rule for one in found.rulings} == {"no_controls"}


def test_nothing_undefined_passes() -> None:
    for broken in (
        {"estimate": None},
        {"standard_error": None, "df": None, "p": None, "why_not": "one_term"},
        {"df": None, "p": None},
    ):
        found = verdict(group(**({"p": None} | broken)), **GROUP_ONLY)
        assert found.overall == "NOT_TESTED" and found.rulings[0].verdict == "NOT_TESTED"
        assert found.rulings[0].adjusted_p is None


def test_an_audit_without_hypotheses_is_not_tested() -> None:
    found = verdict()
    assert (found.overall, found.rule) == ("NOT_TESTED", "overall_no_hypotheses")


def test_the_policy_may_lower_the_minima() -> None:
    few = group(n_terms=3, n_controls=10, n_templates=5)
    assert ruling(few, **GROUP_ONLY, minimum={"terms": 3, "controls": 10, "templates": 5}).verdict == "PASS"


# Waivers

WAIVER = {"hypothesis": "group/age/older", "owner": "Ana", "reason": "known", "expires": date(2026, 6, 1)}
FAILING = {"estimate": 2.0}


def test_a_waived_failure_passes_with_waivers_on_its_last_day() -> None:
    found = verdict(group(**FAILING), **GROUP_ONLY, waivers=[WAIVER])
    assert (found.overall, found.rule, found.with_waivers, found.as_of) == (
        "PASS",
        "overall_pass_with_waivers",
        True,
        "2026-06-01",
    )
    assert found.rulings[0].verdict == "FAIL" and found.rulings[0].waiver["owner"] == "Ana"


def test_an_expired_waiver_does_not_hold_and_is_named() -> None:
    found = verdict(group(**FAILING), **GROUP_ONLY, waivers=[WAIVER | {"expires": date(2026, 5, 31)}])
    assert (found.overall, found.with_waivers, found.rulings[0].waiver) == ("FAIL", False, None)
    assert [note.code for note in found.notes] == ["waiver_expired"]


def test_a_waiver_covers_its_own_hypothesis_only() -> None:
    found = verdict(group(**FAILING), group("younger", **FAILING), **GROUP_ONLY, waivers=[WAIVER])
    assert found.overall == "FAIL"


def test_a_waiver_does_not_lift_what_is_undecided() -> None:
    found = verdict(group(estimate=0.1, standard_error=0.6), **GROUP_ONLY, waivers=[WAIVER])
    assert (found.overall, found.with_waivers) == ("INCONCLUSIVE", False)
    assert [note.code for note in found.notes] == ["waiver_not_needed"]


def test_a_waived_failure_beside_an_undecided_group_is_undecided() -> None:
    beside = group("younger", estimate=0.1, standard_error=0.6)
    found = verdict(group(**FAILING), beside, **GROUP_ONLY, waivers=[WAIVER])
    assert (found.overall, found.with_waivers) == ("INCONCLUSIVE", True)


def test_a_verdict_without_waivers_has_no_date() -> None:
    assert verdict(group(), **GROUP_ONLY).as_of is None


# What matches nothing


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"groups": ("age/oldr",)}, "did you mean 'age/older'"),
        ({"groups": ()}, "selects nothing"),
        ({"scopes": ("term",)}, "'term' matches no hypothesis"),
        ({"waivers": [WAIVER | {"hypothesis": "group/age/oldest"}]}, "did you mean 'group/age/older'"),
        ({"target": "worse"}, "needs a new audit"),
        ({"scale": "probability", "margin": 0.1}, "needs a new audit"),
    ],
)
def test_a_policy_that_matches_nothing_is_refused(policy: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        verdict(group(), **GROUP_ONLY | policy)


# What stands beside a ruling


def test_intervals_are_at_one_minus_alpha_and_the_equivalence_interval_at_one_minus_two_alpha() -> None:
    found = ruling(group(estimate=0.2), **GROUP_ONLY)
    assert (found.low, found.high) == pytest.approx(stats.t.interval(0.95, 20, 0.2, 0.1))
    assert (found.equivalence_low, found.equivalence_high) == pytest.approx(stats.t.interval(0.9, 20, 0.2, 0.1))


def test_a_failure_says_whether_its_whole_interval_lies_beyond() -> None:
    assert ruling(group(estimate=1.3), **GROUP_ONLY).beyond_margin is True
    assert ruling(group(estimate=-1.3), **GROUP_ONLY).beyond_margin is True
    assert ruling(group(estimate=0.8), **GROUP_ONLY).beyond_margin is False


def test_an_undecided_group_says_what_it_could_have_found_and_what_would_decide() -> None:
    found = ruling(group(estimate=0.3, standard_error=0.3, n_terms=6), **GROUP_ONLY)
    expected = (stats.t.isf(0.025, 20) + stats.t.isf(0.2, 20)) * 0.3
    assert found.minimum_detectable_effect == pytest.approx(expected)
    assert found.terms_needed is not None and found.terms_needed > 6


def test_an_attribution_below_the_asked_for_concordance_is_named_and_decides_nothing() -> None:
    attributed = group(estimate=9.0).model_copy(
        update={"id": "attribution/rollout/group/age/older", "metric": "attribution_contrast", "method": "rollout"}
    )
    for concordance, codes in (
        (0.49, ["attribution_not_corroborated"]),
        (0.5, []),
        (None, ["attribution_not_corroborated"]),
    ):
        found = verdict(group(), attributed.model_copy(update={"concordance": concordance}), **GROUP_ONLY)
        assert [note.code for note in found.notes] == codes
        assert found.overall == "PASS" and len(found.rulings) == 1


def test_the_order_of_the_findings_changes_nothing() -> None:
    many = [group(estimate=0.9, standard_error=0.2), group("younger"), term(), term("elderly", estimate=2.0)]
    assert verdict(*many) == verdict(*reversed(many))
