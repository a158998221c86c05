"""MODEL, as a user names it, to a folder on this machine and an identity that stays true.

The only file that loads from MLflow. An alias is resolved once, to a version; both are recorded, so that moving the
alias during an audit changes nothing. Artifacts are downloaded as they are; no model code is run and nothing is
unpickled here: `veedor.subjects` reads the folder.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from pipeline.tracking import (
    client_of,
    connected,
    require_reachable,
    sqlite_file,
    store_faults,
    unusable,
    without_secrets,
)
from veedor.errors import StoreError, SubjectError, UsageError, unknown

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel

FORMS = "models:/name/3, models:/name@alias, runs:/run_id/path, or a local Hugging Face or MLflow model folder"
REGISTERED = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[^/@]+))?")
LOGGED = re.compile(r"models:/(?P<model_id>m-[0-9a-f]{32})")
RUN = re.compile(r"runs:/(?P<run_id>[^/]+)/(?P<path>.+)")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
PICKLED = ("python_function", "pytorch", "sklearn", "catboost", "lightgbm", "xgboost")

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Identity:
    """Which model was meant: `uri` is pinned (a version, never an alias), None for a folder."""

    name: str
    uri: str | None = None
    alias: str | None = None
    version: str | None = None
    model_id: str | None = None
    run_id: str | None = None

    def fields(self) -> dict[str, str | None]:
        """The identity as plain values, under the names of a `SubjectCard`."""
        return asdict(self)


@dataclass(frozen=True)
class Found:
    """A model on this machine."""

    path: Path
    identity: Identity


@contextmanager
def fetched(model: str, *, tracking_uri: str, trust_pickle: bool = False) -> Iterator[Found]:
    """The model as a local folder, for as long as the block lasts; what was downloaded is then removed."""
    require_named(model)
    if SCHEME.match(model) is None:
        yield Found(local_folder(model), Identity(name=without_secrets(model)))
        return
    with tempfile.TemporaryDirectory(prefix="veedor-model-") as folder:
        # Only what is done here is the store's fault; what the block does with the model is not.
        found = bring_here(model, Path(folder), tracking_uri=tracking_uri, trust_pickle=trust_pickle)
        yield found


def require_named(model: str) -> None:
    """UsageError for an empty name, which as a path would mean the current folder."""
    if not model.strip():
        raise UsageError(f"MODEL is empty ({model!r}); MODEL is {FORMS}")


def bring_here(model: str, folder: Path, *, tracking_uri: str, trust_pickle: bool) -> Found:
    """Pin the address and download what it names into the folder."""
    client = reading_client(tracking_uri)
    try:
        return download(pin(model, client), folder, client, trust_pickle=trust_pickle)
    except store_faults() as error:
        raise unusable(tracking_uri, error) from error


def local_folder(model: str) -> Path:
    """The folder a path names; SubjectError names the nearest one beside it."""
    path = Path(model).expanduser()
    if path.is_dir():
        return path.resolve()
    if path.is_file():
        raise SubjectError(f"model {model!r} is a file, expected the folder that holds it; MODEL is {FORMS}")
    parent = path.parent
    beside = [entry.name for entry in parent.iterdir() if entry.is_dir()] if parent.is_dir() else []
    known = unknown("folder", path.name, beside) if beside else f"there is no folder {str(parent)!r} with models"
    raise SubjectError(f"no model at {model!r}: {known}; MODEL is {FORMS} (hub names are not downloaded)")


def reading_client(tracking_uri: str) -> "MlflowClient":
    """A client for a store that must exist already: SQLite would be created, empty, by a typing error."""
    database = sqlite_file(tracking_uri)
    if database is not None and not database.is_file():
        here = Path("mlflow.db").resolve()
        hint = (
            f"--tracking-uri sqlite:///{here}" if here.is_file() else "--tracking-uri URI, or set MLFLOW_TRACKING_URI"
        )
        raise StoreError(f"there is no MLflow store at {database}; name the one that holds the model with {hint}")
    return client_of(tracking_uri)


def pin(model: str, client: "MlflowClient") -> Identity:
    """Find what the address names and pin it to what never moves."""
    if logged := LOGGED.fullmatch(model):
        return pin_logged(model, logged["model_id"], client)
    if registered := REGISTERED.fullmatch(model):
        return pin_registered(model, registered, client)
    if run := RUN.fullmatch(model):
        return pin_run(model, run["run_id"], client)
    raise SubjectError(f"cannot read the model address {without_secrets(model)!r}; MODEL is {FORMS}")


def pin_registered(model: str, parts: re.Match[str], client: "MlflowClient") -> Identity:
    """A registered model by version or alias; SubjectError lists versions and aliases that exist."""
    registered = registered_model(parts["name"], client)
    version = parts["version"]
    if parts["alias"]:
        version = str(registered.aliases.get(parts["alias"], "")) or missing_alias(parts["alias"], registered, client)
    existing = versions(registered.name, client)
    if version not in existing:
        asked = f"has no version {version!r}" if version else "is named without a version or alias"
        raise SubjectError(f"registered model {registered.name!r} {asked}; {offered(registered, existing)}")
    found = existing[version]
    return Identity(
        name=model,
        uri=f"models:/{registered.name}/{version}",
        alias=parts["alias"],
        version=version,
        model_id=model_id_of(found),
        run_id=found.run_id or None,
    )


def registered_model(name: str, client: "MlflowClient") -> "RegisteredModel":
    """The registered model of this name; SubjectError names the nearest."""
    found = nothing_if_missing(client.get_registered_model, name)
    if found is not None:
        return found
    names = [registered.name for registered in client.search_registered_models(max_results=1000)]
    if not names:
        raise SubjectError(
            f"no registered model {name!r}: this registry holds none; register one, or check the address"
        )
    raise SubjectError(unknown("registered model", name, names))


def versions(name: str, client: "MlflowClient") -> "dict[str, ModelVersion]":
    """Every version of a registered model, by number as text."""
    quoted = name.replace("'", "\\'")
    return {str(version.version): version for version in client.search_model_versions(f"name='{quoted}'")}


def missing_alias(alias: str, registered: "RegisteredModel", client: "MlflowClient") -> str:
    """Raise the SubjectError for an alias that is not set; aliases are told apart by case."""
    known = unknown("alias", alias, registered.aliases) if registered.aliases else f"no alias {alias!r}: none is set"
    existing = versions(registered.name, client)
    raise SubjectError(f"registered model {registered.name!r}: {known}; {offered(registered, existing)}")


def offered(registered: "RegisteredModel", existing: "dict[str, ModelVersion]") -> str:
    """What of this registered model can be named.

    >>> from types import SimpleNamespace
    >>> offered(SimpleNamespace(name="x", aliases={"best": 2}), {"1": None, "2": None})
    'there is models:/x/1, models:/x/2, models:/x@best'
    """
    numbered = [f"models:/{registered.name}/{number}" for number in sorted(existing, key=int)]
    named = [f"models:/{registered.name}@{alias}" for alias in sorted(registered.aliases)]
    return f"there is {', '.join(numbered[-10:] + named)}" if numbered else "it has no versions"


def model_id_of(version: "ModelVersion") -> str | None:
    """The logged model behind a version: over REST only its source says which."""
    source = LOGGED.fullmatch(version.source or "")
    return version.model_id or (source["model_id"] if source else None)


def pin_logged(model: str, model_id: str, client: "MlflowClient") -> Identity:
    """A logged model by its own id, which never moves."""
    found = nothing_if_missing(client.get_logged_model, model_id)
    if found is None:
        raise SubjectError(f"no logged model {model_id!r} in this store; MODEL is {FORMS}")
    return Identity(name=model, uri=model, model_id=model_id, run_id=found.source_run_id or None)


def pin_run(model: str, run_id: str, client: "MlflowClient") -> Identity:
    """A model among a run's artifacts; which logged model it is, its MLmodel file says after the download."""
    if nothing_if_missing(client.get_run, run_id) is None:
        raise SubjectError(f"no run {run_id!r} in this store; MODEL is {FORMS}")
    return Identity(name=model, uri=model, run_id=run_id)


def nothing_if_missing(ask: Callable[..., Answer], given: str) -> Answer | None:
    """What a client's question returns, None where MLflow says that there is no such thing."""
    from mlflow.exceptions import MlflowException

    try:
        return ask(given)
    except MlflowException as error:
        if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND"):
            return None
        raise


def download(identity: Identity, folder: Path, client: "MlflowClient", *, trust_pickle: bool) -> Found:
    """Check the flavour before the rest is brought, from the small MLmodel file where it has an address of its own."""
    path = folder / "model"
    if LOGGED.fullmatch(str(identity.uri)):
        path = bring(identity, "", path, client)
        description = described(identity, path / "MLmodel", trust_pickle=trust_pickle)
    else:
        small = bring(identity, "/MLmodel", folder / "description", client)
        description = described(identity, small, trust_pickle=trust_pickle)
        path = bring(identity, "", path, client)
    model_id = identity.model_id or description.get("model_id")
    return Found(path, replace(identity, model_id=model_id, run_id=identity.run_id or description.get("run_id")))


def bring(identity: Identity, part: str, place: Path, client: "MlflowClient") -> Path:
    """Download the model, or a part of it; a store that is gone is told from a model that is not there."""
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    try:
        with connected(client.tracking_uri):  # MLflow's own arguments for it do not reach the registry
            return Path(download_artifacts(artifact_uri=f"{identity.uri}{part}", dst_path=str(place)))
    except (MlflowException, OSError) as error:
        require_reachable(client.tracking_uri)
        raise SubjectError(f"{identity.name} cannot be downloaded: {missing(identity, error, client)}") from error


def missing(identity: Identity, error: Exception, client: "MlflowClient") -> str:
    """What the store said, and for a run what it holds."""
    said = without_secrets(str(error)).strip()[:300]
    if not (identity.uri or "").startswith("runs:/") or identity.run_id is None:
        return said
    held = [artifact.path for artifact in client.list_artifacts(identity.run_id) if artifact.is_dir]
    return f"{said}; the run holds {', '.join(held) or 'no artifact folder'}"


def described(identity: Identity, path: Path, *, trust_pickle: bool) -> dict[str, Any]:
    """The content of an MLmodel file, if the model is one that can be audited."""
    try:
        content = dict(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except (OSError, ValueError, yaml.YAMLError) as error:
        way_out = "log the model again with mlflow.transformers.log_model"
        raise SubjectError(f"{identity.name} has no MLmodel file that can be read: {error}; {way_out}") from error
    require_transformers(identity.name, content, trust_pickle=trust_pickle)
    return content


def require_transformers(name: str, description: dict[str, Any], *, trust_pickle: bool) -> None:
    """SubjectError unless the model was logged with the transformers flavour, which brings config and tokenizer."""
    flavours = sorted(description.get("flavors") or {})
    if "transformers" in flavours:
        return
    way_out = "log it with mlflow.transformers.log_model, which keeps safetensors, config and tokenizer"
    held = ", ".join(flavours) or "none"
    if any(flavour in PICKLED for flavour in flavours) and not trust_pickle:
        raise SubjectError(
            f"{name} has the flavours {held}, expected transformers; reading it would unpickle, which runs code it "
            f"holds, and is refused; {way_out}"
        )
    raise SubjectError(f"{name} has the flavours {held}, expected transformers; {way_out}")
