"""Sessions by their names: each conversation has a state of its own, which is rebuilt where it was lost."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from code_chains.conversations.threads import in_thread
from code_chains.errors import CodeChainsError, SessionError
from code_chains.executors.base import Executor, Session
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.runner import Closing
from code_chains.executors.waiting import Operation, adrive, drive
from code_chains.state import Execution, Turn

_DIRTY = "?"
_BEFORE = "before the turn"
_INVENTORY = """
def _describe(names):
    import types
    for _name, _value in list(globals().items()):
        if _name.startswith("_") or isinstance(_value, types.ModuleType):
            continue
        _kind = type(_value).__name__
        if names is not None:
            if _name in names:
                _library = type(_value).__module__.partition(".")[0]
                _known = _library in ("builtins", "numpy", "pandas", "polars", "pyarrow", "datetime", "decimal")
                print(f"- variable `{_name}`" + (f": {_kind}" if _known else ""))
            continue
        if isinstance(_value, (types.FunctionType, type)):
            if _value.__module__ == "tools":
                continue
            print(f"- {'class' if isinstance(_value, type) else 'function'} `{_name}`")
        elif hasattr(type(_value), "columns") and hasattr(type(_value), "shape"):
            _columns = ", ".join(f"`{_one}`" for _one in list(_value.columns)[:40])
            print(f"- variable `{_name}`: {_kind}, {_value.shape[0]} rows, columns {_columns}"[:1500])
        elif hasattr(type(_value), "shape") and hasattr(type(_value), "dtype"):
            print(f"- variable `{_name}`: {_kind} of {_value.dtype}, shape {_value.shape}"[:300])
        else:
            try:
                _shown = repr(_value) if not hasattr(_value, "__len__") or len(_value) <= 1000 else f"{len(_value)} items"
            except Exception:
                _shown = ""
            print(f"- variable `{_name}`: {_kind}, {_shown[:80]}")
    import os
    for _name in sorted(os.listdir("."))[:20]:
        if os.path.isfile(_name) and (names is None or _name in names):
            _begin = ""
            if _name.lower().endswith((".csv", ".tsv")) and names is None:
                with open(_name, errors="replace") as _file:
                    _begin = f", begins with the line `{_file.readline().strip()[:300]}`"
            print(f"- file `{_name}` in the working directory{_begin}")
"""


@dataclass
class Conversation:
    """The state of one conversation.

    Attributes:
        name: Its `session_id`.
        turn_limiter: Queues its turns behind each other.
        session_limiter: Queues them behind those of other conversations.
        session: Runs its programs; None until the first run, after it was lost, and if the executor has no
            sessions.
        last_turn: Id of the last turn whose run is part of the state; `_DIRTY` during a turn, and after a
            failed one.
        checkpoint: The same before the last turn began, which is held as a checkpoint; None if there is none.
        lost: What could not be repeated when the state was rebuilt, as text for a model.
        is_busy: Whether a turn is running.
    """

    name: str
    turn_limiter: ConcurrencyLimiter
    session_limiter: ConcurrencyLimiter
    session: Session | None = None
    last_turn: str = ""
    checkpoint: str | None = None
    lost: str = ""
    is_busy: bool = False

    def take_checkpoint(self) -> None:
        """Checkpoint the state before a turn."""
        if self.session is not None:
            self.session.checkpoint(_BEFORE)
            self.checkpoint, self.last_turn = self.last_turn, _DIRTY

    def keep(self, turn: Turn | None = None) -> None:
        """Keep what a turn did to the state."""
        self.last_turn = turn.id if turn is not None else self.checkpoint or ""

    def roll_back(self) -> None:
        """Return to the state before the last turn if there is a checkpoint; otherwise the next turn rebuilds it."""
        if self.session is not None and self.checkpoint is not None:
            with suppress(SessionError):
                self.session.restore(_BEFORE)
                self.last_turn, self.checkpoint = self.checkpoint, None

    def end(self) -> None:
        """Let the next turn begin."""
        self.is_busy = False
        self.session_limiter.release()
        self.turn_limiter.release()

    def drop(self) -> None:
        """Close the session; the next turn rebuilds it."""
        if self.session is not None:
            self.session.close()
        self.session, self.last_turn, self.checkpoint = None, "", None


def _last_change(turns: Sequence[Turn]) -> str:
    """Return the id of the last turn that changed the state; empty if none did."""
    return next((turn.id for turn in reversed(turns) if turn.runs), "")


class Conversations(Closing):
    """The open sessions of a chain, by `session_id`. The turns of a conversation run one at a time, in FIFO order.

    Args:
        open_session: Opens a session of the executor; None if it has none.
        max_open: Maximum number of open sessions. The one idle for longest is closed for a new one, and
            rebuilt when its conversation continues. If all are busy, turns wait in FIFO order.
        max_queued: Maximum number of turns of one conversation that wait.
        max_waiting: Maximum number of conversations that wait for a session.
        queue_timeout: Maximum seconds that a turn waits.
    """

    def __init__(
        self,
        open_session: Callable[[], Session] | None,
        *,
        max_open: int = 16,
        max_queued: int = 100,
        max_waiting: int = 1000,
        queue_timeout: float = 600.0,
    ) -> None:
        self._open = open_session
        self._max_open, self._max_queued, self._queue_timeout = max_open, max_queued, queue_timeout
        busy = f"all {max_open} sessions for conversations are in use"
        remedy = "Retry later, or raise max_sessions= of the executor."
        self._session_limiter = ConcurrencyLimiter(max_open, max_waiting, queue_timeout, busy, remedy)
        # A turn that waits holds a reference to its own.
        self._all: WeakValueDictionary[str, Conversation] = WeakValueDictionary()
        self._open_conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def keep_state(self) -> bool:
        """Whether programs find what earlier programs left."""
        return self._open is not None

    def begin(self, session_id: str, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        """Begin a turn of a conversation, and open its session. The caller must call `end`.

        If the turn succeeds, `keep` must be called before `end`; otherwise the next turn rolls its effects
        back.

        A state that does not match the turns so far is rebuilt: their programs run again, in order, with the
        files that still exist. This happens after a session timeout or a restart, when another process
        continued the conversation, and after a turn that failed.

        Args:
            session_id: The conversation.
            turns: Returns its turns so far.

        Raises:
            OverloadedError: Too many turns wait already, or this one waited for too long.
            ExecutorError: No session can be opened.
        """
        return self._prepare(self.hold(session_id), turns)

    async def abegin(self, session_id: str, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        """Like `begin`, without blocking the event loop, and without a thread, of which running turns may need all."""
        conversation = await adrive(self._acquire(session_id))
        work = partial(self._prepare, conversation, turns)
        return await in_thread(work, on_abandoned=Conversation.end, on_not_started=conversation.end)

    def hold(self, session_id: str) -> Conversation:
        """Keep turns from beginning until `end`."""
        return drive(self._acquire(session_id))

    def _acquire(self, session_id: str) -> Operation[Conversation]:
        """Return a conversation after its earlier turns have ended and a session is available."""
        until = time.monotonic() + self._queue_timeout
        conversation = self._get(session_id)
        yield from conversation.turn_limiter.acquire()
        try:
            yield from self._session_limiter.acquire(max(0.0, until - time.monotonic()))
        except BaseException:
            conversation.turn_limiter.release()
            raise
        with self._lock:  # From here on it is not evicted.
            conversation.is_busy = True
        return conversation

    def _get(self, session_id: str) -> Conversation:
        with self._lock:
            conversation = self._all.get(session_id)
            if conversation is None:
                busy = f"another question of the session {session_id!r} is running"
                turn_limiter = ConcurrencyLimiter(1, self._max_queued, self._queue_timeout, busy)
                self._all[session_id] = conversation = Conversation(
                    session_id, turn_limiter, self._session_limiter
                )
            return conversation

    def _prepare(self, conversation: Conversation, turns: Callable[[], Sequence[Turn]]) -> Conversation:
        if self._open is None:
            return conversation
        try:
            self._evict_idle(conversation)
            history = turns()
            if conversation.last_turn == _DIRTY:
                conversation.roll_back()
            current = conversation.session is not None and conversation.session.alive
            if not current or conversation.last_turn != _last_change(history):
                conversation.drop()
                self._rebuild(conversation, self._open(), history)
                self._check_not_evicted(conversation)
            conversation.take_checkpoint()
        except BaseException:
            conversation.drop()
            conversation.end()
            raise
        return conversation

    def forget(self, session_id: str) -> None:
        """Close the session of a conversation and discard its state."""
        with self._lock:
            conversation = self._open_conversations.pop(session_id, None)
        if conversation is not None:
            conversation.drop()

    def close(self) -> None:
        """Close all."""
        for session_id in list(self._open_conversations):
            self.forget(session_id)

    def _evict_idle(self, conversation: Conversation) -> None:
        """Register a conversation, and close the sessions that were idle for longest if there are too many."""
        with self._lock:
            self._open_conversations[conversation.name] = conversation
            self._open_conversations.move_to_end(conversation.name)
            surplus = max(0, len(self._open_conversations) - self._max_open)
            idle_conversations = [held for held in self._open_conversations.values() if not held.is_busy]
            for idle in idle_conversations[:surplus]:
                self._open_conversations.pop(idle.name).drop()

    def _check_not_evicted(self, conversation: Conversation) -> None:
        with self._lock:
            if self._open_conversations.get(conversation.name) is not conversation:
                raise SessionError(f"The session {conversation.name!r} was closed while it was opened.")

    def _rebuild(self, conversation: Conversation, session: Session, turns: Sequence[Turn]) -> None:
        conversation.session, conversation.lost = session, ""
        for turn in turns:
            if turn.runs and turn.code.strip():
                paths = {name: Path(path) for name, path in turn.files.items()}
                files = {name: path for name, path in paths.items() if path.is_file()}
                if not session.run(turn.code, files=files, variables=turn.variables).ok:
                    conversation.lost += (
                        f"- what the answer to {turn.query[:80]!r} had made is not there any more\n"
                    )
        conversation.last_turn = _last_change(turns)


def inventory(session: Session, *, names: Collection[str] | None = None) -> str:
    """Describe a session for a model: its variables and files. The state is unchanged.

    Args:
        session: The session.
        names: Report only these names, with their types; a program may have made others from
            values of the data, as columns and files. None for all, with their values.
    """
    with suppress(CodeChainsError):  # The next run reports a session that broke.
        return _format_inventory(session.run(_inventory_code(names), check=_refuse))
    return ""


async def ainventory(session: Session, *, names: Collection[str] | None = None) -> str:
    """Like `inventory`, without blocking the event loop."""
    with suppress(CodeChainsError):
        return _format_inventory(await session.arun(_inventory_code(names), check=_refuse))
    return ""


def _inventory_code(names: Collection[str] | None) -> str:
    return f"{_INVENTORY}_describe({None if names is None else sorted(names)!r})\n"


def names_in(turns: Iterable[Turn]) -> set[str]:
    """Return the names of variables and files that programs and inputs of turns spell out."""
    names = set[str]()
    for turn in turns:
        names |= {*turn.variables, *turn.files, *re.findall(r"[\w.-]+", turn.code)}
    return names


def _refuse(_: Execution) -> bool:
    return False


def _format_inventory(execution: Execution) -> str:
    return execution.stdout[:6000].strip()


def open_conversations(executor: Executor) -> Conversations:
    """Return the conversations, with a state if the executor has sessions; a quarter of these is left to others."""
    if not executor.has_sessions:
        return Conversations(None, max_open=sys.maxsize)  # Without a state there is nothing to wait for.
    max_open = max(1, 3 * executor.max_sessions // 4)
    return Conversations(executor.session, max_open=max_open)
