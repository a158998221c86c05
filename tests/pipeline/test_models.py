"""From what a user writes to a folder and an identity that stays true."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from pipeline.models import fetched, require_transformers
from pipeline.store import register_classifier
from pipeline.tracking import default_tracking_uri
from tests.pipeline.conftest import Registry
from veedor.errors import StoreError, SubjectError


@pytest.fixture(scope="module")
def client(registry: Registry) -> Iterator[MlflowClient]:
    yield MlflowClient(tracking_uri=registry.uri, registry_uri=registry.uri)


def refused(model: str, registry: Registry) -> str:
    with pytest.raises(SubjectError) as told, fetched(model, tracking_uri=registry.uri):
        pass
    return str(told.value)


def test_a_version_is_downloaded_with_its_logged_model_named(registry: Registry, client: MlflowClient) -> None:
    [version] = client.search_model_versions("name='tiny'")
    with fetched("models:/tiny/1", tracking_uri=registry.uri) as found:
        assert (found.path / "MLmodel").is_file()
        assert list(found.path.rglob("*.safetensors"))
        assert (found.identity.uri, found.identity.version) == ("models:/tiny/1", "1")
        assert f"models:/{found.identity.model_id}" == version.source
        assert found.identity.run_id == version.run_id
        kept = found.path
    assert not kept.exists(), "downloads are removed after the audit"


def test_an_alias_is_pinned_once_and_both_are_kept(registry: Registry) -> None:
    with fetched("models:/tiny@candidate", tracking_uri=registry.uri) as found:
        assert (found.identity.name, found.identity.uri) == ("models:/tiny@candidate", "models:/tiny/1")
        assert (found.identity.alias, found.identity.version) == ("candidate", "1")


def test_a_run_path_and_a_logged_model_lead_to_the_same_model(registry: Registry, client: MlflowClient) -> None:
    [version] = client.search_model_versions("name='tiny'")
    for model in (f"runs:/{version.run_id}/model", str(version.source)):
        with fetched(model, tracking_uri=registry.uri) as found:
            assert f"models:/{found.identity.model_id}" == version.source
            assert found.identity.version is None
            assert (found.path / "MLmodel").is_file()


def test_a_local_folder_needs_no_store(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    with fetched("model", tracking_uri="http://127.0.0.1:9") as found:
        assert found.path == tmp_path / "model"
        assert found.identity.uri is None and found.identity.name == "model"


def test_names_that_do_not_exist_are_answered_with_those_that_do(registry: Registry, tmp_path: Path) -> None:
    assert "did you mean 'tiny'" in refused("models:/tinny/1", registry)
    assert "has no version '7'; there is models:/tiny/1, models:/tiny@candidate" in refused("models:/tiny/7", registry)
    assert "did you mean 'candidate'" in refused("models:/tiny@Candidate", registry), "aliases are told apart by case"
    assert "without a version or alias; there is models:/tiny/1" in refused("models:/tiny", registry)
    assert "no run" in refused(f"runs:/{'0' * 32}/model", registry)
    assert "no logged model" in refused(f"models:/m-{'0' * 32}", registry)
    assert "runs:/run_id/path" in refused("s3://bucket/model", registry)
    (tmp_path / "bert-base").mkdir()
    assert "did you mean 'bert-base'" in refused("bert-bas", registry)


def test_a_path_that_a_run_does_not_hold_is_answered_with_what_it_holds(
    registry: Registry, client: MlflowClient
) -> None:
    [version] = client.search_model_versions("name='tiny'")
    assert "cannot be downloaded" in refused(f"runs:/{version.run_id}/modell", registry)


def test_a_registry_without_models_says_so(uri: str) -> None:
    assert "this registry holds none" in refused("models:/tiny/1", Registry(uri))


def test_a_sqlite_store_that_does_not_exist_is_not_made_by_looking(tmp_path: Path) -> None:
    uri = default_tracking_uri(tmp_path)
    with pytest.raises(StoreError, match="there is no MLflow store at"), fetched("models:/tiny/1", tracking_uri=uri):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_dead_server_is_a_store_error_without_its_password() -> None:
    with (
        pytest.raises(StoreError, match=re.escape("http://***@127.0.0.1:9")),
        fetched("models:/tiny/1", tracking_uri="http://ana:s3cret@127.0.0.1:9"),
    ):
        pass


def test_an_error_inside_the_audit_is_not_blamed_on_the_store(registry: Registry) -> None:
    with pytest.raises(OSError, match="ours"), fetched("models:/tiny/1", tracking_uri=registry.uri):
        raise OSError("ours")


def test_other_flavours_are_named_and_pickles_refused() -> None:
    pickled = {"flavors": {"python_function": {}, "pytorch": {}}}
    with pytest.raises(SubjectError, match=r"flavours python_function, pytorch, expected transformers; reading it"):
        require_transformers("models:/x/1", pickled, trust_pickle=False)
    with pytest.raises(SubjectError, match=r"expected transformers; log it with mlflow\.transformers\.log_model"):
        require_transformers("models:/x/1", pickled, trust_pickle=True)
    with pytest.raises(SubjectError, match="flavours none"):
        require_transformers("models:/x/1", {}, trust_pickle=False)


def test_a_second_version_is_pinned_by_the_moved_alias(registry: Registry, client: MlflowClient) -> None:
    from veedor.subjects.tiny import untrained, whole_word_tokenizer

    tokenizer = whole_word_tokenizer(["another model"])
    model = untrained(tokenizer, ("fine", "bad"), seed=2)
    uri = register_classifier(model, tokenizer, name="moved", alias="best", tracking_uri=registry.uri)
    again = register_classifier(
        model, tokenizer, name="moved", alias="best", tracking_uri=registry.uri, tags={"team": "safety"}
    )
    assert (uri, again) == ("models:/moved/1", "models:/moved/2")
    assert client.get_model_version("moved", "2").tags["team"] == "safety"
    with fetched("models:/moved@best", tracking_uri=registry.uri) as found:
        assert found.identity.version == "2"
