"""Two real classifiers that nothing was planted in: what an audit says of them, on our set and on public ones."""

from datetime import date
from pathlib import Path

import pytest

from steps.attribute import attribute_sample
from steps.collect import collect
from steps.judge import judge
from steps.measure import measure
from steps.predict import predict
from veedor.records import EvaluationSet, Verdict
from veedor.settings import Settings, build
from veedor.subjects import Subject

pytestmark = pytest.mark.slow
TODAY = date(2026, 1, 1)


def audited(model: Path, evaluation_set: str, **options: object) -> tuple[EvaluationSet, Verdict]:
    """A whole audit but for attribution, which never decides."""
    values = {"evaluation_set": evaluation_set, "attribution_rows": 0, **options}
    settings = build(Settings, values, "the test's settings")
    subject = Subject.load(model)
    evaluation = collect(settings, None)
    decisions = predict(evaluation, subject, settings)
    attributions = attribute_sample(evaluation, decisions, subject, settings)
    return evaluation, judge(measure(evaluation, decisions, attributions, settings), settings.policy, today=TODAY)


def failing(verdict: Verdict, scope: str) -> set[str]:
    return {r.term or f"{r.axis}/{r.group}" for r in verdict.rulings if r.scope == scope and r.verdict == "FAIL"}


def test_the_abuse_classifier_fails_on_sexual_orientation_and_on_single_words(shared: Path) -> None:
    _, verdict = audited(shared / "models" / "abuse-minilm", "identity-terms-en", target="abusive")
    assert verdict.overall == "FAIL"
    assert {"sexual_orientation/lgb", "gender/transgender"} <= failing(verdict, "group")
    assert {"gay", "lesbian", "queer", "transgender"} <= failing(verdict, "term")
    ruling = next(r for r in verdict.rulings if r.id == "group/sexual_orientation/lgb")
    assert ruling.low is not None and ruling.low > 0.693, "the whole interval lies beyond the margin"


def test_madlibs_name_the_words_that_the_abuse_classifier_calls_abusive(shared: Path) -> None:
    madlibs = str(shared / "data" / "bias_madlibs_77k.csv")
    evaluation, verdict = audited(shared / "models" / "abuse-minilm", madlibs, target="abusive", limit=4000)
    assert len(evaluation.rows) <= 4000
    assert {"queer", "homosexual", "lesbian", "transgender", "gay"} <= failing(verdict, "term")


def test_madlibs_name_no_word_for_the_sentiment_classifier(shared: Path) -> None:
    madlibs = str(shared / "data" / "bias_madlibs_77k.csv")
    _, verdict = audited(shared / "models" / "sentiment-minilm", madlibs, target="negative", limit=4000)
    assert not failing(verdict, "term")


def test_hatecheck_runs_and_counts_what_could_not_be_swapped(shared: Path) -> None:
    hatecheck = str(shared / "data" / "hatecheck_en.csv")
    evaluation, verdict = audited(shared / "models" / "abuse-minilm", hatecheck, target="abusive")
    counted = evaluation.excluded["reason"].value_counts()
    assert (counted["no_identity"], counted["slur"], counted["misspelled_identity"]) == (403, 378, 154)
    assert verdict.overall in ("FAIL", "INCONCLUSIVE", "NOT_TESTED")
    assert {r.verdict for r in verdict.rulings if r.scope == "group"} == {"NOT_TESTED"}, "one or two words a group"
