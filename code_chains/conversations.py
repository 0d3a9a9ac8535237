"""Sessions by their names: each conversation has a state of its own, which is rebuilt where it was lost."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from code_chains.errors import CodeChainsError, SessionError
from code_chains.executors.admission import Admission
from code_chains.executors.base import Closing, Session
from code_chains.executors.drive import Steps, adrive, drive
from code_chains.state import Execution, Turn
from code_chains.threads import in_thread

__all__ = ["Conversation", "Conversations", "ainventory", "inventory"]

_DIRTY = "?"
_BEFORE = "before the turn"
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


@dataclass
class Conversation:
    """The state of one conversation.

    Attributes:
        name: Its `session_id`.
        line: Where its turns wait for each other.
        places: Where they wait for those of other conversations.
        session: Where its programs run; None until the first, after it was lost, and where the executor keeps no state.
        holds: Id of the last turn whose run is in the state; `_DIRTY` in a turn, and after one that did not end well.
        earlier: The same before the last turn began, which is held as a checkpoint; None where it is not.
        lost: What could not be done again when the state was rebuilt, told for a model.
        busy: Whether a turn is under way.
    """

    name: str
    line: Admission
    places: Admission
    session: Session | None = None
    holds: str = ""
    earlier: str | None = None
    lost: str = ""
    busy: bool = False

    def mark(self) -> None:
        """Hold the state as it is before a turn."""
        if self.session is not None:
            self.session.checkpoint(_BEFORE)
            self.earlier, self.holds = self.holds, _DIRTY

    def keep(self, turn: Turn | None = None) -> None:
        """Let what a turn did to the state stay."""
        self.holds = turn.id if turn is not None else self.earlier or ""

    def go_back(self) -> None:
        """Return to the state before the last turn, if it is held; otherwise the next turn rebuilds it."""
        if self.session is not None and self.earlier is not None:
            with suppress(SessionError):
                self.session.restore(_BEFORE)
                self.holds, self.earlier = self.earlier, None

    def end(self) -> None:
        """Let the next turn begin."""
        self.busy = False
        self.places.leave()
        self.line.leave()

    def drop(self) -> None:
        """Close the session; the next turn rebuilds it."""
        if self.session is not None:
            self.session.close()
        self.session, self.holds, self.earlier = None, "", None


def _last_change(turns: Sequence[Turn]) -> str:
    """Id of the last turn that changed the state; empty if none did."""
    return next((turn.id for turn in reversed(turns) if turn.runs), "")


class Conversations(Closing):
    """The open sessions of a chain, by `session_id`. One turn of a conversation runs at a time; others wait in line.

    Args:
        open_session: Opens a session of the executor; None where it keeps no state.
        most: How many are kept open; the one that was idle for longest is closed for a new one, and rebuilt when its
            conversation goes on. When all are busy, a turn waits for a place.
        queue: How many turns of one conversation may wait for each other.
        others: How many conversations may wait for a place.
        wait: Seconds that a turn waits at most.
    """

    def __init__(
        self,
        open_session: Callable[[], Session] | None,
        *,
        most: int = 16,
        queue: int = 100,
        others: int = 1000,
        wait: float = 600.0,
    ) -> None:
        self._open = open_session
        self._most, self._queue, self._wait = most, queue, wait
        busy = f"{most} other sessions are busy (more may be at once with SandboxExecutor(sessions=…))"
        self._places = Admission(most, others, wait, busy)
        self._all: WeakValueDictionary[str, Conversation] = WeakValueDictionary()  # Whoever is in a line holds its own.
        self._kept: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def keep_state(self) -> bool:
        """Whether what programs leave is there for those that follow."""
        return self._open is not None

    def begin(self, session_id: str, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        """Begin a turn of a conversation, whose `end` must be called; its session is open then.

        If the turn ends well, `keep` must be called before; otherwise what it did to the state is taken back when the next
        one begins.

        Where the state is not that of the turns so far, it is rebuilt: their programs run once more, in their order, with
        the files that are still there. That is so when the session was idle for too long or belongs to an earlier process,
        when another process has gone on with the conversation, and when a turn did not end well.

        Args:
            session_id: The conversation.
            turns: Gives its turns so far.

        Raises:
            OverloadedError: Too many turns of it wait already, or this one has waited for too long.
            ExecutorError: No session can be opened.
        """
        return self._opened(self.hold(session_id), turns)

    async def abegin(self, session_id: str, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        """Like `begin`. Who waits holds no thread, of which the turn that is running may need all."""
        conversation = await adrive(self._held(session_id))
        work = partial(self._opened, conversation, turns)
        return await in_thread(work, unwanted=Conversation.end, unbegun=conversation.end)

    def hold(self, session_id: str) -> Conversation:
        """Keep turns from beginning, until `end`."""
        return drive(self._held(session_id))

    def _held(self, session_id: str) -> Steps[Conversation]:
        """A conversation, when all turns of it have ended that were asked for before, and there is a place for one more."""
        until = time.monotonic() + self._wait
        conversation = self._named(session_id)
        yield from conversation.line.enter()
        try:
            yield from self._places.enter(max(0.0, until - time.monotonic()))
        except BaseException:
            conversation.line.leave()
            raise
        with self._lock:  # So that it is not closed to make room from here on.
            conversation.busy = True
        return conversation

    def _named(self, session_id: str) -> Conversation:
        with self._lock:
            conversation = self._all.get(session_id)
            if conversation is None:
                busy = f"another question of the session {session_id!r} is under way"
                line = Admission(1, self._queue, self._wait, busy)
                self._all[session_id] = conversation = Conversation(session_id, line, self._places)
            return conversation

    def _opened(self, conversation: Conversation, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        if self._open is None:
            return conversation
        try:
            self._make_room(conversation)
            there = turns()
            if conversation.holds == _DIRTY:
                conversation.go_back()
            current = conversation.session is not None and conversation.session.alive
            if not current or conversation.holds != _last_change(there):
                conversation.drop()
                self._rebuild(conversation, self._open(), there)
                self._check_kept(conversation)
            conversation.mark()
        except BaseException:
            conversation.drop()
            conversation.end()
            raise
        return conversation

    def forget(self, session_id: str) -> None:
        """Close the session of a conversation; its state is gone."""
        with self._lock:
            conversation = self._kept.pop(session_id, None)
        if conversation is not None:
            conversation.drop()

    def close(self) -> None:
        """Close all."""
        for session_id in list(self._kept):
            self.forget(session_id)

    def _make_room(self, conversation: Conversation) -> None:
        """Keep a conversation, and close the sessions that were idle for longest, if there are too many."""
        with self._lock:
            self._kept[conversation.name] = conversation
            self._kept.move_to_end(conversation.name)
            surplus = max(0, len(self._kept) - self._most)
            for idle in [one for one in self._kept.values() if not one.busy][:surplus]:
                self._kept.pop(idle.name).drop()

    def _check_kept(self, conversation: Conversation) -> None:
        with self._lock:
            if self._kept.get(conversation.name) is not conversation:
                raise SessionError(f"The session {conversation.name!r} was closed while it was opened.")

    def _rebuild(self, conversation: Conversation, session: Session, turns: Sequence[Turn]) -> None:
        conversation.session, conversation.lost = session, ""
        for turn in turns:
            if turn.runs and turn.code.strip():
                files = {name: path for name, path in turn.files.items() if Path(path).is_file()}
                if not session.run(turn.code, files=files, variables=turn.variables).ok:
                    conversation.lost += f"- what the answer to {turn.query[:80]!r} had made is not there any more\n"
        conversation.holds = _last_change(turns)


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
