"""What a run costs under load: processor time, latency back to back, and runs a second; goals beside.

Goals are ratios to a fresh interpreter that runs the small program, measured in the same run, as machines differ. Processor
time is that of the whole machine, which must be at rest otherwise.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

Run = Callable[[str], str]

ROUNDS, BACK_TO_BACK, AT_ONCE, WIDTH = 5, 30, 64, 8
SETTLING_S, REST_S = 0.3, 0.08
TICKS_PER_MS = os.sysconf("SC_CLK_TCK") / 1000
GOALS: dict[str, tuple[float, float, float]] = {
    "CPU a run": (0.20, 0.50, 0.20),
    "back to back": (0.18, 0.45, 0.20),
    "after a pause, p50": (0.08, 0.15, 0.08),
    "after a pause, p95": (0.17, 0.30, 0.17),
    "time a run, 8 at once": (0.20, 0.40, 0.20),
}
"""Goals as ratios to a fresh interpreter that runs the small program: for that program, for the one with pandas, and for a
cell of a session that holds a frame."""


def load_table(contenders: Sequence[tuple[str, Run, Sequence[str]]]) -> Iterator[str]:
    """Measure contenders in turns, and yield the lines of the table.

    Args:
        contenders: Names, what runs a program, and the programs; the first one is the base of all ratios.
    """
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        for name, run, programs in contenders:
            for code in programs:
                measured.setdefault((name, code), []).append(_measure(run, code))
    medians = {key: _medians(rounds) for key, rounds in measured.items()}
    base = next(iter(medians.values()))
    yield f"| under load, milliseconds (times a fresh interpreter) | {' | '.join(GOALS)} |"
    yield f"|---|{'---|' * len(GOALS)}"
    for (name, code), values in medians.items():
        program = next((kind for kind in ("pandas", "print") if kind in code), "a cell with a frame")
        cells = [f"{values[key]:.1f} ({values[key] / base[key]:.2f})" for key in GOALS]
        yield f"| {name}, {program} | {' | '.join(cells)} |"
    for number, program in enumerate(("print", "pandas", "a cell with a frame")):
        yield f"| goal, {program} | {' | '.join(f'({goal[number]:.2f})' for goal in GOALS.values())} |"


def _measure(run: Run, code: str) -> dict[str, float]:
    run(code)
    time.sleep(SETTLING_S)
    used, began = _processor_ms(), time.perf_counter()
    for _ in range(BACK_TO_BACK):
        run(code)
    seconds = time.perf_counter() - began
    time.sleep(SETTLING_S)
    used = _processor_ms() - used
    pauses = sorted(_after_pause(run, code) for _ in range(BACK_TO_BACK))
    return {
        "CPU a run": used / BACK_TO_BACK,
        "back to back": seconds / BACK_TO_BACK * 1000,
        "after a pause, p50": statistics.median(pauses),
        "after a pause, p95": pauses[int(len(pauses) * 0.95)],
        "time a run, 8 at once": _at_once(run, code),
    }


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in rounds) for key in GOALS}


def _after_pause(run: Run, code: str) -> float:
    time.sleep(REST_S)
    began = time.perf_counter()
    run(code)
    return (time.perf_counter() - began) * 1000


def _at_once(run: Run, code: str) -> float:
    began = time.perf_counter()
    with ThreadPoolExecutor(WIDTH) as pool:
        list(pool.map(run, [code] * AT_ONCE))
    return (time.perf_counter() - began) / AT_ONCE * 1000


def _processor_ms() -> float:
    """Return the processor time that all processes of the machine, and the kernel, have taken so far."""
    user, nice, system, _, _, irq, softirq, *_ = Path("/proc/stat").read_text().split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq))) / TICKS_PER_MS
