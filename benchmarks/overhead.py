"""What our chains cost on top of the work itself, beside the same steps as stock chains, as LCEL and as a LangGraph graph.

The model answers at once and the executor runs nothing, so what is left is the chains. All contenders are measured in turn
within one run; the figures are CPU microseconds of one call, medians over rounds.

Usage: python -m benchmarks.overhead [ROUNDS]
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any, TypedDict

from langchain_classic.chains import LLMChain, SequentialChain, TransformChain
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough

from code_chains import create_code_chain
from code_chains.analysis.checks import STANDARD, find_problems
from code_chains.analysis.replies.extraction import extract_code
from code_chains.chains import (
    EvaluateChain,
    ExecuteChain,
    GenerateChain,
    InterpretChain,
    StreamingSequentialChain,
    ValidateChain,
)
from code_chains.state import Execution, Verdict
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

QUESTION = {"query": "What is the sum of the numbers from 1 to 5?"}
LONG_QUESTION = {"query": "What is the sum of the numbers from 1 to 5? Take many lines."}
CALLS = 10
WAYS = ("invoke", "ainvoke", "stream", "batch", "heard")
WORK, WHOLE = "the steps as plain functions", "**`create_code_chain`**"
GRAPH, STOCK = "LangGraph: the same with a retry edge", "stock `SequentialChain` with `LLMChain`, traced"

TOKENS = "LangGraph: the same, streaming tokens as well"
PIECES = "**our five pieces in a `StreamingSequentialChain`**, traced"
QUIET = "**our five pieces**, of a model that does not stream tokens (`disable_streaming=True`)"

PROGRAM, ANSWER = "print(sum(range(1, 6)))", "The sum is 15."
LONG_PROGRAM = """
import math
from collections import defaultdict

import pandas as pd


def monthly(frame, column="amount"):
    months = frame["date"].dt.to_period("M")
    grouped = frame.groupby(months)[column].agg(["sum", "mean", "count"])
    grouped["share"] = grouped["sum"] / grouped["sum"].sum()
    return grouped


class Report:
    def __init__(self, frame):
        self.frame = frame
        self.totals = defaultdict(float)

    def add(self):
        for _, row in self.frame.iterrows():
            if row["amount"] > 0 and not math.isnan(row["amount"]):
                self.totals[row["region"]] += row["amount"]
        return self

    def best(self):
        return max(self.totals.items(), key=lambda pair: pair[1])


data = pd.DataFrame({
    "date": [f"2024-01-0{day}" for day in range(1, 6)],
    "amount": range(1, 6),
    "region": ["a", "b", "a", "b", "a"],
})
data["date"] = pd.to_datetime(data["date"])
name, total = Report(data).add().best()
print(f"Best region: {name} with {total:.2f}")
print(monthly(data).round(2).to_string())
print(sum(range(1, 6)))
"""
"""A program of the usual length: what checks cost grows with it."""


REPLY, LONG_REPLY = (f"```python\n{program.strip()}\n```" for program in (PROGRAM, LONG_PROGRAM))


def reply(messages: list[BaseMessage]) -> str:
    """What the model says: a program, of the length that is asked for, and then the answer."""
    if not asks_for_code(messages):
        return ANSWER
    return LONG_REPLY if LONG_QUESTION["query"] in str(messages[-1].text) else REPLY


model = ScriptedModel(reply)
executor = ScriptedExecutor(lambda code: "15")
writer = GenerateChain(model=model)
judge = EvaluateChain(executor=executor)
teller = InterpretChain(model=model)


class Ears(BaseCallbackHandler):
    """Hears of every run, as a tracer does, and does nothing about it."""


class State(TypedDict, total=False):
    """What travels through the graph."""

    query: str
    code: str
    problems: list[Any]
    execution: Execution
    output: str
    verdict: Verdict
    attempts: int
    answer: str


def generate(state: Any) -> dict[str, Any]:
    """The same prompt, model and extraction as GenerateChain."""
    return {
        "code": extract_code(str(model.invoke(writer.messages(state)).text)),
        "attempts": state.get("attempts", 0) + 1,
    }


def validate(state: Any) -> dict[str, Any]:
    """The same checks as ValidateChain."""
    return {"problems": find_problems(state["code"], STANDARD)}


def execute(state: Any) -> dict[str, Any]:
    """The same executor as ExecuteChain."""
    execution = executor.run(state["code"])
    return {"execution": execution, "output": execution.output}


def evaluate(state: Any) -> dict[str, Any]:
    """What EvaluateChain says where there are no tests."""
    ran = state["execution"].ok and bool(state["output"])
    return {
        "verdict": Verdict(
            "unverified" if ran else "failed", "none", "The program ran; nothing checked its output."
        )
    }


def interpret(state: Any) -> dict[str, Any]:
    """The same prompt and model as InterpretChain."""
    return {"answer": str(model.invoke(teller.messages(state)).text)}


STEPS = (generate, validate, execute, evaluate, interpret)


def untraced() -> SequentialChain:
    """The steps as a stock SequentialChain of TransformChains; calls of the model inside are not traced."""
    reads, adds = (
        ("query", "code", "code", "execution", "output"),
        ("code", "problems", "output", "verdict", "answer"),
    )
    chains = [
        TransformChain(
            input_variables=[read],
            output_variables=[added, "execution"] if step is execute else [added],
            transform=step,
        )
        for step, read, added in zip(STEPS, reads, adds, strict=True)
    ]
    return SequentialChain(
        chains=chains, input_variables=["query"], output_variables=["code", "output", "answer"]
    )


def stock() -> SequentialChain:
    """The same where LLMChains call the model, so that the calls are traced."""
    asking = ChatPromptTemplate(
        [("system", writer.prompt.replace("{", "{{").replace("}", "}}")), ("human", "{query}")]
    )
    telling = ChatPromptTemplate(
        [("system", teller.prompt), ("human", "{query}\n\nOutput of the program:\n{output}")]
    )
    inner = untraced().chains
    read = TransformChain(
        input_variables=["reply"],
        output_variables=["code"],
        transform=lambda state: {"code": extract_code(state["reply"])},
    )
    with warnings.catch_warnings(action="ignore"):
        asks = LLMChain(llm=model, prompt=asking, output_key="reply")
        tells = LLMChain(llm=model, prompt=telling, output_key="answer")
    chains = [asks, read, *inner[1:4], tells]
    return SequentialChain(
        chains=chains, input_variables=["query"], output_variables=["code", "output", "answer"]
    )


def lcel() -> Runnable[Any, Any]:
    """The steps as a pipe of functions; calls of the model inside are traced."""
    pipe: Any = RunnablePassthrough()
    for step in STEPS:
        pipe |= RunnableLambda(_adding(step))
    return pipe  # type: ignore[no-any-return]


def _adding(step: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    return lambda state: {**state, **step(state)}


def pieces(answering: InterpretChain = teller) -> StreamingSequentialChain:
    """The steps as our pieces: traced, streaming."""
    chains = [writer, ValidateChain(), ExecuteChain(executor), judge, answering]
    return StreamingSequentialChain(
        chains=chains, input_variables=["query"], output_variables=["code", "output", "answer"]
    )


def graph() -> Any:
    """The steps as a LangGraph graph, with the way back that a failure takes."""
    from langgraph.graph import END, START, StateGraph

    made: Any = StateGraph(State)
    for step in STEPS:
        made.add_node(step.__name__, step)
    for before, after in zip(
        (START, "generate", "validate", "execute"),
        ("generate", "validate", "execute", "evaluate"),
        strict=True,
    ):
        made.add_edge(before, after)
    made.add_conditional_edges(
        "evaluate", lambda state: "interpret" if state["verdict"].ok or state["attempts"] > 2 else "generate"
    )
    made.add_edge("interpret", END)
    return made.compile()


def plain(question: dict[str, Any]) -> dict[str, Any]:
    """The work itself, without any chain."""
    state = dict(question)
    for step in STEPS:
        state |= step(state)
    return state


def contenders() -> Iterator[tuple[str, Any]]:
    """Names and chains; those that are not installed are left out."""
    yield WORK, None
    yield "stock `SequentialChain` + `TransformChain`, model calls untraced", untraced()
    yield STOCK, stock()
    yield "LCEL pipe of functions, traced", lcel()
    yield PIECES, pieces()
    try:
        yield GRAPH, graph()
    except ImportError:
        print("LangGraph is left out: pip install langgraph", file=sys.stderr)
    yield WHOLE + " (language, repair and usage on top), traced", create_code_chain(model, executor=executor)


def invoking(chain: Any, question: dict[str, Any]) -> Callable[[], Any]:
    """What puts a question to a contender."""
    return lambda: plain(question) if chain is None else chain.invoke(question)


def ways(chain: Any) -> dict[str, Callable[[], Any]]:
    """What is called, by its name."""
    if chain is None:
        return {"invoke": invoking(chain, QUESTION)}

    async def ainvokes() -> None:
        for _ in range(CALLS):
            await chain.ainvoke(QUESTION)

    return {
        "invoke": invoking(chain, QUESTION),
        "ainvoke": lambda: asyncio.run(ainvokes()),
        "stream": lambda: list(chain.stream(QUESTION)),
        "batch": lambda: chain.batch([QUESTION] * CALLS, {"max_concurrency": 2}),
        "heard": lambda: chain.invoke(QUESTION, {"callbacks": [Ears()]}),
    }


def cpu(way: str, call: Callable[[], Any]) -> float:
    """CPU microseconds of one call."""
    times = 1 if way in ("ainvoke", "batch") else CALLS  # These make as many calls by themselves.
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) / CALLS * 1e6


Calls = dict[str, dict[str, Callable[[], Any]]]
"""What is called, by contender and way."""


def measure(calls: Calls, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Microseconds by contender and way, all of them in turn in each round."""
    measured: dict[str, dict[str, list[float]]] = {
        name: {way: [] for way in found} for name, found in calls.items()
    }
    for number in range(rounds + 1):
        for name, found in calls.items():
            for way, call in found.items():
                value = cpu(way, call)
                if number:  # The first round warms up.
                    measured[name][way].append(value)
    return measured


def all_ways() -> Calls:
    """Each contender in each way."""
    chains = dict(contenders())
    calls = {name: ways(chain) for name, chain in chains.items()}
    quiet = pieces(InterpretChain(model=model.model_copy(update={"disable_streaming": True})))
    calls[QUIET] = {"stream": lambda: list(quiet.stream(QUESTION))}
    if GRAPH in chains:
        calls[TOKENS] = {
            "stream": lambda: list(chains[GRAPH].stream(QUESTION, stream_mode=["updates", "messages"]))
        }
    return calls


def print_long(rounds: int) -> None:
    """Measure and print what a call costs if the program is a long one."""
    measured = measure(
        {name: {"invoke": invoking(chain, LONG_QUESTION)} for name, chain in contenders()}, rounds
    )
    lines = len(LONG_PROGRAM.strip().splitlines())
    print(f"\n| with a program of {lines} lines | invoke | spread |\n|---|---|---|")
    for name, found in measured.items():
        values = found["invoke"]
        print(f"| {name} | {statistics.median(values):.0f} | {min(values):.0f} to {max(values):.0f} |")


def main(rounds: int) -> None:
    """Measure and print the tables."""
    measured = measure(all_ways(), rounds)
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("langchain-core", "langchain-classic", "langgraph")
    )
    print(
        f"CPU µs a call, medians (min to max of `invoke`) of {rounds} rounds of {CALLS} calls; {packages}.\n"
    )
    print(f"| | {' | '.join(WAYS)} | `invoke`, spread |\n|---|{'---|' * (len(WAYS) + 1)}")
    middle = {
        name: {way: statistics.median(values) for way, values in found.items()}
        for name, found in measured.items()
    }
    for name, found in measured.items():
        cells = [f"{middle[name][way]:.0f}" if way in found else "-" for way in WAYS]
        cells += [f"{min(found['invoke']):.0f} to {max(found['invoke']):.0f}" if "invoke" in found else "-"]
        print(f"| {name} | {' | '.join(cells)} |")
    whole = next(name for name in middle if name.startswith(WHOLE))
    print(f"\nOur pieces take {_ratio(middle, PIECES, STOCK)} of the stock chains that trace.")
    if GRAPH in middle:
        print(f"Our pieces take {_ratio(middle, PIECES, GRAPH)} of the LangGraph graph, which does the same.")
        quiet = middle[QUIET]["stream"] / middle[GRAPH]["stream"]
        print(f"Their stream without tokens takes {quiet:.2f} of the graph's stream of steps (goal 0.70).")
        print(f"The assembled chain, which does more, takes {_ratio(middle, whole, GRAPH)} of it.")
    print("`heard` is an `invoke` where a callback handler listens to every run, as tracers do.", end=" ")
    print("Streams of ours give each token of the model; the others' give one chunk for each step", end="")
    if TOKENS in middle:
        ratios = [f"{middle[name]['stream'] / middle[TOKENS]['stream']:.2f}" for name in (PIECES, whole)]
        print(
            f", but for LangGraph's last row: of that our pieces' take {ratios[0]}, the assembled chain's {ratios[1]}",
            end="",
        )
    print(".")
    print_long(rounds)


def _ratio(middle: dict[str, dict[str, float]], one: str, other: str) -> str:
    return ", ".join(f"{middle[one][way] / middle[other][way]:.2f} ({way})" for way in WAYS)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
