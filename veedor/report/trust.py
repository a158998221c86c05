"""The section on how far the methods can be trusted on this model: strings ready to be put in."""

from collections.abc import Iterable
from dataclasses import dataclass

from veedor.report.dossier import Absent, Faithfulness, FaithfulnessRow, MethodSheet
from veedor.report.prose import Prose

LEAVE_ONE_OUT, SENSITIVITY = "tau_leave_one_out", "max_sensitivity"
HEAD, EVERYTHING = "randomised_head", "randomised_all"
LOWER = ("sufficiency", SENSITIVITY, HEAD, EVERYTHING)


@dataclass(frozen=True)
class Beside:
    """A mean beside chance under one operator: the value, that of chance, the difference, and which it is of."""

    operator: str
    value: str
    chance: str
    difference: str
    beyond: bool | None  # the whole interval lies on the better side


@dataclass(frozen=True)
class TrustRow:
    """One method: whether it is marked, why, and the numbers."""

    name: str
    unreliable: bool | None
    mark: str
    why: str
    comprehensiveness: tuple[Beside, ...]
    sufficiency: tuple[Beside, ...]
    leave_one_out: str
    sensitivity: str
    randomised: str


@dataclass(frozen=True)
class Trust:
    """The whole section."""

    lead: str
    rules: str
    rows: tuple[TrustRow, ...]
    agreement: str


def trust_of(prose: Prose) -> Trust | None:
    """The section, or None where the methods were not put to the test."""
    tested = prose.validity.faithfulness
    if isinstance(tested, Absent):
        return None
    sheets = [sheet for sheet in prose.validity.methods if any(row.method == sheet.name for row in tested.rows)]
    words = prose.words
    counts = {name: tested.sample.get(name, 0) for name in ("rows", "of", "contexts")}
    operators = words.listed([words.code("operators", one) for one in tested.operators])
    level = prose.level(100 * tested.level)
    gap = words.percent(tested.gap_limit)
    return Trust(
        lead=words.text("trust_lead", operators=operators, level=level, **counts),
        rules=words.text("trust_rules", limit=prose.limit(tested.cascade_limit), gap_limit=gap),
        rows=tuple(_line(prose, sheet, tested) for sheet in sheets),
        agreement=_agreement(prose, tested),
    )


def _line(prose: Prose, sheet: MethodSheet, tested: Faithfulness) -> TrustRow:
    own = {(row.metric, row.operator): row for row in tested.rows if row.method == sheet.name}
    state = {True: "trust_marked", False: "trust_unmarked", None: "trust_unknown"}[sheet.unreliable]
    after = [_plain(prose, own.get((metric, ""))) for metric in (HEAD, EVERYTHING)]
    return TrustRow(
        name=prose.plain_method(sheet.name),
        unreliable=sheet.unreliable,
        mark=prose.words.text(state),
        why=prose.marks(sheet.marks),
        comprehensiveness=tuple(_beside(prose, own, "comprehensiveness", one) for one in tested.operators),
        sufficiency=tuple(_beside(prose, own, "sufficiency", one) for one in tested.operators),
        leave_one_out=_plain(prose, own.get((LEAVE_ONE_OUT, "mask"))),
        sensitivity=_plain(prose, own.get((SENSITIVITY, ""))),
        randomised="; ".join(after),
    )


def _beside(prose: Prose, own: dict[tuple[str, str], FaithfulnessRow], metric: str, operator: str) -> Beside:
    words, row = prose.words, own.get((metric, operator))
    name = words.code("operators", operator)
    if row is None or row.estimate is None:
        return Beside(name, words.number(None), words.number(None), words.number(None), None)
    numbers = {key: words.number(getattr(row, key), 2, sign=True) for key in ("difference", "low", "high")}
    beyond = None
    if row.low is not None and row.high is not None:
        beyond = row.high < 0 if metric in LOWER else row.low > 0
    return Beside(
        operator=name,
        value=words.number(row.estimate, 2),
        chance=words.number(row.random, 2),
        difference=words.text("trust_difference", **numbers),
        beyond=beyond,
    )


def _plain(prose: Prose, row: FaithfulnessRow | None) -> str:
    return prose.words.number(None if row is None else row.estimate, 2)


def _agreement(prose: Prose, tested: Faithfulness) -> str:
    """Each pair of methods with its tau, the most alike first."""
    pairs = sorted((row for row in tested.agreement if row.kendall is not None), key=lambda row: -(row.kendall or 0.0))
    told: Iterable[str] = (
        prose.words.text(
            "trust_pair",
            first=prose.plain_method(row.first),
            second=prose.plain_method(row.second),
            tau=prose.words.number(row.kendall, 2),
        )
        for row in pairs
    )
    return "; ".join(told)
