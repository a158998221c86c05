"""Occlusion, Kernel SHAP and LIME against captum's own, called a text at a time as its tutorials do: seconds and error.

    python -m benchmarks.perturbation MODEL --texts FILE [--number 100] [--samples 128] [--repeats 3]

Both see the same words as features, the same mask token in their place and the same number of samples. Captum is timed
with one perturbation a forward pass, its default, and with 32. The error is against exact Shapley values, for texts of
at most ten words.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.texts import short, texts_of
from benchmarks.timing import seconds_of, table
from veedor.attribution import explain
from veedor.settings import Settings, build
from veedor.subjects import Subject
from veedor.subjects.perturbation import Variants, eraser, score, units_of

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Encoding

AT_ONCE = (1, 32)  # perturbations a forward pass
MOST_WORDS = 10  # whose coalitions are all asked, for the truth


def captums(method: str, subject: Subject, encodings: "Sequence[Encoding]", *, samples: int, at_once: int) -> list[Any]:
    """captum.attr.FeatureAblation, KernelShap or Lime on ids, one text at a time; scores of tokens."""
    import torch
    from captum.attr import FeatureAblation, KernelShap, Lime

    def height(ids: "torch.Tensor") -> "torch.Tensor":
        logits = subject.model(input_ids=ids).logits
        return logits[:, 1] - logits[:, 0]

    kind = {"occlusion": FeatureAblation, "kernel_shap": KernelShap, "lime": Lime}[method](height)
    drawn = {} if method == "occlusion" else {"n_samples": samples}
    found = []
    with torch.no_grad():
        for encoding in encodings:
            ids = torch.tensor([encoding.ids])
            word = torch.tensor([encoding.token_word])
            feature = torch.where(word < 0, word.max() + 1, word)
            blank = torch.where(word < 0, ids, torch.full_like(ids, int(subject.mask_id or 0)))
            own = kind.attribute(ids, baselines=blank, feature_mask=feature, perturbations_per_eval=at_once, **drawn)
            found.append(own[0].double().numpy())
    return found


def shapley(subject: Subject, encoding: "Encoding") -> np.ndarray:
    """Exact Shapley values of the words, (M,), from all 2^M coalitions."""
    units, variants = units_of(encoding), Variants()
    erase, words = eraser(subject, "mask"), len(units_of(encoding))
    rows = np.array(list(product((False, True), repeat=words)))
    gone = [[at for unit, left in zip(units, row, strict=True) if not left for at in unit] for row in rows]
    places = [variants.add_all(erase.variants(encoding, own))[0] for own in gone]
    height = score(subject, variants.encodings, 1)[places]
    found = np.zeros(words)
    for row, value in zip(rows, height, strict=True):
        others = row.sum() - row
        weight = np.array([1 / (words * comb(words - 1, int(size))) for size in others])
        found += np.where(row, weight, -weight) * value
    return found


def errors(subject: Subject, encodings: "Sequence[Encoding]", samples: int) -> list[tuple[object, ...]]:
    """Median L1 error of the words' Kernel SHAP, relative to the L1 norm of the exact values."""
    few = [own for own in encodings if 3 <= len(own.words) <= MOST_WORDS and -1 not in own.token_word[1:-1]][:12]
    ours = [own.scores for own in ask("kernel_shap", subject, few, samples=samples)]
    theirs = captums("kernel_shap", subject, few, samples=samples, at_once=32)
    relative: dict[str, list[float]] = {"veedor": [], "captum": []}
    for encoding, own, other in zip(few, ours, theirs, strict=True):
        exact = shapley(subject, encoding)
        word = np.array(encoding.token_word)
        first = [int(np.argmax(word == number)) for number in range(len(encoding.words))]
        summed = np.array([own[word == number].sum() for number in range(len(encoding.words))])
        relative["veedor"].append(float(np.abs(summed - exact).sum() / np.abs(exact).sum()))
        relative["captum"].append(float(np.abs(other[first] - exact).sum() / np.abs(exact).sum()))
    return [(name, len(few), f"{100 * np.median(own):.1f} %") for name, own in relative.items()]


def ask(method: str, subject: Subject, encodings: "Sequence[Encoding]", *, samples: int) -> list[Any]:
    """The method of ours."""
    options = {"kernel_shap": {"samples": samples}, "lime": {"samples": samples}}
    return explain(subject, encodings, 1, method=method, settings=build(Settings, options, "benchmark"))


def main() -> None:
    """Print the tables."""
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    told = parser.parse_args()
    torch.set_num_threads(1)
    subject = Subject.load(told.model)
    encodings = short(subject, texts_of(told.texts), told.number, shortest=6, longest=24)
    words = np.mean([len(own.words) for own in encodings])
    for method in ("occlusion", "kernel_shap", "lime"):
        ways: dict[str, Callable[[], object]] = {
            "veedor": partial(ask, method, subject, encodings, samples=told.samples)
        }
        for at_once in AT_ONCE:
            ways[f"captum, {at_once} a pass"] = partial(
                captums, method, subject, encodings, samples=told.samples, at_once=at_once
            )
        taken = seconds_of(ways, repeats=told.repeats)
        rows = [(name, f"{own:.2f}", f"{own / taken['veedor']:.2f}") for name, own in taken.items()]
        title = f"{method}: {told.number} texts, {words:.1f} words, {told.samples} samples, one thread"
        table(title, ("way", "seconds", "times veedor"), rows)
    table("kernel_shap: error", ("way", "texts", "median error"), errors(subject, encodings, told.samples))


if __name__ == "__main__":
    main()
