"""Architectures whose attention has no map over the text's tokens, or does not mix them alone: refused before a run.

By `model_type` of the config. What is not listed here is judged by what is seen: the number of maps and their shape.
"""

from collections.abc import Callable
from typing import Any

from veedor.subjects.anatomy import text_config

WINDOWED = "its attention is cut into windows and makes no map of tokens by tokens"
NONE = "it has no attention"
BESIDE = "a convolution mixes tokens beside attention"
UNREADABLE: dict[str, str | Callable[[Any], str | None]] = {
    "longformer": WINDOWED,
    "led": WINDOWED,
    "fnet": f"{NONE}: tokens are mixed by a Fourier transform",
    "mamba": f"{NONE}: tokens are mixed by a state space",
    "mamba2": f"{NONE}: tokens are mixed by a state space",
    "falcon_mamba": f"{NONE}: tokens are mixed by a state space",
    "rwkv": f"{NONE}: tokens are mixed by a recurrence",
    "reformer": "its attention is hashed into chunks and makes no map of tokens by tokens",
    "yoso": "its attention is hashed and its weights are never made",
    "mra": "its attention is approximated and its weights are never made",
    "convbert": BESIDE,
    "canine": f"{BESIDE}, and characters are pooled",
    "perceiver": "it attends from latents, not from tokens",
    "funnel": lambda config: (
        f"its blocks pool tokens (block_sizes {list(config.block_sizes)}), so later maps are not over the text's tokens"
        if len(config.block_sizes) > 1
        else None
    ),
    "nystromformer": f"{BESIDE}, and attention goes by way of landmarks",
    "diffllama": "its weights are differences of two maps",
}


def why_unreadable(model: Any) -> str | None:
    """Why this model's attention cannot be read, as far as its config tells; None where nothing stands against it."""
    config = text_config(model)
    reason = UNREADABLE.get(getattr(config, "model_type", ""))
    return reason(config) if callable(reason) else reason
