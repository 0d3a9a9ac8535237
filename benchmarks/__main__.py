"""All that is measured, in one command: `python -m benchmarks [NAME …]` writes `benchmarks/RESULTS.md`.

Each part is a program of its own (`python -m benchmarks.NAME`), which prints Markdown; its section of the file is replaced,
the others stay. Without names all parts run but those that take long: `answers`, `questions` and `soak`.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import click

RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = """# Results

Written by `python -m benchmarks`. Contenders of a table take turns within one run, so ratios mean more than figures.
"""
PARTS = {
    "overhead": ("Cost of the chains", "30"),
    "execution": ("The sandbox", "20"),
    "capacity": ("What cores give", "6"),
    "tool_calls": ("Calls of tools", "10"),
    "throughput": ("Many at once", "1000"),
    "start": ("Importing and starting", "5"),
    "profiles": ("Profiles of files", "5"),
    "encodings": ("Encodings of files", "report"),
    "workbooks": ("Workbooks as people make them", ""),
    "growth": ("Growth", ""),
    "caching": ("The cache", "200"),
    "retrieval": ("Retrieval", ""),
    "durability": ("Nothing lost", "20"),
    "soak": ("Under load", ""),
    "answers": ("Right answers", ""),
    "questions": ("The embedded model", ""),
}
SLOW = ("answers", "questions", "soak")
QUICK = {
    "overhead": "1",
    "capacity": "0.5",
    "tool_calls": "1",
    "throughput": "20",
    "start": "1",
    "profiles": "1",
    "encodings": "development",
    "growth": "quick",
    "caching": "5",
}


def measured(name: str, argument: str) -> str:
    """What a part prints.

    Raises:
        click.ClickException: It failed.
    """
    command = [sys.executable, "-m", f"benchmarks.{name}", *argument.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{name} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip()


def section(name: str, printed: str, seconds: float) -> str:
    """A part of the file, with where and when it was measured."""
    load = os.getloadavg()[0]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()} {platform.release().partition('-')[0]}"
    when = f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {machine}, load {load:.1f} at the end"
    how = f"`python -m benchmarks.{name}`; {when}; took {seconds:.0f} s."
    return f"<!-- {name} -->\n## {PARTS[name][0]}\n\n{how}\n\n{printed}\n"


def put(text: str, name: str, new: str) -> str:
    """The file with one section replaced or added, in the order of the parts."""
    found = dict(re.findall(r"(?ms)^<!-- (\w+) -->\n(.*?)(?=^<!-- |\Z)", text))
    found[name] = new.partition("\n")[2]
    return HEAD + "".join(f"\n<!-- {part} -->\n{found[part].strip()}\n" for part in PARTS if part in found)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PARTS)))
@click.option("--quick", is_flag=True, help="Only see that they work; nothing is written.")
def main(names: tuple[str, ...], quick: bool) -> None:
    """Measure all parts, or those NAMES."""
    for name in names or [name for name in PARTS if name not in SLOW]:
        if quick and name not in QUICK and not names:
            continue
        if quick and name not in QUICK:
            raise click.UsageError(f"{name} has no quick form. Those that have: {', '.join(QUICK)}.")
        click.echo(f"{name} …", err=True)
        began = time.perf_counter()
        printed = measured(name, QUICK[name] if quick else PARTS[name][1])
        if quick:
            click.echo(printed)
        else:
            text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
            RESULTS.write_text(
                put(text, name, section(name, printed, time.perf_counter() - began)), encoding="utf-8"
            )


if __name__ == "__main__":
    main()
