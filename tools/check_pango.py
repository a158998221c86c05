"""Say whether the libraries that lay out PDF pages are on this machine, and how to get them where they are not."""

import sys
from ctypes.util import find_library

NEEDED = ("pango-1.0", "pangoft2-1.0", "harfbuzz")
ADVICE = """\
Pango was not found ({missing}): HTML reports work without it, PDF reports do not. Install it with
    Debian, Ubuntu:  sudo apt-get install --no-install-recommends libpangoft2-1.0-0 libharfbuzz-subset0
    Fedora:          sudo dnf install pango
    macOS:           brew install pango
and run the command again."""


def main() -> int:
    """0 where all is there, 1 with the line to type where it is not."""
    missing = [name for name in NEEDED if find_library(name) is None]
    if missing:
        print(ADVICE.format(missing=", ".join(missing)), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
