"""What is made again and what is kept."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pipeline.folder import Desk, make, origins, write_settings
from pipeline.plan import PLAN, RECORDS, Step
from tests.pipeline.by_hand import CALLS
from veedor.errors import UsageError
from veedor.settings import Settings, read_settings

COLLECT = Step(
    "tests.pipeline.by_hand:collect",
    reads=("settings", "subject_language"),
    writes="evaluation",
    record="EvaluationSet",
    uses=("evaluation_set", "seed"),
)
JUDGE = Step(
    "tests.pipeline.by_hand:judge",
    reads=("evaluation", "policy", "today"),
    writes="verdict",
    record="Verdict",
    uses=("policy",),
)


@pytest.fixture(autouse=True)
def no_calls_yet() -> Iterator[None]:
    CALLS.clear()
    yield


def run(folder: Path, settings: dict[str, Any] | None = None, today: date = date(2026, 1, 1)) -> list[str]:
    """Run both steps on the folder; returns which were really run."""
    CALLS.clear()
    folder.mkdir(exist_ok=True)
    told = Settings.model_validate(settings or {})
    lent = {"settings": told, "policy": told.policy, "subject_language": "en", "today": today}
    desk = Desk(folder, told, lent)
    for step in (COLLECT, JUDGE):
        make(step, desk)
    return list(CALLS)


def test_nothing_is_made_again_when_nothing_changed(tmp_path: Path) -> None:
    assert run(tmp_path / "a") == ["collect", "judge"]
    assert run(tmp_path / "a") == []


def test_a_setting_that_a_step_does_not_read_makes_nothing_again(tmp_path: Path) -> None:
    run(tmp_path / "a")
    assert run(tmp_path / "a", {"languages": ("es",), "owner": "Ana", "methods": ("random",)}) == []


def test_a_new_policy_is_judged_again_without_collecting_again(tmp_path: Path) -> None:
    run(tmp_path / "a")
    assert run(tmp_path / "a", {"policy": {"margin": 0.4}}) == ["judge"]


def test_what_rests_on_a_changed_record_is_made_again(tmp_path: Path) -> None:
    run(tmp_path / "a")
    assert run(tmp_path / "a", {"seed": 1}) == ["collect", "judge"]


def test_an_altered_record_is_made_again_and_what_rests_on_the_same_bytes_is_kept(tmp_path: Path) -> None:
    run(tmp_path / "a")
    record = tmp_path / "a" / "evaluation" / "record.json"
    before = record.read_bytes()
    record.write_text("{}")
    assert run(tmp_path / "a") == ["collect"]
    assert record.read_bytes() == before


def test_a_record_cut_off_while_it_was_written_is_made_again(tmp_path: Path) -> None:
    run(tmp_path / "a")
    (tmp_path / "a" / "evaluation" / "manifest.json").unlink()
    assert run(tmp_path / "a") == ["collect"]


def test_the_date_matters_only_where_there_are_waivers(tmp_path: Path) -> None:
    waiver = {"hypothesis": "group/age/older", "owner": "Ana", "reason": "known", "expires": "2026-06-30"}
    run(tmp_path / "a")
    assert run(tmp_path / "a", today=date(2027, 1, 1)) == []
    with_waiver = {"policy": {"waivers": (waiver,)}}
    run(tmp_path / "a", with_waiver)
    assert run(tmp_path / "a", with_waiver, today=date(2027, 1, 1)) == ["judge"]


def test_a_changed_file_is_read_again_and_a_renamed_setting_is_not_enough(tmp_path: Path) -> None:
    texts = tmp_path / "texts.csv"
    texts.write_text("text\na\n")
    run(tmp_path / "a", {"evaluation_set": str(texts)})
    assert run(tmp_path / "a", {"evaluation_set": str(texts)}) == []
    texts.write_text("text\nb\n")
    assert run(tmp_path / "a", {"evaluation_set": str(texts)})[0] == "collect"


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b")
    for name in ("evaluation", "verdict"):
        files = sorted((tmp_path / "a" / name).iterdir())
        assert files
        for file in files:
            assert file.read_bytes() == (tmp_path / "b" / name / file.name).read_bytes(), file


def test_settings_come_back_as_they_were_written(tmp_path: Path) -> None:
    waiver = {"hypothesis": "term/age/older/old", "owner": "Ana Núñez", "reason": "x: y", "expires": "2026-06-30"}
    policy = {"waivers": (waiver,), "label_map": {"no": "yes"}}
    told = Settings.model_validate({"target": "bad", "policy": policy, "languages": ("es",)})
    write_settings(tmp_path, told)
    assert read_settings(tmp_path / "settings.yaml") == told


def test_a_missing_record_names_the_step_to_run_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Settings(), {})
    with pytest.raises(UsageError, match=r"run `python -m pipeline step measure --out .*` first"):
        desk.value("findings")


def test_every_step_reads_only_what_is_lent_or_was_made_before() -> None:
    known = {"settings", "subject", "subject_language", "policy", "today", "progress", "provenance", "folder"}
    for step in PLAN:
        assert set(step.reads) <= known, step
        known.add(step.writes)


def test_every_setting_that_changes_evidence_is_read_by_some_step() -> None:
    """A setting that no step uses would be changed without any record being made again."""
    used = {key.partition(".")[0] for step in PLAN for key in step.uses}
    through_the_subject = {"head", "trust_pickle"}
    report_only = {"languages", "owner", "intended_use"}
    assert set(Settings.model_fields) == used | through_the_subject | report_only


def test_every_step_of_the_plan_takes_what_the_plan_gives_it() -> None:
    import inspect

    for step in PLAN:
        parameters = set(inspect.signature(step.load()).parameters)
        assert parameters == set(step.reads), step.name


def test_origins_tell_the_audited_model_apart() -> None:
    assert set(RECORDS) == {"evaluation", "decisions", "attributions", "reliability", "findings", "verdict"}
    assert origins(COLLECT, Desk(Path(), Settings(), {"subject_language": None}))["veedor"]
