"""Carry out the plan: settings first, then record by record into the audit folder, reports, and one MLflow run.

How an audit folder is opened and which of its records are still up to date: `pipeline.folder`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipeline import provenance
from pipeline.exits import code_of_error, code_of_verdict
from pipeline.folder import Desk, make, open_folder, sweep, write_settings
from pipeline.plan import PLAN, STEPS
from pipeline.tracking import tracking_uri_for
from veedor.errors import StoreError, UsageError, unknown
from veedor.progress import Progress, silent
from veedor.records import EvaluationSet, Report, Verdict
from veedor.settings import Settings

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
    check_settings(settings)
    folder = open_folder(out, resume=resume)
    uri = tracking_uri_for(folder, tracking_uri)
    write_settings(folder, settings)
    provenance.write(folder, provenance.begin(folder, model, settings))
    try:
        with lent_subject(model, settings, uri) as subject:
            require_target(subject, settings)
            desk = Desk(folder, settings, lend(settings, subject, progress))
            for step in PLAN:
                if step.record:
                    make(step, desk)
                if step.name == "collect":
                    warn_if_too_few(cast(EvaluationSet, desk.value("evaluation")), settings)
        report = publish(desk)
        return finish(desk, report, uri if log else None)
    except BaseException as error:
        if not sweep(folder):
            provenance.update(folder, finished=provenance.now(), exit_code=code_of_error(error))
        raise


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
    folder.mkdir(parents=True, exist_ok=True)
    write_settings(folder, settings)
    if not (folder / provenance.FILE).is_file():
        provenance.write(folder, provenance.begin(folder, model or "", settings))
    desk = Desk(folder, settings, lend(settings, None, progress))
    if "subject" in step.reads or (model and "subject_language" in step.reads):
        if not model:
            raise UsageError(f"step {name} asks the model: name it with --model MODEL")
        with lent_subject(model, settings, tracking_uri_for(folder, tracking_uri)) as subject:
            desk.lent = lend(settings, subject, progress)
            make(step, desk, again=True)
    elif step.record:
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
    return publish(Desk(folder, settings, lend(settings, None, progress)))
