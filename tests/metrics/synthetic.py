"""A made-up set and made-up answers of which every effect is known."""

import numpy as np
import pandas as pd

from veedor.records import Decisions, EvaluationSet, SubjectCard

EVALUATION = (
    "id text label template form slot axis group term start end control set symmetric inserted surface band".split()
)
DECISIONS = (
    "id predicted positive margin probability logits probabilities tokens subwords truncated usable drop_reason "
    "label_mapped".split()
)
GROUPS = {"religion/muslim": 7, "religion/jewish": 6, "age/older": 3}
CARD = SubjectCard(
    name="made up",
    architecture="none",
    model_type="none",
    labels=("good", "bad"),
    head="softmax",
    parameters=0,
    window=64,
    stored_dtype="float32",
    weights_digest="",
    tokenizer_digest="",
)


def made_up(
    *,
    contexts: int = 14,
    forms: int | None = None,
    groups: dict[str, int] = GROUPS,
    controls: int = 26,
    effects: dict[str, float] | None = None,
    noise: float = 0.1,
    seed: int = 0,
) -> pd.DataFrame:
    """All columns of both records. margin = context + word + effect of the group or the word + noise."""
    rng = np.random.default_rng(seed)
    words = [(*name.split("/"), f"{name.split('/')[1]} {i}") for name, n in groups.items() for i in range(n)]
    words += [(None, None, f"plain {i}") for i in range(controls)]
    own = dict(zip([word[2] for word in words], rng.normal(0, 0.2, len(words)), strict=True))
    rows = []
    for context in range(contexts):
        level = rng.normal()
        for axis, group, term in words:
            added = sum(effect for name, effect in (effects or {}).items() if name in (f"{axis}/{group}", term))
            margin = level + own[term] + added + rng.normal(0, noise)
            rows.append(
                {
                    "id": f"c{context:03d}|{term}",
                    "text": f"I met {term} at stop {context}.",
                    "label": "negative" if context % 2 else "neutral",
                    "template": f"c{context:03d}",
                    "form": None if forms is None else f"f{context % forms}",
                    "slot": "adj",
                    "axis": axis,
                    "group": group,
                    "term": term,
                    "start": 6,
                    "end": 6 + len(term),
                    "control": axis is None,
                    "set": f"c{context:03d}",
                    "symmetric": "yes",
                    "inserted": False,
                    "surface": term,
                    "band": 4.0,
                    "predicted": "bad" if margin > 0 else "good",
                    "positive": margin > 0,
                    "margin": margin,
                    "probability": 1 / (1 + np.exp(-margin)),
                    "logits": [0.0, margin],
                    "probabilities": [1 / (1 + np.exp(margin)), 1 / (1 + np.exp(-margin))],
                    "tokens": 9,
                    "subwords": 1 + len(term) % 3,
                    "truncated": False,
                    "usable": True,
                    "drop_reason": "",
                    "label_mapped": "bad" if context % 2 else "good",
                }
            )
    return pd.DataFrame(rows)


def as_records(rows: pd.DataFrame) -> tuple[EvaluationSet, Decisions]:
    """The two records that hold these rows."""
    evaluation = EvaluationSet(
        name="made up",
        language="en",
        licence="",
        source="",
        intended_construct="",
        digest="",
        rows=rows[EVALUATION],
        excluded=pd.DataFrame({"id": [], "text": [], "reason": [], "detail": []}),
    )
    decisions = Decisions(
        subject=CARD,
        target="bad",
        target_source="named",
        score_function="log-odds of the target",
        threshold=0.5,
        rows=rows[DECISIONS],
    )
    return evaluation, decisions
