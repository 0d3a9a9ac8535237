"""What a cached answer costs, and that many who ask the same at once cost one.

    python -m benchmarks.caching [REPEATS]

A model that answers at once and the real sandbox; so what is measured is the library, and a real model only makes the
difference larger. Beside it LangChain's own cache of model replies, behind which the program still runs each time.
"""

from __future__ import annotations

import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.caches import InMemoryCache
from langchain_core.messages import BaseMessage
from langchain_core.stores import InMemoryByteStore

from code_chains import SandboxExecutor, SqliteStore, create_code_chain
from code_chains.testing import ScriptedModel, asks_for_code

ASKERS = 50


def answers(messages: list[BaseMessage]) -> str:
    """A model that is done at once."""
    return "print('Sum:', sum(range(1, 6)))" if asks_for_code(messages) else "The sum is 15."


def milliseconds(ask: Callable[[int], object], repeats: int) -> tuple[float, float]:
    """Median and 95th percentile of one call."""
    took = []
    for number in range(repeats + 3):
        began = time.perf_counter()
        ask(number)
        took.append(1000 * (time.perf_counter() - began))
    ordered = sorted(took[3:])
    return statistics.median(ordered), ordered[int(0.95 * len(ordered))]


def costs(folder: Path, executor: SandboxExecutor, repeats: int) -> None:
    """The table of single questions."""
    model = ScriptedModel(answers)
    large = folder / "large.bin"
    large.write_bytes(b"x" * 10_000_000)
    with_file = {"query": "Sum?", "files": {"large.bin": large}}
    plain = create_code_chain(model, executor=executor)
    replies = create_code_chain(ScriptedModel(answers, cache=InMemoryCache()), executor=executor)
    memory = create_code_chain(model, executor=executor, cache=InMemoryByteStore())
    file = create_code_chain(model, executor=executor, cache=SqliteStore(folder / "answers.sqlite"))
    rows: list[tuple[str, Callable[[int], object]]] = [
        ("no cache", lambda n: plain.invoke(f"Sum {n}?")),
        ("LangChain's cache of model replies, a hit", lambda n: replies.invoke("Sum?")),
        ("a miss, SQLite", lambda n: file.invoke(f"Sum {n}?")),
        ("a hit, in memory", lambda n: memory.invoke("Sum?")),
        ("a hit, SQLite", lambda n: file.invoke("Sum?")),
        ("a hit, SQLite, streamed", lambda n: list(file.stream("Sum?"))),
        ("a hit, SQLite, with a file of 10 MB", lambda n: file.invoke(with_file)),
    ]
    print("| one question | median ms | 95 % ms |\n|---|---|---|")
    for name, ask in rows:
        print("| {} | {:.2f} | {:.2f} |".format(name, *milliseconds(ask, repeats)), flush=True)


class Slow:
    """A model that takes a second, and counts how often it is asked."""

    fingerprint = "slow"  # Its count is no part of what it answers.

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: list[BaseMessage]) -> str:
        """Reply, in time."""
        self.calls += 1
        time.sleep(1)
        return answers(messages)


def flight(folder: Path, executor: SandboxExecutor) -> None:
    """The table of many who ask at once."""
    print(
        f"\n| {ASKERS} threads ask the same at once; a reply takes 1 s | calls of the model | seconds |\n|---|---|---|"
    )
    chains: dict[str, Any] = {"no cache": False, "cache": SqliteStore(folder / "flight.sqlite")}
    for name, cache in chains.items():
        model = Slow()
        chain = create_code_chain(ScriptedModel(model), executor=executor, cache=cache)
        threads = [threading.Thread(target=chain.invoke, args=("Sum?",)) for _ in range(ASKERS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"| {name} | {model.calls} | {time.perf_counter() - began:.1f} |", flush=True)


def main(repeats: int) -> None:
    """Measure and print both tables."""
    print(f"Python {platform.python_version()} on {platform.system()}\n")
    with tempfile.TemporaryDirectory() as folder, SandboxExecutor(preload=()) as executor:
        costs(Path(folder), executor, repeats)
        flight(Path(folder), executor)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
