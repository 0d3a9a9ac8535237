"""code, (problems, files, variables, session, return_value) -> stdout, execution, output."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from code_chains.analysis.replies.extraction import as_program, no_program
from code_chains.chains.base import (
    Chain,
    Config,
    Flow,
    RunFunction,
    State,
    StreamFunction,
    StreamingChain,
    StreamingTransformChain,
)
from code_chains.chains.ranks import UNCHECKED
from code_chains.chains.validate import ValidateChain
from code_chains.errors import InputError
from code_chains.executors.base import Executor, Session
from code_chains.executors.inputs import check_code
from code_chains.executors.runner import Runner
from code_chains.executors.tools import check_takes_tools
from code_chains.records.decisions import read_result
from code_chains.state import ErrorReport, Execution, Problem, Verdict
from code_chains.toolbox import Toolbox

_MISSING_NAMES = {"AttributeError", "ImportError", "ModuleNotFoundError", "NameError"}
_MAX_SIGNATURES = 3
_MAX_ERRORS = 50
"""Errors of checks that are named."""
_MAX_STDOUT_CHARS = 20_000
"""Characters of one program's standard output that are streamed; `Execution.stdout` has all of it."""


_FAILURE: RunnableLambda[str, str] = RunnableLambda(lambda summary: summary, name="failed_run")
"""A run of its own in traces, which finds failed programs by its tags: the runs of chains succeed in any case."""


@runtime_checkable
class Signatures(Protocol):
    """Where to look up how functions of a package are called, such as a `SnippetStore`."""

    def signatures(self, names: Iterable[str], misspelt: Iterable[str] = ()) -> list[str]:
        """Return how these are called, and what a misspelt name may mean."""


class ExecuteChain(StreamingChain):
    """Run a program, unless a problem is an error: then nothing runs and `execution.status` is `refused`.

    `code` may be the whole reply of a model, as that of a stock `LLMChain`; the program is taken from it. If a program
    fails or is refused, the last line of `output` says so. With a `session` of the executor the program runs in that
    session, whose state a failure leaves unchanged.

    A stream yields `stdout` in parts, as the program prints it: at most its first 20,000 characters. In traces a failed
    run is marked by a child run, `failed_run`, with the tags `failed` and `status:…`.

    Args:
        executor: Where the program runs: an executor, or a function of the code (see `FunctionExecutor`).
        tools: What the program may call; only with an executor whose `run` takes `tools`.
        references: Where to look up how functions of a package are called that a failing line names, for `error.hint`.

    Example:
        >>> from code_chains.executors import SandboxExecutor
        >>> ExecuteChain(executor=SandboxExecutor()).invoke({"code": "6 * 7"})["output"]
        '42'
    """

    input_keys: ClassVar[list[str]] = ["code"]
    optional_keys: ClassVar[list[str]] = [
        "problems",
        "files",
        "variables",
        "stdin",
        "session",
        "return_value",
    ]
    output_keys: ClassVar[list[str]] = ["stdout", "execution", "output"]

    name: str | None = "execute"
    executor: Executor
    tools: Toolbox | None = None
    references: Signatures | None = None

    def __init__(self, executor: Executor | Callable[[str], Any], **kwargs: Any) -> None:
        if not isinstance(executor, Executor):
            from code_chains.executors.function import as_executor

            executor = as_executor(executor)
        if kwargs.get("tools") is not None:
            check_takes_tools(executor)
        super().__init__(**{"executor": executor, **kwargs})

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = "run_program",
        description: str | None = None,
        arg_types: Mapping[str, Any] | None = None,
    ) -> BaseTool:
        """Make a tool that runs each program on its own; `create_python_tool` makes one that keeps a state."""
        from code_chains.chains.tools import ProgramArguments, describe_program_tool

        return super().as_tool(
            args_schema if args_schema or arg_types else ProgramArguments,
            name=name,
            description=description or describe_program_tool(self.executor, keeps_state=False),
            arg_types=arg_types,
        )

    def _format_for_model(self, inputs: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
        from code_chains.chains.tools import format_execution

        code = as_program(inputs["code"], self.executor.language)
        return format_execution(outcome["execution"], code, _problems(inputs))

    def _flow(self, values: State, config: Config) -> Flow:
        reply, language = check_code(values["code"]), self.executor.language
        values = {**values, "code": as_program(reply, language)}
        execution, printed = _refusal(values, reply, language), _Printed()
        if execution is None:
            execution = yield StreamFunction(
                self._run_code,
                (values, printed),
                config,
                self._arun_code,
                stream=self._stream_code,
                astream=self._astream_code,
            )
        execution = self._with_signatures(execution, values["code"])
        if not execution.ok:
            # Not an `Invoke`, which fails once the time of a budget is spent.
            yield RunFunction(_mark, execution, config, _amark)
        yield {
            "stdout": printed.remainder(execution.stdout),
            "execution": execution,
            "output": _output(execution),
        }

    def _run_code(self, run: tuple[State, _Printed]) -> Execution:
        runner, code, inputs = self._prepare(run[0])
        return runner.run(code, **inputs)

    async def _arun_code(self, run: tuple[State, _Printed]) -> Execution:
        runner, code, inputs = self._prepare(run[0])
        return await runner.arun(code, **inputs)

    def _stream_code(self, run: tuple[State, _Printed]) -> Generator[State | Execution, None, None]:
        state, printed = run
        runner, code, inputs = self._prepare(state)
        with closing(runner.stream(code, **inputs)) as items:
            for item in items:
                if isinstance(item, Execution):
                    yield item
                elif part := printed.take(item):
                    yield {"stdout": part}

    async def _astream_code(self, run: tuple[State, _Printed]) -> AsyncGenerator[State | Execution, None]:
        state, printed = run
        runner, code, inputs = self._prepare(state)
        async with aclosing(runner.astream(code, **inputs)) as items:
            async for item in items:
                if isinstance(item, Execution):
                    yield item
                elif part := printed.take(item):
                    yield {"stdout": part}

    def _prepare(self, state: State) -> tuple[Executor | Session, str, State]:
        """Return where to run, the program, and its inputs."""
        runner = self._executor_of(state)
        return runner, state["code"], run_arguments(runner, state, self.tools)

    def _with_signatures(self, execution: Execution, program: str) -> Execution:
        """Return a failed run with a hint how functions are called that its message or its failing line names."""
        error = execution.error
        if self.references is None or error is None or execution.status != "error":
            return execution
        line = "".join(program.splitlines()[(error.line or 0) - 1 :][:1])
        named = re.findall(r"(\w+)(?='|\(\))", error.message)
        misspelt = named if error.type in _MISSING_NAMES else []
        found = self.references.signatures([*named, *re.findall(r"\w+", line)], misspelt)
        # Those of a package that the program does not use say nothing about it.
        found = [one for one in found if one.split()[1].partition(".")[0] in program][:_MAX_SIGNATURES]
        is_installed = bool(found) and error.type == "ModuleNotFoundError"
        hint = "" if is_installed else error.hint
        return replace(execution, error=replace(error, hint="\n".join(filter(None, [hint, *found]))))

    def _executor_of(self, state: State) -> Executor | Session:
        session = state.get("session")
        if session is not None and not isinstance(session, Session):
            raise InputError(f"session must be an open session of an executor, not {type(session).__name__}.")
        return session or self.executor


def _mark(execution: Execution) -> None:
    """Mark a failure in traces."""
    _FAILURE.invoke(execution.summary, _tags(execution))


async def _amark(execution: Execution) -> None:
    await _FAILURE.ainvoke(execution.summary, _tags(execution))


def _tags(execution: Execution) -> Config:
    return {"tags": ["failed", f"status:{execution.status}"]}


class _Printed:
    """How much of a program's standard output was streamed."""

    def __init__(self) -> None:
        self._chars = 0

    def take(self, text: str) -> str:
        """Return what to stream of a part of the output: all of it up to the limit, and nothing beyond."""
        part = text[: _MAX_STDOUT_CHARS - self._chars]
        self._chars += len(part)
        return part

    def remainder(self, stdout: str) -> str:
        """Return what is missing of the output, so that all chunks are the same text whether it was streamed or not."""
        return stdout[self._chars : _MAX_STDOUT_CHARS]


def undo(values: State, outcome: State, config: Config) -> Flow:
    """Roll a session back if the program ran without error and is still not accepted."""
    if values.get("session") is not None and outcome["execution"].ok:
        yield RunFunction(lambda session: session.rollback(), values["session"], config)


def commit(values: State, code: str, config: Config) -> Flow:
    """Run a program that was rolled back again in its session, this time for good, and return its execution."""
    inputs = run_arguments(values["session"], values)
    run, arun = partial(values["session"].run, **inputs), partial(values["session"].arun, **inputs)
    execution: Execution = yield RunFunction(run, code, config, arun)
    return execution


def run_inputs(state: State, tools: Toolbox | None = None) -> State:
    """Return the keyword arguments of a run: `files`, `variables` and, if there are any, `stdin` and `tools`."""
    inputs = {"files": state.get("files"), "variables": state.get("variables")}
    inputs |= {} if state.get("stdin") is None else {"stdin": state["stdin"]}
    return inputs if tools is None else {**inputs, "tools": tools}


def run_arguments(runner: Runner, state: State, tools: Toolbox | None = None) -> State:
    """Return the keyword arguments of a run: its inputs, and the request for its value where a runner returns values."""
    wants_value = runner.returns_values and state.get("return_value")
    return run_inputs(state, tools) | ({"return_value": True} if wants_value else {})


def _output(execution: Execution) -> str:
    """Return what was shown; of a failure also how it ended, so that a later stage does not invent an answer."""
    if execution.ok:
        return execution.output
    ending = f"The program failed: {execution.summary}"
    if execution.status == "refused" and execution.error is not None:
        ending = f"The program was refused: {execution.error.message}"
    return "\n".join(filter(None, [execution.output, " ".join(ending.split())]))


def _problems(state: Mapping[str, Any]) -> list[Problem]:
    """Return the problems, which may be given as checks return them."""
    return read_result(state.get("problems"), "problems")


def _refusal(state: State, reply: str, language: str) -> Execution | None:
    """Return why nothing runs: an error of the checks, or a reply that is no program; else None."""
    errors = [problem for problem in _problems(state) if problem.severity == "error"]
    if errors:
        said = "; ".join(map(str, errors[:_MAX_ERRORS]))
        return Execution("refused", error=ErrorReport("Refused", said, errors[0].line))
    if not state["code"].strip():
        return Execution("refused", error=ErrorReport("Refused", no_program(reply, language)))
    return None


def user_code_chains(
    validate: ValidateChain, executor: Executor, toolbox: Toolbox | None = None
) -> list[Chain]:
    """Return the stages of a program that answers no question: one that ran is right, even if it shows nothing."""
    evaluate = StreamingTransformChain(
        name="evaluate",
        input_variables=["execution"],
        output_variables=["verdict"],
        transform=lambda state: {"verdict": _verdict_on_user_code(state["execution"])},
    )
    return [validate, ExecuteChain(executor, tools=toolbox), evaluate]


def _verdict_on_user_code(execution: Execution) -> Verdict:
    if execution.ok:
        return UNCHECKED
    return Verdict("failed", "none", execution.summary)
