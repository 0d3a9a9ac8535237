"""Conversation memory: the turns of each session in any store, and the history that fits into a prompt."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from langchain_classic.base_memory import BaseMemory
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore
from pydantic import ConfigDict, Field

from code_chains.conversations.recent_store import ARTIFACTS_PREFIX, CONTENTS_PREFIX, RecentStore
from code_chains.conversations.turns import (
    Turns,
    create_turn,
    deserialize,
    new_turn_id,
    read_entry,
    serialize,
)
from code_chains.errors import CodeChainsError, ConfigurationError, SessionError, StoreError
from code_chains.inputs import check_session_id
from code_chains.state import Turn
from code_chains.temporary import process_folder

if TYPE_CHECKING:
    from code_chains.conversations.replay import Inputs

_log = logging.getLogger(__name__)


@runtime_checkable
class ChatHistory(Protocol):
    """The protocol of LangChain's `BaseChatMessageHistory`."""

    messages: list[BaseMessage]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None: ...  # noqa: D102

    def clear(self) -> None: ...  # noqa: D102


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn any exception of a store or history into a retryable `StoreError`."""
    try:
        yield
    except CodeChainsError:
        raise
    except Exception as error:
        message = f"The store of the conversations is not available: {type(error).__name__}: {error}. Try again later."
        raise StoreError(message, is_retryable=True) from error


class ConversationMemory(BaseMemory):
    """Stores the turns of each session; without a `session_id` nothing is stored.

    Each turn is an entry of its own in the store, so that concurrent writers lose nothing. The `history` for
    the model consists of the latest turns that fit into `max_tokens`; with `summarize`, older turns are
    summarized.

    Args:
        store: Any LangChain `ByteStore`; a `SqliteStore` persists conversations and shares them between
            processes. By default the latest 64 MB of turns are kept in RAM.
        history: Instead of a store: a function from a session id to a `BaseChatMessageHistory`, or to
            anything with `messages`, `add_messages` and `clear`.
        max_tokens: Approximate maximum number of tokens in the history.
        summarize: A chat model that summarizes the turns that no longer fit.
        trusts_paths: Whether files of turns are read by their paths: only of a store that nobody but its user can write to.

    Raises:
        ConfigurationError: `store` or `history` has the wrong type, or both are given.
        StoreError: On use: the store is not available.

    Example:
        >>> memory = ConversationMemory()
        >>> memory.save_context({"query": "6 * 7?", "session_id": "ann"}, {"answer": "42."})
        >>> [message.text for message in memory.load_memory_variables({"session_id": "ann"})["history"]]
        ['6 * 7?', '42.']
        >>> memory.load_memory_variables({"session_id": "bob"})["history"]
        []
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    store: Any = Field(default=None, repr=False)
    history: Any = Field(default=None, repr=False)
    max_tokens: int = 2000
    summarize: Runnable[LanguageModelInput, Any] | None = Field(default=None, repr=False)
    trusts_paths: bool = False

    def __init__(
        self,
        store: BaseStore[str, bytes] | None = None,
        *,
        history: Callable[[str], ChatHistory] | None = None,
        **kwargs: Any,
    ) -> None:
        if store is not None and not isinstance(store, BaseStore):
            raise ConfigurationError("store", store, "a LangChain ByteStore, e.g. SqliteStore(path)")
        if history is not None and not callable(history):
            raise ConfigurationError(
                "history", history, "a function from a session_id to a BaseChatMessageHistory"
            )
        if store is not None and history is not None:
            raise ConfigurationError("history", history, "either history= or store=, not both")
        super().__init__(**{"store": RecentStore() if store is None else store, "history": history, **kwargs})

    @property
    def memory_variables(self) -> list[str]:
        """The keys that it adds: `history`."""
        return ["history"]

    def load_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the messages of the latest turns that fit; none without a `session_id`."""
        session_id = inputs.get("session_id")
        if session_id is None:
            return {}
        from code_chains.conversations.messages import all_messages, trimmed

        turns = self.turns(session_id)
        summary, after = self._summary(session_id) if self.summarize else ("", "")
        messages = trimmed(all_messages(turn for turn in turns if turn.id > after), self.max_tokens)
        if summary:
            messages.insert(0, SystemMessage(f"Before that: {summary}"))
        return {"history": messages}

    async def aload_memory_variables(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Like `load_memory_variables`, in a thread if there is something to read."""
        return {} if inputs.get("session_id") is None else await super().aload_memory_variables(dict(inputs))

    def save_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Store a turn; do nothing without a `session_id`."""
        if inputs.get("session_id") is not None:
            self.remember(inputs, outputs)

    async def asave_context(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Like `save_context`, in a thread if there is something to write."""
        if inputs.get("session_id") is not None:
            await super().asave_context(dict(inputs), dict(outputs))

    def remember(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        *,
        after: str | None = None,
        replay: Mapping[str, Any] | None = None,
    ) -> Turn:
        """Store inputs and outputs of a chain as a turn of the session in the inputs.

        Args:
            inputs: The inputs.
            outputs: The outputs.
            after: Id of the turn that it follows; None for any.
            replay: What running its program again takes besides the inputs, which are stored then, too.

        Raises:
            SessionError: Another turn was stored meanwhile, or that one was undone.
        """
        session_id = check_session_id(inputs.get("session_id"))
        self._check_follows(session_id, after)
        last = self.last_id(session_id)
        turn = create_turn(inputs, outputs, new_turn_id(last if self.history is None else ""))
        entries: Mapping[str, bytes] = {}
        if replay is not None and turn.runs:
            with _store_errors():
                kept = self._keys(_key_prefix(CONTENTS_PREFIX, session_id))
                entries = _replay_entries(session_id, turn, inputs, replay, kept)
        self.add(session_id, turn, entries)
        if self.history is None:
            self._check_follows(session_id, after, turn)
        if self.summarize is not None:
            self._summarize(session_id)
        return turn

    @_store_errors()
    def _check_follows(self, session_id: str, after: str | None, own: Turn | None = None) -> None:
        """Raise if the last turn is another one; then a turn of our own is deleted, which was stored at the same moment."""
        ids = ["", *(turn_id for turn_id in self._ids(session_id) if own is None or turn_id != own.id)]
        if after is None or ids[-1] == after:
            return
        if own is not None:
            self.store.mdelete(_keys_of(session_id, own))
        raise SessionError(
            f"The conversation {session_id!r} was continued or changed elsewhere during the question. Ask it again."
        )

    @_store_errors()
    def last_id(self, session_id: str) -> str:
        """Return the id of the last turn; empty if there is none."""
        return ["", *self._ids(session_id)][-1]

    def _ids(self, session_id: str) -> list[str]:
        if self.history is not None:
            return [turn.id for turn in self.turns(session_id)]
        return sorted(key.rpartition("/")[2] for key in self._keys(_key_prefix(_TURNS, session_id)))

    @_store_errors()
    def inputs(self, session_id: str, turn: Turn) -> Inputs:
        """Return what running the program of a turn again takes, as far as it is stored and valid."""
        from code_chains.conversations.replay import Inputs, rebuild

        (data,) = self.store.mget([_key(_INPUTS, session_id, turn)])
        prefix = _key_prefix(CONTENTS_PREFIX, session_id)
        try:
            inputs = rebuild(
                turn,
                read_entry(data),
                lambda name: self.store.mget([prefix + name])[0],
                trusts_paths=self.trusts_paths,
            )
            inputs.made = lambda: self._with_artifacts(session_id, [turn])[0].artifacts
            return inputs
        except (ValueError, TypeError, LookupError, AttributeError, OSError) as error:
            _log.warning("The inputs of a turn of a conversation are damaged: %s", error)
            return Inputs({}, dict(turn.variables), missing={*turn.files} or {"its inputs"})

    @_store_errors()
    def damaged(self, session_id: str, turns: Sequence[Turn]) -> int:
        """Return how many turns of a session are not among those that can be read."""
        return 0 if self.history else len(self._keys(_key_prefix(_TURNS, session_id))) - len(turns)

    @_store_errors()
    def clear(self, session_id: str | None = None) -> None:
        """Delete a session, or with None all sessions in the store."""
        if self.history is not None:
            if session_id is None:
                raise ConfigurationError(
                    "session_id", None, "the session to delete, as histories cannot be listed"
                )
            self.history(session_id).clear()
            return
        kinds = (_TURNS, ARTIFACTS_PREFIX, _INPUTS, CONTENTS_PREFIX, _SUMMARIES)
        keys = [key for kind in kinds for key in self._keys(_key_prefix(kind, session_id))]
        if keys:
            self.store.mdelete(keys)

    @_store_errors()
    def turns(self, session_id: str, *, artifacts: bool = False) -> list[Turn]:
        """Return the turns of a session, the first one first.

        Args:
            session_id: The session.
            artifacts: Whether to load the artifacts of their programs as well.
        """
        from code_chains.conversations.messages import pair_messages

        check_session_id(session_id)
        inputs = partial(self.inputs, session_id)
        if self.history is not None:
            return Turns(pair_messages(self.history(session_id).messages), inputs)
        keys = sorted(self._keys(_key_prefix(_TURNS, session_id)))
        entries = self.store.mget(keys) if keys else []
        turns = [*filter(None, map(deserialize, entries))]
        turns = self._with_artifacts(session_id, turns) if artifacts and turns else turns
        return Turns(turns, inputs)

    def _with_artifacts(self, session_id: str, turns: list[Turn]) -> list[Turn]:
        entries = self.store.mget([_key(ARTIFACTS_PREFIX, session_id, turn) for turn in turns])
        return [
            Turn.from_dict({**turn.to_dict(), **read_entry(data)}) if data else turn
            for turn, data in zip(turns, entries, strict=True)
        ]

    @_store_errors()
    def add(self, session_id: str, turn: Turn, entries: Mapping[str, bytes] | None = None) -> None:
        """Append a turn to a session, with further entries of the store: all are stored, or none."""
        from code_chains.conversations.messages import messages_of

        check_session_id(session_id)
        if self.history is not None:
            note = {"code_chains": {**turn.to_dict(), **{key: [] for key in _LARGE}}}
            human, ai = messages_of(turn)
            self.history(session_id).add_messages([human, AIMessage(ai.text, additional_kwargs=note)])
            self.store.mset([*(entries or {}).items()])
            return
        record = turn.to_dict()
        # A separate entry: they may be large, and the history does not need them.
        large = {key: record.pop(key) for key in _LARGE}
        notes: dict[str, Mapping[str, Any]] = {_TURNS: {"session": session_id, "turn": record}}
        if any(large.values()):
            notes[ARTIFACTS_PREFIX] = large
        named = {_key(kind, session_id, turn): serialize(note) for kind, note in notes.items()}
        self.store.mset([*(entries or {}).items(), *named.items()])

    @_store_errors()
    def undo(self, session_id: str) -> Turn | None:
        """Delete the last turn of a session and return it; None if there is none."""
        from code_chains.conversations.messages import without_last_turn

        turns = self.turns(session_id)
        if not turns:
            return None
        if self.history is not None:
            history = self.history(session_id)
            remaining = without_last_turn(list(history.messages))
            history.clear()
            history.add_messages(remaining)
        else:
            keys = _keys_of(session_id, turns[-1])
            if self._summary(session_id)[1] >= turns[-1].id:
                keys.append(_key_prefix(_SUMMARIES, session_id))
            self.store.mdelete([*keys, *self._unused_contents(session_id, turns[:-1])])
        return turns[-1]

    @_store_errors()
    def state(self, session_id: str, turns: Iterable[Turn]) -> str | None:
        """Return a checksum of what the state after some turns follows from; None if that may differ the next time."""
        from code_chains.conversations.replay import cause_of

        causes = []
        for turn in turns:
            if turn.runs:
                (data,) = self.store.mget([_key(_INPUTS, session_id, turn)])
                cause = cause_of(turn, read_entry(data))
                if cause is None:
                    return None
                causes.append(cause)
        return hashlib.sha256(serialize({"causes": causes})).hexdigest() if causes else ""

    def _unused_contents(self, session_id: str, turns: Sequence[Turn]) -> list[str]:
        """Return the keys of contents that no input of these turns has."""
        records = self.store.mget([_key(_INPUTS, session_id, turn) for turn in turns])
        used = b"".join(filter(None, records)).decode(errors="replace")
        prefix = _key_prefix(CONTENTS_PREFIX, session_id)
        return [key for key in self._keys(prefix) if key.removeprefix(prefix) not in used]

    @contextmanager
    def exclusive(self, session_id: str, seconds: float) -> Iterator[None]:
        """Keep others from changing a session: in all processes if the store can do that, otherwise in this one.

        Raises:
            OverloadedError: Another one took longer than these seconds.
        """
        lock = getattr(self.store, "lock", None) or partial(_lock_here, id(self.history or self.store))
        with lock(_key_prefix(_SUMMARIES, session_id), seconds):
            yield

    @_store_errors()
    def sessions(self) -> list[str]:
        """Return the ids of all sessions, the latest last; none with a `history`, which cannot be listed."""
        if self.history is not None:
            return []
        last = {key.rpartition("/")[0]: key for key in sorted(self._keys(_TURNS))}
        keys = sorted(last.values(), key=lambda key: key.rpartition("/")[2])
        names = list[str]()
        for data in self.store.mget(keys):
            with suppress(ValueError):  # A damaged turn costs its own conversation a place in the list.
                names += [str(read_entry(data)["session"])] if data and "session" in read_entry(data) else []
        return names

    def _keys(self, prefix: str) -> list[str]:
        # LangChain's RedisStore interprets the prefix as a pattern.
        is_redis = type(self.store).__name__ == "RedisStore"
        return [str(key) for key in self.store.yield_keys(prefix=f"{prefix}*" if is_redis else prefix)]

    @_store_errors()
    def _summary(self, session_id: str) -> tuple[str, str]:
        """Return the summary of a session, and the id of the last turn that it covers."""
        if self.history is not None:
            return "", ""
        (data,) = self.store.mget([_key_prefix(_SUMMARIES, session_id)])
        entry = read_entry(data)
        return str(entry.get("text", "")), str(entry.get("after", ""))

    def _summarize(self, session_id: str) -> None:
        """Summarize the older half of the turns if they exceed `max_tokens`; if the model fails, they are trimmed."""
        from code_chains.conversations.messages import all_messages, summarized

        summary, after = self._summary(session_id)
        turns = [turn for turn in self.turns(session_id) if turn.id > after]
        tokens = count_tokens_approximately(all_messages(turns))
        if self.summarize is None or self.history is not None or tokens <= self.max_tokens:
            return
        older = turns[: max(1, len(turns) // 2)]
        text = summarized(self.summarize, summary, older)
        if text is not None:
            entry = {"text": text, "after": older[-1].id}
            self.store.mset([(_key_prefix(_SUMMARIES, session_id), serialize(entry))])


_TURNS, _INPUTS, _SUMMARIES = "turns/", "inputs/", "summaries/"
_LARGE = ("artifacts", "display_data")
"""Fields of turns that are stored apart from the others."""


def _key_prefix(kind: str, session_id: str | None) -> str:
    """Return the prefix of a session's keys. Its id is hashed, as stores restrict keys differently."""
    if session_id is None:
        return kind
    name = hashlib.sha256(check_session_id(session_id).encode()).hexdigest()[:32]
    return f"{kind}{name}" if kind == _SUMMARIES else f"{kind}{name}/"


def _lock_here(source: int, name: str, seconds: float) -> AbstractContextManager[None]:
    """Keep other threads of this process from entering a block for the same source and name."""
    from code_chains.storage.files import exclusive

    return exclusive(Path(process_folder(), f"{source}-{Path(name).name}.lock"), seconds)


def _keys_of(session_id: str, turn: Turn) -> list[str]:
    """Return the keys of a turn's own entries."""
    return [_key(kind, session_id, turn) for kind in (_TURNS, ARTIFACTS_PREFIX, _INPUTS)]


def _key(kind: str, session_id: str, turn: Turn) -> str:
    return f"{_key_prefix(kind, session_id)}{turn.id}"


def _replay_entries(
    session_id: str, turn: Turn, inputs: Mapping[str, Any], replay: Mapping[str, Any], kept: Sequence[str]
) -> dict[str, bytes]:
    """Return the entries with what running a turn again takes; contents that are kept already have none."""
    from code_chains.conversations.replay import describe
    from code_chains.executors.values import check_variables

    checked = check_variables(inputs.get("variables"))
    variables = {name: value for name, value in checked.items() if name not in turn.variables}
    prefix = _key_prefix(CONTENTS_PREFIX, session_id)
    names = [key.removeprefix(prefix) for key in kept]
    record, contents = describe(inputs.get("files") or {}, variables, names)
    entries = {f"{prefix}{name}": data for name, data in contents.items()}
    record |= {"stdin": inputs["stdin"]} if inputs.get("stdin") else {}
    entries[_key(_INPUTS, session_id, turn)] = serialize({**record, **replay})
    return entries
