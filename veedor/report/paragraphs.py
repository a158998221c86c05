"""The report's other texts that hold numbers: scope, tables' leads, data sheet, provenance. Findings are in `prose`.

Numbers come from the dossier; times, versions and commands from provenance.json, which is not evidence.
"""

from collections.abc import Mapping
from typing import Any

from veedor.report.dossier import Absent, AttributionContrast, Hypothesis
from veedor.report.language import visible
from veedor.report.prose import Prose
from veedor.report.trust import Trust, trust_of


class Paragraphs(Prose):
    """Everything that a page says, in one language."""

    @property
    def model(self) -> str:
        """The model as a reader knows it: its pinned URI and the alias it was found by; of a path, the end."""
        card = self.dossier.subject.card
        if card.uri is None and "/" in card.name:
            return visible(card.name.rstrip("/").rpartition("/")[2])
        known_as = f" (@{card.alias})" if card.alias else ""
        return visible(f"{card.uri or card.name}{known_as}")

    def date(self, provenance: Mapping[str, Any]) -> str:
        """The day of the audit, UTC; an en dash where it is not known."""
        told = str(provenance.get("finished") or provenance.get("started") or "")
        return visible(told[:10]) or self.words.number(None)

    def scope_text(self) -> str:
        """What was examined, with its sizes."""
        sheet = self.dossier.datasets[0]
        sizes = {name: sheet.counts[name] for name in ("rows", "groups", "terms", "controls", "contexts")}
        return self.words.text("in_scope_text", target=self.target, language=sheet.language, **sizes)

    def limit_text(self) -> str:
        """The limit fixed beforehand and what it means."""
        told = self.words.text(
            "limit_text",
            margin=self.margin,
            units=self.units,
            adverse=self.words.code("adverse", self.swaps.adverse),
            alpha=self.limit(self.dossier.decision.alpha),
        )
        if self.swaps.margin_factor is None:
            return told
        return f"{told} {self.words.text('margin_factor_text', factor=self.factor(self.swaps.margin_factor))}"

    def table_lead(self) -> str:
        """What the table of groups holds."""
        return self.words.text("table_lead", target=self.target)

    @property
    def labelled(self) -> bool:
        """Whether any text carries a label that the model knows."""
        return any(row.n_labelled for row in self.dossier.metrics.group)

    def too_few(self, row: Hypothesis) -> str:
        """Why a group is not judged as one."""
        if row.rule == "too_few_terms":
            return self.words.text("too_few", minimum=self.dossier.policy.content["minimum"]["terms"])
        return self.words.reason(row.rule)

    def rules_lead(self) -> str:
        """The levels behind the table of rules."""
        made = self.dossier.decision
        return self.words.text(
            "rules_lead",
            margin=self.margin,
            alpha_scope=self.limit(made.alpha_per_scope),
            alpha=self.limit(made.alpha),
            family_group=made.family.get("group", 0),
            family_term=made.family.get("term", 0),
        )

    def attribution_lead(self) -> str:
        """How many texts the methods explained, and what their figures mean."""
        sample, limit = self.validity.sample, self.words.percent(self.validity.placebo_limit)
        counts = {name: sample.get(name, 0) for name in ("rows", "contexts")}
        return self.words.text("attribution_lead", limit=limit, **counts)

    def trust(self) -> Trust | None:
        """How far the methods can be trusted on this model; None where that was not tested."""
        return trust_of(self)

    def options(self, options: Mapping[str, Any]) -> str:
        """A method's options, as set."""
        return ", ".join(f"{name} = {self._option(value)}" for name, value in options.items())

    def _option(self, value: object) -> str:
        return self.limit(value) if isinstance(value, float) else visible(str(value))

    def reproduce_text(self) -> str:
        """Seed and sizes that fix the numbers."""
        settings = self.dossier.provenance.settings
        return self.words.text("reproduce_text", **{name: settings[name] for name in ("seed", "batch_size", "threads")})

    def sizes_text(self) -> str:
        """The sizes of the evaluation set."""
        counts = self.dossier.datasets[0].counts
        names = ("rows", "rows_with_terms", "rows_with_controls", "contexts", "terms", "controls")
        return self.words.text("sizes_text", **{name: counts[name] for name in names})

    def checks_lead(self) -> str:
        """How many checks hold."""
        checks = self.dossier.dataset_checks
        passed = sum(check.success for check in checks.checks)
        version = visible(checks.great_expectations_version or "–")
        return self.words.text("checks_lead", passed=passed, all=len(checks.checks), version=version)

    def untested(self) -> dict[str, list[str]]:
        """Hypotheses without a verdict, by reason."""
        found: dict[str, list[str]] = {}
        for row in self.swaps.hypotheses:
            if row.verdict == "NOT_TESTED":
                found.setdefault(self.words.reason(row.rule), []).append(self.name(row))
        return found

    def absent(self) -> list[tuple[str, Absent]]:
        """Evidence that this audit does not hold."""
        dossier = self.dossier
        parts = {
            "intersectional": dossier.metrics.intersectional,
            "faithfulness": dossier.method_validity.faithfulness,
            "ll144": dossier.ll144,
            "comparison": dossier.comparison,
            "schedule": dossier.schedule,
        }
        return [(self.words.code("absent", name), part) for name, part in parts.items() if isinstance(part, Absent)]

    def provenance(self, provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
        """When, where and with what; only what provenance.json holds."""
        host = provenance.get("host") or {}
        machine = ", ".join(str(host[name]) for name in ("platform", "device") if host.get(name))
        cpus = f"{machine}, {host['cpus']} CPU" if host.get("cpus") else machine
        packages = ", ".join(f"{name} {version}" for name, version in (provenance.get("packages") or {}).items())
        told = {
            "started": provenance.get("first_started") or provenance.get("started"),
            "finished": provenance.get("finished"),
            "command": provenance.get("command"),
            "host": cpus,
            "python": provenance.get("python"),
            "packages": packages,
        }
        return [(self.words.text(name), str(value)) for name, value in told.items() if value]

    def group_contrasts(self) -> list[AttributionContrast]:
        """Attribution contrasts at group scope that have an estimate."""
        return [row for row in self.dossier.metrics.attribution if row.scope == "group" and row.estimate is not None]

    def doubt(self, row: AttributionContrast) -> str:
        """In a word or two, whether a contrast is corroborated."""
        return self.words.code("doubts", "none" if row.corroborated else (row.doubts or ("concordance_unknown",))[0])
