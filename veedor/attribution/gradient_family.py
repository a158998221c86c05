"""All maps that one backward pass can give, from one backward pass; and each of them alone, by the same code.

Gradient norm, input times gradient, Grad-CAM, relevance by attention gradients, and the gradients of queries, keys and
values. Only what the chosen members need is differentiated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from veedor.attribution import attention_gradients, grad_cam, gradients, qkv
from veedor.attribution.attention import read_weights
from veedor.attribution.backward import Backward, Wanted, backward
from veedor.attribution.qkv import QkvGradients
from veedor.attribution.question import Question, Scored, in_order, real_tokens, undisturbed
from veedor.errors import UsageError, unknown

if TYPE_CHECKING:
    import torch

    from veedor.subjects import Batch

    Read = Callable[[Question, "Batch", Backward], torch.Tensor]


@dataclass(frozen=True)
class Member:
    """What a method needs of the backward pass, and how its scores (b, n) are read off."""

    wanted: Callable[[Question], Wanted]
    read: "Read"


@dataclass(frozen=True)
class Family:
    """`scores`: for each member an answer a text, in input order; `qkv`: gradients by layer and head, if asked for."""

    scores: dict[str, list[Scored]]
    qkv: list[QkvGradients] = field(default_factory=list)


MEMBERS: dict[str, Member] = {
    "gradient": Member(lambda _: Wanted(points=True), lambda _, __, found: gradients.norms(found)),
    "input_x_gradient": Member(lambda _: Wanted(points=True), lambda _, __, found: gradients.products(found)),
    "grad_cam": Member(
        grad_cam.wanted,
        lambda question, batch, found: grad_cam.cam_row(
            found,
            read_weights(question.subject, batch),
            batch.mask.bool(),
            layer=question.settings.grad_cam.layer,
        ),
    ),
    "attention_gradient": Member(
        lambda _: attention_gradients.WANTED,
        lambda question, batch, found: attention_gradients.relevance_row(found, read_weights(question.subject, batch)),
    ),
    "qkv_gradient": Member(
        lambda question: qkv.wanted(question.settings.qkv_gradient.part),
        lambda question, _, found: qkv.token_norms(found, question.settings.qkv_gradient.part),
    ),
}


def gradient_family(question: Question, members: Sequence[str] = tuple(MEMBERS), *, by_head: bool = True) -> Family:
    """The members' scores for every text of the question, from one forward and one backward pass a batch.

    `by_head`: and the gradients of queries, keys and values by layer and head. UnsupportedModelError where the model
    does not show what a member needs; UsageError for a name that is none of `MEMBERS`.
    """
    for name in members:
        if name not in MEMBERS:
            raise UsageError(unknown("member of the gradient family", name, MEMBERS))
    wanted = qkv.ALL if by_head else Wanted()
    for name in members:
        wanted |= MEMBERS[name].wanted(question)
    scores: dict[str, dict[int, Scored]] = {name: {} for name in members}
    structures: dict[int, QkvGradients] = {}
    done, subject = 0, question.subject
    with undisturbed(subject):
        for batch in subject.batches(question.encodings, size=question.settings.batch_size):
            found = backward(question, batch, wanted)
            for name, answers in scores.items():
                own = MEMBERS[name].read(question, batch, found).cpu().numpy()
                answers.update(zip(batch.rows, map(Scored, real_tokens(batch, own)), strict=True))
            if by_head:
                structures.update(zip(batch.rows, qkv.by_head(found, batch, read_weights(subject, batch)), strict=True))
            done += len(batch.rows)
            question.progress(question.method, done, len(question.encodings))
    ordered = [structures[row] for row in range(len(structures))]
    return Family({name: in_order(answers) for name, answers in scores.items()}, ordered)


def alone(member: str) -> Callable[[Question], list[Scored]]:
    """The method that answers with one member of the family and differentiates nothing else."""

    def answer(question: Question) -> list[Scored]:
        return gradient_family(question, (member,), by_head=False).scores[member]

    return answer


def qkv_gradients(question: Question) -> list[QkvGradients]:
    """Each text's gradients of queries, keys and values by layer, head and token, and the attention beside them."""
    return gradient_family(question, (), by_head=True).qkv
