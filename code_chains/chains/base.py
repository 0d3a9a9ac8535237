"""The streaming base: classic chains that are also streaming, asynchronous, traceable Runnables.

This is the only module that imports `langchain_classic`. Three classes stand in for its three:

- `Piece` for `Chain`: control flow is written once, as a generator of steps; drivers for `invoke`, `stream` and their
  async twins run it.
- `Transform` for `TransformChain`: the function sees the run's config and never blocks the event loop.
- `Sequence` for `SequentialChain`: streams what each piece streams and hands the whole config down.

Always: the chunks of `piece.stream(x)`, added up with `+`, are `piece.invoke(x)`, and async gives what sync gives.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias, cast, get_type_hints

from langchain_classic.base_memory import BaseMemory as Memory
from langchain_classic.chains.base import Chain
from langchain_classic.chains.sequential import SequentialChain
from langchain_classic.chains.transform import TransformChain
from langchain_classic.schema import RUN_KEY
from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.outputs import RunInfo
from langchain_core.runnables import Runnable, RunnableConfig, RunnableGenerator, RunnableSequence, ensure_config
from langchain_core.runnables.config import run_in_executor, set_config_context, var_child_runnable_config
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import AddableDict
from langchain_core.tools import BaseTool
from langchain_core.tracers.context import run_collector_var
from pydantic import BaseModel, ConfigDict, Field, create_model

from code_chains.budget import Budget, awithin, stream_within, timed, within
from code_chains.errors import ConfigurationError, InputError
from code_chains.runs import abegin, begin, is_heard
from code_chains.state import CodeState
from code_chains.tools import chain_as_tool, told_as_json

__all__ = ["Call", "Chain", "Config", "Do", "Memory", "Piece", "Program", "Sequence", "State", "Step", "Transform"]

State: TypeAlias = dict[str, Any]
_Managers: TypeAlias = type[CallbackManager] | type[AsyncCallbackManager]
Config: TypeAlias = RunnableConfig


@dataclass(frozen=True)
class Call:
    """Step: run a Runnable and get back its output.

    Attributes:
        runnable: What to run.
        value: Its input.
        config: Its config; callbacks in it make it a child of the piece's run.
        emit: With it the output is passed on as it streams: each chunk, through `emit`, becomes a chunk of the piece.
            It must respect sums: `emit(a + b) == emit(a) + emit(b)`.
    """

    runnable: Runnable[Any, Any]
    value: Any
    config: Config
    emit: Callable[[Any], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class Do:
    """Step: call a function, or await its async twin, inside the run's config, and get back its result.

    Attributes:
        function: Takes `value`. Without a twin the async driver runs it in a thread.
        value: The argument.
        config: What the function sees as its current config.
        afunction: The async twin.
        quick: Whether it takes no longer than a thread would cost, so that it may run on the event loop.
    """

    function: Callable[[Any], Any]
    value: Any
    config: Config
    afunction: Callable[[Any], Awaitable[Any]] | None = None
    quick: bool = False


Step: TypeAlias = Call | Do | Mapping[str, Any]
"""What a program yields: a call, a function, or keys to emit."""
Program: TypeAlias = Generator[Step, Any, Any]


class Piece(Chain):
    """A classic `Chain` whose control flow is one generator, `_program`, and which streams.

    It works in a stock `SequentialChain`, in LCEL pipelines, with `batch`, `astream_events`, callbacks, tags, `memory=`,
    `with_retry`, `with_fallbacks` and `as_tool`. As with every chain, `invoke` gives the inputs and the outputs in one
    dict; `stream` gives the same in chunks that add up to it, the inputs first.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    keys: ClassVar[Mapping[str, Any]] = get_type_hints(CodeState)
    """Types of the keys that travel."""

    @property
    def optional_keys(self) -> list[str]:
        """Keys that are read where they are given."""
        return []

    @abstractmethod
    def _program(self, values: State, config: Config) -> Program:
        """Yield steps and receive their results; yield mappings to emit keys. Contains no input or output itself.

        A key's final value is emitted once; values that add up (text, lists) may be emitted in parts.
        """

    # -- running a program --------------------------------------------------------------------------------------------

    def _call(self, inputs: State, run_manager: CallbackManagerForChainRun | None = None) -> State:
        return dict(_total(_drive(self._program(dict(inputs), _child_config(run_manager)), streaming=False)))

    async def _acall(self, inputs: State, run_manager: AsyncCallbackManagerForChainRun | None = None) -> State:
        program = self._program(dict(inputs), _child_config(run_manager))
        return dict(_total([chunk async for chunk in _adrive(program, streaming=False)]))

    def invoke(
        self,
        input: State | str,  # noqa: A002
        config: Config | None = None,
        *,
        return_only_outputs: bool = False,
        include_run_info: bool = False,
        inherits: bool = False,
        **kwargs: Any,
    ) -> State:
        """Run the piece.

        Args:
            input: The keys it reads; a text where it needs one key alone.
            config: Of any Runnable; all of it is handed down.
            return_only_outputs: Leave the inputs out of the result.
            include_run_info: Add the id of the run, as classic chains do.
            inherits: Whether the callbacks are those of a parent's run, with nothing to be added to them.
            **kwargs: Not used.
        """
        # Chain.invoke drops most of the config ("configurable", say) and takes its own signature apart at each call.
        config = _whole(config, inherits=inherits)
        with _configured(config):
            inputs = self.prep_inputs(cast("State", input))
            manager = cast("CallbackManager", self._manager(config, CallbackManager, inherits=inherits))
            run = begin(manager, inputs, **self._identity(config))
            try:
                self._validate_inputs(inputs)
                outputs = self._call(inputs, run_manager=run)
                final = self.prep_outputs(inputs, outputs, return_only_outputs)
            except BaseException as error:
                run.on_chain_error(error)
                raise
            run.on_chain_end(outputs)
        return {**final, RUN_KEY: RunInfo(run_id=run.run_id)} if include_run_info else final

    async def ainvoke(
        self,
        input: State | str,  # noqa: A002
        config: Config | None = None,
        *,
        return_only_outputs: bool = False,
        include_run_info: bool = False,
        inherits: bool = False,
        **kwargs: Any,
    ) -> State:
        """Like `invoke`, without blocking the event loop; cancelling stops what it is doing."""
        config = _whole(config, inherits=inherits)
        with _configured(config):
            inputs = await self.aprep_inputs(cast("State", input))
            manager = cast("AsyncCallbackManager", self._manager(config, AsyncCallbackManager, inherits=inherits))
            run = await abegin(manager, inputs, **self._identity(config))
            try:
                self._validate_inputs(inputs)
                outputs = await self._acall(inputs, run_manager=run)
                final = await self.aprep_outputs(inputs, outputs, return_only_outputs)
            except BaseException as error:
                await run.on_chain_error(error)
                raise
            await run.on_chain_end(outputs)
        return {**final, RUN_KEY: RunInfo(run_id=run.run_id)} if include_run_info else final

    def stream(self, input: State | str, config: Config | None = None, **kwargs: Any) -> Iterator[AddableDict]:  # noqa: A002
        """Run the piece and yield what it adds as it comes: chunks whose sum is what `invoke` gives."""
        config = _whole(config, **kwargs)
        with _configured(config):
            inputs = self.prep_inputs(cast("State", input))
        manager = cast("CallbackManager", self._stream_manager(config, CallbackManager, **kwargs))
        # The inputs go first, but not before the run has begun: astream_events gives up on a run it does not know yet.
        head = self._head(inputs, **kwargs)
        outputs = AddableDict()
        run = self._heard if is_heard(manager) else self._unheard
        for chunk in run(inputs, config, manager):
            while head:
                yield head.pop()
            outputs += chunk
            yield chunk
        yield from head
        self.prep_outputs(inputs, dict(outputs))  # Checks the keys and saves to memory.

    async def astream(
        self,
        input: State | str,  # noqa: A002
        config: Config | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AddableDict]:
        """Like `stream`, without blocking the event loop."""
        config = _whole(config, **kwargs)
        with _configured(config):
            inputs = await self.aprep_inputs(cast("State", input))
        manager = cast("AsyncCallbackManager", self._stream_manager(config, AsyncCallbackManager, **kwargs))
        head = self._head(inputs, **kwargs)
        outputs = AddableDict()
        run = self._aheard if is_heard(manager) else self._aunheard
        async with aclosing(run(inputs, config, manager)) as chunks:
            async for chunk in chunks:
                while head:
                    yield head.pop()
                outputs += chunk
                yield chunk
        for chunk in head:
            yield chunk
        await self.aprep_outputs(inputs, dict(outputs))

    def _head(self, inputs: State, *, return_only_outputs: bool = False, **_: Any) -> list[AddableDict]:
        """The first chunk: the inputs, but for those that the outputs replace and would otherwise be added to."""
        kept = {key: value for key, value in inputs.items() if key not in self.output_keys}
        return [] if return_only_outputs else [AddableDict(kept)]

    def _heard(self, inputs: State, config: Config, manager: CallbackManager) -> Iterator[AddableDict]:
        """A traced, streaming run."""
        # patch_config(callbacks=…) would drop the run's name and id and cut astream_events short without a word.
        return self._streamer().stream(inputs, {**config, "callbacks": manager})

    def _aheard(
        self, inputs: State, config: Config, manager: AsyncCallbackManager
    ) -> AsyncGenerator[AddableDict, None]:
        chunks = self._streamer().astream(inputs, {**config, "callbacks": manager})
        return cast("AsyncGenerator[AddableDict, None]", chunks)

    def _unheard(self, inputs: State, config: Config, manager: CallbackManager) -> Iterator[AddableDict]:
        """A run of whose chunks nobody is told but the caller."""
        run = begin(manager, inputs, **self._identity(config))
        config = {**_without_run(config), "callbacks": run.get_child()}
        with set_config_context(config) as context:  # It sees one context, whatever those are of who reads it.
            chunks = self._read(inputs, config)
            try:
                while (chunk := context.run(next, chunks, _END)) is not _END:
                    yield chunk
            finally:
                context.run(chunks.close)
                run.on_chain_end(None)

    async def _aunheard(
        self, inputs: State, config: Config, manager: AsyncCallbackManager
    ) -> AsyncGenerator[AddableDict, None]:
        run = await abegin(manager, inputs, **self._identity(config))
        config = {**_without_run(config), "callbacks": run.get_child()}
        try:
            async with aclosing(self._aread(inputs, config)) as chunks:
                while True:
                    with _configured(config):
                        chunk = await anext(chunks, _END)
                    if chunk is _END:
                        return
                    yield chunk
        finally:
            await run.on_chain_end(None)

    def _streamer(self) -> Runnable[State, AddableDict]:
        """What makes a traced, streaming run of the two generators below."""
        return RunnableGenerator(cast("Any", self._run), cast("Any", self._arun), name=self.get_name())

    def _run(self, inputs: Iterator[State], config: Config) -> Iterator[AddableDict]:
        yield from self._read(next(inputs), config)

    async def _arun(self, inputs: AsyncIterator[State], config: Config) -> AsyncIterator[AddableDict]:
        async with aclosing(self._aread(await anext(inputs), config)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _read(self, inputs: State, config: Config) -> Generator[AddableDict, None, None]:
        values, seen = dict(inputs), set[str]()
        self._validate_inputs(values)
        for chunk in _drive(self._program(values, config), streaming=True):
            seen.update(chunk)
            yield chunk
        self._validate_outputs(dict.fromkeys(seen))

    async def _aread(self, inputs: State, config: Config) -> AsyncGenerator[AddableDict, None]:
        values, seen = dict(inputs), set[str]()
        self._validate_inputs(values)
        async with aclosing(_adrive(self._program(values, config), streaming=True)) as chunks:
            async for chunk in chunks:
                seen.update(chunk)
                yield chunk
        self._validate_outputs(dict.fromkeys(seen))

    def _stream_manager(
        self, config: Config, kind: _Managers, *, inherits: bool = False, **_: Any
    ) -> CallbackManager | AsyncCallbackManager:
        """Who is told of a streaming run; the piece's own tags and metadata stay local to it as in `invoke`."""
        return self._manager({**config, "tags": [], "metadata": {}}, kind, inherits=inherits)

    def _manager(self, config: Config, kind: _Managers, *, inherits: bool) -> CallbackManager | AsyncCallbackManager:
        """Who is told of the run. Those of a parent's run are so already, unless the piece has something of its own."""
        callbacks = config.get("callbacks")
        if (
            inherits
            and isinstance(callbacks, kind)
            and not (self.callbacks or self.verbose or self.tags or self.metadata)
            and run_collector_var.get() is None  # `collect_runs` is told of each run by itself.
        ):
            return callbacks
        return kind.configure(
            callbacks,
            self.callbacks,
            self.verbose,
            config.get("tags"),
            self.tags,
            config.get("metadata"),
            self.metadata,
        )

    def _identity(self, config: Config) -> dict[str, Any]:
        """What a run is known by."""
        return {"run_id": config.get("run_id"), "name": config.get("run_name") or self.get_name()}

    def _validate_inputs(self, inputs: Any) -> None:
        try:
            super()._validate_inputs(inputs)
        except ValueError as error:
            raise InputError(f"{self.get_name()}: {error}") from error

    # -- what it looks like from outside ------------------------------------------------------------------------------

    def get_input_schema(self, config: Config | None = None) -> type[BaseModel]:
        """The keys it reads, with their types; optional ones default to None."""
        required = {key: (self.keys.get(key, Any), ...) for key in self.input_keys}
        optional = {key: (self.keys.get(key, Any) | None, None) for key in self.optional_keys}
        return _schema(f"{type(self).__name__}Input", {**required, **optional})

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: Mapping[str, Any] | None = None,
    ) -> BaseTool:
        """The piece as a tool that a model may call; its messages carry the whole outcome as their `artifact`.

        Args:
            args_schema: The arguments; as a default the keys it needs, and none of those that it reads where they are
                given: a model must not name files of this machine, or the conversation of somebody else.
            name: What a model calls.
            description: When a model should call it.
            arg_types: Arguments by name and type, instead of a schema.
        """
        return chain_as_tool(
            self,
            name=name or self.get_name(),
            description=description or " ".join((type(self).__doc__ or "").partition("Args:")[0].split()),
            arguments=args_schema or self._arguments(arg_types),
            told=self._told,
        )

    def _arguments(self, types: Mapping[str, Any] | None) -> type[BaseModel]:
        """Arguments of these types, or all the keys it needs."""
        wanted = types or {key: self.keys.get(key, Any) for key in self.input_keys}
        return _schema(f"{type(self).__name__}Arguments", {key: (kind, ...) for key, kind in wanted.items()})

    def _told(self, outcome: Mapping[str, Any]) -> str:
        """What a model that called this as a tool is told."""
        return told_as_json(outcome)

    def get_output_schema(self, config: Config | None = None) -> type[BaseModel]:
        """The keys it adds, with their types."""
        return _schema(
            f"{type(self).__name__}Output", {key: (self.keys.get(key, Any), ...) for key in self.output_keys}
        )


def _schema(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    return create_model(name, __config__=ConfigDict(arbitrary_types_allowed=True), **fields)


class Transform(Piece, TransformChain):
    """A `TransformChain` that keeps its promises to Runnables.

    Models called inside the function appear in traces and see the config; without an async twin the function runs in a
    thread, not on the event loop.

    Example:
        >>> shout = Transform(input_variables=["answer"], output_variables=["loud"],
        ...                   transform=lambda state: {"loud": state["answer"].upper()})
        >>> shout.invoke({"answer": "fifteen"})["loud"]
        'FIFTEEN'
    """

    atransform_cb: Callable[[State], Awaitable[State]] | None = Field(default=None, alias="atransform")

    def _program(self, values: State, config: Config) -> Program:
        added = yield Do(self.transform_cb, values, config, self.atransform_cb)
        if not isinstance(added, Mapping):
            name = getattr(self.transform_cb, "__name__", "transform")
            raise ConfigurationError("transform", name, "a function that returns a dict; async ones go to atransform=")
        yield {key: value for key, value in added.items() if key in self.output_variables}


class Sequence(Piece, SequentialChain):
    """A `SequentialChain` that streams what each of its chains streams, and hands the whole config to each.

    Example:
        >>> words = Transform(input_variables=["query"], output_variables=["words"],
        ...                   transform=lambda state: {"words": state["query"].split()})
        >>> count = Transform(input_variables=["words"], output_variables=["count"],
        ...                   transform=lambda state: {"count": len(state["words"])})
        >>> Sequence(chains=[words, count], input_variables=["query"]).invoke("how many words")["count"]
        3
    """

    chains: list[Chain]
    output_variables: list[str] = Field(default_factory=list)  # Filled in by SequentialChain where it is not given.

    @property
    def optional_keys(self) -> list[str]:
        """What the chains read where it is given, and none of them adds before."""
        wanted: dict[str, None] = {}
        known = set(self.input_keys)
        for chain in self.chains:
            wanted.update(dict.fromkeys(key for key in getattr(chain, "optional_keys", []) if key not in known))
            known |= set(chain.output_keys)
        return list(wanted)

    def _program(self, values: State, config: Config) -> Program:
        values = dict(values)
        for chain in self.chains:
            values |= yield Call(chain, values, config, self._only_outputs)
        return values

    def _only_outputs(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.output_variables}

    def get_graph(self, config: Config | None = None) -> Graph:
        """The stages, one after the other."""
        if len(self.chains) < 2:
            return self.chains[0].get_graph(config)
        return RunnableSequence(*self.chains).get_graph(config)


# -- drivers: one for functions, one for coroutines --------------------------------------------------------------------


@dataclass(frozen=True)
class _Done:
    """What a step came to, after the chunks it emitted."""

    result: Any


def _drive(program: Program, *, streaming: bool) -> Iterator[AddableDict]:
    """Run a program's steps and yield what it emits. Errors of a step are raised inside the program."""
    result: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                step = program.throw(error) if error else program.send(result)
            except StopIteration:
                return
            result = error = None
            try:
                for item in _perform(step, streaming=streaming):
                    if isinstance(item, _Done):
                        result = item.result
                    else:
                        yield item
            except Exception as raised:  # The program decides: it may catch it or let it go on.
                error = raised
    finally:
        program.close()


def _perform(step: Step, *, streaming: bool) -> Iterator[AddableDict | _Done]:
    if isinstance(step, Mapping):
        yield AddableDict(step)
    elif isinstance(step, Do):
        yield _Done(_in_context(step))
    elif step.emit and streaming:
        chunks, budget = [], _timed(step)
        stream = partial(step.runnable.stream, step.value, step.config, **_only_outputs(step))
        for chunk in stream_within(budget, stream) if budget else stream():
            chunks.append(chunk)
            if added := step.emit(chunk):
                yield AddableDict(added)
        yield _Done(_total(chunks))
    else:
        call, budget = partial(step.runnable.invoke, step.value, step.config, **_only_outputs(step)), _timed(step)
        result = within(budget, call) if budget else call()
        if step.emit:
            yield AddableDict(step.emit(result))
        yield _Done(result)


async def _adrive(program: Program, *, streaming: bool) -> AsyncGenerator[AddableDict, None]:
    """The async twin of `_drive`, line by line."""
    result: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                step = program.throw(error) if error else program.send(result)
            except StopIteration:
                return
            result = error = None
            try:
                async with aclosing(_aperform(step, streaming=streaming)) as items:
                    async for item in items:
                        if isinstance(item, _Done):
                            result = item.result
                        else:
                            yield item
            except Exception as raised:
                error = raised
    finally:
        program.close()


async def _aperform(step: Step, *, streaming: bool) -> AsyncGenerator[AddableDict | _Done, None]:
    """The async twin of `_perform`, line by line."""
    if isinstance(step, Mapping):
        yield AddableDict(step)
    elif isinstance(step, Do):
        yield _Done(await _ain_context(step))
    elif step.emit and streaming:
        chunks, budget = [], _timed(step)
        stream = step.runnable.astream(step.value, step.config, **_only_outputs(step))
        async with aclosing(cast("AsyncGenerator[Any, None]", stream)) as opened:  # Left early, it ends its run now.
            async for chunk in _in_time(opened, budget) if budget else opened:
                chunks.append(chunk)
                if added := step.emit(chunk):
                    yield AddableDict(added)
        yield _Done(_total(chunks))
    else:
        call, budget = step.runnable.ainvoke(step.value, step.config, **_only_outputs(step)), _timed(step)
        result = await (awithin(budget, call) if budget else call)
        if step.emit:
            yield AddableDict(step.emit(result))
        yield _Done(result)


def _timed(step: Call) -> Budget | None:
    """The budget whose time a call may not outlast. Chains mind it themselves, and keep what they have."""
    return None if isinstance(step.runnable, Chain) else timed(step.config)


async def _in_time(chunks: AsyncGenerator[Any, None], budget: Budget) -> AsyncIterator[Any]:
    while (chunk := await awithin(budget, anext(chunks, _END))) is not _END:
        yield chunk


_END: Any = object()


def _in_context(step: Do) -> Any:
    with set_config_context(step.config) as context:
        return context.run(step.function, step.value)


async def _ain_context(step: Do) -> Any:
    if step.afunction is None:
        return _in_context(step) if step.quick else await run_in_executor(step.config, _in_context, step)
    token = var_child_runnable_config.set(step.config)
    try:
        return await step.afunction(step.value)
    finally:
        var_child_runnable_config.reset(token)


def _only_outputs(step: Call) -> dict[str, bool]:
    if isinstance(step.runnable, Piece):
        return {"return_only_outputs": True, "inherits": True}
    return {"return_only_outputs": True} if isinstance(step.runnable, Chain) else {}


def _total(chunks: Iterable[Any]) -> Any:
    """The sum of chunks: dicts key by key, messages and text by their own addition."""
    total: Any = None
    for chunk in chunks:
        total = chunk if total is None else total + chunk
    return AddableDict() if total is None else total


def _without_run(config: Config) -> Config:
    """The config without what names one run, so that the first stage does not take its parent's name."""
    return cast("Config", {key: value for key, value in config.items() if key not in ("run_name", "run_id")})


_WHOLE = {"tags", "metadata", "callbacks", "recursion_limit", "configurable"}


def _whole(config: Config | None, *, inherits: bool = False, **_: Any) -> Config:
    """The config with all that a config has; that of a parent's run has it already."""
    return config if inherits and config is not None and config.keys() >= _WHOLE else ensure_config(config)


class _configured:  # noqa: N801 (used as a function is)
    """Let code below see the config of this run as its context, but for what names this one run."""

    __slots__ = ("_config", "_token")

    def __init__(self, config: Config) -> None:
        self._config = _without_run(config)

    def __enter__(self) -> None:
        self._token = var_child_runnable_config.set(self._config)

    def __exit__(self, *_: object) -> None:
        var_child_runnable_config.reset(self._token)


def _child_config(
    run_manager: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun | None,
) -> Config:
    config = var_child_runnable_config.get()
    config = _without_run(ensure_config()) if config is None else config
    return {**config, "callbacks": run_manager.get_child()} if run_manager else config
