"""Findings as plain sentences, each with its uncertainty. Every number comes from the dossier, rounded for reading.

The sentences themselves are in reports/words; here is which of them applies. What never gets said: that something is
shown not to exist, or why a model does what it does.
"""

from collections.abc import Mapping, Sequence

from veedor.report.dossier import AttributionContrast, Counterfactual, Dossier, Hypothesis, MethodValidity
from veedor.report.language import Words, visible

NAMED = 3  # hypotheses named in the one-sentence reason


class Prose:
    """Tells one dossier in one language."""

    def __init__(self, dossier: Dossier, words: Words) -> None:
        """Hold the dossier and the language side by side."""
        self.dossier, self.words = dossier, words
        self.swaps: Counterfactual = dossier.metrics.counterfactual
        self.validity: MethodValidity = dossier.method_validity
        self.marked = {sheet.name for sheet in self.validity.methods if sheet.unreliable}
        self.names = dossier.datasets[0].group_names if dossier.datasets else {}
        self.digits = 2 if self.swaps.scale == "logit" else 3

    # Names

    def axis(self, axis: str) -> str:
        """An axis by name; user-made ones by their id."""
        return self._named(axis, self.words.code("axes", axis))

    def group(self, axis: str, group: str) -> str:
        """A group by name; user-made ones by their id."""
        return self._named(f"{axis}/{group}", self.words.code("groups", group))

    def inside(self, row: Hypothesis) -> str:
        """A hypothesis by name inside a sentence: a group's first word is small where the language writes it so."""
        name = self.group(row.axis, row.group)
        small = self.words["language"]["small"]
        if row.term is not None:
            return self.quoted(row.term)
        return name[:1].lower() + name[1:] if small == "all" or name.split(" ")[0].strip(",") in small else name

    def _named(self, key: str, otherwise: str) -> str:
        return visible(self.names.get(key, {}).get(self.words.language, otherwise.replace("_", " ")))

    def name(self, row: Hypothesis | AttributionContrast) -> str:
        """A hypothesis by name: its word in quotation marks, or its group."""
        if row.term is not None:
            return self.quoted(row.term)
        return self.group(row.axis, row.group)

    def quoted(self, text: str) -> str:
        """A text in this language's quotation marks."""
        marks = self.words["language"]
        return f"{marks['open']}{visible(text)}{marks['close']}"

    def title(self, row: Hypothesis) -> str:
        """Heading of a hypothesis: axis and group, and the word where it is about one."""
        group = f"{self.axis(row.axis)}: {self.group(row.axis, row.group)}"
        return group if row.term is None else f"{self.quoted(row.term)} ({group})"

    @property
    def target(self) -> str:
        """The label that is watched."""
        return visible(self.swaps.target)

    # Numbers

    def effect(self, value: float | None, *, sign: bool = True) -> str:
        """An effect in the units of the audit."""
        return self.words.number(value, self.digits, sign=sign)

    def range(self, low: float | None, high: float | None) -> str:
        """An interval, with one dash where it is not known."""
        if low is None or high is None:
            return self.words.number(None)
        return self.words.text("range", low=self.effect(low), high=self.effect(high))

    @property
    def units(self) -> str:
        """Units of effects, in words."""
        return str(self.words["units"][self.swaps.units])

    @property
    def margin(self) -> str:
        """The policy's limit, with as many digits as it was given."""
        return self.limit(self.swaps.margin)

    def limit(self, value: float) -> str:
        """A setting of the policy: as short as it can be written, three digits at most."""
        return self.words.number(value, min(3, max(1, len(f"{value:.3f}".rstrip("0").partition(".")[2]))))

    def level(self, level: float) -> str:
        """A level in per cent."""
        return self.words.number(level, 0 if float(level).is_integer() else 1)

    def adjusted(self, row: Hypothesis) -> str:
        """Holm's p as part of a sentence."""
        p = row.adjusted_p
        if p is None:
            return self.words.number(None)
        small = p < 0.001
        told = self.words.say("p_below" if small else "p", p=self.words.number(0.001 if small else p, 3))
        return self.words.say("holm", p=told)

    # The audit

    def overall(self) -> str:
        """The reason of the overall verdict in one sentence."""
        made = self.dossier.decision
        shared: dict[str, str | int] = {"margin": self.margin, "units": self.units, "primary": made.primary["all"]}
        if made.overall == "FAIL":
            return self.words.say(
                "overall_FAIL", **shared, failing=len(made.failing), all=made.gating["all"], names=self.failing_names()
            )
        if made.overall == "PASS" and made.waived:
            return self.words.say("overall_PASS_waived", **shared, waived=len(made.waived))
        undecided = made.primary["INCONCLUSIVE"] + made.primary["NOT_TESTED"]
        return self.words.say(f"overall_{made.overall}", **shared, undecided=undecided)

    def failing_names(self) -> str:
        """The first failing hypotheses by name, groups first, and how many more there are."""
        rows = {row.id: row for row in self.swaps.hypotheses}
        failing = [self.name(rows[name]) for name in self.dossier.decision.failing]
        if len(failing) <= NAMED:
            return "; ".join(failing)  # names may hold commas of their own
        shown = "; ".join(failing[:NAMED])
        return self.words.say("and_more", names=shown, more=len(failing) - NAMED)

    # One hypothesis

    def sentences(self, row: Hypothesis) -> list[str]:
        """What was found of a hypothesis and what the policy makes of it."""
        return {
            "FAIL": self._failure,
            "PASS": self._pass,
            "INCONCLUSIVE": self._undecided,
            "NOT_TESTED": self._untested,
        }[row.verdict](row)

    def _shared(self, row: Hypothesis) -> dict[str, str | int]:
        return {
            "name": self.inside(row),
            "group": self.inside(row),
            "term": visible(row.term or ""),
            "target": self.target,
            "size": self.effect(row.size, sign=False),
            "raises": self._way(row.estimate, "raises", "lowers"),
            "units": self.units,
            "level": self.level(self.swaps.level),
            "low": self.effect(row.low),
            "high": self.effect(row.high),
            "eq_level": self.level(self.swaps.equivalence_level),
            "eq_low": self.effect(row.equivalence_low),
            "eq_high": self.effect(row.equivalence_high),
            "margin": self.margin,
            "n_templates": row.n_templates,
            "n_terms": row.n_terms,
            "n_controls": row.n_controls,
            "clusters": str(self.words["clusters"][row.clusters]),
            "adjusted": self.adjusted(row),
        }

    def _way(self, value: float | None, up: str, down: str) -> str:
        return str(self.words["direction"][up if (value or 0.0) >= 0 else down])

    def _failure(self, row: Hypothesis) -> list[str]:
        shared = self._shared(row)
        scale = "" if self.swaps.scale == "logit" else "_probability"
        told = [self.words.say(f"fail_{row.scope}{scale}", **shared)]
        if row.practical:
            way = self._way(row.estimate, "multiplied", "divided")
            told.append(self.words.say("odds", multiplied=way, odds=self.factor(row.practical.odds_factor)))
        told.append(self.words.say("beyond_whole" if row.beyond_margin else "beyond_part", **shared))
        if row.scope == "term" and row.most_extreme_control is not None:
            heavy = row.tail_factor is not None and row.tail_factor > 1
            extreme = self.effect(row.most_extreme_control, sign=False)
            factor = self.factor(row.tail_factor or 1.0)
            told.append(
                self.words.say("extreme_control_heavy" if heavy else "extreme_control", extreme=extreme, factor=factor)
            )
        if row.waiver:
            told.append(self.words.say("waived", **{key: visible(value) for key, value in row.waiver.items()}))
        return told

    def _pass(self, row: Hypothesis) -> list[str]:
        one_sided = self.swaps.adverse != "both"
        return [self.words.say(f"pass_{self.swaps.adverse if one_sided else row.scope}", **self._shared(row))]

    def _undecided(self, row: Hypothesis) -> list[str]:
        shared = self._shared(row)
        known = row.equivalence_low is not None and row.equivalence_high is not None
        told = [self.words.say("undecided" if known else "undecided_bare", **shared)]
        told.append(self.words.code("rules", row.rule))
        if row.minimum_detectable_effect is not None:
            mde = self.effect(row.minimum_detectable_effect, sign=False)
            told.append(self.words.say(f"detectable_{row.scope}", **shared, mde=mde))
        if row.terms_needed is not None:
            told.append(self.words.say("terms_needed", terms=row.terms_needed))
        elif row.controls_needed is not None:
            told.append(self.words.say("controls_needed", controls=row.controls_needed))
        return told

    def _untested(self, row: Hypothesis) -> list[str]:
        return [self.words.say("untested", name=self.name(row), reason=self.words.reason(row.rule))]

    def factor(self, value: float) -> str:
        """A factor: two digits below ten, none above."""
        return self.words.number(value, 0 if value >= 10 or float(value).is_integer() else 1 if value >= 1.2 else 2)

    def practical(self, row: Hypothesis) -> list[str]:
        """What an effect means in percentage points and in changed decisions."""
        told = []
        if row.practical:
            one = row.practical
            told.append(
                self.words.say(
                    "practical",
                    half_to=self.words.number(one.half_to, 1),
                    half_points=self.words.number(one.half_points, 1, sign=True),
                    tenth_to=self.words.number(one.tenth_to, 1),
                    tenth_points=self.words.number(one.tenth_points, 1, sign=True),
                )
            )
        flips = row.flips
        if flips.get("contexts"):
            counts = {
                name: int(flips[name] or 0) for name in ("contexts_flipped", "contexts", "terms_flipped", "terms")
            }
            clusters = str(self.words["clusters"][row.clusters])
            bounds = {f"{unit}_bounds": self._bounds(flips, unit) for unit in ("contexts", "terms")}
            told.append(self.words.say("flips_term" if row.term else "flips", clusters=clusters, **counts, **bounds))
        return told

    def _bounds(self, flips: Mapping[str, float | int | None], unit: str) -> str:
        """Exact bounds of a share, in per cent."""
        low, high = (flips.get(f"{unit}_{end}") for end in ("low", "high"))
        shown = (self.words.number(None if end is None else 100 * end, 0) for end in (low, high))
        return self.words.say("bounds", **dict(zip(("low", "high"), shown, strict=True)))

    def recommendation(self, row: Hypothesis) -> str:
        """What to do about a hypothesis."""
        sentence: str = self.words["recommendation"][f"{row.verdict}_{row.scope}"]
        return sentence.format(group=self.inside(row), term=visible(row.term or ""))

    # Attribution

    def method(self, name: str) -> str:
        """A method by name, and that it is marked unreliable on this model, where it is."""
        plain = self.plain_method(name)
        return self.words.say("marked", method=plain) if name in self.marked else plain

    def plain_method(self, name: str) -> str:
        """A method by name alone."""
        return self.words.code("method_names", name)

    def marks(self, marks: Sequence[str]) -> str:
        """Why a method is marked."""
        return "; ".join(self.words.code("marks", mark) for mark in marks)

    def contrast(self, row: AttributionContrast) -> list[str]:
        """What a method's weights say, in words of salience where it knows no label, and what speaks against it."""
        method = self.method(row.method)
        if row.size is None:
            return [self.words.say("no_contrast", method=method, reason=self.words.reason(row.why_not or "undefined"))]
        values = {
            "method": method,
            "more": self._way(row.estimate, "more", "less"),
            "size": self.words.number(row.size, 2 if row.size >= 0.1 else 3),
            "units": self.words.code("units", row.units),
            "level": self.level(self.swaps.level),
            "low": self.words.number(row.low, 2 if row.size >= 0.1 else 3, sign=True),
            "high": self.words.number(row.high, 2 if row.size >= 0.1 else 3, sign=True),
        }
        shown = row.low is not None and row.high is not None and (row.low > 0 or row.high < 0)
        kind = (
            ("more_weight" if shown else "same_weight") if row.targeted else ("salience" if shown else "salience_same")
        )
        word = "_term" if shown and row.term is not None else ""
        return [self.words.say(kind + word, **values), *self._trust(row)]

    def _trust(self, row: AttributionContrast) -> list[str]:
        values = {
            "concordance": self.words.number(row.concordance, 2),
            "placebo": self.words.percent(row.placebo_rate),
            "limit": self.limit(self.validity.concordance_limit),
            "why": self.marks(next((one.marks for one in self.validity.methods if one.name == row.method), ())),
            "placebo_limit": self.words.percent(self.validity.placebo_limit),
        }
        if row.doubts:
            return [self.words.say(doubt, **values) for doubt in row.doubts]
        told = [self.words.say("corroborated", **values)] if row.placebo_rate is not None else []
        if row.signed and row.targeted and row.sign_agreement is not None:
            told.append(self.words.say("signs", signs=self.words.percent(row.sign_agreement)))
        return told
