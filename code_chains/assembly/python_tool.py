"""A tool that runs an agent's programs, and keeps what they made for the next call of the same thread."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool

from code_chains.analysis.checks import Check
from code_chains.analysis.replies.extraction import as_program
from code_chains.assembly.arguments import resolve_tools, resolve_validate
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains import ValidateChain
from code_chains.chains.base import Config, Flow, State
from code_chains.chains.execute import user_code_chains
from code_chains.chains.tools import ProgramArguments, describe_program_tool, format_execution
from code_chains.conversations.memory import ConversationMemory
from code_chains.conversations.sessions import open_conversations
from code_chains.executors import Executor
from code_chains.executors.registry import resolve_executor
from code_chains.toolbox import Toolbox

Given = Mapping[str, Any] | Callable[[str], Mapping[str, Any]] | None
"""Files or variables of each thread, or a function from the thread to them."""
_NO_THREAD = "(Nothing of it is kept for the next program, as the application names no thread.)"


class _ProgramChain(CodeChain):
    """Runs programs of an agent; the thread of its config names the session."""

    given: dict[str, Given]

    @property
    def output_keys(self) -> list[str]:
        return [*super().output_keys, "is_kept"]

    def _with_session_id(self, inputs: Any) -> State:
        state = super()._with_session_id(inputs)
        given = {key: given_to(value, state.get("session_id") or "") for key, value in self.given.items()}
        return {"query": "Run this program.", **state, **given}

    def _flow(self, values: State, config: Config) -> Flow:
        yield from super()._flow(values, config)
        is_kept = self._is_turn(values) and self.conversations is not None and self.conversations.keep_state
        yield {"is_kept": is_kept}

    def _format_for_model(self, inputs: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
        code = as_program(inputs["code"], self.executor.language if self.executor else "python")
        text = format_execution(outcome["execution"], code, outcome["problems"])
        is_lost = (
            outcome["execution"].ok
            and not outcome["is_kept"]
            and self.executor
            and self.executor.has_sessions
        )
        return f"{text}\n{_NO_THREAD}" if is_lost else text


def given_to(given: Given, thread: str) -> Any:
    """Return what a thread is given."""
    return given(thread) if callable(given) else given


def create_python_tool(
    executor: Executor | str = "strongest",
    *,
    checks: str | Check | Sequence[Check] | ValidateChain = "standard",
    tools: Toolbox | Sequence[BaseTool | Callable[..., Any]] = (),
    files: Given = None,
    variables: Given = None,
    name: str = "run_python",
    description: str | None = None,
) -> BaseTool:
    r"""Make a tool with which an agent runs programs; calls of the same thread share variables, imports and files.

    The thread is the `thread_id` (or `session_id`) in the `configurable` of the agent's config, so that users never share
    a state; without one nothing is kept. A program that fails leaves the state as it was. What the model reads of a
    failure is the line, the values at that moment and what exists instead; wrong arguments are explained to it. The
    message's `artifact` is the whole outcome as JSON.

    Args:
        executor: Where programs run; a name as in `create_code_chain`, or an executor, which the caller closes;
            one that is named is closed when the tool is discarded.
        checks: As in `create_code_chain`; `ValidateChain(approve=…)` has somebody approve each program.
        tools: The agent's other tools, as functions that programs call: one program may call them in a loop, where the
            agent would call its model for each. See `Toolbox`.
        files: Files in the working directory, as in a question; or a function from the thread (empty without one) to them.
        variables: Values that exist for programs, `{"df": df}`, or a function as for files. What programs change stays
            changed for their thread.
        name: The name that a model calls.
        description: When a model should call it; by default with what the executor offers.

    Raises:
        ConfigurationError: An argument is invalid.

    Example:
        >>> from langchain_core.runnables import RunnableConfig
        >>> tool = create_python_tool()
        >>> thread: RunnableConfig = {"configurable": {"thread_id": "ann"}}
        >>> tool.invoke({"code": "numbers = [1, 2, 3]\nprint(len(numbers))"}, thread)
        '3'
        >>> tool.invoke({"code": "sum(numbers)"}, thread)
        '6'
    """
    run_executor = resolve_executor(executor)
    toolbox = resolve_tools(tools, run_executor)
    conversations = open_conversations(run_executor)
    validate = resolve_validate(checks, run_executor, toolbox)
    stages = user_code_chains(validate, run_executor, toolbox)
    chain = _ProgramChain(
        name=name,
        chains=stages,
        input_variables=["code"],
        output_variables=[key for stage in stages for key in stage.output_keys],
        executor=run_executor,
        memory=ConversationMemory(),
        conversations=conversations,
        given={"files": files, "variables": variables},
    )
    described = describe_program_tool(
        run_executor,
        keeps_state=conversations.keep_state,
        files=() if callable(files) else files or (),
        variables=() if callable(variables) else variables or (),
        toolbox=toolbox,
    )
    tool = chain.as_tool(ProgramArguments, name=name, description=description or described)
    if run_executor is not executor:
        weakref.finalize(tool, run_executor.close)
    return tool
