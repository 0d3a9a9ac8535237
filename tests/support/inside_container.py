"""What a container says of itself: the executor that a chain gets there, what it withstands, what runs in it, how fast.

It is run inside a container by `test_in_containers`, as its first process, and prints a report as JSON. `inside_container.py
outside` prints what ordinary programs print without a sandbox; the path of that, as JSON, is the argument otherwise.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

RUNS = 9
"""Runs whose median is what a run takes once the first is over."""
ENDING_S = 5.0
"""Seconds that what was killed may take to be gone."""
FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/home", "/root")


def main() -> None:
    if sys.argv[1] == "outside":
        report: Any = outside()
    elif sys.argv[-1] == "within":
        report = look(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    else:
        report = supervise(sys.argv[1])
    json.dump(report, sys.stdout)


def supervise(expected: str) -> dict[str, Any]:
    """Let another process find out everything, and look at what it leaves: orphans become children of this process."""
    files, began = set(_files()), time.time()
    command = [sys.executable, __file__, expected, str(began), "within"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    report["left"] = sorted(set(_files()) - files) + _other_processes()
    return report


def look(expected: dict[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = {"first question": first_question(), "landlock": named("landlock")}
    report["kernel"] = named("kernel")
    if "error" in report["first question"]:
        return report
    level = report["first question"]["level"]
    report["features"] = features()
    return report | {"failed": ordinary(expected), "open": escapes(level)}


def first_question() -> dict[str, Any]:
    """Ask a chain with the executor it gets by default, and report its answer, or the error."""
    from code_chains import create_code_chain
    from code_chains.errors import CodeChainsError
    from code_chains.testing import ScriptedModel

    model = ScriptedModel(lambda _: "```python\nprint(6 * 7)\n```")
    try:
        with create_code_chain(model, interpret=False) as chain:
            took, result = _timed(lambda: chain.invoke({"query": "six times seven"}))
            cold = time.time() - float(sys.argv[2])
            more = [_timed(lambda: chain.invoke({"query": "again"}))[0] for _ in range(RUNS)]
    except CodeChainsError as error:
        return {"error": type(error).__name__, "message": str(error)}
    return {
        "answer": result["output"],
        "level": result["execution"].isolation.level,
        "layers": list(result["execution"].isolation.layers),
        "cold_s": round(cold, 1),
        "first_ms": round(took * 1000),
        "next_ms": round(statistics.median(more) * 1000, 1),
    }


def named(level: Any) -> str:
    """Return the level of the kernel sandbox if this one is asked for by name, or the message of its error."""
    from code_chains.errors import CodeChainsError
    from code_chains.executors import SandboxExecutor

    try:
        with SandboxExecutor(min_isolation=level, preload=()) as executor:
            isolation = executor.run("1").isolation
    except CodeChainsError as error:
        return str(error)
    return isolation.level if isolation else ""


def features() -> list[str]:
    """Return what programs have beside the standard library: pandas, a figure, a session, a tool and hidden tests."""
    from code_chains.executors.strongest import strongest_executor

    plot = "import pandas as pd, matplotlib.pyplot as plt\npd.Series([1, 2]).plot(); plt.show()"
    with strongest_executor() as executor, executor.session() as session:
        found = {"figure": any(item.media_type == "image/png" for item in executor.run(plot).artifacts)}
        session.run("kept = 41")
        found["session"] = session.run("kept + 1").output == "42"
        found["tool"] = executor.run("twice(21)", tools=[twice]).output == "42"
        found["tests"] = executor.run_tests("def f(): return 1", "assert f() == 1")[1].ok
    return [name for name, is_there in found.items() if is_there]


def twice(number: int) -> int:
    """Return the double of a number."""
    return 2 * number


def escapes(level: str) -> dict[str, str]:
    """Return the result of each escape that was tried: the reason if it got somewhere, and nothing if it was held."""
    from code_chains.executors.strongest import strongest_executor
    from tests.attacks import test_escapes

    os.environ["HOST_TOKEN"] = f"environment-{test_escapes.TOKEN}"
    attempts = _wasm_attempts() if level == "wasm" else _kernel_attempts(level)
    with strongest_executor(limits=test_escapes.LIMITS) as executor:
        executor.run("1")
        executor.run("import numpy")  # Libraries take longer to load than rows may take.
        return {name: _held(attempt, executor) for name, attempt in attempts}


Attempt = Callable[[Any, Any], None]


def _kernel_attempts(level: str) -> Iterator[tuple[str, Attempt]]:
    """Yield each row in a run of its own, and in sessions those that differ there."""
    from tests.attacks import test_escapes

    places = [test_escapes.Environment(level, session=session) for session in (False, True)]
    for row in test_escapes.rows(places):
        if row.marks:
            continue

        def attempt(executor: Any, host: Any, values: Any = row.values) -> None:
            test_escapes.attack_from(executor, host, *values)

        yield str(row.id), attempt


def _wasm_attempts() -> Iterator[tuple[str, Attempt]]:
    from tests.executors import test_wasm

    for row in test_wasm.PARAMETERS:

        def attempt(executor: Any, host: Any, program: Any = row.values[0]) -> None:
            test_wasm.test_no_known_technique_escapes(executor, host, program)

        yield str(row.id), attempt


def _held(attempt: Attempt, executor: Any) -> str:
    with _canaries() as host:
        try:
            attempt(executor, host)
        except Exception as error:
            line = traceback.extract_tb(error.__traceback__)[-1].line
            return f"{type(error).__name__}: {error} ({line})"[:300]
    return ""


@contextmanager
def _canaries() -> Iterator[Any]:
    from tests.attacks import test_escapes

    host = test_escapes.Host()
    try:
        yield host
    finally:
        host.close()


def ordinary(expected: dict[str, str]) -> dict[str, str]:
    """Return of each ordinary program what kept it from printing the same as without a sandbox; nothing if it did."""
    from code_chains.executors.limits import Limits
    from code_chains.executors.strongest import strongest_executor
    from tests.executors import test_ordinary

    with (
        tempfile.TemporaryDirectory() as folder,
        strongest_executor(limits=Limits(seconds=30, memory="1G")) as executor,
    ):
        inputs = _write_inputs(Path(folder))
        outcomes = {}
        for name, program in test_ordinary.PROGRAMS.items():
            took, done = _timed(partial(executor.run, program, files=inputs))
            reason = f"{done.error.type}: {done.error.message}" if done.error else "it printed something else"
            outcomes[name] = (
                "" if done.ok and done.stdout == expected[name] else f"{reason} ({took:.1f} s)"[:300]
            )
    return outcomes


def outside() -> dict[str, str]:
    """Return what each ordinary program prints as a script."""
    from tests.executors import test_ordinary

    printed = {}
    for name, program in test_ordinary.PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            _write_inputs(Path(folder))
            script = Path(folder if "__file__" in program else other, "program.py")
            script.write_text(program, encoding="utf-8")
            printed[name] = test_ordinary.run_script(script, Path(folder))
    return printed


def _write_inputs(folder: Path) -> dict[str, Path]:
    from tests.executors import test_ordinary

    for name, text in test_ordinary.INPUTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in test_ordinary.INPUTS}


def _timed(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    result = action()
    return time.monotonic() - began, result


def _files() -> Iterator[str]:
    for folder in FOLDERS:
        yield from glob.glob(f"{folder}/**", recursive=True, include_hidden=True)


def _other_processes() -> list[str]:
    """Return what still runs besides this process, which collects, as the first one has to, whatever has ended."""
    with contextlib.suppress(ChildProcessError):
        deadline = time.monotonic() + ENDING_S
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.1)
    pids = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
    return [
        Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ") for pid in sorted(pids)
    ]


if __name__ == "__main__":
    main()
