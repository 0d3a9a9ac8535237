"""Sessions by their names: each conversation has a state of its own, which is rebuilt where it was lost."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pydantic import JsonValue

from code_chains.conversations.given import GivenVariables
from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import ExecutorError, InputError, SessionError
from code_chains.executors.base import Executor, Session
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.runner import Closing
from code_chains.executors.waiting import Operation, adrive, drive
from code_chains.state import Turn

if TYPE_CHECKING:
    from code_chains.conversations.replay import Inputs

_DIRTY = "?"
_BEFORE = "before the turn"
_SHARED = "_open_sessions"
"""The attribute of an executor with the open sessions of all its chains."""


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
        lost: What could not be repeated when the state was rebuilt, a sentence each.
        is_busy: Whether a turn is running.
        seed: Seed of the session's random numbers.
        base: Id of the last turn of the history that this turn is computed on; empty without one.
        has_asked: Whether the user was asked for inputs that were not kept.
        lock: Keeps other processes from changing the conversation.
        given: The variables that its turns were given.
    """

    name: str
    turn_limiter: ConcurrencyLimiter
    session_limiter: ConcurrencyLimiter
    session: Session | None = None
    last_turn: str = ""
    checkpoint: str | None = None
    lost: list[str] = field(default_factory=list)
    is_busy: bool = False
    seed: int = 0
    base: str = ""
    has_asked: bool = False
    lock: ExitStack = field(default_factory=ExitStack)
    given: GivenVariables = field(default_factory=GivenVariables)

    def take_checkpoint(self) -> None:
        """Checkpoint the state before a turn."""
        if self.session is not None:
            self.session.checkpoint(_BEFORE)
            self.checkpoint, self.last_turn = self.last_turn, _DIRTY

    def keep(self, turn: Turn | None = None) -> None:
        """Keep what a turn did to the state."""
        self.last_turn = turn.id if turn is not None else self.checkpoint or ""

    def describe(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Return what running a turn again takes besides its inputs."""
        from code_chains.conversations.replay import changing_values

        values: dict[str, JsonValue] = {}
        if self.session is not None and self.session.alive:
            values = changing_values(self.session, outcome.get("code") or "", outcome.get("execution"))
        return {"seed": self.seed, "values": values}

    def roll_back(self) -> None:
        """Return to the state before the last turn if there is a checkpoint; otherwise the next turn rebuilds it."""
        if self.session is not None and self.checkpoint is not None:
            with suppress(SessionError):
                self.session.restore(_BEFORE)
                self.last_turn, self.checkpoint = self.checkpoint, None

    def end(self) -> None:
        """Let the next turn begin."""
        self.lock.close()
        self.is_busy = False
        self.session_limiter.release()
        self.turn_limiter.release()

    def drop(self) -> None:
        """Close the session; the next turn rebuilds it."""
        if self.session is not None:
            self.session.close()
        self.session, self.last_turn, self.checkpoint = None, "", None


_GONE = "The last turns of this conversation are not in its store any more: it goes on without what they had made."


def _last_change(turns: Sequence[Turn]) -> str:
    """Return the id of the last turn that changed the state; empty if none did."""
    return next((turn.id for turn in reversed(turns) if turn.runs), "")


class OpenSessions:
    """The conversations with an open session, of all chains that share an executor.

    Invariant: a conversation that is not busy gives its session to any other, also if its own chain is gone. Chains do not
    wait for each other, as a turn of one may ask another.

    Args:
        max_open: Maximum number of open sessions.
    """

    def __init__(self, max_open: int) -> None:
        self.lock: threading.Lock = threading.Lock()
        self._max_open = max_open
        self._by_id: OrderedDict[int, Conversation] = OrderedDict()

    def add(self, conversation: Conversation) -> None:
        """Register a conversation, and close the sessions that were idle for longest if there are too many."""
        with self.lock:
            self._by_id[id(conversation)] = conversation
            self._by_id.move_to_end(id(conversation))
            surplus = max(0, len(self._by_id) - self._max_open)
            idle_conversations = [held for held in self._by_id.values() if not held.is_busy]
            for idle in idle_conversations[:surplus]:
                self._by_id.pop(id(idle)).drop()

    def remove(self, conversation: Conversation) -> None:
        """Close the session of a conversation."""
        with self.lock:
            is_open = self._by_id.pop(id(conversation), None) is not None
        if is_open:
            conversation.drop()

    def check(self, conversation: Conversation) -> None:
        """Raise if the session of a conversation has given way while it was opened.

        Raises:
            SessionError: It was.
        """
        with self.lock:
            if id(conversation) not in self._by_id:
                raise SessionError(f"The session {conversation.name!r} was closed while it was opened.")


class Conversations(Closing):
    """The open sessions of a chain, by `session_id`. The turns of a conversation run one at a time, in FIFO order.

    Args:
        open_session: Opens a session of the executor; None if it has none.
        max_open: Maximum number of open sessions. The one idle for longest is closed for a new one, and
            rebuilt when its conversation continues. If all are busy, turns wait in FIFO order.
        max_queued: Maximum number of turns of one conversation that wait.
        max_waiting: Maximum number of conversations that wait for a session.
        queue_timeout: Maximum seconds that a turn waits.
        is_seeded: Whether random numbers of sessions are seeded, so that they are the same when a state is rebuilt.
        shared: The open sessions of other chains with the same executor, which count as well.
    """

    def __init__(
        self,
        open_session: Callable[[], Session] | None,
        *,
        max_open: int = 16,
        max_queued: int = 100,
        max_waiting: int = 1000,
        queue_timeout: float = 600.0,
        is_seeded: bool = False,
        shared: OpenSessions | None = None,
    ) -> None:
        self._open, self._is_seeded = open_session, is_seeded
        self._max_queued, self._queue_timeout = max_queued, queue_timeout
        self._shared = shared or OpenSessions(max_open)
        busy = f"all {max_open} sessions for conversations are in use"
        remedy = "Retry later, or raise max_sessions= of the executor."
        self._session_limiter = ConcurrencyLimiter(max_open, max_waiting, queue_timeout, busy, remedy)
        # A turn that waits holds a reference to its own.
        self._all: WeakValueDictionary[str, Conversation] = WeakValueDictionary()

    @property
    def keep_state(self) -> bool:
        """Whether programs find what earlier programs left."""
        return self._open is not None

    def begin(
        self,
        session_id: str,
        turns: Callable[[], Sequence[Turn]],
        memory: ConversationMemory | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """Begin a turn of a conversation, and open its session. The caller must call `end`.

        If the turn succeeds, `keep` must be called before `end`; otherwise the next turn rolls its effects
        back.

        A state that does not match the turns so far is rebuilt: their programs run again, in order, with their
        inputs and random numbers. This happens after a session timeout or a restart, when another process
        continued the conversation, and after a turn that failed.

        Args:
            session_id: The conversation.
            turns: Returns its turns so far.
            memory: Has their inputs.
            given: Inputs of this turn by name, which replace those of earlier turns that were not kept.

        Raises:
            OverloadedError: Too many turns wait already, or this one waited for too long.
            InputError: An input of an earlier turn was not kept; said once.
            ExecutorError: No session can be opened.
        """
        return self._prepare(self.hold(session_id), turns, memory, given or {})

    async def abegin(
        self,
        session_id: str,
        turns: Callable[[], Sequence[Turn]],
        memory: ConversationMemory | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> Conversation:
        """Like `begin`, without blocking the event loop, and without a thread, of which running turns may need all."""
        from code_chains.conversations.threads import in_thread

        conversation = await adrive(self._acquire(session_id))
        work = partial(self._prepare, conversation, turns, memory, given or {})
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
        with self._shared.lock:  # From here on it is not evicted.
            conversation.is_busy = True
        return conversation

    def _get(self, session_id: str) -> Conversation:
        with self._shared.lock:
            conversation = self._all.get(session_id)
            if conversation is None:
                busy = f"another question of the session {session_id!r} is running"
                turn_limiter = ConcurrencyLimiter(1, self._max_queued, self._queue_timeout, busy)
                self._all[session_id] = conversation = Conversation(
                    session_id, turn_limiter, self._session_limiter
                )
            return conversation

    def _prepare(
        self,
        conversation: Conversation,
        turns: Callable[[], Sequence[Turn]],
        memory: ConversationMemory | None,
        given: Mapping[str, Any],
    ) -> Conversation:
        try:
            self.lock(conversation, memory)
            conversation.base = memory.last_id(conversation.name) if memory else ""
            history = turns()
            if self._open is not None:
                self._shared.add(conversation)
                if conversation.last_turn == _DIRTY:
                    conversation.roll_back()
                session = conversation.session
                is_current = session is not None and session.alive and not session.has_lost_threads
                if not is_current or conversation.last_turn != _last_change(history):
                    known = conversation.last_turn
                    conversation.drop()
                    self._rebuild(
                        conversation, self._open, history, _inputs(conversation, history, memory, given)
                    )
                    if memory is not None and (number := memory.damaged(conversation.name, history)):
                        conversation.lost.append(f"What {number} damaged turns had made is not there.")
                    elif known not in ("", _DIRTY, *(turn.id for turn in history)):
                        conversation.lost.append(_GONE)
                    self._shared.check(conversation)
                conversation.take_checkpoint()
        except BaseException:
            conversation.drop()
            conversation.end()
            raise
        return conversation

    def lock(self, conversation: Conversation, memory: ConversationMemory | None) -> None:
        """Keep other processes from changing a conversation until its turn ends."""
        if memory is not None:
            conversation.lock.enter_context(memory.exclusive(conversation.name, self._queue_timeout))

    def forget(self, session_id: str) -> None:
        """Close the session of a conversation and discard its state."""
        with self._shared.lock:
            conversation = self._all.get(session_id)
        if conversation is not None:
            self._shared.remove(conversation)

    def close(self) -> None:
        """Close all."""
        for session_id in list(self._all):
            self.forget(session_id)

    def _rebuild(
        self,
        conversation: Conversation,
        open_session: Callable[[], Session],
        turns: Sequence[Turn],
        inputs: Mapping[str, Inputs],
    ) -> None:
        from code_chains.conversations.replay import seed_session

        seeds = [found.seed for found in inputs.values() if found.seed is not None]
        conversation.session, conversation.lost = open_session(), []
        conversation.seed = seeds[0] if seeds else secrets.randbits(64)
        if self._is_seeded:
            seed_session(conversation.session, conversation.seed)
        for turn in turns:
            if turn.id in inputs:
                conversation.lost += _run_again(conversation.session, turn, inputs[turn.id])
        conversation.last_turn = _last_change(turns)


def _inputs(
    conversation: Conversation,
    turns: Sequence[Turn],
    memory: ConversationMemory | None,
    given: Mapping[str, Any],
) -> dict[str, Inputs]:
    """Return the inputs of the turns that are to run again, by their ids.

    What was not kept is taken from this turn, or from any later one that has it.

    Raises:
        InputError: Something is missing, and the user has not been asked for it.
    """
    changing = [turn for turn in turns if turn.runs and turn.code.strip()]
    load = partial((memory or ConversationMemory()).inputs, conversation.name)
    found = {turn.id: load(turn) for turn in changing}
    later = dict(given)
    for turn in reversed(changing):
        inputs = found[turn.id]
        later = {**inputs.files, **inputs.variables, **later}
        for name in inputs.missing & later.keys():
            kind = inputs.files if name in turn.files else inputs.variables
            kind[name] = later[name]
        inputs.missing -= later.keys()
    missing = {name: turn for turn in changing for name in found[turn.id].missing}
    if missing and not conversation.has_asked:
        conversation.has_asked = True
        names = ", ".join(map(repr, missing))
        queries = ", ".join(dict.fromkeys(repr(turn.query[:80]) for turn in missing.values()))
        raise InputError(
            f"The session of this conversation has ended, and to restore what {queries} made, {names} would be needed:"
            " it was not kept, as it is too large or has changed. Pass it again with this question; or ask again to go on"
            " without, or undo or forget the turn."
        )
    return found


def _run_again(session: Session, turn: Turn, inputs: Inputs) -> list[str]:
    """Run the program of a turn; return what is not as it was, a sentence each.

    Raises:
        ExecutorError: It takes too long now, and did not then: a slow machine is no reason for another answer.
    """
    from code_chains.conversations.replay import restore_files, restore_values

    given: dict[str, Any] = {} if inputs.stdin is None else {"stdin": inputs.stdin}
    execution = session.run(turn.code, files=inputs.files, variables=inputs.variables, **given)
    has_restored = restore_files(session, inputs, execution)
    held, differing = map(", ".join, restore_values(session, inputs))
    source = f"the answer to {turn.query[:80]!r}"
    if execution.status == "timeout":
        raise ExecutorError(
            f"What {source} had made could not be made again in time, as it was then: the machine is busy, or slower. Try"
            " again, with more seconds if need be; or undo or forget that turn.",
            is_retryable=True,
        )
    if not execution.ok and not inputs.values:
        return [f"What {source} had made is not there any more."]
    if not execution.ok:
        return [f"Of what {source} had made only plain values are there."]
    notes = [f"What holds {held}, of {source}, was computed anew, and may differ."] if held else []
    notes += [f"Of {source}, {differing} was computed anew, and may differ."] if differing else []
    is_known = bool(notes or inputs.values or has_restored or turn.runs > 1)
    if not is_known and execution.output[:1000] != turn.output[:1000]:
        notes.append(f"What {source} had made was computed anew, and differs.")
    return notes


def open_conversations(executor: Executor) -> Conversations:
    """Return the conversations, with a state if the executor has sessions; a quarter of these is left to others."""
    if not executor.has_sessions:
        return Conversations(None, max_open=sys.maxsize)  # Without a state there is nothing to wait for.
    max_open = max(1, 3 * executor.max_sessions // 4)
    is_seeded = executor.language == "python" and not executor.is_repeatable
    shared = vars(executor).setdefault(_SHARED, OpenSessions(max_open))
    return Conversations(executor.session, max_open=max_open, is_seeded=is_seeded, shared=shared)
