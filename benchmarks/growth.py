"""How cost grows: with turns of history, snippets, bytes of input and conversations, each with the slope on a log-log scale.

A slope of 0 is no growth, 1 a straight line; more than 1 is worse than that.

Usage: python -m benchmarks.growth [quick]
"""

from __future__ import annotations

import gc
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from code_chains import CodeChain, SandboxExecutor, create_code_chain
from code_chains.conversations.memory import ConversationMemory
from code_chains.executors import Limits
from code_chains.state import Turn
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

from .retrieval import clustered, snippet_store

Row = tuple[str, float]


def milliseconds(call: Callable[[], object], times: int = 5) -> float:
    """The median of several calls."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append((time.perf_counter() - began) * 1e3)
    return statistics.median(found)


def scripted(memory: ConversationMemory | None = None) -> CodeChain:
    """A chain whose model and executor cost nothing."""
    model = ScriptedModel(lambda messages: "print(6 * 7)" if asks_for_code(messages) else "It is 42.")
    executor = ScriptedExecutor(lambda code: "42")
    return create_code_chain(model, executor=executor, memory=True if memory is None else memory)


def turns(counts: Iterable[int]) -> Iterator[Row]:
    """A turn of a conversation that has so many already."""
    for count in counts:
        memory = ConversationMemory()
        for number in range(count):
            memory.add(
                "ann", Turn(f"{number:020d}-x", f"question {number}", "An answer.", "print(42)", "42", runs=1)
            )
        with scripted(memory) as chain:
            yield (
                f"{count} turns",
                milliseconds(partial(chain.invoke, {"query": "And now?", "session_id": "ann"})),
            )


def snippets(sizes: Iterable[int]) -> Iterator[Row]:
    """A search among so many snippets (384 numbers each)."""
    for size in sizes:
        members = clustered(size)
        store = snippet_store(members)
        query = members.queries[0].tolist()
        search = partial(store.similarity_search_by_vector, query, k=4)
        yield f"{size:,} snippets", milliseconds(search, 20)


def data(sizes: Iterable[int]) -> Iterator[Row]:
    """A run that is given a file of so many bytes, of which the program reads the first line."""
    with (
        tempfile.TemporaryDirectory() as folder,
        SandboxExecutor(preload=(), limits=Limits(disk="256M")) as sandbox,
    ):
        for size in sizes:
            path = Path(folder, f"{size}.csv")
            path.write_bytes(b"region,amount\n" + b"north,10\n" * (size // 9))
            run = partial(sandbox.run, "print(open('a.csv').readline())", files={"a.csv": path})
            yield f"a file of {size:,} bytes", milliseconds(run)


def conversations(counts: Iterable[int]) -> Iterator[Row]:
    """A turn of one of so many conversations that go on in turn."""
    for count in counts:
        with scripted() as chain:
            for number in range(count):
                chain.invoke({"query": "First?", "session_id": f"visitor {number}"})
            gc.collect()
            ask = partial(chain.invoke, {"query": "And now?", "session_id": "visitor 0"})
            yield f"{count} conversations", milliseconds(ask)


def slope(rows: list[Row], sizes: list[int]) -> float:
    """The exponent by which cost grows, over the last two steps."""
    (_, before), (_, last) = rows[-2], rows[-1]
    return math.log(last / before) / math.log(sizes[-1] / sizes[-2])


def main(*, quick: bool = False) -> None:
    """Measure and print."""
    kinds: dict[str, tuple[Callable[[Iterable[int]], Iterator[Row]], list[int]]] = {
        "history": (turns, [1, 10, 100]),
        "snippets": (snippets, [10, 100] if quick else [10, 100, 1_000, 10_000, 100_000]),
        "data": (data, [1_000, 10_000] if quick else [1_000, 100_000, 10_000_000, 100_000_000]),
        "conversations": (conversations, [1, 10] if quick else [1, 10, 100, 1_000]),
    }
    print("| what grows | median ms for one | slope at the end |\n|---|---|---|")
    for name, (measure, sizes) in kinds.items():
        rows = list(measure(sizes))
        cells = ", ".join(f"{what}: {value:.2f}" for what, value in rows)
        print(f"| {name} | {cells} | {slope(rows, sizes):.2f} |", flush=True)


if __name__ == "__main__":
    main(quick="quick" in sys.argv)
