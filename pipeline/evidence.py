"""Whether an audit folder still holds what was written: records by their own manifests, the rest by manifest.json."""

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from pipeline.plan import RECORDS
from veedor.errors import UsageError
from veedor.records import canonical_json, check, manifest_of, sha256

KEYS = ("kind", "schema", "files", "made_from", "digest")


def finished(folder: Path) -> dict[str, Any] | None:
    """The manifest of a record; None where the record is not finished, UsageError where the manifest is damaged."""
    path = folder / "manifest.json"
    try:
        found = manifest_of(folder)
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if found is None:
        return None
    lacking = [key for key in KEYS if key not in found] if isinstance(found, dict) else KEYS
    if lacking or not isinstance(found["files"], dict):
        raise damaged(path, f"it lacks {', '.join(lacking) or 'a list of files'}")
    content = {key: found[key] for key in ("kind", "schema", "files")}
    if hashlib.sha256(canonical_json(content).encode()).hexdigest() != found["digest"]:
        raise damaged(path, "its digest is not that of its content")
    return found


def damaged(path: Path, why: str) -> UsageError:
    """The UsageError for a manifest that cannot be relied on."""
    return UsageError(f"{path} is damaged or was altered ({why}); {make_again(path.parent.parent)}")


def make_again(folder: Path) -> str:
    """How altered evidence is made again."""
    return f"make it again with `veedor audit MODEL --resume --out {shlex.quote(str(folder))}`"


def require_unaltered(folder: Path) -> None:
    """UsageError, with the file and the way out, unless every record and everything in manifest.json is as written."""
    for name, kind in RECORDS.items():
        finished(folder / name)
        try:
            check(folder / name, str(kind))
        except ValueError as error:
            raise UsageError(f"{error}; {make_again(folder)}") from error
    for name, digest in listed(folder).items():
        path = folder / name
        if path.is_file() and sha256(path) == digest:
            continue
        what = f"{path} is missing or was altered after the audit (SHA-256 differs)"
        if name == "settings.yaml" or name.partition("/")[0] in RECORDS:
            raise UsageError(f"{what}; {make_again(folder)}")
        raise UsageError(f"{what}; write it again with `veedor report {shlex.quote(str(folder))}`")


def listed(folder: Path) -> dict[str, str]:
    """The files that manifest.json lists, with their digests; UsageError where it is missing or damaged."""
    path = folder / "manifest.json"
    way_out = f"write it again with `veedor report {shlex.quote(str(folder))}`"
    try:
        files = json.loads(path.read_text(encoding="utf-8"))["files"]
        missing = [name for name in ("settings.yaml", *(f"{record}/manifest.json" for record in RECORDS))]
        lacking = [name for name in missing if name not in files]
        if lacking:
            raise ValueError(f"it does not list {', '.join(lacking)}")
        return {str(name): str(digest) for name, digest in files.items()}
    except FileNotFoundError as error:
        raise UsageError(f"{path} is missing; {way_out}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is damaged ({type(error).__name__}: {error}); {way_out}") from error


def require_same_policy(folder: Path, settings_digest: str, verdict_digest: str) -> None:
    """UsageError where settings.yaml holds another policy than the verdict was reached under."""
    if settings_digest != verdict_digest:
        raise UsageError(
            f"{folder / 'settings.yaml'} holds another policy ({settings_digest[:12]}…) than the verdict was reached "
            f"under ({verdict_digest[:12]}…): put the file back, or decide under a new policy with "
            f"`veedor gate {shlex.quote(str(folder))} --policy FILE --write`"
        )
