"""The public ways that Veedor is held against, written as their users write them: captum, eager maps, networkx.

Each takes a subject and a padded batch and returns scores (b, n), padding included, so that the numbers can be compared
as well as the times. The model is called as transformers offers it: parameters trainable, no capture.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Subject

Peer = Callable[["Subject", "Batch"], "torch.Tensor"]


def margin_of(subject: "Subject", target: int = 1) -> Callable[..., "torch.Tensor"]:
    """The log-odds of one of two labels, as a function of embeddings and mask."""

    def height(embeddings: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        logits = subject.model(inputs_embeds=embeddings, attention_mask=mask).logits
        return logits[:, target] - logits[:, 1 - target]

    return height


def saliency(subject: "Subject", batch: "Batch") -> "torch.Tensor":
    """captum.attr.Saliency on the embeddings, L2 norm."""
    from captum.attr import Saliency

    found = Saliency(margin_of(subject)).attribute(
        subject.embed(batch).detach(), abs=False, additional_forward_args=(batch.mask,)
    )
    return found.norm(dim=-1)


def input_x_gradient(subject: "Subject", batch: "Batch") -> "torch.Tensor":
    """captum.attr.InputXGradient on the embeddings."""
    from captum.attr import InputXGradient

    points = subject.embed(batch).detach().requires_grad_()
    return InputXGradient(margin_of(subject)).attribute(points, additional_forward_args=(batch.mask,)).sum(dim=-1)


def smoothgrad(subject: "Subject", batch: "Batch", *, samples: int, deviation: float) -> "torch.Tensor":
    """captum.attr.NoiseTunnel over Saliency, norm of the signed mean."""
    from captum.attr import NoiseTunnel, Saliency

    tunnel = NoiseTunnel(Saliency(margin_of(subject)))
    found = tunnel.attribute(
        subject.embed(batch).detach().requires_grad_(),
        nt_type="smoothgrad",
        nt_samples=samples,
        nt_samples_batch_size=1,
        stdevs=deviation,
        abs=False,
        additional_forward_args=(batch.mask,),
    )
    return found.norm(dim=-1)


def layer_integrated_gradients(subject: "Subject", batch: "Batch", *, steps: int = 50) -> "torch.Tensor":
    """captum.attr.LayerIntegratedGradients on the word embeddings, as its tutorials call it."""
    from captum.attr import LayerIntegratedGradients

    def height(ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        logits = subject.model(input_ids=ids, attention_mask=mask).logits
        return logits[:, 1] - logits[:, 0]

    layer = LayerIntegratedGradients(height, subject.model.get_input_embeddings())
    found = layer.attribute(
        batch.ids, baselines=subject.baseline_ids(batch), additional_forward_args=(batch.mask,), n_steps=steps
    )
    return found.sum(dim=-1)


def integrated_gradients(subject: "Subject", batch: "Batch", *, steps: int, at_once: int) -> "torch.Tensor":
    """captum.attr.IntegratedGradients on a batch of embeddings, `at_once` nodes in memory."""
    from captum.attr import IntegratedGradients

    found = IntegratedGradients(margin_of(subject)).attribute(
        subject.embed(batch).detach(),
        baselines=subject.baseline(batch).detach(),
        additional_forward_args=(batch.mask,),
        n_steps=steps,
        internal_batch_size=at_once,
    )
    return found.sum(dim=-1)


def feature_ablation(subject: "Subject", batch: "Batch", words: "torch.Tensor", *, at_once: int) -> "torch.Tensor":
    """captum.attr.FeatureAblation on ids, one word at a time; `words` (b, n) numbers each token's word."""
    import torch
    from captum.attr import FeatureAblation

    def height(ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
        logits = subject.model(input_ids=ids, attention_mask=mask).logits
        return logits[:, 1] - logits[:, 0]

    with torch.no_grad():
        found: torch.Tensor = FeatureAblation(height).attribute(
            batch.ids,
            baselines=subject.baseline_ids(batch),
            feature_mask=words,
            additional_forward_args=(batch.mask,),
            perturbations_per_eval=at_once,
        )
    return found


def eager_maps(model: Any, batch: "Batch", *, gradients: bool) -> "tuple[torch.Tensor, torch.Tensor | None]":
    """`output_attentions` of an eager model, (layers, b, heads, n, n), and the margin's gradients at them."""
    import torch

    with torch.set_grad_enabled(gradients):
        answer = model(input_ids=batch.ids, attention_mask=batch.mask, output_attentions=True)
        if not gradients:
            return torch.stack(answer.attentions), None
        height = (answer.logits[:, 1] - answer.logits[:, 0]).sum()
        found = torch.autograd.grad(height, answer.attentions)
    return torch.stack(answer.attentions).detach(), torch.stack(found)


def rollout(model: Any, batch: "Batch") -> "torch.Tensor":
    """Products of eager maps with the identity mixed in; the first row."""
    maps, _ = eager_maps(model, batch, gradients=False)
    return roll(maps)


def roll(maps: "torch.Tensor") -> "torch.Tensor":
    """Abnar and Zuidema's product over maps (layers, b, heads, n, n), first row, (b, n)."""
    import torch

    identity = torch.eye(maps.shape[-1])
    joint = identity.expand(maps.shape[1], -1, -1)
    for layer in maps.mean(dim=2):
        mixed = layer + identity
        joint = (mixed / mixed.sum(dim=-1, keepdim=True)) @ joint
    return joint[:, 0]


def attention(model: Any, batch: "Batch") -> "torch.Tensor":
    """The last layer's eager map, mean over heads, first row."""
    maps, _ = eager_maps(model, batch, gradients=False)
    return maps[-1].mean(dim=1)[:, 0]


def grad_cam(model: Any, batch: "Batch") -> "torch.Tensor":
    """Grad-CAM on the last eager map, first row; the mean of the gradient over real positions."""
    maps, gradients = eager_maps(model, batch, gradients=True)
    assert gradients is not None
    real = batch.mask.double().sum(dim=1)[:, None, None, None] ** 2
    weights = gradients[-1].sum(dim=(-2, -1), keepdim=True) / real
    return (weights * maps[-1]).sum(dim=1).clamp(min=0)[:, 0]


def attention_gradient(model: Any, batch: "Batch") -> "torch.Tensor":
    """Chefer et al.'s relevance over eager maps and gradients, first row."""
    import torch

    maps, gradients = eager_maps(model, batch, gradients=True)
    assert gradients is not None
    relevance = torch.eye(maps.shape[-1]).expand(maps.shape[1], -1, -1)
    for layer, gradient in zip(maps, gradients, strict=True):
        relevance = relevance + (gradient * layer).clamp(min=0).mean(dim=1) @ relevance
    return relevance[:, 0]


def networkx_flow(maps: np.ndarray, *, row: int, sinks: list[int], residual: float = 0.5) -> list[float]:
    """Abnar and Zuidema's loop: one networkx maximum flow for each sink, over head-averaged maps (layers, n, n)."""
    import networkx

    layers, tokens, _ = maps.shape
    graph = networkx.DiGraph()
    mixed = (1 - residual) * maps + residual * np.eye(tokens)
    for layer in range(layers):
        for above in range(tokens):
            for below in range(tokens):
                if mixed[layer, above, below] > 0:
                    graph.add_edge((layer + 1, above), (layer, below), capacity=float(mixed[layer, above, below]))
    flow = networkx.algorithms.flow.edmonds_karp
    return [networkx.maximum_flow_value(graph, (layers, row), (0, sink), flow_func=flow) for sink in sinks]
