"""A chain in front of another: the same question in the same world has the same answer, without asking again."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables.graph import Graph
from langchain_core.stores import BaseStore
from pydantic import Field, PrivateAttr

from code_chains import __version__
from code_chains.chains.base import Call, Chain, Config, Do, Piece, Program, State
from code_chains.chance import is_repeatable
from code_chains.errors import ConfigurationError, InputError
from code_chains.files import checksum
from code_chains.fingerprint import Unknowable, describe, environment, fingerprint
from code_chains.inputs import check_files, check_query
from code_chains.state import as_json, from_json
from code_chains.stores import SqliteStore

__all__ = ["CachedChain", "is_good"]

_log = logging.getLogger(__name__)
_FORMAT = 1
_PAUSE, _LONGEST = 0.02, 0.5
"""Seconds between two looks at what another process has found out: the longer it takes, the longer."""
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
    budget, and none of programs that look at the clock, draw random numbers without a seed, or use the network. On a hit
    nothing runs, so nothing is checked or approved either. When many ask the same at once, in threads, tasks or, with a
    `SqliteStore`, processes, one asks the model and the others wait. A store that is broken or locked is as good as empty.

    Args:
        chain: The chain whose answers are kept; what it adds must be known keys, or JSON.
        store: Any LangChain `ByteStore`.
        ttl: Seconds after which an answer is not used any more.
        version: What the chain is known by, instead of its content; change it when the chain changes.
        repeatable: Whether runs are repeatable whatever they do, as those of `SandboxExecutor(seed=…)`.
        keep: Says of what the chain added whether it is worth keeping, instead of `is_good`, which wants a `verdict`.
        patience: Seconds to wait for somebody who asks the same at most; then the question is asked once more.

    Raises:
        ConfigurationError: The chain holds something whose content cannot be told, and no `version` was given; or it adds no
            `verdict`, and no `keep` was given.
    """

    name: str | None = "cached"
    chain: Chain
    store: Any = Field(repr=False)
    ttl: float | None = None
    version: str | None = None
    repeatable: bool = False
    keep: Callable[[State], bool] | None = None
    patience: float = 30.0
    _flights: _Flights = PrivateAttr(default_factory=lambda: _Flights())

    def __init__(self, chain: Chain, *, store: BaseStore[str, bytes], **kwargs: Any) -> None:
        if not isinstance(store, BaseStore):
            raise ConfigurationError("store", store, "a LangChain ByteStore, e.g. SqliteStore(path)")
        super().__init__(**{"chain": chain, "store": store, **kwargs})
        if self.keep is None and "verdict" not in self.chain.output_keys:
            raise ConfigurationError(
                "keep", None, "a function that says whether a result is worth keeping: it has no verdict"
            )
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
        key = yield Do(self._key, (values, config), config)
        found = (yield Do(self._look, key, config)) if key else None
        if found is not None:
            yield {**found, "cached": True}
        elif key:
            yield from self._alone(key, values, config)
        else:
            yield Call(self.chain, values, config, self._only_outputs)
            yield {"cached": False}

    def _alone(self, key: str, values: State, config: Config) -> Program:
        """Ask the chain, unless somebody is asking the same already: then wait for what comes of that."""
        flight = _Flight(key)
        try:
            found = yield Do(self._board, flight, config, self._aboard)
            if found is not None:
                yield {**found, "cached": True}
                return
            outputs = self._only_outputs((yield Call(self.chain, values, config, self._only_outputs)))
            yield Do(self._keep, (flight, outputs), config)
            yield {"cached": False}
        finally:
            flight.land()

    def _only_outputs(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.chain.output_keys}

    # -- what is the same ---------------------------------------------------------------------------------------------

    def _key(self, given: tuple[State, Config]) -> str | None:
        """The key of a question; None where its answer cannot be kept."""
        values, config = given
        if values.get("session") is not None:
            return None
        read = {*self.input_keys, *self.optional_keys} or set(values)
        asked = {name: values[name] for name in read if values.get(name) is not None and name not in _NOT_ASKED}
        set_so = {name: value for name, value in config.get("configurable", {}).items() if _counts(name)}
        try:
            if "query" in asked:
                asked["query"] = _normal(check_query(asked["query"]))
            if "files" in asked:
                asked["files"] = {name: checksum(path) for name, path in check_files(asked["files"]).items()}
            return f"answers/{fingerprint([self._world(), asked, set_so])}"
        except InputError:
            raise
        except Exception as error:  # What cannot be told apart is not kept.
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

    def _keep(self, landing: tuple[_Flight, State]) -> None:
        """Keep what is good, and give it to those who wait for it."""
        flight, outputs = landing
        try:
            good = self.keep(outputs) if self.keep else is_good(outputs, repeatable=self.repeatable)
            if not good:
                return
            data = as_json(outputs)
            if from_json(data) != outputs:
                _log.warning("An answer is not cached: it holds what JSON cannot keep.")
                return
            flight.outputs = data
            note = json.dumps({"made": time.time(), "outputs": data}, ensure_ascii=False)
            self.store.mset([(flight.key, note.encode("utf-8", "surrogatepass"))])
        except Exception as error:
            _log.warning("An answer could not be cached: %s", error)

    # -- one of many --------------------------------------------------------------------------------------------------

    def _board(self, flight: _Flight) -> State | None:
        """What somebody else has found out meanwhile; None to ask oneself."""
        flight.who = threading.get_ident()
        while not (tried := self._try(flight)).over:
            concurrent.futures.wait([tried.awaits], tried.seconds)
        return tried.found

    async def _aboard(self, flight: _Flight) -> State | None:
        flight.who = asyncio.current_task()
        while not (tried := await asyncio.to_thread(self._try, flight)).over:
            await asyncio.wait([asyncio.wrap_future(tried.awaits)], timeout=tried.seconds)
        return tried.found

    def _try(self, flight: _Flight) -> _Tried:
        """One look at who else is asking the same."""
        if (before := flight.waits_for) is not None and before.landed.done():
            # It came to something, or to nothing that can be shared: then all who waited ask at the same time.
            return _Tried(True, self._look(flight.key) if before.outputs is None else from_json(before.outputs))
        flight.waits_for = other = self._flights.enter(flight)
        if other is not None and other.who == flight.who:
            return _Tried(True)  # Whoever reads a stream of the same question half way would wait for himself.
        if other is None and (flight.lease is not None or self._take_lease(flight)):
            return _Tried(True, self._look(flight.key))
        if other is None:  # Another process is asking.
            flight.leave()
            if (found := self._look(flight.key)) is not None:
                return _Tried(True, found)
        waited = time.monotonic() - flight.began
        pause = min(_LONGEST, _PAUSE + waited / 8, max(0.0, self.patience - waited))
        return _Tried(waited >= self.patience, None, (other or flight).landed, pause)

    def _take_lease(self, flight: _Flight) -> bool:
        """Keep other processes from asking the same, where the store can."""
        if not isinstance(self.store, SqliteStore):
            return True
        try:
            token = self.store.lease(flight.key, _LEASE)
        except Exception as error:
            _log.warning("The cache cannot be locked, so others may ask the same: %s", error)
            return True
        if token is not None:
            flight.hold(_Renewed(self.store, flight.key, token))
        return token is not None


@dataclass(frozen=True)
class _Tried:
    """Whether waiting is over, and what somebody else has found out; else what to wait for, and how long at most."""

    over: bool
    found: State | None = None
    awaits: Future[None] = field(default_factory=Future)
    seconds: float = 0.0


class _Flight:
    """One who asks a question, or waits for another who does.

    Attributes:
        key: The question.
        who: The thread or task.
        waits_for: Who is asking already.
        outputs: What came of asking, as JSON; None if nothing that others may have.
        landed: Done when it is over.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.who: object = None
        self.waits_for: _Flight | None = None
        self.outputs: State | None = None
        self.landed: Future[None] = Future()
        self.landed.set_running_or_notify_cancel()  # Nobody who waits for it may cancel it.
        self.began = time.monotonic()
        self.lease: _Renewed | None = None
        self.flights: _Flights | None = None
        self._lock = threading.Lock()

    def hold(self, lease: _Renewed) -> None:
        """Keep a lease until the landing; it is given back at once if that was before."""
        with self._lock:
            if not self.landed.done():
                self.lease = lease
                return
        lease.end()

    def leave(self) -> None:
        """Let others of this process ask."""
        if self.flights is not None:
            self.flights.leave(self)

    def land(self) -> None:
        """It is over, however it went."""
        with self._lock:
            if not self.landed.done():
                self.landed.set_result(None)
            lease, self.lease = self.lease, None
        self.leave()
        if lease is not None:
            lease.end()


class _Flights:
    """Who is asking which question in this process."""

    def __init__(self) -> None:
        self._all: dict[tuple[int, str], _Flight] = {}
        self._lock = threading.Lock()

    def enter(self, flight: _Flight) -> _Flight | None:
        """Be the one who asks; or who that is already."""
        with self._lock:
            place = os.getpid(), flight.key  # A process that was forked off knows nothing of who asks in its parent.
            other = self._all.get(place)
            if other is flight or flight.landed.done():
                return None
            if other is None:
                self._all[place], flight.flights = flight, self
            return other

    def leave(self, flight: _Flight) -> None:
        with self._lock:
            if self._all.get((os.getpid(), flight.key)) is flight:
                del self._all[os.getpid(), flight.key]


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


def _counts(name: str) -> bool:
    """Whether something that is configured may change an answer."""
    return name not in _NOT_ASKED and not name.startswith("__")


def _normal(query: str) -> str:
    """A question without what makes no difference for certain."""
    return unicodedata.normalize("NFC", query.replace("\r\n", "\n")).strip()
