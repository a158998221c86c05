"""Carry out the plan: settings first, then record by record into the audit folder, reports, and one MLflow run.

Who may write in a folder: `pipeline.claim`; which of its records are still up to date: `pipeline.folder`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pandas as pd

from pipeline import provenance
from pipeline.claim import claimed, disk_faults, look
from pipeline.exits import code_of_verdict
from pipeline.folder import Desk, make, write_settings
from pipeline.models import require_named
from pipeline.plan import PLAN, STEPS
from pipeline.tracking import default_tracking_uri, require_place, tracking_uri_for
from veedor.errors import StoreError, UsageError, unknown
from veedor.progress import Progress, silent
from veedor.records import EvaluationSet, Finding, Findings, Report, Verdict
from veedor.settings import Policy, Settings

if TYPE_CHECKING:
    from veedor.subjects import Subject


@dataclass(frozen=True)
class AuditResult:
    """What an audit came to. `log_error`: why it could not be logged, with the way out; the evidence is kept."""

    folder: Path
    verdict: Verdict
    report: Report
    exit_code: int
    tracking_uri: str | None = None
    run_id: str | None = None
    log_error: str | None = None


def run_audit(
    model: str,
    settings: Settings,
    out: Path,
    *,
    tracking_uri: str | None = None,
    resume: bool = False,
    log: bool = True,
    progress: Progress = silent,
) -> AuditResult:
    """Audit a model into a folder and log it. Errors of the user's are raised; a store that is gone is not."""
    look_first(model, settings, out, resume=resume)
    uri = tracking_uri_for(out, tracking_uri)
    if log and uri != tracking_uri_for(out, default_tracking_uri(out.resolve().parent)):
        require_place(uri)
    with ExitStack() as claim:
        with lent_subject(model, settings, uri) as subject:
            require_target(subject, settings)
            folder = claim.enter_context(claimed(out, resume=resume))
            provenance.write(folder, provenance.begin(folder, model, settings))
            write_settings(folder, settings)
            desk = Desk(folder, settings, lend(settings, subject, progress))
            make_records(desk)
        return finish(desk, publish(desk), uri if log else None)


def look_first(model: str, settings: Settings, out: Path, *, resume: bool) -> None:
    """Refuse what is known to be wrong before the model is loaded; nothing is written."""
    require_named(model)
    check_settings(settings)
    look(out, resume=resume, model=model)


def make_records(desk: Desk) -> None:
    """Every record of the plan, in order; what the policy matches is looked at as soon as the texts are known."""
    for step in PLAN:
        if step.record:
            make(step, desk)
        if step.name == "collect":
            evaluation = cast(EvaluationSet, desk.value("evaluation"))
            require_matches(evaluation, desk.settings.policy)
            warn_if_too_few(evaluation, desk.settings)


def require_matches(evaluation: EvaluationSet, policy: Policy) -> None:
    """UsageError where groups, scopes or waivers match nothing, which else would be known after hours, at judge."""
    from veedor.hypotheses import hypotheses

    rows = evaluation.rows
    if not {"axis", "group", "term", "control"} <= set(rows.columns):
        return
    terms = rows.loc[rows["group"].notna() & ~rows["control"].astype(bool), ["axis", "group", "term"]].drop_duplicates()
    groups = terms[["axis", "group"]].drop_duplicates()
    expected = [unmeasured(str(axis), str(group)) for axis, group in groups.itertuples(index=False)]
    expected += [unmeasured(str(axis), str(group), str(term)) for axis, group, term in terms.itertuples(index=False)]
    nothing = pd.DataFrame()
    tables = {"effects": nothing, "contexts": nothing, "groups": nothing, "pairs": nothing}
    content = {"scale": policy.scale, "target": policy.target or "", "findings": tuple(expected), **tables}
    hypotheses(Findings.model_validate(content), policy)


def unmeasured(axis: str, group: str, term: str | None = None) -> Finding:
    """The term-swap finding of a group or term as it will be called, without a number."""
    return Finding(
        id=f"term/{axis}/{group}/{term}" if term else f"group/{axis}/{group}",
        metric="term_swap_effect",
        scope="term" if term else "group",
        axis=axis,
        group=group,
        term=term,
        reference="controls",
        units="",
        estimate=None,
        standard_error=None,
        df=None,
        p=None,
        n_templates=0,
        n_terms=0,
        n_controls=0,
    )


def warn_if_too_few(evaluation: EvaluationSet, settings: Settings) -> None:
    """Say before the work begins that a limit leaves too few contexts for any verdict, and what limit would do."""
    from pipeline.console import say

    contexts, needed = evaluation.rows["template"].nunique(), settings.policy.minimum.templates
    if settings.limit is not None and contexts < needed:
        enough = -(-len(evaluation.rows) // contexts) * needed
        say(
            f"veedor: --limit {settings.limit} leaves {contexts} contexts, but the policy judges nothing below "
            f"{needed}: every hypothesis will be NOT_TESTED. Give a limit of {enough} or more, or none."
        )


def run_step(
    name: str, model: str | None, settings: Settings, folder: Path, *, tracking_uri: str | None, progress: Progress
) -> Path:
    """One step alone, on the records that the folder holds; made again whether or not it is out of date."""
    if name not in STEPS:
        raise UsageError(unknown("step", name, STEPS))
    step = STEPS[name]
    check_settings(settings)
    look(folder, resume=True, model=model)
    asked = "subject" in step.reads or bool(model and "subject_language" in step.reads)
    if asked and not model:
        raise UsageError(f"step {name} asks the model: name it with --model MODEL")
    with ExitStack() as held:
        uri = tracking_uri_for(folder, tracking_uri)
        subject = held.enter_context(lent_subject(model, settings, uri)) if asked and model else None
        place = held.enter_context(claimed(folder, resume=True))
        if not (place / provenance.FILE).is_file():
            provenance.write(place, provenance.begin(place, model or "", settings))
        write_settings(place, settings)
        desk = Desk(place, settings, lend(settings, subject, progress))
        if step.record:
            make(step, desk, again=True)
        else:
            publish(desk)
    return folder / step.writes if step.record else folder


def check_settings(settings: Settings) -> None:
    """Refuse what would only be found out after minutes: the names of methods."""
    from veedor.attribution import METHODS

    for name in settings.methods:
        if name not in METHODS:
            raise UsageError(unknown("method", name, METHODS))


def require_target(subject: "Subject", settings: Settings) -> None:
    """Refuse a target the model does not have before anything else is done with it."""
    from steps.predict import resolve_target

    resolve_target(subject, settings)


@contextmanager
def lent_subject(model: str, settings: Settings, tracking_uri: str) -> "Iterator[Subject]":
    """The model under audit, with its pinned identity, on a fixed number of threads; threads are put back after."""
    from pipeline.models import fetched

    with fetched(model, tracking_uri=tracking_uri, trust_pickle=settings.trust_pickle) as found:
        import torch

        from veedor.subjects import Subject

        threads = torch.get_num_threads()
        torch.set_num_threads(settings.threads)
        try:
            subject = Subject.load(
                found.path, head=settings.head, trust_pickle=settings.trust_pickle, name=found.identity.name
            )
            subject.card = subject.card.model_copy(update=found.identity.fields())
            yield subject
        finally:
            torch.set_num_threads(threads)


def lend(settings: Settings, subject: "Subject | None", progress: Progress) -> dict[str, Any]:
    """What steps may read that is no record."""
    lent: dict[str, Any] = {
        "settings": settings,
        "policy": settings.policy,
        "subject_language": None,
        "today": datetime.now(UTC).date(),
        "progress": progress,
    }
    if subject is not None:
        lent["subject"] = subject
        lent["subject_language"] = next(iter(subject.card.language), None)
    return lent


def publish(desk: Desk) -> Report:
    """Write the reports from what lies on the desk."""
    folder = desk.folder
    verdict = cast(Verdict, desk.value("verdict"))
    code = code_of_verdict(verdict.overall, verdict.policy)
    desk.lent["provenance"] = provenance.update(folder, finished=provenance.now(), exit_code=code)
    desk.lent["folder"] = folder
    step = STEPS["publish"]
    return cast(Report, step.load()(**{name: desk.value(name) for name in step.reads}))


def finish(desk: Desk, report: Report, tracking_uri: str | None) -> AuditResult:
    """Log the folder, if it is to be logged, and say what came of it all."""
    from pipeline.store import log_audit

    verdict = cast(Verdict, desk.value("verdict"))
    run_id = log_error = None
    if tracking_uri:
        desk.lent["progress"]("log to MLflow", 0, 1)
        try:
            run_id = log_audit(desk.folder, tracking_uri=tracking_uri).run_id
            desk.lent["progress"]("log to MLflow", 1, 1)
        except StoreError as error:
            log_error = str(error)
    code = code_of_verdict(verdict.overall, verdict.policy, logged=log_error is None)
    provenance.update(desk.folder, exit_code=code)
    return AuditResult(desk.folder, verdict, report, code, tracking_uri, run_id, log_error)


def render(folder: Path, settings: Settings, *, progress: Progress = silent) -> Report:
    """Write the reports again from the records that the folder holds."""
    with disk_faults(folder, again="repeat the command"):
        return publish(Desk(folder, settings, lend(settings, None, progress)))
