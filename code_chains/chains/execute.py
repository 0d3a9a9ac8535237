"""code, (problems, files, variables) -> execution, output."""

from __future__ import annotations

from typing import Any

from code_chains.chains.base import State, Transform
from code_chains.errors import ConfigurationError
from code_chains.executors.base import Executor
from code_chains.state import ErrorReport, Execution

__all__ = ["ExecuteChain"]


class ExecuteChain(Transform):
    """Runs a program, unless problems were found: then nothing runs and `execution.status` is `refused`.

    Args:
        executor: The place where it runs.

    Example:
        >>> from code_chains.executors import SandboxExecutor
        >>> ExecuteChain(executor=SandboxExecutor()).invoke({"code": "6 * 7"})["output"]
        '42'
    """

    name: str | None = "execute"
    executor: Executor

    def __init__(self, executor: Executor, **kwargs: object) -> None:
        if not isinstance(executor, Executor):
            raise ConfigurationError("executor", executor, "an Executor, e.g. SandboxExecutor()")
        functions = {"transform": self._execute, "atransform": self._aexecute}
        fields: dict[str, Any] = {"executor": executor, **functions}
        super().__init__(input_variables=["code"], output_variables=["execution", "output"], **fields, **kwargs)

    @property
    def optional_keys(self) -> list[str]:
        """What keeps a program from running, and what it finds there."""
        return ["problems", "files", "variables"]

    def _execute(self, state: State) -> State:
        execution = _refused(state) or self.executor.run(state["code"], **_inputs(state))
        return {"execution": execution, "output": execution.output}

    async def _aexecute(self, state: State) -> State:
        execution = _refused(state) or await self.executor.arun(state["code"], **_inputs(state))
        return {"execution": execution, "output": execution.output}


def _inputs(state: State) -> State:
    return {"files": state.get("files"), "variables": state.get("variables")}


def _refused(state: State) -> Execution | None:
    problems = state.get("problems")
    if not problems:
        return None
    return Execution("refused", error=ErrorReport("Refused", "; ".join(map(str, problems)), problems[0].line))
