"""A cache of a chain's answers, with one computation for concurrent equal questions."""

from __future__ import annotations

import asyncio
import concurrent.futures
import hashlib
import json
import logging
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, ClassVar

from langchain_core.stores import BaseStore
from pydantic import Field, PrivateAttr

from code_chains._version import __version__
from code_chains.analysis.determinism import is_repeatable
from code_chains.chains.base import Chain, Config, EnclosingChain, Flow, Invoke, RunFunction, State
from code_chains.chains.execute import run_inputs
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.values import describe_variables
from code_chains.inputs import check_query
from code_chains.records import NOT_ANALYSED
from code_chains.state import Execution, as_json, from_json
from code_chains.storage.files import sha256_file
from code_chains.storage.fingerprint import NotFingerprintableError, describe, environment, fingerprint
from code_chains.storage.foreign import parse_json

_log = logging.getLogger(__name__)
_FORMAT = 1
_NOT_IN_KEY = ("session", "session_id", "session_variables")


def is_cacheable(outputs: Mapping[str, Any], *, repeatable: bool = False) -> bool:
    """Return whether outputs hold a complete answer that would be the same the next time.

    Args:
        outputs: The outputs of a chain.
        repeatable: Whether runs have a frozen clock and seeded random numbers.
    """
    verdict = outputs.get("verdict")
    execution = outputs.get("execution")
    if execution is not None and any(call.effect != "pure" for call in execution.tool_calls):
        return False
    answered = outputs.get("stop_reason", "answered") == "answered" and outputs.get("answer_complete", True)
    return bool(
        verdict
        and verdict.ok
        and not verdict.reply
        and verdict.reason != NOT_ANALYSED.reason
        and answered
        and (repeatable or is_repeatable(outputs.get("code") or ""))
    )


class CachedChain(EnclosingChain):
    """Cache the answers of a chain; a hit calls no model and runs nothing. Adds `cached`.

    The cache key covers the question's text (after trimming and Unicode normalization), the content of files
    and variables, tests, language and history; the chain's models with their parameters, prompts, checks and
    executor; and the installed packages, snippets and version of this library. In a conversation it also covers the
    state, which has to follow from programs that would do the same again, and a hit runs the cached program in the
    session, without a model: if it shows something else there, that counts as a miss. In a `session` of the caller
    nothing is cached, as its state is not known.

    Only answers that are verified, plausible or unverified are cached: no failures, none that a budget cut
    short, none of programs that may show something else the next time, and none of programs that call tools that are
    not marked as pure. The clock, random numbers (seeded or not), the network, the order of a set, and libraries that
    draw random numbers or compute in parallel, such as scikit-learn and DuckDB, may change what a program shows, unless
    the executor makes runs repeatable.

    On a hit nothing is checked or approved again, and outside of conversations nothing runs. Concurrent equal questions of
    one process, in threads or tasks, are computed once; the others wait. A broken or locked store counts as a cache miss.

    Args:
        chain: The chain; its outputs must be known keys or JSON.
        store: Any LangChain `ByteStore`.
        ttl: Time to live of answers in seconds; None means that they never expire.
        version: Identifies the chain instead of its content; change it when the chain changes.
        repeatable: Whether all runs are repeatable, as with `SandboxExecutor(seed=…)`.
        should_cache: Decides from the outputs whether to cache them, instead of `is_cacheable`, which needs a
            `verdict`.
        timeout: Seconds to wait for an equal question at most; then the question is computed again.

    Raises:
        ConfigurationError: The chain holds something that cannot be fingerprinted, and there is no `version`;
            or it has no output `verdict`, and there is no `should_cache`.
    """

    inner: ClassVar[str] = "chain"
    name: str | None = "cached"
    chain: Chain
    store: Any = Field(repr=False)
    ttl: float | None = None
    version: str | None = None
    repeatable: bool = False
    should_cache: Callable[[State], bool] | None = None
    timeout: float = 30.0
    _in_flight: dict[tuple[int, str], _Flight] = PrivateAttr(default_factory=dict)

    def __init__(self, chain: Chain, *, store: BaseStore[str, bytes], **kwargs: Any) -> None:
        if not isinstance(store, BaseStore):
            raise ConfigurationError("store", store, "a LangChain ByteStore, e.g. SqliteStore(path)")
        super().__init__(**{"chain": chain, "store": store, **kwargs})
        if self.should_cache is None and "verdict" not in self.chain.output_keys:
            remedy = (
                "a function that decides from the outputs whether to cache them: the chain has no verdict"
            )
            raise ConfigurationError("should_cache", None, remedy)
        try:
            self._key_of_chain()
        except NotFingerprintableError as error:
            remedy = (
                f"a chain without {error}, or give that an attribute `fingerprint`, a text that changes with its content;"
                ' or CachedChain(…, version="…"), a text that identifies the chain'
            )
            raise ConfigurationError("chain", type(chain).__name__, remedy) from error

    @property
    def optional_keys(self) -> list[str]:
        """Return those of the chain, and `session_state`."""
        return [*super().optional_keys, "session_state"]

    @property
    def output_keys(self) -> list[str]:
        """Return those of the chain, and `cached`."""
        return [*self.chain.output_keys, "cached"]

    def _flow(self, values: State, config: Config) -> Flow:
        key = yield RunFunction(self._key, (values, config), config)
        if key is None:
            yield Invoke(self.chain, values, config, self._only_outputs)
            yield {"cached": False}
            return
        outputs = yield RunFunction(self._lookup, key, config)
        if outputs is not None and (yield _rerun(values, outputs, config)):
            yield {**outputs, "cached": True}
        else:
            yield from self._compute_once(key, values, config)

    def _compute_once(self, key: str, values: State, config: Config) -> Flow:
        """Invoke the chain, unless an equal question is being computed: then wait for its answer."""
        flight = _Flight(key)
        try:
            outputs = yield RunFunction(self._join, flight, config, self._ajoin)
            if outputs is not None and (yield _rerun(values, outputs, config)):
                yield {**outputs, "cached": True}
                return
            outputs = self._only_outputs((yield Invoke(self.chain, values, config, self._only_outputs)))
            yield RunFunction(self._save, (flight, outputs), config)
            yield {"cached": False}
        finally:
            self._leave(flight)  # However it went: others wait for it.

    def _only_outputs(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.chain.output_keys}

    # -- cache keys ------------------------------------------------------------------------------------------

    def _key(self, question: tuple[State, Config]) -> str | None:
        """Return the cache key of a question; None where its answer cannot be cached."""
        values, config = question
        if values.get("session") is not None and values.get("session_state") is None:
            return None
        read = {*self.input_keys, *self.optional_keys} or set(values)
        inputs = {name: values[name] for name in read if _is_in_key(name) and values.get(name) is not None}
        for name in ("history", "session_state"):
            if name in inputs and not inputs[name]:  # As at the beginning of a conversation.
                del inputs[name]
        settings = {name: value for name, value in config.get("configurable", {}).items() if _is_in_key(name)}
        try:
            if "query" in inputs:
                inputs["query"] = _normalized(check_query(inputs["query"]))
            if "variables" in inputs:
                inputs["variables"] = describe_variables(inputs["variables"])
            if "files" in inputs:
                with files_on_disk(inputs["files"]) as files:
                    inputs["files"] = {name: sha256_file(path) for name, path in files.items()}
            return f"answers/{fingerprint([self._key_of_chain(), inputs, settings])}"
        except InputError:
            raise
        except Exception as error:  # Without a fingerprint, two questions could share an entry.
            _log.debug("This question is not cached: %s", error)
            return None

    def _key_of_chain(self) -> Any:
        """Return everything that an answer depends on except the question."""
        identity = describe(self.chain) if self.version is None else self.version
        return [_FORMAT, __version__, environment(), identity]

    # -- the store -------------------------------------------------------------------------------------------

    def _lookup(self, key: str) -> State | None:
        """Return the cached outputs; None on a miss."""
        try:
            (data,) = self.store.mget([key])
            if data is None:
                return None
            checksum, _, entry = data.partition(b"\n")
            if checksum != _checksum(key, entry):
                raise ValueError("an entry was changed after it was written")
            note = parse_json(entry)
            if self.ttl is not None and time.time() - float(note["made"]) > self.ttl:
                return None
            return from_json(note["outputs"])
        except Exception as error:  # Whatever is wrong with a cache, the question can still be answered.
            _log.warning("The cache cannot be read, which counts as a miss: %s", error)
            return None

    def _save(self, result: tuple[_Flight, State]) -> None:
        """Cache outputs that are cacheable, and hand them to those who wait."""
        flight, outputs = result
        try:
            if self.should_cache is None:
                cacheable = is_cacheable(outputs, repeatable=self.repeatable)
            else:
                cacheable = self.should_cache(outputs)
            if not cacheable:
                return
            data = as_json(outputs)
            if from_json(data) != outputs:
                _log.warning("An answer is not cached: JSON does not preserve it.")
                return
            flight.outputs = data
            note = json.dumps({"made": time.time(), "outputs": data}, ensure_ascii=False)
            entry = note.encode("utf-8", "surrogatepass")
            self.store.mset([(flight.key, _checksum(flight.key, entry) + b"\n" + entry)])
        except Exception as error:
            _log.warning("An answer could not be cached: %s", error)

    # -- concurrent equal questions --------------------------------------------------------------------------

    def _join(self, flight: _Flight) -> State | None:
        """Wait for the answer to an equal question; return None if the caller must compute it."""
        leader = self._enter(flight, threading.get_ident())
        if leader.owner != flight.owner:
            concurrent.futures.wait([leader.finished], self.timeout)
        return self._shared(leader)

    async def _ajoin(self, flight: _Flight) -> State | None:
        leader = self._enter(flight, asyncio.current_task())
        if leader.owner != flight.owner:
            await asyncio.wait([asyncio.wrap_future(leader.finished)], timeout=self.timeout)
        return await asyncio.to_thread(self._shared, leader)

    def _enter(self, flight: _Flight, owner: object) -> _Flight:
        """Return the flight that computes the question, which may be the caller's.

        Halfway through a stream of the same question, the caller owns the other flight: waiting would be a deadlock.
        """
        flight.owner = owner
        # Atomic. A forked child does not run the threads that compute in its parent.
        return self._in_flight.setdefault((os.getpid(), flight.key), flight)

    def _shared(self, leader: _Flight) -> State | None:
        """Return the outputs of a flight, or those in the store: an earlier flight may have saved them just now."""
        return self._lookup(leader.key) if leader.outputs is None else from_json(leader.outputs)

    def _leave(self, flight: _Flight) -> None:
        """Wake those who wait, and let others compute."""
        if self._in_flight.get((os.getpid(), flight.key)) is flight:
            del self._in_flight[os.getpid(), flight.key]
        flight.finished.set_result(None)


class _Flight:
    """One caller's question, which it computes itself or waits for.

    Attributes:
        key: The cache key of the question.
        owner: The thread or task of the caller.
        outputs: The computed outputs as JSON; None if they cannot be shared.
        finished: Done when the computation is over.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.owner: object = None
        self.outputs: State | None = None
        self.finished: Future[None] = Future()
        self.finished.set_running_or_notify_cancel()  # A waiter that is cancelled must not cancel it for all.


def _rerun(values: State, outputs: State, config: Config) -> RunFunction:
    """Return what runs a cached program in the session of a question; its result is whether it shows the same there."""
    session = values.get("session")

    def shows_same(execution: Execution) -> bool:
        return bool(execution.output == outputs["output"])

    def run(_: object) -> bool:
        return bool(
            session is None or session.run(outputs["code"], **run_inputs(values), check=shows_same).ok
        )

    async def arun(_: object) -> bool:
        return session is None or bool(
            (await session.arun(outputs["code"], **run_inputs(values), check=shows_same)).ok
        )

    return RunFunction(run, None, config, arun, inline=session is None)


def _is_in_key(name: str) -> bool:
    """Return whether an input or setting may change an answer."""
    return name not in _NOT_IN_KEY and not name.startswith("__")


def _normalized(query: str) -> str:
    """Normalize what cannot change the meaning of a question."""
    return unicodedata.normalize("NFC", query.replace("\r\n", "\n")).strip()


def _checksum(key: str, entry: bytes) -> bytes:
    """Return the checksum of an entry under its key, by which damage is told from an answer."""
    return hashlib.sha256(key.encode() + b"\n" + entry).hexdigest().encode()
