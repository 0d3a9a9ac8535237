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

import difflib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, get_type_hints

from langchain_classic.chains.base import Chain
from langchain_classic.chains.sequential import SequentialChain
from langchain_classic.chains.transform import TransformChain
from langchain_core.runnables import ConfigurableFieldSpec, RunnableSequence
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import AnyConfigurableField
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from code_chains.analysis.replies.extraction import reply_text
from code_chains.chains._drivers import (
    Analyse,
    Config,
    Effect,
    Flow,
    Invoke,
    RunFunction,
    State,
    StreamFunction,
)
from code_chains.chains._streaming import FlowChain
from code_chains.errors import ConfigurationError
from code_chains.executors.runner import Closing
from code_chains.inputs import as_state
from code_chains.state import CodeState, with_records

__all__ = [
    "Analyse",
    "Chain",
    "Config",
    "Effect",
    "EnclosingChain",
    "Flow",
    "Invoke",
    "RenamedChain",
    "RunFunction",
    "State",
    "StreamFunction",
    "StreamingChain",
    "StreamingSequentialChain",
    "StreamingTransformChain",
]


_TEXT_KEYS = ("query", "code")
"""Keys whose text may come as a message, a prompt's value, or messages."""


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

    # -- inputs and keys -------------------------------------------------------------------------------------

    def prep_inputs(self, inputs: Any) -> State:
        """Return the inputs as a dict, and what a classic memory adds."""
        return super().prep_inputs(self._read_inputs(inputs))

    async def aprep_inputs(self, inputs: Any) -> State:
        """Like `prep_inputs`."""
        return await super().aprep_inputs(self._read_inputs(inputs))

    def _read_inputs(self, inputs: Any) -> State:
        """Return the inputs as a dict, in which messages are the text of a question and its history, or a program."""
        key = self.input_keys[0] if self.input_keys else ""
        original = self._original(key)
        if original not in _TEXT_KEYS:
            return with_records(inputs if isinstance(inputs, dict) else {key: inputs})
        if original == "code":
            return with_records(as_state(inputs, key, None, reply_text))
        return with_records(as_state(inputs, key, self._renamed("history"), context=self._renamed("context")))

    def _as_given(self, given: Any, inputs: State) -> Any:
        if isinstance(given, str):
            return inputs
        if not isinstance(given, Mapping):
            return given
        key = self.input_keys[0] if self.input_keys else ""
        return inputs if given.get(key) is inputs.get(key) else given

    def _original(self, key: str) -> str:
        """Return the name that a key has in the state."""
        return key

    def _renamed(self, key: str) -> str:
        """Return the name that a key of the state has here."""
        return key

    def check_keys(self, state: State, known: Collection[str]) -> None:
        """Refuse inputs beside the known ones; most chains leave them to others.

        Raises:
            InputError: There is one.
        """

    def with_keys(self, names: Mapping[str, str] | None = None, /, **more: str) -> RenamedChain:
        """Return this chain with other names for its keys, so that it fits beside chains that have the same ones.

        Outputs that are named are all that is left of the outputs; without any, all of them are.

        Args:
            names: The new names by the old ones, also as keywords: `with_keys(query="question", answer="total")`.
            **more: The same.

        Raises:
            ConfigurationError: There is no such key, or two have one name.
        """
        renamed = {**(names or {}), **more}
        if wrong := [name for name in renamed.values() if not isinstance(name, str) or not name]:
            raise ConfigurationError("with_keys", wrong[0], "names as text")
        chain = RenamedChain(chain=self, names=renamed)
        chain.check_names()
        return chain

    # -- schemas and tools -----------------------------------------------------------------------------------

    def get_input_schema(self, config: Config | None = None) -> type[BaseModel]:
        """Return the keys it reads, with their types; optional ones default to None."""
        required = {key: (self.type_of(key), ...) for key in self.input_keys}
        optional = {key: (self.type_of(key) | None, None) for key in self.optional_keys}
        return _schema(f"{type(self).__name__}Input", {**required, **optional})

    def get_output_schema(self, config: Config | None = None) -> type[BaseModel]:
        """Return the keys it adds, with their types."""
        fields = {key: (self.type_of(key), ...) for key in self.output_keys}
        return _schema(f"{type(self).__name__}Output", fields)

    def type_of(self, key: str) -> Any:
        """Return the type of a key."""
        return self.keys.get(self._original(key), Any)

    @property
    def description(self) -> str:
        """What a model is told of the chain as a tool."""
        return " ".join((type(self).__doc__ or "").partition("Args:")[0].split())

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

        Raises:
            ConfigurationError: Providers refuse the name.
        """
        from code_chains.chains.tools import chain_as_tool

        return chain_as_tool(
            self,
            name=self.get_name() if name is None else name,
            description=description or self.description,
            arguments=args_schema or self._arguments(arg_types),
            format_for_model=self._format_for_model,
        )

    def _arguments(self, types: Mapping[str, Any] | None) -> type[BaseModel]:
        """Return a schema of these arguments, or of all required keys."""
        arguments = types or {key: self.type_of(key) for key in self.input_keys}
        fields = {key: (kind, ...) for key, kind in arguments.items()}
        return _schema(f"{type(self).__name__}Arguments", fields)

    def _only_outputs(self, chunk: State) -> State:
        return {key: value for key, value in chunk.items() if key in self.output_keys}

    def _format_for_model(self, inputs: Mapping[str, Any], outcome: Mapping[str, Any]) -> str:
        """Return the text for a model that called the chain as a tool."""
        from code_chains.chains.tools import format_as_json

        return format_as_json(outcome)


class EnclosingChain(StreamingChain):
    """A chain that has another one do the work, and reads what that one reads."""

    inner: ClassVar[str]
    """The name of the field with the other chain."""
    own_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that this chain sets for it."""

    @property
    def _inner(self) -> Chain:
        inner: Chain = getattr(self, self.inner)
        return inner

    @property
    def input_keys(self) -> list[str]:
        """Keys that the other chain requires."""
        return self._inner.input_keys

    @property
    def optional_keys(self) -> list[str]:
        """Keys that the other chain uses, except those that this chain sets."""
        return [key for key in getattr(self._inner, "optional_keys", []) if key not in self.own_keys]

    def get_graph(self, config: Config | None = None) -> Graph:
        """Return the stages of the other chain."""
        return self._inner.get_graph(config)


class RenamedChain(EnclosingChain, Closing):
    """A chain whose keys have other names; made by `with_keys`.

    Attributes:
        chain: The chain.
        names: The names of keys here, by their names there.
    """

    inner: ClassVar[str] = "chain"

    chain: StreamingChain
    names: dict[str, str]

    def check_names(self) -> None:
        """Raise if a name is that of no key, or that of two."""
        keys = {*self.chain.input_keys, *self.chain.optional_keys, *self.chain.output_keys}
        if unknown := [key for key in self.names if key not in keys]:
            near = difflib.get_close_matches(unknown[0], keys, n=1)
            remedy = near[0] if near else f"one of its keys: {', '.join(sorted(keys))}"
            raise ConfigurationError("with_keys", unknown[0], remedy, because="it is no key")
        for old in ((*self.chain.input_keys, *self.chain.optional_keys), self._kept):
            names = [self.names.get(key, key) for key in dict.fromkeys(old)]
            if taken := [name for name in names if names.count(name) > 1]:
                because = f"two keys would be {taken[0]!r}"
                raise ConfigurationError("with_keys", self.names, "another name", because=because)

    @property
    def input_keys(self) -> list[str]:
        """The keys that the chain requires, by their names here."""
        return list(self._originals(self.chain.input_keys))

    @property
    def optional_keys(self) -> list[str]:
        """The keys that the chain uses, by their names here."""
        return list(self._originals(self.chain.optional_keys))

    @property
    def output_keys(self) -> list[str]:
        """The outputs that are named, or else all, by their names here."""
        return list(self._originals(self._kept))

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What a config may name, such as the `session_id`."""
        return self.chain.config_specs

    def configurable_fields(self, **fields: AnyConfigurableField) -> RenamedChain:
        """Return the chain with what a config may set of the chain inside."""
        return self.model_copy(update={"chain": self.chain.configurable_fields(**fields)})

    @property
    def description(self) -> str:
        """What a model is told of the chain as a tool."""
        return self.chain.description

    @property
    def _kept(self) -> list[str]:
        outputs = self.chain.output_keys
        return [key for key in outputs if key in self.names] or outputs

    def _originals(self, keys: Sequence[str]) -> dict[str, str]:
        return {self.names.get(key, key): key for key in keys}

    def _original(self, key: str) -> str:
        chain = self.chain
        keys = self._originals([*chain.output_keys, *chain.optional_keys, *chain.input_keys])
        return chain._original(keys.get(key, key))

    def _renamed(self, key: str) -> str:
        key = self.chain._renamed(key)
        return self.names.get(key, key)

    def _read_inputs(self, inputs: Any) -> State:
        state = super()._read_inputs(inputs)
        self.check_keys(state, (*self.input_keys, *self.optional_keys))
        return state

    def check_keys(self, state: State, known: Collection[str]) -> None:
        """Refuse inputs that the chain refuses."""
        self.chain.check_keys(state, known)

    def choose_how(self, key: str) -> str:
        """Return how something is chosen that is no input."""
        return self.chain.choose_how(key)

    def is_needed(self, values: State) -> bool:
        """Return whether there is anything to do."""
        return self.chain.is_needed(self._inward(values))

    def skipped(self) -> State:
        """Return what a sequence adds where the chain is left out."""
        return self._outward(self.chain.skipped())

    def _flow(self, values: State, config: Config) -> Flow:
        return (yield Invoke(self.chain, self._inward(values), config, self._outward))

    def _inward(self, values: State) -> State:
        """Return values by their names there; what has a name of the chain's own here belongs to others."""
        originals = self._originals([*self.chain.input_keys, *self.chain.optional_keys])
        return {
            originals.get(key, key): value
            for key, value in values.items()
            if key in originals or key not in self.names
        }

    def _outward(self, chunk: State) -> State:
        return {self.names.get(key, key): value for key, value in chunk.items() if key in self._kept}

    def close(self) -> None:
        """Close the chain, if it holds anything open."""
        if isinstance(self.chain, Closing):
            self.chain.close()


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

    @model_validator(mode="before")
    @classmethod
    def _find_inputs(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Fill in what the chains require and none before them adds, if no inputs are named."""
        chains = values.get("chains") or ()
        if "input_variables" in values or not all(isinstance(chain, Chain) for chain in chains):
            return values
        memory = values.get("memory")
        available = set(memory.memory_variables) if memory else set()
        needed: dict[str, None] = {}
        for chain in chains:
            needed.update(dict.fromkeys(key for key in chain.input_keys if key not in available))
            available.update(needed, chain.output_keys)
        return {**values, "input_variables": list(needed)}

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
        if any(chain is self for chain in self.chains):
            raise ConfigurationError("chains", self.get_name(), "others", because="a chain is inside itself")
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
