"""Run flows: `invoke`, `stream` and their async counterparts for chains whose control flow is one generator."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Generator, Iterator
from contextlib import aclosing
from functools import partial
from typing import Any, TypeAlias, cast

from langchain_classic.schema import RUN_KEY
from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.outputs import RunInfo
from langchain_core.runnables import ensure_config
from langchain_core.runnables.config import set_config_context, var_child_runnable_config
from langchain_core.runnables.utils import AddableDict
from langchain_core.tracers.context import run_collector_var

from code_chains.callbacks.runs import abegin, aend, begin, end, is_traced, public
from code_chains.chains._drivers import EXHAUSTED, Config, NestedChain, State, adrive, drive, sum_chunks
from code_chains.errors import InputError
from code_chains.state import BEFORE_MODELS

_ManagerType: TypeAlias = type[CallbackManager] | type[AsyncCallbackManager]
_CONFIG_KEYS = {"tags", "metadata", "callbacks", "recursion_limit", "configurable"}


class FlowChain(NestedChain):
    """A chain that runs its flow.

    Invariant: the chunks of `chain.stream(x)`, added up with `+`, equal `chain.invoke(x)`, and async equals sync.
    """

    # -- invoke ----------------------------------------------------------------------------------------------

    def _call(self, inputs: State, run_manager: CallbackManagerForChainRun | None = None) -> State:
        return dict(sum_chunks(drive(self._flow(dict(inputs), _child_config(run_manager)), streaming=False)))

    async def _acall(
        self, inputs: State, run_manager: AsyncCallbackManagerForChainRun | None = None
    ) -> State:
        flow = self._flow(dict(inputs), _child_config(run_manager))
        return dict(sum_chunks([chunk async for chunk in adrive(flow, streaming=False)]))

    def invoke(
        self,
        input: Any,  # noqa: A002
        config: Config | None = None,
        *,
        return_only_outputs: bool = False,
        include_run_info: bool = False,
        **kwargs: Any,
    ) -> State:
        """Run the chain.

        Args:
            input: The keys it reads; text or messages where it needs a single key.
            config: The config of any Runnable; all of it is handed down.
            return_only_outputs: Leave the inputs out of the result.
            include_run_info: Add the id of the run, as classic chains do.
            **kwargs: None, as those of a chain would be ignored.

        Raises:
            InputError: Something is passed by keyword.
        """
        _check_keywords(self, kwargs)
        return self._invoke(
            input,
            ensure_config(config),
            return_only_outputs=return_only_outputs,
            include_run_info=include_run_info,
        )

    def invoke_nested(self, values: State, config: Config) -> State:
        """Run within another chain's run and return the outputs alone."""
        return self._invoke(values, _complete(config), return_only_outputs=True, nested=True)

    def _invoke(
        self,
        values: Any,
        config: Config,
        *,
        return_only_outputs: bool,
        include_run_info: bool = False,
        nested: bool = False,
    ) -> State:
        # Chain.invoke drops most of the config ("configurable", say) and inspects its own signature at each call.
        with _ConfigContext(config):
            inputs = self.prep_inputs(values)
            manager = cast("CallbackManager", _callback_manager(self, config, CallbackManager, nested=nested))
            run = begin(manager, self._as_given(values, inputs), **_identity(self, config))
            try:
                self._validate_inputs(inputs)
                outputs = self._call(inputs, run_manager=run)
                final = self.prep_outputs(inputs, outputs, return_only_outputs)
            except BaseException as error:
                run.on_chain_error(error)
                raise
            end(run, outputs)
        return {**final, RUN_KEY: RunInfo(run_id=run.run_id)} if include_run_info else final

    async def ainvoke(
        self,
        input: Any,  # noqa: A002
        config: Config | None = None,
        *,
        return_only_outputs: bool = False,
        include_run_info: bool = False,
        **kwargs: Any,
    ) -> State:
        """Like `invoke`, without blocking the event loop; cancelling stops what it is doing."""
        _check_keywords(self, kwargs)
        return await self._ainvoke(
            input,
            ensure_config(config),
            return_only_outputs=return_only_outputs,
            include_run_info=include_run_info,
        )

    async def ainvoke_nested(self, values: State, config: Config) -> State:
        """Like `invoke_nested`, without blocking the event loop."""
        return await self._ainvoke(values, _complete(config), return_only_outputs=True, nested=True)

    async def _ainvoke(
        self,
        values: Any,
        config: Config,
        *,
        return_only_outputs: bool,
        include_run_info: bool = False,
        nested: bool = False,
    ) -> State:
        with _ConfigContext(config):
            inputs = await self.aprep_inputs(values)
            manager = cast(
                "AsyncCallbackManager", _callback_manager(self, config, AsyncCallbackManager, nested=nested)
            )
            run = await abegin(manager, self._as_given(values, inputs), **_identity(self, config))
            try:
                self._validate_inputs(inputs)
                outputs = await self._acall(inputs, run_manager=run)
                final = await self.aprep_outputs(inputs, outputs, return_only_outputs)
            except BaseException as error:
                await run.on_chain_error(error)
                raise
            await aend(run, outputs)
        return {**final, RUN_KEY: RunInfo(run_id=run.run_id)} if include_run_info else final

    # -- stream ----------------------------------------------------------------------------------------------

    def stream(
        self,
        input: Any,  # noqa: A002
        config: Config | None = None,
        *,
        return_only_outputs: bool | None = False,
        **kwargs: Any,
    ) -> Iterator[AddableDict]:
        """Run the chain and yield its keys as they come: chunks whose sum is what `invoke` returns.

        Args:
            input: The keys it reads; text or messages where it needs a single key.
            config: The config of any Runnable; all of it is handed down.
            return_only_outputs: Leave out the first chunk, which holds the inputs.
            **kwargs: None, as those of a chain would be ignored.

        Raises:
            InputError: Something is passed by keyword.
        """
        _check_keywords(self, kwargs)
        return self._stream(input, ensure_config(config), with_inputs=not return_only_outputs)

    def stream_nested(self, values: State, config: Config) -> Iterator[AddableDict]:
        """Stream within another chain's run and yield chunks of the outputs alone."""
        return self._stream(values, _complete(config), with_inputs=False, nested=True)

    def _stream(
        self, values: Any, config: Config, *, with_inputs: bool, nested: bool = False
    ) -> Iterator[AddableDict]:
        with _ConfigContext(config):
            inputs = self.prep_inputs(values)
        manager = cast(
            "CallbackManager", _callback_manager(self, _without_local(config), CallbackManager, nested=nested)
        )
        held = _Held(_first_chunk(self, inputs) if with_inputs else None, is_open=nested)
        outputs = AddableDict()
        run = partial(self._traced, self._as_given(values, inputs)) if is_traced(manager) else self._untraced
        for chunk in run(inputs, config, manager):
            outputs += chunk
            yield from held.add(chunk)
        yield from held.rest()
        self.prep_outputs(inputs, dict(outputs))  # Validates the keys and saves to memory.

    async def astream(
        self,
        input: Any,  # noqa: A002
        config: Config | None = None,
        *,
        return_only_outputs: bool | None = False,
        **kwargs: Any,
    ) -> AsyncIterator[AddableDict]:
        """Like `stream`, without blocking the event loop."""
        _check_keywords(self, kwargs)
        chunks = self._astream(input, ensure_config(config), with_inputs=not return_only_outputs)
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk

    def astream_nested(self, values: State, config: Config) -> AsyncGenerator[AddableDict, None]:
        """Like `stream_nested`, without blocking the event loop."""
        return self._astream(values, _complete(config), with_inputs=False, nested=True)

    async def _astream(
        self, values: Any, config: Config, *, with_inputs: bool, nested: bool = False
    ) -> AsyncGenerator[AddableDict, None]:
        with _ConfigContext(config):
            inputs = await self.aprep_inputs(values)
        local = _without_local(config)
        manager = cast(
            "AsyncCallbackManager", _callback_manager(self, local, AsyncCallbackManager, nested=nested)
        )
        held = _Held(_first_chunk(self, inputs) if with_inputs else None, is_open=nested)
        outputs = AddableDict()
        run = (
            partial(self._atraced, self._as_given(values, inputs)) if is_traced(manager) else self._auntraced
        )
        async with aclosing(run(inputs, config, manager)) as chunks:
            async for chunk in chunks:
                outputs += chunk
                for each in held.add(chunk):
                    yield each
        for each in held.rest():
            yield each
        await self.aprep_outputs(inputs, dict(outputs))

    def _traced(
        self, given: Any, inputs: State, config: Config, manager: CallbackManager
    ) -> Iterator[AddableDict]:
        """Stream with LangChain's helper, which reports every chunk to tracers and to astream_events."""

        def transform(_: Iterator[Any], config: Config) -> Iterator[AddableDict]:
            next(_)
            yield from self._run_flow(inputs, config)

        # patch_config(callbacks=…) would drop the run's name and id and silently cut astream_events short.
        traced = cast("Config", {**config, "callbacks": manager})
        chunks = self._transform_stream_with_config(
            iter([public(given)]), cast("Any", transform), traced, run_type="chain"
        )
        return cast("Iterator[AddableDict]", chunks)

    def _atraced(
        self, given: Any, inputs: State, config: Config, manager: AsyncCallbackManager
    ) -> AsyncGenerator[AddableDict, None]:
        async def once() -> AsyncIterator[Any]:
            yield public(given)

        async def transform(_: AsyncIterator[Any], config: Config) -> AsyncIterator[AddableDict]:
            await anext(_)
            async with aclosing(self._arun_flow(inputs, config)) as chunks:
                async for chunk in chunks:
                    yield chunk

        traced = cast("Config", {**config, "callbacks": manager})
        chunks = self._atransform_stream_with_config(once(), cast("Any", transform), traced, run_type="chain")
        return cast("AsyncGenerator[AddableDict, None]", chunks)

    def _untraced(self, inputs: State, config: Config, manager: CallbackManager) -> Iterator[AddableDict]:
        """Stream without the cost of reporting chunks that no handler listens to."""
        run = begin(manager, inputs, **_identity(self, config))
        config = {**_without_identity(config), "callbacks": run.get_child()}
        # One context for the flow, whatever the consumer's contexts are.
        with set_config_context(config) as context:
            chunks = self._run_flow(inputs, config)
            try:
                while (chunk := context.run(next, chunks, EXHAUSTED)) is not EXHAUSTED:
                    yield chunk
            finally:
                context.run(chunks.close)
                run.on_chain_end(None)

    async def _auntraced(
        self, inputs: State, config: Config, manager: AsyncCallbackManager
    ) -> AsyncGenerator[AddableDict, None]:
        run = await abegin(manager, inputs, **_identity(self, config))
        config = {**_without_identity(config), "callbacks": run.get_child()}
        try:
            async with aclosing(self._arun_flow(inputs, config)) as chunks:
                while True:
                    with _ConfigContext(config):
                        chunk = await anext(chunks, EXHAUSTED)
                    if chunk is EXHAUSTED:
                        return
                    yield chunk
        finally:
            await run.on_chain_end(None)

    def _run_flow(self, inputs: State, config: Config) -> Generator[AddableDict, None, None]:
        values, emitted = dict(inputs), set[str]()
        self._validate_inputs(values)
        for chunk in drive(self._flow(values, config), streaming=True):
            emitted.update(chunk)
            yield chunk
        self._validate_outputs(dict.fromkeys(emitted))

    async def _arun_flow(self, inputs: State, config: Config) -> AsyncGenerator[AddableDict, None]:
        values, emitted = dict(inputs), set[str]()
        self._validate_inputs(values)
        async with aclosing(adrive(self._flow(values, config), streaming=True)) as chunks:
            async for chunk in chunks:
                emitted.update(chunk)
                yield chunk
        self._validate_outputs(dict.fromkeys(emitted))

    def _validate_inputs(self, inputs: Any) -> None:
        try:
            super()._validate_inputs(inputs)
        except ValueError as error:
            raise InputError(f"{self.get_name()}: {error}") from error


class _Held:
    """The chunks that are held back until something that can fail has happened, so that a fallback can take over.

    Invariant: nor is one shown before the run has begun: `astream_events` stops at a chunk of a run that it does not know.

    Args:
        first: The first chunk, if any.
        is_open: Whether none is held back any longer than that: who encloses the chain does so.
    """

    def __init__(self, first: AddableDict | None, *, is_open: bool) -> None:
        self._chunks = [] if first is None else [first]
        self._is_open = is_open

    def add(self, chunk: AddableDict) -> list[AddableDict]:
        """Add a chunk, and return what can be shown."""
        self._chunks.append(chunk)
        self._is_open = self._is_open or not chunk.keys() <= BEFORE_MODELS
        return self.rest() if self._is_open else []

    def rest(self) -> list[AddableDict]:
        """Return what is held back, once."""
        chunks, self._chunks = self._chunks, []
        return chunks


def _first_chunk(chain: FlowChain, inputs: State) -> AddableDict:
    """Return the inputs, except those that outputs replace and would otherwise be added to."""
    return AddableDict({key: value for key, value in inputs.items() if key not in chain.output_keys})


def _check_keywords(chain: FlowChain, keywords: Collection[str]) -> None:
    """Refuse what is passed by keyword, which LangChain would ignore."""
    for key in keywords:
        inputs = (*chain.input_keys, *getattr(chain, "optional_keys", ()))
        if key in inputs:
            raise InputError(
                f"Pass {key!r} in the dict of inputs: {{{chain.input_keys[0]!r}: …, {key!r}: …}}."
            )
        raise InputError(f"There is no keyword {key!r}. {chain.choose_how(key)}".rstrip())


def _identity(chain: FlowChain, config: Config) -> dict[str, Any]:
    """Return the id and the name of a run."""
    return {"run_id": config.get("run_id"), "name": config.get("run_name") or chain.get_name()}


def _callback_manager(
    chain: FlowChain, config: Config, kind: _ManagerType, *, nested: bool
) -> CallbackManager | AsyncCallbackManager:
    """Return the callback manager of a run; a nested run shares its parent's unless the chain adds handlers."""
    callbacks = config.get("callbacks")
    if (
        nested
        and isinstance(callbacks, kind)
        and not (chain.callbacks or chain.verbose or chain.tags or chain.metadata)
        and run_collector_var.get() is None  # `collect_runs` reports each run by itself.
    ):
        return callbacks
    return kind.configure(
        callbacks,
        chain.callbacks,
        chain.verbose,
        config.get("tags"),
        chain.tags,
        config.get("metadata"),
        chain.metadata,
    )


def _without_identity(config: Config) -> Config:
    """Return the config without name and id of the run, so that the first stage does not take its parent's name."""
    return cast("Config", {key: value for key, value in config.items() if key not in ("run_name", "run_id")})


def _without_local(config: Config) -> Config:
    """Return the config without tags and metadata, which LangChain's streaming helper adds by itself."""
    return cast("Config", {**config, "tags": [], "metadata": {}})


def _complete(config: Config) -> Config:
    """Return the config with all of a config's keys; a parent's run has usually filled them in already."""
    return config if config.keys() >= _CONFIG_KEYS else ensure_config(config)


class _ConfigContext:
    """Make the config of this run, without its name and id, the current config of the code within the `with` block."""

    __slots__ = ("_config", "_token")

    def __init__(self, config: Config) -> None:
        self._config = _without_identity(config)

    def __enter__(self) -> None:
        self._token = var_child_runnable_config.set(self._config)

    def __exit__(self, *_: object) -> None:
        var_child_runnable_config.reset(self._token)


def _child_config(run_manager: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun | None) -> Config:
    config = var_child_runnable_config.get()
    if config is None:
        config = _without_identity(ensure_config())
    return {**config, "callbacks": run_manager.get_child()} if run_manager else config
