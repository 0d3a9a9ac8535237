"""Effects that chains yield, and the two drivers that carry them out: one for functions, one for coroutines.

The control flow of a chain is a generator (a `Flow`), written once: it yields effects and receives their
results, as in httpx's authentication flows. `drive` and `adrive` must give the same chunks for the same flow.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_classic.chains.base import Chain
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor, set_config_context, var_child_runnable_config
from langchain_core.runnables.utils import AddableDict

from code_chains.analysis.work import INLINE_STEPS, MAX_STEPS, TooMuchWorkError, limited_to, spend_on_texts
from code_chains.callbacks.deadlines import (
    Deadline,
    arun_with_deadline,
    nearest_deadline,
    run_deadline,
    run_with_deadline,
    stream_with_deadline,
)
from code_chains.executors.runner import RUN_DEADLINE

State: TypeAlias = dict[str, Any]
Config: TypeAlias = RunnableConfig

EXHAUSTED: Any = object()
"""What `next(chunks, EXHAUSTED)` gives when an iterator has ended."""


@dataclass(frozen=True)
class Invoke:
    """Effect: run a Runnable and receive its output.

    Attributes:
        runnable: What to run.
        value: Its input.
        config: Its config; callbacks in it make the run a child of the chain's run.
        emit: With it the output is streamed: each chunk, mapped by `emit`, becomes a chunk of the chain. It
            must respect sums: `emit(a + b) == emit(a) + emit(b)`.
    """

    runnable: Runnable[Any, Any]
    value: Any
    config: Config
    emit: Callable[[Any], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class RunFunction:
    """Effect: call a function, or await its async counterpart, within the run's config, and receive its result.

    Attributes:
        function: Takes `value`. Without a twin the async driver runs it in a thread.
        value: The argument.
        config: What the function sees as its current config.
        afunction: The async counterpart.
        inline: Whether it is faster than starting a thread, so that it may run on the event loop.
    """

    function: Callable[[Any], Any]
    value: Any
    config: Config
    afunction: Callable[[Any], Awaitable[Any]] | None = None
    inline: bool = False


@dataclass(frozen=True)
class Analyse(RunFunction):
    """Effect: call a function that reads a program, a reply or a question, within one budget of work.

    It is called on the event loop, and again in a thread if it takes more steps than are taken there.

    Attributes:
        otherwise: What it results in where the budget is spent: that nothing was analysed, which is no finding.
        inline: Whether it may be called on the event loop.
    """

    otherwise: Any = None
    inline: bool = True

    def run(self, value: Any) -> Any:
        """Call the function with the whole budget."""
        try:
            with limited_to(MAX_STEPS):
                return self.function(value)
        except TooMuchWorkError:
            return self.otherwise


@dataclass(frozen=True, kw_only=True)
class StreamFunction(RunFunction):
    """Effect: like `RunFunction`; in a stream, iterate over what a function yields instead.

    Attributes:
        stream: Takes `value`; returns a generator of mappings, which are emitted as they come, and last of the result.
        astream: The async counterpart.
    """

    stream: Callable[[Any], Generator[Any, None, None]]
    astream: Callable[[Any], AsyncGenerator[Any, None]]


Effect: TypeAlias = Invoke | RunFunction | Mapping[str, Any]
"""What a flow yields: a Runnable to invoke, a function to run, or keys to emit."""
Flow: TypeAlias = Generator[Effect, Any, Any]


class NestedChain(Chain):
    """A chain that drivers run within another chain's run, whose callbacks are configured already."""

    @abstractmethod
    def _flow(self, values: State, config: Config) -> Flow:
        """Yield effects and receive their results; yield mappings to emit keys. Does no input or output itself.

        The final value of a key is emitted once; values that add up (text, lists) may be emitted in parts.
        """

    def choose_how(self, key: str) -> str:
        """Return how something is chosen that is no input, as a sentence; empty if it cannot be."""
        return ""

    def _as_given(self, given: Any, inputs: State) -> Any:
        """Return the inputs of a run for traces: messages as they were given, which histories of LangChain look for."""
        return inputs

    @abstractmethod
    def invoke_nested(self, values: State, config: Config) -> State:
        """Run and return the outputs alone."""

    @abstractmethod
    async def ainvoke_nested(self, values: State, config: Config) -> State:
        """Like `invoke_nested`, without blocking the event loop."""

    @abstractmethod
    def stream_nested(self, values: State, config: Config) -> Iterator[AddableDict]:
        """Yield chunks of the outputs alone."""

    @abstractmethod
    def astream_nested(self, values: State, config: Config) -> AsyncGenerator[AddableDict, None]:
        """Like `stream_nested`, without blocking the event loop."""


@dataclass(frozen=True)
class _Result:
    """The result of an effect, after the chunks that it emitted."""

    value: Any


def drive(flow: Flow, *, streaming: bool) -> Iterator[AddableDict]:
    """Carry out the effects of a flow and yield what it emits.

    Errors of an effect are raised inside the flow.
    """
    result: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                effect = flow.throw(error) if error else flow.send(result)
            except StopIteration:
                return
            result = error = None
            try:
                for item in _perform(effect, streaming=streaming):
                    if isinstance(item, _Result):
                        result = item.value
                    else:
                        yield item
            except Exception as raised:  # The flow decides whether to handle it.
                error = raised
    finally:
        flow.close()


async def adrive(flow: Flow, *, streaming: bool) -> AsyncGenerator[AddableDict, None]:
    """Do what `drive` does, on an event loop; its async counterpart; keep in sync."""
    result: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                effect = flow.throw(error) if error else flow.send(result)
            except StopIteration:
                return
            result = error = None
            try:
                async with aclosing(_aperform(effect, streaming=streaming)) as items:
                    async for item in items:
                        if isinstance(item, _Result):
                            result = item.value
                        else:
                            yield item
            except Exception as raised:
                error = raised
    finally:
        flow.close()


def _perform(effect: Effect, *, streaming: bool) -> Iterator[AddableDict | _Result]:
    if isinstance(effect, Mapping):
        yield AddableDict(effect)
    elif isinstance(effect, StreamFunction) and streaming:
        yield from _stream_function(effect)
    elif isinstance(effect, RunFunction):
        yield _Result(_run_function(effect))
    elif effect.emit and streaming:
        chunks = []
        for chunk in _stream(effect):
            chunks.append(chunk)
            if emitted := effect.emit(chunk):
                yield AddableDict(emitted)
        yield _Result(sum_chunks(chunks))
    else:
        output = _invoke(effect)
        if effect.emit:
            yield AddableDict(effect.emit(output))
        yield _Result(output)


async def _aperform(effect: Effect, *, streaming: bool) -> AsyncGenerator[AddableDict | _Result, None]:
    """Do what `_perform` does, on an event loop; its async counterpart; keep in sync."""
    if isinstance(effect, Mapping):
        yield AddableDict(effect)
    elif isinstance(effect, StreamFunction) and streaming:
        async with aclosing(_astream_function(effect)) as items:
            async for item in items:
                yield item
    elif isinstance(effect, RunFunction):
        yield _Result(await _arun_function(effect))
    elif effect.emit and streaming:
        chunks = []
        async with aclosing(_astream(effect)) as stream:  # Left early, it ends its run at once.
            deadline = _deadline(effect)
            async for chunk in _until_deadline(stream, deadline) if deadline else stream:
                chunks.append(chunk)
                if emitted := effect.emit(chunk):
                    yield AddableDict(emitted)
        yield _Result(sum_chunks(chunks))
    else:
        output = await _ainvoke(effect)
        if effect.emit:
            yield AddableDict(effect.emit(output))
        yield _Result(output)


def _deadline(effect: Invoke) -> Deadline | None:
    """Return when a call is abandoned.

    Chains watch it themselves and keep what they have.
    """
    return None if isinstance(effect.runnable, Chain) else nearest_deadline(effect.config)


def _invoke(effect: Invoke) -> Any:
    runnable, value, config = effect.runnable, effect.value, effect.config
    if isinstance(runnable, NestedChain):
        return runnable.invoke_nested(value, config)
    if isinstance(runnable, Chain):
        return runnable.invoke(value, config, return_only_outputs=True)
    deadline = _deadline(effect)
    if deadline is None:
        return runnable.invoke(value, config)
    return run_with_deadline(deadline, partial(runnable.invoke, value, config))


async def _ainvoke(effect: Invoke) -> Any:
    runnable, value, config = effect.runnable, effect.value, effect.config
    if isinstance(runnable, NestedChain):
        return await runnable.ainvoke_nested(value, config)
    if isinstance(runnable, Chain):
        return await runnable.ainvoke(value, config, return_only_outputs=True)
    deadline = _deadline(effect)
    if deadline is None:
        return await runnable.ainvoke(value, config)
    return await arun_with_deadline(deadline, runnable.ainvoke(value, config))


def _stream(effect: Invoke) -> Iterator[Any]:
    runnable, value, config = effect.runnable, effect.value, effect.config
    if isinstance(runnable, NestedChain):
        return runnable.stream_nested(value, config)
    if isinstance(runnable, Chain):
        return runnable.stream(value, config, return_only_outputs=True)
    deadline = _deadline(effect)
    if deadline is None:
        return runnable.stream(value, config)
    return stream_with_deadline(deadline, partial(runnable.stream, value, config))


def _astream(effect: Invoke) -> AsyncGenerator[Any, None]:
    runnable, value, config = effect.runnable, effect.value, effect.config
    if isinstance(runnable, NestedChain):
        return runnable.astream_nested(value, config)
    options = {"return_only_outputs": True} if isinstance(runnable, Chain) else {}
    return cast("AsyncGenerator[Any, None]", runnable.astream(value, config, **options))


async def _until_deadline(chunks: AsyncGenerator[Any, None], deadline: Deadline) -> AsyncIterator[Any]:
    while (chunk := await arun_with_deadline(deadline, anext(chunks, EXHAUSTED))) is not EXHAUSTED:
        yield chunk


def _run_function(effect: RunFunction) -> Any:
    function = effect.run if isinstance(effect, Analyse) else effect.function
    return _call(effect, function)


def _call(effect: RunFunction, function: Callable[[Any], Any]) -> Any:
    with set_config_context(effect.config) as context:
        context.run(RUN_DEADLINE.set, run_deadline(effect.config))
        return context.run(function, effect.value)


def _briefly(effect: Analyse) -> Any:
    """Call a function on the event loop, as far as that is quick.

    Raises:
        TooMuchWorkError: It is not.
    """

    def call(value: Any) -> Any:
        with limited_to(INLINE_STEPS):
            spend_on_texts(value)
            return effect.function(value)

    return _call(effect, call)


async def _arun_function(effect: RunFunction) -> Any:
    if effect.afunction is None:
        if effect.inline and isinstance(effect, Analyse):
            with suppress(TooMuchWorkError):
                return _briefly(effect)
        elif effect.inline:
            return _run_function(effect)
        return await run_in_executor(effect.config, _run_function, effect)
    with _effect_context(effect.config):
        return await effect.afunction(effect.value)


def _stream_function(effect: StreamFunction) -> Iterator[AddableDict | _Result]:
    with set_config_context(effect.config) as context, closing(effect.stream(effect.value)) as items:
        context.run(RUN_DEADLINE.set, run_deadline(effect.config))
        while (item := context.run(next, items, EXHAUSTED)) is not EXHAUSTED:
            yield _chunk_or_result(item)


async def _astream_function(effect: StreamFunction) -> AsyncGenerator[AddableDict | _Result, None]:
    async with aclosing(effect.astream(effect.value)) as items:
        while True:
            with _effect_context(effect.config):
                item = await anext(items, EXHAUSTED)
            if item is EXHAUSTED:
                return
            yield _chunk_or_result(item)


@contextmanager
def _effect_context(config: Config) -> Iterator[None]:
    """Make a config, and the deadline of its budgets, the current ones of this task."""
    config_token, deadline_token = (
        var_child_runnable_config.set(config),
        RUN_DEADLINE.set(run_deadline(config)),
    )
    try:
        yield
    finally:
        var_child_runnable_config.reset(config_token)
        RUN_DEADLINE.reset(deadline_token)


def _chunk_or_result(item: Any) -> AddableDict | _Result:
    return AddableDict(item) if isinstance(item, Mapping) else _Result(item)


def sum_chunks(chunks: Iterable[Any]) -> Any:
    """Add chunks up: dicts key by key, messages and text by their own addition."""
    total: Any = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return AddableDict() if total is None else total
