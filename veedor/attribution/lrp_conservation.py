"""Which part of a score its relevance holds, layer by layer: a rule that makes relevance out of nothing shows here.

The hidden states that enter a layer are a cut through the network: relevance at every layer comes from the same score.
What biases, positions and (in AttnLRP) softmaxes take is missing there; what grows from layer to layer is a fault.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

SMALLEST = 0.1  # |F| under which a ratio to F says nothing
HIDDEN = 3  # dimensions of (b, n, d)


@dataclass(frozen=True)
class Conservation:
    """Which part of a text's score F its relevance holds, Σ R / F, on the way down from the head.

    `ratios`: of the hidden states that enter each layer, the layer next to the input first; `at_input`: of the word
    embeddings, Σ scores / F. Both None where |F| < 0.1, `ratios` where the model's layers are not known; `reason` says.
    """

    score: float
    ratios: tuple[float, ...] | None
    at_input: float | None
    reason: str | None = None


def conserved(score: float, at_input: float, layers: list[float]) -> Conservation:
    """Sums of relevance as parts of the score.

    >>> conserved(2.0, 1.0, [1.0, 1.5]).ratios, conserved(0.05, 1.0, [1.0]).reason
    ((0.5, 0.75), '|F| is 0.05, below 0.1')
    """
    if not abs(score) >= SMALLEST:
        return Conservation(score, None, None, f"|F| is {abs(score):.3g}, below {SMALLEST:g}")
    if not layers:
        return Conservation(
            score, None, at_input / score, "the model's layers are not known: no list of blocks was found"
        )
    return Conservation(score, tuple(layer / score for layer in layers), at_input / score)


@contextmanager
def entering_layers(model: Any, states: "list[torch.Tensor] | None") -> Iterator[None]:
    """Put the hidden states that enter each layer into `states`, in the order of calls; no hook where it is None."""
    hooks: list[Any] = []
    try:
        if states is not None:
            note = noting(states)
            hooks.extend(layer.register_forward_pre_hook(note, with_kwargs=True) for layer in layers_of(model))
        yield
    finally:
        for hook in hooks:
            hook.remove()


def noting(states: "list[torch.Tensor]") -> Callable[..., None]:
    """A hook that notes the first tensor a layer is given that depends on the text."""

    def note(_: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        import torch

        for own in (*given, *named.values()):
            if isinstance(own, torch.Tensor) and own.requires_grad and own.ndim == HIDDEN:
                states.append(own)
                return

    return note


def layers_of(model: Any) -> list[Any]:
    """The innermost modules of lists of modules that hold an attention: the blocks of the residual stream."""
    import torch

    found = [
        member
        for holder in model.modules()
        if isinstance(holder, torch.nn.ModuleList)
        for member in holder
        if any("attention" in type(part).__name__.lower() for part in member.modules() if part is not member)
    ]
    return [member for member in found if not any(other in list(member.modules())[1:] for other in found)]
