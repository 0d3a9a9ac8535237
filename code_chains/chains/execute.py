"""code, (problems, files, variables, session) -> execution, output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from code_chains.chains.base import Config, Do, Piece, Program, State
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.base import Executor, Session
from code_chains.state import ErrorReport, Execution
from code_chains.tools import told_of_run

__all__ = ["ExecuteChain", "undo"]


class ExecuteChain(Piece):
    """Runs a program, unless a problem is an error: then nothing runs and `execution.status` is `refused`.

    With a `session` of the executor it runs in the state of that session, which a failure leaves as it was.

    Args:
        executor: The place where it runs.

    Example:
        >>> from code_chains.executors import SandboxExecutor
        >>> ExecuteChain(executor=SandboxExecutor()).invoke({"code": "6 * 7"})["output"]
        '42'
    """

    name: str | None = "execute"
    executor: Executor

    def __init__(self, executor: Executor, **kwargs: Any) -> None:
        if not isinstance(executor, Executor):
            raise ConfigurationError("executor", executor, "an Executor, e.g. SandboxExecutor()")
        super().__init__(**{"executor": executor, **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """It needs a program."""
        return ["code"]

    @property
    def optional_keys(self) -> list[str]:
        """What keeps a program from running, and what it finds there."""
        return ["problems", "files", "variables", "session"]

    @property
    def output_keys(self) -> list[str]:
        """It adds the record of the run."""
        return ["execution", "output"]

    def _told(self, outcome: Mapping[str, Any]) -> str:
        return told_of_run(outcome["execution"])

    def _program(self, values: State, config: Config) -> Program:
        execution = _refused(values) or (yield Do(self._run_code, values, config, self._arun_code))
        yield {"execution": execution, "output": execution.output}

    def _run_code(self, state: State) -> Execution:
        return self._place(state).run(state["code"], **_inputs(state))

    async def _arun_code(self, state: State) -> Execution:
        return await self._place(state).arun(state["code"], **_inputs(state))

    def _place(self, state: State) -> Executor | Session:
        session = state.get("session")
        if session is not None and not isinstance(session, Session):
            raise InputError(f"session must be an open session of an executor, not {type(session).__name__}.")
        return session or self.executor


def undo(values: State, outcome: State, config: Config) -> Program:
    """Take back what a run did to its session, if it ran well and is still not accepted."""
    if values.get("session") is not None and outcome["execution"].ok:
        yield Do(lambda session: session.rollback(), values["session"], config)


def _inputs(state: State) -> State:
    return {"files": state.get("files"), "variables": state.get("variables")}


def _refused(state: State) -> Execution | None:
    errors = [problem for problem in state.get("problems") or () if problem.severity == "error"]
    if not errors:
        return None
    return Execution("refused", error=ErrorReport("Refused", "; ".join(map(str, errors)), errors[0].line))
