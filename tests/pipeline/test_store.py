"""Logging an audit: what lands in the run and on the model, and what happens when the store is gone."""

import json
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline import provenance
from pipeline.store import audit_digest, log_audit
from pipeline.tracking import default_tracking_uri
from tests.pipeline.by_hand import card
from tests.pipeline.conftest import Registry
from veedor.errors import StoreError, UsageError

Write = Callable[..., Path]


def client_for(uri: str) -> MlflowClient:
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def audited(registry: Registry) -> dict[str, object]:
    """The identity of the registered model, as an audit pins it."""
    [version] = client_for(registry.uri).search_model_versions("name='tiny'")
    return {
        "uri": "models:/tiny/1",
        "alias": "candidate",
        "version": "1",
        "model_id": version.source.removeprefix("models:/"),
    }


@pytest.fixture(scope="module")
def dead_server() -> str:
    """An address of this machine at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://ana:s3cret@127.0.0.1:{free.getsockname()[1]}"


def test_a_run_holds_parameters_metrics_tags_the_dataset_and_every_file(finished_audit: Write, uri: str) -> None:
    logged = log_audit(finished_audit(), tracking_uri=uri)
    client = client_for(uri)
    run = client.get_run(logged.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params["settings.seed"] == "0" and run.data.params["policy.margin"] == "0.693"
    assert run.data.metrics["veedor.effect.group.age.older"] == 1.5
    assert run.data.metrics["veedor.adjusted_p.group.age.older"] == 0.004
    assert run.data.metrics["veedor.count.fail"] == 2.0 and run.data.metrics["veedor.count.not_tested"] == 1.0
    assert "veedor.effect.group.religion.muslim" not in run.data.metrics, "it has no estimate"
    assert run.data.tags["audit.status"] == "FAIL" and run.data.tags["audit.run_id"] == logged.run_id
    assert run.data.tags["mlflow.note.content"] == "# FAIL\n"
    [dataset] = run.inputs.dataset_inputs
    assert {tag.key: tag.value for tag in dataset.tags}["sha256"] == "d" * 64
    held = {artifact.path for artifact in client.list_artifacts(logged.run_id)}
    records = {"evaluation", "decisions", "attributions", "reliability", "findings", "verdict"}
    assert held == records | {"settings.yaml", "summary.md", "manifest.json", "provenance.json"}


def test_artifacts_of_a_sqlite_store_lie_beside_it_not_in_the_working_directory(
    finished_audit: Write, empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    place.mkdir()
    shutil.copy(empty_store, place / "mlflow.db")
    elsewhere.mkdir()
    audit = finished_audit()
    monkeypatch.chdir(elsewhere)
    log_audit(audit, tracking_uri=default_tracking_uri(place))
    assert sorted(entry.name for entry in place.iterdir()) == ["mlartifacts", "mlflow.db"]
    assert list(elsewhere.iterdir()) == []


def test_the_audited_version_and_logged_model_carry_the_tags_and_metrics(
    finished_audit: Write, registry: Registry
) -> None:
    folder = finished_audit(card(**audited(registry)))
    logged = log_audit(folder, tracking_uri=registry.uri)
    client = client_for(registry.uri)
    version = client.get_model_version("tiny", "1")
    assert logged.linked
    assert version.tags["audit.status"] == "FAIL" and version.tags["audit.run_id"] == logged.run_id
    assert version.tags["audit.digest"] == audit_digest(folder)
    assert re.fullmatch(r"[0-9a-f]{64}", version.tags["audit.policy_sha256"])
    model = client.get_logged_model(version.source.removeprefix("models:/"))
    assert {metric.key: metric.value for metric in model.metrics}["veedor.effect.group.age.older"] == 1.5
    assert [given.model_id for given in client.get_run(logged.run_id).inputs.model_inputs] == [model.model_id]


def test_a_namesake_in_another_store_is_not_tagged(finished_audit: Write, registry: Registry) -> None:
    another = {**audited(registry), "model_id": "m-" + "0" * 32}
    logged = log_audit(finished_audit(card(**another)), tracking_uri=registry.uri)
    version = client_for(registry.uri).get_model_version("tiny", "1")
    assert not logged.linked
    assert version.tags.get("audit.run_id") != logged.run_id


def test_logging_twice_makes_one_run_unless_asked_again(finished_audit: Write, uri: str) -> None:
    folder = finished_audit()
    first = log_audit(folder, tracking_uri=uri)
    second = log_audit(folder, tracking_uri=uri)
    third = log_audit(folder, tracking_uri=uri, again=True)
    assert (first.already, second.already, third.already) == (False, True, False)
    assert first.run_id == second.run_id != third.run_id
    assert json.loads((folder / "provenance.json").read_text())["mlflow"]["run_id"] == third.run_id


def test_a_logging_that_broke_off_goes_on_in_the_same_run(finished_audit: Write, uri: str) -> None:
    folder = finished_audit()
    first = log_audit(folder, tracking_uri=uri)
    provenance.update(folder, mlflow={**provenance.read(folder)["mlflow"], "complete": False})
    again = log_audit(folder, tracking_uri=uri)
    assert again.run_id == first.run_id and not again.already


def test_a_dead_server_is_told_in_seconds_with_the_command_that_logs_later_and_no_password(
    finished_audit: Write, dead_server: str
) -> None:
    folder = finished_audit()
    with pytest.raises(StoreError) as told:
        log_audit(folder, tracking_uri=dead_server)
    said = str(told.value)
    assert f"veedor log {folder} --tracking-uri 'http://***@127.0.0.1:" in said
    assert "s3cret" not in said
    assert (folder / "verdict" / "manifest.json").is_file()


def test_a_disk_that_cannot_be_written_is_a_store_error(finished_audit: Write, tmp_path: Path) -> None:
    """A file stands where the store's folder should be, which no user, root included, can write into."""
    (tmp_path / "full").write_text("")
    with pytest.raises(StoreError, match="veedor log "):
        log_audit(finished_audit(), tracking_uri=f"sqlite:///{tmp_path / 'full' / 'mlflow.db'}")


def test_a_file_store_is_refused_with_the_way_out(finished_audit: Write, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="migrate-filestore"):
        log_audit(finished_audit(), tracking_uri=(tmp_path / "mlruns").as_uri())


def test_an_unfinished_or_altered_folder_is_not_logged(finished_audit: Write, uri: str) -> None:
    folder = finished_audit()
    record = folder / "verdict" / "record.json"
    record.write_text(record.read_text().replace('"FAIL"', '"PASS"'))
    with pytest.raises(UsageError, match="altered"):
        log_audit(folder, tracking_uri=uri)
    (folder / "verdict" / "manifest.json").unlink()
    with pytest.raises(UsageError, match="no verdict; finish it with"):
        log_audit(folder, tracking_uri=uri)


def test_a_project_run_given_by_mlflow_is_used(
    finished_audit: Write, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = client_for(uri).create_run("0").info.run_id
    monkeypatch.setenv("MLFLOW_RUN_ID", given)
    assert log_audit(finished_audit(), tracking_uri=uri).run_id == given
    assert client_for(uri).get_run(given).info.status == "RUNNING", "whoever started it ends it"
