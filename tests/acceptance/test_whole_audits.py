"""Whole audits from the command line: exit codes, repeated bytes, what a killed audit keeps, what is reused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pipeline.plan import RECORDS
from tests.acceptance.conftest import ROOT, SMALL, Command, environment
from veedor.records import sha256

Finished = tuple[Path, "subprocess.CompletedProcess[str]"]
CODES = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3, "NOT_TESTED": 3}


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of every record."""
    files = [path for name in RECORDS for path in sorted((folder / name).iterdir())]
    return {str(path.relative_to(folder)): sha256(path) for path in files}


def timeless(page: Path) -> str:
    """A page without the time at which it was finished."""
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", "TIME", page.read_text(encoding="utf-8"))


def provenance(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "provenance.json").read_text())
    return found


def test_an_audit_leaves_reports_and_evidence_and_says_where(finished: Finished) -> None:
    folder, done = finished
    assert CODES[done.stdout.split()[0]] == done.returncode
    for name in ("settings.yaml", "audit.json", "report.en.html", "summary.md", "manifest.json", "provenance.json"):
        assert (folder / name).is_file(), name
    assert "a/report.en.html" in done.stdout and "MLflow" not in done.stdout
    kept = provenance(folder)
    assert set(kept["steps"]) == {"collect", "predict", "attribute", "challenge", "measure", "judge"}
    assert kept["exit_code"] == done.returncode and kept["mlflow"] is None
    assert not list(folder.rglob("*.partial"))


def test_the_same_input_gives_the_same_bytes_and_is_logged_beside_the_folder(
    veedor: Command, model_folder: Path, finished: Finished, tmp_path: Path
) -> None:
    done = veedor("audit", str(model_folder), *SMALL, "--out", "again")
    assert done.returncode == finished[1].returncode, done.stderr
    assert digests(tmp_path / "again") == digests(finished[0])
    assert (tmp_path / "again" / "audit.json").read_bytes() == (finished[0] / "audit.json").read_bytes()
    assert "MLflow    run " in done.stdout and provenance(tmp_path / "again")["mlflow"]["complete"] is True
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["again", "mlartifacts", "mlflow.db", "s.yaml"]


def test_an_audit_that_is_killed_goes_on_where_it_stopped(
    veedor: Command, model_folder: Path, finished: Finished, tmp_path: Path
) -> None:
    options = ("audit", str(model_folder), *SMALL, "--no-log", "--out", "cut")
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "veedor" / "__main__.py"), *options],
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not (tmp_path / "cut" / "decisions" / "manifest.json").is_file():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cut" / "audit.json").exists()
    refused = veedor(*options)
    assert refused.returncode == 2 and "--resume" in refused.stderr
    done = veedor(*options, "--resume")
    assert done.returncode == finished[1].returncode, done.stderr
    steps = provenance(tmp_path / "cut")["steps"]
    assert steps["predict"]["reused"] is True and steps["judge"]["reused"] is False
    assert digests(tmp_path / "cut") == digests(finished[0])


def test_another_report_language_or_policy_does_not_ask_the_model_again(
    veedor: Command, model_folder: Path, copied: Path, tmp_path: Path
) -> None:
    (tmp_path / "p.yaml").write_text("margin: 3.0\n")
    changed = tuple("es" if option == "en" else option for option in SMALL)
    options = (*changed, "--policy", "p.yaml", "--no-log", "--out", "a", "--resume")
    done = veedor("audit", str(model_folder), *options)
    assert done.returncode in (0, 1, 3), done.stderr
    reused = {name: step["reused"] for name, step in provenance(copied)["steps"].items()}
    steps = ("collect", "predict", "attribute", "challenge", "measure")
    assert reused == dict.fromkeys(steps, True) | {"judge": False}
    assert (copied / "report.es.html").is_file()


def test_every_kind_of_wrong_input_has_its_exit_code_and_a_typing_error_leaves_no_folder(
    veedor: Command, model_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text("target: acceptable\n")
    (tmp_path / "empty.csv").write_text("text\n")
    wrong = (
        (("--target", "flaged"), 2, "did you mean 'flagged'"),
        (("--target", "flagged", "--policy", "other.yaml"), 2, "acceptable"),
        (("--evaluation-set", "empty.csv"), 5, "no rows"),
        (("--evaluation-set", "identity-terms-xx"), 2, "identity-terms-en"),
    )
    for options, code, said in wrong:
        done = veedor("audit", str(model_folder), *options, "--limit", "300", "--no-log")
        assert done.returncode == code and said in done.stderr, (options, done.stderr)
        assert "Traceback" not in done.stderr
        assert not list(tmp_path.glob("audits/*"))


def test_gate_report_and_log_work_on_what_an_audit_left(
    veedor: Command, finished: Finished, copied: Path, tmp_path: Path
) -> None:
    again = veedor("gate", "a")
    assert again.returncode == finished[1].returncode, again.stderr
    assert again.stdout.splitlines()[0] == finished[1].stdout.splitlines()[0]
    same = veedor("report", "a", "--language", "en")
    assert same.returncode == 0, same.stderr
    for name in ("report.en.html", "summary.md"):
        assert timeless(copied / name) == timeless(finished[0] / name), name
    report = veedor("report", "a", "--language", "es")
    assert report.returncode == 0 and (copied / "report.es.html").is_file(), report.stderr
    logged = veedor("log", "a")
    assert logged.returncode == 0 and logged.stdout.startswith("logged: run "), logged.stderr
    assert digests(copied) == digests(finished[0])


def test_a_written_gate_is_the_folders_verdict_from_then_on(veedor: Command, copied: Path, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("margin: 5.0\ninconclusive: pass\n")
    kept = veedor("gate", "a", "--policy", "p.yaml", "--write")
    assert kept.returncode == 0, kept.stderr
    assert json.loads((copied / "verdict" / "record.json").read_text())["policy"]["margin"] == 5.0
    assert veedor("gate", "a").returncode == 0


def test_explain_prints_every_word_and_writes_an_escaped_page(
    veedor: Command, model_folder: Path, tmp_path: Path
) -> None:
    text = "I met a Muslim person <script>alert(1)</script>"
    options = ("--method", "occlusion", "--target", "flagged", "--html", "why.html")
    done = veedor("explain", str(model_folder), text, *options, NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert text in done.stdout and "\x1b[" not in done.stdout and "flagged" in done.stdout
    page = (tmp_path / "why.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;" in page and "://" not in page
    assert veedor("explain", str(model_folder), text, "--method", "oclusion").returncode == 2
