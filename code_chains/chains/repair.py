"""query, (files, variables, context, history) -> programs, stdout, attempts, stop_reason and the best outcome."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import ClassVar, Literal

from langchain_core.runnables.graph import Graph
from pydantic import Field

from code_chains.callbacks.budget import count_attempt
from code_chains.chains.attempt import LIVE_KEYS, OUTCOME_KEYS, record_attempt, select_live
from code_chains.chains.base import Chain, Config, EnclosingChain, Flow, Invoke, State
from code_chains.chains.execute import commit, undo
from code_chains.chains.validate import is_refused
from code_chains.errors import BudgetError, CodeChainsError, ConfigurationError
from code_chains.state import Attempt, ErrorReport, Execution, StopReason, Verdict
from code_chains.verification.feedback import (
    ANOTHER_WAY,
    fails_again,
    failure_signature,
    is_offline,
    repair_feedback,
)

OnFailedTests = Literal["repair", "restart"]


class RepairChain(EnclosingChain):
    """Repeat an attempt until it succeeds, `max_attempts` are spent, or the same failure keeps coming back.

    The cause of a failure is passed to the next attempt as `feedback`. If a program or an error occurs for
    the second time, patching leads nowhere: the chain restarts, with a new program at a temperature of 0.8 at least,
    told to take another way and without the failed one in sight; if that fails in a known way, too, it stops. With a
    model that repeats programs, `on_failed_tests="restart"` restarts each time that tests or examples reject one;
    Olausson et al. (2023, arXiv:2306.09896) compare the two. It needs a model that gives another reply to the same
    question. An outcome that only a sanity check doubts is repeated as well, and accepted as `unverified` if the model
    insists or no other attempt did better. A program that failed in a sandbox without network or tools is not run again.
    In a `session` each attempt starts from the state before the first one. Streams `programs` and `stdout` while an
    attempt is made, `attempts` one by one, then the best outcome.

    Args:
        attempt: A chain that adds `code`, `problems`, `execution`, `output` and `verdict`, such as
            `AttemptChain`.
        max_attempts: Maximum number of attempts.
        on_failed_tests: What follows a program that tests or examples reject, or cannot call: a `"repair"` with feedback,
            or a `"restart"`. After other failures there is a repair in any case.
        repeat_effects: Whether there is another attempt after a program that called a tool with effects, and failed.
        repeat_limits: Whether there is another attempt after a program that reached the limit of time or of output.
    """

    output_keys: ClassVar[list[str]] = [*LIVE_KEYS, *OUTCOME_KEYS, "attempts", "stop_reason"]

    inner: ClassVar[str] = "attempt"
    own_keys: ClassVar[tuple[str, ...]] = (
        "feedback",
        "failed_code",
        "known_failures",
        "cells",
        "sample_index",
    )
    name: str | None = "repair"
    attempt: Chain
    max_attempts: int = Field(default=3, ge=1)
    on_failed_tests: OnFailedTests = "repair"
    repeat_effects: bool = False
    repeat_limits: bool = True

    def __init__(self, *, attempt: Chain, **kwargs: object) -> None:
        if missing := [key for key in OUTCOME_KEYS if key not in attempt.output_keys]:
            raise ConfigurationError(
                "attempt", attempt.get_name(), f"a chain that also adds {', '.join(missing)}"
            )
        super().__init__(**{"attempt": attempt, **kwargs})

    def _flow(self, values: State, config: Config) -> Flow:
        best: State = {}
        history = RepairHistory(self.on_failed_tests, repeat_limits=self.repeat_limits)
        try:
            while history.stop_reason is None:
                count_attempt(config)
                inputs = {**values, **history.next_inputs(schema_only=bool(values.get("schema_only")))}
                outcome = yield Invoke(self.attempt, inputs, config, select_live)
                yield {**_missing_live(outcome), "attempts": [history.record(outcome)]}
                best = max((best, outcome), key=merit) if best else outcome
                history.advance(outcome, self.max_attempts)
                if not _is_accepted(outcome, best, history):
                    yield from undo(values, outcome, config)
                if not self.repeat_effects and outcome["execution"].has_effects:
                    history.stop_reason = history.stop_reason or "effects"
        except BudgetError as error:
            history.stop_reason = error.limit
            if not best:
                best = _no_attempt(error)
                yield {"attempts": [], "programs": [], "stdout": ""}
        if best["verdict"].is_doubt and not best["verdict"].ok:
            if best["code"] != outcome["code"]:
                yield from _restore(values, best, config)
            best, history.stop_reason = accept_doubtful(best), "answered"
        yield {**{key: best[key] for key in OUTCOME_KEYS}, "stop_reason": history.stop_reason}

    def get_graph(self, config: Config | None = None) -> Graph:
        """Return the stages of an attempt, with the edge back."""
        graph = super().get_graph(config)
        first, last = graph.first_node(), graph.last_node()
        stages = [edge.target for edge in graph.edges if first and edge.source == first.id]
        ends = [edge.source for edge in graph.edges if last and edge.target == last.id]
        if stages and ends:
            graph.add_edge(graph.nodes[ends[0]], graph.nodes[stages[0]], data="feedback", conditional=True)
        return graph


class RepairHistory:
    """The attempts so far, and the strategy for the next one.

    Args:
        on_failed_tests: See `RepairChain`.
        repeat_limits: See there.

    Attributes:
        number: Attempts so far.
        restarts: How often the strategy was `restart`.
        strategy: How the next program comes about, as in `Attempt.strategy`.
        stop_reason: Why there is no next attempt; None while there is one.
    """

    def __init__(self, on_failed_tests: OnFailedTests = "repair", *, repeat_limits: bool = True) -> None:
        self._on_failed_tests, self._repeat_limits = on_failed_tests, repeat_limits
        self.number: int = 0
        self.restarts: int = 0
        self.strategy: Literal["initial", "repair", "restart"] = "initial"
        self.stop_reason: StopReason | None = None
        self._failed: State = {}
        self._is_last_try = False
        self._made_up = False
        self._is_offline = False
        self._signatures: set[tuple[int, str]] = set()
        self._known_failures: list[str] = []

    def next_inputs(self, *, schema_only: bool = False) -> State:
        """Return the keys to add to the state for the next attempt; see `repair_feedback`."""
        if self.strategy == "initial":
            return {}
        inputs: State = {"known_failures": self._known_failures}
        if self.strategy == "repair":
            inputs["feedback"] = repair_feedback(self._failed, schema_only=schema_only)
            inputs["failed_code"] = self._failed["code"]
            if not self._failed["code"]:
                inputs["words"] = self._failed.get("reply") or ""
        elif self._is_last_try:
            inputs["feedback"] = ANOTHER_WAY
        if self.restarts:
            inputs["sample_index"] = self.restarts
        return inputs

    def record(self, outcome: State) -> Attempt:
        """Return the record of the attempt that was just made."""
        self.number += 1
        return record_attempt(outcome, self.number, self.strategy)

    def advance(self, outcome: State, max_attempts: int) -> None:
        """Choose the strategy for the next attempt, or the reason to stop."""
        signatures = set(enumerate(failure_signature(outcome)))
        is_known = bool(signatures & self._signatures)
        self._signatures |= signatures
        self._failed = outcome
        if fails_again(outcome["execution"]):
            self._known_failures.append(outcome["code"])
        is_rejected = self._on_failed_tests == "restart" and outcome["verdict"].by == "tests"
        verdict: Verdict = outcome["verdict"]
        insists = verdict.is_doubt and (is_known or (self._made_up and verdict.by == "provenance"))
        self._made_up = verdict.by == "provenance"
        was_offline, self._is_offline = self._is_offline, is_offline(outcome["execution"])
        if verdict.ok or verdict.needs or insists:
            self.stop_reason = "answered"
        elif is_refused(outcome["problems"]):
            self.stop_reason = "refused"
        elif (is_known and self._is_last_try and not is_rejected) or (was_offline and self._is_offline):
            self.stop_reason = "same_failure"
        elif self.number >= max_attempts or self._ends_at_limit(outcome["execution"]):
            self.stop_reason = "attempts"
        elif is_known or is_rejected:
            self.strategy = "restart"
            self.restarts += 1
            # Programs that are rejected alike say nothing about the next sample.
            self._is_last_try = not is_rejected
        else:
            self.strategy = "repair"
            self._is_last_try = False

    def _ends_at_limit(self, execution: Execution) -> bool:
        return not self._repeat_limits and execution.status in ("timeout", "output_limit")


def merit(outcome: State) -> tuple[int, bool, bool, bool, bool]:
    """Return the sort key of an outcome; of equal ones the earlier wins."""
    execution: Execution = outcome["execution"]
    verdict: Verdict = outcome["verdict"]
    return verdict.rank, bool(verdict.needs), verdict.is_doubt, execution.ok, execution.status != "refused"


def accept_doubtful(outcome: State) -> State:
    """Return an outcome with its doubts as an answer: they cost further attempts, but never the answer."""
    if not outcome["verdict"].is_doubt:
        return outcome
    return {**outcome, "verdict": replace(outcome["verdict"], status="unverified")}


def _is_accepted(outcome: State, best: State, history: RepairHistory) -> bool:
    """Return whether what a program left in a session stays, also if it is doubted and there is no other attempt."""
    is_final = history.stop_reason is not None and outcome["code"] == best["code"]
    return outcome["verdict"].ok or (is_final and outcome["verdict"].is_doubt)


def _restore(values: State, outcome: State, config: Config) -> Flow:
    """Leave in a session what a program left that another one came after, unless it called tools."""
    if values.get("session") is not None and not outcome["execution"].tool_calls:
        with suppress(CodeChainsError):  # The next turn reports a session that broke.
            yield from commit(values, outcome["code"], config)


def _missing_live(outcome: State) -> State:
    """Return what an attempt did not stream, such as a chain of the user's own."""
    live = {"programs": [outcome["code"]], "stdout": outcome["execution"].stdout}
    return {key: live[key] for key in LIVE_KEYS if key not in outcome}


def _no_attempt(error: BudgetError) -> State:
    """Return the outcome if the budget does not allow even the first attempt."""
    return {
        "code": "",
        "problems": [],
        "execution": Execution("refused", error=ErrorReport("BudgetError", str(error))),
        "output": "",
        "verdict": Verdict("failed", "none", str(error)),
    }
