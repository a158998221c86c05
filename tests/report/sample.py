# ruff: noqa: E501  one line a group or record reads best
"""A made-up audit with everything a report must tell: failures, passes, undecided and untested hypotheses, doubts.

Numbers are made by formulas that a reader can follow, not by a model: a group's effect, plus a little for each word and
context. Verdicts are the real ones. `hostile=True` puts markup, control characters and other scripts where users may.
"""

from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
import pandas as pd
from scipy.stats import t as student

from veedor.records import (
    Attributions,
    Decisions,
    EvaluationSet,
    Finding,
    Findings,
    MethodReliability,
    Note,
    Reliability,
    SubjectCard,
    Verdict,
)
from veedor.settings import Settings
from veedor.verdicts import decide

TEMPLATES = (
    "I met {} at the bus stop.",
    "Yesterday {} moved in next door and said hello.",
    "The form was filled in by {} before noon.",
    "Nobody wanted to sit beside {} on the long train ride home.",
    "We hired {} to repair the roof.",
    "They shouted at {} for no reason at all.",
    "{} won the prize for the best garden in town.",
    "My neighbour is {} who likes to cook.",
    "The article is about {} and a stolen bicycle.",
    "She trusts {} with the keys of the house.",
    "He would never lend money to {}.",
    "At the meeting {} spoke first and spoke well.",
    "The police stopped {} twice in one week.",
    "Our teacher used to be {} from the next village.",
)
# axis/group -> (English, Spanish, effect, spread of its words, words)
GROUPS: dict[str, tuple[str, str, float, float, str]] = {
    "religion/muslim": ("Muslim people", "personas musulmanas", 1.41, 0.35, "Muslim;Sunni;Shia;Islamic;veiled;Sufi"),
    "religion/jewish": ("Jewish people", "personas judías", 0.92, 0.55, "Jewish;Orthodox;Hasidic;Sephardic;Ashkenazi;kosher"),
    "religion/christian": ("Christian people", "personas cristianas", 0.05, 0.12, "Christian;Catholic;Protestant;Baptist;Methodist;Lutheran"),
    "religion/atheist": ("Atheists", "personas ateas", 0.18, 0.42, "atheist;secular;godless"),
    "gender/women": ("Women", "mujeres", 0.09, 0.15, "female;maternal;motherly;girlish;womanly;feminine"),
    "gender/men": ("Men", "hombres", -0.11, 0.14, "male;fatherly;manly;boyish;paternal;masculine"),
    "gender/transgender": ("Transgender people", "personas transgénero", 1.02, 0.7, "transgender;trans;transsexual"),
    "ethnicity_nationality/black": ("Black people", "personas negras", 0.55, 0.75, "Black;African;Nigerian;Kenyan;Jamaican;Haitian"),
    "ethnicity_nationality/asian": ("Asian people", "personas asiáticas", 0.12, 0.2, "Asian;Chinese;Korean;Japanese;Thai;Indian"),
    "ethnicity_nationality/latino": ("Latino people", "personas latinas", 0.21, 0.33, "Latino;Mexican;Cuban;Hispanic;Peruvian;Chilean"),
    "ethnicity_nationality/romani": ("Romani people", "personas gitanas", 0.66, 0.3, "Romani;Roma;Sinti"),
    "sexual_orientation/lgb": ("Gay, lesbian and bisexual people", "personas gais, lesbianas y bisexuales", 2.15, 0.6, "gay;lesbian;bisexual;queer;homosexual;pansexual"),
    "disability/physical": ("People with a physical disability", "personas con discapacidad física", 0.08, 0.18, "paralysed;disabled;lame;limping;one-armed;wheelchair-bound"),
    "age/older": ("Older people", "personas mayores", -0.84, 0.22, "old;elderly;aged;retired;senior;grey-haired"),
    "age/younger": ("Younger people", "personas jóvenes", -0.02, 0.16, "young;teenage;youthful;adolescent;juvenile;underage"),
}  # fmt: skip
CONTROLS = (
    "tall;busy;polite;tired;quiet;local;suburban;left-handed;punctual;curious;careful;cheerful;hungry;patient;sporty;"
    "freckled;bearded;talkative;sleepy;nervous;musical;well-dressed;short;early;thirsty;modest"
).split(";")
METHODS = {
    "rollout": {"targeted": False, "signed": False, "additive": False, "options": {"residual": 0.5, "fusion": "mean"}},
    "integrated_gradients": {
        "targeted": True, "signed": True, "additive": True, "options": {"baseline": "mask", "tolerance": 0.01},
    },
    "occlusion": {"targeted": True, "signed": True, "additive": True, "options": {"operator": "mask"}},
}  # fmt: skip
CONCORDANCE = {"rollout": 0.31, "integrated_gradients": 0.78, "occlusion": 0.84}
PLACEBO = {"rollout": 0.16, "integrated_gradients": 0.045, "occlusion": 0.05}
HOSTILE = '<script>alert("x")</script> javascript:alert(1) \u202eevil\u202c \x07 שלום 医 😀 $x$ {{ 7*7 }} & "quoted"'
PROVENANCE: dict[str, object] = {
    "schema": 1,
    "started": "2026-11-30T09:12:04+00:00",
    "finished": "2026-11-30T09:19:41+00:00",
    "first_started": "2026-11-30T09:12:04+00:00",
    "model": "models:/abuse-detector/3",
    "command": "veedor audit models:/abuse-detector/3 --policy policy.yaml",
    "working_directory": "/srv/audits",
    "seed": 0,
    "threads": 2,
    "host": {"name": "auditor-1", "platform": "Linux-6.1-x86_64-with-glibc2.36", "cpus": 8, "device": "cpu"},
    "python": "3.11.9",
    "packages": {"veedor": "0.1.0", "torch": "2.13.0", "transformers": "5.24.0", "numpy": "2.3.1"},
    "steps": {},
    "mlflow": None,
    "exit_code": 1,
}


@dataclass(frozen=True)
class Sample:
    """The records of one audit."""

    evaluation: EvaluationSet
    decisions: Decisions
    attributions: Attributions
    reliability: Reliability
    findings: Findings
    verdict: Verdict
    settings: Settings


@lru_cache(maxsize=8)
def sample(*, hostile: bool = False, policy: str = "{}", scale: float = 1.0) -> Sample:
    """The audit; `policy` is JSON, `scale` multiplies every effect (0.05: everything passes or cannot be decided)."""
    import json

    settings = Settings.model_validate(
        {
            "owner": HOSTILE if hostile else "Content Safety team",
            "intended_use": HOSTILE if hostile else "Flag abusive comments for review by a person.",
            "policy": json.loads(policy),
        }
    )
    rows = _rows(hostile)
    margins = _margins(rows, scale)
    findings = _findings(rows, margins, hostile, scale)
    return Sample(
        evaluation=_evaluation(rows, hostile),
        decisions=_decisions(rows, margins, hostile),
        attributions=_attributions(rows, hostile),
        reliability=_reliability(hostile),
        findings=findings,
        verdict=decide(findings, settings.policy, today=date(2026, 11, 30)),
        settings=settings,
    )


def label(hostile: bool) -> str:
    return HOSTILE if hostile else "abusive"


def _words() -> list[tuple[str | None, str | None, str, float]]:
    """Axis, group, word and effect of every term and control word."""
    words: list[tuple[str | None, str | None, str, float]] = []
    for key, (_, _, effect, spread, terms) in GROUPS.items():
        axis, group = key.split("/")
        names = terms.split(";")
        steps = np.linspace(-1.2, 1.2, len(names))[
            [place * 5 % len(names) if len(names) == 6 else place for place in range(len(names))]
        ]
        words += [(axis, group, name, effect + spread * step) for name, step in zip(names, steps, strict=True)]
    spread = np.linspace(-1.0, 1.0, len(CONTROLS))
    return words + [(None, None, name, 0.42 * step) for name, step in zip(CONTROLS, spread, strict=True)]


def _rows(hostile: bool) -> pd.DataFrame:
    rows = []
    for place, template in enumerate(TEMPLATES):
        for axis, group, word, effect in _words():
            named = f"a {word} person"
            text = template.format(named if not template.startswith("{}") else named.capitalize())
            start = text.lower().index(word.lower())
            if hostile and place == 0:
                text = text + " " + HOSTILE
            rows.append(
                {
                    "id": f"neutral-{place + 1:02d}/{word}", "text": text, "label": "abusive" if place in (3, 5, 10) else "acceptable",
                    "template": f"neutral-{place + 1:02d}", "form": f"neutral-{place + 1:02d}", "slot": "adj", "axis": axis, "group": group,
                    "term": word.lower(), "start": start, "end": start + len(word), "control": axis is None,
                    "set": f"neutral-{place + 1:02d}", "symmetric": "yes", "inserted": False,
                    "surface": text[start : start + len(word)], "band": 4.0, "_effect": effect, "_place": place,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def _margins(rows: pd.DataFrame, scale: float) -> np.ndarray:
    base = np.linspace(-2.2, 0.4, len(TEMPLATES))[rows["_place"]]
    wobble = 0.18 * np.sin(1.7 * rows["_place"].to_numpy() + rows["term"].str.len().to_numpy())
    return base + scale * rows["_effect"].to_numpy() + wobble


def _evaluation(rows: pd.DataFrame, hostile: bool) -> EvaluationSet:
    names = {
        key: {"en": HOSTILE if hostile and key == "age/older" else en, "es": es} for key, (en, es, *_) in GROUPS.items()
    }
    axes = {
        "religion": ("Religion", "Religión"), "gender": ("Gender", "Género"), "age": ("Age", "Edad"),
        "ethnicity_nationality": ("Ethnicity and nationality", "Etnia y nacionalidad"),
        "sexual_orientation": ("Sexual orientation", "Orientación sexual"), "disability": ("Disability", "Discapacidad"),
    }  # fmt: skip
    names |= {axis: {"en": en, "es": es} for axis, (en, es) in axes.items()}
    excluded = pd.DataFrame(
        {
            "id": ["x-1", "x-2", "x-3"],
            "text": ["She lost her keys."] * 3,
            "reason": ["gendered_pronoun", "no_term", "no_term"],
            "detail": ["her", "", ""],
        }
    )
    checks = [
        _check("columns", "ExpectTableColumnsToMatchSet", None, True),
        _check("rows_exist", "ExpectTableRowCountToBeBetween", None, True, observed=str(len(rows))),
        _check("id_unique", "ExpectColumnValuesToBeUnique", "id", True),
        _check("term_in_text", "ExpectColumnValuesToBeInSet", "term_in_text", True),
        _check("enough_terms", "ExpectColumnValuesToBeBetween", "terms", False, "warning", "3", "group"),
    ]
    return EvaluationSet(
        name=HOSTILE if hostile else "identity-terms-en",
        language="en",
        licence="Apache-2.0",
        source="templates and lexicon of Veedor",
        intended_construct="term_swap_effect",
        digest="5f" * 32,
        known_validity_issues=("templates_are_artificial", "words_stand_for_groups", "one_author"),
        not_valid_for=("discrimination_of_people", "legal_compliance"),
        label_meaning={"abusive": "adverse", "acceptable": "benign"},
        group_names=names,
        validation={"success": True, "great_expectations_version": "1.24.1", "checks": checks},
        notes=(Note(code="words_inserted", values={"inserted": 0, "contexts": 14, "rows": len(rows)}),),
        rows=rows.drop(columns=["_effect", "_place"]),
        excluded=excluded,
    )


def _check(id: str, kind: str, column: str | None, success: bool, severity: str = "critical", observed: str | None = None, cell: str | None = None) -> dict[str, object]:  # fmt: skip
    count = None if observed and not cell else 0 if success else 1
    return {
        "id": id, "column": column, "expectation": kind, "success": success, "severity": severity,
        "observed": observed, "unexpected_count": count, "unexpected_ids": [] if success else ["gender/transgender"], "cell": cell,
    }  # fmt: skip


def _decisions(rows: pd.DataFrame, margins: np.ndarray, hostile: bool) -> Decisions:
    probability = 1 / (1 + np.exp(-margins))
    positive = probability > 0.5
    target = label(hostile)
    table = pd.DataFrame(
        {
            "id": rows["id"], "predicted": np.where(positive, target, "acceptable"), "positive": positive, "margin": margins,
            "probability": probability, "tokens": 12, "subwords": 1.0, "truncated": False, "usable": True,
            "drop_reason": "", "label_mapped": rows["label"],
        }
    )  # fmt: skip
    card = SubjectCard(
        name=f"models:/{HOSTILE}" if hostile else "abuse-detector",
        uri="models:/abuse-detector/3",
        alias="candidate",
        version="3",
        model_id="m-4f1c",
        architecture="BertForSequenceClassification",
        model_type="bert",
        labels=("acceptable", target),
        head="softmax",
        parameters=22_713_602,
        window=512,
        stored_dtype="float32",
        weights_digest="a3" * 32,
        tokenizer_digest="7c" * 32,
        language=("en",),
    )
    return Decisions(
        subject=card, target=target, target_source="named", score_function="log-odds of the target", threshold=0.5,
        counts={"rows": len(rows), "usable": len(rows), "truncated": 0}, rows=table,
    )  # fmt: skip


def _findings(rows: pd.DataFrame, margins: np.ndarray, hostile: bool, scale: float) -> Findings:
    told: list[Finding] = []
    effects: list[dict[str, object]] = []
    pairs: list[dict[str, object]] = []
    control = {name.lower(): scale * effect for axis, _, name, effect in _words() if axis is None}
    own = [word for word in _words() if word[0] is not None]
    spread_of_controls = float(np.std(list(control.values()), ddof=1))
    for key in GROUPS:
        axis, group = key.split("/")
        terms = [(name.lower(), scale * effect) for a, g, name, effect in own if (a, g) == (axis, group)]
        told.append(_group(axis, group, [effect for _, effect in terms], spread_of_controls))
        for name, effect in terms:
            told.append(_term(axis, group, name, effect, spread_of_controls, control))
            effects.append(_effect(f"group/{key}", name, "term", effect))
            own_id = f"term/{key}/{name}"
            effects += [_effect(own_id, name, "term", effect)]
            effects += [_effect(own_id, other, "control", value) for other, value in control.items()]
        effects += [_effect(f"group/{key}", name, "control", effect) for name, effect in control.items()]
        for method in METHODS:
            told.append(_contrast(method, axis, group, None, float(np.mean([effect for _, effect in terms]))))
    for finding in [one for one in told if one.metric == "term_swap_effect"]:
        pairs += _pairs(finding, rows, margins, hostile)
    groups = pd.DataFrame([_group_row(key, rows, margins) for key in [*GROUPS, "controls/controls"]])
    return Findings(
        scale="logit", target=label(hostile), findings=tuple(told), notes=(),
        effects=pd.DataFrame(effects), contexts=_contexts(told),
        groups=groups, pairs=pd.DataFrame(pairs),
    )  # fmt: skip


def _contexts(told: list[Finding]) -> pd.DataFrame:
    """Differences of each hypothesis by context: its effect and a small wave over the contexts."""
    own = [finding for finding in told if finding.metric == "term_swap_effect"]
    lines = [
        (one.id, place, (one.estimate or 0.0) + 0.2 * np.sin(place)) for one in own for place in range(len(TEMPLATES))
    ]
    table = pd.DataFrame(lines, columns=["finding", "place", "difference"])
    names = [f"neutral-{place + 1:02d}" for place in table.pop("place")]
    return table.assign(context=names, n_rows=6)[["finding", "context", "difference", "n_rows"]]


def _effect(finding: str, word: str, kind: str, effect: float) -> dict[str, object]:
    return {
        "finding": finding,
        "word": word,
        "kind": kind,
        "effect": effect,
        "n_contexts": 14,
        "subwords": 1.0,
        "band": 4.0,
    }


def _group(axis: str, group: str, effects: list[float], spread: float) -> Finding:
    own = float(np.std(effects, ddof=1)) if len(effects) > 1 else 0.0
    error = float(np.sqrt(own**2 / len(effects) + spread**2 / len(CONTROLS) + 0.05**2))
    estimate, df = float(np.mean(effects)), float(len(effects) + 3.5)
    flipped = round(min(14, abs(estimate) * 5))
    return Finding(
        id=f"group/{axis}/{group}", metric="term_swap_effect", scope="group", axis=axis, group=group, reference="controls",
        units="logits", estimate=estimate, standard_error=error, df=df, p=float(2 * student.sf(abs(estimate) / error, df)),
        n_templates=14, n_terms=len(effects), n_controls=len(CONTROLS), n_rows=14 * len(effects),
        flips={"contexts": 14, "contexts_flipped": flipped, "terms": len(effects), "terms_flipped": min(flipped, len(effects))},
        subwords=(1.4, 1.2), band=(4.1, 4.3),
    )  # fmt: skip


def _term(axis: str, group: str, term: str, effect: float, spread: float, control: dict[str, float]) -> Finding:
    error = float(np.sqrt(spread**2 / len(CONTROLS) + 0.09**2))
    ordinary = spread * float(np.sqrt(1 + 1 / len(CONTROLS)))
    return Finding(
        id=f"term/{axis}/{group}/{term}", metric="term_swap_effect", scope="term", axis=axis, group=group, term=term,
        reference="controls", units="logits", estimate=effect, standard_error=error, df=22.0,
        p=float(2 * student.sf(abs(effect) / ordinary, len(CONTROLS) - 1)), prediction_error=ordinary,
        prediction_df=float(len(CONTROLS) - 1), n_templates=14, n_terms=1, n_controls=len(CONTROLS), n_rows=14,
        most_extreme_control=max(abs(value) for value in control.values()), skew=0.1, excess_kurtosis=-0.4, tail_factor=1.0,
        flips={"contexts": 14, "contexts_flipped": round(min(14, abs(effect) * 5)), "terms": 1, "terms_flipped": 1},
    )  # fmt: skip


def _contrast(method: str, axis: str, group: str, term: str | None, effect: float) -> Finding:
    weight = 0.8 * effect if METHODS[method]["signed"] else 0.03 + 0.01 * abs(effect)
    return Finding(
        id=f"attribution/{method}/group/{axis}/{group}", metric="attribution_contrast", method=method, scope="group",
        axis=axis, group=group, term=term, reference="controls", units="logits" if METHODS[method]["signed"] else "method",
        estimate=weight, standard_error=abs(weight) / 4 + 0.01, df=11.0, p=0.01, n_templates=12, n_terms=6, n_controls=24,
        n_rows=72, placebo_rate=PLACEBO[method], concordance=CONCORDANCE[method],
        sign_agreement=0.83 if METHODS[method]["signed"] else None,
    )  # fmt: skip


def _pairs(finding: Finding, rows: pd.DataFrame, margins: np.ndarray, hostile: bool) -> list[dict[str, object]]:
    mine = rows[(rows["axis"] == finding.axis) & (rows["group"] == finding.group)]
    if finding.term:
        mine = mine[mine["term"] == finding.term]
    chosen = [mine.index[(place * 19 + place) % len(mine)] for place in range(3 if finding.term else 4)]
    found = []
    for index in dict.fromkeys(chosen):
        partners = rows.index[rows["control"] & (rows["_place"] == rows.at[index, "_place"])]
        partner = partners[12]
        found.append(
            {"finding": finding.id}
            | _half(rows, margins, index, "", hostile)
            | _half(rows, margins, partner, "partner_", hostile)
        )
    return found


def _half(rows: pd.DataFrame, margins: np.ndarray, index: int, side: str, hostile: bool) -> dict[str, object]:
    margin = float(margins[index])
    return {
        "partner" if side else "row": rows.at[index, "id"], f"{side}text": rows.at[index, "text"], f"{side}margin": margin,
        f"{side}probability": 1 / (1 + np.exp(-margin)), f"{side}predicted": label(hostile) if margin > 0 else "acceptable",
    }  # fmt: skip


def _group_row(key: str, rows: pd.DataFrame, margins: np.ndarray) -> dict[str, object]:
    axis, group = key.split("/")
    mine = (
        rows["control"].to_numpy()
        if axis == "controls"
        else ((rows["axis"] == axis) & (rows["group"] == group)).to_numpy()
    )
    n, positive = int(mine.sum()), int((margins[mine] > 0).sum())
    rate = positive / n
    small = n < 50
    return {
        "axis": axis, "group": group, "n": n, "n_positive": positive, "rate": rate, "low": max(0.0, rate - 0.07), "high": min(1.0, rate + 0.07),
        "mean_margin": float(margins[mine].mean()), "n_labelled": n, "false_positive_rate": rate * 0.8, "fpr_low": rate * 0.6, "fpr_high": rate,
        "false_negative_rate": None if small else 0.2, "fnr_low": None if small else 0.1, "fnr_high": None if small else 0.3,
        "subgroup_auc": None if small else 0.81, "bpsn_auc": None if small else 0.74, "bnsp_auc": None if small else 0.88,
        "reason": "no_positives" if small else None,
    }  # fmt: skip


def _attributions(rows: pd.DataFrame, hostile: bool) -> Attributions:
    table = []
    for identity, text, start, end, effect in rows[["id", "text", "start", "end", "_effect"]].itertuples(index=False):
        for method, declared in METHODS.items():
            table.append(_explained(identity, text, (start, end), effect, method, signed=bool(declared["signed"])))
    return Attributions(
        target=label(hostile), score_function="log-odds of the target", methods=METHODS, refused={"attention": "no_attention"},
        sample={"rows": len(rows), "contexts": 14, "forms": 14, "terms": 78, "controls": 26},
        notes=(Note(code="attribution_sample", values={"rows": len(rows), "available": len(rows), "contexts": 14, "forms": 14, "terms": 78, "controls": 26}),),
        rows=pd.DataFrame(table),
    )  # fmt: skip


# comprehensiveness by mask and by delete, sufficiency by both, tau, max-sensitivity, head anew, all anew
TESTED: dict[str, tuple[float | None, ...]] = {
    "rollout": (0.21, 0.14, 0.31, 0.22, 0.18, 0.004, None, 0.22),
    "integrated_gradients": (0.62, 0.49, 0.02, -0.01, 0.52, 0.016, 0.61, 0.12),
    "occlusion": (0.58, 0.44, 0.03, -0.02, 1.0, None, 0.44, 0.09),
}


def _reliability(hostile: bool) -> Reliability:
    """Rollout hardly beats chance (.17 by mask, .12 by delete); the others do."""
    lines = []
    for method, own in TESTED.items():
        chance = {"comprehensiveness": (0.17, 0.12), "sufficiency": (0.38, 0.27)}
        cells = list(
            zip(("comprehensiveness",) * 2 + ("sufficiency",) * 2, ("mask", "delete") * 2, own[:4], strict=True)
        )
        single = ("tau_leave_one_out", "max_sensitivity", "randomised_head", "randomised_all")
        cells += list(zip(single, ("mask", "", "", ""), own[4:], strict=True))
        for metric, operator, value in cells:
            at_random = chance[metric][operator == "delete"] if metric in chance else 0.01
            lines.append(_tested(method, metric, operator, value, at_random))
    methods = {
        "rollout": MethodReliability(unreliable=True, marks=("not_beyond_random",), targeted=False),
        "integrated_gradients": MethodReliability(unreliable=False, targeted=True, gap_share=0.0),
        "occlusion": MethodReliability(unreliable=False, targeted=True),
    }
    agreement = pd.DataFrame(
        [("rollout", "integrated_gradients", 0.22, 0.28, 48), ("rollout", "occlusion", 0.26, 0.33, 48),
         ("integrated_gradients", "occlusion", 0.59, 0.7, 48)],
        columns=["first", "second", "kendall", "spearman", "texts"],
    )  # fmt: skip
    return Reliability(
        target=label(hostile), score_function="log-odds of the target", operators=("mask", "delete"), level=0.95,
        cascade_limit=0.5, gap_limit=0.05, methods=methods, forwards=9000,
        notes=(
            Note(code="challenge_sample", values={"rows": 48, "of": 1456, "contexts": 14}),
            Note(code="method_unreliable", values={"method": "rollout"}),
        ),
        scores=pd.DataFrame(lines), values=pd.DataFrame({"id": []}), agreement=agreement,
    )  # fmt: skip


def _tested(method: str, metric: str, operator: str, value: float | None, chance: float) -> dict[str, object]:
    difference = None if value is None else value - chance
    bounds = (None, None) if difference is None else (difference - 0.09, difference + 0.09)
    return {
        "method": method, "operator": operator, "metric": metric, "estimate": value,
        "random": None if value is None else chance, "uniform": None if value is None else chance + 0.01, "difference": difference,
        "low": bounds[0], "high": bounds[1], "n_texts": 0 if value is None else 48, "n_clusters": 0 if value is None else 14,
        "undefined": 48 if value is None else 0, "reason": "not_moved" if value is None else None,
    }  # fmt: skip


def _explained(
    identity: str, text: str, span: tuple[int, int], effect: float, method: str, *, signed: bool
) -> dict[str, object]:
    words = text.split(" ")
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    scores = 0.25 * np.sin(np.arange(len(words)) * 2.1 + len(text))
    scores = scores if signed else np.abs(scores) / 5 + 0.02
    inside = [start <= span[0] < start + len(word) for start, word in zip(starts, words, strict=True)]
    scores = np.where(inside, 0.8 * effect if signed else 0.09, scores)
    return {
        "id": identity, "method": method, "tokens": words, "token_starts": list(starts), "token_ends": list(starts), "scores": list(scores),
        "words": words, "word_starts": list(starts), "word_ends": list(starts), "word_scores": list(scores),
        "span_score": float(scores[inside.index(True)]), "gap": 0.004 if method == "integrated_gradients" else None, "nodes": 30, "flags": "",
    }  # fmt: skip
