"""All attention maps of one text, for a page that computes rollout again as its reader chooses.

Up to a limit every head's map is kept, above it each layer's mean over heads, above that nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Encoding, LayerAttention, Subject

MOST_WEIGHTS = 4_000_000  # numbers in a page: 16 MB as float32, 21 MB as text


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """`values` (layers, heads, n, n) float32, the layer next to the input first; one head where they were `fused`.

    `read` (n,): how much the head of the classifier reads each row. `causal`: no token sees a later one.
    """

    values: np.ndarray
    read: np.ndarray
    fused: bool
    causal: bool


def maps_of(subject: "Subject", encoding: "Encoding", *, most: int = MOST_WEIGHTS) -> AttentionMaps | None:
    """The text's maps, None where even one map a layer is more than `most` numbers; SubjectError where none is seen."""
    import torch

    from veedor.attribution import METHODS
    from veedor.attribution.methods import why_not
    from veedor.attribution.question import undisturbed
    from veedor.subjects import capture

    refusal = why_not(subject, METHODS["rollout"])
    if refusal is not None:
        raise refusal
    [batch] = subject.batches([encoding])
    seen = _Seen(most)
    with undisturbed(subject), torch.no_grad(), capture(subject) as captured:
        captured.on_layer(seen.see)
        subject.logits(batch)
    if seen.too_many:
        return None
    values = np.stack(seen.heads or seen.means)
    upper = np.triu_indices(values.shape[-1], k=1)
    return AttentionMaps(
        values=values,
        read=_read(subject.read_row(batch)[0], values.shape[-1]),
        fused=not seen.heads,
        causal=values.shape[-1] > 1 and not values[..., upper[0], upper[1]].any(),
    )


def _read(where: "torch.Tensor", tokens: int) -> np.ndarray:
    """Weights of the rows that are read, (n,), from one row's index or from weights."""
    return where.double().cpu().numpy() if where.ndim else np.eye(tokens)[int(where)]


class _Seen:
    """Keeps the maps of the layers that pass by, as long as they are not too many numbers."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.heads: list[np.ndarray] = []
        self.means: list[np.ndarray] = []
        self.too_many = self.only_means = False

    def see(self, layer: "LayerAttention") -> None:
        where = layer.query if layer.observed is None else layer.observed
        assert where is not None  # a layer without queries was watched at its softmax
        if (len(self.means) + 1) * where.shape[2] ** 2 > self.most:
            self.too_many, self.heads, self.means = True, [], []
        if self.too_many:
            return
        maps = layer.weights().float()[0]
        self.means.append(maps.mean(dim=0, keepdim=True).cpu().numpy())
        if not self.only_means:
            self.heads.append(maps.cpu().numpy())
        if sum(map(np.size, self.heads)) > self.most:
            self.only_means, self.heads = True, []
