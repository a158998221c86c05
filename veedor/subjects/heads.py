"""How a classifier's logits are read: which decision rule its head was trained for, which score is the target's, and
which row of an attention map the head looks at.

The decision rule comes from `problem_type`; nothing is guessed where several labels could be meant.
"""

from typing import TYPE_CHECKING, Any, Literal

from veedor.errors import SubjectError, UsageError

if TYPE_CHECKING:
    import torch

Head = Literal["softmax", "sigmoid", "one_logit"]
Reading = Literal["first", "last", "eos", "mean"]
Scale = Literal["logit", "probability"]

LAST_TOKEN_TYPES = ("ctrl", "modernbert-decoder")  # decoders whose head is not called `score`


def resolve_head(asked: str, *, problem_type: str | None, outputs: int, name: str) -> Head:
    """The decision rule, as asked or by `problem_type`; UsageError asks where several labels could be meant.

    >>> resolve_head("auto", problem_type=None, outputs=2, name="x")
    'softmax'
    """
    if problem_type == "regression" and outputs == 1:
        raise SubjectError(
            f"{name} is a regression model (problem_type: regression), not a classifier; expected a model that was "
            "trained to choose labels"
        )
    if outputs == 1:
        return _one_logit(asked, name)
    if asked in ("softmax", "sigmoid"):
        return "softmax" if asked == "softmax" else "sigmoid"
    if asked != "auto":
        raise UsageError(f"head is {asked!r}, expected auto, softmax or sigmoid")
    if problem_type == "multi_label_classification":
        return "sigmoid"
    if problem_type == "single_label_classification" or (problem_type is None and outputs == 2):
        return "softmax"
    raise UsageError(
        f"{name} has {outputs} labels and its config has problem_type: {problem_type}, so one label or several could "
        "be meant for a text; say which: head: softmax (one label) or head: sigmoid (several)"
    )


def _one_logit(asked: str, name: str) -> Head:
    if asked == "softmax":
        raise UsageError(f"head: softmax does not fit {name}: it has one logit; use head: auto or head: sigmoid")
    return "one_logit"


def margin(logits: "torch.Tensor", target: int, *, head: Head, labels: int, scale: Scale = "logit") -> "torch.Tensor":
    """The target's score, (b, outputs) -> (b,) float64.

    softmax: logit_t - logsumexp of the other logits; sigmoid and one logit: the logit (minus it for label 0 of a
    one-logit head with two labels). `scale="probability"`: the target's probability.
    """
    import torch

    exact = logits.double()
    if head == "softmax":
        others = torch.cat((exact[:, :target], exact[:, target + 1 :]), dim=1)
        found = exact[:, target] - torch.logsumexp(others, dim=1)
    elif head == "sigmoid":
        found = exact[:, target]
    else:
        found = -exact[:, 0] if labels == 2 and target == 0 else exact[:, 0]
    return found.sigmoid() if scale == "probability" else found


def probabilities(logits: "torch.Tensor", *, head: Head, labels: int) -> "torch.Tensor":
    """Each label's probability, (b, outputs) -> (b, labels) float64."""
    import torch

    exact = logits.double()
    if head == "softmax":
        return exact.softmax(dim=-1)
    if head == "one_logit" and labels == 2:
        return torch.cat((-exact, exact), dim=1).sigmoid()
    return exact.sigmoid()


def reading_of(model: Any) -> Reading:
    """Which row of the last layer the head reads: the first token's, the last's, that of the last eos, or the mean."""
    config = model.config
    if getattr(config, "is_encoder_decoder", False):
        return "eos"
    if hasattr(model, "score") or config.model_type in LAST_TOKEN_TYPES:
        return "last"
    if getattr(config, "classifier_pooling", None) in ("mean", "late"):
        return "mean"
    if hasattr(model, "sequence_summary"):
        known: dict[str, Reading] = {"last": "last", "mean": "mean"}
        return known.get(getattr(config, "summary_type", "first"), "first")
    return "first"


def read_row(ids: "torch.Tensor", mask: "torch.Tensor", *, reading: Reading, marker: int | None) -> "torch.Tensor":
    """Index of the row that the head reads, (b,), or its weights (b, n) for a mean.

    `marker`: the eos token for "eos"; for "last" the config's padding token, which the model skips even where it stands
    in a text without padding (a tokenizer may pad with the end-of-text token).
    """
    import torch

    real = mask.bool()
    if reading == "first":
        return torch.zeros_like(ids[:, 0])
    if reading == "mean":
        return real.double() / real.sum(dim=1, keepdim=True)
    wanted = real
    if marker is not None:
        wanted = real & (ids == marker if reading == "eos" else ids != marker)
    places = torch.arange(ids.shape[1], device=ids.device)
    return (places * wanted).argmax(dim=1)
