"""A middleware for agents of LangChain: they run programs, and each thread has a session of its own."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.tools import InjectedState
from langchain_core.tools import BaseTool

from code_chains.agents.sessions import INVOCATION, ThreadProgramChain, ThreadSessions
from code_chains.analysis.checks import Check
from code_chains.assembly.arguments import resolve_tools, resolve_validate
from code_chains.assembly.python_tool import Given
from code_chains.chains import ValidateChain
from code_chains.chains.execute import user_code_chains
from code_chains.chains.tools import ProgramArguments, describe_program_tool
from code_chains.errors import ConfigurationError, check_int
from code_chains.executors import Executor, SandboxExecutor
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.runner import Closing
from code_chains.toolbox import Toolbox, check_tool_name

MAX_SESSIONS = 8
"""Sessions of a new executor by default."""


class _PythonState(AgentState[Any]):
    python_invocation: NotRequired[Annotated[str, PrivateStateAttr]]


class _Arguments(ProgramArguments):
    state: Annotated[Any, InjectedState] = None


class PythonMiddleware(Closing, AgentMiddleware[Any, Any, Any]):
    """Give an agent the tool `run_python`, whose programs run in a session for each thread.

    The thread is the `thread_id` in the `configurable` of the agent's config: its programs share variables, imports and
    files, in this invocation of the agent and in later ones. Without a thread, each invocation has a session, which
    ends with it. A program that fails leaves the session as it was; programs of one thread run one after the other,
    those of several threads at once, and never see each other.

    A session that has ended is never replaced unnoticed. Whether it was idle for too long, gave way to others, lost its
    process, or is that of another process of the application: the next program is not run, its message says that what
    earlier programs made is lost, and the one after that starts from nothing.

    The message's `artifact` is the whole outcome as JSON; `from_json(artifact)["execution"].artifacts` has plots and
    files as bytes, and `session_ended` is true if the state is lost.

    Args:
        executor: Where programs run: one that has sessions, which the caller closes. By default a new `SandboxExecutor`,
            closed with the middleware; it starts with the first program.
        files: Files that are in each session: paths on this machine, bytes or open binary files by their name in the
            working directory, a list of paths, or a function from the thread (empty without one) to its files.
        variables: Values that exist in each session when it begins, `{"df": df}`, or a function as for files.
        checks: As in `create_code_chain`; `ValidateChain(approve=…)` has somebody approve each program.
        tools: Other tools of the agent, as functions that programs call; see `Toolbox`.
        max_sessions: Sessions that are open at a time, by default all that the executor allows; for another one the one
            that was idle for longest is closed. If programs run in all of them, the next one waits.
        name: The name that a model calls.
        description: When a model should call it; by default with what the executor offers.

    Raises:
        ConfigurationError: An argument is invalid.
        InputError: A file cannot be used.

    Example:
        with PythonMiddleware(files=[Path("sales.csv")]) as python:
            agent = create_agent("openai:gpt-5-mini", middleware=[python], checkpointer=InMemorySaver())
    """

    state_schema: type[_PythonState] = _PythonState

    def __init__(
        self,
        executor: Executor | None = None,
        *,
        files: Given | Sequence[Any] = None,
        variables: Given = None,
        checks: str | Check | Sequence[Check] | ValidateChain = "standard",
        tools: Toolbox | Sequence[BaseTool | Callable[..., Any]] = (),
        max_sessions: int | None = None,
        name: str = "run_python",
        description: str | None = None,
    ) -> None:
        _check_texts(name=name, description=description)
        count = _check_sessions(executor, max_sessions)
        self._executor = executor or SandboxExecutor(max_sessions=count)
        toolbox = resolve_tools(tools, self._executor)
        validate = resolve_validate(checks, self._executor, toolbox)
        held_files = ExitStack()
        given: Given = None
        if callable(files):
            given = files
        else:
            paths = held_files.enter_context(files_on_disk(files))
            given = {file: path.absolute() for file, path in paths.items()}
        self._sessions = ThreadSessions(self._executor, given, variables, count)
        chain = _chain(self._sessions, validate, toolbox, name)
        described = description or describe_program_tool(
            self._executor,
            keeps_state=True,
            files=() if callable(given) else given,
            variables=() if callable(variables) else variables or (),
            toolbox=toolbox,
        )
        self._tool = chain.as_tool(_Arguments, name=name, description=described)
        self.tools: Sequence[BaseTool] = [self._tool]
        # Of the tool and not of the middleware, as it may be used without it.
        self._end = weakref.finalize(
            self._tool, _close, self._sessions, None if executor else self._executor, held_files
        )

    @property
    def name(self) -> str:
        """The name of this middleware; agents may have several, with other names of their tools."""
        own = type(self).__name__
        return own if self._tool.name == "run_python" else f"{own}[{self._tool.name}]"

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Name the invocation, whose session it is without a thread."""
        return {INVOCATION: uuid.uuid4().hex}

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Name the invocation; see `before_agent`."""
        return self.before_agent(state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> None:
        """End the session of an invocation without a thread."""
        self._sessions.conversations.forget(f"invocation:{state.get(INVOCATION)}")

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """End the session of an invocation without a thread; see `after_agent`."""
        self.after_agent(state, runtime)

    def close(self) -> None:
        """End all sessions, and the executor if it was made for this middleware. Idempotent."""
        self._end()


def _chain(
    sessions: ThreadSessions, validate: ValidateChain, toolbox: Toolbox | None, name: str
) -> ThreadProgramChain:
    """Return the chain that runs programs."""
    stages = user_code_chains(validate, sessions.executor, toolbox)
    return ThreadProgramChain(
        name=name,
        tool_name=name,
        chains=stages,
        input_variables=["code", "thread", "expected"],
        output_variables=[key for stage in stages for key in stage.output_keys],
        sessions=sessions,
    )


def _close(sessions: ThreadSessions, own_executor: Executor | None, files: ExitStack) -> None:
    """Release what a middleware holds."""
    sessions.close()
    if own_executor is not None:
        own_executor.close()
    files.close()


def _check_texts(*, name: object, description: object) -> None:
    check_tool_name(name)
    if description is not None and not isinstance(description, str):
        raise ConfigurationError("description", description, "text")


def _check_sessions(executor: object, max_sessions: int | None) -> int:
    """Return how many sessions may be open at a time."""
    if executor is not None and not (isinstance(executor, Executor) and executor.has_sessions):
        raise ConfigurationError(
            "executor", executor, "an executor that has sessions, e.g. SandboxExecutor()"
        )
    most = executor.max_sessions if executor else None
    if max_sessions is None:
        max_sessions = most or MAX_SESSIONS
    limit = most or 1000
    remedy = f"a whole number from 1 to {limit}, the sessions of the executor"
    return check_int("max_sessions", max_sessions, remedy, minimum=1, maximum=limit)
