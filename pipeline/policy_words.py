"""A policy read back in words, line by line, so that a team can agree on what it wrote."""

import math
from collections.abc import Iterator
from pathlib import Path

from veedor.settings import Policy

DEFAULT = Path(__file__).with_name("policy.default.yaml")
DIRECTIONS = {
    "both": "a term may neither raise nor lower the target's score by more than the margin",
    "higher": "only a raised score harms; tests look in that direction only",
    "lower": "only a lowered score harms; tests look in that direction only",
}
SCALES = {
    "logit": "effects are differences of the target's log-odds",
    "probability": "effects are differences of the target's probability",
}
SCOPES = {"group": "terms of a group in general", "term": "single words"}
FAILS = {
    "estimated": "a hypothesis fails when its effect is shown and the estimate lies beyond the margin",
    "demonstrated": "a hypothesis fails only when the whole effect is shown to lie beyond the margin",
}
UNDECIDED = {
    "block": "an undecided primary hypothesis stops the release (exit code 3)",
    "pass": "an undecided primary hypothesis does not stop the release (exit code 0, and the report says so)",
}


def in_words(policy: Policy) -> Iterator[tuple[str, str]]:
    """Each key with what it means here."""
    yield "version", "the format of this file"
    yield "target", f"judged on the label {policy.target!r}" if policy.target else "label 1 of a two-label model"
    yield "adverse", DIRECTIONS[policy.adverse]
    yield "scale", SCALES[policy.scale]
    yield "margin", margin_in_words(policy)
    yield "alpha", alpha_in_words(policy)
    yield "scopes", "judged: " + " and ".join(SCOPES[scope] for scope in policy.scopes)
    groups = "every group" if policy.groups == "all" else ", ".join(policy.groups) + "; the others are shown only"
    yield "groups", f"gating: {groups}"
    least = policy.minimum
    needs = f"{least.terms} terms, {least.controls} control words and {least.templates} contexts"
    yield "minimum", f"a group is judged as a group from {needs} on; with less, word by word"
    yield "fail_when", FAILS[policy.fail_when]
    yield "inconclusive", UNDECIDED[policy.inconclusive]
    yield "concordance", f"attribution that correlates below {policy.concordance:g} with the effect is marked"
    for waiver in policy.waivers:
        yield (
            "waivers",
            f"{waiver.hypothesis} may fail until {waiver.expires}: {waiver.owner} answers ({waiver.reason})",
        )
    if not policy.waivers:
        yield "waivers", "none: nothing may fail"
    joins = ", ".join(f"{theirs!r} in the set is {ours!r}" for theirs, ours in policy.label_map.items())
    yield "label_map", joins or "labels of the set are the model's, or there are none; only error rates need them"


def alpha_in_words(policy: Policy) -> str:
    """The error rate, and what each scope gets of it."""
    share = f"; {100 * policy.alpha / 2:g} % for each scope" if len(policy.scopes) == 2 else ""
    return f"at most {100 * policy.alpha:g} % chance of any FAIL where there is nothing to find{share}"


def margin_in_words(policy: Policy) -> str:
    """What the margin means, in odds and in percentage points where the probability was .5 and .1.

    >>> margin_in_words(Policy()).split(": ")[0]
    'the odds may change by a factor of 2.00 at most'
    >>> margin_in_words(Policy()).split(": ")[1]
    'from 50 % up to 66.7 % or down to 33.3 %, from 10 % up to 18.2 % or down to 5.3 %'
    """
    if policy.scale == "probability":
        return f"the probability may not change by {100 * policy.margin:g} percentage points, wherever it was"
    ends = ", ".join(
        f"from {100 * start:g} % up to {shifted(start, policy.margin)} or down to {shifted(start, -policy.margin)}"
        for start in (0.5, 0.1)
    )
    return f"the odds may change by a factor of {math.exp(policy.margin):.2f} at most: {ends}"


def shifted(probability: float, logits: float) -> str:
    """A probability after its log-odds moved.

    >>> shifted(0.5, 0.693)
    '66.7 %'
    """
    odds = probability / (1 - probability) * math.exp(logits)
    return f"{100 * odds / (1 + odds):.1f} %"
