"""What a transformers model says of itself: labels, window, positions, precision. Nothing is run, nothing changed."""

import copy
from typing import TYPE_CHECKING, Any

from veedor.errors import SubjectError

if TYPE_CHECKING:
    import torch

UNBOUNDED = 8192  # tokens, where neither tokenizer nor config bounds a text
HUGE = 1_000_000  # tokenizers say 1e30 where they know no bound
MAKES_POSITIONS = ("create_position_ids_from_input_ids", "create_position_ids_from_inputs_embeds")


def text_config(model: Any) -> Any:
    """The config of the part that reads text."""
    return model.config.get_text_config()


def require_offsets(tokenizer: Any, name: str) -> Any:
    """The tokenizer, or a SubjectError where it cannot say which characters a token stands for."""
    if not getattr(tokenizer, "is_fast", False):
        raise SubjectError(
            f"the tokenizer of {name} is {type(tokenizer).__name__}, which cannot say which characters a token stands "
            "for; expected one with a tokenizer.json (a fast tokenizer): load it with AutoTokenizer and save it again"
        )
    return tokenizer


def labels_of(config: Any, name: str) -> tuple[str, ...]:
    """The labels by index; SubjectError where two are the same or an index is missing."""
    by_index = {int(index): str(label) for index, label in (config.id2label or {}).items()}
    labels = tuple(by_index[index] for index in sorted(by_index))
    repeated = sorted({label for label in labels if labels.count(label) > 1})
    if repeated:
        raise SubjectError(
            f"{name} has the label {repeated[0]!r} more than once (id2label: {by_index}); give every label a name of "
            "its own in config.json"
        )
    if not labels or sorted(by_index) != list(range(len(labels))):
        raise SubjectError(
            f"{name} has id2label {by_index}, expected the indices 0, 1, 2 … without gaps in config.json"
        )
    return labels


def require_known_ids(model: Any, tokenizer: Any, name: str) -> None:
    """SubjectError where the tokenizer can give an id that the embedding table has no row for."""
    try:
        table = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):  # a model of its own kind: its trial says what it can do
        return
    rows = getattr(getattr(table, "weight", None), "shape", (None,))[0]
    ids = max(tokenizer.get_vocab().values(), default=-1) + 1
    if rows is not None and ids > rows:
        raise SubjectError(
            f"the tokenizer of {name} has {ids} ids, but the model's embedding table has {rows} rows; they do not "
            "belong together: save the model's own tokenizer beside it, or train after resize_token_embeddings"
        )


def window_of(model: Any, tokenizer: Any) -> int:
    """Tokens that the model reads: the smaller of the tokenizer's bound and of the positions that the model has."""
    config = text_config(model)
    offset = position_offset(model) or 0
    bounds = [int(tokenizer.model_max_length)] if tokenizer.model_max_length < HUGE else []
    positions = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    if positions and positions > offset:
        bounds.append(int(positions) - offset)
    return min(bounds, default=UNBOUNDED)


def position_offset(model: Any) -> int | None:
    """RoBERTa-like models count positions from padding_idx + 1: that number; None for models that count from 0."""
    for module in model.modules():
        makes = any(hasattr(module, name) for name in MAKES_POSITIONS)
        if makes and getattr(module, "padding_idx", None) is not None:
            return int(module.padding_idx) + 1
    return None


def positions(ids: "torch.Tensor", offset: int) -> "torch.Tensor":
    """Position ids as such a model makes them from ids: padding stands at padding_idx, wherever it is, (b, n)."""
    real = (ids != offset - 1).long()
    return real.cumsum(dim=1) * real + offset - 1


def dtype_of(model: Any) -> str:
    """Name of the floating type of most of the model's parameters."""
    sizes: dict[str, int] = {}
    for parameter in model.parameters():
        if parameter.is_floating_point():
            name = str(parameter.dtype).removeprefix("torch.")
            sizes[name] = sizes.get(name, 0) + parameter.numel()
    return max(sizes, key=lambda name: sizes[name], default="float32")


def in_full_precision(model: Any) -> Any:
    """The model itself, or a float32 copy where some parameter is of lower precision: the caller's model stays."""
    import torch

    low = any(own.is_floating_point() and own.dtype not in (torch.float32, torch.float64) for own in model.parameters())
    return copy.deepcopy(model).float() if low else model


def known_id(index: int | None) -> int | None:
    """A token id as a plain number."""
    return None if index is None else int(index)
