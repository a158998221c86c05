"""The model under audit, and what the rooms above may ask of it: answers, gradients through embeddings, attention.

No demographic terms and no bias here: a subject does not know why it is asked.
"""

from veedor.subjects.capture import AttentionNotSeenError, Capture, capture
from veedor.subjects.encoding import Batch, Encoding
from veedor.subjects.layer_attention import LayerAttention
from veedor.subjects.subject import Subject, frozen

__all__ = [
    "AttentionNotSeenError",
    "Batch",
    "Capture",
    "Encoding",
    "LayerAttention",
    "Subject",
    "capture",
    "frozen",
]
