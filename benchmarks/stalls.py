"""How long one program holds up an event loop: the processor time that it takes in one piece, from a reply to its verdict.

Usage: python -m benchmarks.stalls

Each shape is nested or repeated as often as 200,000 characters and Python's own parser allow; the program is never run.
"""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from code_chains import create_code_chain
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

MAX_CHARS = 190_000
SHAPES: dict[str, Callable[[int], str]] = {
    "a nested dict": lambda n: f"x = {'{1: ' * n}1{'}' * n}",
    "nested lists": lambda n: f"x = {'[' * n}1{']' * n}",
    "nested assignments": lambda n: f"x = {''.join(f'(a{i} := ' for i in range(n))}1{')' * n}",
    "nested comprehensions": lambda n: f"x = {'[' * n}1{' for i in y]' * n}",
    "nested conditions": lambda n: f"x = {'1 if a else ' * n}2",
    "missing modules": lambda n: f"import {', '.join(f'zz{i}' for i in range(n))}",
    "the same import": lambda n: "import zz\n" * n,
    "short statements": lambda n: "x = 1\n" * n,
    "calls": lambda n: "f(a, b)\n" * n,
    "a chain of names": lambda n: "".join(f"a{i} = a{i + 1}\n" for i in range(n)),
    "a sum": lambda n: f"x = {' + '.join(f'{i}.5' for i in range(n))}",
    "a list of numbers": lambda n: f"x = [{', '.join(map(str, range(n)))}]",
    "a dict of texts": lambda n: f"x = {{{', '.join(f'{i!r}: {i}' for i in map(str, range(n)))}}}",
    "functions": lambda n: "".join(f"def f{i}(a): return f{i + 1}(a)\n" for i in range(n)),
    "undefined names": lambda n: "".join(f"print(u{i})\n" for i in range(n)),
    "selections of rows": lambda n: "df = df[df['a'] > 1]\n" * n,
}


def largest(shape: Callable[[int], str]) -> str:
    """Return the largest program of a shape that a model may write and Python parses."""
    size = 8
    while len(shape(2 * size)) < MAX_CHARS:
        try:
            ast.parse(shape(2 * size))
        except (SyntaxError, RecursionError, MemoryError):
            break
        size *= 2
    return shape(size)


async def stall_of(code: str) -> tuple[float, float]:
    """Return the longest piece of processor time of the event loop's thread, and that of all threads together."""
    model = ScriptedModel(
        lambda messages: f"```python\n{code}\n```" if asks_for_code(messages) else "It is 1."
    )
    with create_code_chain(model, executor=ScriptedExecutor(lambda source: "1\n")) as chain:
        with suppress(Exception):
            await chain.ainvoke({"query": "What is the total of 5 amounts?"})  # It loads what it needs.
        worst, began = 0.0, time.process_time()
        running = asyncio.ensure_future(chain.ainvoke({"query": "What is the total of 6 amounts?"}))
        while not running.done():
            started = time.thread_time()
            await asyncio.sleep(0)
            worst = max(worst, time.thread_time() - started)
        with suppress(Exception):
            await running
    return worst, time.process_time() - began


def main() -> None:
    """Print a row for each shape."""
    print(
        "| the largest program | characters | event loop in one piece, s | all threads, s |\n|---|---|---|---|"
    )
    for name, shape in SHAPES.items():
        code = largest(shape)
        stall, total = asyncio.run(stall_of(code))
        print(f"| {name} | {len(code):,} | {stall:.2f} | {total:.1f} |", flush=True)


if __name__ == "__main__":
    main()
