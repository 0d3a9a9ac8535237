"""What it costs to run a program, side by side with other ways, as ratios within one run.

    python -m benchmarks.execution [ROUNDS]

Contenders take turns in each round, so that a busy moment hits all of them. Those that are not installed are left out:
`pip install -e ".[benchmarks]"`.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from benchmarks.execution_load import load_table
from code_chains.errors import ExecutorError
from code_chains.executors import Executor, ProcessExecutor, SandboxExecutor
from code_chains.executors.sandbox.provider import PRELOAD

PLAIN = "print(2 + 2)"
PANDAS = (
    "import pandas as pd\n"
    "frame = pd.DataFrame({'group': [n % 3 for n in range(100)], 'value': range(100)})\n"
    "print(frame.groupby('group').value.sum().max())"
)
CELL = "frame['half'] = frame.value / 2\nlen(frame)"
ANSWERS = {PLAIN: "4", PANDAS: "1683", CELL: "100"}
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
COLD = 5
"""Rounds in which each executor is made anew."""
WIDTHS = (1, 2, 8)
Run = Callable[[str], str]
Launcher = Literal["bubblewrap", "namespaces"]


@dataclass(frozen=True)
class Contender:
    """A way to run a program.

    Attributes:
        name: How it is called in the tables.
        run: Runs a program and returns what it prints.
        make: Makes the executor of `run` anew; None where each run begins cold, or nothing is made.
        pandas: Whether it has pandas.
        alone: Whether only one program can run at a time.
    """

    name: str
    run: Run
    make: Callable[[], Executor] | None = None
    pandas: bool = True
    alone: bool = False

    @property
    def programs(self) -> list[str]:
        """The programs that it can run."""
        return [PLAIN, PANDAS] if self.pandas else [PLAIN]


def main(rounds: int) -> None:
    """Measure and print the tables."""
    kernel = platform.release().partition("-")[0]
    print(
        f"{platform.python_version()} on {platform.system()} {kernel}, {os.cpu_count()} cores, {rounds} rounds\n"
    )
    with ExitStack() as stack:
        contenders = list(_contenders(stack))
        seconds = {(one.name, code): list[float]() for one in contenders for code in one.programs}
        forks = _bare_forks(stack)
        floor = []
        for number in range(rounds + 1):
            floor.append(next(forks))
            for one in contenders:
                for code in one.programs:
                    taken = _measure(one.run, code)
                    if number:  # The first round warms up.
                        seconds[one.name, code].append(taken)
        _table(contenders, seconds, statistics.median(floor))
        _cold(contenders)
        _throughput(contenders)
        _load(contenders)
    _memory()


def _contenders(stack: ExitStack) -> Iterator[Contender]:
    yield Contender("subprocess.run([python, '-c', …])", _subprocess)
    for launcher in _launchers():
        yield _ours(stack, f"**SandboxExecutor, {launcher}**", partial(SandboxExecutor, launcher=launcher))
    session = stack.enter_context(stack.enter_context(SandboxExecutor()).session())
    yield Contender("**a session of it, with rollback**", lambda code: session.run(code).output, alone=True)
    yield _ours(stack, "ProcessExecutor (no isolation)", ProcessExecutor)
    for find in (_monty, _smolagents, _restricted, _repl, _llm_sandbox, _sandlock):
        with contextlib.suppress(ImportError):
            yield find(stack)


def _ours(stack: ExitStack, name: str, make: Callable[[], Executor], *, pandas: bool = True) -> Contender:
    executor = stack.enter_context(make())
    return Contender(name, lambda code: executor.run(code).output, make, pandas)


def _launchers() -> Iterator[Launcher]:
    launchers: tuple[Launcher, ...] = ("bubblewrap", "namespaces")
    for launcher in launchers:
        with contextlib.suppress(ExecutorError), SandboxExecutor(launcher=launcher) as sandbox:
            sandbox.run("1")
            yield launcher


def _subprocess(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def _monty(stack: ExitStack) -> Contender:
    import pydantic_monty  # noqa: F401

    from code_chains.executors import MontyExecutor

    name = f"MontyExecutor (pydantic-monty {_version('pydantic-monty')})"
    return _ours(stack, name, MontyExecutor, pandas=False)


def _smolagents(stack: ExitStack) -> Contender:
    from smolagents.local_python_executor import LocalPythonExecutor

    def run(code: str) -> str:
        place = LocalPythonExecutor(additional_authorized_imports=["pandas", "pandas.*"])
        place.send_tools({})
        return str(place(code).logs).strip()

    return _in_process(f"smolagents {_version('smolagents')} LocalPythonExecutor", run)


def _restricted(stack: ExitStack) -> Contender:
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

    return _in_process(f"RestrictedPython {_version('RestrictedPython')}", run)


def _repl(stack: ExitStack) -> Contender:
    from langchain_experimental.utilities import PythonREPL

    name = f"langchain-experimental {_version('langchain-experimental')} PythonREPL"
    return _in_process(name, lambda code: str(PythonREPL().run(code)).strip())


def _in_process(name: str, run: Run) -> Contender:
    return Contender(f"{name} (in this process)", run, alone=True)


def _llm_sandbox(stack: ExitStack) -> Contender:
    from llm_sandbox import SandboxSession

    def run(code: str) -> str:
        with SandboxSession(backend="bubblewrap", lang="python", skip_environment_setup=True) as session:
            return str(session.run(code).stdout).strip()

    with contextlib.redirect_stderr(io.StringIO()):
        run(PLAIN)
    return Contender(f"llm-sandbox {_version('llm-sandbox')}, bubblewrap", run, pandas=False)


def _sandlock(stack: ExitStack) -> Contender:
    import sandlock

    paths = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/dev/urandom", sys.prefix, sys.base_prefix)
    readable = [path for path in paths if os.path.exists(path)]

    def run(code: str) -> str:
        sandbox = sandlock.Sandbox(fs_readable=readable, fs_writable=["/dev/null"])
        return str(sandbox.run([sys.executable, "-c", code]).stdout.decode()).strip()

    return Contender(f"sandlock {_version('sandlock')}", run, pandas=False)


def _version(package: str) -> str:
    return importlib.metadata.version(package)


def _measure(run: Run, code: str) -> float:
    time.sleep(REST)
    return _timed(run, code)


def _timed(run: Run, code: str) -> float:
    began = time.perf_counter()
    told = run(code)
    seconds = time.perf_counter() - began
    assert told == ANSWERS[code], told
    return seconds


def _bare_forks(stack: ExitStack) -> Iterator[float]:
    """Seconds of forking and reaping a process with the same libraries loaded."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    process = subprocess.Popen(
        [sys.executable, "-c", FORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    stack.callback(process.communicate)
    assert process.stdin is not None
    assert process.stdout is not None
    while True:
        time.sleep(REST)
        process.stdin.write("\n")
        process.stdin.flush()
        yield float(process.stdout.readline())


def _table(contenders: list[Contender], seconds: dict[tuple[str, str], list[float]], floor: float) -> None:
    columns = "p50 ms | p95 ms | times subprocess"
    print(f"| one run, warm | `print(2 + 2)`: {columns} | pandas: {columns} |")
    print(f"|---|{'---|' * 6}")
    bases = {code: statistics.median(seconds[contenders[0].name, code]) for code in (PLAIN, PANDAS)}
    for one in contenders:
        cells = [cell for code, base in bases.items() for cell in _cells(seconds.get((one.name, code)), base)]
        print(f"| {one.name} | {' | '.join(cells)} |")
    ours = statistics.median(
        seconds[next(one.name for one in contenders if "SandboxExecutor" in one.name), PLAIN]
    )
    print(f"\nA bare fork of a process with the same libraries takes {floor * 1e3:.2f} ms;", end=" ")
    print(f"print in the sandbox {ours / floor:.2f} times that.\n")


def _cells(seconds: list[float] | None, base: float) -> list[str]:
    if seconds is None:
        return ["-"] * 3
    middle = statistics.median(seconds)
    high = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return [f"{middle * 1e3:.2f}", f"{high * 1e3:.2f}", f"{base / middle:.1f}"]


def _cold(contenders: list[Contender]) -> None:
    """The first run of an executor, with its making; rounds in turns."""
    made = {one.name: one.make for one in contenders if one.make}
    seconds = {name: list[float]() for name in made}
    for _ in range(COLD):
        for name, make in made.items():
            with ExitStack() as stack:
                seconds[name].append(_timed(partial(_first, stack, make), PLAIN))
    print("| from nothing to the first `print(2 + 2)` | median ms | most ms |\n|---|---|---|")
    for name, measured in seconds.items():
        print(f"| {name} | {statistics.median(measured) * 1e3:.0f} | {max(measured) * 1e3:.0f} |")
    print()


def _first(stack: ExitStack, make: Callable[[], Executor], code: str) -> str:
    return stack.enter_context(make()).run(code).output


def _throughput(contenders: list[Contender]) -> None:
    widths = " | ".join(f"{width} at a time" for width in WIDTHS)
    print(
        f"| runs a second, back to back | print: {widths} | pandas: {widths} |\n|---|{'---|' * 2 * len(WIDTHS)}"
    )
    for one in contenders:
        if not one.alone:
            rates = [f"{_rate(one.run, code, width):.1f}" for code in one.programs for width in WIDTHS]
            print(f"| {one.name} | {' | '.join([*rates, *['-'] * (2 * len(WIDTHS) - len(rates))])} |")
    print()


def _load(contenders: list[Contender]) -> None:
    """Print the table of what a run costs under load, for those that run in processes of their own."""
    fresh, *others = contenders
    tested = [one for one in others if not one.alone and one.pandas]
    chosen = [(fresh.name, fresh.run, [PLAIN]), *((one.name, one.run, one.programs) for one in tested)]
    with SandboxExecutor() as sandbox, sandbox.session() as session:
        session.run(PANDAS)
        one_at_a_time = Lock()

        def run(code: str) -> str:
            with one_at_a_time:
                return session.run(code).output

        print(*load_table([*chosen, ("a session", run, [CELL])]), "", sep="\n")


def _rate(run: Run, code: str, width: int) -> float:
    count, began = 0, time.perf_counter()
    with ThreadPoolExecutor(width) as pool:
        while time.perf_counter() - began < 2.5:
            count += len(list(pool.map(run, [code] * width)))
    return count / (time.perf_counter() - began)


def _memory() -> None:
    """Proportional memory of the idle sandbox, and of each run of pandas that is active."""
    from concurrent.futures import wait

    with SandboxExecutor() as sandbox, ThreadPoolExecutor(8) as pool:
        sandbox.run(PANDAS)  # Then the libraries are loaded.
        time.sleep(1)
        idle = _proportional(_below(os.getpid()))
        running = [pool.submit(sandbox.run, f"{PANDAS}\nimport time; time.sleep(4)") for _ in range(8)]
        time.sleep(2.5)
        busy = _proportional(_below(os.getpid()))
        wait(running)
    print(
        f"Memory (PSS): idle {idle / 2**20:.0f} MB; each active pandas run {(busy - idle) / 8 / 2**20:.1f} MB more."
    )


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
