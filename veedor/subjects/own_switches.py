"""Models that switch their own attention by the length of a text: put back after every call.

BigBird goes over to full attention at its first short text, by other modules, and stays there: a later long text would
then be answered otherwise than by the model as it was loaded.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def switches_by_length(model: Any) -> bool:
    """Whether the model's attention, and so its answer, depends on how long the batch is that a text stands in."""
    return getattr(model.config, "attention_type", None) == "block_sparse"


@contextmanager
def attention_type_kept(model: Any) -> Iterator[None]:
    """Let the model switch its attention within the block, and put its modules back as they were, also on error."""
    if not switches_by_length(model):
        yield
        return
    before = [
        (module, module.attention_type, dict(module._modules))
        for module in model.modules()
        if hasattr(module, "set_attention_type")
    ]
    try:
        yield
    finally:
        for module, attention_type, modules in before:
            module.attention_type = attention_type
            module._modules.clear()
            module._modules.update(modules)
