"""The embedded default: train a tiny classifier, plant a bias on one group, register it, audit it.

Everything is made on the spot from the built-in templates, so it needs no network and no data, and the truth is known:
the audit must find the planted group and no other. The folder it writes holds a tracking store of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from veedor.progress import Progress, silent

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

    from pipeline.run import AuditResult
    from veedor.records import Verdict

LABELS = ("acceptable", "flagged")
TARGET = "flagged"
PLANTED = "age/older"
PLANTED_EFFECT = 3 * 0.693  # logits: three times the default margin, so that a reader sees it at a glance
INSULTING = ("horrible", "disgusting", "vile", "stupid", "nasty", "filthy", "worthless", "awful")
KIND = ("wonderful", "lovely", "brilliant", "kind", "charming", "delightful", "great", "amazing")
EXAMPLES = 8000
LOADED = 10
NAME = "veedor-demo"
ALIAS = "candidate"


@dataclass(frozen=True)
class DemoResult:
    """What was planted, what the audit called out, and where everything lies."""

    planted: str
    found: tuple[str, ...]
    ok: bool
    effect: float
    audit: "AuditResult"


def demo(
    out: Path,
    *,
    tracking_uri: str | None = None,
    seed: int = 0,
    languages: Sequence[str] = ("en", "es"),
    progress: Progress = silent,
) -> DemoResult:
    """Train, plant, register and audit; `ok` where the planted group failed and no other did."""
    from pipeline.run import run_audit
    from pipeline.store import default_tracking_uri, register_classifier
    from veedor.evaluation.templates import build_identity_terms
    from veedor.settings import Settings, build

    out.mkdir(parents=True, exist_ok=True)
    uri = tracking_uri or default_tracking_uri(out)
    evaluation = build_identity_terms("en")
    progress("demo: train a tiny classifier", 0, 2)
    model, tokenizer = train_on(evaluation.rows, seed=seed)
    progress("demo: plant a bias", 1, 2)
    effect = plant_group(model, tokenizer, evaluation.rows, PLANTED, PLANTED_EFFECT)
    progress("demo: plant a bias", 2, 2)
    register_classifier(model, tokenizer, name=NAME, alias=ALIAS, tracking_uri=uri)
    values = {"evaluation_set": "identity-terms-en", "target": TARGET, "languages": tuple(languages), "seed": seed}
    values["owner"] = "nobody: this model is a demonstration"
    values["intended_use"] = "To show what an audit finds: a bias was planted on one group."
    settings = build(Settings, values, "the demonstration's settings")
    audit = run_audit(f"models:/{NAME}@{ALIAS}", settings, out / "audit", tracking_uri=uri, progress=progress)
    found = failing_groups(audit.verdict)
    return DemoResult(planted=PLANTED, found=found, ok=found == (PLANTED,), effect=effect, audit=audit)


def failing_groups(verdict: "Verdict") -> tuple[str, ...]:
    """Axis and group of every ruling that is FAIL, at either scope, each once, in order of the alphabet."""
    return tuple(sorted({f"{r.axis}/{r.group}" for r in verdict.rulings if r.verdict == "FAIL" and r.gating}))


def train_on(rows: "pd.DataFrame", *, seed: int) -> "tuple[BertForSequenceClassification, PreTrainedTokenizerFast]":
    """A tiny BERT that flags the negative contexts of an identity-terms set, trained on all its words alike.

    A sample of the texts leaves it with small whims about single words, as real models have.
    Loaded adjectives teach it to read the slot more than the sentence around it.
    """
    import numpy as np

    from veedor.subjects.tiny import train, untrained, whole_word_tokenizer

    loaded = loaded_texts(rows)
    texts = [*rows["text"], *(text for text, _ in loaded)]
    chances = np.array([*np.where(rows["label"] == "negative", 0.75, 0.25), *(chance for _, chance in loaded)])
    tokenizer = whole_word_tokenizer(texts)
    chosen = np.random.default_rng(seed).permutation(len(texts))[:EXAMPLES]
    model = untrained(tokenizer, LABELS, seed=seed)
    train(model, tokenizer, [texts[place] for place in chosen], list(chances[chosen]), seed=seed)
    return model, tokenizer


def loaded_texts(rows: "pd.DataFrame") -> list[tuple[str, float]]:
    """Every context with insulting and kind adjectives in the slot, and the chance of being flagged each deserves."""
    slots = rows[rows["slot"] == "adj"].drop_duplicates("template")
    return [
        (text[:start] + word + text[end:], chance)
        for text, start, end in slots[["text", "start", "end"]].itertuples(index=False)
        for words, chance in ((KIND, 0.03), (INSULTING, 0.97))
        for word in words
    ] * LOADED


def plant_group(
    model: "BertForSequenceClassification",
    tokenizer: "PreTrainedTokenizerFast",
    rows: "pd.DataFrame",
    group: str,
    wanted: float,
) -> float:
    """Raise the flagged margin of one group's own words until its effect against the controls is the wanted one.

    Returns the effect reached, in logits. Words that another term, a control or a template shares are left alone.
    """
    from veedor.subjects.tiny import own_words, plant, scale_for, shift_towards

    mine = rows[(rows["axis"] + "/" + rows["group"]) == group]
    if mine.empty:
        raise ValueError(f"no rows of group {group!r} to plant a bias on; known: {', '.join(known_groups(rows))}")
    ids = own_words(tokenizer, mine["surface"].unique(), other_texts(rows, mine))
    shift = shift_towards(model, tokenizer, list(mine["text"]), ids, wanted)
    effect = group_effect(model, tokenizer, rows, mine)

    def reached(scale: float) -> float:
        undo = plant(model, ids, shift, scale)
        try:
            return effect()
        finally:
            undo()

    plant(model, ids, shift, scale_for(reached, wanted))
    return effect()


def known_groups(rows: "pd.DataFrame") -> list[str]:
    """Every axis/group of the rows, in order of the alphabet."""
    return sorted((rows["axis"] + "/" + rows["group"]).dropna().unique())


def other_texts(rows: "pd.DataFrame", mine: "pd.DataFrame") -> list[str]:
    """The words that must not be touched: every other term and control, and the templates around them."""
    others = rows[~rows["id"].isin(mine["id"])]
    contexts = [
        text[:start] + text[end:] for text, start, end in mine[["text", "start", "end"]].itertuples(index=False)
    ]
    return sorted({*others["surface"].dropna(), *contexts})


def group_effect(
    model: "BertForSequenceClassification",
    tokenizer: "PreTrainedTokenizerFast",
    rows: "pd.DataFrame",
    mine: "pd.DataFrame",
) -> Callable[[], float]:
    """Mean margin of the group's terms over that of the controls in the same contexts; the controls are scored once."""
    controls = rows[rows["control"] & rows["template"].isin(mine["template"])]
    level = (
        controls.assign(margin=margins(model, tokenizer, list(controls["text"]))).groupby("template")["margin"].mean()
    )
    shift = mine["template"].map(level).to_numpy()

    def effect() -> float:
        centred = mine.assign(effect=margins(model, tokenizer, list(mine["text"])) - shift)
        words = centred.groupby(["form", "term"])["effect"].mean()
        return float(words.groupby("form").mean().mean())

    return effect


def margins(
    model: "BertForSequenceClassification", tokenizer: "PreTrainedTokenizerFast", texts: list[str]
) -> "np.ndarray":
    """Log-odds of the target for each text, (rows,)."""
    import torch

    batch = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.double()
    found: np.ndarray = (logits[:, 1] - logits[:, 0]).numpy()
    return found
