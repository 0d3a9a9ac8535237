"""What a call of a tool costs from a program, and what programs that call tools save, beside others.

    python -m benchmarks.tool_calls [ROUNDS]

Contenders take turns in each round, rested and while two other processes compute. Those that are not installed are left
out: `pip install -e ".[benchmarks]"`. Model calls and tokens are counted with a scripted model, which does what it is told
at once; tokens are LangChain's approximation over all messages that are sent and received.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool

from code_chains import create_code_chain, create_python_tool
from code_chains.executors import Limits, SandboxExecutor
from code_chains.testing import ScriptedModel, asks_for_code

CALLS = 200
CUSTOMERS = 30
GOAL_US = 1000
"""Microseconds that one call may take, rested."""
LOOP = f"for number in range({CALLS}):\n    echo(number)\n"
TOTAL = f"sum(sum(open_orders(customer)) for customer in range({CUSTOMERS}))"
QUESTION = f"What is the total of the open orders of the {CUSTOMERS} customers with the numbers from 0?"
Measure = Callable[[], float]


def echo(value: int) -> int:
    """Return the argument."""
    return value


def open_orders(customer: int) -> list[float]:
    """Return the totals of the open orders of a customer."""
    return [1.5, float(customer)]


# -- microseconds of a call --------------------------------------------------------------------------------------------


def contenders(stack: ExitStack) -> dict[str, Measure]:
    """Return what is measured, by its name: functions that return the microseconds of one call."""
    sandbox = stack.enter_context(SandboxExecutor(limits=Limits(seconds=60, tool_calls=CALLS), preload=()))
    tool = StructuredTool.from_function(echo)
    measures: dict[str, Measure] = {
        "a Python function, in this process": lambda: timed(lambda: [echo(n) for n in range(CALLS)]),
        "`StructuredTool.invoke`, in this process": lambda: timed(
            lambda: [tool.invoke({"value": n}) for n in range(CALLS)]
        ),
        "**a tool, from a program in the sandbox**": lambda: inside(sandbox),
    }
    with contextlib.suppress(ImportError):
        measures["smolagents' `LocalPythonExecutor`, in this process"] = smolagents()
    with contextlib.suppress(ImportError):
        measures["Monty's external functions, in a process of its own"] = monty(stack)
    return measures


def timed(run: Callable[[], object]) -> float:
    """Return the microseconds of each of the calls that a function makes."""
    started = time.perf_counter()
    run()
    return (time.perf_counter() - started) / CALLS * 1e6


def inside(sandbox: SandboxExecutor) -> float:
    """Return the microseconds of each call as a program measures them, without the start of the sandbox."""
    code = (
        f"import time\nstarted = time.perf_counter()\n{LOOP}(time.perf_counter() - started) / {CALLS} * 1e6"
    )
    done = sandbox.run(code, tools=[echo])
    done.raise_for_failure()
    return float(done.result or "nan")


def smolagents() -> Measure:
    """Measure the interpreter of smolagents, which runs programs in this process."""
    executor = importlib.import_module("smolagents.local_python_executor").LocalPythonExecutor([])
    executor.send_tools({"echo": echo})
    return lambda: timed(lambda: executor(LOOP))


def monty(stack: ExitStack) -> Measure:
    """Measure Monty, an interpreter of a subset of Python."""
    pool = stack.enter_context(importlib.import_module("pydantic_monty").Monty())

    def measure() -> float:
        with pool.checkout() as session:  # A session makes a thousand calls at most.
            return timed(lambda: session.feed_run(LOOP, external_lookup={"echo": echo}))

    return measure


@contextlib.contextmanager
def load(processes: int) -> Iterator[None]:
    """Keep the machine busy with other processes."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def medians(rounds: int, processes: int) -> dict[str, float]:
    """Return the median of each contender."""
    with ExitStack() as stack:
        measures = contenders(stack)
        for measure in measures.values():
            measure()  # The first call warms it up.
        with load(processes):
            samples: dict[str, list[float]] = {name: [] for name in measures}
            for _ in range(rounds):
                for name, measure in measures.items():
                    samples[name].append(measure())
    return {name: statistics.median(values) for name, values in samples.items()}


def print_costs(rounds: int) -> None:
    """Print a table of what a call costs."""
    rested, busy = medians(rounds, 0), medians(rounds, 2)
    print(
        f"| a call, microseconds (goal: {GOAL_US} rested) | rested | beside two busy processes |\n|---|---|---|"
    )
    for name, cost in rested.items():
        print(f"| {name} | {cost:,.1f} | {busy[name]:,.1f} |")


# -- model calls and tokens --------------------------------------------------------------------------------------------


class Counting(ScriptedModel):
    """A model that calls tools, and counts what it is sent and what it replies.

    Attributes:
        next_message: Returns the reply to some messages.
        counts: Model calls, and tokens.
    """

    next_message: Callable[[list[BaseMessage]], AIMessage]
    counts: list[int]

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Accept tools; the script knows them."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        reply = self.next_message(messages)
        self.counts[0] += 1
        self.counts[1] += count_tokens_approximately([*messages, reply])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def called(name: str, arguments: dict[str, Any], number: int) -> AIMessage:
    """Return a message that calls a tool."""
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=str(number), type="tool_call")])


def one_by_one(messages: list[BaseMessage]) -> AIMessage:
    """Call the tool for one customer after the other, and add up at the end."""
    replies = [message for message in messages if message.type == "tool"]
    if len(replies) < CUSTOMERS:
        return called("open_orders", {"customer": len(replies)}, len(replies))
    total = sum(sum(json.loads(message.text)) for message in replies)
    return AIMessage(f"It is {total}.")


def all_at_once(messages: list[BaseMessage]) -> AIMessage:
    """Write one program that calls the tool for all customers."""
    if messages[-1].type == "tool":
        return AIMessage(f"It is {messages[-1].text.split()[0]}.")
    return called("run_python", {"code": TOTAL}, 1)


def as_chain(messages: list[BaseMessage]) -> AIMessage:
    """Write the same program for a chain, and phrase the answer."""
    program = f"```python\nprint('Total:', {TOTAL})\n```"
    return AIMessage(program if asks_for_code(messages) else "It is 480.0.")


def ask_agent(tools: list[Any], script: Callable[[list[BaseMessage]], AIMessage]) -> list[Any]:
    """Return model calls, tokens and the answer of an agent."""
    model = Counting(script=lambda messages: "", next_message=script, counts=[0, 0])
    agent = create_agent(model, tools)
    messages = agent.invoke({"messages": [HumanMessage(QUESTION)]}, {"recursion_limit": 100})["messages"]
    return [*model.counts, messages[-1].text]


def ask_chain() -> list[Any]:
    """Return model calls, tokens and the answer of a chain."""
    model = Counting(script=lambda messages: "", next_message=as_chain, counts=[0, 0])
    with create_code_chain(model, tools=[open_orders]) as chain:
        answer = chain.invoke({"query": QUESTION})["answer"]
    return [*model.counts, answer]


def print_savings() -> None:
    """Print a table of what a question with thirty calls takes."""
    ways = {
        "an agent that calls the tool": ask_agent([open_orders], one_by_one),
        "**an agent whose program does: `create_python_tool(tools=…)`**": ask_agent(
            [create_python_tool(tools=[open_orders])], all_at_once
        ),
        "**`create_code_chain(tools=…)`**": ask_chain(),
    }
    print(
        f"\n| the open orders of {CUSTOMERS} customers | model calls | tokens | answer |\n|---|---|---|---|"
    )
    for name, (calls, tokens, answer) in ways.items():
        print(f"| {name} | {calls} | {tokens:,} | {answer} |")


def main() -> None:
    """Print both tables."""
    print_costs(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
    print_savings()


if __name__ == "__main__":
    main()
