"""Attention blocks as a forward pass goes through them: what enters, the attention, and what the model makes of it.

A callback sees each block when its layer ends, and the block is let go of. Hooks are removed on exit, also after an
error.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from veedor.subjects.blocks import Block, first_argument, states_in
from veedor.subjects.layer_attention import LayerAttention

if TYPE_CHECKING:
    import torch

    from veedor.subjects.capture import Capture


@dataclass(frozen=True, eq=False)
class SeenBlock:
    """One block of one forward pass; `index` counts layers in the order of their calls.

    `states` (b, n, d) enter, `attention` is what mixed them, `output` (b, n, d) is what the model itself made of them:
    behind the norm where it stands after, else before the next norm, the residual stream included. `summed` (b, n, d)
    is what the norm was given.
    """

    index: int
    block: Block
    states: "torch.Tensor"
    attention: LayerAttention
    summed: "torch.Tensor"
    output: "torch.Tensor"


OnBlock = Callable[[SeenBlock], None]


@contextmanager
def blocks_seen(captured: "Capture", blocks: Mapping[str, Block], on_block: OnBlock) -> Iterator[None]:
    """Call `on_block` with each of these blocks in every forward pass while the context lasts."""
    desk = _Desk(on_block)

    def attended(layer: LayerAttention) -> None:
        if layer.module in blocks:
            desk.notes["attention"] = replace(layer)

    captured.on_layer(attended)
    hooks: list[Any] = []
    try:
        for block in blocks.values():
            hooks.extend(_hooks(block, desk))
        yield
    finally:
        desk.on_block = _nobody
        for hook in hooks:
            hook.remove()


def _nobody(_: SeenBlock) -> None:
    """Takes no notice of a block."""


@dataclass(eq=False)
class _Desk:
    """What has been noted of the block that is running."""

    on_block: OnBlock

    def __post_init__(self) -> None:
        self.notes: dict[str, Any] = {}

    def noting(self, name: str, *, given: bool) -> Callable[..., None]:
        """A hook that notes what a module is given, or what it makes."""

        def note(_: object, arguments: tuple[Any, ...], made: Any) -> None:
            self.notes[name] = arguments[0] if given else states_in(made)

        return note

    def begin(self, _: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A layer is called."""
        self.notes = {"states": first_argument(arguments, named)}

    def end(self, block: Block, made: Any) -> None:
        """A layer is done: hand its block on."""
        notes, self.notes = self.notes, {}
        states, attention = notes["states"], notes.get("attention")
        if attention is None:
            return
        if block.anatomy.place == "after":
            output = notes["normed"]
        elif block.anatomy.parallel:
            output = states_in(made) - notes["besides"].view_as(states)
        else:
            output = notes["onward"].view_as(states)
        self.on_block(SeenBlock(attention.index, block, states, attention, notes["summed"], output))


def _hooks(block: Block, desk: _Desk) -> list[Any]:
    found = [
        block.layer.register_forward_pre_hook(desk.begin, with_kwargs=True),
        block.layer.register_forward_hook(lambda _, __, made: desk.end(block, made)),
        block.norm.register_forward_hook(desk.noting("summed", given=True)),
        block.norm.register_forward_hook(desk.noting("normed", given=False)),
    ]
    if block.sum is not None:
        name = "besides" if block.anatomy.parallel else "onward"
        found.append(block.sum.register_forward_hook(desk.noting(name, given=not block.anatomy.parallel)))
    return found
