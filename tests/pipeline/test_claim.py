"""Whose folder an audit may write in, what a failure leaves there, and what is checked before anything is written."""

import errno
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pipeline import provenance
from pipeline.claim import LOCK, claimed, look
from pipeline.folder import write_settings
from pipeline.run import require_matches, run_audit
from tests.pipeline.test_cli import ROOT, Write, ask, snapshot
from veedor.errors import StoreError, SubjectError, UsageError
from veedor.records import EvaluationSet
from veedor.settings import Policy, Settings


def full(number: int = errno.ENOSPC) -> OSError:
    return OSError(number, "the disk says no")


def started(folder: Path) -> None:
    """What an audit writes before its first record."""
    provenance.write(folder, provenance.begin(folder, "m", Settings()))
    write_settings(folder, Settings())


def test_a_folder_with_the_users_own_files_is_refused_untouched(tmp_path: Path) -> None:
    mine = tmp_path / "o" / "mine"
    mine.mkdir(parents=True)
    (mine / "settings.yaml").write_text("seed: 7\n")
    before = snapshot(tmp_path)
    for resume in ((), ("--resume",)):
        arguments = ("audit", "nofolder", "--settings", str(mine / "settings.yaml"), "--out", str(mine), *resume)
        code, _, said = ask(*arguments)
        assert code == 2 and "holds no audit" in said
        assert snapshot(tmp_path) == before


def test_a_failure_leaves_an_empty_folder_and_makes_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for out in ("empty", "new/deep"):
        with pytest.raises(SubjectError):
            run_audit("nofolder", Settings(), tmp_path / out, log=False)
        with pytest.raises(KeyError), claimed(tmp_path / out, resume=False) as folder:
            started(folder)
            raise KeyError("before the first record")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_an_audit_is_kept_unless_it_is_to_be_continued_with_its_own_model(finished_audit: Write) -> None:
    folder = finished_audit()
    before = snapshot(folder)
    with pytest.raises(UsageError, match=r"already holds an audit .*; continue it with --resume"):
        look(folder, resume=False)
    assert look(folder, resume=True, model="models:/tiny@candidate") == folder
    with pytest.raises(UsageError, match=r"of the model 'models:/tiny@candidate', not of 'models:/other/1'"):
        look(folder, resume=True, model="models:/other/1")
    assert snapshot(folder) == before


def test_the_same_model_folder_named_from_elsewhere_is_the_same_model(
    finished_audit: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = finished_audit()
    provenance.update(folder, model="m/", working_directory=str(tmp_path))
    monkeypatch.chdir(folder)
    assert look(folder, resume=True, model="../m") == look(folder, resume=True, model=str(tmp_path / "m"))


def test_a_failed_resume_leaves_a_finished_audit_as_it_was(finished_audit: Write) -> None:
    folder = finished_audit()
    provenance.update(folder, model="nofolder")
    before = snapshot(folder)
    assert ask("audit", "nofolder", "--seed", "9", "--resume", "--out", str(folder))[0] == 4
    assert snapshot(folder) == before


def test_an_audit_that_was_killed_before_its_first_record_can_be_started_again(tmp_path: Path) -> None:
    started(tmp_path)
    (tmp_path / LOCK).write_text("")
    assert look(tmp_path, resume=False) == tmp_path


def test_a_second_audit_in_the_folder_is_refused_and_a_killed_ones_lock_is_not_in_the_way(tmp_path: Path) -> None:
    code = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path; from pipeline.claim import claimed\n"
        "with claimed(Path('a'), resume=True): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another audit is writing in"), claimed(tmp_path / "a", resume=True):
            pytest.fail("both hold it")
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / "a" / LOCK).is_file()
    with claimed(tmp_path / "a", resume=True):
        pass
    assert not (tmp_path / "a" / LOCK).exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES])
def test_a_full_disk_is_a_store_error_that_names_the_folder_and_the_way_out(tmp_path: Path, number: int) -> None:
    with pytest.raises(StoreError, match=r"cannot write in .*/a: .*then repeat the command with --resume"):
        with claimed(tmp_path / "a", resume=False):
            raise full(number)


def test_what_fails_while_tidying_up_does_not_replace_the_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise full()

    with pytest.raises(SubjectError, match="the first"), claimed(tmp_path / "a", resume=False) as folder:
        (folder / "evaluation").mkdir()
        monkeypatch.setattr(provenance, "write", no_room)
        raise SubjectError("the first")


def test_settings_that_cannot_be_written_leave_the_earlier_ones(tmp_path: Path) -> None:
    write_settings(tmp_path, Settings(seed=3))
    before = (tmp_path / "settings.yaml").read_bytes()
    (tmp_path / "settings.yaml.partial").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_settings(tmp_path, Settings(seed=4))
    assert (tmp_path / "settings.yaml").read_bytes() == before


def test_an_interrupted_audit_promises_to_continue_only_where_a_record_was_made(tmp_path: Path) -> None:
    for records in (False, True):
        with pytest.raises(KeyboardInterrupt) as told, claimed(tmp_path / "a", resume=True) as folder:
            started(folder)
            if records:
                (folder / "evaluation").mkdir()
                (folder / "evaluation" / "manifest.json").write_text("{}")
            raise KeyboardInterrupt
        notes = getattr(told.value, "__notes__", [])
        assert any("--resume" in note for note in notes) == records
    assert provenance.read(tmp_path / "a")["exit_code"] == 130


def test_an_empty_model_is_wrong_usage(tmp_path: Path) -> None:
    code, _, said = ask("audit", "", "--out", str(tmp_path / "a"))
    assert code == 2 and "MODEL is empty" in said
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_matches_nothing_is_refused_as_soon_as_the_texts_are_known() -> None:
    words = [("age", "older", "old", False), ("age", "younger", "young", False), (None, None, "tall", True)]
    rows = pd.DataFrame(words, columns=["axis", "group", "term", "control"])
    kept = {"licence": "Apache-2.0", "source": "tests", "intended_construct": "term_swap_effect", "digest": "d" * 64}
    evaluation = EvaluationSet.model_validate(
        {"name": "by-hand", "language": "en", "rows": rows, "excluded": rows.head(0), **kept}
    )
    waiver = {"owner": "Ana", "reason": "known", "expires": "2026-06-30"}
    for fits in ({}, {"groups": ("age/older",)}, {"waivers": ({"hypothesis": "term/age/older/old", **waiver},)}):
        require_matches(evaluation, Policy.model_validate(fits))
    wrong = (
        ({"groups": ("age/oldest",)}, "did you mean 'age/older'"),
        ({"groups": ()}, "selects nothing"),
        ({"waivers": ({"hypothesis": "term/age/older/tall", **waiver},)}, "unknown hypothesis"),
    )
    for policy, said in wrong:
        with pytest.raises(UsageError, match=said):
            require_matches(evaluation, Policy.model_validate(policy))
