"""provenance.json: what it holds, what it never holds, and that it is never half written."""

import json
from pathlib import Path

import pytest

from pipeline import provenance
from veedor import __version__
from veedor.settings import Settings


def test_it_says_when_where_and_with_what(tmp_path: Path) -> None:
    found = provenance.begin(tmp_path, "models:/x/1", Settings(seed=7, threads=3))
    assert (found["seed"], found["threads"], found["exit_code"]) == (7, 3, None)
    assert found["packages"]["veedor"] == __version__ and found["packages"]["torch"]
    assert found["host"]["cpus"] and found["started"].endswith("+00:00")


def test_it_holds_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "https://ana:s3cret@host/x?token=s3cret"
    monkeypatch.setattr("sys.argv", ["/x/pipeline/__main__.py", "audit", uri, f"--tracking-uri={uri}"])
    provenance.write(tmp_path, provenance.begin(tmp_path, uri, Settings()))
    written = (tmp_path / "provenance.json").read_text()
    assert "s3cret" not in written
    assert json.loads(written)["command"].startswith("veedor audit ")


def test_a_resumed_audit_keeps_when_it_first_began_and_what_its_steps_took(tmp_path: Path) -> None:
    provenance.write(tmp_path, provenance.begin(tmp_path, "m", Settings()) | {"first_started": "2026-01-01T00:00:00"})
    provenance.update(tmp_path, steps={"predict": {"seconds": 12.0}})
    again = provenance.begin(tmp_path, "m", Settings())
    assert again["first_started"] == "2026-01-01T00:00:00" and again["steps"] == {"predict": {"seconds": 12.0}}


def test_a_file_cut_off_while_it_was_written_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text('{"started": "20')
    assert provenance.read(tmp_path) == {}
