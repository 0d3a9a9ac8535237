"""Sessions by their names: each conversation has a state of its own, which is rebuilt where it was lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import CodeChainsError, SessionError
from code_chains.executors.base import Closing, Session
from code_chains.state import Execution, Turn
from code_chains.threads import in_thread

__all__ = ["Conversation", "Conversations", "ainventory", "inventory"]

_WAIT = 600.0
_PAUSE = 0.01
_INVENTORY = """
def _describe():
    import types
    for _name, _value in list(globals().items()):
        if _name.startswith("_") or isinstance(_value, types.ModuleType):
            continue
        _kind = type(_value).__name__
        if isinstance(_value, (types.FunctionType, type)):
            print(f"- {'class' if isinstance(_value, type) else 'function'} `{_name}`")
        elif hasattr(_value, "columns") and hasattr(_value, "shape"):
            _columns = ", ".join(f"`{_one}`" for _one in list(_value.columns)[:40])
            print(f"- variable `{_name}`: {_kind}, {_value.shape[0]} rows, columns {_columns}"[:1500])
        elif hasattr(_value, "shape") and hasattr(_value, "dtype"):
            print(f"- variable `{_name}`: {_kind} of {_value.dtype}, shape {_value.shape}"[:300])
        else:
            try:
                _shown = repr(_value) if not hasattr(_value, "__len__") or len(_value) <= 1000 else f"{len(_value)} items"
            except Exception:
                _shown = ""
            print(f"- variable `{_name}`: {_kind}, {_shown[:80]}")
    import os
    for _name in sorted(os.listdir("."))[:20]:
        if os.path.isfile(_name):
            _begin = ""
            if _name.lower().endswith((".csv", ".tsv")):
                with open(_name, errors="replace") as _file:
                    _begin = f", begins with the line `{_file.readline().strip()[:300]}`"
            print(f"- file `{_name}` in the working directory{_begin}")
_describe()
"""


class Counted(Session):
    """A session that counts the runs which changed its state and were not rolled back.

    Args:
        session: Where they run.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.runs = 0

    @property
    def alive(self) -> bool:
        """Whether it can be used."""
        return self._session.alive

    def run(self, code: str, **given: Any) -> Execution:
        """Run a program in the state."""
        return self._counted(self._session.run(code, **given))

    async def arun(self, code: str, **given: Any) -> Execution:
        """Like `run`, without blocking the event loop."""
        return self._counted(await self._session.arun(code, **given))

    def _counted(self, execution: Execution) -> Execution:
        self.runs += execution.ok
        return execution

    def rollback(self) -> None:
        """Return to the state before the last run that ended well."""
        self._session.rollback()
        self.runs -= 1

    def checkpoint(self, name: str = "checkpoint") -> str:
        """Hold the state as it is now under a name."""
        return self._session.checkpoint(name)

    def restore(self, name: str = "checkpoint") -> None:
        """Return to a checkpoint."""
        self._session.restore(name)

    def close(self) -> None:
        """End it."""
        self._session.close()


@dataclass
class Conversation:
    """The state of one conversation.

    Attributes:
        session: Where its programs run; None until the first, and after it was lost. What it has counted belongs to a turn
            that has not ended well.
        lock: Held during a turn.
    """

    session: Counted | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def keep(self) -> None:
        """Let what the turn did to the state stay."""
        if self.session is not None:
            self.session.runs = 0

    def end(self) -> None:
        """Let the next turn begin."""
        self.lock.release()

    def take_back(self, runs: int = 0) -> None:
        """Take back what a turn did that did not end well and, before that, so many runs."""
        runs += self.session.runs if self.session else 0
        try:
            if self.session is None or runs > 1:
                raise SessionError("Only the last run can be rolled back.")
            if runs:
                self.session.rollback()
            self.keep()
        except SessionError:
            self.drop()  # The next turn rebuilds the state from the turns that are left.

    def drop(self) -> None:
        """Close the session; the next turn rebuilds it."""
        if self.session is not None:
            self.session.close()
        self.session = None


class Conversations(Closing):
    """The open sessions of a chain, by `session_id`. One turn of a conversation runs at a time; others wait for it.

    Args:
        open_session: Opens a session of the executor.
        most: How many are kept open; the one that was idle for longest is closed for a new one, and rebuilt when its
            conversation goes on.
    """

    def __init__(self, open_session: Callable[[], Session], *, most: int = 16) -> None:
        self._open = open_session
        self._most = most
        self._all: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, session_id: str, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        """Begin a turn of a conversation, whose `end` must be called; its session is open then.

        If the turn ended well, `keep` must be called before. What it did to the state is taken back otherwise, when the next
        one begins.

        Where there is none any more (it was idle for too long, or belongs to an earlier process) it is rebuilt: the programs
        of the turns before run once more, in their order, with the files that are still there.

        Args:
            session_id: The conversation.
            turns: Gives its turns so far.

        Raises:
            SessionError: Another turn has been running for ten minutes.
            ExecutorError: No session can be opened.
        """
        waiting = self._waiting(session_id)
        while (conversation := next(waiting)) is None:
            time.sleep(_PAUSE)
        return self._opened(conversation, turns)

    async def abegin(self, session_id: str, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        """Like `begin`. Who waits holds no thread, of which the turn that is running may need all."""
        waiting = self._waiting(session_id)
        while (conversation := next(waiting)) is None:  # noqa: ASYNC110 (the turn before may end in a thread)
            await asyncio.sleep(_PAUSE)
        return await in_thread(partial(self._opened, conversation, turns), unwanted=Conversation.end)

    def _waiting(self, session_id: str) -> Iterator[Conversation | None]:
        """None for as long as another turn is running, then the conversation with its lock held."""
        until = time.monotonic() + _WAIT
        while time.monotonic() < until:
            with self._lock:  # So that none is closed to make room between being found here and being held.
                conversation = self._all.setdefault(session_id, Conversation())
                self._all.move_to_end(session_id)
                free = conversation.lock.acquire(blocking=False)
            yield conversation if free else None
        raise SessionError(f"The session {session_id!r} is busy with another question. Ask again later.")

    def _opened(self, conversation: Conversation, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        try:
            if conversation.session is not None and conversation.session.runs:
                conversation.take_back()
            if conversation.session is None or not conversation.session.alive:
                self._make_room()
                conversation.session = self._rebuilt(turns())
        except BaseException:
            conversation.end()
            raise
        return conversation

    def undo(self, session_id: str, turn: Turn) -> None:
        """Take back what the last turn did to the state."""
        with self._lock:
            conversation = self._all.get(session_id)
        if conversation is None or turn.runs == 0:
            return
        with conversation.lock:
            conversation.take_back(turn.runs)

    def forget(self, session_id: str) -> None:
        """Close the session of a conversation; its state is gone."""
        with self._lock:
            conversation = self._all.pop(session_id, None)
        if conversation is not None:
            conversation.drop()

    def close(self) -> None:
        """Close all."""
        for session_id in list(self._all):
            self.forget(session_id)

    def _make_room(self) -> None:
        """Close the sessions that were idle for longest, if there are too many."""
        with self._lock:
            idle = [name for name, one in self._all.items() if one.lock.acquire(blocking=False)]
            surplus = len(self._all) - self._most
            for number, name in enumerate(idle):
                conversation = self._all[name]
                if number < surplus:
                    conversation.drop()
                    del self._all[name]
                conversation.end()

    def _rebuilt(self, turns: Sequence[Turn]) -> Counted:
        session = self._open()
        try:
            for turn in turns:
                if turn.runs and turn.code.strip():
                    files = {name: path for name, path in turn.files.items() if Path(path).is_file()}
                    session.run(turn.code, files=files, variables=turn.variables)
        except BaseException:
            session.close()
            raise
        return Counted(session)


def inventory(session: Session) -> str:
    """What programs have left in a session, told for a model: names of variables with their types. The state stays."""
    with suppress(CodeChainsError):  # A session that broke will say so when the program runs.
        return _listed(session.run(_INVENTORY, check=_refuse))
    return ""


async def ainventory(session: Session) -> str:
    """Like `inventory`, without blocking the event loop."""
    with suppress(CodeChainsError):
        return _listed(await session.arun(_INVENTORY, check=_refuse))
    return ""


def _refuse(_: Execution) -> bool:
    return False


def _listed(execution: Execution) -> str:
    return execution.stdout[:6000].strip()
