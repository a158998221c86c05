"""Who may write in an audit folder, and what is left there when the writing fails.

Looking comes first and changes nothing; claiming makes the folder, locks it, and on failure takes away what it made.
What lies in the folder and what is still up to date: `pipeline.folder`.
"""

import errno
import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pipeline import provenance
from pipeline.exits import code_of_error
from pipeline.models import SCHEME
from pipeline.plan import RECORDS
from pipeline.tracking import without_secrets
from veedor.errors import StoreError, UsageError

LOCK = "lock.partial"  # what ends so is neither hashed nor logged
PLACES = (provenance.FILE, "settings.yaml")
PASSING = (LOCK, *(f"{name}.partial" for name in PLACES))
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def look(out: Path, *, resume: bool, model: str | None = None) -> Path:
    """The folder that an audit may write to: fresh, empty, or ours; UsageError otherwise. Nothing is changed."""
    folder = out.resolve()
    try:
        nearest = next(place for place in (folder, *folder.parents) if place.exists())
        held = sorted(entry.name for entry in folder.iterdir()) if nearest == folder else []
        if nearest != folder and not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
            raise PermissionError(f"{nearest} is not a folder that can be written")
    except OSError as error:
        raise UsageError(f"cannot write the audit to {out}: {error}; choose another folder with --out") from error
    found = [name for name in held if name not in PASSING]
    known = provenance.read(folder)
    if found and "steps" not in known:
        beside = f"{', '.join(found[:3])}; no {provenance.FILE} of an audit"
        raise UsageError(f"{out} is not empty and holds no audit ({beside}); choose a fresh folder with --out")
    made = [name for name in found if name in RECORDS]
    if made and not resume:
        held_already = f"{out} already holds an audit ({', '.join(made)})"
        raise UsageError(f"{held_already}; continue it with --resume, or choose a fresh folder with --out")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise StoreError(f"cannot write in {folder}; make it writable, or choose another folder with --out")
    if made and model:
        require_same_model(out, known, model)
    return folder


def require_same_model(out: Path, known: dict[str, Any], model: str) -> None:
    """UsageError where the audit in the folder is another model's."""
    audited = str(known.get("model") or "")
    if audited and place_of(audited, str(known.get("working_directory") or "")) != place_of(model, os.getcwd()):
        raise UsageError(
            f"{out} holds an audit of the model {audited!r}, not of {without_secrets(model)!r}; continue it with "
            f"the same MODEL, or choose a fresh folder with --out"
        )


def place_of(model: str, start: str) -> str:
    """A model's name in a form that can be compared: an address as it is, a folder by its absolute path.

    >>> place_of("models:/x/1", "/a"), place_of("m/", "/nowhere")
    ('models:/x/1', '/nowhere/m')
    """
    return without_secrets(model) if SCHEME.match(model) else str((Path(start) / Path(model).expanduser()).resolve())


@contextmanager
def claimed(out: Path, *, resume: bool) -> Iterator[Path]:
    """The folder, made where it was missing and locked for the block; a failure before the first record leaves it as
    it was, a later one is written in its provenance."""
    folder = out.resolve()
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        with disk_faults(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with locked(folder):
                look(out, resume=resume)
                before = {entry.name for entry in folder.iterdir()} - set(PASSING)
                try:
                    with disk_faults(folder):
                        yield folder
                except BaseException as error:
                    leave(folder, error, before)
                    raise
    finally:
        with suppress(OSError):  # the first that is not empty, and with it what lies above, stays
            for place in missing:
                place.rmdir()


def leave(folder: Path, error: BaseException, before: set[str]) -> None:
    """Tidy up after an error, which nothing that goes wrong here may replace."""
    with suppress(OSError):
        if sweep(folder, before):
            return
        provenance.update(folder, finished=provenance.now(), exit_code=code_of_error(error))
    if any((folder / name / "manifest.json").is_file() for name in RECORDS) and isinstance(error, KeyboardInterrupt):
        error.add_note(f"the same command with `--out {shlex.quote(str(folder))} --resume` continues where it stopped")


def sweep(folder: Path, before: set[str]) -> bool:
    """Remove what was written before the first step, if that is all there is: a typing error leaves no trace."""
    made = {entry.name for entry in folder.iterdir()} - set(PASSING)
    if before or not made <= set(PLACES):
        return False
    for name in (*PLACES, *PASSING):
        if name != LOCK:
            (folder / name).unlink(missing_ok=True)
    return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other audit out of the folder; the lock of a killed process holds nobody up."""
    path = folder / LOCK
    handle = take(path)
    while handle is None:
        handle = take(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(handle)


def take(path: Path) -> int | None:
    """The locked file's handle; None where its last owner removed it meanwhile; UsageError where it is held."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
            return handle
    except BlockingIOError as error:
        os.close(handle)
        raise UsageError(
            f"another audit is writing in {path.parent} now; wait until it has ended, or choose another folder with "
            f"--out"
        ) from error
    os.close(handle)
    return None


@contextmanager
def disk_faults(folder: Path, *, again: str = "repeat the command with --resume") -> Iterator[None]:
    """StoreError, with the folder and the way out, where a disk is full or cannot be written."""
    try:
        yield
    except OSError as error:
        elsewhere = error.errno == errno.EACCES and error.filename and not within(folder, str(error.filename))
        if error.errno not in FULL or elsewhere:
            raise
        way_out = "make the folder writable" if error.errno in (errno.EROFS, errno.EACCES) else "free space"
        raise StoreError(f"cannot write in {folder}: {error}; {way_out}, then {again}") from error


def within(folder: Path, name: str) -> bool:
    """Whether a file lies in the folder, or is the folder, or one above it that has to be made.

    >>> within(Path("/a/b"), "/a/b/c"), within(Path("/a/b"), "/a"), within(Path("/a/b"), "/x")
    (True, True, False)
    """
    path = Path(name).resolve()
    return path.is_relative_to(folder) or folder.is_relative_to(path)
