"""A layer norm as what it is at one point: subtract the mean (or not), divide by a known spread, scale, shift.

With the spread held at its true value a norm is linear, and what went into it can be followed through it part by part.
LayerNorm, RMSNorm (also Gemma's, which scales by 1 + weight) and no norm at all.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class LinearNorm:
    """`gain` (d,), `shift` (d,), `centred`: whether the mean is taken off; `eps` None where nothing is divided."""

    gain: "torch.Tensor"
    shift: "torch.Tensor"
    centred: bool
    eps: float | None

    def spread(self, states: "torch.Tensor") -> "torch.Tensor":
        """Standard deviation, or root mean square where nothing is centred: (..., d) -> (..., 1)."""
        import torch

        if self.eps is None:
            return torch.ones_like(states[..., :1])
        squares: torch.Tensor = self.centre(states).square().mean(dim=-1, keepdim=True)
        return (squares + self.eps).sqrt()

    def centre(self, states: "torch.Tensor") -> "torch.Tensor":
        """Take the mean over the hidden dimension off, where the norm does."""
        return states - states.mean(dim=-1, keepdim=True) if self.centred else states

    def part(self, states: "torch.Tensor", spread: "torch.Tensor") -> "torch.Tensor":
        """What a part of the input adds to the output when the whole has this spread; without the shift."""
        return self.gain * self.centre(states) / spread


def linear_norm(module: Any, width: int) -> LinearNorm | None:
    """What a norm of this width does at a known spread; None for a module that is no norm known here."""
    import torch

    if isinstance(module, torch.nn.Identity):
        some = next((own for own in module.parameters()), torch.ones(()))
        return LinearNorm(some.new_ones(width), some.new_zeros(width), centred=False, eps=None)
    weight = getattr(module, "weight", None)
    if isinstance(module, torch.nn.LayerNorm):
        like = torch.ones(width) if weight is None else weight
        gain = torch.ones_like(like) if weight is None else weight
        shift = torch.zeros_like(like) if module.bias is None else module.bias
        return LinearNorm(gain.detach(), shift.detach(), centred=True, eps=module.eps)
    if "RMSNorm" not in type(module).__name__ or weight is None:
        return None
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    eps = torch.finfo(weight.dtype).eps if eps is None else float(eps)
    with torch.no_grad():
        gain = module(torch.ones_like(weight)) * (1 + eps) ** 0.5  # 1 + weight in Gemma's, weight in all others
    return LinearNorm(gain, torch.zeros_like(gain), centred=False, eps=eps)
