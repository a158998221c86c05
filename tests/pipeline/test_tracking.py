"""Which store is meant, and how its address is written."""

from pathlib import Path

import pytest

from pipeline.tracking import absolute, connected, tracking_uri_for, without_secrets


def test_the_store_is_the_given_one_else_the_environments_else_beside_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "audits" / "one"
    assert tracking_uri_for(out, None) == f"sqlite:///{tmp_path / 'audits' / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://host:5000")
    assert tracking_uri_for(out, None) == "http://host:5000"
    assert tracking_uri_for(out, "https://other") == "https://other"


def test_a_relative_sqlite_path_means_the_same_from_everywhere(tmp_path: Path) -> None:
    assert absolute("sqlite:///mlflow.db") == f"sqlite:///{tmp_path / 'mlflow.db'}"


@pytest.mark.parametrize(
    "text",
    [
        "https://ana:s3cret@host:5000/x",
        "postgresql+psycopg2://ana:s3cret@db/mlflow",
        "https://host/x?access_token=s3cret&page=2",
        "http://host/?api_key=s3cret",
        "mysql://s3cret@host/db",
        "veedor audit m --tracking-uri=https://ana:s3cret@host",
        "failed: https://ana:p@s3cret@host/x",
    ],
)
def test_secrets_are_never_shown(text: str) -> None:
    assert "s3cret" not in without_secrets(text)


def test_addresses_without_secrets_are_shown_as_they_are() -> None:
    for text in ("sqlite:////srv/audits/mlflow.db", "models:/toxicity@candidate", "http://127.0.0.1:5000/#/x?page=2"):
        assert without_secrets(text) == text


def test_the_earlier_tracking_store_is_put_back(tmp_path: Path) -> None:
    import os

    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'before.db'}")
    with connected(f"sqlite:///{tmp_path / 'inside.db'}"):
        assert mlflow.get_tracking_uri().endswith("inside.db")
    assert mlflow.get_tracking_uri().endswith("before.db")
    mlflow.set_tracking_uri(None)  # type: ignore[arg-type]
    assert "MLFLOW_TRACKING_URI" not in os.environ
    with connected(f"sqlite:///{tmp_path / 'inside.db'}"):
        pass
    assert "MLFLOW_TRACKING_URI" not in os.environ
