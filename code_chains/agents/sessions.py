"""Programs in the sessions of threads: code, thread, expected -> execution, verdict, session_ended, session_name."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from langchain_core.messages import ToolMessage
from langchain_core.runnables import ensure_config

from code_chains.analysis.replies.extraction import as_program
from code_chains.assembly.python_tool import Given, given_to
from code_chains.assembly.question import session_of
from code_chains.chains.base import Config, Flow, RunFunction, State, StreamingSequentialChain
from code_chains.chains.tools import format_execution
from code_chains.conversations.sessions import Conversations
from code_chains.errors import ExecutorError, InputError, SessionError
from code_chains.executors import Executor
from code_chains.executors.base import Session
from code_chains.executors.inputs import files_on_disk
from code_chains.state import ErrorReport, Execution, Verdict

INVOCATION = "python_invocation"
"""The key of an agent's state that names its invocation."""
_LOST = (
    "Nothing was run. The session of this conversation has ended: the variables, imports and files of earlier programs "
    "are lost. The next program starts from nothing and must make what it needs."
)
_ENDED = (
    "The session ended with this program: all variables, imports and files are lost. "
    "The next program starts from nothing and must make what it needs."
)
_UNKNOWN = "unknown"
"""The name of a session that ran a program of which only the message is left."""
_MAX_THREADS = 100_000
"""Threads of which it is known in which session they were; those of agents say so themselves, by their messages."""
_CLOSED = "This PythonMiddleware is closed. Make a new one."


class ThreadSessions:
    """The sessions of threads: opened when a thread runs its first program, and never replaced unnoticed.

    Args:
        executor: Opens them.
        files: Files that are in each session from its beginning, or a function from the thread to them.
        variables: Values that exist in each session from its beginning, or such a function.
        max_sessions: How many are open at a time; the one that was idle for longest is closed for a new one.
    """

    executor: Executor

    def __init__(self, executor: Executor, files: Given, variables: Given, max_sessions: int) -> None:
        self.executor, self._files, self._variables = executor, files, variables
        self.conversations: Conversations = Conversations(self._open, max_open=max_sessions)
        self.is_closed: bool = False
        self._names: WeakKeyDictionary[Session, str] = WeakKeyDictionary()
        self._last: OrderedDict[str, str] = OrderedDict()

    def _open(self) -> Session:
        self.check_open()
        return self.executor.session()

    def begin(self, session: Session, thread: str) -> None:
        """Give a new session its files and variables."""
        thread = thread.removeprefix("thread:") if thread.startswith("thread:") else ""
        try:
            with files_on_disk(given_to(self._files, thread)) as files:
                variables = given_to(self._variables, thread)
                if files or variables:
                    session.run("", files=files, variables=variables).raise_for_failure()
        except InputError as error:  # It was checked before, and no model can do anything about it.
            session.close()
            raise ExecutorError(f"A session cannot be given its files and variables: {error}") from error
        except BaseException:
            session.close()
            raise

    def check_open(self) -> None:
        """Raise if this is closed.

        Raises:
            SessionError: It is.
        """
        if self.is_closed:
            raise SessionError(_CLOSED)

    def is_new(self, session: Session) -> bool:
        """Return whether no program was run in a session so far."""
        return session not in self._names

    def last_of(self, thread: str) -> str:
        """Return the name of the session in which the last program of a thread ran; empty if that is unknown."""
        return self._last.get(thread, "")

    def used(self, session: Session, thread: str) -> str:
        """Note that a thread uses a session; return the name of the session, which no other one has."""
        name = self._names.setdefault(session, uuid.uuid4().hex)
        if not thread.startswith("thread:"):  # The others are used once.
            return name
        self._last[thread] = name
        self._last.move_to_end(thread)
        if len(self._last) > _MAX_THREADS:
            self._last.popitem(last=False)
        return name

    def close(self) -> None:
        """Close all sessions and open none any more."""
        self.is_closed = True
        self.conversations.close()


class ThreadProgramChain(StreamingSequentialChain):
    """Runs the programs of an agent, each thread's in a session of its own.

    Attributes:
        sessions: The sessions.
        tool_name: The name of the tool that it becomes, by which earlier programs are found among messages.
    """

    sessions: ThreadSessions
    tool_name: str

    @property
    def output_keys(self) -> list[str]:
        """Keys that the stages add, whether the session has ended, and a name that no other session has."""
        return [*super().output_keys, "session_ended", "session_name"]

    def prep_inputs(self, inputs: Any) -> State:
        """Replace the agent's state by what matters of it, which is all that traces see."""
        return super().prep_inputs(self._with_thread(inputs))

    async def aprep_inputs(self, inputs: Any) -> State:
        """Like `prep_inputs`."""
        return await super().aprep_inputs(self._with_thread(inputs))

    def _with_thread(self, inputs: Mapping[str, Any]) -> State:
        state = inputs.get("state") or {}
        return {
            "code": inputs["code"],
            "thread": _thread(state),
            "expected": _expected_session(state.get("messages") or (), self.tool_name),
        }

    def _flow(self, values: State, config: Config) -> Flow:
        self.sessions.check_open()
        conversations = self.sessions.conversations
        begin, abegin = partial(conversations.begin, turns=list), partial(conversations.abegin, turns=list)
        try:
            conversation = yield RunFunction(begin, values["thread"], config, abegin)
        except SessionError:  # That the process is gone is noticed here at the latest.
            self.sessions.check_open()
            yield {"problems": [], **_ending(_LOST), "session_name": ""}
            return
        try:
            expected = values["expected"]
            expected = self.sessions.last_of(values["thread"]) if expected is None else expected
            is_new = self.sessions.is_new(conversation.session)
            if is_new:
                begin_session = partial(self.sessions.begin, conversation.session)
                yield RunFunction(begin_session, values["thread"], config)
            name = self.sessions.used(conversation.session, values["thread"])
            # Invariant: nothing runs in a session for a caller that builds on another one.
            is_lost = is_new if expected == _UNKNOWN else expected != name
            if expected and is_lost:
                yield {"problems": [], **_ending(_LOST)}
            else:
                yield from self._run_in(conversation.session, values, config)
            yield {"session_name": name}
            conversation.keep()
        finally:
            conversation.end()
            if values["thread"].startswith("call:"):
                conversations.forget(values["thread"])

    def _run_in(self, session: Session, values: State, config: Config) -> Flow:
        try:
            yield from super()._flow({**values, "session": session}, config)
        except SessionError:
            self.sessions.check_open()
            yield _ending(_ENDED)
        else:
            # Another machine may be asked for it.
            yield {"session_ended": not (yield RunFunction(attrgetter("alive"), session, config))}

    def _format_for_model(self, inputs: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
        execution = outcome["execution"]
        code = as_program(inputs["code"], self.sessions.executor.language)
        text = format_execution(execution, code, outcome["problems"])
        is_said = execution.status == "refused"
        return f"{text}\n{_ENDED}" if outcome["session_ended"] and not is_said else text


def _thread(state: Mapping[str, Any]) -> str:
    """Return the name of the session: the thread's, else that of the agent's invocation, else of this call alone."""
    named = session_of(ensure_config().get("configurable", {}))
    if named:
        return f"thread:{named['session_id']}"
    return f"invocation:{state[INVOCATION]}" if state.get(INVOCATION) else f"call:{uuid.uuid4()}"


def _expected_session(messages: Sequence[Any], tool_name: str) -> str | None:
    """Return the session that a model relies on which has seen these messages: empty if on none; None without any."""
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and message.name == tool_name:
            outcome = message.artifact if isinstance(message.artifact, Mapping) else {}
            if outcome.get("session_ended"):
                return ""
            if message.status == "success":
                return str(outcome.get("session_name") or _UNKNOWN)
    return "" if messages else None


def _ending(text: str) -> State:
    """Return the outcome of a program whose session has ended."""
    execution = Execution("refused", error=ErrorReport("SessionEnded", text))
    return {
        "stdout": "",
        "execution": execution,
        "output": text,
        "verdict": Verdict("failed", "none", text),
        "session_ended": True,
    }
