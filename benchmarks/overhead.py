"""What our chains cost on top of the work itself, beside the same steps as stock LangChain chains.

The model answers at once and the executor runs nothing, so what is left is the chains. All rows are measured in turn
within one run; the figures are CPU microseconds of one call, median and spread over rounds.

Usage: python -m benchmarks.overhead [ROUNDS]
"""

from __future__ import annotations

import asyncio
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from langchain_classic.chains import SequentialChain, TransformChain
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from code_chains import create_code_chain
from code_chains.chains import ExecuteChain, GenerateChain, InterpretChain, Sequence, ValidateChain
from code_chains.checks import STANDARD, find_problems
from code_chains.extraction import extract_code
from code_chains.testing import ScriptedExecutor

QUESTION = {"query": "What is the sum of the numbers from 1 to 5?"}
CALLS = 20

model = FakeListChatModel(responses=["```python\nprint(sum(range(1, 6)))\n```"])
place = ScriptedExecutor(lambda code: "15")
writer = GenerateChain(model=model)
teller = InterpretChain(model=model)


def generate(state: dict[str, Any]) -> dict[str, Any]:
    """The same prompt, model and extraction as GenerateChain."""
    return {"code": extract_code(str(model.invoke(writer.messages(state)).text))}


def validate(state: dict[str, Any]) -> dict[str, Any]:
    """The same checks as ValidateChain."""
    return {"problems": find_problems(state["code"], STANDARD)}


def execute(state: dict[str, Any]) -> dict[str, Any]:
    """The same executor as ExecuteChain."""
    return {"output": place.run(state["code"]).output}


def interpret(state: dict[str, Any]) -> dict[str, Any]:
    """The same prompt and model as InterpretChain."""
    return {"answer": str(model.invoke(teller.messages(state)).text)}


def stock() -> SequentialChain:
    """The four steps as a stock SequentialChain of TransformChains; calls of the model inside are not traced."""
    steps = [(generate, "query", "code"), (validate, "code", "problems"), (execute, "code", "output")]
    chains = [
        TransformChain(input_variables=[read], output_variables=[added], transform=step)
        for step, read, added in [*steps, (interpret, "output", "answer")]
    ]
    return SequentialChain(chains=chains, input_variables=["query"], output_variables=["code", "output", "answer"])


def adding(step: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A step that hands on what it was given, too."""
    return lambda state: {**state, **step(state)}


def lcel() -> Any:
    """The four steps as a pipe of functions; calls of the model inside are traced."""
    pipe: Any = RunnablePassthrough()
    for step in (generate, validate, execute, interpret):
        pipe |= RunnableLambda(adding(step))
    return pipe


def pieces() -> Sequence:
    """The four steps as our pieces; traced, streaming."""
    chains = [writer, ValidateChain(), ExecuteChain(executor=place), teller]
    return Sequence(chains=chains, input_variables=["query"], output_variables=["code", "output", "answer"])


def steps_alone() -> None:
    """The work itself, without any chain."""
    state: dict[str, Any] = dict(QUESTION)
    for step in (generate, validate, execute, interpret):
        state |= step(state)


def cpu(call: Callable[[], Any]) -> float:
    """CPU microseconds of one call."""
    began = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - began) / CALLS * 1e6


def main(rounds: int) -> None:
    """Measure and print the table."""
    ours, theirs, pipe, whole = pieces(), stock(), lcel(), create_code_chain(model, executor=place)
    rows: dict[str, Callable[[], Any]] = {
        "the four steps as plain functions": steps_alone,
        "stock SequentialChain + TransformChain (model calls untraced)": lambda: theirs.invoke(QUESTION),
        "LCEL pipe of functions (traced)": lambda: pipe.invoke(QUESTION),
        "our four pieces in a Sequence (traced)": lambda: ours.invoke(QUESTION),
        "our four pieces, streamed": lambda: list(ours.stream(QUESTION)),
        "our four pieces, ainvoke": lambda: asyncio.run(ours.ainvoke(QUESTION)),
        "create_code_chain (evaluate, repair and usage on top)": lambda: whole.invoke(QUESTION),
    }
    measured: dict[str, list[float]] = {name: [] for name in rows}
    for call in rows.values():
        cpu(call)
    for _ in range(rounds):
        for name, call in rows.items():
            measured[name].append(cpu(call))
    packages = ", ".join(f"{name} {version(name)}" for name in ("langchain-core", "langchain-classic"))
    print(f"Python {platform.python_version()}, {platform.machine()}, {packages}; {rounds} rounds of {CALLS} calls\n")
    print("| | CPU µs a call, median | min - max | over the steps |\n|---|---|---|---|")
    floor = statistics.median(measured["the four steps as plain functions"])
    for name, values in measured.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:.0f} | {min(values):.0f} - {max(values):.0f} | {middle - floor:+.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
