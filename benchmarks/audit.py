"""How long a whole audit takes and how much memory it needs, in a process of its own.

    python benchmarks/audit.py MODEL [--evaluation-set NAME|FILE] [--limit 2000]

Prints the seconds of each step, as the audit recorded them, the wall time, and the largest resident memory.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run one audit without MLflow logging and say what it cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--evaluation-set", default="identity-terms-en")
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--target")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit"
        command = [
            sys.executable,
            "-m",
            "pipeline",
            "audit",
            str(Path(given.model).resolve()),
            "--out",
            str(out),
            "--no-log",
        ]
        command += ["--evaluation-set", given.evaluation_set, "--limit", str(given.limit)]
        command += ["--target", given.target] if given.target else []
        start = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, check=False)
        wall = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"exit code {done.returncode}, {wall:.0f} s in all, at most {peak:.0f} MiB resident")
        provenance = json.loads((out / "provenance.json").read_text(encoding="utf-8"))
        print(json.dumps(provenance.get("steps", {}), indent=1))


if __name__ == "__main__":
    main()
