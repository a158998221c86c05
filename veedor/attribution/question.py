"""What a method is asked, and what it answers for each text: the shape that every family of methods shares."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from veedor.errors import SubjectError
from veedor.progress import Progress, silent
from veedor.settings import Settings

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch, Encoding, Subject

Scale = Literal["logit", "probability"]
Span = tuple[int, int]
OwnBaseline = str | Sequence[int] | np.ndarray


class UnsupportedModelError(SubjectError):
    """A method needs what this model does not have; `code` is the reason, for a report."""

    def __init__(self, message: str, *, code: str) -> None:
        """Keep the reason's code beside the sentence."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Jitter:
    """Embeddings moved by `radius` times their L2 norm, in the directions of draw number `draw` (see `stability`)."""

    radius: float
    draw: int


@dataclass(frozen=True)
class Question:
    """Texts, the score that is explained, and how.

    `spans`: for each text the characters the caller will ask about, or None; perturbation methods then remove that span
    apart from the rest of its word. `target_index` is not looked at by methods without a target. `jitter`: answer at
    embeddings that are moved a little; methods that change the text itself ignore it. `pool`: token ids that the
    operator `resample` draws from; None: the tokens of these texts. `baseline`: of integrated gradients, in place of
    the settings' (see `baselines`).
    """

    subject: "Subject"
    encodings: "Sequence[Encoding]"
    target_index: int
    method: str
    scale: Scale = "logit"
    seed: int = 0
    settings: Settings = field(default_factory=Settings)
    spans: Sequence[Span | None] | None = None
    progress: Progress = silent
    jitter: Jitter | None = None
    pool: Sequence[int] | None = None
    baseline: OwnBaseline | None = None

    def span(self, row: int) -> Span | None:
        """The span asked about in one text."""
        return self.spans[row] if self.spans is not None else None


@dataclass(frozen=True)
class Scored:
    """One text's answer: a score for each token that is no padding, (n,) float64.

    `gap`: completeness gap, None where the method has none. `nodes`: model evaluations. `kept`: positions of the tokens
    that stay, None for all of them. `facts`: what a reader must know beside the scores, such as a share left out.
    """

    scores: np.ndarray
    gap: float | None = None
    nodes: int = 1
    flags: tuple[str, ...] = ()
    kept: tuple[int, ...] | None = None
    facts: dict[str, float] = field(default_factory=dict)


def in_order(answers: dict[int, Scored]) -> list[Scored]:
    """Answers by input position."""
    return [answers[row] for row in range(len(answers))]


def real_tokens(batch: "Batch", values: np.ndarray) -> list[np.ndarray]:
    """Cut padding off, whichever side it is on: (b, n) -> b vectors of their texts' own lengths."""
    mask = batch.mask.bool().cpu().numpy()
    return [row[keep].astype(np.float64) for row, keep in zip(values, mask, strict=True)]


@contextmanager
def undisturbed(subject: "Subject") -> Iterator[None]:
    """Evaluate without dropout and with frozen parameters; on exit, every module is as it was found."""
    from veedor.subjects import frozen

    training = {module: module.training for module in subject.model.modules()}
    with ExitStack() as undo:
        undo.callback(_restore_training, training)
        subject.model.eval()
        undo.enter_context(frozen(subject))
        yield


def _restore_training(training: "dict[torch.nn.Module, bool]") -> None:
    for module, flag in training.items():
        module.training = flag
