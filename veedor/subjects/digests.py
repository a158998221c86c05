"""What identifies a model whatever its file is called: SHA-256 of its weights and of its tokenizer."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

TOKENIZER_SETTINGS = ("model_max_length", "padding_side", "truncation_side")


def weights_digest(model: Any, *, stored_dtype: str) -> str:
    """SHA-256 over every parameter and buffer in name order: name, type, shape, bytes.

    Weights that were stored in half precision count as they were stored, so that the digest does not depend on the
    precision they are computed in.
    """
    import torch

    stored: torch.dtype = getattr(torch, stored_dtype, torch.float32)
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        own = as_stored(tensor.detach().cpu(), stored)
        digest.update(json.dumps([name, str(own.dtype), list(own.shape)]).encode())
        digest.update(own.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def as_stored(tensor: "torch.Tensor", stored: "torch.dtype") -> "torch.Tensor":
    """The tensor in its stored type, or as it is where that would lose anything."""
    if not tensor.is_floating_point() or tensor.dtype == stored:
        return tensor
    narrow = tensor.to(stored)
    return narrow if bool((narrow.to(tensor.dtype) == tensor).all()) else tensor


def tokenizer_digest(tokenizer: Any) -> str:
    """SHA-256 of the tokenizer's serialisation and of the settings that change what it makes of a text."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    for passing in ("truncation", "padding"):  # set by every call
        backend.pop(passing, None)
    settings = {name: str(getattr(tokenizer, name, None)) for name in TOKENIZER_SETTINGS}
    special = {name: str(token) for name, token in sorted(tokenizer.special_tokens_map.items())}
    content = json.dumps([backend, settings, special], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
