"""Veedor: audit transformer classifiers for demographic-term bias.

The library; it knows no MLflow and no command line.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veedor.attribution import METHODS, attribute
    from veedor.metrics import METRICS
    from veedor.subjects import Subject

__all__ = ["METHODS", "METRICS", "Subject", "attribute"]
__version__ = "0.1.0"

_HOMES = {
    "METHODS": "veedor.attribution",
    "METRICS": "veedor.metrics",
    "Subject": "veedor.subjects",
    "attribute": "veedor.attribution",
}


def __getattr__(name: str) -> Any:
    """Import the public names on first use: torch and transformers take seconds, `veedor --help` must not."""
    if name not in _HOMES:
        raise AttributeError(f"module 'veedor' has no attribute {name!r}; it offers {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
