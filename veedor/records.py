"""The frozen records that travel between steps, and how each is written to and read from a folder.

A record is a pydantic model whose table fields are pandas frames. `save` writes one Parquet file a table and one
`record.json` for the rest, then `manifest.json` last: a folder without a manifest was not finished. The manifest holds
the SHA-256 of every file and of the records it was made from. Times, hosts and run ids never go in here: the same input
gives the same bytes.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

SCHEMA_VERSION = 1
VerdictName = Literal["PASS", "FAIL", "INCONCLUSIVE", "NOT_TESTED"]
Scope = Literal["group", "term"]
Scalar = str | int | float | bool | None


def _frame(value: object) -> pd.DataFrame:
    if isinstance(value, pd.DataFrame):
        return value
    raise ValueError(f"expected a pandas DataFrame, got {type(value).__name__}")


# Tables are validated by identity and written apart, as Parquet; in JSON they appear as their number of rows.
Table = Annotated[Any, BeforeValidator(_frame), PlainSerializer(len, return_type=int)]


class Frozen(BaseModel):
    """Immutable, closed, and without NaN: what is undefined is None with a reason beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)


class Note(Frozen):
    """Something a reader must know, as a code and its values; `reports/words/*.yaml` turns it into a sentence.

    >>> Note(code="truncated", values={"rows": 3, "window": 512}).code
    'truncated'
    """

    code: str
    values: dict[str, Scalar | tuple[Scalar, ...]] = {}


class Record(Frozen):
    """What a step returns. Subclasses declare table fields in `tables`; every other field is JSON."""

    tables: ClassVar[tuple[str, ...]] = ()

    def save(self, folder: str | Path, *, made_from: Mapping[str, str] | None = None) -> str:
        """Write the record; the folder appears complete or not at all. Returns the record's digest."""
        target = Path(folder)
        partial = target.with_name(target.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name in self.tables:
            write_table(getattr(self, name), partial / f"{name}.parquet")
        fields = self.model_dump(mode="json", exclude=set(self.tables))
        write_json(fields, partial / "record.json")
        manifest = describe(partial, type(self).__name__, made_from or {})
        write_json(manifest, partial / "manifest.json")
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        return str(manifest["digest"])

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a record back; raises ValueError where the folder is unfinished, of another kind or was altered."""
        source = Path(folder)
        check(source, cls.__name__)
        fields = json.loads((source / "record.json").read_text(encoding="utf-8"))
        for name in cls.tables:
            fields[name] = pd.read_parquet(source / f"{name}.parquet")
        return cls.model_validate(fields)


def describe(folder: Path, kind: str, made_from: Mapping[str, str]) -> dict[str, object]:
    """The manifest of a record's folder: SHA-256 of each file, of what it was made from, and of all of it together."""
    files = {path.name: sha256(path) for path in sorted(folder.iterdir()) if path.name != "manifest.json"}
    content = {"kind": kind, "schema": SCHEMA_VERSION, "files": files}
    digest = hashlib.sha256(canonical_json(content).encode()).hexdigest()
    return {**content, "made_from": dict(sorted(made_from.items())), "digest": digest}


def manifest_of(folder: str | Path) -> dict[str, Any] | None:
    """The manifest of a finished record, or None where there is no finished record."""
    path = Path(folder) / "manifest.json"
    if not path.is_file():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def check(folder: Path, kind: str) -> None:
    """Raise ValueError unless the folder holds a finished record of this kind whose files are as they were written."""
    manifest = manifest_of(folder)
    if manifest is None:
        raise ValueError(f"{folder} holds no finished {kind} (no manifest.json); run the step that writes it again")
    if manifest["kind"] != kind or manifest["schema"] != SCHEMA_VERSION:
        found = f"{manifest['kind']}, schema {manifest['schema']}"
        raise ValueError(f"{folder} holds {found}, expected {kind}, schema {SCHEMA_VERSION}")
    for name, digest in manifest["files"].items():
        if not (folder / name).is_file() or sha256(folder / name) != digest:
            raise ValueError(f"{folder / name} is missing or was altered after it was written (SHA-256 differs)")


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no NaN, the same for the same content.

    >>> canonical_json({"b": 1, "a": None})
    '{"a": null, "b": 1}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def write_json(value: object, path: Path) -> None:
    """Write JSON for people and programs alike: sorted, indented, UTF-8, no NaN."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as Parquet without its index."""
    table.to_parquet(path, index=False, compression="zstd")


def finite(value: float | None) -> float | None:
    """A finite float, or None: nothing undefined becomes a number.

    >>> finite(float("nan")) is None
    True
    """
    return float(value) if value is not None and math.isfinite(value) else None


class EvaluationSet(Record):
    """Texts that differ in a demographic term, the control words in the same slots, and what validation said of them.

    `rows`: id, text, label (str or None), template (the context: the text with its term masked), form (coarser form
    that contexts share, or None), slot (class of the slot: part of speech, number, agreement), axis and group (None for
    control rows and for rows without a term), term (canonical word), start, end (characters of its surface in the text,
    -1 without a term), control (bool), set (counterfactual set: rows alike but for the term), symmetric ("yes", "no",
    "unknown"), inserted (bool: the row was made by putting a word into the slot of a row of the file), surface, band
    (Zipf frequency, or None).
    `excluded`: id, text (at most 200 characters), reason (a code), detail: rows of the source that could not be used.
    """

    tables: ClassVar[tuple[str, ...]] = ("rows", "excluded")

    name: str
    language: str
    licence: str
    source: str
    intended_construct: str
    digest: str  # SHA-256 over the rows' content, in order
    known_validity_issues: tuple[str, ...] = ()
    not_valid_for: tuple[str, ...] = ()
    label_meaning: dict[str, str] = {}  # label in the set -> "adverse" | "benign" | the label's plain meaning
    group_names: dict[str, dict[str, str]] = {}  # "axis/group" -> {"en": ..., "es": ...}; "axis" -> the axis' names
    validation: dict[str, Any] = {}  # the Great Expectations result, without texts
    counts: dict[str, int] = {}
    notes: tuple[Note, ...] = ()
    rows: Table
    excluded: Table


class SubjectCard(Frozen):
    """Who the audited model is: everything about it that is evidence, nothing that depends on time or place."""

    name: str  # as the user wrote it, without secrets
    uri: str | None = None  # pinned: models:/name/3, runs:/..., or None for a folder
    alias: str | None = None
    version: str | None = None
    model_id: str | None = None
    run_id: str | None = None
    architecture: str
    model_type: str
    labels: tuple[str, ...]
    head: Literal["softmax", "sigmoid", "one_logit"]
    parameters: int
    window: int  # tokens
    stored_dtype: str
    audited_dtype: str = "float32"
    weights_digest: str
    tokenizer_digest: str
    language: tuple[str, ...] = ()  # declared in the model card, if any
    licence: str | None = None


class Decisions(Record):
    """What the model answered to each row.

    `rows`: id, predicted (label; multi-label: labels above the threshold joined by "|", "" for none), positive (bool:
    the target is chosen), margin (of the target, float64), probability (of the target), logits and probabilities (lists
    in the order of `subject.labels`), tokens (number, special ones included), subwords (of the term, 0 without one),
    truncated (bool), usable (bool: enters the term-swap measures), drop_reason ("" or a code: "term_cut", "asymmetric",
    "same_tokens"), label_mapped (model label of the set's label, or None).
    """

    tables: ClassVar[tuple[str, ...]] = ("rows",)

    subject: SubjectCard
    target: str
    target_source: Literal["named", "policy", "label_1", "only"]
    score_function: str  # "log-odds of the target" | "logit of the target" | "probability of the target"
    threshold: float
    label_map: dict[str, str] = {}
    counts: dict[str, int] = {}
    notes: tuple[Note, ...] = ()
    rows: Table


class Attributions(Record):
    """Which tokens each method holds responsible, for a sample of the rows.

    `rows`: id, method, tokens, token_starts, token_ends, scores, words, word_starts, word_ends, word_scores (lists),
    span_score (of the term, None without one), gap (completeness gap, None where the method has none), nodes (model
    evaluations), flags ("" or codes joined by "|").
    `methods`: name -> options and declared properties. `refused`: name -> why this model does not allow it.
    """

    tables: ClassVar[tuple[str, ...]] = ("rows",)

    target: str
    score_function: str
    methods: dict[str, dict[str, Any]]
    refused: dict[str, str] = {}
    sample: dict[str, int] = {}  # rows, contexts, forms, terms, controls
    notes: tuple[Note, ...] = ()
    rows: Table


class MethodReliability(Frozen):
    """Whether one method can be trusted on this model, by the limits that were fixed beforehand."""

    unreliable: bool | None  # None: could not be told
    marks: tuple[str, ...] = ()  # "not_beyond_random" | "survives_randomisation" | "gaps_too_wide"
    targeted: bool
    gap_share: float | None = None  # of the explained texts, with a completeness gap above tolerance


class Reliability(Record):
    """How far each method's scores follow what this model does, on a sample of the explained rows, beside chance.

    `scores`: method, operator ("" where no words are taken out), metric, estimate, random, uniform (the same for random
    and for uniform scores), difference (method − random), low, high (its interval at `level`, Student's t over
    clusters: contexts), n_texts, n_clusters, undefined (texts without a value), reason (None: there is one).
    `values`: id, method, operator, metric, value, random, uniform, reason: the same, text by text.
    `agreement`: first, second, kendall, spearman, texts: rankings of words by two methods, mean over texts.
    """

    tables: ClassVar[tuple[str, ...]] = ("scores", "values", "agreement")

    target: str
    score_function: str
    operators: tuple[str, ...]
    level: float
    cascade_limit: float  # Spearman after the full cascade, above which a method is marked
    gap_limit: float  # share of texts with a gap, above which a method is marked
    methods: dict[str, MethodReliability]
    forwards: int  # texts without some of their words that went through the model
    notes: tuple[Note, ...] = ()
    scores: Table
    values: Table
    agreement: Table


class Finding(Frozen):
    """One measured contrast, free of any policy. Undefined numbers are None and `why_not` says why.

    id: `group/AXIS/GROUP` or `term/AXIS/GROUP/TERM` for the term-swap effect; attribution findings put
    `attribution/METHOD/` in front. Estimates are in `units` (logits, probability points, or the method's own).
    """

    id: str
    metric: Literal["term_swap_effect", "attribution_contrast"]
    method: str | None = None
    scope: Scope
    axis: str
    group: str
    term: str | None = None
    reference: Literal["controls", "other_terms"]
    units: str
    estimate: float | None
    standard_error: float | None
    df: float | None
    p: float | None  # two-sided, against no effect
    # term scope: the same estimate seen as one more ordinary word, and against its own uncertainty
    prediction_error: float | None = None  # s_c * sqrt(1 + 1/K_c): the denominator of t
    prediction_df: float | None = None  # K_c - 1
    n_templates: int
    n_terms: int
    n_controls: int
    n_rows: int = 0
    clusters: Literal["contexts", "forms"] = "contexts"
    dropped: dict[str, int] = {}
    most_extreme_control: float | None = None
    skew: float | None = None
    excess_kurtosis: float | None = None
    tail_factor: float | None = None
    why_not: str | None = None  # code of the reason why there is no estimate
    # flips: contexts and terms in which the decision differs from that for the controls' majority, exact bounds
    flips: dict[str, float | int | None] = {}
    subwords: tuple[float | None, float | None] = (None, None)  # mean of terms, of controls
    band: tuple[float | None, float | None] = (None, None)  # mean Zipf frequency of terms, of controls
    near_subwords: float | None = None  # estimate over controls within one sub-word (exploratory)
    placebo_rate: float | None = None  # attribution: false alarms among random splits of the controls
    concordance: float | None = None  # attribution: Spearman with the term-swap effect
    sign_agreement: float | None = None
    examples: tuple[str, ...] = ()  # "id of the term's row|id of a control row in the same context"


class Findings(Record):
    """Everything measured, before any policy is applied.

    `effects`: finding, word, kind ("term" or "control"), effect, n_contexts, subwords, band.
    `contexts`: finding, context (or form), difference, n_rows.
    `groups`: axis, group, n, n_positive, rate, low, high, mean_margin, n_labelled, false_positive_rate, fpr_low,
    fpr_high, false_negative_rate, fnr_low, fnr_high, subgroup_auc, bpsn_auc, bnsp_auc, reason (None: all is defined).
    `pairs`: finding, row, partner, text, partner_text, margin, partner_margin, probability, partner_probability,
    predicted, partner_predicted.
    """

    tables: ClassVar[tuple[str, ...]] = ("effects", "contexts", "groups", "pairs")

    scale: Literal["logit", "probability"]
    target: str
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...] = ()
    effects: Table
    contexts: Table
    groups: Table
    pairs: Table


class Ruling(Frozen):
    """The verdict on one hypothesis and the numbers it rests on."""

    id: str
    scope: Scope
    axis: str
    group: str
    term: str | None
    verdict: VerdictName
    primary: bool
    gating: bool
    rule: str  # code of the rule that fired
    estimate: float | None
    standard_error: float | None
    df: float | None
    low: float | None  # interval at 1 - alpha
    high: float | None
    p: float | None  # against no effect, one- or two-sided as the policy's `adverse` says
    adjusted_p: float | None  # Holm within the scope; None outside the family
    equivalence_p: float | None  # the larger of the two one-sided tests (or the one, when adverse is one-sided)
    equivalence_low: float | None = None  # interval at 1 - 2 alpha, the one that equivalence is read from
    equivalence_high: float | None = None
    beyond_margin: bool | None  # the whole interval lies beyond the margin
    beyond_p: float | None = None  # one-sided, against an effect of just the margin; decides under `demonstrated`
    exploratory_p: float | None = None  # Benjamini-Hochberg within the scope, of hypotheses outside the family
    minimum_detectable_effect: float | None = None
    terms_needed: int | None = None  # inconclusive: about how many terms (or controls) would decide
    controls_needed: int | None = None
    n_templates: int = 0
    n_terms: int = 0
    n_controls: int = 0
    waiver: dict[str, str] | None = None


class Verdict(Record):
    """PASS, FAIL, INCONCLUSIVE or NOT_TESTED, overall and for each hypothesis, by the policy fixed beforehand."""

    overall: VerdictName
    rule: str  # code of the rule that decided the overall verdict
    with_waivers: bool = False
    policy: dict[str, Any]
    policy_digest: str
    as_of: str | None = None  # ISO date that waivers were judged at; None without waivers
    rulings: tuple[Ruling, ...]
    notes: tuple[Note, ...] = ()


class Report(Frozen):
    """The files a reader opens, by their path in the audit folder, and their SHA-256."""

    files: dict[str, str]
    warnings: tuple[Note, ...] = ()
