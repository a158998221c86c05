"""A user's file or folder as a table of strings: CSV, JSON Lines, JSON, Parquet, or a folder saved by `datasets`.

Everything that can be wrong before a value means anything is said here: encoding, header, ragged lines, broken JSON.
Read through Hugging Face `datasets` with a cache that is thrown away; nothing is downloaded and no code of the data set
is run. What the columns mean is `columns`' and `formats`' business.
"""

import csv
import io
import json
import logging
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from veedor.errors import EvaluationSetError
from veedor.evaluation.header import check_names, delimiter_of, looks_like_prose
from veedor.evaluation.json_rows import parse_json, parse_lines

if TYPE_CHECKING:
    from datasets import Dataset

EXPECTED = "a .csv, .tsv, .jsonl, .json or .parquet file, or a folder written by datasets' save_to_disk"
SHOWN = 80


def read_table(path: str | Path) -> pd.DataFrame:
    """Every scalar column of a file or folder, as strings (None where a value is missing), rows in file order."""
    source = Path(path)
    if source.is_dir():
        return _as_strings(_read_folder(source), source)
    if not source.is_file():
        raise EvaluationSetError(f"{source} does not exist; expected {EXPECTED}")
    reader = READERS.get(source.suffix.lower())
    if reader is None:
        raise EvaluationSetError(f"{source} ends in {source.suffix or 'nothing'!r}; expected {EXPECTED}")
    if source.stat().st_size == 0:
        raise EvaluationSetError(f"{source} is empty (0 bytes); expected a header and at least one row")
    return _as_strings(reader(source), source)


def read_text(source: Path) -> str:
    """The file as text without a byte order mark; EvaluationSetError names the byte and line that is not UTF-8."""
    content = source.read_bytes()
    nul = content.find(b"\x00")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise EvaluationSetError(f"{source} is UTF-16 (byte 0 is {content[0]:#04x}); save it as UTF-8")
    if nul >= 0:
        where = f"byte {nul}, line {_line(content, nul)}"
        raise EvaluationSetError(f"{source} holds a NUL byte ({where}): is it a binary file? Expected text in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start + (3 if content.startswith(b"\xef\xbb\xbf") else 0)
        raise EvaluationSetError(
            f"{source} is not UTF-8: byte {content[at]:#04x} at offset {at}, line {_line(content, at)}; "
            "save it as UTF-8 (it may be Latin-1 or Windows-1252)"
        ) from error


def _line(content: bytes, offset: int) -> int:
    return content.count(b"\n", 0, offset) + 1


def _read_csv(source: Path) -> "Dataset":
    import datasets

    text = read_text(source)
    if not text.strip():
        raise EvaluationSetError(f"{source} holds only blanks; expected a header and at least one row")
    delimiter = delimiter_of(text)
    names = _check_csv(text, delimiter, source)
    features = datasets.Features({name: datasets.Value("string") for name in names})
    with _linked(source) as (link, cache):
        return datasets.Dataset.from_csv(
            link, features=features, cache_dir=cache, keep_in_memory=True, sep=delimiter, keep_default_na=False
        )


def _check_csv(text: str, delimiter: str, source: Path) -> list[str]:
    """The header's names; EvaluationSetError for a missing header, no rows, or a line with too many fields."""
    with _long_fields():
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            names = next(lines)
            if looks_like_prose(names):
                first = text.split("\n", 1)[0].rstrip("\r")
                raise EvaluationSetError(
                    f"{source} has no header: its first line is {first[:SHOWN]!r}; expected the names of the columns, "
                    "'text' among them, such as: text,label"
                )
            rows = 0
            for fields in lines:
                rows += bool(fields)
                if len(fields) > len(names):
                    raise EvaluationSetError(
                        f"{source}, line {lines.line_num}: {len(fields)} fields, but the header names {len(names)}; "
                        f"put a text that holds {delimiter!r} in double quotes"
                    )
        except csv.Error as error:
            raise EvaluationSetError(
                f"{source}, line {lines.line_num}: {error}; expected CSV with quotes closed and doubled inside quotes"
            ) from error
    check_names(names, source)
    if not rows:
        raise EvaluationSetError(
            f"{source} has a header ({', '.join(names)[:SHOWN]}) but no rows; expected at least one"
        )
    return [name or f"Unnamed: {at}" for at, name in enumerate(names)]


def _read_json_lines(source: Path) -> "Dataset":
    return _from_records(parse_lines(read_text(source), source), source)


def _read_json(source: Path) -> "Dataset":
    return _from_records(parse_json(read_text(source), source), source)


def _from_records(records: dict[str, list[str | None]], source: Path) -> "Dataset":
    import datasets

    check_names(list(records), source)
    features = datasets.Features({name: datasets.Value("string") for name in records})
    return datasets.Dataset.from_dict(records, features=features)


def _read_parquet(source: Path) -> "Dataset":
    import datasets

    with _linked(source) as (link, cache):
        return datasets.Dataset.from_parquet(link, cache_dir=cache, keep_in_memory=True)


def _read_folder(source: Path) -> "Dataset":
    import datasets

    if (source / "dataset_dict.json").is_file():
        splits = sorted(path.name for path in source.iterdir() if (path / "state.json").is_file())
        way_out = f"give one of them, such as {source / splits[0]}" if splits else "but none of its splits is there"
        raise EvaluationSetError(f"{source} holds several splits ({', '.join(splits)}); {way_out}")
    if not (source / "state.json").is_file():
        raise EvaluationSetError(f"{source} is a folder without state.json; expected {EXPECTED}")
    with _quiet(source):
        if not json.loads((source / "state.json").read_text(encoding="utf-8"))["_data_files"]:
            raise EvaluationSetError(f"{source} holds no rows; expected at least one")
        return datasets.load_from_disk(str(source), keep_in_memory=True)


READERS: dict[str, Callable[[Path], "Dataset"]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".parquet": _read_parquet,
}


def _as_strings(data: "Dataset", source: Path) -> pd.DataFrame:
    import datasets

    check_names(data.column_names, source)
    if not data.num_rows:
        raise EvaluationSetError(f"{source} holds no rows; expected at least one")
    classes = {n: f for n, f in data.features.items() if isinstance(f, datasets.ClassLabel)}
    plain = [n for n, f in data.features.items() if isinstance(f, datasets.Value) or n in classes]
    text = data.features.get("text")
    if text is not None and "string" not in str(getattr(text, "dtype", "")):
        raise EvaluationSetError(f"{source}: column 'text' holds {getattr(text, 'dtype', text)}; expected strings")
    columns = data.select_columns(plain).with_format(None).to_dict()
    found = {n: [_string(value, classes.get(n)) for value in columns[n]] for n in plain}
    for name in data.column_names:
        found.setdefault(name, [None] * data.num_rows)
    table: pd.DataFrame = pd.DataFrame(found, dtype=object)[data.column_names].rename(columns=str.strip)
    _check_characters(table, source)
    return table


def _string(value: object, labels: object = None) -> str | None:
    """A scalar as it would stand in a CSV file; a class number as its name, -1 (unlabelled) as missing."""
    if value is None or (labels is not None and value == -1):
        return None
    if labels is not None:
        return str(labels.int2str(value))  # type: ignore[attr-defined]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return None if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def _check_characters(table: pd.DataFrame, source: Path) -> None:
    """EvaluationSetError for NUL characters, which Parquet and JSON can carry and tokenizers drop or choke on."""
    for name in table.columns:
        for row, value in enumerate(table[name], 1):
            if value is not None and "\x00" in value:
                raise EvaluationSetError(f"{source}, row {row}, column {name!r}: holds a NUL character; remove it")


@contextmanager
def _linked(source: Path) -> Iterator[tuple[str, str]]:
    """A plain name for the file (its own could read as a pattern or an address) and a cache that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="veedor-") as folder, _quiet(source):
        link = Path(folder) / f"rows{source.suffix.lower()}"
        try:
            os.symlink(source.resolve(), link)
        except OSError:
            shutil.copyfile(source, link)
        yield str(link), str(Path(folder) / "cache")


@contextmanager
def _quiet(source: Path) -> Iterator[None]:
    """No progress bars or log lines of `datasets`; what it raises becomes an error that names the file."""
    import datasets

    bars = datasets.are_progress_bars_disabled()
    log = logging.getLogger("datasets")
    level = log.level
    datasets.disable_progress_bars()
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    except EvaluationSetError:
        raise
    except Exception as error:
        cause = error.__cause__ or error
        raise EvaluationSetError(f"{source} cannot be read: {str(cause).strip()[:300]}; expected {EXPECTED}") from error
    finally:
        log.setLevel(level)
        if not bars:
            datasets.enable_progress_bars()


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let the csv module read texts longer than its 131,072 characters."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
