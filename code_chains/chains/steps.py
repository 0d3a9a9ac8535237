"""query, … -> steps, and programs, stdout, attempts, stop_reason and the outcome of all of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from code_chains.chains.attempt import LIVE_KEYS, OUTCOME_KEYS, select_live
from code_chains.chains.base import Chain, Config, EnclosingChain, Flow, Invoke, RunFunction, State
from code_chains.chains.plan import seems_to_need_steps
from code_chains.errors import BudgetError, InputError
from code_chains.executors.base import Session
from code_chains.inputs import fenced, shortened
from code_chains.state import FINAL_STOPS, Attempt, Execution, Verdict
from code_chains.verification.expectations import expectations_of

_MAX_PLANS = 2
_MAX_TASK_CHARS, _MAX_CODE_CHARS, _MAX_OUTPUT_CHARS = 2000, 2000, 1000


@dataclass
class _Progress:
    """The steps of a task: those solved, with their outcomes, and the one that failed, if any."""

    solved: list[tuple[str, State]] = field(default_factory=list)
    failed: tuple[str, State] | None = None
    attempts: int = 0

    @property
    def all(self) -> list[tuple[str, State]]:
        return [*self.solved, self.failed] if self.failed else self.solved

    def number(self, attempts: list[Attempt]) -> list[Attempt]:
        """Return the attempts of a step, numbered through all steps."""
        step, before = len(self.solved) + 1, self.attempts
        self.attempts += len(attempts)
        return [replace(attempt, number=before + attempt.number, step=step) for attempt in attempts]


class StepsChain(EnclosingChain):
    """Solve a task in steps if it needs several, in one session of the executor.

    Each step is solved like a task of its own: written, run, evaluated and repaired. It finds the variables
    and files of previous steps, and the model sees their programs and outputs. After a step that failed, the
    remainder is planned again, once per task. The outcomes are combined: all programs in order, all outputs,
    and the weakest verdict.

    Args:
        solve: Solves a step or a whole task, usually a `RepairChain`.
        plan: Splits a task, usually a `PlanChain`.
        open_session: Opens the session in which the steps run.
        when: `"auto"` plans if the task describes a sequence of actions; `"always"` plans every task.
        evaluate: Evaluates the programs together if `tests` or `examples` are given.
    """

    output_keys: ClassVar[list[str]] = [*LIVE_KEYS, *OUTCOME_KEYS, "attempts", "stop_reason", "steps"]

    inner: ClassVar[str] = "solve"
    own_keys: ClassVar[tuple[str, ...]] = ("previous_steps",)
    name: str | None = "steps"
    solve: Chain
    plan: Chain
    open_session: Callable[[], Session]
    when: Literal["auto", "always"] = "auto"
    evaluate: Chain | None = None

    @property
    def optional_keys(self) -> list[str]:
        """Keys that the chain that solves steps uses, and `steps`, which are then not planned."""
        return [*super().optional_keys, "steps"]

    def _flow(self, values: State, config: Config) -> Flow:
        steps = [values["query"]]
        given = (
            None if "verdict" in values else values.get("steps")
        )  # Not those of a result that is asked on.
        if given is not None:
            steps = _checked(given)
        elif self.when == "always" or seems_to_need_steps(values["query"]):
            try:
                planned: State = yield Invoke(self.plan, values, config)
                steps = planned["steps"]
                values = {**values, "refusal": planned.get("refusal", "")}
            except BudgetError:  # The next call reaches the limit, too, and reports it.
                steps = [values["query"]]
        if len(steps) < 2:
            task = steps[0] if given is not None else values["query"]
            yield Invoke(self.solve, {**values, "query": task}, config, self._only_outputs)
            yield {"steps": [task]}
        elif values.get("session") is not None:
            yield from self._solve_all(steps, values, config)
        else:
            session = yield RunFunction(lambda _: self.open_session(), None, config)
            try:
                yield from self._solve_all(steps, {**values, "session": session}, config)
            finally:
                session.close()

    def _solve_all(self, steps: list[str], values: State, config: Config) -> Flow:
        progress, pending, plans = _Progress(), list(steps), 1
        while pending:
            step = pending.pop(0)
            state = _step_state(step, values, progress, is_last=not pending)
            outcome = yield Invoke(self.solve, state, config, select_live)
            yield {"attempts": progress.number(outcome["attempts"])}
            if outcome["verdict"].ok:
                progress.solved.append((step, outcome))
                continue
            progress.failed = (step, outcome)
            if plans == _MAX_PLANS or outcome["stop_reason"] in FINAL_STOPS:
                break
            plans += 1
            pending = yield from self._plan_remainder(pending, values, progress, config)
            if pending:
                progress.failed = None
        yield from self._combine(progress, values, config)

    def _plan_remainder(self, pending: list[str], values: State, progress: _Progress, config: Config) -> Flow:
        """Return new steps; the old ones again if the model replies with nothing but the whole task."""
        assert progress.failed is not None
        step, outcome = progress.failed
        feedback = step if values.get("schema_only") else f"{step}\n{outcome['verdict'].reason}"
        state = {**values, "previous_steps": _format_steps(progress.solved, values), "feedback": feedback}
        try:
            steps = (yield Invoke(self.plan, state, config))["steps"]
        except BudgetError:
            return []
        return [step, *pending] if steps == [values["query"]] else steps

    def _combine(self, progress: _Progress, values: State, config: Config) -> Flow:
        """Emit the outcome of all steps together."""
        steps, outcomes = [step for step, _ in progress.all], [outcome for _, outcome in progress.all]
        outcome = {
            "code": _combined_code(progress.all),
            "problems": outcomes[-1]["problems"],
            "execution": _combined_execution([outcome["execution"] for outcome in outcomes]),
            "output": "\n".join(outcome["output"] for outcome in outcomes if outcome["output"]),
            "verdict": _weakest([outcome["verdict"] for outcome in outcomes]),
        }
        if self.evaluate is not None and not progress.failed and expectations_of(values):
            outcome |= yield Invoke(self.evaluate, {**values, **outcome, "session": None}, config)
        stop_reason = outcomes[-1]["stop_reason"]
        if not outcome["verdict"].ok and not progress.failed:
            stop_reason = "attempts"
        yield {**outcome, "stop_reason": stop_reason, "steps": steps}


def _checked(steps: object) -> list[str]:
    """Return the steps that were given."""
    if not isinstance(steps, list | tuple) or not steps or not all(isinstance(step, str) for step in steps):
        raise InputError("steps must be a list of texts, one for each step.")
    return list(steps)


def _step_state(step: str, values: State, progress: _Progress, *, is_last: bool) -> State:
    """Return the state for one step. The last has the type; tests apply to all, and the model sees them at the last."""
    task = shortened(" ".join(str(values["query"]).split()), _MAX_TASK_CHARS)
    query = f"{step}\n(This is one step of: {task} Do only this step.)"
    expectations = expectations_of(values)
    if expectations and is_last:
        query += f"\n\n{expectations.format_for_model()}"
    without_tests = {"tests": None, "examples": None}
    return {
        **values,
        **without_tests,
        "query": query,
        "answer_type": values.get("answer_type") if is_last else None,
        "previous_steps": _format_steps(progress.solved, values),
    }


def _format_steps(solved: list[tuple[str, State]], values: State) -> str:
    parts = []
    for number, (step, outcome) in enumerate(solved, 1):
        part = f"Step {number}: {step}\n{fenced(shortened(outcome['code'], _MAX_CODE_CHARS), 'python')}"
        if not values.get("schema_only"):
            part += f"\nOutput:\n{shortened(outcome['output'], _MAX_OUTPUT_CHARS)}"
        parts.append(part)
    return "\n\n".join(parts)


def _combined_code(steps: list[tuple[str, State]]) -> str:
    parts = [
        f"# Step {number}: {step}\n{outcome['code'].strip()}"
        for number, (step, outcome) in enumerate(steps, 1)
    ]
    return "\n\n".join(parts) + "\n"


def _combined_execution(executions: list[Execution]) -> Execution:
    """Return the last run with the artifacts and tool calls of all runs."""
    calls = tuple(call for execution in executions for call in execution.tool_calls)
    artifacts = {artifact.name: artifact for execution in executions for artifact in execution.artifacts}
    return replace(executions[-1], artifacts=tuple(artifacts.values()), tool_calls=calls)


def _weakest(verdicts: list[Verdict]) -> Verdict:
    number, verdict = min(enumerate(verdicts, 1), key=lambda pair: pair[1].rank)
    return replace(verdict, reason=f"Step {number} of {len(verdicts)}: {verdict.reason}")
