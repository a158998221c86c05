"""MLproject and python_env.yaml: every entry point is a command that exists, and no trap of `mlflow run` is set."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from pipeline.cli import app
from pipeline.plan import STEPS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = yaml.safe_load((ROOT / "MLproject").read_text())
ENTRY_POINTS: dict[str, dict[str, Any]] = PROJECT["entry_points"]


def test_there_is_an_entry_point_for_all_and_one_for_each_step() -> None:
    assert set(ENTRY_POINTS) == {"main", "demo", *STEPS}


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_option_of_an_entry_point_is_one_of_its_command(name: str) -> None:
    words = ENTRY_POINTS[name]["command"].split()
    assert words[:3] == ["python", "-m", "pipeline"], "a file run as a script cannot import its neighbours"
    command = get_command(app).commands[words[3]]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
    if words[3] == "step":
        assert words[4] == name


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_parameter_is_a_string_and_used(name: str) -> None:
    """A parameter of type path would have to exist before the step has written it."""
    parameters = ENTRY_POINTS[name]["parameters"]
    assert {parameter["type"] for parameter in parameters.values()} == {"string"}
    assert set(re.findall(r"{(\w+)}", ENTRY_POINTS[name]["command"])) == set(parameters)


def test_the_environment_follows_the_pins_and_not_the_package() -> None:
    environment = yaml.safe_load((ROOT / PROJECT["python_env"]).read_text())
    assert environment["dependencies"] == ["-r requirements.txt"]
    assert environment["python"] == "3.11"
    assert (ROOT / "requirements.txt").is_file()
    assert not (ROOT / "uv.lock").exists(), "MLflow would build the environment from it"
