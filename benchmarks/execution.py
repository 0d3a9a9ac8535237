"""What it costs to run a program, side by side with other ways, as ratios within one run.

    python -m benchmarks.execution [ROUNDS]

Contenders take turns in each round, so that a busy moment hits all of them. Those that are not installed are left out:
`pip install smolagents RestrictedPython langchain-experimental "code-chains[monty,container]" numpy pandas matplotlib`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import IsolationError
from code_chains.executors import ProcessExecutor, SandboxExecutor
from code_chains.executors.sandbox import PRELOAD

PLAIN = "print(2 + 2)"
PANDAS = (
    "import pandas as pd\n"
    "frame = pd.DataFrame({'group': [n % 3 for n in range(100)], 'value': range(100)})\n"
    "print(frame.groupby('group').value.sum().max())"
)
ANSWERS = {PLAIN: "4", PANDAS: "1683"}
FORK = (
    f"import os, sys, time, {', '.join(PRELOAD)}\nimport gc; gc.collect(); gc.freeze()\n"
    + """
for line in sys.stdin:
    began = time.perf_counter()
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0)
    print(time.perf_counter() - began, flush=True)
"""
)
REST = 0.08
"""Seconds of rest before each measurement: what runs ahead of need has them in an app as well."""
Run = Callable[[str], str]


def main(rounds: int) -> None:
    """Measure and print the tables."""
    kernel = platform.release().partition("-")[0]
    print(f"{platform.python_version()} on {platform.system()} {kernel}, {os.cpu_count()} cores, {rounds} rounds\n")
    with ExitStack() as stack:
        contenders = dict(_contenders(stack))
        seconds = {name: {PLAIN: [], PANDAS: []} for name in contenders}  # type: dict[str, dict[str, list[float]]]
        forks = _bare_forks(stack)
        floor = []
        for _ in range(rounds):
            floor.append(next(forks))
            for name, run in contenders.items():
                for code in _programs(name):
                    seconds[name][code].append(_measure(run, code))
        _table(seconds, statistics.median(floor))
        _throughput(contenders)
    _memory()


def _contenders(stack: ExitStack) -> Iterator[tuple[str, Run]]:
    yield "subprocess.run([python, '-c', …])", _subprocess
    launchers: list[Any] = ["bubblewrap", "namespaces"]
    for launcher in launchers:
        box = stack.enter_context(SandboxExecutor(launcher=launcher))
        with contextlib.suppress(IsolationError):
            box.run("1")
            yield f"**SandboxExecutor, {launcher}**", partial(_ours, box)
    box = stack.enter_context(SandboxExecutor())
    session = stack.enter_context(box.session())
    yield "**a session of it, with rollback**", lambda code: session.run(code).output
    process = stack.enter_context(ProcessExecutor())
    yield "ProcessExecutor (no isolation)", lambda code: process.run(code).output
    for make in (_monty, _smolagents, _restricted, _repl, _llm_sandbox):
        with contextlib.suppress(ImportError):
            yield make(stack)


def _ours(box: SandboxExecutor, code: str) -> str:
    return box.run(code).output


def _subprocess(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _monty(stack: ExitStack) -> tuple[str, Run]:
    import pydantic_monty  # noqa: F401

    from code_chains.executors import MontyExecutor

    place = stack.enter_context(MontyExecutor())
    return f"MontyExecutor (pydantic-monty {_version('pydantic-monty')})", lambda code: place.run(code).output


def _smolagents(stack: ExitStack) -> tuple[str, Run]:
    from smolagents.local_python_executor import LocalPythonExecutor

    def run(code: str) -> str:
        place = LocalPythonExecutor(additional_authorized_imports=["pandas", "pandas.*"])
        place.send_tools({})
        return str(place(code).logs).strip()

    return f"smolagents {_version('smolagents')} LocalPythonExecutor (in this process)", run


def _restricted(stack: ExitStack) -> tuple[str, Run]:
    from RestrictedPython import compile_restricted
    from RestrictedPython.Eval import default_guarded_getitem, default_guarded_getiter
    from RestrictedPython.Guards import safe_builtins
    from RestrictedPython.PrintCollector import PrintCollector

    def run(code: str) -> str:
        names: dict[str, Any] = {
            "__builtins__": {**safe_builtins, "__import__": __import__},
            "_print_": PrintCollector,
            "_getattr_": getattr,
            "_getitem_": default_guarded_getitem,
            "_getiter_": default_guarded_getiter,
        }
        exec(compile_restricted(f"{code}\nprinted_text = printed", "<code>", "exec"), names)
        return str(names["printed_text"]).strip()

    return f"RestrictedPython {_version('RestrictedPython')} (in this process)", run


def _repl(stack: ExitStack) -> tuple[str, Run]:
    from langchain_experimental.utilities import PythonREPL

    return (
        f"langchain-experimental {_version('langchain-experimental')} PythonREPL (in this process)",
        lambda code: str(PythonREPL().run(code)).strip(),
    )


def _llm_sandbox(stack: ExitStack) -> tuple[str, Run]:
    from llm_sandbox import SandboxSession

    def run(code: str) -> str:
        with SandboxSession(backend="bubblewrap", lang="python", skip_environment_setup=True) as session:
            return str(session.run(code).stdout).strip()

    with contextlib.redirect_stderr(io.StringIO()):
        run(PLAIN)
    return f"llm-sandbox {_version('llm-sandbox')}, bubblewrap", run


def _version(package: str) -> str:
    return importlib.metadata.version(package)


def _programs(name: str) -> list[str]:
    return [PLAIN] if name.startswith(("Monty", "llm-sandbox")) else [PLAIN, PANDAS]  # They have no pandas.


def _measure(run: Run, code: str) -> float:
    time.sleep(REST)
    began = time.perf_counter()
    told = run(code)
    seconds = time.perf_counter() - began
    assert told == ANSWERS[code], told
    return seconds


def _bare_forks(stack: ExitStack) -> Iterator[float]:
    """Seconds of forking and reaping a process with the same libraries loaded."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    process = subprocess.Popen(
        [sys.executable, "-c", FORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    stack.callback(process.communicate)
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        time.sleep(REST)
        process.stdin.write("\n")
        process.stdin.flush()
        yield float(process.stdout.readline())


def _table(seconds: dict[str, dict[str, list[float]]], floor: float) -> None:
    plain, pandas = (statistics.median(next(iter(seconds.values()))[code]) for code in (PLAIN, PANDAS))
    print("| one run | `print(2 + 2)`, ms | times subprocess | pandas, ms | times subprocess |")
    print("|---|---|---|---|---|")
    for name, measured in seconds.items():
        first, second = (statistics.median(measured[code]) if measured[code] else None for code in (PLAIN, PANDAS))
        cells = [*_cells(first, plain), *_cells(second, pandas)]
        print(f"| {name} | {' | '.join(cells)} |")
    ours = statistics.median(next(m for n, m in seconds.items() if "SandboxExecutor" in n)[PLAIN])
    print(f"\nA bare fork of a process with the same libraries takes {floor * 1e3:.2f} ms;", end=" ")
    print(f"print in the sandbox {ours / floor:.2f} times that.\n")


def _cells(seconds: float | None, base: float) -> list[str]:
    return ["-", "-"] if seconds is None else [f"{seconds * 1e3:.2f}", f"{base / seconds:.1f}"]


def _throughput(contenders: dict[str, Run]) -> None:
    print("| runs a second, back to back | print, 2 at a time | 8 | pandas, 2 at a time | 8 |")
    print("|---|---|---|---|---|")
    for name, run in contenders.items():
        if "session" in name or "in this process" in name:
            continue
        rates = [f"{_rate(run, code, width):.1f}" for code in _programs(name) for width in (2, 8)]
        print(f"| {name} | {' | '.join([*rates, *['-'] * (4 - len(rates))])} |")
    print()


def _rate(run: Run, code: str, width: int) -> float:
    count, began = 0, time.perf_counter()
    with ThreadPoolExecutor(width) as pool:
        while time.perf_counter() - began < 2.5:
            count += len(list(pool.map(run, [code] * width)))
    return count / (time.perf_counter() - began)


def _memory() -> None:
    """Proportional memory of the idle sandbox, and of each run of pandas that is active."""
    from concurrent.futures import wait

    with SandboxExecutor() as box, ThreadPoolExecutor(8) as pool:
        box.run("1")
        time.sleep(1)
        idle = _proportional(_below(os.getpid()))
        running = [pool.submit(box.run, f"{PANDAS}\nimport time; time.sleep(4)") for _ in range(8)]
        time.sleep(2.5)
        busy = _proportional(_below(os.getpid()))
        wait(running)
    print(f"Memory (PSS): idle {idle / 2**20:.0f} MB; each active pandas run {(busy - idle) / 8 / 2**20:.1f} MB more.")


def _below(pid: int) -> list[int]:
    found = list[int]()
    with contextlib.suppress(OSError):  # It may have ended meanwhile.
        for child in Path(f"/proc/{pid}/task").glob("*/children"):
            for number in map(int, child.read_text().split()):
                found += [number, *_below(number)]
    return found


def _proportional(pids: list[int]) -> int:
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
