"""What a profile of a file costs, beside reading the file.

Each file is read by `pd.read_csv` in a sandbox, and profiled there, in turn; the figures are medians over rounds. The first
profile of a content includes a run; the second is in memory.

Usage: python -m benchmarks.profiles [ROUNDS]
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from code_chains.executors import SandboxExecutor
from code_chains.profiles import FileProfiler

ROWS = (10, 20_000, 200_000, 1_000_000)
READ = 'import pandas as pd\ndf = pd.read_csv("sales.csv", sep=";", decimal=",", thousands=".")\nlen(df)'


def write_table(path: Path, rows: int) -> None:
    """Write a table with dates, a category, numbers with separators and whole numbers."""
    chance = random.Random(rows)
    lines = (
        f"{chance.randint(1, 28):02}.{chance.randint(1, 12):02}.2025;{chance.choice('NSWE')};"
        f"{chance.randint(1, 999)}.{chance.randint(100, 999)},{chance.randint(10, 99)};{chance.randint(1, 50)}\n"
        for _ in range(rows)
    )
    path.write_text("date;region;amount;units\n" + "".join(lines))


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def measure(sandbox: SandboxExecutor, path: Path) -> tuple[float, float, float]:
    """Return the seconds of a read, of a first and of a second profile."""
    files, profiler = {"sales.csv": path}, FileProfiler(sandbox)
    read = seconds(lambda: sandbox.run(READ, files=files))
    return read, seconds(lambda: profiler.profile(files)), seconds(lambda: profiler.profile(files))


def main(rounds: int) -> None:
    """Measure and print the table."""
    print("| rows | size | `pd.read_csv` in the sandbox | profile | ratio | known profile |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, SandboxExecutor() as sandbox:
        sandbox.run("import pandas")
        for rows in ROWS:
            path = Path(folder, "sales.csv")
            write_table(path, rows)
            figures = zip(*(measure(sandbox, path) for _ in range(rounds)), strict=True)
            read, profile, known = map(statistics.median, figures)
            size = f"{path.stat().st_size / 1e6:.1f} MB"
            times = f"{read:.2f} s | {profile:.2f} s | {profile / read:.1f} | {known * 1000:.1f} ms"
            print(f"| {rows:,} | {size} | {times} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
