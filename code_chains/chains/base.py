"""Streaming base classes: classic chains that are also streaming, asynchronous, traceable Runnables.

- `StreamingChain` replaces `Chain`: control flow is written once, as a generator of effects (see `_drivers`)
  that serves `invoke`, `stream` and their async counterparts.
- `StreamingTransformChain` replaces `TransformChain`: the function sees the run's config and never blocks the
  event loop.
- `StreamingSequentialChain` replaces `SequentialChain`: it streams what each chain streams and hands the
  whole config down.

Invariant: the chunks of `chain.stream(x)`, added up with `+`, equal `chain.invoke(x)`, and async equals sync.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, get_type_hints

from langchain_classic.chains.base import Chain
from langchain_classic.chains.sequential import SequentialChain
from langchain_classic.chains.transform import TransformChain
from langchain_core.runnables import RunnableSequence
from langchain_core.runnables.graph import Graph
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from code_chains.chains._drivers import Config, Effect, Flow, Invoke, RunFunction, State, StreamFunction
from code_chains.chains._streaming import FlowChain
from code_chains.chains.tools import chain_as_tool, format_as_json
from code_chains.errors import ConfigurationError
from code_chains.state import CodeState

__all__ = [
    "Chain",
    "Config",
    "Effect",
    "Flow",
    "Invoke",
    "RunFunction",
    "State",
    "StreamFunction",
    "StreamingChain",
    "StreamingSequentialChain",
    "StreamingTransformChain",
]


class StreamingChain(FlowChain):
    """A classic `Chain` whose control flow is one generator, `_flow`, and which streams.

    It works in a stock `SequentialChain`, in LCEL pipelines, with `batch`, `astream_events`, callbacks, tags,
    `memory=`, `with_retry`, `with_fallbacks` and `as_tool`. As with every chain, `invoke` returns inputs and
    outputs in one dict; `stream` yields the same in chunks that add up to it, the inputs first.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    keys: ClassVar[Mapping[str, Any]] = get_type_hints(CodeState)
    """Types of the keys of the state."""

    @property
    def optional_keys(self) -> list[str]:
        """Keys that are read if they are present."""
        return []

    def is_needed(self, values: State) -> bool:
        """Return whether there is anything to do; a sequence leaves the chain out otherwise."""
        return True

    def skipped(self) -> State:
        """Return what a sequence adds where the chain is left out."""
        return {}

    # -- schemas and tools -----------------------------------------------------------------------------------

    def get_input_schema(self, config: Config | None = None) -> type[BaseModel]:
        """Return the keys it reads, with their types; optional ones default to None."""
        required = {key: (self.keys.get(key, Any), ...) for key in self.input_keys}
        optional = {key: (self.keys.get(key, Any) | None, None) for key in self.optional_keys}
        return _schema(f"{type(self).__name__}Input", {**required, **optional})

    def get_output_schema(self, config: Config | None = None) -> type[BaseModel]:
        """Return the keys it adds, with their types."""
        fields = {key: (self.keys.get(key, Any), ...) for key in self.output_keys}
        return _schema(f"{type(self).__name__}Output", fields)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: Mapping[str, Any] | None = None,
    ) -> BaseTool:
        """Make a tool of the chain that a model may call; its messages carry the whole outcome as their `artifact`.

        Args:
            args_schema: The arguments; by default the keys it requires, and no optional ones: a model must
                not name files of this machine, or somebody else's conversation.
            name: The name that a model calls.
            description: When a model should call it.
            arg_types: Arguments by name and type, instead of a schema.
        """
        return chain_as_tool(
            self,
            name=name or self.get_name(),
            description=description or " ".join((type(self).__doc__ or "").partition("Args:")[0].split()),
            arguments=args_schema or self._arguments(arg_types),
            format_for_model=self._format_for_model,
        )

    def _arguments(self, types: Mapping[str, Any] | None) -> type[BaseModel]:
        """Return a schema of these arguments, or of all required keys."""
        arguments = types or {key: self.keys.get(key, Any) for key in self.input_keys}
        fields = {key: (kind, ...) for key, kind in arguments.items()}
        return _schema(f"{type(self).__name__}Arguments", fields)

    def _format_for_model(self, inputs: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
        """Return the text for a model that called the chain as a tool."""
        return format_as_json(outcome)


def _schema(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    return create_model(name, __config__=ConfigDict(arbitrary_types_allowed=True), **fields)


class StreamingTransformChain(StreamingChain, TransformChain):
    """A `TransformChain` that behaves as a Runnable should.

    Models called inside the function appear in traces and see the config; without an async counterpart the function
    runs in a thread, not on the event loop.

    Example:
        >>> shout = StreamingTransformChain(
        ...     input_variables=["answer"],
        ...     output_variables=["loud"],
        ...     transform=lambda state: {"loud": state["answer"].upper()},
        ... )
        >>> shout.invoke({"answer": "fifteen"})["loud"]
        'FIFTEEN'
    """

    atransform_cb: Callable[[State], Awaitable[State]] | None = Field(default=None, alias="atransform")

    def _flow(self, values: State, config: Config) -> Flow:
        outputs = yield RunFunction(self.transform_cb, values, config, self.atransform_cb)
        if not isinstance(outputs, Mapping):
            name = getattr(self.transform_cb, "__name__", "transform")
            raise ConfigurationError(
                "transform", name, "a function that returns a dict; pass async functions as atransform="
            )
        yield {key: value for key, value in outputs.items() if key in self.output_variables}


class StreamingSequentialChain(StreamingChain, SequentialChain):
    """A `SequentialChain` that streams what each of its chains streams, and hands the whole config to each.

    Example:
        >>> split = StreamingTransformChain(
        ...     input_variables=["query"],
        ...     output_variables=["words"],
        ...     transform=lambda state: {"words": state["query"].split()},
        ... )
        >>> count = StreamingTransformChain(
        ...     input_variables=["words"],
        ...     output_variables=["count"],
        ...     transform=lambda state: {"count": len(state["words"])},
        ... )
        >>> chain = StreamingSequentialChain(chains=[split, count], input_variables=["query"])
        >>> chain.invoke("how many words")["count"]
        3
    """

    chains: list[Chain]
    # SequentialChain fills it in if it is not given.
    output_variables: list[str] = Field(default_factory=list)

    @property
    def optional_keys(self) -> list[str]:
        """Optional keys of the chains that no chain before them adds."""
        optional: dict[str, None] = {}
        available = set(self.input_keys)
        for chain in self.chains:
            optional.update(
                dict.fromkeys(key for key in getattr(chain, "optional_keys", []) if key not in available)
            )
            available |= set(chain.output_keys)
        return list(optional)

    def _flow(self, values: State, config: Config) -> Flow:
        values = dict(values)
        for chain in self.chains:
            if isinstance(chain, StreamingChain) and not chain.is_needed(values):
                added = chain.skipped()
                if added:
                    yield self._select_outputs(added)
                values |= added
                continue
            values |= yield Invoke(chain, values, config, self._select_outputs)
        return values

    def _select_outputs(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.output_variables}

    def get_graph(self, config: Config | None = None) -> Graph:
        """Return the stages, one after the other."""
        if len(self.chains) < 2:
            return self.chains[0].get_graph(config)
        return RunnableSequence(*self.chains).get_graph(config)
