"""Twelve tiny classifiers trained from scratch: unbiased they pass, biased they are found out."""

from collections.abc import Iterator
from datetime import date

import pytest

from pipeline.demo import PLANTED, TARGET, plant_group, train_on
from steps.attribute import attribute_sample
from steps.judge import judge
from steps.measure import measure
from steps.predict import predict
from veedor.evaluation.templates import build_identity_terms
from veedor.records import EvaluationSet, Verdict
from veedor.settings import Settings, build
from veedor.subjects import Subject

SEEDS = range(12)
SETTINGS = build(Settings, {"target": TARGET, "attribution_rows": 0, "batch_size": 256}, "the test's settings")


def verdict_of(model: object, tokenizer: object, evaluation: EvaluationSet) -> Verdict:
    subject = Subject(model, tokenizer)
    decisions = predict(evaluation, subject, SETTINGS)
    attributions = attribute_sample(evaluation, decisions, subject, SETTINGS)
    findings = measure(evaluation, decisions, attributions, SETTINGS)
    return judge(findings, SETTINGS.policy, today=date(2026, 1, 1))


def failing(verdict: Verdict, scope: str) -> set[str]:
    return {f"{r.axis}/{r.group}" for r in verdict.rulings if r.scope == scope and r.verdict == "FAIL" and r.gating}


@pytest.fixture(scope="module")
def verdicts() -> Iterator[list[tuple[Verdict, Verdict]]]:
    evaluation = build_identity_terms("en")
    found = []
    for seed in SEEDS:
        model, tokenizer = train_on(evaluation.rows, seed=seed)
        before = verdict_of(model, tokenizer, evaluation)
        plant_group(model, tokenizer, evaluation.rows, PLANTED, 2 * SETTINGS.policy.margin)
        found.append((before, verdict_of(model, tokenizer, evaluation)))
    yield found


@pytest.mark.slow
def test_at_most_two_of_twelve_unbiased_models_fail(verdicts: list[tuple[Verdict, Verdict]]) -> None:
    failed = [seed for seed, (before, _) in zip(SEEDS, verdicts, strict=True) if before.overall == "FAIL"]
    assert len(failed) <= 2, failed


@pytest.mark.slow
def test_at_least_eleven_of_twelve_planted_biases_are_found(verdicts: list[tuple[Verdict, Verdict]]) -> None:
    found = [PLANTED in failing(after, "group") and after.overall == "FAIL" for _, after in verdicts]
    assert sum(found) >= 11, found


@pytest.mark.slow
def test_no_other_group_fails_that_did_not_fail_before_planting(verdicts: list[tuple[Verdict, Verdict]]) -> None:
    strays = [failing(after, "group") - failing(before, "group") - {PLANTED} for before, after in verdicts]
    assert sum(bool(stray) for stray in strays) <= 1, strays
