"""Modules that are one function to relevance propagation though they compute it in several steps, ruled by hooks.

GPT-2's GELU is a polynomial in a tanh, Llama's norm a square, a mean and a root: taken step by step they would be
products of their inputs with themselves. A hook before such a module hands it a detached input, so that its value is
the model's own and builds no graph; a hook behind it gives that value the derivative of its rule. Norms are known by
their class names, and checked: a norm whose value is not that of its formula is refused.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch

from veedor.attribution import lrp_derivatives as derivatives
from veedor.attribution.lrp_rules import Rules

ROOT_MEAN_SQUARE = re.compile(r"R(MS|ms)Norm$|T5LayerNorm$")
HAND_WRITTEN_LAYER_NORM = re.compile(r"^DebertaLayerNorm$")
ACTIVATIONS = frozenset(
    """
    GELUActivation GELUTanh NewGELUActivation FastGELUActivation QuickGELUActivation AccurateGELUActivation BloomGelu
    ClippedGELUActivation SiLUActivation MishActivation ReLUSquaredActivation XIELUActivation
    """.split()
)
EPSILON = ("variance_epsilon", "eps", "epsilon")
CLOSE = 1e-4  # of the largest value: a norm in float32 is nearer to its formula, another formula is not

Answer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # input and value to the value with its derivative


@contextmanager
def ruled(rules: Rules) -> Iterator[None]:
    """Rule every such module of the model while the block lasts; their hooks are taken off also after an error."""
    hooks: list[Any] = []
    try:
        for module in rules.subject.model.modules():
            answer = rule_of(rules, module)
            if answer is not None:
                held: list[torch.Tensor] = []
                hooks.append(module.register_forward_pre_hook(detaching(held)))
                hooks.append(module.register_forward_hook(answering(held, answer), prepend=True))
        yield
    finally:
        for hook in hooks:
            hook.remove()


def detaching(held: list[torch.Tensor]) -> Callable[..., Any]:
    """A hook that holds on to a module's input and hands the module a detached one."""

    def before(_: torch.nn.Module, given: tuple[Any, ...]) -> Any:
        held.clear()
        if len(given) != 1 or not isinstance(given[0], torch.Tensor) or not given[0].requires_grad:
            return None
        held.append(given[0])
        return (given[0].detach(),)

    return before


def answering(held: list[torch.Tensor], answer: Answer) -> Callable[..., Any]:
    """A hook that puts the value with its derivative in the place of the bare value."""

    def after(_: torch.nn.Module, __: tuple[Any, ...], value: torch.Tensor) -> Any:
        return answer(held.pop(), value) if held else None

    return after


def rule_of(rules: Rules, module: torch.nn.Module) -> Answer | None:
    """How a module answers; None for modules that are ruled by the functions they call."""
    name = type(module).__name__
    if name in ACTIVATIONS:
        return _activation(rules, module)
    if isinstance(module, (torch.nn.LayerNorm, torch.nn.RMSNorm)):
        return None
    if ROOT_MEAN_SQUARE.search(name):
        return _norm(rules, module, "root mean square")
    return _norm(rules, module, "deviation") if HAND_WRITTEN_LAYER_NORM.search(name) else None


def _activation(rules: Rules, module: torch.nn.Module) -> Answer:
    like = next(rules.subject.model.parameters())
    try:
        slope = derivatives.slope_at_zero(module.forward, like)
    except derivatives.NoRuleError as error:
        raise rules.refuse(f"there is no rule for {type(module).__name__}: {error}") from None
    return lambda x, value: derivatives.activation_made(x, value, slope)


def _norm(rules: Rules, module: torch.nn.Module, by: Literal["root mean square", "deviation"]) -> Answer:
    eps = next((float(getattr(module, name)) for name in EPSILON if getattr(module, name, None) is not None), 0.0)
    centred = int(by == "deviation")

    def answer(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        plain = x.detach()
        middle = plain - plain.mean(dim=-1, keepdim=True) if centred else plain
        inverse = (middle.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
        weight, bias = _affine(module, plain, eps, centred=bool(centred))
        expected = middle * inverse * weight + bias
        if not bool((expected - value).abs().max() <= CLOSE * value.abs().max()):
            raise rules.refuse(f"{type(module).__name__} is not the division by its {by} that its name says")
        return derivatives.norm_made(x, value, (inverse, weight), centred=centred)

    return answer


def _affine(module: Any, x: torch.Tensor, eps: float, *, centred: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """What a norm multiplies with and adds, (d,) each: weight, 1 + weight, or nothing, as its answer to ones shows."""
    if centred:
        return module.weight, module.bias
    ones = torch.ones(x.shape[-1], dtype=x.dtype, device=x.device)
    multiplied: torch.Tensor = module.forward(ones) * (1 + eps) ** 0.5
    return multiplied, torch.zeros_like(multiplied)
