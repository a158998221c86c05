"""A tiny classifier on disk and in registries, a real MLflow server, and the command line in processes of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER_SECONDS = 90
SMALL = ("--limit", "600", "--target", "flagged", "--language", "en", "--settings", "s.yaml")
SETTINGS = "{attribution_rows: 60, threads: 1, methods: [rollout, occlusion]}"
# MLflow's use of SQLAlchemy 2.1, not ours.
THEIRS = ("ignore:The ``noload`` loader strategy:DeprecationWarning",)
Command = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Warnings are errors here, but for those that MLflow raises on its own."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def classifier() -> tuple[Any, Any]:
    """An untrained two-label BERT that knows every word of the English identity terms."""
    from veedor.evaluation.templates import build_identity_terms
    from veedor.subjects.tiny import untrained, whole_word_tokenizer

    tokenizer = whole_word_tokenizer(build_identity_terms("en").rows["text"])
    return untrained(tokenizer, ("acceptable", "flagged"), seed=3), tokenizer


@pytest.fixture(scope="session")
def model_folder(classifier: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The classifier as a Hugging Face folder."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    for part in classifier:
        part.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def server(classifier: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real MLflow server on this machine; it holds the classifier as models:/tiny@candidate."""
    from pipeline.store import register_classifier

    place = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{place / 'mlflow.db'}", "--artifacts-destination", str(place / "a")]
    environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address, process, place / "log")
            register_classifier(*classifier, name="tiny", alias="candidate", tracking_uri=address)
            yield address
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Return once the server is healthy; fail with its log where it ends or takes too long."""
    end = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(f"{address}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"no MLflow server at {address} after {SERVER_SECONDS} s:\n{log.read_text()[-2000:]}")


def environment(**changed: str) -> dict[str, str]:
    """This process' environment without a tracking store, with the checkout on the path."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    return kept | {"PYTHONPATH": str(ROOT), "MLFLOW_DISABLE_TELEMETRY": "true", "OMP_NUM_THREADS": "1"} | changed


def run_in(folder: Path, *arguments: str, **changed: str) -> "subprocess.CompletedProcess[str]":
    """The command line in a process of its own."""
    command = [sys.executable, str(ROOT / "veedor" / "__main__.py"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment(**changed), capture_output=True, text=True, check=False)


@pytest.fixture
def veedor(tmp_path: Path) -> Command:
    """Run the command line in an empty folder that holds `s.yaml`, the settings of a small audit."""
    (tmp_path / "s.yaml").write_text(SETTINGS)

    def run(*arguments: str, **changed: str) -> "subprocess.CompletedProcess[str]":
        return run_in(tmp_path, *arguments, **changed)

    return run


@pytest.fixture(scope="session")
def finished(
    model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> "tuple[Path, subprocess.CompletedProcess[str]]":
    """A finished small audit that was not logged, and what the command said. Copy it before changing it."""
    place = tmp_path_factory.mktemp("finished")
    (place / "s.yaml").write_text(SETTINGS)
    done = run_in(place, "audit", str(model_folder), *SMALL, "--no-log", "--out", "a")
    assert done.returncode in (0, 1, 3), done.stderr
    return place / "a", done


@pytest.fixture
def copied(finished: "tuple[Path, subprocess.CompletedProcess[str]]", tmp_path: Path) -> Path:
    """A copy of the finished audit, as `a` in the test's folder."""
    return Path(shutil.copytree(finished[0], tmp_path / "a"))
