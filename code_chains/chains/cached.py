"""A chain in front of another: the same question in the same world has the same answer, without asking again."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.runnables.graph import Graph
from langchain_core.stores import BaseStore
from pydantic import Field, PrivateAttr

from code_chains import __version__
from code_chains.chains.base import Call, Chain, Config, Do, Piece, Program, State
from code_chains.chance import is_repeatable
from code_chains.errors import ConfigurationError
from code_chains.fingerprint import Unknowable, describe, environment, fingerprint
from code_chains.inputs import check_files, check_query
from code_chains.state import as_json, from_json
from code_chains.stores import SqliteStore
from code_chains.threads import in_thread

__all__ = ["CachedChain", "is_good"]

_log = logging.getLogger(__name__)
_FORMAT = 1
_PAUSE = 0.02
_LEASE = 10.0
_NOT_ASKED = ("session", "session_id", "kept")


def is_good(outputs: Mapping[str, Any], *, repeatable: bool = False) -> bool:
    """Whether a result is worth keeping: an answer, told to its end, that would come out the same the next time.

    Args:
        outputs: What a chain added.
        repeatable: Whether runs have a clock that stands still and random numbers from a seed.
    """
    verdict = outputs.get("verdict")
    answered = outputs.get("stop_reason", "answered") == "answered" and outputs.get("complete", True)
    return bool(verdict and verdict.ok and answered and (repeatable or is_repeatable(outputs.get("code") or "")))


class CachedChain(Piece):
    """Keeps what a chain answers, and gives it again without asking a model or running anything. Adds `cached`.

    What counts as the same question: the same text (but for spaces around it and the way accents are encoded), files and
    variables of the same content, the same tests, language and history; asked of a chain of the same models with the same
    parameters, the same prompts, checks and executor, with the same packages and snippets, in the same version of this
    library. In a `session` nothing is kept, as its state counts, too.

    Only good results are kept: answers that are verified, plausible or unverified, but no failures, none cut short by a
    budget, and none of programs that look at the clock, draw random numbers without a seed, or use the network. When many
    ask the same at once, in threads, tasks or, with a `SqliteStore`, processes, one asks the model and the others wait. A
    store that is broken or locked is as good as empty.

    Args:
        chain: The chain whose answers are kept; what it adds must be known keys, or JSON.
        store: Any LangChain `ByteStore`.
        ttl: Seconds after which an answer is not used any more.
        version: What the chain is known by, instead of its content; change it when the chain changes.
        repeatable: Whether runs are repeatable whatever they do, as those of `SandboxExecutor(seed=…)`.

    Raises:
        ConfigurationError: The chain holds something whose content cannot be told, and no `version` was given.
    """

    name: str | None = "cached"
    chain: Chain
    store: Any = Field(repr=False)
    ttl: float | None = None
    version: str | None = None
    repeatable: bool = False
    _flights: _Flights = PrivateAttr(default_factory=lambda: _Flights())

    def __init__(self, chain: Chain, *, store: BaseStore[str, bytes], **kwargs: Any) -> None:
        if not isinstance(store, BaseStore):
            raise ConfigurationError("store", store, "a LangChain ByteStore, e.g. SqliteStore(path)")
        super().__init__(**{"chain": chain, "store": store, **kwargs})
        try:
            self._world()
        except Unknowable as error:
            raise ConfigurationError(
                "chain",
                type(chain).__name__,
                f'one whose content can be told (not: {error}), or version="…", a text of yours',
            ) from error

    @property
    def input_keys(self) -> list[str]:
        """What the chain reads."""
        return self.chain.input_keys

    @property
    def optional_keys(self) -> list[str]:
        """What the chain reads where it is given."""
        return list(getattr(self.chain, "optional_keys", []))

    @property
    def output_keys(self) -> list[str]:
        """What the chain adds, and whether that was there already."""
        return [*self.chain.output_keys, "cached"]

    def get_graph(self, config: Config | None = None) -> Graph:
        """The stages of the chain."""
        return self.chain.get_graph(config)

    def _program(self, values: State, config: Config) -> Program:
        key = yield Do(self._key, values, config)
        found = (yield Do(self._look, key, config)) if key else None
        if found is not None:
            yield {**found, "cached": True}
            return
        if not key:
            yield Call(self.chain, values, config, self._only_outputs)
            yield {"cached": False}
            return
        yield from self._alone(key, values, config)

    def _alone(self, key: str, values: State, config: Config) -> Program:
        """Ask the chain, unless somebody is asking the same already: then wait for what comes of that."""
        flight = yield Do(self._board, key, config, self._aboard)
        try:
            if flight.found is not None:
                yield {**flight.found, "cached": True}
                return
            outputs = self._only_outputs((yield Call(self.chain, values, config, self._only_outputs)))
            flight.outputs = outputs
            yield Do(self._keep, (key, outputs), config)
            yield {"cached": False}
        finally:
            flight.land()

    def _only_outputs(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.chain.output_keys}

    # -- what is the same ---------------------------------------------------------------------------------------------

    def _key(self, values: State) -> str | None:
        """The key of a question; None where its answer cannot be kept."""
        if values.get("session") is not None:
            return None
        read = {*self.input_keys, *self.optional_keys} or set(values)
        asked = {name: values[name] for name in read if values.get(name) is not None and name not in _NOT_ASKED}
        try:
            if "query" in asked:
                asked["query"] = _normal(check_query(asked["query"]))
            if "files" in asked:
                asked["files"] = {name: _content(path) for name, path in check_files(asked["files"]).items()}
            return f"answers/{fingerprint([self._world(), asked])}"
        except (Unknowable, OSError) as error:
            _log.debug("This question is not cached: %s", error)
            return None

    def _world(self) -> Any:
        """All but the question that an answer depends on."""
        known_by = describe(self.chain) if self.version is None else self.version
        return [_FORMAT, __version__, environment(), known_by]

    # -- the store ----------------------------------------------------------------------------------------------------

    def _look(self, key: str) -> State | None:
        try:
            (data,) = self.store.mget([key])
            if data is None:
                return None
            note = json.loads(data)
            if self.ttl is not None and time.time() - float(note["made"]) > self.ttl:
                return None
            return from_json(note["outputs"])
        except Exception as error:  # A cache is a help: whatever is wrong with it, the question can still be answered.
            _log.warning("The cache cannot be read, so the question is asked again: %s", error)
            return None

    def _keep(self, kept: tuple[str, State]) -> None:
        key, outputs = kept
        if not is_good(outputs, repeatable=self.repeatable):
            return
        try:
            data = as_json(outputs)
            if from_json(data) != outputs:
                _log.warning("An answer is not cached: it holds what JSON cannot keep.")
                return
            note = json.dumps({"made": time.time(), "outputs": data}, ensure_ascii=False)
            self.store.mset([(key, note.encode("utf-8", "surrogatepass"))])
        except Exception as error:
            _log.warning("An answer could not be cached: %s", error)

    # -- one of many --------------------------------------------------------------------------------------------------

    def _board(self, key: str) -> _Flight:
        for flight in self._boarding(key):
            if flight is not None:
                return flight
            time.sleep(_PAUSE)
        raise AssertionError("boarding only ends with a flight")

    async def _aboard(self, key: str) -> _Flight:
        boarding = self._boarding(key)
        step: Callable[[], _Flight | None] = partial(next, boarding)
        while (flight := await in_thread(step, unwanted=_leave)) is None:  # noqa: ASYNC110 (others may be processes)
            await asyncio.sleep(_PAUSE)
        return flight

    def _boarding(self, key: str) -> Iterator[_Flight | None]:
        """None for as long as somebody else is asking, then a flight: with what was found, or to ask oneself."""
        waited = self._flights.current(key)
        while True:
            if waited is not None and waited.landed.is_set() and waited.outputs is not None:
                yield _Flight(found=waited.outputs)
            flight = self._flights.start(key)
            if flight is None:
                waited = self._flights.current(key) or waited
                yield None
                continue
            lease = self._lease(key)
            if lease is not None:
                flight.ends.append(lease)
            found = self._look(key)  # It may have come while others asked.
            if found is not None or lease is None:
                flight.land()
            yield _Flight(found=found) if found is not None else flight if lease is not None else None

    def _lease(self, key: str) -> Callable[[], None] | None:
        """Keep other processes from asking the same, where the store can; what ends that, or None if another does."""
        if not isinstance(self.store, SqliteStore):
            return lambda: None
        try:
            token = self.store.lease(key, _LEASE)
        except Exception as error:
            _log.warning("The cache cannot be locked, so others may ask the same: %s", error)
            return lambda: None
        if token is None:
            return None
        return _Renewed(self.store, key, token).end


@dataclass
class _Flight:
    """One question that is being asked; or, with `found`, that was.

    Attributes:
        found: What somebody else found out.
        outputs: What came of asking.
        landed: Set when it is over.
        ends: What is to be done then.
    """

    found: State | None = None
    outputs: State | None = None
    landed: threading.Event = field(default_factory=threading.Event)
    ends: list[Callable[[], None]] = field(default_factory=list)

    def land(self) -> None:
        """It is over, however it went."""
        self.landed.set()
        while self.ends:
            self.ends.pop()()


def _leave(flight: _Flight | None) -> None:
    if flight is not None:
        flight.land()


class _Flights:
    """The questions that are being asked in this process."""

    def __init__(self) -> None:
        self._all: dict[str, _Flight] = {}
        self._lock = threading.Lock()

    def start(self, key: str) -> _Flight | None:
        """A new flight; None where there is one."""
        with self._lock:
            if key in self._all:
                return None
            flight = self._all[key] = _Flight()
            flight.ends.append(lambda: self._end(key))
            return flight

    def current(self, key: str) -> _Flight | None:
        with self._lock:
            return self._all.get(key)

    def _end(self, key: str) -> None:
        with self._lock:
            self._all.pop(key, None)


class _Renewed:
    """A lease that lasts until it is ended, or its process is."""

    def __init__(self, store: SqliteStore, key: str, token: str) -> None:
        self._store, self._key, self._token = store, key, token
        self._ended = threading.Event()
        threading.Thread(target=self._renew, daemon=True).start()

    def end(self) -> None:
        """Let others ask."""
        self._ended.set()
        with suppress(Exception):  # It runs out by itself.
            self._store.release(self._key, self._token)

    def _renew(self) -> None:
        while not self._ended.wait(_LEASE / 3):
            with suppress(Exception):
                self._store.renew(self._key, self._token, _LEASE)


def _normal(query: str) -> str:
    """A question without what makes no difference for certain."""
    return unicodedata.normalize("NFC", query.replace("\r\n", "\n")).strip()


def _content(path: Any) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
