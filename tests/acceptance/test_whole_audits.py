"""Whole audits from the command line: exit codes, repeated bytes, what a killed audit keeps, what is reused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from pipeline.plan import RECORDS
from tests.acceptance.conftest import ROOT, Command, environment
from veedor.records import sha256

SMALL = ("--limit", "700", "--target", "flagged", "--language", "en")
SETTINGS = {"attribution_rows": 60, "threads": 1, "methods": ["rollout", "occlusion"]}


@pytest.fixture
def told(tmp_path: Path) -> tuple[str, ...]:
    """Options of a small audit."""
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SETTINGS))
    return (*SMALL, "--settings", "s.yaml")


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of every record."""
    files = [path for name in RECORDS for path in sorted((folder / name).iterdir())]
    return {str(path.relative_to(folder)): sha256(path) for path in files}


def provenance(folder: Path) -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = json.loads((folder / "provenance.json").read_text())
    return found


def test_the_same_input_gives_the_same_bytes_wherever_and_whenever(
    veedor: Command, model_folder: Path, told: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("a", "b"):
        done = veedor("audit", str(model_folder), *told, "--no-log", "--out", name)
        assert done.returncode in (0, 1, 3), done.stderr
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    first, second = ((tmp_path / name / "audit.json").read_bytes() for name in ("a", "b"))
    assert first == second


def test_an_audit_leaves_reports_and_evidence_and_says_where(
    veedor: Command, model_folder: Path, told: tuple[str, ...], tmp_path: Path
) -> None:
    done = veedor("audit", str(model_folder), *told, "--out", "a")
    assert done.returncode in (0, 1, 3), done.stderr
    verdict = done.stdout.split()[0]
    assert {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3, "NOT_TESTED": 3}[verdict] == done.returncode
    for name in ("settings.yaml", "audit.json", "report.en.html", "summary.md", "manifest.json", "provenance.json"):
        assert (tmp_path / "a" / name).is_file(), name
    assert "a/report.en.html" in done.stdout and "MLflow    run " in done.stdout
    assert (tmp_path / "mlflow.db").is_file(), "the store lies beside the audit folder"
    assert not (tmp_path / "mlruns").exists()
    kept = provenance(tmp_path / "a")
    assert set(kept["steps"]) == {"collect", "predict", "attribute", "measure", "judge"}
    assert kept["exit_code"] == done.returncode and kept["mlflow"]["complete"] is True


def test_an_audit_that_is_killed_goes_on_where_it_stopped(
    veedor: Command, model_folder: Path, told: tuple[str, ...], tmp_path: Path
) -> None:
    whole = veedor("audit", str(model_folder), *told, "--no-log", "--out", "whole")
    command = [sys.executable, str(ROOT / "veedor" / "__main__.py"), "audit", str(model_folder), *told, "--no-log"]
    process = subprocess.Popen(
        [*command, "--out", "cut"], cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL, start_new_session=True
    )
    while not (tmp_path / "cut" / "decisions" / "manifest.json").is_file():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cut" / "audit.json").exists()
    refused = veedor("audit", str(model_folder), *told, "--no-log", "--out", "cut")
    assert refused.returncode == 2 and "--resume" in refused.stderr
    done = veedor("audit", str(model_folder), *told, "--no-log", "--out", "cut", "--resume")
    assert done.returncode == whole.returncode, done.stderr
    steps = provenance(tmp_path / "cut")["steps"]
    assert steps["predict"]["reused"] is True and steps["judge"]["reused"] is False
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")


def test_other_report_languages_or_another_policy_do_not_ask_the_model_again(
    veedor: Command, model_folder: Path, told: tuple[str, ...], tmp_path: Path
) -> None:
    assert veedor("audit", str(model_folder), *told, "--no-log", "--out", "a").returncode in (0, 1, 3)
    (tmp_path / "p.yaml").write_text("margin: 3.0\n")
    options = (
        "--limit",
        "700",
        "--target",
        "flagged",
        "--language",
        "es",
        "--settings",
        "s.yaml",
        "--policy",
        "p.yaml",
    )
    done = veedor("audit", str(model_folder), *options, "--no-log", "--out", "a", "--resume")
    assert done.returncode in (0, 1, 3), done.stderr
    reused = {name: step["reused"] for name, step in provenance(tmp_path / "a")["steps"].items()}
    assert reused == {"collect": True, "predict": True, "attribute": True, "measure": True, "judge": False}
    assert (tmp_path / "a" / "report.es.html").is_file()


def test_every_kind_of_wrong_input_has_its_exit_code(
    veedor: Command, model_folder: Path, told: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text("target: acceptable\n")
    (tmp_path / "empty.csv").write_text("text\n")
    wrong = {
        ("--target", "insulting"): 2,
        ("--target", "flagged", "--policy", "other.yaml"): 2,
        ("--evaluation-set", "empty.csv"): 5,
        ("--evaluation-set", "identity-terms-xx"): 2,
    }
    for options, code in wrong.items():
        done = veedor("audit", str(model_folder), *options, "--limit", "300", "--no-log")
        assert done.returncode == code, (options, done.stderr)
        assert "Traceback" not in done.stderr
    assert (
        "did you mean 'flagged'"
        in veedor("audit", str(model_folder), "--target", "flaged", "--limit", "300", "--no-log").stderr
    )


def test_gate_report_and_log_work_on_what_an_audit_left(
    veedor: Command, model_folder: Path, told: tuple[str, ...], tmp_path: Path
) -> None:
    first = veedor("audit", str(model_folder), *told, "--no-log", "--out", "a")
    before = digests(tmp_path / "a")
    again = veedor("gate", "a")
    assert again.returncode == first.returncode, again.stderr
    assert again.stdout.splitlines()[0] == first.stdout.splitlines()[0]
    report = veedor("report", "a", "--language", "es")
    assert report.returncode == 0 and (tmp_path / "a" / "report.es.html").is_file(), report.stderr
    logged = veedor("log", "a")
    assert logged.returncode == 0 and logged.stdout.startswith("logged: run "), logged.stderr
    assert digests(tmp_path / "a") == before
    (tmp_path / "p.yaml").write_text("margin: 5.0\ninconclusive: pass\n")
    kept = veedor("gate", "a", "--policy", "p.yaml", "--write")
    assert kept.returncode == 0, kept.stderr
    assert json.loads((tmp_path / "a" / "verdict" / "record.json").read_text())["policy"]["margin"] == 5.0
    assert veedor("gate", "a").returncode == 0, "the written policy is the folder's now"


def test_explain_prints_every_word_and_writes_an_escaped_page(
    veedor: Command, model_folder: Path, tmp_path: Path
) -> None:
    text = "I met a Muslim person <script>alert(1)</script>"
    options = ("--method", "occlusion", "--target", "flagged", "--html", "why.html")
    done = veedor("explain", str(model_folder), text, *options, NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert text in done.stdout and "\x1b[" not in done.stdout and "flagged" in done.stdout
    page = (tmp_path / "why.html").read_text()
    assert "<script>" not in page and "&lt;" in page and "http" not in page
    assert veedor("explain", str(model_folder), text, "--method", "oclusion").returncode == 2
