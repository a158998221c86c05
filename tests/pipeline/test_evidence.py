"""Altered or damaged evidence is neither logged nor judged, and the message names the file and the way out."""

import json
from pathlib import Path

import pytest
import yaml

from pipeline.evidence import require_unaltered
from pipeline.folder import write_settings
from pipeline.plan import RECORDS
from pipeline.store import log_audit
from tests.pipeline.test_cli import Write, ask, written
from veedor.errors import StoreError, UsageError
from veedor.records import canonical_json
from veedor.report.render import write_manifest
from veedor.settings import Policy, Settings

AGAIN = "veedor audit MODEL --resume --out"
ALTERED = (
    ("attributions/rows.parquet", AGAIN),
    ("decisions/record.json", AGAIN),
    ("settings.yaml", AGAIN),
    ("summary.md", "veedor report "),
    ("manifest.json", "veedor report "),
)


@pytest.mark.parametrize(("name", "way_out"), ALTERED)
def test_an_altered_file_is_not_logged(finished_audit: Write, tmp_path: Path, name: str, way_out: str) -> None:
    folder = finished_audit()
    (folder / name).write_bytes((folder / name).read_bytes() + b" x")
    code, _, said = ask("log", str(folder), "--tracking-uri", f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert code == 2 and str(folder / name) in said and way_out in said
    assert not (tmp_path / "mlflow.db").exists()


def test_a_missing_manifest_or_one_that_lists_too_little_is_not_logged(finished_audit: Write) -> None:
    folder = finished_audit()
    require_unaltered(folder)
    (folder / "manifest.json").write_text('{"files": {}}')
    with pytest.raises(UsageError, match=r"does not list settings.yaml"):
        require_unaltered(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(UsageError, match=r"manifest.json is missing; write it again with `veedor report"):
        require_unaltered(folder)


def test_a_record_altered_together_with_its_own_manifest_is_found_out(finished_audit: Write) -> None:
    folder = finished_audit()
    path = folder / "verdict" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["record.json"] = "0" * 64
    path.write_text(canonical_json(manifest))
    with pytest.raises(UsageError, match=r"verdict/manifest.json .*digest is not that of its content"):
        require_unaltered(folder)


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"files": 3}'])
@pytest.mark.parametrize("command", ["log", "gate", "report"])
def test_a_damaged_manifest_is_named(finished_audit: Write, command: str, content: str) -> None:
    folder = finished_audit()
    (folder / "findings" / "manifest.json").write_text(content)
    code, _, said = ask(command, str(folder))
    assert code == 2 and "findings/manifest.json" in said and AGAIN in said


def test_the_policy_of_the_settings_must_be_the_verdicts(finished_audit: Write, tmp_path: Path) -> None:
    """Rendering again hashes changed settings anew, so the policy is held against the verdict's own digest."""
    folder = finished_audit()
    write_settings(folder, Settings(policy=Policy(margin=9.0)))
    write_manifest(folder)
    for command in ("gate", "log"):
        code, _, said = ask(command, str(folder))
        assert code == 2 and "settings.yaml holds another policy" in said and "--policy FILE --write" in said
    assert ask("gate", str(folder), "--policy", written(tmp_path, "p.yaml", margin=0.693))[0] == 1
    assert yaml.safe_load((folder / "settings.yaml").read_text())["policy"]["margin"] == 9.0


def test_no_folder_is_made_for_a_store_that_is_named_wrongly(finished_audit: Write, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no folder .*/nowhere/deep"):
        log_audit(finished_audit(), tracking_uri=f"sqlite:///{tmp_path / 'nowhere' / 'deep' / 'x.db'}")
    assert not (tmp_path / "nowhere").exists()


def test_every_record_of_a_finished_audit_is_looked_at(finished_audit: Write) -> None:
    for name in RECORDS:
        folder = finished_audit(name=f"without-{name}")
        (folder / name / "record.json").unlink()
        with pytest.raises(UsageError, match=rf"{name}/record.json is missing"):
            require_unaltered(folder)
