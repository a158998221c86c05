"""The same against a real MLflow server: load by alias, log, tag the version; and when the server is not there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.models import fetched
from tests.acceptance.conftest import ROOT, SMALL, Command, environment
from veedor.errors import SubjectError


def test_an_alias_is_audited_logged_and_the_version_tagged(veedor: Command, server: str, tmp_path: Path) -> None:
    done = veedor(
        "audit", "models:/tiny@candidate", *SMALL, "--methods", "rollout", "--tracking-uri", server, "--out", "a"
    )
    assert done.returncode in (0, 1, 3), done.stderr
    client = MlflowClient(tracking_uri=server, registry_uri=server)
    version = client.get_model_version("tiny", "1")
    assert version.tags["audit.status"] == done.stdout.split()[0]
    run = client.get_run(version.tags["audit.run_id"])
    assert run.data.tags["audit.digest"] == version.tags["audit.digest"]
    assert any(name.startswith("veedor.effect.group.") for name in run.data.metrics)
    assert [given.model_id for given in run.inputs.model_inputs] == [version.source.removeprefix("models:/")]
    held = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert {"audit.json", "report.en.html", "summary.md", "decisions", "verdict", "provenance.json"} <= held
    subject = json.loads((tmp_path / "a" / "decisions" / "record.json").read_text())["subject"]
    assert (subject["uri"], subject["alias"], subject["version"]) == ("models:/tiny/1", "candidate", "1")


def test_evidence_outlives_a_server_that_is_gone_and_is_logged_later(
    veedor: Command, model_folder: Path, server: str, tmp_path: Path
) -> None:
    gone = "http://ana:s3cret@127.0.0.1:9"
    done = veedor("audit", str(model_folder), *SMALL, "--tracking-uri", gone, "--out", "a")
    assert done.returncode == (1 if done.stdout.startswith("FAIL") else 6), done.stderr
    assert f"veedor log {tmp_path / 'a'} --tracking-uri" in done.stderr
    assert "s3cret" not in done.stderr + done.stdout + (tmp_path / "a" / "provenance.json").read_text()
    logged = veedor("log", "a", "--tracking-uri", server)
    assert logged.returncode == 0, logged.stderr
    assert "already" in veedor("log", "a", "--tracking-uri", server).stdout


def test_what_a_server_does_not_hold_is_answered_with_what_it_holds(server: str) -> None:
    for model, expected in (
        ("models:/tinny/1", "did you mean 'tiny'"),
        ("models:/tiny/4", "there is models:/tiny/1, models:/tiny@candidate"),
        ("models:/tiny@Candidate", "did you mean 'candidate'"),
        (f"runs:/{'0' * 32}/model", "no run"),
    ):
        with pytest.raises(SubjectError) as told, fetched(model, tracking_uri=server):
            pass
        assert expected in str(told.value)


def test_a_step_runs_as_an_mlflow_project(copied: Path, tmp_path: Path) -> None:
    before = (copied / "verdict" / "record.json").read_bytes()
    command = [sys.executable, "-m", "mlflow", "run", str(ROOT), "-e", "judge", "--env-manager", "local"]
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    project = subprocess.run(
        [*command, "-P", f"out={copied}"],
        cwd=tmp_path,
        env=environment(MLFLOW_TRACKING_URI=uri, PATH=f"{Path(sys.executable).parent}:/usr/bin:/bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert project.returncode == 0, project.stderr
    assert (copied / "verdict" / "record.json").read_bytes() == before
