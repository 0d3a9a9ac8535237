"""HumanEval: the bare model, our chains, and agents of other libraries with the same model.

    pip install "code_chains[local,benchmarks]"
    python -m benchmarks.humaneval [--model local:0.5b] [--ways bare,one,three] [--problems 164] [--held-out] [--log FILE]

All see the same prompt; `one`, `three` and `verify` are given the examples of its docstring as tests as well, where it has
some that can be read. Hidden tests run in a sandbox and are seen by nobody. With `--log`, what was asked is kept and not
asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from benchmarks.answers import Outcome, grouped, interval, logged, note, smolagents_model, table
from benchmarks.humaneval_tasks import Problem, problems
from code_chains import Agreement, Limits, Repair, SandboxExecutor, create_code_chain
from code_chains.analysis.replies.extraction import extract_code
from code_chains.models import resolve_model

STEPS = 3
"""Model calls for a question, of ours and of the agents."""
OURS: dict[str, dict[str, Any]] = {
    "one": {"solve": Repair(1)},
    "three": {"solve": Repair(STEPS)},
    "verify": {"solve": Repair(STEPS), "verify": [Agreement()]},
}
HEAD = ("way", "problems", "right, 95 %", "verified: right, wrong", "says it failed", "seconds")

Solve = Callable[[Problem], Mapping[str, Any]]
"""Return `code` and `status` for a problem."""


def task(problem: Problem) -> str:
    """Return what everybody is asked."""
    return f"Write the whole function `{problem.name}`:\n```python\n{problem.prompt}```"


def ours(model: Any, way: str, stack: ExitStack) -> Solve:
    """Solve with a chain."""
    chain = stack.enter_context(create_code_chain(model, interpret=False, **OURS[way]))

    def solve(problem: Problem) -> Mapping[str, Any]:
        state = {"query": task(problem)} | ({"tests": problem.tests} if problem.tests else {})
        result = chain.invoke(state)
        return {"code": result["code"], "status": result["verdict"].status}

    return solve


def bare(model: Any) -> Solve:
    """Solve with one call of the model."""
    return lambda problem: {
        "code": extract_code(str(model.invoke(task(problem)).text)),
        "status": "unverified",
    }


def smolagents(model: Any) -> Solve:
    """Solve with a `CodeAgent`, which runs programs and looks at what they print."""
    from smolagents import CodeAgent, LogLevel

    served = smolagents_model(model)

    def solve(problem: Problem) -> Mapping[str, Any]:
        agent = CodeAgent(tools=[], model=served, max_steps=STEPS, verbosity_level=LogLevel.OFF)
        wish = f"{task(problem)}\nTry it on the examples. The final answer is the source code of the function, as a string."
        answer = str(agent.run(wish))
        # What it defined in one of its steps counts as well, if the answer is not the source that was asked for.
        steps = [str(getattr(step, "code_action", "") or "") for step in agent.memory.steps]
        candidates = [extract_code(answer), *steps[::-1]]
        return {"code": _defining(candidates, problem), "status": "unverified"}

    return solve


def langchain(model: Any, sandbox: SandboxExecutor) -> Solve:
    """Solve with an agent that may call a tool which runs Python."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    ran: list[str] = []

    @tool
    def python(code: str) -> str:
        """Run a Python program, and return what it prints."""
        ran.append(code)
        return sandbox.run(code).output

    agent: Any = create_agent(model, [python])

    def solve(problem: Problem) -> Mapping[str, Any]:
        ran.clear()
        wish = f"{task(problem)}\nTry it on the examples with the tool. Then answer with the whole function in a code block."
        messages: list[Any] = []
        try:  # Of an agent that is stopped, what it had said until then counts.
            for state in agent.stream(
                {"messages": [("user", wish)]}, {"recursion_limit": 2 * STEPS}, stream_mode="values"
            ):
                messages = state["messages"]
        except Exception as error:
            messages = [*messages, error]
        replies = [extract_code(str(getattr(one, "text", ""))) for one in messages[1:]]
        return {"code": _defining([*replies[::-1], *ran[::-1]], problem), "status": "unverified"}

    return solve


def _defining(candidates: list[str], problem: Problem) -> str:
    """Return the first of some programs that defines the function; the first if none does."""
    defining = [one for one in candidates if f"def {problem.name}(" in one]
    return next(iter([*defining, *candidates]), "")


def solver(way: str, model: Any, sandbox: SandboxExecutor, stack: ExitStack) -> Solve:
    """Return what solves problems in a way."""
    if way in OURS:
        return ours(model, way, stack)
    others: dict[str, Callable[[], Solve]] = {
        "bare": lambda: bare(model),
        "smolagents": lambda: smolagents(model),
        "langchain": lambda: langchain(model, sandbox),
    }
    return others[way]()


def ask(way: str, problem: Problem, solve: Solve, sandbox: SandboxExecutor) -> Outcome:
    """Put a problem to a solver, and run the hidden tests on what comes out."""
    began = time.monotonic()
    try:
        solved = solve(problem)
    except Exception as error:  # Whatever others raise, they have no answer.
        return Outcome(way, problem.id, False, "error", 0, 0, 0, time.monotonic() - began, repr(error)[:500])
    seconds = round(time.monotonic() - began, 3)
    right = problem.is_solved_by(str(solved["code"]), sandbox)
    return Outcome(way, problem.id, right, str(solved["status"]), 0, 0, 0, seconds, str(solved["code"]))


def rows(outcomes: list[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each way."""
    for way, ones in grouped(outcomes).items():
        right = sum(one.right for one in ones)
        verified = [one.right for one in ones if one.status == "verified"]
        told = sum(one.status in ("failed", "error") for one in ones)
        counts = f"{sum(verified)}, {len(verified) - sum(verified)}"
        seconds = f"{sum(one.seconds for one in ones):.0f}"
        yield way, len(ones), f"{right}: {interval(right, len(ones))}", counts, told, seconds


@click.command()
@click.option("--model", default="local:0.5b", help="Whatever create_code_chain takes.")
@click.option("--ways", default="bare,one,three,verify,smolagents,langchain", help="Which rows.")
@click.option("--problems", "count", default=164, help="How many problems, from the first.")
@click.option(
    "--held-out", is_flag=True, help="Those with odd numbers and examples; others served for development."
)
@click.option("--seed", default=7, help="The seed of the model.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to go on from.")
def main(model: str, ways: str, count: int, held_out: bool, seed: int, log: Path | None) -> None:
    """Put the problems to each, and print the table."""
    chosen, name, wanted = ways.split(","), f"{model} seed={seed}", problems()[:count]
    if held_out:
        wanted = [problem for problem in wanted[1::2] if problem.tests]
    known = {(one.group, one.task): one for one in logged(log, name)}
    chat_model = resolve_model(model, seed=seed)
    with SandboxExecutor(limits=Limits(seconds=10), preload=()) as sandbox, ExitStack() as stack:
        for way in chosen:
            missing = [problem for problem in wanted if (way, problem.id) not in known]
            solve = solver(way, chat_model, sandbox, stack)
            for problem in missing:
                one = known[way, problem.id] = ask(way, problem, solve, sandbox)
                note(one, name, log)
    table(HEAD, rows([known[way, problem.id] for way in chosen for problem in wanted]))


if __name__ == "__main__":
    main()
