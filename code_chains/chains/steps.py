"""query, … -> steps, and code, problems, execution, output, verdict, attempts and stop_reason of all of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from langchain_core.runnables.graph import Graph

from code_chains.chains.attempt import KEPT
from code_chains.chains.base import Call, Chain, Config, Do, Piece, Program, State
from code_chains.chains.plan import seems_to_need_steps
from code_chains.errors import BudgetError
from code_chains.executors.base import Session
from code_chains.expectations import expect
from code_chains.inputs import fenced, shortened
from code_chains.state import Execution, Verdict

__all__ = ["StepsChain"]

_BUDGET = ("usd", "tokens", "model_calls", "seconds")


class StepsChain(Piece):
    """Does a task in steps where it needs several, in one session of the executor.

    Each step is solved by a chain of its own kind: written, run, judged and repaired. It finds the variables and files of
    earlier steps, and its model sees their programs and outputs. A step that fails is planned anew, once for a task. What
    came of all steps is put together: their programs one after the other, their outputs, and the weakest verdict.

    Args:
        solve: Does one step or a whole task, usually a `RepairChain`.
        plan: Splits a task, usually a `PlanChain`.
        open_session: Opens a session in which the steps run.
        when: `"auto"` asks for a plan where the task says that one thing comes after another; `"always"` asks for any.
        evaluate: Judges the programs together where `tests` or `examples` were given.
    """

    name: str | None = "steps"
    solve: Chain
    plan: Chain
    open_session: Callable[[], Session]
    when: Literal["auto", "always"] = "auto"
    evaluate: Chain | None = None

    @property
    def input_keys(self) -> list[str]:
        """What a task needs."""
        return self.solve.input_keys

    @property
    def optional_keys(self) -> list[str]:
        """What solving it uses."""
        return [key for key in getattr(self.solve, "optional_keys", []) if key != "earlier"]

    @property
    def output_keys(self) -> list[str]:
        """The steps, and what came of them."""
        return [*KEPT, "attempts", "stop_reason", "steps"]

    def _program(self, values: State, config: Config) -> Program:
        steps = [values["query"]]
        if self.when == "always" or seems_to_need_steps(values["query"]):
            try:
                steps = (yield Call(self.plan, values, config))["steps"]
            except BudgetError:  # Whoever solves it will run into the limit, too, and say so.
                steps = [values["query"]]
        if len(steps) < 2:
            yield Call(self.solve, values, config, self._solved)
            yield {"steps": [values["query"]]}
            return
        given = values.get("session")
        session = given if given is not None else (yield Do(lambda _: self.open_session(), None, config))
        try:
            yield from self._work(steps, {**values, "session": session}, config)
        finally:
            if given is None:
                session.close()

    def _work(self, steps: list[str], values: State, config: Config) -> Program:
        done: list[tuple[str, State]] = []
        failed: tuple[str, State] | None = None
        pending, planned, count = list(steps), 1, 0
        while pending:
            step = pending.pop(0)
            outcome = yield Call(self.solve, _task(step, values, done, last=not pending), config)
            numbered = [replace(one, number=count + one.number, step=len(done) + 1) for one in outcome["attempts"]]
            count += len(numbered)
            yield {"attempts": numbered}
            if outcome["verdict"].ok:
                done.append((step, outcome))
                continue
            failed = (step, outcome)
            if planned > 1 or outcome["stop_reason"] in _BUDGET:
                break
            planned, pending = 2, (yield from self._plan_anew(failed, pending, values, done, config))
            failed = failed if not pending else None
        yield from self._together(done, failed, values, config)

    def _plan_anew(
        self,
        failed: tuple[str, State],
        pending: list[str],
        values: State,
        done: list[tuple[str, State]],
        config: Config,
    ) -> Program:
        """The steps that are left; where the model knows none but the whole task, the old ones once more."""
        said = f"{failed[0]}\n{failed[1]['verdict'].reason}"
        try:
            steps = (yield Call(self.plan, {**values, "earlier": _earlier(done), "feedback": said}, config))["steps"]
        except BudgetError:
            return []
        return [failed[0], *pending] if steps == [values["query"]] else steps

    def _together(
        self, done: list[tuple[str, State]], failed: tuple[str, State] | None, values: State, config: Config
    ) -> Program:
        every = [*done, *([failed] if failed else [])]
        last = every[-1][1]
        outcome = {
            "code": "\n\n".join(f"# Step {n}: {step}\n{one['code'].strip()}" for n, (step, one) in enumerate(every, 1))
            + "\n",
            "problems": last["problems"],
            "execution": _one_record([one["execution"] for _, one in every]),
            "output": "\n".join(one["output"] for _, one in every if one["output"]),
            "verdict": _weakest(every),
        }
        if self.evaluate is not None and not failed and (values.get("tests") or values.get("examples")):
            outcome |= yield Call(self.evaluate, {**values, **outcome, "session": None}, config)
        reason = last["stop_reason"] if outcome["verdict"].ok or failed else "attempts"
        yield {**outcome, "stop_reason": reason, "steps": [step for step, _ in every]}

    def _solved(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.output_keys}

    def get_graph(self, config: Config | None = None) -> Graph:
        """The stages of one step."""
        return self.solve.get_graph(config)


def _task(step: str, values: State, done: list[tuple[str, State]], *, last: bool) -> State:
    """What solving a step is given; tests are for all steps together, and told to the last one."""
    whole = shortened(" ".join(str(values["query"]).split()), 2000)
    expected = expect(values.get("tests"), values.get("examples"))
    query = f"{step}\n(This is one step of: {whole} Do only this step.)"
    query += f"\n\n{expected.told()}" if expected and last else ""
    return {**values, "query": query, "earlier": _earlier(done), "tests": None, "examples": None}


def _earlier(done: list[tuple[str, State]]) -> str:
    return "\n\n".join(
        f"Step {number}: {step}\n{fenced(shortened(one['code'], 2000), 'python')}\nOutput:\n{shortened(one['output'], 1000)}"
        for number, (step, one) in enumerate(done, 1)
    )


def _one_record(executions: list[Execution]) -> Execution:
    """The last run with the files of all."""
    files = {artifact.name: artifact for execution in executions for artifact in execution.artifacts}
    return replace(executions[-1], artifacts=tuple(files.values()))


def _weakest(every: list[tuple[str, Any]]) -> Verdict:
    verdicts: list[Verdict] = [outcome["verdict"] for _, outcome in every]
    number, verdict = min(enumerate(verdicts, 1), key=lambda pair: pair[1].rank)
    return replace(verdict, reason=f"Step {number} of {len(every)}: {verdict.reason}")
