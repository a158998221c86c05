"""Write requirements.txt and requirements-dev.txt: the exact versions of this environment for what pyproject.toml asks.

Runs in the project's own virtual environment; leaves out local version labels (torch's +cpu), so that the pins hold on
every platform.
"""

import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent


def closure(roots: list[str]) -> dict[str, str]:
    """Name and installed version of everything the roots need, themselves included."""
    found: dict[tuple[str, tuple[str, ...]], str] = {}
    todo = [Requirement(root) for root in roots]
    while todo:
        requirement = todo.pop()
        key = (canonicalize_name(requirement.name), tuple(sorted(requirement.extras)))
        if key in found:
            continue
        distribution = metadata.distribution(requirement.name)
        found[key] = distribution.version.partition("+")[0]
        children = [Requirement(line) for line in distribution.requires or []]
        todo += [child for child in children if applies(child, requirement.extras)]
    return {name: version for (name, _), version in found.items()}


def applies(requirement: Requirement, extras: set[str]) -> bool:
    """Whether a dependency's marker holds here, for one of the extras asked for."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""})


def write(path: Path, heading: str, pins: dict[str, str]) -> None:
    """Write pins in order of name."""
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    path.write_text(f"# {heading}\n" + "".join(lines), encoding="utf-8")


def main() -> None:
    """Read the ranges, look up what is installed, write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime = closure(project["dependencies"])
    tools = closure(project["optional-dependencies"]["dev"])
    write(
        ROOT / "requirements.txt", "The exact versions Veedor is tested with; `make lock` writes them again.", runtime
    )
    extra = {name: version for name, version in tools.items() if name not in runtime}
    write(ROOT / "requirements-dev.txt", "What tests and checks need besides requirements.txt.", extra)


if __name__ == "__main__":
    main()
