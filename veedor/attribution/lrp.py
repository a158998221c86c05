"""Layer-wise relevance propagation through attention: AttnLRP (Achtibat et al., 2024) and CP-LRP (Ali et al., 2022).

Optional methods, written from the formulas of the papers. Both are computed as embedding times a gradient whose
derivatives follow the rules (Arras et al., 2025): linear layers and residual sums by the epsilon rule with epsilon → 0,
element-wise functions by the identity rule, norms with their deviation as a constant. AttnLRP gives both factors of a
product half, so that queries and keys keep a quarter of their gradient and values a half; its softmax (proposition
3.1) and all biases take relevance up, so its scores do not sum to the explained score. CP-LRP takes attention weights
and gates for constants; on a model without biases its scores sum to the logit. What part arrives is the conservation
ratio, told with every text. The rules of single functions and modules are in `lrp_rules` and `lrp_modules`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from veedor.attribution.lrp_conservation import Conservation, conserved, entering_layers
from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.attribution.stability import embedded

if TYPE_CHECKING:
    import torch

    from veedor.attribution.lrp_rules import Rules
    from veedor.subjects import Batch, LayerAttention

Variant = Literal["attn_lrp", "cp_lrp"]
NO_RATIO = "no_conservation_ratio"


@dataclass(frozen=True, eq=False)
class Propagated:
    """One batch: explained scores (b,), relevance of tokens (b, n), and of each layer's input (layers, b); float64."""

    heights: "torch.Tensor"
    tokens: "torch.Tensor"
    layers: "torch.Tensor"


def attn_lrp(question: Question) -> list[Scored]:
    """AttnLRP: each token's share of the margin's relevance; signed, does not sum to the margin."""
    return _scored(question, "attn_lrp")


def cp_lrp(question: Question) -> list[Scored]:
    """Conservative propagation: attention weights, gates and norms are constants; signed, biases take their part."""
    return _scored(question, "cp_lrp")


def conservation(question: Question) -> list[Conservation]:
    """Σ R_l / F of each text at every layer and at the input, for the question's method (attn_lrp or cp_lrp)."""
    found: dict[int, Conservation] = {}
    for batch, propagated in _batches(question, _variant(question.method), by_layer=True):
        for place, row in enumerate(batch.rows):
            of_text = propagated.layers[:, place].tolist()
            found[row] = conserved(float(propagated.heights[place]), float(propagated.tokens[place].sum()), of_text)
    return [found[row] for row in range(len(found))]


def propagate(
    question: Question,
    batch: "Batch",
    variant: Variant,
    *,
    by_layer: bool = False,
    score: "Callable[[torch.Tensor], torch.Tensor] | None" = None,
) -> Propagated:
    """Relevance of one batch, padding included (0 there). To be called within `undisturbed`.

    `score`: what is explained as a function of the logits, (b, outputs) -> (b,); the question's margin where None.
    UnsupportedModelError names the module whose rule is missing.
    """
    import torch

    subject, states = question.subject, list["torch.Tensor"]()
    points = embedded(question, batch).requires_grad_()
    with torch.enable_grad():
        with rules_of(question, variant) as rules, entering_layers(subject.model, states if by_layer else None):
            with rules:
                logits = subject.logits_from_embeddings(points, batch)
            rules.require_known(logits)
        explained = _margin(question, logits) if score is None else score(logits)
        gradients = torch.autograd.grad(explained.sum(), [points, *states])
    relevance = [
        state.detach().double() * own.double() for state, own in zip((points, *states), gradients, strict=True)
    ]
    layers = [layer.flatten(1).sum(dim=1) for layer in relevance[1:]]
    return Propagated(
        explained.detach().double(),
        relevance[0].sum(dim=-1),
        torch.stack(layers) if layers else relevance[0].new_zeros(0, len(points)),
    )


def _margin(question: Question, logits: "torch.Tensor") -> "torch.Tensor":
    return question.subject.margin(logits, question.target_index, scale=question.scale)


def _scored(question: Question, variant: Variant) -> list[Scored]:
    answers: dict[int, Scored] = {}
    for batch, found in _batches(question, variant):
        scores = real_tokens(batch, found.tokens.cpu().numpy())
        for row, own, height in zip(batch.rows, scores, found.heights.tolist(), strict=True):
            part = conserved(height, float(own.sum()), []).at_input
            known = {} if part is None else {"conservation_ratio": part}
            answers[row] = Scored(own, facts=known, flags=(NO_RATIO,) if part is None else ())
        question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)


def _batches(question: Question, variant: Variant, *, by_layer: bool = False) -> "Iterator[tuple[Batch, Propagated]]":
    with undisturbed(question.subject):
        for batch in question.subject.batches(question.encodings, size=question.settings.batch_size):
            yield batch, propagate(question, batch, variant, by_layer=by_layer)


def _variant(method: str) -> Variant:
    if method == "attn_lrp":
        return "attn_lrp"
    if method == "cp_lrp":
        return "cp_lrp"
    raise ValueError(f"conservation is known of attn_lrp and cp_lrp, not of {method!r}")


@contextmanager
def rules_of(question: Question, variant: Variant) -> "Iterator[Rules]":
    """The capture of attention with the rules of this method, not yet entered, and the hooks of ruled modules."""
    from veedor.attribution.lrp_modules import ruled
    from veedor.attribution.lrp_rules import Rules
    from veedor.subjects import capture

    with capture(question.subject) as seen:
        rules = Rules(question.method, question.subject, seen, "halve" if variant == "attn_lrp" else "detach_gate")
        if variant == "attn_lrp":
            seen.answer_with(lambda layer: halved_products(layer, rules))
        else:
            seen.answer_with(lambda layer: constant_weights(layer, rules))
            seen.on_layer(detach_observed)
        with ruled(rules):
            yield rules


def halved_products(layer: "LayerAttention", rules: "Rules") -> "torch.Tensor | None":
    """AttnLRP's attention: both of its products give each factor half (proposition 3.3), the weights' half goes through
    the softmax to queries and keys. By the fused kernel where the layer allows it, else function by function; so too
    where only the softmax is watched, and the model goes on by itself (None).
    """
    from veedor.attribution.lrp_derivatives import scaled

    query, key, value = layer.query, layer.key, layer.value
    if query is None or key is None or value is None:
        return None
    with rules.attention():
        if layer.softcap is not None or layer.sinks is not None:
            return layer.output()
        return replace(layer, query=scaled(query, 1 / 4), key=scaled(key, 1 / 4), value=scaled(value, 1 / 2)).output()


def constant_weights(layer: "LayerAttention", rules: "Rules") -> "torch.Tensor | None":
    """CP-LRP's attention: the weights are constants, all relevance goes to the values. None for `detach_observed`."""
    query, key = layer.query, layer.key
    if query is None or key is None:
        return None
    with rules.attention():
        return replace(layer, query=query.detach(), key=key.detach()).output()


def detach_observed(layer: "LayerAttention") -> None:
    """The same for a layer of which only the softmax is seen."""
    if layer.observed is not None:
        layer.observed = layer.observed.detach()
