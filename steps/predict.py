"""Ask the model for its decision on every row, and find out which rows it can be asked about at all.

What needs the model is checked here and nowhere else: the target, which labels of the set are the model's, texts longer
than its window, terms that were cut off or that it cannot tell apart. No comparison is made; no row is left out.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from veedor.errors import SubjectError, UsageError, unknown
from veedor.progress import Progress, silent
from veedor.records import Decisions, EvaluationSet, Note
from veedor.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from veedor.subjects import Encoding, Subject

    TargetSource = Literal["named", "policy", "label_1", "only"]

NONE_OF_THEM = ""  # in a label map, for heads that may choose no label
SHOWN = 10  # words or labels named in a note
HALF_PRECISION = ("float16", "bfloat16")


@dataclass(frozen=True)
class Target:
    """The label whose margin is judged, and who chose it."""

    label: str
    source: "TargetSource"
    notes: tuple[Note, ...] = ()


def predict(
    evaluation: EvaluationSet, subject: "Subject", settings: Settings, progress: Progress = silent
) -> Decisions:
    """The model's answer to each row of the set, in the order of its rows."""
    target = resolve_target(subject, settings)
    label_map = join_labels(evaluation, subject, settings.policy.label_map)
    texts = list(evaluation.rows["text"])
    encodings = subject.encode(texts)
    logits = ask(subject, encodings, settings.batch_size, progress)
    rows = pd.concat(
        (
            answers(subject, logits, target.label, settings.threshold),
            what_was_read(evaluation.rows, encodings),
        ),
        axis=1,
    )
    rows.insert(0, "id", evaluation.rows["id"].to_numpy())
    mapped = [label_map.get(label) for label in evaluation.rows["label"]]
    rows["label_mapped"] = pd.Series(mapped, dtype=object)
    counts = count(rows)
    return Decisions(
        subject=subject.card,
        target=target.label,
        target_source=target.source,
        score_function=score_function(subject, settings),
        threshold=settings.threshold,
        label_map=label_map,
        counts=counts,
        notes=(*target.notes, *notes_on(evaluation, subject, rows, label_map)),
        rows=rows,
    )


def resolve_target(subject: "Subject", settings: Settings) -> Target:
    """The named target, the policy's, label 1 of two or the only label; UsageError lists the labels otherwise."""
    named, agreed = settings.target, settings.policy.target
    if named is not None and agreed is not None and named != agreed:
        raise UsageError(
            f"target is {named!r}, but the policy judges {agreed!r}; leave out --target, or change the policy's target"
        )
    if named is not None or agreed is not None:
        label = subject.labels[subject.target_index(str(named if named is not None else agreed))]
        return Target(label, "named" if named is not None else "policy")
    if len(subject.labels) == 1:
        return Target(subject.labels[0], "only")
    if len(subject.labels) == 2:
        other, label = subject.labels
        return Target(label, "label_1", (Note(code="target_assumed", values={"target": label, "other": other}),))
    raise UsageError(
        f"{subject.name} has {len(subject.labels)} labels; name the one to judge with --target, or as target in the "
        f"policy: {', '.join(map(shown, subject.labels))}"
    )


def shown(label: str) -> str:
    """A label as it is, in quotation marks with escapes where it holds what would not show.

    >>> shown("very bad"), shown("a\\nb")
    ('very bad', "'a\\\\nb'")
    """
    return label if label.isprintable() else repr(label)


def join_labels(evaluation: EvaluationSet, subject: "Subject", asked: dict[str, str]) -> dict[str, str]:
    """Labels of the set to labels of the model: as the policy says, else the same name whatever its case."""
    may_choose_none = subject.head != "softmax"
    for given, label in asked.items():
        if label not in subject.labels and not (label == NONE_OF_THEM and may_choose_none):
            known = [*subject.labels, *([NONE_OF_THEM] if may_choose_none else [])]
            raise UsageError(f"label_map: {given}: {unknown('label', label, known)} (labels of {subject.name})")
    same = {label.casefold(): label for label in subject.labels}
    found: dict[str, str] = {}
    for label in sorted(evaluation.rows["label"].dropna().unique()):
        joined = asked.get(label, same.get(str(label).casefold()))
        if joined is not None:
            found[str(label)] = joined
    return found


def ask(subject: "Subject", encodings: "Sequence[Encoding]", size: int, progress: Progress) -> np.ndarray:
    """Logits of each encoding, (n, outputs) float64; SubjectError where one is not a number."""
    import torch

    found: np.ndarray | None = None
    done = 0
    with torch.inference_mode():
        for batch in subject.batches(encodings, size=size):
            logits = subject.logits(batch).double().cpu().numpy()
            found = np.empty((len(encodings), logits.shape[1])) if found is None else found
            found[list(batch.rows)] = logits
            done += len(batch.rows)
            progress("predict", done, len(encodings))
    found = np.empty((0, len(subject.labels))) if found is None else found
    broken = ~np.isfinite(found).all(axis=1)
    if broken.any():
        raise SubjectError(
            f"{subject.name} answers {int(broken.sum())} of {len(found)} texts with logits that are no finite "
            f"numbers (the first: row {int(broken.argmax()) + 1}); its weights are damaged, or it is no trained model"
        )
    return found


def answers(subject: "Subject", logits: np.ndarray, target: str, threshold: float) -> pd.DataFrame:
    """Decision, margin and probabilities of each row."""
    import torch

    index = subject.target_index(target)
    given = torch.from_numpy(logits)
    margins = subject.margin(given, index).numpy()
    probabilities = subject.probabilities(given).numpy()
    chosen = decide(probabilities, head=subject.head, target=index, threshold=threshold)
    return pd.DataFrame(
        {
            "predicted": ["|".join(np.array(subject.labels, dtype=object)[row]) for row in chosen],
            "positive": chosen[:, index],
            "margin": margins,
            "probability": probabilities[:, index],
            "logits": list(logits),
            "probabilities": list(probabilities),
        }
    )


def decide(probabilities: np.ndarray, *, head: str, target: int, threshold: float) -> np.ndarray:
    """Which labels are chosen, (n, labels) bool.

    Several labels, or one logit: those at or above the threshold. softmax: the largest; a threshold other than .5 is
    that of the target, which is chosen at or above it, and otherwise the largest of the others.

    >>> decide(np.array([[0.3, 0.7], [0.6, 0.4]]), head="softmax", target=1, threshold=0.35).tolist()
    [[False, True], [False, True]]
    """
    if head == "sigmoid" or probabilities.shape[1] == 1:
        return probabilities >= threshold
    rows = np.arange(len(probabilities))
    chosen = np.zeros(probabilities.shape, dtype=bool)
    if head == "softmax" and threshold == 0.5:
        chosen[rows, probabilities.argmax(axis=1)] = True
        return chosen
    reached = probabilities[:, target] >= threshold
    others = probabilities.copy()
    others[:, target] = -1.0
    chosen[rows, np.where(reached, target, others.argmax(axis=1))] = True
    return chosen


def what_was_read(rows: pd.DataFrame, encodings: "Sequence[Encoding]") -> pd.DataFrame:
    """Lengths, cuts, and which rows can enter a comparison of terms."""
    spans = list(zip(rows["start"].tolist(), rows["end"].tolist(), strict=True))
    named = rows["term"].notna().to_numpy() & (rows["start"] >= 0).to_numpy()
    read = pd.DataFrame(
        {
            "tokens": [len(own.ids) for own in encodings],
            "subwords": [
                own.tokens_in(*span) if has else 0 for own, span, has in zip(encodings, spans, named, strict=True)
            ],
            "truncated": [own.truncated for own in encodings],
        }
    )
    cut = [has and not own.covers(*span) for own, span, has in zip(encodings, spans, named, strict=True)]
    reason = np.where(named & (rows["symmetric"] == "no").to_numpy(), "asymmetric", "")
    reason = np.where((reason == "") & alike(rows, encodings, named), "same_tokens", reason)
    reason = np.where(cut, "term_cut", reason)
    read["usable"] = named & (reason == "")
    read["drop_reason"] = reason.astype(object)
    return read


def alike(rows: pd.DataFrame, encodings: "Sequence[Encoding]", named: np.ndarray) -> np.ndarray:
    """Rows whose term becomes the same tokens as another word in the same context: the model cannot tell them apart.

    The same word twice (the same term, or the same letters whatever their case) is one word, not two that are alike.
    """
    ids = pd.Series([own.ids for own in encodings], index=rows.index)
    context = rows["set"].where(rows["set"].notna(), rows["template"]).astype(object)
    surface = rows["surface"].where(rows["surface"].notna(), rows["term"]).astype(str).str.casefold()
    frame = pd.DataFrame({"context": context, "ids": ids, "term": rows["term"], "surface": surface})[named]
    words = frame.groupby(["context", "ids"], dropna=False)[["term", "surface"]].transform("nunique")
    found = pd.Series(False, index=rows.index)
    found[words.index] = (words["term"] > 1) & (words["surface"] > 1)
    return found.to_numpy()


def count(rows: pd.DataFrame) -> dict[str, int]:
    """How many rows there are, were cut, can be used, and why not."""
    reasons = rows["drop_reason"].value_counts()
    return {
        "rows": len(rows),
        "truncated": int(rows["truncated"].sum()),
        "usable": int(rows["usable"].sum()),
        **{reason: int(reasons.get(reason, 0)) for reason in ("term_cut", "asymmetric", "same_tokens")},
        "labelled": int(rows["label_mapped"].notna().sum()),
        "positive": int(rows["positive"].sum()),
    }


def notes_on(
    evaluation: EvaluationSet, subject: "Subject", rows: pd.DataFrame, label_map: dict[str, str]
) -> list[Note]:
    """What a reader must know about how this model read this set."""
    counts = count(rows)
    notes = []
    if subject.card.stored_dtype in HALF_PRECISION:
        notes.append(Note(code="audited_in_float32", values={"stored": subject.card.stored_dtype}))
    if counts["truncated"]:
        notes.append(Note(code="truncated", values={"rows": counts["truncated"], "window": subject.window}))
    for reason in ("term_cut", "asymmetric"):
        if counts[reason]:
            notes.append(Note(code=reason, values={"rows": counts[reason]}))
    if counts["same_tokens"]:
        same = (rows["drop_reason"] == "same_tokens").to_numpy()
        words = evaluation.rows.loc[same, "term"].value_counts()
        values = {"rows": counts["same_tokens"], "terms": tuple(sorted(words.index[:SHOWN]))}
        notes.append(Note(code="same_tokens", values=values))
    unmapped = sorted(set(evaluation.rows["label"].dropna()) - set(label_map))
    if unmapped:
        values = {"labels": tuple(unmapped[:SHOWN]), "model_labels": subject.labels[:SHOWN]}
        notes.append(Note(code="labels_unmapped", values=values))
    return notes


def score_function(subject: "Subject", settings: Settings) -> str:
    """What is compared, in words that stand in the record."""
    if settings.policy.scale == "probability":
        return "probability of the target"
    return "log-odds of the target" if subject.head == "softmax" else "logit of the target"
