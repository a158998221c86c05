"""The command line: exit codes, messages, and what each command leaves behind."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from pipeline.cli import app, default_folder
from pipeline.options import settings_of
from veedor import __version__
from veedor.errors import UsageError
from veedor.records import sha256
from veedor.settings import Policy, read_policy

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "transformers", "datasets", "great_expectations", "mlflow", "pandas", "numpy", "weasyprint", "yaml")
Write = Callable[..., Path]


def ask(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command run in this process."""
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def run(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process of its own, from another working directory."""
    command = [sys.executable, str(ROOT / "veedor" / "__main__.py"), *arguments]
    path = {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=os.environ | path | environment, capture_output=True, text=True, check=False
    )


def snapshot(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def written(folder: Path, name: str, **policy: object) -> str:
    path = folder / name
    path.write_text(yaml.safe_dump(policy))
    return str(path)


def test_help_answers_in_under_half_a_second_and_shows_examples_and_exit_codes(tmp_path: Path) -> None:
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        done = run("--help", folder=tmp_path)
        seconds.append(time.perf_counter() - start)
    assert done.returncode == 0 and "evaluation-sets" in done.stdout and "3 INCONCLUSIVE" in done.stdout
    assert min(seconds) < 0.5, seconds
    assert "veedor audit models:/toxicity@candidate" in ask("audit", "--help")[1]


def test_nothing_heavy_is_imported_before_a_command_runs(tmp_path: Path) -> None:
    code = f"import sys, pipeline.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_the_packages() -> None:
    assert ask("--version")[:2] == (0, f"veedor {__version__}\n")


def test_wrong_usage_is_exit_2_and_names_what_is_known(tmp_path: Path, finished_audit: Write) -> None:
    assert ask("audit")[0] == 2
    assert ask("audit", "model", "--no-such-option")[0] == 2
    assert ask("audit", "model", "--limit", "many")[0] == 2
    code, _, said = ask("audit", "model", "--methods", "rolout")
    assert code == 2 and "did you mean 'rollout'" in said
    code, _, said = ask("audit", "model", "--language", "fr")
    assert code == 2 and "languages" in said and "'fr'" in said
    code, _, said = ask("audit", "model", "--settings", written(tmp_path, "s.yaml", sed=3))
    assert code == 2 and "did you mean 'seed'" in said and "s.yaml" in said
    code, _, said = ask("gate", str(tmp_path / "nowhere"))
    assert code == 2 and "no audit folder" in said
    assert not (tmp_path / "audits").exists(), "nothing was begun"


def test_a_model_that_is_not_there_is_exit_4_and_a_dead_server_exit_6() -> None:
    assert ask("audit", "no/such/model")[0] == 4
    code, _, said = ask("audit", "models:/x/1", "--tracking-uri", "http://ana:s3cret@127.0.0.1:9")
    assert code == 6 and "s3cret" not in said


def test_a_fault_of_ours_is_exit_70_and_leaves_a_traceback(finished_audit: Write) -> None:
    """A record that parses as JSON and is no record: nothing a user can have done by the command line."""
    folder = finished_audit()
    (folder / "decisions" / "record.json").write_text("[]")
    code, _, said = ask("gate", str(folder))
    assert code == 70 and "a fault of ours" in said
    assert "Traceback" in Path(said.rsplit(" ", 1)[-1].strip()).read_text()


def test_command_line_options_override_the_settings_file_and_empty_ones_count_as_not_given(tmp_path: Path) -> None:
    file = written(tmp_path, "s.yaml", seed=3, target="toxic", policy={"margin": 1.0})
    policy = written(tmp_path, "p.yaml", margin=0.5)
    told = settings_of(file, None, {"seed": 4, "target": None, "methods": ()})
    assert (told.seed, told.target, told.policy.margin) == (4, "toxic", 1.0)
    assert settings_of(file, policy, {}).policy.margin == 0.5
    assert settings_of(file, None, {"seed": 0}).seed == 0, "zero is a value"


def test_the_default_folder_is_named_after_model_and_time_and_resume_finds_the_newest(tmp_path: Path) -> None:
    assert default_folder("models:/toxicity@candidate", resume=False).name.startswith("toxicity-candidate-2")
    assert default_folder("path/to/my model/", resume=False).name.startswith("my-model-2")
    assert default_folder("models:/toxicity/3", resume=False).name.startswith("toxicity-3-2")
    with pytest.raises(UsageError, match="no earlier audit"):
        default_folder("models:/toxicity/3", resume=True)
    for when in ("20260101-000000", "20260301-000000"):
        (tmp_path / "audits" / f"toxicity-3-{when}").mkdir(parents=True)
    assert default_folder("models:/toxicity/3", resume=True).name == "toxicity-3-20260301-000000"


def test_the_policy_that_init_writes_is_the_default_and_can_be_read(tmp_path: Path) -> None:
    code, text, _ = ask("policy", "init")
    (tmp_path / "p.yaml").write_text(text)
    assert code == 0 and read_policy(tmp_path / "p.yaml").digest() == Policy().digest()
    keys = {line.split(":")[0] for line in text.splitlines() if line and not line.startswith("#")}
    assert keys == set(Policy.model_fields), "every key stands there, commented"
    assert ask("policy", "init", str(tmp_path / "p.yaml"))[0] == 2, "an existing file is never written over"
    assert ask("policy", "check", str(tmp_path / "p.yaml"))[0] == 0


def test_policy_check_names_the_fault(tmp_path: Path) -> None:
    code, _, said = ask("policy", "check", written(tmp_path, "p.yaml", marging=0.5))
    assert code == 2 and "did you mean 'margin'" in said
    code, _, said = ask("policy", "check", written(tmp_path, "p.yaml", scale="probability"))
    assert code == 2 and "explicit margin" in said


def test_policy_explain_gives_the_margin_in_percentage_points(tmp_path: Path) -> None:
    """Odds of 1 doubled and halved: 2/3 and 1/3; odds of 1/9: 2/11 and 1/19."""
    code, text, _ = ask("policy", "explain")
    said = " ".join(text.split())
    assert code == 0 and "factor of 2.00" in said
    for percent in ("66.7 %", "33.3 %", "18.2 %", "5.3 %"):
        assert percent in said
    told = ask("policy", "explain", written(tmp_path, "p.yaml", scale="probability", margin=0.05))[1]
    assert "5 percentage points" in " ".join(told.split())


def test_gate_judges_stored_findings_by_the_stored_policy_and_writes_nothing(finished_audit: Write) -> None:
    folder = finished_audit()
    before = snapshot(folder)
    code, told, _ = ask("gate", str(folder))
    assert code == 1 and told.startswith("FAIL") and "group/age/older" in told and "+1.50" in told
    assert snapshot(folder) == before


def test_gate_takes_another_margin(finished_audit: Write, tmp_path: Path) -> None:
    code, told, _ = ask("gate", str(finished_audit()), "--policy", written(tmp_path, "p.yaml", margin=2.5))
    assert code in (0, 3) and "FAIL" not in told


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ({"target": "fine"}, "target"),
        ({"scale": "probability", "margin": 0.05}, "scale"),
        ({"label_map": {"a": "bad"}}, "label_map"),
    ],
)
def test_gate_refuses_what_was_not_measured(
    finished_audit: Write, tmp_path: Path, policy: dict[str, object], key: str
) -> None:
    code, _, said = ask("gate", str(finished_audit()), "--policy", written(tmp_path, "p.yaml", **policy))
    assert code == 2 and key in said and "a new audit is needed" in said


def test_gate_says_when_the_policy_lets_an_undecided_audit_pass(finished_audit: Write, tmp_path: Path) -> None:
    blocked = written(tmp_path, "block.yaml", margin=1.5, fail_when="demonstrated")
    passed = written(tmp_path, "pass.yaml", margin=1.5, fail_when="demonstrated", inconclusive="pass")
    folder = str(finished_audit())
    assert ask("gate", folder, "--policy", blocked)[0] == 3
    code, told, _ = ask("gate", folder, "--policy", passed)
    assert code == 0 and "the policy lets it pass" in told


def test_altered_findings_are_not_judged(finished_audit: Write) -> None:
    folder = finished_audit()
    record = folder / "findings" / "record.json"
    record.write_text(record.read_text().replace("1.5", "0.0"))
    code, _, said = ask("gate", str(folder))
    assert code == 2 and "altered" in said


def test_log_says_the_run_and_says_so_when_it_was_logged_already(finished_audit: Write, uri: str) -> None:
    folder = str(finished_audit())
    code, first, _ = ask("log", folder, "--tracking-uri", uri)
    assert code == 0 and first.startswith("logged: run ")
    code, second, _ = ask("log", folder, "--tracking-uri", uri)
    assert code == 0 and "already" in second and first.split()[2] in second
    assert ask("log", folder, "--tracking-uri", "http://127.0.0.1:9")[0] == 6


@pytest.mark.parametrize(("command", "expected"), [("methods", "rollout"), ("metrics", "term_swap_effect")])
def test_the_contents_pages_are_listed(command: str, expected: str) -> None:
    code, told, _ = ask(command)
    assert code == 0 and expected in told


def test_evaluation_sets_are_listed() -> None:
    code, told, _ = ask("evaluation-sets")
    assert code == 0 and "identity-terms-en" in told and "built in" in told


def test_validate_shows_every_check_and_answers_5_for_a_broken_set(tmp_path: Path) -> None:
    good = tmp_path / "good.csv"
    good.write_text("text\nI met a Muslim person today.\nA gay man sang.\nThe Muslim neighbour waved.\n")
    code, told, said = ask("validate", str(good), "--show-swaps")
    assert code == 0, said
    assert "id_unique" in told and "muslim" in told.lower()
    empty = tmp_path / "empty.csv"
    empty.write_text("text\n")
    assert ask("validate", str(empty))[0] == 5
    assert ask("validate", "identity-terms-xx")[0] == 2


def test_installed_by_a_wheel_or_not_the_program_finds_its_project(tmp_path: Path) -> None:
    done = run("policy", "explain", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    module = subprocess.run(
        [sys.executable, "-m", "pipeline", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert module.stdout == f"veedor {__version__}\n"


def test_exit_codes_reach_the_shell(tmp_path: Path, finished_audit: Write) -> None:
    def code(arguments: Sequence[str]) -> int:
        return run(*arguments, folder=tmp_path).returncode

    assert code(["gate", str(finished_audit())]) == 1
    assert code(["gate", "nowhere"]) == 2
    assert code(["audit", "nowhere", "--no-log"]) == 4


def test_escapes_in_a_users_file_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    file = tmp_path / "evil.csv"
    file.write_text("text\nA gay man \x1b[31m sang.\nA Muslim man \u202esat.\nplain \x1b]0;pwn\n", encoding="utf-8")
    _, told, said = ask("validate", str(file), "--show-swaps")
    assert r"\x1b[31m" in told
    assert not set("\x1b\u202e") & set(told + said)


def test_escapes_in_names_are_shown_and_not_obeyed_in_errors(tmp_path: Path) -> None:
    for command in (["audit", "no\x1b[31m"], ["policy", "check", written(tmp_path, "p.yaml", **{"a\x1b[31m": 1})]):
        code, told, said = ask(*command)
        assert code in (2, 4) and r"\x1b[31m" in said and "\x1b" not in told + said


def test_a_very_long_text_is_cropped_around_its_word(tmp_path: Path) -> None:
    file = tmp_path / "long.csv"
    file.write_text(f"text\n{'so ' * 300_000}the gay man sang{' so' * 30_000}\n")
    began = time.perf_counter()
    _, told, _ = ask("validate", str(file), "--show-swaps")
    assert time.perf_counter() - began < 20
    assert "gay" in told.split("rows\n")[-1] and len(told) < 100_000


def test_methods_without_a_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for a run of the MLproject, which cannot leave the option out."""
    code, _, said = ask("audit", "model", "--methods", " , ")
    assert code == 2 and "holds no name" in said
    code, _, said = ask("audit", "no/such/model", "--methods", "")
    assert code == 2 and "--methods is empty" in said
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)
    assert ask("audit", "no/such/model", "--methods", "", "--no-log")[0] == 4


def test_the_limit_is_explained_as_whole_contexts() -> None:
    told = " ".join(ask("audit", "--help")[1].split())
    assert "at least one" in told and "12 contexts" in told


def test_explain_says_that_the_target_was_assumed_and_shows_escapes(tmp_path: Path) -> None:
    from veedor.subjects.tiny import untrained, whole_word_tokenizer

    tokenizer = whole_word_tokenizer(("an old person sang .",))
    untrained(tokenizer, ("fine", "bad"), seed=1).save_pretrained(tmp_path / "m")
    tokenizer.save_pretrained(tmp_path / "m")
    options = ("--method", "occlusion", "--html", str(tmp_path / "page.html"))
    code, told, said = ask("explain", str(tmp_path / "m"), "an old\x1b[31m person \u202esang .", *options)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert code == 0, said
    assert "assumed: label 1 of two" in told and "assumed: label 1 of two" in page
    assert r"\x1b[31m" in told and not set("\x1b\u202e") & set(told + page)
    assert "assumed" not in ask("explain", str(tmp_path / "m"), "old person", "--target", "bad", *options)[1]
