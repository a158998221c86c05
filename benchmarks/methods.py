"""Ten methods over many short texts against the public way of each. A part of `engine.py`.

The peer is run twice: one text a call, as tutorials show it, and on batches of 32 texts of similar length, which is the
best that can be got from it; its IG takes the steps that give our error. Scores are compared as well as seconds.
"""

import copy
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import peers
from benchmarks.timing import once, table
from veedor.attribution import explain
from veedor.settings import Settings

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Encoding, Subject

NO_PEER = "no public way runs on this stack"
AT_ONCE = 32


def peers_of(
    subject: "Subject", settings: Settings, *, steps: int
) -> "dict[str, Callable[[Batch], torch.Tensor] | None]":
    """The public way of each method, as a function of a padded batch."""
    eager = copy.deepcopy(subject.model)
    eager.set_attn_implementation("eager")
    samples = settings.smoothgrad.samples
    size = float(subject.model.get_input_embeddings().weight.detach().square().mean().sqrt())
    deviation = settings.smoothgrad.noise * size  # one deviation for all texts is all that captum takes
    return {
        "gradient": partial(peers.saliency, subject),
        "input_x_gradient": partial(peers.input_x_gradient, subject),
        "integrated_gradients": partial(peers.integrated_gradients, subject, steps=steps, at_once=128),
        "smoothgrad": partial(peers.smoothgrad, subject, samples=samples, deviation=deviation),
        "occlusion": partial(by_word, subject),
        "grad_cam": partial(peers.grad_cam, eager),
        "attention_gradient": partial(peers.attention_gradient, eager),
        "attention": partial(peers.attention, eager),
        "rollout": partial(peers.rollout, eager),
        "attn_lrp": None,
    }


def by_word(subject: "Subject", batch: "Batch", words: "torch.Tensor | None" = None) -> "torch.Tensor":
    """captum's ablation, each word of each text at a time."""
    assert words is not None
    return peers.feature_ablation(subject, batch, words, at_once=1 if len(batch.rows) > 1 else AT_ONCE)


def word_numbers(batch: "Batch", encodings: "Sequence[Encoding]") -> "torch.Tensor":
    """Each token's word, (b, n), as captum wants it: special tokens and padding share one number."""
    import torch

    width = batch.ids.shape[1]
    numbers = torch.zeros((len(batch.rows), width), dtype=torch.long)
    for place, row in enumerate(batch.rows):
        own = [word + 1 for word in encodings[row].token_word]
        numbers[place, : len(own)] = torch.tensor(own)
    return numbers


def run_peer(
    peer: "Callable[..., torch.Tensor]", subject: "Subject", encodings: "Sequence[Encoding]", *, size: int, words: bool
) -> list[np.ndarray]:
    """The peer's scores for every text."""
    found: dict[int, np.ndarray] = {}
    for batch in subject.batches(encodings, size=size):
        extra: dict[str, Any] = {"words": word_numbers(batch, encodings)} if words else {}
        scores = peer(batch, **extra).detach().double()
        for place, row in enumerate(batch.rows):
            found[row] = scores[place][batch.mask[place].bool()].numpy()
    return [found[row] for row in range(len(encodings))]


def apart(mine: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """Median over texts of the largest difference, relative to the largest score."""
    return float(np.median([np.abs(a - b).max() / np.abs(b).max() for a, b in zip(mine, other, strict=True)]))


def compare(subject: "Subject", encodings: "Sequence[Encoding]", *, steps: int) -> None:
    """Print the table: seconds of ours and of the peer, one text a call and batched."""
    settings = Settings()
    rows: list[tuple[object, ...]] = []
    totals = np.zeros(3)
    few = list(encodings[:8])
    for name, peer in peers_of(subject, settings, steps=steps).items():
        explain(subject, few, 1, method=name)
        kept: dict[str, list[np.ndarray]] = {}

        def ours(name: str = name, kept: dict[str, list[np.ndarray]] = kept) -> None:
            kept["ours"] = [own.scores for own in explain(subject, encodings, 1, method=name)]

        mine = once(ours)
        print(f"{name}: {mine:.1f} s", file=sys.stderr, flush=True)
        if peer is None:
            rows.append((name, mine, NO_PEER, "", "", "", ""))
            continue
        words = name == "occlusion"
        run_peer(peer, subject, few, size=32, words=words)
        single = once(lambda p=peer, w=words: run_peer(p, subject, encodings, size=1, words=w))

        def batched(peer: Any = peer, words: bool = words, kept: dict[str, list[np.ndarray]] = kept) -> None:
            kept["peer"] = run_peer(peer, subject, encodings, size=32, words=words)

        together = once(batched)
        totals += (mine, single, together)
        rows.append((name, mine, single, together, single / mine, together / mine, apart(kept["ours"], kept["peer"])))
    rows.append(("in total, where there is a peer", *totals, totals[1] / totals[0], totals[2] / totals[0], ""))
    head = ("method", "ours, s", "peer, one text a call, s", "peer, batched, s", "ratio", "ratio batched", "difference")
    table(f"{len(encodings)} short texts, {subject.name}", head, rows)
