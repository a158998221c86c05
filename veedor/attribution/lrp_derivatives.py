"""The modified derivatives of layer-wise relevance propagation: values as the model made them, gradients by rule.

Gradient times input is relevance by the epsilon rule where everything is linear. A module that is not linear becomes so
for the backward pass alone: an element-wise function f passes on f(x)/x in the place of f′(x) (identity rule: AttnLRP,
equation 9), a norm takes its deviation for a constant (AttnLRP, proposition 3.4; Ali et al., 2022). Nothing
here says where a rule applies: that is in `lrp_rules` and `lrp_modules`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Function = Callable[[torch.Tensor], torch.Tensor]


class NoRuleError(ValueError):
    """A function to which a rule does not apply; the message says why."""


class Activation(torch.autograd.Function):
    """An element-wise function as the line through the origin that passes through its value."""

    @staticmethod
    def forward(ctx: Any, _: torch.Tensor, known: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Give the value and keep the slope of the line; in a tuple, as a model may write over what is no input."""
        value, ratio = known
        ctx.save_for_backward(ratio)
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Multiply by the slope."""
        (ratio,) = ctx.saved_tensors
        return gradients[0] * ratio, None


class Norm(torch.autograd.Function):
    """A norm as the linear map that its own deviation makes it: (x − mean) · scale, or x · scale where not centred."""

    @staticmethod
    def forward(ctx: Any, _: torch.Tensor, known: tuple[torch.Tensor, ...], centred: int) -> torch.Tensor:
        """Give the value, the first of `known`; the others multiply, `centred` counts dimensions less their mean."""
        value, *scales = known
        ctx.save_for_backward(*scales)
        ctx.centred = centred
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """The transposed linear map."""
        first, *others = ctx.saved_tensors
        found = gradients[0] * first
        for scale in others:
            found *= scale
        if ctx.centred:
            found -= found.mean(dim=tuple(range(-ctx.centred, 0)), keepdim=True)
        return found, None, None


def activation(function: Function, x: torch.Tensor, slope: float) -> torch.Tensor:
    """f(x) whose gradient is f(x)/x, and `slope`, f′(0), where x is 0; NoRuleError where f changes x itself."""
    before = x._version
    value = function(x.detach())
    if x._version != before:
        raise NoRuleError("it writes its answer over its input, so that the two cannot be compared")
    return activation_made(x, value, slope)


def activation_made(x: torch.Tensor, value: torch.Tensor, slope: float) -> torch.Tensor:
    """The same where f(x) is known already."""
    plain = x.detach()
    ratio = value / plain
    if plain.count_nonzero() < plain.numel():
        ratio.masked_fill_(plain == 0, slope)
    made: torch.Tensor = Activation.apply(x, (value, ratio))  # type: ignore[no-untyped-call]
    return made


def is_activation(tensor: torch.Tensor) -> bool:
    """Whether this tensor is what the identity rule gave, and nothing was done to it since."""
    return tensor.grad_fn is not None and tensor.grad_fn.name() == "ActivationBackward"


def slope_at_zero(function: Function, like: torch.Tensor) -> float:
    """f′(0), the limit of f(x)/x; NoRuleError where f(0) is not 0, so that there is no such limit."""
    with torch.enable_grad():
        zero = torch.zeros(1, dtype=like.dtype, device=like.device, requires_grad=True)
        value = function(zero * 1)  # no leaf, for functions that write over their input
        if float(value.detach()) != 0:
            raise NoRuleError(f"its value at 0 is {float(value.detach()):g}, and the identity rule needs 0 there")
        (slope,) = torch.autograd.grad(value.sum(), zero)
    return float(slope)


def layer_norm(
    x: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """torch's layer norm whose 1/σ is a constant to the gradient."""
    value, _, inverse = torch.native_layer_norm(x.detach(), tuple(normalized_shape), weight, bias, eps)
    return norm_made(x, value, (inverse,) if weight is None else (inverse, weight), centred=len(normalized_shape))


def rms_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    """torch's root-mean-square norm whose 1/rms is a constant to the gradient."""
    plain = x.detach()
    value = torch.nn.functional.rms_norm(plain, list(normalized_shape), weight, eps)
    square = plain.square().mean(dim=tuple(range(-len(normalized_shape), 0)), keepdim=True)
    inverse = (square + (torch.finfo(x.dtype).eps if eps is None else eps)).rsqrt()
    return norm_made(x, value, (inverse,) if weight is None else (inverse, weight))


def norm_made(
    x: torch.Tensor, value: torch.Tensor, scales: tuple[torch.Tensor, ...], *, centred: int = 0
) -> torch.Tensor:
    """A norm's value, known already, as the product of x (less its mean over `centred` dimensions) with scales."""
    made: torch.Tensor = Norm.apply(x, (value, *scales), centred)  # type: ignore[no-untyped-call]
    return made


def scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """The same tensor, of whose gradient a part goes on; other uses of the tensor keep theirs."""
    if not tensor.requires_grad:
        return tensor
    alias: Any = tensor.view_as(tensor)
    alias.register_hook(lambda gradient: gradient * factor)
    made: torch.Tensor = alias
    return made
