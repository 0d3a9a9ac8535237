"""What cores give: runs a second for each core, and how long runs wait when there is too much to do.

A process of its own is pinned to each core, as one would deploy it, and all measure at the same moment: what is lost
between one core and several is what they share (memory, the kernel's locks). Then runs arrive at a multiple of the rate
that was measured, whether or not earlier ones have ended, and each takes from its arrival to its result.

    python -m benchmarks.capacity [SECONDS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import median, quantiles

from benchmarks.execution import ANSWERS, PANDAS, PLAIN
from code_chains.executors import SandboxExecutor

PROGRAMS = {"print": PLAIN, "pandas": PANDAS}
WIDTH = 8
LOADS = (0.5, 0.9, 2.0)
"""Arrivals, as multiples of the runs a second that were measured."""
MOST_ARRIVALS = 900
"""Runs may queue up to this: the executor refuses the 1,001st."""
GOAL = 3
"""p99 / p50 at twice the capacity, at most."""


def main(seconds: float) -> None:
    """Measure and print the tables."""
    cores = sorted(os.sched_getaffinity(0))
    print(*_capacity_table(cores, seconds), "", sep="\n")
    print(*_load_table(seconds), sep="\n")


def _capacity_table(cores: list[int], seconds: float) -> Iterator[str]:
    groups = [
        [[cores[0]]],
        *([[core] for core in cores[:count]] for count in range(2, len(cores) + 1)),
        [cores],
    ]
    yield f"| runs a second, 8 at once in each process | {' | '.join(PROGRAMS)} | a core, against one alone |"
    yield f"|---|{'---|' * (len(PROGRAMS) + 1)}"
    alone: dict[str, float] = {}
    for group in groups:
        rates = {name: _rate_of_processes(group, name, seconds) for name in PROGRAMS}
        alone = alone or rates
        share = [f"{rates[name] / alone[name] / sum(map(len, group)):.2f}" for name in PROGRAMS]
        yield f"| {_describe(group)} | {' | '.join(f'{rate:.0f}' for rate in rates.values())} | {', '.join(share)} |"


def _describe(group: list[list[int]]) -> str:
    if len(group) > 1:
        return f"{len(group)} processes, pinned to one core each"
    return f"one process on {len(group[0])} core{'s' if len(group[0]) > 1 else ''}"


def _rate_of_processes(group: list[list[int]], program: str, seconds: float) -> float:
    """Runs a second of all processes together; they start when all are ready."""
    processes = [_start(pinned, program, seconds) for pinned in group]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    return sum(float(process.communicate("\n")[0]) for process in processes)


def _start(cores: list[int], program: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.capacity", "child", json.dumps(cores), program, str(seconds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _child(cores: str, program: str, seconds: str) -> None:
    """Measure on some cores, when the parent says so."""
    os.sched_setaffinity(0, json.loads(cores))
    with SandboxExecutor() as sandbox:
        _warm_up(sandbox, PROGRAMS[program])
        print("ready", flush=True)
        sys.stdin.readline()
        print(_rate(sandbox, PROGRAMS[program], float(seconds)))


def _warm_up(sandbox: SandboxExecutor, code: str) -> None:
    sandbox.run(PANDAS)  # Afterwards no worker is importing libraries.
    with ThreadPoolExecutor(WIDTH) as threads:
        list(threads.map(sandbox.run, [code] * 4 * WIDTH))


def _rate(sandbox: SandboxExecutor, code: str, seconds: float) -> float:
    began = time.perf_counter()

    def runs(_: int) -> int:
        count = 0
        while time.perf_counter() - began < seconds:
            assert sandbox.run(code).output == ANSWERS[code]
            count += 1
        return count

    with ThreadPoolExecutor(WIDTH) as threads:
        total = sum(threads.map(runs, range(WIDTH)))
    return total / (time.perf_counter() - began)


def _load_table(seconds: float) -> Iterator[str]:
    columns = (
        "arrivals, times the capacity",
        "program",
        "runs",
        "p50 ms",
        "p99 ms",
        "p99 / p50",
        "slowest ms",
    )
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    with SandboxExecutor() as sandbox:
        for name, code in PROGRAMS.items():
            _warm_up(sandbox, code)
            for load in LOADS:
                latencies = _latencies(sandbox, code, load * _rate(sandbox, code, seconds / 2), seconds)
                p50, p99 = median(latencies), quantiles(latencies, n=100)[-1]
                row = (
                    load,
                    name,
                    len(latencies),
                    f"{p50:.1f}",
                    f"{p99:.1f}",
                    f"{p99 / p50:.1f}",
                    f"{max(latencies):.0f}",
                )
                yield f"| {' | '.join(map(str, row))} |"
    yield f"\nGoal at twice the capacity: p99 / p50 at most {GOAL}."


def _latencies(sandbox: SandboxExecutor, code: str, rate: float, seconds: float) -> list[float]:
    """Milliseconds from arrival to result of runs that arrive evenly, whether or not earlier ones have ended."""
    count = min(MOST_ARRIVALS, int(rate * seconds))
    began = time.perf_counter()

    def run(number: int) -> float:
        assert sandbox.run(code).output == ANSWERS[code]
        return (time.perf_counter() - began - number / rate) * 1000

    with ThreadPoolExecutor(count) as threads:
        pending = []
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.perf_counter()))
            pending.append(threads.submit(run, number))
        return [future.result() for future in pending]


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        _child(*sys.argv[2:])
    else:
        main(float(sys.argv[1]) if len(sys.argv) > 1 else 6)
