"""One text's explanation as a self-contained page: the result as it stands, and the data to compute it again.

The page loads nothing and runs only the scripts and styles whose digests it names. Whatever comes from text, labels or
model is made visible first and escaped.
"""

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.console import stdout
from pipeline.explain_answers import Explained, Told
from pipeline.explain_data import data_of, reasons, rest_of, shown, top, words_in
from pipeline.explain_pieces import scored
from veedor.errors import UsageError

if TYPE_CHECKING:
    from veedor.attribution import Method
    from veedor.report.language import Words

MARK = '<meta name="generator" content="Veedor explain">'
HEAD = 2048  # characters of a file in which the mark is looked for
STEPS = 20  # shades that the style sheet knows, for the page without scripts
STYLE, SCRIPTS = "css.j2", ("rollout.js", "state.js", "js")  # reports/templates/explain.…
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def may_write(file: Path) -> None:
    """UsageError unless this is a new file or a page of ours, in a folder that can be written."""
    try:
        if not file.parent.is_dir() or not os.access(file.parent, os.W_OK):
            raise PermissionError(f"{file.parent} is not a folder that can be written")
        if file.exists() and MARK not in _head(file):
            raise FileExistsError("it exists and is no page that `veedor explain` wrote")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error}; name another file with --html") from error


def _head(file: Path) -> str:
    with file.open(encoding="utf-8", errors="replace") as handle:
        return handle.read(HEAD)


def write_page(file: Path, explained: Explained, language: str) -> None:
    """Put the page in place whole, and say where; UsageError where it cannot be written."""
    content = page(explained, language)
    may_write(file)
    try:
        with tempfile.NamedTemporaryFile("w", dir=file.parent, suffix=".partial", delete=False, encoding="utf-8") as to:
            partial = Path(to.name)
            to.write(content)
        partial.chmod(0o666 & ~_umask())
        os.replace(partial, file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"cannot write {file}: {error}; name another file with --html") from error
    stdout().print(f"page      {file}")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def page(explained: Explained, language: str) -> str:
    """The whole page, in a language whose words stand in it beside the other's."""
    from veedor.report.render import render_template

    told = explained.told(explained.asked[0])
    assert told is not None  # `asked` holds only methods that answered
    parts = {
        name: render_template(f"explain.{name}", {})
        for name in (STYLE, *SCRIPTS)  # each named in the policy by its digest
    }
    words, answer = words_in(language), top(explained)
    return render_template(
        "explain.html.j2",
        {
            "language": language,
            "t": words["explain"],
            "policy": policy(parts),
            "mark": MARK,
            "title": words["explain"]["title"].format(
                method=words.code("method_names", told.attribution.method), model=shown(explained.model)
            ),
            "model": shown(explained.model),
            "about": about(explained, told, words),
            "answer": words["explain"]["answer"].format(
                label=shown(answer[0]), probability=words.percent(answer[1], 1)
            ),
            "signed": _method(told).signed,
            "words": shades(explained, told, words),
            "rest": rest_of(explained),
            "answers": [
                {"label": shown(label), "probability": words.percent(value, 1), "step": round(STEPS * value)}
                for label, value in explained.answers
            ],
            "failed": reasons(explained, language),
            "data": for_script(data_of(explained, language)),
        },
    )


def policy(parts: Mapping[str, str]) -> str:
    """What the page may load: nothing but the scripts and the style that it holds."""

    def allowed(*names: str) -> str:
        digests = (hashlib.sha256(parts[name].encode()).digest() for name in names)
        return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)

    return (
        f"default-src 'none'; style-src {allowed(STYLE)}; script-src {allowed(*SCRIPTS)}; "
        "base-uri 'none'; form-action 'none'"
    )


def for_script(value: object) -> str:
    """JSON that can stand inside a script element: ASCII, and nothing that HTML could read.

    >>> for_script("</script>\u2028&")
    '"\\\\u003c/script\\\\u003e\\\\u2028\\\\u0026"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return "".join(UNSAFE.get(character, character) for character in text) if UNSAFE.keys() & set(text) else text


def about(explained: Explained, told: Told, words: "Words") -> str:
    """Method, label and completeness in a sentence or two."""
    t, found = words["explain"], told.attribution
    parts = [words.code("method_names", found.method)]
    if found.target is None:
        parts.append(t["no_label"])
    else:
        function = words.code("score_function", found.score_function)
        parts.append(t["about_label"].format(label=shown(found.target), function=function))
        parts += [t["assumed"]] if explained.assumed else []
    if found.gap is not None:
        parts.append(t["gap"].format(gap=words.percent(found.gap, 2)))
    return ". ".join(parts) + "."


def shades(explained: Explained, told: Told, words: "Words") -> list[dict[str, object]]:
    """The words as the page shows them without scripts."""
    signed = _method(told).signed
    return [
        {
            "before": shown(own.piece.before),
            "text": shown(own.piece.shown),
            "score": "" if own.score is None else words.number(own.score, 4, sign=signed),
            "sort": ("against" if own.against else "for") if signed else "much",
            "step": round(STEPS * own.share),
        }
        for own in scored(explained, told)
    ]


def _method(told: Told) -> "Method":
    from veedor.attribution import METHODS

    return METHODS[told.attribution.method]
