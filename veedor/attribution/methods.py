"""The contents page of attribution: every method there is, what it needs and what its scores mean."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from veedor.attribution.attention import attention, attention_rollout
from veedor.attribution.baselines import baseline_in_words
from veedor.attribution.chance import random_scores
from veedor.attribution.flow_of_model import attention_flow_read
from veedor.attribution.gradient_family import alone
from veedor.attribution.integrated import integrated_gradients
from veedor.attribution.lrp import attn_lrp, cp_lrp
from veedor.attribution.mixing import alti, norm_rollout
from veedor.attribution.occlusion import occlusion
from veedor.attribution.question import Question, Scale, Scored, UnsupportedModelError
from veedor.attribution.result import Attribution, Fusion, combine
from veedor.attribution.smoothgrad import smoothgrad
from veedor.attribution.surrogates import kernel_shap, lime
from veedor.attribution.value_zeroing import value_zeroing
from veedor.errors import UsageError, unknown
from veedor.progress import Progress, silent
from veedor.records import Scalar
from veedor.settings import Closed, Settings, build
from veedor.subjects.capture import AttentionNotSeenError
from veedor.subjects.perturbation import pool_of

if TYPE_CHECKING:
    from veedor.subjects import Encoding, Subject

BLOCK = 512  # texts that `attribute` explains before it yields the first of them


@dataclass(frozen=True)
class Method:
    """How a method is called and what its scores mean.

    `targeted`: about one label; without, a sentence about a label must not lean on it. `signed`: for and against.
    `additive`: sub-words sum to words. `complete`: scores sum to a difference of scores. `cost`: "forward" (one pass),
    "backward" (one pass and back) or "many".
    """

    name: str
    function: Callable[[Question], list[Scored]]
    summary: str
    cost: Literal["forward", "backward", "many"]
    needs_gradient: bool = False
    needs_attention: bool = False
    targeted: bool = False
    signed: bool = False
    additive: bool = False
    complete: bool = False
    deterministic: bool = True

    def properties(self) -> dict[str, Scalar]:
        """Everything declared but name and function, as plain values."""
        return {key: value for key, value in self.__dict__.items() if key not in ("name", "function")}


_ALL = (
    Method(
        "rollout",
        attention_rollout,
        "Attention followed through all layers with the residual stream: what the row that the head reads draws from.",
        cost="forward",
        needs_attention=True,
    ),
    Method(
        "attention",
        attention,
        "Attention of the last layer, mean over heads, in the row that the head reads.",
        cost="forward",
        needs_attention=True,
    ),
    Method(
        "attention_flow",
        attention_flow_read,
        "The largest flow that attention lets pass from each token to the row that the head reads.",
        cost="many",
        needs_attention=True,
    ),
    Method(
        "norm_rollout",
        norm_rollout,
        "How long a part of each vector each token makes, values and residual stream included, through all layers.",
        cost="forward",
        needs_attention=True,
    ),
    Method(
        "alti",
        alti,
        "How near to the whole vector each token's part of it comes, through all layers.",
        cost="forward",
        needs_attention=True,
    ),
    Method(
        "value_zeroing",
        value_zeroing,
        "How far each vector moves when a token's value is set to zero, one layer at a time, through all layers.",
        cost="many",
        needs_attention=True,
    ),
    Method(
        "integrated_gradients",
        integrated_gradients,
        "Gradients collected on the way from a text without content; they sum to the difference in score.",
        cost="many",
        needs_gradient=True,
        targeted=True,
        signed=True,
        additive=True,
        complete=True,
    ),
    Method(
        "gradient",
        alone("gradient"),
        "L2 norm of the gradient at each token: how much the score would move, not in which direction.",
        cost="backward",
        needs_gradient=True,
        targeted=True,
    ),
    Method(
        "input_x_gradient",
        alone("input_x_gradient"),
        "Each token's embedding times its gradient: a first-order guess at what the token adds.",
        cost="backward",
        needs_gradient=True,
        targeted=True,
        signed=True,
        additive=True,
    ),
    Method(
        "smoothgrad",
        smoothgrad,
        "The gradient averaged over noisy copies of the text, then its L2 norm at each token.",
        cost="many",
        needs_gradient=True,
        targeted=True,
    ),
    Method(
        "attention_gradient",
        alone("attention_gradient"),
        "Attention followed through all layers, each weight by how much it raises the score; for the label only.",
        cost="backward",
        needs_gradient=True,
        needs_attention=True,
        targeted=True,
    ),
    Method(
        "grad_cam",
        alone("grad_cam"),
        "Attention of one layer, each head by how much the score leans on it; for the label only.",
        cost="backward",
        needs_gradient=True,
        needs_attention=True,
        targeted=True,
    ),
    Method(
        "qkv_gradient",
        alone("qkv_gradient"),
        "How much the score would move with what each token offers to attention, heads and layers together.",
        cost="backward",
        needs_gradient=True,
        needs_attention=True,
        targeted=True,
    ),
    Method(
        "attn_lrp",
        attn_lrp,
        "Relevance handed down layer by layer, each product's factors getting half; biases and softmaxes keep a part.",
        cost="backward",
        needs_gradient=True,
        needs_attention=True,
        targeted=True,
        signed=True,
        additive=True,
    ),
    Method(
        "cp_lrp",
        cp_lrp,
        "Relevance handed down layer by layer with attention weights and gates as constants; biases keep a part.",
        cost="backward",
        needs_gradient=True,
        needs_attention=True,
        targeted=True,
        signed=True,
        additive=True,
    ),
    Method(
        "occlusion",
        occlusion,
        "What the score loses when a word is masked or deleted, one word at a time.",
        cost="many",
        targeted=True,
        signed=True,
        additive=True,
    ),
    Method(
        "kernel_shap",
        kernel_shap,
        "Shapley values of the words: what each adds, averaged over which others are there; estimated in long texts.",
        cost="many",
        targeted=True,
        signed=True,
        additive=True,
        complete=True,
        deterministic=False,
    ),
    Method(
        "lime",
        lime,
        "Coefficients of a linear model of which words are there, fitted closest where most of the text is left.",
        cost="many",
        targeted=True,
        signed=True,
        additive=True,
        deterministic=False,
    ),
    Method(
        "random",
        random_scores,
        "Scores drawn by chance from the text and the seed: what any method is held against.",
        cost="forward",
        deterministic=False,
    ),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}


def find_method(name: str) -> Method:
    """The method of this name; UsageError names the nearest one."""
    if name not in METHODS:
        raise UsageError(unknown("method", name, METHODS))
    return METHODS[name]


def explain(
    subject: "Subject",
    encodings: "Sequence[Encoding]",
    target_index: int,
    *,
    method: str,
    settings: Settings | None = None,
    scale: Scale = "logit",
    progress: Progress = silent,
) -> list[Scored]:
    """Score every token of every encoding, in input order; `attribute` with texts is what most callers want."""
    settings = settings or Settings()
    question = Question(subject, encodings, target_index, method, scale, settings.seed, settings, None, progress)
    return answer(question)


def answer(question: Question) -> list[Scored]:
    """Run the question's method; UnsupportedModelError names the methods that work where it cannot."""
    method = find_method(question.method)
    if not question.encodings:
        return []
    refusal = why_not(question.subject, method)
    if refusal is not None:
        raise refusal
    if question.baseline is not None and method.name != "integrated_gradients":
        raise UsageError(f"{method.name} has no baseline to be given; leave it out, or choose integrated_gradients")
    try:
        return method.function(question)
    except AttentionNotSeenError as error:  # found out by running: the room below does not know what would work
        raise AttentionNotSeenError(f"{error}: {', '.join(without_attention(question.subject))}") from error


def why_not(subject: "Subject", method: Method) -> UnsupportedModelError | None:
    """What stands against a method on this model, as far as it can be said before running it."""
    from veedor.subjects.unreadable import why_unreadable

    name, model = f"{method.name} does not fit {subject.card.name}", subject.model
    choose = f"choose one of {', '.join(without_attention(subject))}"
    if method.needs_attention and getattr(model.config, "is_encoder_decoder", False):
        return UnsupportedModelError(
            f"{name}: it is an encoder-decoder, where what the head reads passes self-attention of two stacks and "
            f"cross-attention; {choose}",
            code="encoder_decoder",
        )
    unreadable = why_unreadable(model) if method.needs_attention else None
    if unreadable is not None:
        reason = f"the attention of {type(model).__name__} cannot be read: {unreadable}"
        return UnsupportedModelError(f"{name}: {reason}; {choose}", code=AttentionNotSeenError.code)
    if method.needs_gradient and not subject.takes_embeddings:
        reason = f"{type(model).__name__} does not give the same answer to its own word embeddings as to ids"
        return UnsupportedModelError(f"{name}: {reason}, so no gradient can be taken; {choose}", code="no_embeddings")
    return None


def without_attention(subject: "Subject") -> list[str]:
    """Names of the methods that need no attention map, nor a gradient where this model gives none."""
    return sorted(
        name
        for name, method in METHODS.items()
        if not method.needs_attention and (subject.takes_embeddings or not method.needs_gradient)
    )


def attribute(
    subject: "Subject",
    texts: Sequence[str],
    *,
    method: str,
    target: str | None = None,
    settings: Settings | None = None,
    words: Literal["max", "mean"] | None = None,
    progress: Progress = silent,
) -> Iterator[Attribution]:
    """Explain each text, in order. `target`: a label; None: label 1 of two, or the only one. (See `METHODS`.)

    `words`: how sub-words become words where scores do not add up; None: as the settings say.
    The explained score is the target's log-odds against the other labels (its logit for sigmoid and one-logit heads).
    """
    chosen = find_method(method)
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"texts is {type(texts).__name__} {texts!r:.40}, expected a list of strings; wrap one as [text]"
        )
    refusal = why_not(subject, chosen)
    if refusal is not None:
        raise refusal
    settings = settings or Settings()
    if words is not None:
        checked = build(Settings, {"words": words}, "attribute")
        settings = settings.model_copy(update={"words": checked.words})
    target_index = label_index(subject, target)
    question = Question(subject, [], target_index, method, "logit", settings.seed, settings)
    return _in_blocks(replace(question, pool=own_pool(question, texts)), texts, progress)


def own_pool(question: Question, texts: Sequence[str]) -> tuple[int, ...] | None:
    """The tokens of all the texts, where the method's operator draws from them: no block has a pool of its own."""
    if getattr(getattr(question.settings, question.method, None), "operator", None) != "resample":
        return None
    return pool_of(question.subject, question.subject.encode(list(texts)))


def label_index(subject: "Subject", target: str | None) -> int:
    """Index of the explained label; without a name, label 1 of two or the only one, else UsageError lists them."""
    if target is not None and not isinstance(target, str):
        raise UsageError(
            f"target is {type(target).__name__} {target!r:.40}, expected a label's name: {', '.join(subject.labels)}"
        )
    if target is not None:
        return subject.target_index(target)
    if len(subject.labels) > 2:
        raise UsageError(f"{subject.card.name} has several labels; name the target: {', '.join(subject.labels)}")
    return len(subject.labels) - 1


def _in_blocks(question: Question, texts: Sequence[str], progress: Progress) -> Iterator[Attribution]:
    for first in range(0, len(texts), BLOCK):
        block = list(texts[first : first + BLOCK])

        def further(what: str, done: int, _: int, first: int = first) -> None:
            progress(what, first + done, len(texts))

        yield from attributions(replace(question, encodings=question.subject.encode(block), progress=further), block)


def attributions(question: Question, texts: Sequence[str]) -> list[Attribution]:
    """Answer the question and join the scores with the texts' tokens and words."""
    scored = answer(question)
    return [present(question, row, text, own) for row, (text, own) in enumerate(zip(texts, scored, strict=True))]


def present(question: Question, row: int, text: str, scored: Scored) -> Attribution:
    """One text's scores beside its tokens and words."""
    method, subject, encoding = find_method(question.method), question.subject, question.encodings[row]
    kept = list(scored.kept) if scored.kept is not None else list(range(len(encoding.ids)))
    tokens = subject.tokenizer.convert_ids_to_tokens([int(index) for index in encoding.ids])
    fusion: Fusion = "sum" if method.additive else question.settings.words
    word_scores = words_from(scored.scores, [encoding.token_word[at] for at in kept], len(encoding.words), fusion)
    return Attribution(
        text=text,
        tokens=[tokens[at] for at in kept],
        offsets=[encoding.offsets[at] for at in kept],
        scores=scored.scores,
        words=[text[start:end] for start, end in encoding.words],
        word_offsets=list(encoding.words),
        word_scores=word_scores,
        method=method.name,
        target=subject.labels[question.target_index] if method.targeted else None,
        score_function=score_function(subject, question.scale) if method.targeted else "none",
        additive=method.additive,
        subwords=fusion,
        covered=(encoding.covered_from, encoding.covered),
        gap=scored.gap,
        nodes=scored.nodes,
        options={**options_of(method, question.settings), **baseline_in_words(question), **scored.facts},
        flags=scored.flags + (("truncated",) if encoding.truncated else ()),
    )


def words_from(scores: np.ndarray, token_word: Sequence[int], words: int, fusion: Fusion) -> np.ndarray:
    """Sub-word scores to word scores: (n_tokens,) -> (n_words,); 0 for a word without tokens."""
    members: list[list[float]] = [[] for _ in range(words)]
    for score, word in zip(scores, token_word, strict=True):
        if word >= 0:
            members[word].append(float(score))
    return np.array([combine(own, fusion) if own else 0.0 for own in members])


def score_function(subject: "Subject", scale: Scale) -> str:
    """What is explained, in words that stand in the record."""
    if scale == "probability":
        return "probability of the target"
    return "log-odds of the target" if subject.head == "softmax" else "logit of the target"


def options_of(method: Method, settings: Settings) -> dict[str, Scalar]:
    """The choices that fix a method's numbers."""
    embedded: dict[str, Scalar] = {"differentiated": "inputs_embeds"}
    by_name: dict[str, dict[str, Scalar]] = {
        "rollout": settings.rollout.model_dump() | {"layers": "{} to {}".format(*settings.rollout.layers)},
        "attention": settings.attention.model_dump(),
        "attention_flow": {"residual": settings.attention_flow.residual, "fusion": "mean"},
        "norm_rollout": {"norm": "l2", "residual": "in the parts"},
        "alti": {"norm": "l1", "residual": "in the parts"},
        "value_zeroing": {"distance": "cosine", "output": "of the layer, behind its MLP"},
        "integrated_gradients": embedded | settings.integrated_gradients.model_dump() | {"rule": "boole_simpson"},
        "gradient": embedded | {"norm": "l2"},
        "input_x_gradient": embedded,
        "smoothgrad": embedded | settings.smoothgrad.model_dump() | {"seed": settings.seed, "norm": "l2"},
        "attention_gradient": {"differentiated": "attention", "clamp": "before the mean over heads"},
        "grad_cam": {"differentiated": "attention", "clamp": "after the sum over heads"}
        | settings.grad_cam.model_dump(),
        "qkv_gradient": settings.qkv_gradient.model_dump() | {"norm": "l2"},
        "attn_lrp": embedded | {"products": "half to each factor"},
        "cp_lrp": embedded | {"products": "weights and gates are constants"},
        "occlusion": removal(settings.occlusion, settings.seed),
        "kernel_shap": removal(settings.kernel_shap, settings.seed) | {"seed": settings.seed},
        "lime": removal(settings.lime, settings.seed) | {"seed": settings.seed},
        "random": {"seed": settings.seed},
    }
    merged: dict[str, Scalar] = {} if method.additive or settings.words == "max" else {"words": settings.words}
    return by_name[method.name] | merged


def removal(options: Closed, seed: int) -> dict[str, Scalar]:
    """How words are taken out, in words: draws and their seed only where something is drawn."""
    found: dict[str, Scalar] = {"unit": "word", **options.model_dump()}
    drawn: dict[str, Scalar] = {"seed": seed, "pool": "the texts' own tokens"}
    if found["operator"] != "resample":
        found.pop("draws")
        drawn = {}
    return found | drawn | {"unit": f"{found['unit']}; the term as one phrase"}
