"""Context mixing: how much each token's vector makes of each other's, layer by layer, then multiplied down the layers.

`norm_rollout` (Kobayashi et al., 2020 and 2021): the Euclidean norm of the part. `alti` (Ferrando, Gállego and
Costa-jussà, 2022, equations 8 to 10): how much nearer to the whole the part brings it, in the L1 norm. Both see values
and the residual stream, not the MLPs; no target, never negative. No identity is added: the residual is in the parts.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from veedor.attribution.attention import read_weights
from veedor.attribution.decomposition import Rows, decomposed, not_understood
from veedor.attribution.question import Question, Scored, UnsupportedModelError, in_order, undisturbed

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, LayerAttention
    from veedor.subjects.block_watch import SeenBlock

SUM_ROUNDING = 1e-9  # by which a product of rows that sum to 1 misses 1
Contributions = Callable[["torch.Tensor", "torch.Tensor"], "torch.Tensor"]


def norm_rollout(question: Question) -> list[Scored]:
    """Rollout of ‖T_i(x_j)‖₂ in the row that the head reads; it sums to 1."""
    return _rolled(question, norm_contributions)


def alti(question: Question) -> list[Scored]:
    """Rollout of max(0, ‖y_i‖₁ - ‖y_i - T_i(x_j)‖₁) in the row that the head reads.

    It sums to 1 but for `undefined_share`: what would flow through rows that no token brings nearer to their whole.
    """
    return _rolled(question, alti_contributions)


def norm_contributions(parts: "torch.Tensor", whole: "torch.Tensor") -> "torch.Tensor":
    """‖T_i(x_j)‖₂: parts (rows, n, d) -> (rows, n); `whole` does not matter."""
    found: torch.Tensor = parts.norm(dim=-1)
    return found


def alti_contributions(parts: "torch.Tensor", whole: "torch.Tensor") -> "torch.Tensor":
    """max(0, ‖y_i‖₁ - ‖y_i - T_i(x_j)‖₁): parts (rows, n, d), whole y (rows, d), biases included -> (rows, n)."""
    distance = (whole[:, None] - parts).abs_().sum(dim=-1)
    return (whole.abs().sum(dim=-1, keepdim=True) - distance).clamp_(min=0.0)


def shares(contributions: "torch.Tensor") -> "torch.Tensor":
    """Rows to sum 1, in float64; a row in which nothing contributes stays 0: its shares are not defined."""
    exact = contributions.double()
    total = exact.sum(dim=-1, keepdim=True)
    return exact / total.masked_fill(total <= 0, 1.0)


def read_off(read: "torch.Tensor", flow: "torch.Tensor", method: str) -> Scored:
    """The row (or mean of rows) that the head reads, (n,); `undefined_share` went to rows without any contribution.

    UnsupportedModelError where all of it did.
    """
    scores = read @ flow
    total = float(scores.sum())
    if total <= 0:
        raise UnsupportedModelError(
            f"{method}: no token contributes to the row that the head reads, by this method's measure, so there are no "
            "shares to tell; choose norm_rollout or rollout",
            code="no_contribution",
        )
    undefined = 1.0 - total
    return Scored(scores.cpu().numpy(), facts={"undefined_share": undefined if undefined > SUM_ROUNDING else 0.0})


class _Rolled:
    """Multiplies the maps of one batch as its layers pass, one text at a time, the higher layer from the left."""

    def __init__(self, contributions: Contributions) -> None:
        self.contributions = contributions
        self.lengths: list[int] = []
        self.flows: dict[int, torch.Tensor] = {}
        self.known: set[str] = set()

    def begin(self, batch: "Batch") -> None:
        self.lengths = [int(number) for number in batch.mask.sum(dim=1)]
        self.flows = {}

    def require_known(self, layer: "LayerAttention") -> None:
        if layer.module not in self.known:
            raise not_understood(layer.module, "it has parts that are not known here")

    def see(self, seen: "SeenBlock") -> None:
        for text, length in enumerate(self.lengths):
            mixed = self.map_of(seen, text, length)
            self.flows[text] = mixed @ self.flows[text] if text in self.flows else mixed

    def map_of(self, seen: "SeenBlock", text: int, length: int) -> "torch.Tensor":
        import torch

        def share(rows: Rows) -> torch.Tensor:
            return shares(self.contributions(rows.parts, rows.whole))

        return torch.cat([share(rows) for rows in decomposed(seen, text, length)])


def _rolled(question: Question, contributions: Contributions) -> list[Scored]:
    import torch

    from veedor.subjects import capture
    from veedor.subjects.block_watch import blocks_seen
    from veedor.subjects.blocks import blocks_of

    subject, answers, rolled = question.subject, dict[int, Scored](), _Rolled(contributions)
    blocks = blocks_of(subject.model)
    rolled.known = set(blocks)
    with undisturbed(subject), torch.no_grad(), capture(subject) as captured:
        captured.on_layer(rolled.require_known)
        with blocks_seen(captured, blocks, rolled.see):
            for batch in subject.batches(question.encodings, size=question.settings.batch_size):
                rolled.begin(batch)
                subject.logits(batch)
                read = read_weights(subject, batch)
                for text, row in enumerate(batch.rows):
                    answers[row] = read_off(read[text, : rolled.lengths[text]], rolled.flows[text], question.method)
                question.progress(question.method, len(answers), len(question.encodings))
    return in_order(answers)
