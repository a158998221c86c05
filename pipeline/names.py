"""What an audit is called in MLflow: stable names for metrics, parameters and tags.

MLflow takes letters, digits, underscores, dashes, dots, spaces, colons and slashes, 250 characters at most. The name of
a hypothesis is made of its own id and nothing else, so that it stays the same from audit to audit; where two ids of one
audit would get the same name, both carry a piece of their SHA-256.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from veedor.records import Finding, Findings, Reliability, Verdict
from veedor.settings import Settings

LONGEST = 250
LONGEST_PARAMETER = 6000
TAIL = 9  # a dash and eight hexadecimal digits
UNSAFE = re.compile(r"[^\w-]+")


def slug(part: str) -> str:
    """One part of a name: letters (accents too), digits, underscores, dashes.

    >>> slug("who prays at a mosque"), slug("mudo/a (100 %)"), slug("árabe")
    ('who_prays_at_a_mosque', 'mudo_a_100', 'árabe')
    """
    return UNSAFE.sub("_", part).strip("_") or "_"


def metric_name(prefix: str, identifier: str) -> str:
    """The name of a hypothesis, before collisions are looked for.

    >>> metric_name("veedor.effect", "group/religion/muslim")
    'veedor.effect.group.religion.muslim'
    """
    return ".".join([prefix, *(slug(part) for part in identifier.split("/"))])


def metric_names(prefix: str, identifiers: Iterable[str]) -> dict[str, str]:
    """A name for each id, all different (also to a store that ignores case), none too long.

    >>> sorted(len(name) for name in metric_names("m", ["term/a/b/c d", "term/a/b/c_d"]).values())
    [23, 23]
    """
    plain = {identifier: metric_name(prefix, identifier) for identifier in identifiers}
    taken = Counter(name.casefold() for name in plain.values())
    return {
        identifier: name
        if taken[name.casefold()] == 1 and len(name) <= LONGEST
        else f"{name[: LONGEST - TAIL]}-{hashlib.sha256(identifier.encode()).hexdigest()[: TAIL - 1]}"
        for identifier, name in plain.items()
    }


def metrics(findings: Findings, verdict: Verdict) -> dict[str, float]:
    """Every finite number that a registry can show: effects, adjusted p, attribution contrasts of groups, counts."""
    swaps = [finding for finding in findings.findings if finding.metric == "term_swap_effect"]
    looked_inside = [f for f in findings.findings if f.metric == "attribution_contrast" and f.scope == "group"]
    rulings = {ruling.id: ruling.adjusted_p for ruling in verdict.rulings}
    counts = Counter(ruling.verdict for ruling in verdict.rulings if ruling.primary)
    found = named("veedor.effect", estimates(swaps)) | named("veedor.contrast", estimates(looked_inside))
    found |= named("veedor.adjusted_p", rulings)
    for name in ("PASS", "FAIL", "INCONCLUSIVE", "NOT_TESTED"):
        found[f"veedor.count.{name.lower()}"] = float(counts[name])
    return found


def challenge_metrics(reliability: Reliability) -> dict[str, float]:
    """Of each method: every mean, how far it lies from chance, and whether the method is marked (1) or not (0).

    Such as veedor.challenge.rollout.comprehensiveness.mask and veedor.challenge_beyond_random.rollout.….
    """
    rows = reliability.scores.to_dict("records")
    ids = ["/".join(str(row[key]) for key in ("method", "metric", "operator") if row[key]) for row in rows]
    found: dict[str, float] = {}
    for prefix, column in (("veedor.challenge", "estimate"), ("veedor.challenge_beyond_random", "difference")):
        found |= named(prefix, {key: row[column] for key, row in zip(ids, rows, strict=True)})
    marks = {name: None if of.unreliable is None else float(of.unreliable) for name, of in reliability.methods.items()}
    return found | named("veedor.unreliable", marks)


def estimates(findings: Iterable[Finding]) -> dict[str, float | None]:
    """The estimate of each finding by its id."""
    return {finding.id: finding.estimate for finding in findings}


def named(prefix: str, values: Mapping[str, float | None]) -> dict[str, float]:
    """Finite values under their metric names; MLflow would store infinity as 1.8e308, and NaN breaks its pages."""
    finite = {key: float(value) for key, value in values.items() if value is not None and math.isfinite(value)}
    names = metric_names(prefix, values)  # over all ids, so that a name does not depend on who else is finite
    return {names[key]: value for key, value in finite.items()}


def parameters(settings: Settings) -> dict[str, str]:
    """Settings and policy, one flat parameter each.

    >>> parameters(Settings(seed=3))["settings.seed"], parameters(Settings())["policy.margin"]
    ('3', '0.693')
    """
    content = settings.model_dump(mode="json")
    policy = content.pop("policy")
    flat = {f"settings.{key}": value for key, value in content.items()}
    flat |= {f"policy.{key}": value for key, value in policy.items()}
    return {key: text(value)[:LONGEST_PARAMETER] for key, value in flat.items()}


def text(value: object) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
