"""A finished audit folder, to one MLflow run. The only file that logs.

The evidence is the folder; this is a copy of it with names that a registry can search. When a server goes away or a
disk fills up, nothing is lost: the error names the command that logs the same folder later. Logging twice is refused
quietly: the folder remembers where it went.
"""

import os
import shlex
import time
import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import provenance
from pipeline.evidence import finished, require_same_policy, require_unaltered
from pipeline.models import model_id_of, nothing_if_missing
from pipeline.names import challenge_metrics, metrics, parameters
from pipeline.plan import RECORDS
from pipeline.tracking import (
    client_of,
    connected,
    default_tracking_uri,
    require_place,
    sqlite_file,
    store_faults,
    without_secrets,
)
from veedor import __version__
from veedor.errors import StoreError, UsageError
from veedor.records import Decisions, EvaluationSet, Findings, Reliability, SubjectCard, Verdict, canonical_json
from veedor.settings import Settings, read_settings

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Dataset
    from mlflow.entities.model_registry import ModelVersion

__all__ = ["Logged", "audit_digest", "default_tracking_uri", "log_audit", "register_classifier"]

EXPERIMENT = "veedor"
METRICS_A_BATCH = 500  # MLflow takes 1,000 at most
LONGEST_NOTE = 4500


@dataclass(frozen=True)
class Logged:
    """Where an audit was logged. `already`: it had been, and nothing was written. `linked`: to the audited model."""

    tracking_uri: str
    run_id: str
    already: bool = False
    linked: bool = False


@dataclass(frozen=True)
class Evidence:
    """What of an audit folder the run's fields are made of."""

    folder: Path
    settings: Settings
    evaluation: EvaluationSet
    decisions: Decisions
    reliability: Reliability
    findings: Findings
    verdict: Verdict
    digest: str

    @property
    def subject(self) -> SubjectCard:
        """The audited model."""
        return self.decisions.subject


def audit_digest(folder: Path) -> str:
    """SHA-256 over the digests of all records: the same evidence, the same digest."""
    manifests = {name: finished(folder / name) for name in RECORDS}
    unfinished = [name for name, manifest in manifests.items() if manifest is None]
    if unfinished:
        finish = f"veedor audit MODEL --resume --out {shlex.quote(str(folder))}"
        raise UsageError(f"{folder} is not a finished audit: no {', '.join(unfinished)}; finish it with `{finish}`")
    digests = {name: manifest["digest"] for name, manifest in manifests.items() if manifest}
    return sha256(canonical_json(digests).encode()).hexdigest()


def read_evidence(folder: Path) -> Evidence:
    """Read and check the records; UsageError where the folder is unfinished or was altered."""
    digest = audit_digest(folder)
    require_unaltered(folder)
    try:
        evidence = Evidence(
            folder=folder,
            settings=read_settings(folder / "settings.yaml"),
            evaluation=EvaluationSet.load(folder / "evaluation"),
            decisions=Decisions.load(folder / "decisions"),
            reliability=Reliability.load(folder / "reliability"),
            findings=Findings.load(folder / "findings"),
            verdict=Verdict.load(folder / "verdict"),
            digest=digest,
        )
    except ValueError as error:
        raise UsageError(f"cannot log this folder: {error}") from error
    require_same_policy(folder, evidence.settings.policy.digest(), evidence.verdict.policy_digest)
    return evidence


def log_audit(folder: Path, *, tracking_uri: str, again: bool = False) -> Logged:
    """Log the folder to one run, linked to the audited model where this store holds it."""
    folder = folder.resolve()
    evidence = read_evidence(folder)
    earlier = logged_before(evidence, tracking_uri)
    try:
        require_place(tracking_uri)
        client = client_of(tracking_uri)
        if not again and earlier.get("complete") and nothing_if_missing(client.get_run, earlier["run_id"]):
            return Logged(without_secrets(tracking_uri), earlier["run_id"], already=True)
        unfinished = None if again else earlier.get("run_id")
        run_id, ours = run_for(evidence, client, unfinished)
        where = {"tracking_uri": without_secrets(tracking_uri), "run_id": run_id, "digest": evidence.digest}
        provenance.update(folder, mlflow={**where, "complete": False})
        linked = write_run(evidence, run_id, client)
        provenance.update(folder, mlflow={**where, "complete": True})
        client.log_artifact(run_id, str(folder / provenance.FILE))
        if ours:
            client.set_terminated(run_id)
    except store_faults() as error:
        raise lost(folder, tracking_uri, error) from error
    return Logged(without_secrets(tracking_uri), run_id, linked=linked)


def lost(folder: Path, tracking_uri: str, error: Exception) -> StoreError:
    """The StoreError that says what to do when the store is back."""
    said = without_secrets(str(error)).strip()[:500]
    uri = without_secrets(tracking_uri)
    command = f"veedor log {shlex.quote(str(folder))} --tracking-uri {shlex.quote(uri)}"
    return StoreError(
        f"the audit could not be logged to {uri}: {said}\nThe evidence is safe in {folder}. Later: {command}"
    )


def logged_before(evidence: Evidence, tracking_uri: str) -> dict[str, Any]:
    """Where this same evidence went before, in this store; empty where it did not."""
    earlier: dict[str, Any] = provenance.read(evidence.folder).get("mlflow") or {}
    same = earlier.get("tracking_uri") == without_secrets(tracking_uri) and earlier.get("digest") == evidence.digest
    return earlier if same else {}


def run_for(evidence: Evidence, client: "MlflowClient", unfinished: str | None) -> tuple[str, bool]:
    """The run to write to, and whether it is ours to end: an MLproject's, one that broke off, or a new one."""
    given = os.environ.get("MLFLOW_RUN_ID")
    if given and nothing_if_missing(client.get_run, given):
        return given, False
    if unfinished and nothing_if_missing(client.get_run, unfinished):
        return unfinished, True
    name = f"audit {evidence.subject.name}"[:250]
    experiment = experiment_id(client)
    return str(client.create_run(experiment, run_name=name).info.run_id), True


def experiment_id(client: "MlflowClient") -> str:
    """The experiment that MLflow's environment names, else our own; beside a SQLite file, by absolute path."""
    if chosen := os.environ.get("MLFLOW_EXPERIMENT_ID"):
        return chosen
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
    found = client.get_experiment_by_name(name)
    if found is not None:
        return str(found.experiment_id)
    database = sqlite_file(client.tracking_uri)
    place = str(database.resolve().parent / "mlartifacts") if database else None
    return str(client.create_experiment(name, artifact_location=place))


def write_run(evidence: Evidence, run_id: str, client: "MlflowClient") -> bool:
    """Parameters, tags, dataset, metrics and files; then the tags of the audited model. True where it was linked."""
    from mlflow.entities import Param, RunTag

    model_id = known_model(evidence.subject.model_id, client)
    tags = audit_tags(evidence, run_id)
    note = summary(evidence.folder)
    client.log_batch(
        run_id,
        params=[Param(key, value) for key, value in parameters(evidence.settings).items()],
        tags=[RunTag(key, value) for key, value in {**tags, **note}.items()],
    )
    log_numbers(evidence, run_id, model_id, client)
    log_files(evidence.folder, run_id, client)
    return tag_model(evidence.subject, model_id, tags, client)


def audit_tags(evidence: Evidence, run_id: str) -> dict[str, str]:
    """What a release gate reads, the same on the run and on the model version."""
    verdict, evaluation = evidence.verdict, evidence.evaluation
    return {
        "audit.status": verdict.overall,
        "audit.with_waivers": str(verdict.with_waivers).lower(),
        "audit.run_id": run_id,
        "audit.policy_sha256": verdict.policy_digest,
        "audit.digest": evidence.digest,
        "audit.target": evidence.decisions.target,
        "audit.evaluation_set": evaluation.name,
        "audit.evaluation_set_sha256": evaluation.digest,
        "audit.weights_sha256": evidence.subject.weights_digest,
        "audit.date": str(provenance.read(evidence.folder).get("finished") or provenance.now()),
        "audit.veedor_version": __version__,
    }


def summary(folder: Path) -> dict[str, str]:
    """The report's summary as the run's description, where there is one."""
    path = folder / "summary.md"
    return {"mlflow.note.content": path.read_text(encoding="utf-8")[:LONGEST_NOTE]} if path.is_file() else {}


def known_model(model_id: str | None, client: "MlflowClient") -> str | None:
    """The audited model's id if this store holds it: an audit may be logged elsewhere."""
    return model_id if model_id and nothing_if_missing(client.get_logged_model, model_id) else None


def log_numbers(evidence: Evidence, run_id: str, model_id: str | None, client: "MlflowClient") -> None:
    """The evaluation set as the run's dataset, the model as its input, and every finite metric linked to both."""
    from mlflow.entities import DatasetInput, InputTag, LoggedModelInput, Metric

    dataset = dataset_of(evidence.evaluation)
    about = {"mlflow.data.context": "audit-evaluation", "sha256": evidence.evaluation.digest}
    inputs = [DatasetInput(dataset, [InputTag(key, value) for key, value in about.items()])]
    client.log_inputs(run_id, inputs, [LoggedModelInput(model_id)] if model_id else None)
    stamp = int(time.time() * 1000)
    link = {"model_id": model_id, "dataset_name": dataset.name, "dataset_digest": dataset.digest, "run_id": run_id}
    found = metrics(evidence.findings, evidence.verdict) | challenge_metrics(evidence.reliability)
    entities = [Metric(name, value, stamp, 0, **link) for name, value in found.items()]
    for first in range(0, len(entities), METRICS_A_BATCH):
        client.log_batch(run_id, metrics=entities[first : first + METRICS_A_BATCH])


def dataset_of(evaluation: EvaluationSet) -> "Dataset":
    """The evaluation set as MLflow describes one; its digest is the head of ours, the whole stands in a tag."""
    from mlflow.entities import Dataset

    return Dataset(
        name=evaluation.name,
        digest=evaluation.digest[:32],
        source_type="local",
        source=dumps({"uri": evaluation.source}),
        profile=dumps({"num_rows": len(evaluation.rows)}),
    )


def log_files(folder: Path, run_id: str, client: "MlflowClient") -> None:
    """Every record and every report, at the same paths as in the folder; anything else there is not ours to send."""
    for name in RECORDS:
        client.log_artifacts(run_id, str(folder / name), artifact_path=name)
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix != ".partial" and path.name != provenance.FILE:
            client.log_artifact(run_id, str(path))


def tag_model(subject: SubjectCard, model_id: str | None, tags: Mapping[str, str], client: "MlflowClient") -> bool:
    """Tag the registered version and the logged model, if this store holds the very model that was audited."""
    version = audited_version(subject, client)
    if version:
        for key, value in tags.items():
            client.set_model_version_tag(version.name, str(version.version), key, value)
    if model_id:
        client.set_logged_model_tags(model_id, dict(tags))
    return bool(version or model_id)


def audited_version(subject: SubjectCard, client: "MlflowClient") -> "ModelVersion | None":
    """The model version by name and number, unless another store uses the same name for another model."""
    from mlflow.exceptions import MlflowException

    if subject.version is None or subject.uri is None:
        return None
    name = subject.uri.removeprefix("models:/").rpartition("/")[0]
    try:
        version = client.get_model_version(name, subject.version)
    except MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            return None
        raise
    return version if model_id_of(version) == subject.model_id else None


def register_classifier(
    model: Any,
    tokenizer: Any,
    *,
    name: str,
    alias: str | None,
    tracking_uri: str,
    tags: dict[str, str] | None = None,
) -> str:
    """Log a transformers text classifier, register it, and set the alias. Returns its address, `models:/name/1`."""
    import mlflow
    import torch
    import transformers

    # Without requirements MLflow looks for torchvision, which no text classifier needs.
    needs = [f"torch=={torch.__version__.partition('+')[0]}", f"transformers=={transformers.__version__}"]
    try:
        # What MLflow says meanwhile, on standard error and as warnings, is about itself.
        with connected(tracking_uri) as client, redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = client.create_run(experiment_id(client), run_name=f"register {name}")
            with mlflow.start_run(run_id=run.info.run_id):
                logged = mlflow.transformers.log_model(
                    {"model": model, "tokenizer": tokenizer},
                    name="model",
                    task="text-classification",
                    pip_requirements=needs,
                    registered_model_name=name,
                )
            version = str(logged.registered_model_version)
            for key, value in (tags or {}).items():
                client.set_model_version_tag(name, version, key, value)
            if alias:
                client.set_registered_model_alias(name, alias, version)
    except store_faults() as error:
        raise StoreError(f"{name} could not be registered in {without_secrets(tracking_uri)}: {error}") from error
    return f"models:/{name}/{version}"
