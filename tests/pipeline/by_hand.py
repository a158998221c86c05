"""Records small enough to write by hand, and steps that make them."""

from datetime import date

import pandas as pd

from veedor.records import EvaluationSet, Finding, Ruling, SubjectCard, Verdict
from veedor.settings import Policy, Settings


def finding(identifier: str, estimate: float | None, **changed: object) -> Finding:
    """A finding with the given id and estimate."""
    scope, axis, group, *term = identifier.split("/")
    values: dict[str, object] = {
        "id": identifier,
        "metric": "term_swap_effect",
        "scope": scope,
        "axis": axis,
        "group": group,
        "term": term[0] if term else None,
        "reference": "controls",
        "units": "logits",
        "estimate": estimate,
        "standard_error": None if estimate is None else 0.1,
        "df": None if estimate is None else 20.0,
        "p": None if estimate is None else 0.001,
        "n_templates": 14,
        "n_terms": 8,
        "n_controls": 30,
        "tail_factor": 1.2,
        "why_not": "no_controls" if estimate is None else None,
    }
    return Finding.model_validate(values | changed)


def ruling(identifier: str, verdict: str, estimate: float | None) -> Ruling:
    """A gating, primary ruling."""
    scope, axis, group, *term = identifier.split("/")
    empty = dict.fromkeys(("standard_error", "df", "low", "high", "p", "adjusted_p", "equivalence_p", "beyond_margin"))
    values = {"id": identifier, "scope": scope, "axis": axis, "group": group, "term": term[0] if term else None}
    known = {"verdict": verdict, "primary": True, "gating": True, "rule": "by_hand", "estimate": estimate}
    return Ruling.model_validate(empty | values | known | {"adjusted_p": None if estimate is None else 0.004})


def card(**changed: object) -> SubjectCard:
    """An audited model."""
    values: dict[str, object] = {
        "name": "models:/tiny@candidate",
        "architecture": "BertForSequenceClassification",
        "model_type": "bert",
        "labels": ("fine", "bad"),
        "head": "softmax",
        "parameters": 10,
        "window": 64,
        "stored_dtype": "float32",
        "weights_digest": "w" * 64,
        "tokenizer_digest": "t" * 64,
    }
    return SubjectCard.model_validate(values | changed)


def effects() -> pd.DataFrame:
    """What terms and controls did, (word, effect) by word."""
    words = [("old", "term", 1.6), ("elderly", "term", 1.4), *((f"word{n}", "control", n / 60) for n in range(30))]
    rows = [("group/age/older", word, kind, effect, 14, 1.0, 4.0) for word, kind, effect in words]
    return pd.DataFrame(rows, columns=["finding", "word", "kind", "effect", "n_contexts", "subwords", "band"])


def contexts() -> pd.DataFrame:
    """How far terms and controls lay apart in each context."""
    rows = [("group/age/older", f"context{n}", 1.4 + n / 70, 2) for n in range(14)]
    return pd.DataFrame(rows, columns=["finding", "context", "difference", "n_rows"])


def challenged() -> pd.DataFrame:
    """What one method got beside chance, and one metric that could not be measured."""
    rows: list[tuple[object, ...]] = [
        ("rollout", "mask", "comprehensiveness", 0.3, 0.2, 0.1, 0.1, -0.1, 0.3, 48, 12, 0, None),
        ("rollout", "", "randomised_head", None, None, None, None, None, None, 0, 0, 48, "no_target"),
    ]
    columns = "method operator metric estimate random uniform difference low high n_texts n_clusters undefined reason"
    return pd.DataFrame(rows, columns=columns.split())


CALLS: list[str] = []


def collect(settings: Settings, subject_language: str | None) -> EvaluationSet:
    """A step that makes two rows and says that it was called."""
    CALLS.append("collect")
    rows = pd.DataFrame({"id": ["1", "2"], "text": [f"seed {settings.seed}", str(subject_language)]})
    return EvaluationSet(
        name="by-hand",
        language="en",
        licence="Apache-2.0",
        source="tests",
        intended_construct="term_swap_effect",
        digest="d" * 64,
        rows=rows,
        excluded=rows.head(0),
    )


def judge(evaluation: EvaluationSet, policy: Policy, today: date) -> Verdict:
    """A step that passes everything and says that it was called."""
    CALLS.append("judge")
    return Verdict(
        overall="PASS",
        rule="by_hand",
        policy=policy.model_dump(mode="json"),
        policy_digest=policy.digest(),
        as_of=today.isoformat() if policy.waivers else None,
        rulings=(),
    )
