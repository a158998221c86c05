"""A subject is tried once, on two short texts, before anyone relies on it: its answers must be those of the model.

Architectures differ in how they find positions, padding and the row their head reads. What is assumed about them is
checked here, so that a model which breaks an assumption is handled with more care or refused, never answered wrongly.
"""

import inspect
from typing import TYPE_CHECKING, Any

from veedor.errors import SubjectError

if TYPE_CHECKING:
    import torch

    from veedor.subjects.encoding import Batch
    from veedor.subjects.subject import Subject

TOLERANCE = 1e-4  # rounding is far below it, a wrong position or row far above
PROBES = ("A short text.", "The second probe, which is a few words longer than the first one!")


def own_answer(subject: "Subject", text: str) -> "torch.Tensor":
    """What the model says to one text as its own tokenizer hands it over, without padding: (outputs,)."""
    import torch

    from veedor.subjects.encoding import tokenizer_restored
    from veedor.subjects.own_switches import attention_type_kept

    with tokenizer_restored(subject.tokenizer), attention_type_kept(subject.model), torch.no_grad():
        given = subject.tokenizer(text, truncation=True, max_length=subject.window, return_tensors="pt")
        known = inspect.signature(subject.model.forward).parameters
        taken = {name: tensor for name, tensor in given.to(subject.device).items() if name in known}
        logits: Any = getattr(subject.model(**taken), "logits", None)
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2:
        shape = None if logits is None else tuple(getattr(logits, "shape", ()))
        raise SubjectError(
            f"{subject.name} answers one text with logits of shape {shape}, expected (1, labels); it is no sequence "
            "classifier: save the model with a …ForSequenceClassification class"
        )
    return logits[0]


def answers_alone(subject: "Subject") -> "list[torch.Tensor]":
    """The model's own answers to the probes; SubjectError where ours to each alone are not the same."""
    own = [own_answer(subject, text) for text in PROBES]
    encodings = subject.encode(PROBES)
    for expected, encoding in zip(own, encodings, strict=True):
        (batch,) = subject.batches([encoding])
        found = _quietly(subject, batch)[0]
        if not near(found, expected):
            raise SubjectError(
                f"{subject.name} answers {expected.tolist()} where its parts, put together by Veedor, answer "
                f"{found.tolist()}; the architecture {type(subject.model).__name__} reads texts in a way that is not "
                "known here and cannot be audited"
            )
    return own


def padding_is_harmless(subject: "Subject", own: "list[torch.Tensor]") -> bool:
    """Whether a padded batch gives the model's own answers."""
    (batch,) = subject.batches(subject.encode(PROBES))
    found = _quietly(subject, batch)
    return all(near(found[at], own[row]) for at, row in enumerate(batch.rows))


def embeddings_are_taken(subject: "Subject", own: "list[torch.Tensor]") -> bool:
    """Whether the model gives the same answers to its own word embeddings as to ids, and a gradient back to them."""
    import torch

    for batch in subject.batches(subject.encode(PROBES)):
        try:
            with torch.enable_grad():
                embeddings = subject.embed(batch).detach().requires_grad_()
                found = subject.logits_from_embeddings(embeddings, batch)
                torch.autograd.grad(found.sum(), embeddings)
        except (TypeError, ValueError, NotImplementedError, AttributeError, RuntimeError, IndexError, AssertionError):
            return False  # every architecture refuses inputs_embeds, or to go back (Reformer), in its own way
        if not all(near(found[at].detach(), own[row]) for at, row in enumerate(batch.rows)):
            return False
    return True


def near(found: "torch.Tensor", expected: "torch.Tensor") -> bool:
    """Whether two answers differ by no more than rounding; NaN is near to nothing."""
    if found.shape != expected.shape:
        return False
    return bool((found - expected).abs().max() <= TOLERANCE * max(1.0, float(expected.abs().max())))


def _quietly(subject: "Subject", batch: "Batch") -> "torch.Tensor":
    import torch

    with torch.no_grad():
        return subject.logits(batch)
