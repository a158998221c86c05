"""The texts of a benchmark: any file with a column `text`, or a plain text file with one text a line."""

import random
from dataclasses import dataclass
from pathlib import Path

from veedor.errors import EvaluationSetError, UsageError

PLAIN = ".txt"
KINDS = "a .csv, .tsv, .jsonl, .json or .parquet file with a column text, or a .txt file with one text a line"


@dataclass(frozen=True)
class Texts:
    """What is explained, in file order, and how much of the file it is. Blank texts and repeats were left out."""

    texts: tuple[str, ...]
    read: int
    blank: int
    repeated: int

    @property
    def available(self) -> int:
        """Distinct texts of the file."""
        return self.read - self.blank - self.repeated


def read_texts(path: Path, *, limit: int, seed: int) -> Texts:
    """The distinct texts of a file, or `limit` of them drawn by the seed (0: all).

    UsageError where there is no such file or kind of file; EvaluationSetError where its content cannot be used.
    """
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}; --texts takes {KINDS}")
    found = _lines(path) if path.suffix.lower() == PLAIN else _column(path)
    full = [text for text in found if text.strip()]
    distinct = list(dict.fromkeys(full))
    if len(distinct) < 2:
        raise EvaluationSetError(
            f"{path} holds {len(distinct)} distinct texts; an interval over texts needs 2 at least, and 50 to say much"
        )
    drawn = distinct
    if 0 < limit < len(distinct):
        chosen = random.Random(seed).sample(range(len(distinct)), limit)
        drawn = [distinct[place] for place in sorted(chosen)]
    return Texts(tuple(drawn), len(found), len(found) - len(full), len(full) - len(distinct))


def _lines(path: Path) -> list[str]:
    from veedor.evaluation.source import read_text

    return read_text(path).splitlines()


def _column(path: Path) -> list[str]:
    from veedor.evaluation.source import READERS, read_table

    if path.is_file() and path.suffix.lower() not in READERS:
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'!r}; --texts takes {KINDS}")
    table = read_table(path)
    if "text" not in table.columns:
        known = ", ".join(map(str, table.columns))
        raise EvaluationSetError(f"{path} has no column 'text' (it has: {known}); rename the column that holds texts")
    return [text or "" for text in table["text"]]
