"""Records small enough to write by hand."""

from veedor.records import Finding, Ruling, SubjectCard


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
