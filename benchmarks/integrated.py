"""Integrated gradients against captum: the same error, nodes and seconds. A part of `engine.py`."""

import copy
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import peers
from benchmarks.timing import seconds_of, table
from veedor.attribution import explain
from veedor.attribution.gradients import gradients_at
from veedor.attribution.question import Question, undisturbed
from veedor.subjects import Subject

if TYPE_CHECKING:
    from veedor.attribution import Scored
    from veedor.subjects import Encoding

TOLERANCE = 0.01
STEPS = (*range(10, 100, 5), *range(100, 401, 20))
AT_ONCE = 128  # nodes that captum may hold: the fastest of 32, 64, 128 and 256 for these texts


def exact(subject: Subject, encodings: "Sequence[Encoding]", *, nodes: int, cache: Path) -> list[np.ndarray]:
    """Integrated gradients in float64 by Gauss and Legendre's rule, one vector a text; kept in `cache`."""
    import torch

    content = f"{subject.card.weights_digest}:{nodes}:{[own.ids for own in encodings]}"
    kept = cache / f"exact-{hashlib.sha256(content.encode()).hexdigest()[:16]}.npz"
    if kept.is_file():
        with np.load(kept) as found:
            return [found[str(row)] for row in range(len(encodings))]
    wide = Subject(copy.deepcopy(subject.model).double(), subject.tokenizer, name=f"{subject.name} in float64")
    question = Question(wide, encodings, 1, "integrated_gradients")
    at, weight = np.polynomial.legendre.leggauss(nodes)
    sums: dict[int, np.ndarray] = {}
    with undisturbed(wide):
        for batch in wide.batches(encodings, size=16):
            ends, starts = wide.embed(batch).detach(), wide.baseline(batch).detach()
            total = torch.zeros(ends.shape[:2], dtype=torch.float64)
            for position, share in zip((at + 1) / 2, weight / 2, strict=True):
                _, gradient = gradients_at(question, starts + position * (ends - starts), batch)
                total += share * (gradient * (ends - starts)).sum(dim=-1)
            for place, row in enumerate(batch.rows):
                sums[row] = total[place][batch.mask[place].bool()].numpy()
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(kept, **{str(row): own for row, own in sums.items()})
    return [sums[row] for row in range(len(encodings))]


def errors(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> np.ndarray:
    """L1 error of each text's vector, relative to its own L1."""
    return np.array([np.abs(own - best).sum() / np.abs(best).sum() for own, best in zip(found, expected, strict=True)])


def ours(subject: Subject, encodings: "Sequence[Encoding]") -> "list[Scored]":
    """Veedor's method at its defaults."""
    return explain(subject, encodings, 1, method="integrated_gradients")


def captum_batched(subject: Subject, encodings: "Sequence[Encoding]", steps: int) -> list[np.ndarray]:
    """captum on batches of 32 texts of similar length."""
    found: dict[int, np.ndarray] = {}
    for batch in subject.batches(encodings, size=32):
        scores = peers.integrated_gradients(subject, batch, steps=steps, at_once=AT_ONCE)
        for place, row in enumerate(batch.rows):
            found[row] = scores[place][batch.mask[place].bool()].detach().double().numpy()
    return [found[row] for row in range(len(encodings))]


def captum_single(subject: Subject, encodings: "Sequence[Encoding]", steps: int = 50) -> None:
    """captum's LayerIntegratedGradients, one text a call."""
    for encoding in encodings:
        [batch] = subject.batches([encoding])
        peers.layer_integrated_gradients(subject, batch, steps=steps)


def fewest_steps(subject: Subject, encodings: "Sequence[Encoding]", best: Sequence[np.ndarray]) -> int | None:
    """The fewest steps with which captum brings 95 % of the texts within the tolerance; None: not with 400."""
    for steps in STEPS:
        if np.mean(errors(captum_batched(subject, encodings, steps), best) <= TOLERANCE) >= 0.95:
            return steps
    return None


def one_node(subject: Subject, encodings: "Sequence[Encoding]") -> None:
    """A forward pass and a backward pass to the inputs for every text."""
    question = Question(subject, encodings, 1, "integrated_gradients")
    with undisturbed(subject):
        for batch in subject.batches(encodings, size=32):
            gradients_at(question, subject.embed(batch), batch)


def compare(
    name: str, subject: Subject, encodings: "Sequence[Encoding]", *, nodes: int, cache: Path, repeats: int
) -> tuple[object, ...]:
    """One row of the table: what ours costs and errs, and what captum does for the same error."""
    best = exact(subject, encodings, nodes=nodes, cache=cache)
    mine = ours(subject, encodings)
    wrong = errors([own.scores for own in mine], best)
    gaps = np.array([own.gap for own in mine], dtype=float)
    steps = fewest_steps(subject, encodings, best)
    ways = {
        "ours": lambda: ours(subject, encodings),
        "node": lambda: one_node(subject, encodings),
        "captum 50": lambda: captum_single(subject, encodings),
        "captum equal": lambda: captum_batched(subject, encodings, steps or STEPS[-1]),
    }
    seconds = seconds_of(ways, repeats=repeats)
    mean_nodes = float(np.mean([own.nodes for own in mine]))
    return (
        name,
        len(encodings),
        f"{np.mean(wrong <= TOLERANCE):.1%} / {np.mean(gaps <= TOLERANCE):.1%}",
        f"{np.median(wrong):.2%} / {wrong.max():.2%}",
        mean_nodes,
        seconds["ours"],
        seconds["ours"] / (mean_nodes * seconds["node"]),
        seconds["captum 50"] / seconds["ours"],
        str(steps) if steps else f"more than {STEPS[-1]}",
        seconds["captum equal"] / seconds["ours"],
    )


HEAD = (
    "model, texts",
    "texts",
    "within 1 %: vector / gap",
    "vector error: median / largest",
    "mean nodes",
    "seconds",
    "time / (nodes × forward and backward)",
    "captum, 50 steps a text / ours",
    "captum's steps for the same error",
    "captum batched with these / ours",
)


def report(rows: list[tuple[object, ...]]) -> None:
    """Print the rows."""
    table("Integrated gradients", HEAD, rows)
