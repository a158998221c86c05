"""Which MLflow store is meant, whether it answers, and how its address is written without secrets.

Shared by the file that loads and the file that logs; nothing is loaded or logged here.
"""

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from veedor.errors import StoreError

if TYPE_CHECKING:
    from mlflow import MlflowClient

CONNECT_SECONDS = 5.0
# A dead server must be told from a slow one in seconds: MLflow's own defaults retry for minutes.
ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
}
CREDENTIALS = re.compile(r"://[^/\s]*@")
SECRET_VALUES = re.compile(
    r"([?&;\s][^=&\s]*(?:token|password|passwd|secret|key|signature|sig)[^=&\s]*[=])[^&\s]+", re.IGNORECASE
)
SQLITE = "sqlite:///"
STORES = "sqlite:////absolute/mlflow.db or http://host:5000"


def without_secrets(text: str) -> str:
    """The text with passwords in addresses and secret query values replaced by stars.

    >>> without_secrets("models at https://ana:s3cret@host/x?token=abc&page=2")
    'models at https://***@host/x?token=***&page=2'
    """
    return SECRET_VALUES.sub(r"\1***", CREDENTIALS.sub("://***@", text))


def default_tracking_uri(folder: Path) -> str:
    """The SQLite store in this folder, by absolute path.

    >>> default_tracking_uri(Path("/srv/audits"))
    'sqlite:////srv/audits/mlflow.db'
    """
    return f"{SQLITE}{folder.resolve() / 'mlflow.db'}"


def tracking_uri_for(out: Path, given: str | None) -> str:
    """The store an audit folder belongs to: the given one, else MLFLOW_TRACKING_URI, else SQLite beside the folder."""
    uri = given or os.environ.get("MLFLOW_TRACKING_URI") or default_tracking_uri(out.resolve().parent)
    return absolute(uri)


def absolute(uri: str) -> str:
    """A SQLite address with its path made absolute, so that it means the same from every working directory."""
    if not uri.startswith(SQLITE):
        return uri
    path, mark, options = uri[len(SQLITE) :].partition("?")
    return f"{SQLITE}{Path(path).resolve()}{mark}{options}"


def registry_uri_for(tracking_uri: str) -> str:
    """The registry that goes with a tracking store: MLFLOW_REGISTRY_URI where it is set, else the store itself."""
    return os.environ.get("MLFLOW_REGISTRY_URI") or tracking_uri


def sqlite_file(uri: str) -> Path | None:
    """The database file of a SQLite address, None for any other."""
    return Path(uri[len(SQLITE) :].partition("?")[0]) if uri.startswith(SQLITE) else None


def require_place(uri: str) -> None:
    """StoreError for a SQLite file in a folder that does not exist: a typing error would make one."""
    database = sqlite_file(uri)
    if database is not None and str(database) not in ("", ":memory:") and not database.resolve().parent.is_dir():
        raise StoreError(
            f"there is no folder {database.resolve().parent} for the MLflow store {without_secrets(uri)}; correct "
            f"--tracking-uri, or make the folder first"
        )


def prepare() -> None:
    """Set MLflow's environment where the user has not; its loggers read it when MLflow is imported."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    logging.getLogger("alembic").setLevel(logging.ERROR)


def require_reachable(uri: str) -> None:
    """StoreError unless something listens at an http(s) address; proxies are trusted, other schemes pass."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    if getproxies().get(parts.scheme) and not proxy_bypass(parts.hostname):
        return
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise StoreError(
            f"the MLflow server {without_secrets(uri)} does not answer ({error}); start it, or give another "
            f"--tracking-uri, such as {STORES}"
        ) from error


def unusable(uri: str, error: Exception) -> StoreError:
    """The StoreError for what MLflow, the network or the disk said, without secrets."""
    if isinstance(error, StoreError):
        return error
    said = without_secrets(str(error)).strip().splitlines()
    what = said[0][:300] if said else type(error).__name__
    hint = ""
    if "maintenance mode" in what:
        what = "MLflow no longer reads file stores (./mlruns)"
        hint = "; use a SQLite store or a server, or move the old one with `mlflow migrate-filestore`"
    return StoreError(f"the MLflow store {without_secrets(uri)} cannot be used: {what}{hint}; expected {STORES}")


def client_of(uri: str) -> "MlflowClient":
    """A client for the store at this address and the registry that goes with it."""
    prepare()
    require_reachable(uri)
    from mlflow import MlflowClient

    try:
        return MlflowClient(tracking_uri=uri, registry_uri=registry_uri_for(uri))
    except store_faults() as error:
        raise unusable(uri, error) from error


def store_faults() -> tuple[type[Exception], ...]:
    """What is raised where a store, the network or the disk fails: ours for a dead server, requests' are OSErrors."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return (StoreError, MlflowException, SQLAlchemyError, OSError)


@contextmanager
def connected(uri: str) -> Iterator["MlflowClient"]:
    """MLflow's module functions speak to this address inside the block, and to the earlier one after it."""
    client = client_of(uri)
    import mlflow

    chosen: bool = mlflow.is_tracking_uri_set()  # type: ignore[no-untyped-call]
    before = mlflow.get_tracking_uri() if chosen else None
    mlflow.set_tracking_uri(uri)
    try:
        yield client
    finally:
        mlflow.set_tracking_uri(before)  # type: ignore[arg-type]  # None: back to not chosen
