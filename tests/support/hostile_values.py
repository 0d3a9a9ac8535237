"""Feed what a hostile program may send to an entrance of the host, in a process with little memory, beside an event loop.

    python -m tests.support.hostile_values ENTRANCE

Prints the processor time, the longest stall of the event loop, the memory and how it ended.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from code_chains.chains.answer_value import answer_value
from code_chains.executors import Limits
from code_chains.executors.guest.wire import FRAME_HEADER
from code_chains.executors.remote.supervised import execution_of
from code_chains.executors.sandbox.tool_server import ToolServer, open_sandbox_calls
from code_chains.executors.values import VALUE_TYPE, value_of
from code_chains.state import DisplayData, Execution, Isolation
from code_chains.verification.values.answer_types import AnswerType

MB = 1 << 20
MEMORY = 1 << 30


def value(text: str) -> Callable[[], object]:
    """Return what reads a typed value that was forged."""
    return lambda: value_of(_execution(text))


def answer(text: str, kind: Any) -> Callable[[], object]:
    """Return what reads a typed value as the type that was asked for."""
    return lambda: answer_value(_execution(text), "x", AnswerType(kind))


def printed(text: str, kind: Any) -> Callable[[], object]:
    """Return what reads standard output as the type that was asked for."""
    return lambda: answer_value(Execution("ok", stdout=text), "print(x)", AnswerType(kind))


def tool(arguments: str, calls: int = 20) -> Callable[[], object]:
    """Return what serves forged calls of a tool, until they are refused or the pipe breaks."""
    return lambda: _call(arguments, calls)


def report(text: str) -> Callable[[], object]:
    """Return what reads the report of a program in WebAssembly, a container or a service."""
    return lambda: _report(text)


def many(item: str, count: int) -> str:
    """Return a list of many items."""
    return f"[{','.join([item] * count)}]"


RANGE = '{"builtins.range": [0, 300000000, 1]}'
TUPLE = f'{{"builtins.tuple": [{RANGE}]}}'
LONG = "x" * 900_000
ENTRANCES: dict[str, Callable[[], Callable[[], object]]] = {
    "value: array of ranges": lambda: value(f'{{"numpy.ndarray": [[[{TUPLE}]], "int64"]}}'),
    "value: labels of ranges": lambda: value(
        f'{{"pandas.Series": [[{RANGE}], ["a", "b"], null, [1]]}}',
    ),
    "value: items of ranges": lambda: value(f'{{"builtins.dict_items": [{RANGE}]}}'),
    "value: array of no width": lambda: value(f'{{"numpy.ndarray": [["{LONG}"{", 1" * 500}], "<U0"]}}'),
    "value: brackets": lambda: value(many("[]", 16 * MB // 3)),
    "value: braces": lambda: value(many("{}", 16 * MB // 3)),
    "value: keys": lambda: value("{" + ",".join(f'"{number:07}":0' for number in range(16 * MB // 12)) + "}"),
    "value: packed keys": lambda: value('{"builtins.dict": [' + ",".join(f"{n},0" for n in range(MB)) + "]}"),
    "answer: texts for integers": lambda: answer(many('"a"', 1_500_000), list[int]),
    "answer: bad dates": lambda: answer(many('"2024-13-01"', 600_000), list[datetime.date]),
    "answer: values for any": lambda: answer(many("[]", 16 * MB // 3), Any),
    "answer: dict of texts": lambda: answer(
        '{"builtins.dict": [' + ",".join(f'"{n}", "a"' for n in range(400_000)) + "]}", dict[str, int]
    ),
    "printed: brackets": lambda: printed(many("[]", 300_000), list[int]),
    "printed: for any": lambda: printed(many("[]", 300_000), Any),
    "tool: brackets": lambda: tool(f'{{"items": {many("[]", 4 * MB // 3 - 100)}}}'),
    "tool: braces": lambda: tool(f'{{"items": {many("{}", 4 * MB // 3 - 100)}}}'),
    "tool: keys": lambda: tool("{" + ",".join(f'"{number:06}":0' for number in range(4 * MB // 11)) + "}"),
    "tool: wrong types": lambda: tool(f'{{"items": {many("9", 2 * MB - 100)}}}', 40),
    "tool: infinity": lambda: tool('{"items": [1e999]}', 1),
    "report: brackets": lambda: report(many("[]", 18 * MB // 3)),
    "report: views": lambda: report('{"views": ' + many('["a","b","c"]', 18 * MB // 14) + "}"),
}


def _execution(text: str) -> Execution:
    return Execution("ok", result="x", display_data=(DisplayData(VALUE_TYPE, text),))


def _call(arguments: str, count: int) -> str:
    def take(items: list[str]) -> int:
        """Take items."""
        return len(items)

    limits = Limits()
    calls = open_sandbox_calls([take], limits)
    assert calls is not None
    with ToolServer(calls, limits) as server:
        reading, writing = (os.dup(descriptor) for descriptor in server.theirs)
        server.start()
        answers: list[bytes] = []

        def read() -> None:
            while data := os.read(reading, 65536):
                answers.append(data)

        thread = threading.Thread(target=read)
        thread.start()
        try:
            for number in range(1, count + 1):
                body = f'{{"id": {number}, "name": "take", "arguments": {arguments}}}'.encode()
                data = memoryview(FRAME_HEADER.pack(len(body)) + body)
                while data:
                    data = data[os.write(writing, data) :]
        except BrokenPipeError:
            return "refused"
        finally:
            os.close(writing)
            thread.join()
            os.close(reading)
    return f"answered {b''.join(answers)[:200]!r}"


def _report(text: str) -> object:
    line: dict[str, Any] = {
        "exit": 0, "reason": None, "peak": 0, "seconds": 0.0, "stdout": "", "stderr": "", "files": [],
        "result": base64.b64encode(FRAME_HEADER.pack(len(text)) + text.encode()).decode(),
    }  # fmt: skip
    return execution_of(line, Limits(), Isolation("wasm", "eryx")).status


async def measure(entrance: Callable[[], object]) -> dict[str, object]:
    """Use an entrance in a thread, and measure how long the event loop stands still meanwhile."""
    stall = 0.0

    async def watch() -> None:
        nonlocal stall
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            stall = max(stall, time.monotonic() - before - 0.01)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.05)
    memory, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        ending = f"{await asyncio.to_thread(entrance)}"
    except Exception as error:
        ending = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - started
    await asyncio.sleep(0.02)
    watching.cancel()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) // 1024
    return {
        "seconds": round(seconds, 2),
        "stall": round(stall, 2),
        "megabytes": grown,
        "ending": ending[:200],
    }


def main() -> None:
    """Measure the entrance that is named."""
    import numpy  # noqa: F401 - it is not the libraries' memory that is measured
    import pandas  # noqa: F401

    entrance = ENTRANCES[sys.argv[1]]()  # Built here, as some take seconds.
    if len(sys.argv) < 3:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.stdout.write(json.dumps(asyncio.run(measure(entrance))))


if __name__ == "__main__":
    main()
