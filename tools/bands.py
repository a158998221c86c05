"""Write the frequency band of every word into a lexicon file; an authoring tool, needs wordfreq (a `dev` extra).

The band is the lowest Zipf frequency (wordfreq) of the words of the first surface, function words left out. Run it as
`python tools/bands.py veedor/evaluation/lexicons/en.yaml` after words were added; lines are rewritten in place.
"""

import re
import sys
from pathlib import Path

import yaml
from wordfreq import zipf_frequency

_FUNCTION_WORDS = {
    "en": "a an the who with of in on at by from to is does as s not do",
    "es": "un una unos unas el la los las lo al del de con en por para a que quien se su no y o es está",
}
_LINE = re.compile(r"^(\s*- )(\{term: .*\})\s*$")


def band(surface: str, language: str) -> float:
    """The lowest Zipf frequency of a surface's content words."""
    words = [word for word in re.split(r"[\s\-]+", surface) if word]
    content = [word for word in words if word.lower() not in _FUNCTION_WORDS[language].split()] or words
    return float(min(zipf_frequency(word, language) for word in content))


def first_surface(entry: dict[str, object]) -> str:
    """The surface whose frequency counts: adjective before noun before phrase, singular, masculine first."""
    found = entry.get("adj") or entry.get("noun") or entry["phrase"]
    while not isinstance(found, str):
        found = next(iter(found.values() if isinstance(found, dict) else found))  # type: ignore[call-overload]
    return found


def with_band(line: str, language: str) -> str:
    """A line of the lexicon with its `band` written anew, before `valence`, `reviewed`, `search` and `also`."""
    found = _LINE.match(line)
    if not found:
        return line
    text = re.sub(r", band: [\d.]+", "", found.group(2))
    value = band(first_surface(yaml.safe_load(text)), language)
    place = re.search(r", (valence|reviewed|search|also): ", text)
    at = place.start() if place else len(text) - 1
    return f"{found.group(1)}{text[:at]}, band: {value:.2f}{text[at:]}"


def main() -> None:
    """Rewrite each file named on the command line."""
    for name in sys.argv[1:]:
        path = Path(name)
        content = path.read_text(encoding="utf-8")
        language = yaml.safe_load(content)["language"]
        path.write_text("\n".join(with_band(line, language) for line in content.split("\n")), encoding="utf-8")


if __name__ == "__main__":
    main()
