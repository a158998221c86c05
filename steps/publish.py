"""Publish: from an audit's records to the files that people and programs read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veedor.progress import Progress, silent
from veedor.records import Attributions, Decisions, EvaluationSet, Findings, Reliability, Report, Verdict
from veedor.settings import Settings


def publish(  # noqa: PLR0913  six records, and where and how to tell of them
    evaluation: EvaluationSet,
    decisions: Decisions,
    attributions: Attributions | None,
    findings: Findings,
    verdict: Verdict,
    settings: Settings,
    *,
    reliability: Reliability | None = None,
    provenance: Mapping[str, Any],
    folder: str | Path,
    progress: Progress = silent,
) -> Report:
    """Gather the evidence as audit.json and tell it in every language of the settings."""
    from veedor.report import build_dossier, write_report

    dossier = build_dossier(evaluation, decisions, attributions, findings, verdict, settings, reliability)
    return write_report(dossier, folder, settings.languages, provenance=provenance, progress=progress)
