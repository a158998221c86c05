"""JSON and JSON Lines as columns of strings, with the line named where something is wrong.

Own reading because types are guessed elsewhere: a column of dates, or of 1, "a" and true, is a column of strings here.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from veedor.errors import EvaluationSetError

Columns = dict[str, list[str | None]]
SHOWN = 80


def parse_lines(text: str, source: Path) -> Columns:
    """Columns of a text with one JSON object a line; blank lines are skipped."""
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return _columns(((f"line {number}", _object(line, number, source)) for number, line in numbered), source)


def parse_json(text: str, source: Path) -> Columns:
    """Columns of a JSON list of objects; a file that holds JSON Lines instead is read as such."""
    try:
        content = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        if "Extra data" in str(error) and text.lstrip().startswith("{"):
            return parse_lines(text, source)
        raise EvaluationSetError(f"{source} is no JSON: {error}; expected a list of objects") from error
    if isinstance(content, dict) and "text" in content and not isinstance(content["text"], list):
        content = [content]
    if not isinstance(content, list):
        found = type(content).__name__
        raise EvaluationSetError(f'{source} holds a {found}; expected a list of objects, such as [{{"text": "…"}}]')
    numbered = ((f"row {number}", row) for number, row in enumerate(content, 1))
    return _columns(((where, _checked(row, where, source)) for where, row in numbered), source)


def _object(line: str, number: int, source: Path) -> dict[str, object]:
    try:
        value = json.loads(line, parse_constant=_no_constant)
    except ValueError as error:
        raise EvaluationSetError(
            f"{source}, line {number}: no JSON ({error}): {line[:SHOWN]!r}; expected one object a line"
        ) from error
    return _checked(value, f"line {number}", source)


def _checked(value: object, where: str, source: Path) -> dict[str, object]:
    if not isinstance(value, dict):
        shown = repr(value)[:SHOWN]
        raise EvaluationSetError(f'{source}, {where}: {shown}; expected an object, such as {{"text": "…"}}')
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no value")


def _columns(rows: Iterable[tuple[str, dict[str, object]]], source: Path) -> Columns:
    found: Columns = {}
    length = 0
    for where, row in rows:
        for name, value in row.items():
            found.setdefault(name, [None] * length).append(_scalar(name, value, where, source))
        length += 1
        for column in found.values():
            column.extend([None] * (length - len(column)))
    if not length:
        raise EvaluationSetError(f"{source} holds no rows; expected at least one object")
    return found


def _scalar(name: str, value: object, where: str, source: Path) -> str | None:
    if name == "text" and not (value is None or isinstance(value, str)):
        shown = json.dumps(value)[:SHOWN]
        raise EvaluationSetError(f"{source}, {where}: text is {shown} ({type(value).__name__}); expected a string")
    found = value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if found is not None and any("\ud800" <= character <= "\udfff" for character in found):
        raise EvaluationSetError(f"{source}, {where}: {name} holds half a surrogate pair, which no text has; remove it")
    return found
