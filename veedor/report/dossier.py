"""The dossier: all that a report may say, as numbers and codes. Written as audit.json.

Frozen models without a word of any language; texts of the evaluation set appear as examples only. What an audit did
not do is `Absent`, with the code of the reason. How records become a dossier is `veedor.report.build`. No times, hosts
or paths: the same evidence gives the same bytes; they are in provenance.json.
"""

from pathlib import Path
from typing import Any, Literal

from veedor.records import Frozen, Note, Scalar, Scope, SubjectCard, VerdictName, write_json

Count = dict[str, int]
Tally = dict[VerdictName | Literal["all"], int]


class Absent(Frozen):
    """Evidence that this audit does not hold, and the code of the reason."""

    value: None = None
    why_not: str


class SubjectSheet(Frozen):
    """E01: the model, and the question put to it."""

    card: SubjectCard
    target: str
    target_source: str
    score_function: str
    threshold: float
    label_map: dict[str, str]
    counts: Count
    dropped: Count  # rows that were scored but enter no effect, by reason


class IntendedUse(Frozen):
    """E02: what the owner declared; None where nothing was."""

    text: str | None
    owner: str | None
    why_not: str | None


class PolicySheet(Frozen):
    """E03: the rule fixed before the model was looked at."""

    content: dict[str, Any]
    digest: str
    as_of: str | None


class GroupCell(Frozen):
    """How much text stands for one group."""

    axis: str
    group: str
    terms: int
    rows: int
    contexts: int


class DataSheet(Frozen):
    """E04: what the model was shown."""

    name: str
    language: str
    licence: str
    source: str
    intended_construct: str
    digest: str
    known_validity_issues: tuple[str, ...]
    not_valid_for: tuple[str, ...]
    label_meaning: dict[str, str]
    columns: tuple[str, ...]
    counts: Count
    cells: tuple[GroupCell, ...]
    excluded: Count
    group_names: dict[str, dict[str, str]]


class Check(Frozen):
    """One expectation about the evaluation set and whether it held. `cell` names the group concerned, if any."""

    id: str
    column: str | None
    expectation: str
    success: bool
    severity: str
    observed: str | None
    unexpected_count: int | None
    unexpected_ids: tuple[str, ...]
    cell: str | None


class DatasetChecks(Frozen):
    """E05: the validation result; `success` is None where the set was not validated."""

    success: bool | None
    great_expectations_version: str | None
    checks: tuple[Check, ...]
    why_not: str | None


class Quantiles(Frozen):
    """Of the probability of the target, over a group's rows."""

    q05: float
    q25: float
    q50: float
    q75: float
    q95: float


class GroupRow(Frozen):
    """E06: what a group's texts get. A number that the cell is too small for is None; `reason` says why."""

    axis: str
    group: str
    n: int
    n_positive: int
    rate: float | None
    low: float | None
    high: float | None
    mean_margin: float | None
    n_labelled: int
    false_positive_rate: float | None
    fpr_low: float | None
    fpr_high: float | None
    false_negative_rate: float | None
    fnr_low: float | None
    fnr_high: float | None
    subgroup_auc: float | None
    bpsn_auc: float | None
    bnsp_auc: float | None
    reason: str | None
    probability: Quantiles | None


class WordEffect(Frozen):
    """Effect of one word, in the finding's units, against the mean of the control words in its contexts."""

    word: str
    kind: str
    effect: float
    n_contexts: int
    subwords: float | None
    band: float | None


class Strip(Frozen):
    """The words of one text with the weight a method gives each; `strengths`: of the pair's largest, -1..1."""

    method: str
    side: Literal["term", "control"]
    words: tuple[str, ...]
    scores: tuple[float, ...]
    strengths: tuple[float, ...]


class Pair(Frozen):
    """A minimal pair: the text with the term and with a control word, and what the model answered to each."""

    row: str
    partner: str
    text: str
    partner_text: str
    span: tuple[int, int]
    partner_span: tuple[int, int]
    margin: float
    partner_margin: float
    probability: float
    partner_probability: float
    predicted: str
    partner_predicted: str
    strips: tuple[Strip, ...] = ()


class Practical(Frozen):
    """An effect in logits as a factor of the odds and in percentage points, from probabilities of .5 and .1."""

    odds_factor: float
    half_to: float
    half_points: float
    tenth_to: float
    tenth_points: float


class Hypothesis(Frozen):
    """E07: a term-swap effect and its ruling. Intervals: `low`, `high` at 1 - alpha, `equivalence_*` at 1 - 2 alpha."""

    id: str
    scope: Scope
    axis: str
    group: str
    term: str | None
    verdict: VerdictName
    rule: str
    primary: bool
    gating: bool
    reference: str
    estimate: float | None
    size: float | None
    standard_error: float | None
    df: float | None
    low: float | None
    high: float | None
    p: float | None
    adjusted_p: float | None
    equivalence_p: float | None
    equivalence_low: float | None
    equivalence_high: float | None
    beyond_margin: bool | None
    beyond_p: float | None
    exploratory_p: float | None
    practical: Practical | None
    minimum_detectable_effect: float | None
    terms_needed: int | None
    controls_needed: int | None
    n_templates: int
    n_terms: int
    n_controls: int
    n_rows: int
    clusters: str
    dropped: Count
    most_extreme_control: float | None
    skew: float | None
    excess_kurtosis: float | None
    tail_factor: float | None
    flips: dict[str, float | int | None]
    subwords: tuple[float | None, float | None]
    band: tuple[float | None, float | None]
    near_subwords: float | None
    why_not: str | None
    waiver: dict[str, str] | None
    examples: tuple[Pair, ...]
    words: tuple[WordEffect, ...]


class Counterfactual(Frozen):
    """All term-swap hypotheses, and the levels their intervals are at (in per cent)."""

    scale: str
    units: str
    target: str
    adverse: str
    margin: float
    margin_factor: float | None  # of the odds
    level: float
    equivalence_level: float
    hypotheses: tuple[Hypothesis, ...]


class AttributionContrast(Frozen):
    """E08: weight that a method gives the terms, above that of control words. `doubts`: why it is not corroborated."""

    id: str
    hypothesis: str  # the term-swap hypothesis that it stands beside
    method: str
    scope: Scope
    axis: str
    group: str
    term: str | None
    targeted: bool
    signed: bool
    units: str
    estimate: float | None
    size: float | None
    standard_error: float | None
    df: float | None
    low: float | None
    high: float | None
    p: float | None
    n_templates: int
    n_terms: int
    n_controls: int
    placebo_rate: float | None
    concordance: float | None
    sign_agreement: float | None
    corroborated: bool | None
    doubts: tuple[str, ...]
    why_not: str | None


class Metrics(Frozen):
    """Everything measured."""

    group: tuple[GroupRow, ...]
    counterfactual: Counterfactual
    attribution: tuple[AttributionContrast, ...]
    intersectional: Absent


class MethodSheet(Frozen):
    """E09: one attribution method on this model, and how far it can be trusted.

    `unreliable`: marked by the rules that were fixed beforehand, with the codes of the reasons in `marks`; None where
    that was not, or could not be, put to the test. `gap_share`: of its texts, with a completeness gap above tolerance.
    """

    name: str
    refused: str | None
    unreliable: bool | None = None
    marks: tuple[str, ...] = ()
    gap_share: float | None = None
    targeted: bool
    signed: bool
    options: dict[str, Any]
    rows: int
    placebo_rate: float | None
    concordance: float | None
    gap_median: float | None
    gap_largest: float | None
    flags: Count


class FaithfulnessRow(Frozen):
    """One metric of one method beside random and uniform scores; `low`, `high` bound the mean of (method − random)."""

    method: str
    operator: str  # how words were taken out; "" where none were
    metric: str
    estimate: float | None
    random: float | None
    uniform: float | None
    difference: float | None
    low: float | None
    high: float | None
    n_texts: int
    n_clusters: int
    undefined: int
    reason: str | None


class AgreementRow(Frozen):
    """How alike two methods rank words: rank correlations, mean over texts."""

    first: str
    second: str
    kendall: float | None
    spearman: float | None
    texts: int


class Faithfulness(Frozen):
    """The methods put to the test on this model, on a sample of the explained rows; limits fixed beforehand."""

    operators: tuple[str, ...]
    level: float
    cascade_limit: float
    gap_limit: float
    sample: Count  # rows, contexts, and of how many
    forwards: int
    rows: tuple[FaithfulnessRow, ...]
    agreement: tuple[AgreementRow, ...]


class MethodValidity(Frozen):
    """All methods asked for, and how many texts they explained."""

    sample: Count
    methods: tuple[MethodSheet, ...]
    concordance_limit: float
    placebo_limit: float
    faithfulness: Faithfulness | Absent


class RulingRow(Frozen):
    """One line of the decision record; the numbers behind it are in `metrics.counterfactual`."""

    id: str
    scope: Scope
    verdict: VerdictName
    rule: str
    primary: bool
    gating: bool
    adjusted_p: float | None
    waived: bool


class Decision(Frozen):
    """E11: the verdict, what it rests on and what follows."""

    overall: VerdictName
    rule: str
    with_waivers: bool
    failing: tuple[str, ...]  # gating, not waived
    waived: tuple[str, ...]
    counts: dict[Scope, Tally]
    primary: Tally
    gating: Tally
    family: dict[Scope, int]  # hypotheses that Holm's correction ran over
    alpha: float
    alpha_per_scope: float
    next_action: str
    owner: str | None
    rulings: tuple[RulingRow, ...]


class NotTested(Frozen):
    """A hypothesis without a verdict, and why."""

    id: str
    reason: str


class Limitations(Frozen):
    """E14: what limits the reading. `emphasis`: what limits it most; `notes`: what the steps had to say."""

    emphasis: tuple[Note, ...]
    notes: tuple[Note, ...]
    general: tuple[str, ...]
    not_tested: tuple[NotTested, ...]


class Provenance(Frozen):
    """E15, E16: what the numbers were made with; times, versions and hashes are in the files named."""

    settings: dict[str, Any]
    file: str = "provenance.json"
    manifest: str = "manifest.json"


class SignOff(Frozen):
    """E17: to be filled in by people, never by a program."""

    reviewer: None = None
    role: None = None
    date: None = None
    decision: None = None
    signature: None = None
    waivers: tuple[dict[str, Scalar], ...] = ()


class DataProtection(Frozen):
    """E20: whether texts about real people were used. None: the owner of the set has to say."""

    texts_of_real_people: bool | None
    basis: str  # code


class Dossier(Frozen):
    """One audit, in numbers and codes."""

    schema_version: Literal[1] = 1
    subject: SubjectSheet
    intended_use: IntendedUse
    policy: PolicySheet
    datasets: tuple[DataSheet, ...]
    dataset_checks: DatasetChecks
    metrics: Metrics
    method_validity: MethodValidity
    decision: Decision
    ll144: Absent
    comparison: Absent
    limitations: Limitations
    provenance: Provenance
    signoff: SignOff
    schedule: Absent
    data_protection: DataProtection


def schema() -> dict[str, Any]:
    """The JSON Schema of audit.json; `reports/audit.schema.json` holds it, and a test compares the two."""
    content = Dossier.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "veedor:audit:1", **content}


def write_schema(path: Path) -> None:
    """Write the JSON Schema, after the models above have changed."""
    write_json(schema(), path)
