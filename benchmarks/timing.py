"""How the benchmarks measure: interleaved medians after a warm-up, and memory in a process of its own."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

REPEATS = 5
ROOT = Path(__file__).resolve().parent.parent


def seconds_of(ways: Mapping[str, Callable[[], object]], *, repeats: int = REPEATS) -> dict[str, float]:
    """Median seconds of each way; every round runs all of them in turn, so that a busy moment hits them alike."""
    for way in ways.values():
        way()
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(own) for name, own in taken.items()}


def once(way: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    way()
    return time.perf_counter() - start


def peak_over(work: Callable[[], object]) -> float:
    """MiB that the work adds to this process' memory at most (Linux: the high-water mark is reset before)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work()
    return (_status("VmHWM") - before) / 1024


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {field}")


def memory_of(*arguments: str) -> float:
    """Peak MiB of `benchmarks/engine.py memory ARGUMENTS`, in a fresh process."""
    command = [sys.executable, str(ROOT / "benchmarks" / "engine.py"), "memory", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: float = json.loads(done.stdout.splitlines()[-1])
    return found


def table(title: str, head: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    """Print a Markdown table, ready for README.md."""
    print(f"\n### {title}\n")
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
    sys.stdout.flush()
