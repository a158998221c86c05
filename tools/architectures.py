"""Write docs/architectures.md: what Veedor sees of each text architecture, measured on tiny models.

Run it as `python -m tools.architectures`, or by `make architectures`, after transformers or a method has changed.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import transformers

from tools.architecture_configs import FAMILIES, Family
from tools.architecture_oracles import LENGTHS, Given, batch_of, eager_maps, model_of, projected
from veedor.attribution.methods import METHODS, explain
from veedor.errors import SubjectError
from veedor.subjects import AttentionNotSeenError, LayerAttention, Subject, capture
from veedor.subjects.interface import routes_through_interface
from veedor.subjects.tiny import whole_word_tokenizer

PAGE = Path(__file__).resolve().parent.parent / "docs" / "architectures.md"
TEXT = "the old sailor sings."
LIMIT = 1e-5


@dataclass
class Row:
    """What was measured of one family; None where there is nothing to measure.

    `weights`: largest difference to eager maps. `product`: largest difference of weights times values to what enters
    the module's own output projection, over the largest of its numbers where that is above 1. `unseen`: largest weight
    on padding, and on the future of a causal model. `refused`: methods by the reason's code.
    """

    family: Family
    how: str
    weights: float | None = None
    product: float | None = None
    unseen: float | None = None
    refused: dict[str, list[str]] = field(default_factory=dict)


def measure(family: Family) -> Row:
    """What is captured of the family, held against the model's own attention."""
    model = model_of(family)
    given = batch_of(model, family)
    try:
        layers = held(model, given)
    except AttentionNotSeenError as error:
        reason = str(error).partition("cannot be read: ")[2].rpartition("; choose")[0]
        return Row(family, f"refused: {reason}")
    with torch.no_grad():
        return Row(
            family,
            how(model, layers),
            None if family.returns == "none" else weights_difference(model, family, layers),
            product_difference(layers, projected(model, family, given), given),
            unseen_weight(family, layers, given),
        )


def held(model: Any, given: Given) -> list[LayerAttention]:
    """Every layer of one forward pass."""
    layers: list[LayerAttention] = []
    with torch.no_grad(), capture(model) as seen:
        seen.on_layer(layers.append)
        model(**given)
    return layers


def how(model: Any, layers: list[LayerAttention]) -> str:
    """By which way the attention was seen."""
    if routes_through_interface(model):
        return "interface"
    return "softmax" if layers[0].query is None else "fused kernel"


def weights_difference(model: Any, family: Family, layers: list[LayerAttention]) -> float:
    """Largest difference of a padded batch's maps to those of each text alone."""
    given = batch_of(model, family)
    largest = 0.0
    for row, length in enumerate(LENGTHS):
        alone = {name: tensor[row : row + 1, :length] for name, tensor in given.items()}
        for layer, own in zip(layers, eager_maps(model, family, alone), strict=True):
            largest = max(largest, float((layer.weights()[row, :, :length, :length] - own[0]).abs().max()))
    return largest


def product_difference(layers: list[LayerAttention], projections: list[torch.Tensor], given: Given) -> float:
    """Largest difference of weights times values to what the untouched model projects, in rows that are no padding."""
    real = given["attention_mask"].bool()
    largest = 0.0
    for layer, own in zip(layers, projections, strict=True):
        made = (layer.weights() @ layer.values()).transpose(1, 2).flatten(2)
        largest = max(largest, float((made - own)[real].abs().max()) / max(1.0, float(own[real].abs().max())))
    return largest


def unseen_weight(family: Family, layers: list[LayerAttention], given: Given) -> float:
    """Largest weight that a real token gives to padding, or in a causal model to the future; 0 is right, exactly."""
    real = given["attention_mask"].bool()
    largest = 0.0
    for layer in layers:
        weights = layer.weights()
        if "decoder" not in layer.module or family.causal:
            padding = weights.masked_fill(real[:, None, None, :] | ~real[:, None, :, None], 0.0)
            largest = max(largest, float(padding.max()))
        if family.causal or ("decoder" in layer.module and layer.kind == "self"):
            largest = max(largest, float(weights.triu(1).max()))
    return largest


def methods_refused(family: Family) -> dict[str, list[str]]:
    """Methods that do not work on the family's classifier, by the code of the reason, found by running each."""
    tokenizer = whole_word_tokenizer([TEXT])
    try:
        subject = Subject(model_of(family, vocabulary=len(tokenizer)), tokenizer)
    except SubjectError:
        return {"not_a_subject": sorted(METHODS)}
    refused = defaultdict(list)
    for name in sorted(METHODS):
        try:
            explain(subject, subject.encode([TEXT]), 1, method=name)
        except SubjectError as error:
            refused[getattr(error, "code", type(error).__name__)].append(name)
        except (RuntimeError, ValueError, AttributeError, TypeError):  # stands on the page until it is mended
            refused["fault"].append(name)
    return dict(refused)


def full_row(family: Family) -> Row:
    """A family's row, methods included."""
    row = measure(family)
    row.refused = methods_refused(family) if family.classifier else {"no_classifier": sorted(METHODS)}
    return row


def number(value: float | None) -> str:
    """A difference as it stands on the page."""
    return "–" if value is None else "0" if value == 0 else f"{value:.0e}"


def methods_told(refused: dict[str, list[str]]) -> str:
    """How many methods work, and which do not."""
    out = sum(map(len, refused.values()))
    if out == len(METHODS):
        return f"none: {', '.join(sorted(refused))}"
    told = "; ".join(f"not {', '.join(names)} ({code})" for code, names in sorted(refused.items()))
    return f"{len(METHODS) - out} of {len(METHODS)}" + (f"; {told}" if told else "")


def line(row: Row) -> str:
    """A row of the table."""
    numbers = " | ".join(map(number, (row.weights, row.product, row.unseen)))
    note = f" ({row.family.note})" if row.family.note else ""
    return f"| {row.family.name} | `{row.family.type}` | {row.how}{note} | {numbers} | {methods_told(row.refused)} |"


def page(rows: list[Row]) -> str:
    """The whole page."""
    seen = sum(not row.how.startswith("refused") for row in rows)
    return HEAD.format(
        seen=seen, all=len(rows), version=transformers.__version__, methods=", ".join(sorted(METHODS))
    ) + ("\n".join(map(line, rows)) + "\n" + FOOT)


HEAD = """# Architectures: what is seen of each

Attention of {seen} of {all} text architectures is seen; the others are refused by name. Measured on tiny models with
random weights (transformers {version}) by `make architectures`, which writes this page; a test measures again.

- **seen**: by transformers' attention *interface*; at a direct call of the *fused kernel*; or at the *softmax*
  (weights, and values at their product, no queries and keys). Or why it is refused.
- **weights**: largest difference of the weights in a right-padded batch to those of each text alone by the model's own
  eager attention.
- **product**: largest difference of weights times values to what enters the output projection of the untouched model.
- **unseen**: largest weight of a real token on padding, or on a later token of a causal model.
- **methods**: how many of {methods} work on a tiny classifier of the family, found by running each on one text, and
  which do not, with the code of the reason.

| architecture | type | seen | weights | product | unseen | methods |
|---|---|---|---|---|---|---|
"""
FOOT = """
Codes: `no_attention`: the attention cannot be read. `encoder_decoder`: what the head reads passes self-attention of two
stacks and cross-attention. `no_embeddings`: the model does not take word embeddings in the place of ids, so no gradient
can be taken. `no_classifier`: transformers has no classifier of this family. `not_a_subject`: the classifier cannot be
asked text by text. `block_not_understood`, `no_lrp_rule` and others: the method says which part of the model it has no
rule for. `fault`: the method fails instead of refusing.

Not in the table: every other architecture that takes its attention from transformers' interface is seen there. One that
mixes tokens by other means in some of its layers (Jamba, Zamba, Qwen 3 Next) is refused because it has fewer maps than
layers, one whose weights are not a square map because of their shape. Models of half precision are asked in float32;
weights of a half-precision model that is captured as it is are computed in float32 from its queries and keys.
"""


def main() -> None:
    """Measure every family and write the page."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    PAGE.write_text(page([full_row(family) for family in FAMILIES.values()]), encoding="utf-8")


if __name__ == "__main__":
    main()
