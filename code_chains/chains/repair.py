"""query, (files, variables, context, history) -> code, problems, execution, output, verdict, attempts."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables.graph import Graph
from pydantic import Field

from code_chains.chains.base import Call, Chain, Config, Piece, Program, State
from code_chains.errors import ConfigurationError
from code_chains.inputs import fenced
from code_chains.state import Attempt, Execution

__all__ = ["RepairChain", "complaint"]

_KEPT = ("code", "problems", "execution", "output", "verdict")


class RepairChain(Piece):
    """Repeats an attempt until it holds, `max_attempts` are spent, or the same failure comes twice.

    What went wrong goes back into the next attempt as `feedback`. Streams `attempts` one by one, then what was kept.

    Args:
        attempt: A chain that adds `code`, `problems`, `execution`, `output` and `verdict`, usually
            `generate | validate | execute | evaluate` as a `Sequence`.
        max_attempts: How often the attempt is made at most.
    """

    name: str | None = "repair"
    attempt: Chain
    max_attempts: int = Field(default=3, ge=1)

    def __init__(self, *, attempt: Chain, **kwargs: Any) -> None:
        if missing := [key for key in _KEPT if key not in attempt.output_keys]:
            raise ConfigurationError("attempt", attempt.get_name(), f"a chain that also adds {', '.join(missing)}")
        super().__init__(**{"attempt": attempt, **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """What an attempt needs."""
        return self.attempt.input_keys

    @property
    def optional_keys(self) -> list[str]:
        """What an attempt uses, but for what this chain itself puts in."""
        return [key for key in getattr(self.attempt, "optional_keys", []) if key not in ("feedback", "failed_code")]

    @property
    def output_keys(self) -> list[str]:
        """What was kept of the attempts, and their story."""
        return [*_KEPT, "attempts"]

    def _program(self, values: State, config: Config) -> Program:
        failures: list[tuple[Any, ...]] = []
        outcome: State = {}
        for number in range(1, self.max_attempts + 1):
            outcome = yield Call(self.attempt, {**values, **_lesson(outcome)}, config)
            yield {"attempts": [_record(number, outcome)]}
            failure = _signature(outcome)
            if outcome["verdict"].ok or failure in failures:
                break
            failures.append(failure)
        yield {key: outcome[key] for key in _KEPT}

    def get_graph(self, config: Config | None = None) -> Graph:
        """The stages of an attempt, with the way back."""
        graph = self.attempt.get_graph(config)
        first, last = graph.first_node(), graph.last_node()
        stages = [edge.target for edge in graph.edges if first and edge.source == first.id]
        ends = [edge.source for edge in graph.edges if last and edge.target == last.id]
        if stages and ends:
            graph.add_edge(graph.nodes[ends[0]], graph.nodes[stages[0]], data="feedback", conditional=True)
        return graph


def _lesson(outcome: State) -> State:
    return {"failed_code": outcome["code"], "feedback": complaint(outcome)} if outcome else {}


def _record(number: int, outcome: State) -> Attempt:
    execution: Execution = outcome["execution"]
    problems = tuple(outcome["problems"])
    return Attempt(number, outcome["code"], problems, execution.status, execution.summary, outcome["verdict"])


def _signature(outcome: State) -> tuple[Any, ...]:
    """What makes two failures the same: the same program, which fails in the same way."""
    error = outcome["execution"].error
    return outcome["code"].strip(), outcome["verdict"].reason, error.type if error else None


def _quoted(lines: list[str], number: int | None) -> str:
    return f", in: {lines[number - 1].strip()[:200]}" if number and 0 < number <= len(lines) else ""


def complaint(outcome: State) -> str:
    """Tell a model in words what was wrong with its program.

    Args:
        outcome: What an attempt added: `problems`, `execution` and `verdict`.

    Returns:
        The reason, the failing line with the values of that moment, and what was printed; all of it fenced as data.
    """
    execution: Execution = outcome["execution"]
    if outcome["problems"]:
        lines = outcome["code"].splitlines()
        found = [f"- {problem}{_quoted(lines, problem.line)}" for problem in outcome["problems"]]
        return "\n".join(["The program was not run:", *found])
    parts = [outcome["verdict"].reason]
    error = execution.error
    if error is None:
        parts.append("Print the answer at the end of the program.")
    elif error.traceback:
        parts = ["The program failed:", fenced(error.traceback[-3000:])]
        if error.locals:
            values = "\n".join(f"{name} = {value}" for name, value in error.locals.items())
            parts.append(f"Values at that moment:\n{fenced(values)}")
    if execution.output.strip():
        parts.append(f"It had printed:\n{fenced(execution.output[-1000:])}")
    return "\n".join(parts)
