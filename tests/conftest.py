"""What every test may lean on: the shared real models and data, where they are there, and quiet libraries."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # waiting threads must not take turns from working ones
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real models and data beside the checkout; tests that need it skip where it is absent."""
    if not (SHARED / "models").is_dir():
        pytest.skip(f"needs the real models and data in {SHARED}, which are not there")
    return SHARED
