"""What an audit may be told: closed models, one default each. Unknown keys are errors that name the nearest key.

The policy is part of the settings and has a digest of its own: it is what a team agrees on before it looks.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from veedor.errors import UsageError, unknown
from veedor.records import canonical_json

LONGEST = 80  # characters of a wrong value that are shown


def _with_exponent(value: object) -> object:
    """YAML 1.1 reads 1e-3 as text, for want of a point: it is the number that it looks like."""
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d+e[-+]?\d+", value, re.IGNORECASE) else value


Number = Annotated[float, Field(strict=True), BeforeValidator(_with_exponent)]
"""A number, not what could be taken for one: neither true nor "0.5"."""

Whole = Annotated[int, Field(strict=True)]


class Closed(BaseModel):
    """Immutable; a key that does not exist is an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Model = TypeVar("Model", bound=Closed)


class Minimum(Closed):
    """How much evidence a group-scope verdict needs."""

    terms: Whole = Field(6, ge=2, description="distinct terms of the group, each in at least half of the contexts used")
    controls: Whole = Field(24, ge=2, description="distinct control words, each in at least half of the contexts used")
    templates: Whole = Field(12, ge=2, description="contexts that hold both sides")


class Waiver(Closed):
    """One hypothesis that may fail until a date, and who answers for it."""

    hypothesis: str
    owner: str
    reason: str
    expires: date


class Policy(Closed):
    """The rule by which findings become a verdict. Fixed before the model is looked at."""

    version: Literal[1] = 1
    target: str | None = Field(None, description="label whose margin is judged")
    adverse: Literal["both", "higher", "lower"] = "both"
    scale: Literal["logit", "probability"] = "logit"
    margin: Number = Field(0.693, gt=0, description="ln 2: a term may not double or halve the odds")
    alpha: Number = Field(0.05, gt=0, lt=0.5, description="of the whole audit; half for each scope")
    scopes: tuple[Literal["group", "term"], ...] = ("group", "term")
    groups: Literal["all"] | tuple[str, ...] = "all"
    minimum: Minimum = Minimum()
    fail_when: Literal["estimated", "demonstrated"] = "estimated"
    inconclusive: Literal["block", "pass"] = "block"
    concordance: Number = Field(0.5, ge=-1, le=1)
    waivers: tuple[Waiver, ...] = ()
    label_map: dict[str, str] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.scale == "probability" and "margin" not in self.model_fields_set:
            raise ValueError("scale: probability needs an explicit margin (probability points, such as 0.05)")
        if self.scale == "probability" and self.margin >= 1:
            raise ValueError(f"margin {self.margin} is no difference of probabilities; give a value below 1")
        if not self.scopes or len(set(self.scopes)) != len(self.scopes):
            raise ValueError(f"scopes {list(self.scopes)} must name group, term or both, once each")
        return self

    def digest(self) -> str:
        """SHA-256 of the policy's content, whatever the order or layout of its file."""
        return hashlib.sha256(canonical_json(self.model_dump(mode="json")).encode()).hexdigest()


class RolloutSettings(Closed):
    """Attention rollout (Abnar and Zuidema, 2020)."""

    residual: Number = Field(0.5, ge=0, lt=1)
    fusion: Literal["mean", "max", "min"] = "mean"
    discard: Number = Field(0.0, ge=0, lt=1)
    layers: tuple[Whole, Whole] = Field(
        (0, -1), description="first and last, both counted in, from 0 at the input, or from -1, the last, backwards"
    )
    head: Whole | None = Field(None, ge=0, description="of the last of these layers, over fused heads below; None: all")
    specials: Literal["keep", "drop"] = "keep"
    reference: Literal["none", "uniform_causal"] = Field("none", description="decoders: less what the mask alone gives")
    receptive_field: Literal["none", "column"] = Field(
        "none", description="decoders: each token by the number of tokens that may see it, then to sum to 1"
    )


class AttentionSettings(Closed):
    """Attention of one layer."""

    layer: Whole = Field(-1, description="which layer, from 0 at the input, or from -1, the last, backwards")
    head: Whole | None = Field(None, ge=0, description="from 0; None: all, fused")
    fusion: Literal["mean", "max", "min"] = "mean"


class AttentionFlowSettings(Closed):
    """Attention flow (Abnar and Zuidema, 2020)."""

    residual: Number = Field(0.5, ge=0, lt=1)
    most_flows: Whole = Field(4096, ge=1, description="maximum flows a text: one a token, its square for mean pooling")


class IntegratedGradientsSettings(Closed):
    """Integrated gradients (Sundararajan et al., 2017)."""

    baseline: Literal["mask", "pad", "zero", "mean"] = "mask"
    second_baseline: Literal["none", "mask", "pad", "zero", "mean"] = Field(
        "none", description="integrate from this one too, and say how far the words' ranks agree"
    )
    tolerance: Number = Field(0.01, gt=0, le=0.5)
    max_nodes: Whole = Field(400, ge=15)

    @model_validator(mode="after")
    def _two_baselines(self) -> Self:
        if self.second_baseline == self.baseline:
            raise ValueError(f"second_baseline is {self.baseline}, as baseline is; name another one, or none")
        return self


class SmoothgradSettings(Closed):
    """SmoothGrad (Smilkov et al., 2017)."""

    samples: Whole = Field(20, ge=1, le=1000, description="noisy copies of each text")
    noise: Number = Field(0.15, gt=0, le=1, description="L2 norm of the noise as a share of the text's embeddings'")


class GradCamSettings(Closed):
    """Grad-CAM on self-attention (Selvaraju et al., 2017)."""

    layer: Whole = Field(-1, description="which layer, from 0 at the input, or from -1, the last, backwards")


class QkvGradientSettings(Closed):
    """Gradients of queries, keys and values."""

    part: Literal["query", "key", "value"] = Field("value", description="whose gradient makes a token's score")


class OcclusionSettings(Closed):
    """Occlusion, word by word or token by token."""

    unit: Literal["word", "token"] = Field("word", description="what is taken out at a time; a term as one phrase")
    operator: Literal["mask", "delete", "resample"] = "mask"
    draws: Whole = Field(5, ge=1, le=1000, description="tokens put in by resample, one after the other, then the mean")


class KernelShapSettings(Closed):
    """Kernel SHAP (Lundberg and Lee, 2017), word by word."""

    operator: Literal["mask", "delete", "resample"] = "mask"
    samples: Whole = Field(128, ge=4, le=100_000, description="coalitions of words a text; at least 4 a word are asked")
    draws: Whole = Field(5, ge=1, le=1000, description="tokens put in by resample, one after the other, then the mean")


class LimeSettings(Closed):
    """LIME (Ribeiro et al., 2016), word by word."""

    operator: Literal["mask", "delete", "resample"] = "mask"
    samples: Whole = Field(128, ge=4, le=100_000, description="coalitions of words a text; at least 4 a word are asked")
    kernel_width: Number = Field(0.25, gt=0, le=100, description="of the cosine distance to the whole text")
    draws: Whole = Field(5, ge=1, le=1000, description="tokens put in by resample, one after the other, then the mean")


class ChallengeSettings(Closed):
    """How the methods themselves are put to the test on this model, and when one is marked unreliable."""

    operators: tuple[Literal["mask", "delete", "resample"], ...] = Field(
        ("mask", "delete"), min_length=1, description="how words are taken out; a method must beat chance under each"
    )
    rankings: Whole = Field(20, ge=2, description="random rankings of each text's words: what chance gets")
    removals: Whole = Field(50, ge=1, description="random halves of each text's words, for infidelity")
    draws: Whole = Field(10, ge=0, description="moved inputs, for max-sensitivity; 0: leave it out")
    radius: Number = Field(0.02, gt=0, le=1, description="how far they are moved, of the embeddings' L2 norm")
    randomise: bool = Field(True, description="explain a copy with weights drawn anew, too")
    cascade_limit: Number = Field(0.5, ge=-1, le=1, description="Spearman with it, above which a method is marked")
    gap_limit: Number = Field(0.05, ge=0, le=1, description="share of texts with a gap, above which a method is marked")


class Settings(Closed):
    """All that an audit may be told."""

    evaluation_set: str | None = Field(None, description="name or file; None: identity terms in the model's language")
    target: str | None = None
    methods: tuple[str, ...] = ("rollout", "integrated_gradients", "occlusion")
    languages: tuple[Literal["en", "es"], ...] = Field(("en", "es"), min_length=1, description="of the report")
    set_language: str | None = Field(
        None, description="language of a user's evaluation set; None: en, or the set's own"
    )
    limit: Whole | None = Field(None, ge=1, description="rows to cut the set to: whole contexts, at least one")
    seed: Whole = Field(0, ge=0)
    head: Literal["auto", "softmax", "sigmoid"] = "auto"
    threshold: Number = Field(0.5, gt=0, lt=1)
    batch_size: Whole = Field(32, ge=1, le=4096)
    threads: Whole = Field(2, ge=1)
    words: Literal["max", "mean"] = Field("max", description="sub-words to words, where scores do not add up")
    attribution_rows: Whole = Field(2000, ge=0)
    challenge_rows: Whole = Field(48, ge=0, description="of the attribution rows, to test the methods on; 0: none")
    trust_pickle: bool = False
    rollout: RolloutSettings = RolloutSettings()
    attention: AttentionSettings = AttentionSettings()
    attention_flow: AttentionFlowSettings = AttentionFlowSettings()
    integrated_gradients: IntegratedGradientsSettings = IntegratedGradientsSettings()
    smoothgrad: SmoothgradSettings = SmoothgradSettings()
    grad_cam: GradCamSettings = GradCamSettings()
    qkv_gradient: QkvGradientSettings = QkvGradientSettings()
    occlusion: OcclusionSettings = OcclusionSettings()
    kernel_shap: KernelShapSettings = KernelShapSettings()
    lime: LimeSettings = LimeSettings()
    challenge: ChallengeSettings = ChallengeSettings()
    owner: str | None = Field(None, description="who answers for the model; shown in the report")
    intended_use: str | None = Field(None, description="declared by the owner; shown in the report")
    policy: Policy = Policy()


def read_policy(path: str | Path) -> Policy:
    """Read and check a policy file; UsageError names the line's key, the value and what was expected."""
    return build(Policy, read_yaml(path), str(path))


def read_settings(path: str | Path) -> Settings:
    """Read and check a settings file; UsageError as for `read_policy`."""
    return build(Settings, read_yaml(path), str(path))


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A YAML file that holds a mapping; UsageError otherwise."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"cannot read {file}: {error}; expected a YAML file in UTF-8") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(f"{file} holds a {type(content).__name__}, expected keys and values (key: value)")
    for key, first, second in _repeated(yaml.compose(text, Loader=yaml.SafeLoader), set()):
        raise UsageError(f"{file}: the key {key!r} stands twice, in lines {first} and {second}; keep one of them")
    return content


def _repeated(node: yaml.Node | None, seen: set[int]) -> Iterator[tuple[str, int, int]]:
    """Keys that stand twice in one mapping, with both lines; YAML itself would keep the last and say nothing."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from _repeated(part, seen)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines and name != "<<":
                yield name, lines[name], line
            lines[name] = line
            yield from _repeated(value, seen)


def build(model: type[Model], values: Mapping[str, Any], source: str) -> Model:
    """Make a settings model of plain values; UsageError lists every fault with key, value and expectation."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = "; ".join(_faults(model, [dict(fault) for fault in error.errors()]))
        raise UsageError(f"{source}: {faults}") from error


EXPECTED = {
    "float_type": "expected a number",
    "int_type": "expected a whole number",
    "int_from_float": "expected a whole number",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "string_type": "expected text",
    "tuple_type": "expected a list",
    "dict_type": "expected keys and values (key: value)",
    "model_type": "expected keys and values (key: value)",
    "model_attributes_type": "expected keys and values (key: value)",
    "literal_error": "expected {expected}",
    "greater_than": "expected a number above {gt:g}",
    "greater_than_equal": "expected {ge:g} or more",
    "less_than": "expected a number below {lt:g}",
    "less_than_equal": "expected {le:g} or less",
    "finite_number": "expected a finite number",
    "too_short": "expected at least {min_length} of them",
    "date_type": "expected a date such as 2030-12-31",
    "date_parsing": "expected a date such as 2030-12-31",
    "date_from_datetime_parsing": "expected a date such as 2030-12-31",
    "date_from_datetime_inexact": "expected a date such as 2030-12-31",
}
"""What pydantic's kinds of fault mean, in words for whoever wrote the file."""


def _faults(model: type[Closed], faults: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each fault once: a choice between two shapes is one fault, and a list that lost its bad entries is not short."""
    told: set[str] = set()
    for fault in faults:
        where = _where(fault)
        inner = any(other is not fault and _where(other).startswith(f"{where}.") for other in faults)
        if where in told or (fault["type"] == "too_short" and inner):
            continue
        if len(_own(tuple(fault["loc"]))) < len(fault["loc"]):
            told.add(where)
            yield f"{where}: expected all, or a list of names (got {_short(fault.get('input'))})"
        else:
            yield _fault(model, fault)


def _own(path: tuple[Any, ...]) -> tuple[Any, ...]:
    """A fault's place without pydantic's names for the shapes that it tried."""
    tags = [place for place, part in enumerate(path) if str(part).startswith(("literal[", "tuple["))]
    return path[: tags[0]] if tags else path


def _where(fault: dict[str, Any]) -> str:
    return ".".join(str(part) for part in _own(tuple(fault["loc"])))


def _fault(model: type[Closed], fault: dict[str, Any]) -> str:
    where = _where(fault) or model.__name__.lower()
    if fault["type"] == "extra_forbidden":
        return unknown("key", where.rpartition(".")[2], _keys_at(model, fault["loc"][:-1]))
    if fault["type"] == "missing":
        return f"{where}: is missing"
    if fault["type"] == "value_error":  # a sentence of ours
        return f"{where}: {fault['msg'].removeprefix('Value error, ')}"
    said = EXPECTED.get(fault["type"])
    told = said.format(**fault.get("ctx", {})) if said else str(fault["msg"])
    return f"{where}: {told} (got {_short(fault.get('input'))})"


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _keys_at(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    for part in path:
        field = model.model_fields.get(str(part))
        model = _model_in(field.annotation if field else None) or model
    return list(model.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model inside an annotation such as tuple[Waiver, ...] or dict[str, Axis]."""
    if get_origin(annotation) is None and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
