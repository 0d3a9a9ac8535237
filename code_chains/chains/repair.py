"""query, (files, variables, context, history) -> code, problems, execution, output, verdict, attempts, stop_reason."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables.graph import Graph
from pydantic import Field

from code_chains.budget import count_attempt
from code_chains.chains.attempt import KEPT
from code_chains.chains.base import Call, Chain, Config, Piece, Program, State
from code_chains.chains.execute import undo
from code_chains.errors import BudgetError, ConfigurationError
from code_chains.feedback import complaint, signature
from code_chains.state import Attempt, ErrorReport, Execution, StopReason, Verdict

__all__ = ["RepairChain"]


class RepairChain(Piece):
    """Repeats an attempt until it holds, `max_attempts` are spent, or the same failure keeps coming back.

    What went wrong goes back into the next attempt as `feedback`. The same program, or the same error, for the second time
    shows that patching leads nowhere: then a fresh one is asked for, at a higher temperature and without the old one; if
    that fails in a way that is known, too, it stops. In a `session` each attempt starts from the state before the first.
    Streams `attempts` one by one, then the best of what came of them.

    Args:
        attempt: A chain that adds `code`, `problems`, `execution`, `output` and `verdict`, such as `AttemptChain`.
        max_attempts: How often the attempt is made at most.
    """

    name: str | None = "repair"
    attempt: Chain
    max_attempts: int = Field(default=3, ge=1)

    def __init__(self, *, attempt: Chain, **kwargs: Any) -> None:
        if missing := [key for key in KEPT if key not in attempt.output_keys]:
            raise ConfigurationError("attempt", attempt.get_name(), f"a chain that also adds {', '.join(missing)}")
        super().__init__(**{"attempt": attempt, **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """What an attempt needs."""
        return self.attempt.input_keys

    @property
    def optional_keys(self) -> list[str]:
        """What an attempt uses, but for what this chain itself puts in."""
        own = ("feedback", "failed_code", "variation")
        return [key for key in getattr(self.attempt, "optional_keys", []) if key not in own]

    @property
    def output_keys(self) -> list[str]:
        """What was kept of the attempts, and their story."""
        return [*KEPT, "attempts", "stop_reason"]

    def _program(self, values: State, config: Config) -> Program:
        best: State = {}
        story = _Story()
        try:
            while story.stop_reason is None:
                count_attempt(config)
                outcome = yield Call(self.attempt, {**values, **story.lesson()}, config)
                yield {"attempts": [story.record(outcome)]}
                if not outcome["verdict"].ok:
                    yield from undo(values, outcome, config)
                best = max((best, outcome), key=_merit) if best else outcome
                story.go_on(outcome, self.max_attempts)
        except BudgetError as error:
            story.stop_reason = error.limit
            if not best:
                best = _nothing(error)
                yield {"attempts": []}
        yield {**{key: best[key] for key in KEPT}, "stop_reason": story.stop_reason}

    def get_graph(self, config: Config | None = None) -> Graph:
        """The stages of an attempt, with the way back."""
        graph = self.attempt.get_graph(config)
        first, last = graph.first_node(), graph.last_node()
        stages = [edge.target for edge in graph.edges if first and edge.source == first.id]
        ends = [edge.source for edge in graph.edges if last and edge.target == last.id]
        if stages and ends:
            graph.add_edge(graph.nodes[ends[0]], graph.nodes[stages[0]], data="feedback", conditional=True)
        return graph


class _Story:
    """What was tried so far, and what to try next."""

    def __init__(self) -> None:
        self.number = 0
        self.fresh = 0
        self.tack: Any = "first"
        self.stop_reason: StopReason | None = None
        self.failed: State = {}
        self.seen: set[tuple[int, str]] = set()

    def lesson(self) -> State:
        """What the next attempt is told."""
        if self.tack == "fresh":
            return {"variation": self.fresh}
        if self.tack == "repair":
            told = {"failed_code": self.failed["code"], "feedback": complaint(self.failed)}
            return {**told, "variation": self.fresh} if self.fresh else told
        return {}

    def record(self, outcome: State) -> Attempt:
        """The attempt that was just made."""
        self.number += 1
        execution: Execution = outcome["execution"]
        return Attempt(
            self.number,
            outcome["code"],
            tuple(outcome["problems"]),
            execution.status,
            execution.summary,
            outcome["verdict"],
            self.tack,
            tuple(outcome.get("mends") or ()),
        )

    def go_on(self, outcome: State, most: int) -> None:
        """Decide what comes next."""
        ways = set(enumerate(signature(outcome)))
        known = bool(ways & self.seen)
        self.seen |= ways
        self.failed = outcome
        if outcome["verdict"].ok:
            self.stop_reason = "answered"
        elif known and self.tack == "fresh":
            self.stop_reason = "same_failure"
        elif self.number >= most:
            self.stop_reason = "attempts"
        else:
            self.tack = "fresh" if known else "repair"
            self.fresh += known


def _merit(outcome: State) -> tuple[int, bool, bool]:
    """What makes one outcome better than another; of equals the earlier is kept."""
    execution: Execution = outcome["execution"]
    return outcome["verdict"].rank, execution.ok, execution.status != "refused"


def _nothing(error: BudgetError) -> State:
    """What there is when the budget does not even allow a first attempt."""
    report = ErrorReport("BudgetError", str(error))
    return {
        "code": "",
        "problems": [],
        "execution": Execution("refused", error=report),
        "output": "",
        "verdict": Verdict("failed", "none", str(error)),
    }
