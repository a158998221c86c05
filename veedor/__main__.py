"""The `veedor` command: puts the project's folder on the path and runs its pipeline.

The project is the checkout that holds this file, or `veedor/_project` in an installed wheel. The pipeline is run by
name, so that the library imports nothing of it, and no other program can import it by accident.
"""

import runpy
import sys
from pathlib import Path


def project_root() -> Path:
    """The folder that holds `pipeline/`: the checkout, else the copy that the wheel carries."""
    here = Path(__file__).resolve().parent
    checkout = here.parent
    return checkout if (checkout / "pipeline" / "__main__.py").is_file() else here / "_project"


def main() -> None:
    """Run the command line."""
    sys.path.insert(0, str(project_root()))
    runpy.run_module("pipeline", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
