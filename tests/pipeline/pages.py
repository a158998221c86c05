"""Pages of `veedor explain` as a browser, a script engine and a parser see them."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "google-chrome", "chromium-browser")
VOID = ("meta", "input", "br")


def browser() -> str:
    """A browser without a window; the test is skipped where there is none."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    return found


def node() -> str:
    """A script engine without a page; the test is skipped where there is none."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("no node on the path")
    return found


@cache
def loaded(page: Path, address: str = "") -> str:
    """The document as it stands after its scripts have run."""
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom")
    command = [browser(), *options, f"--user-data-dir={page.parent / 'profile'}", f"{page.as_uri()}#{address}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def result(document: str) -> dict[str, Any]:
    """What the page says it shows, in full precision."""
    [text] = re.findall(r'<output id="result"[^>]*>(.*?)</output>', document, re.DOTALL)
    found: dict[str, Any] = json.loads(html.unescape(text))
    return found


def run_script(code: str, given: object) -> Any:
    """What a script makes of a value, with the page's arithmetic at hand as `Rollout`."""
    arithmetic = ROOT / "reports" / "templates" / "explain.rollout.js"
    whole = (
        f"const Rollout = require({json.dumps(str(arithmetic))});"
        'const given = JSON.parse(require("fs").readFileSync(0, "utf8"));'
        f"console.log(JSON.stringify((() => {{ {code} }})()));"
    )
    done = subprocess.run([node(), "-e", whole], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@dataclass
class Seen(HTMLParser):
    """Tags with their attributes, the text outside of scripts and styles, and whether every tag is closed."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""
    inner: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            self.inner.setdefault(self.open[-1], []).append(data)
        else:
            self.text += data


def seen(page: str) -> Seen:
    """The page as a parser sees it."""
    parser = Seen()
    parser.feed(page)
    parser.close()
    assert not parser.open
    return parser


def data_of(page: str) -> dict[str, Any]:
    """What the page's script is told."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def driven(page: Path, code: str) -> Any:
    """What a script on the page returns after doing as a reader would; without the policy, which bars it."""
    content = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    told = 'document.body.append(Object.assign(document.createElement("pre"), { id: "told", textContent: told() }));'
    told = f"function told() {{ {code} }} {told}"
    copy = page.with_name(f"driven-{page.name}")
    copy.write_text(content.replace("</body>", f"<script>{told}</script></body>"), encoding="utf-8")
    [text] = re.findall(r'<pre id="told">(.*?)</pre>', loaded(copy), re.DOTALL)
    return json.loads(html.unescape(text))
