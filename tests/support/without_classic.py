"""What this library needs of langchain-classic, on `RunnableSerializable`.

langchain-classic is maintained until the end of 2026. This module is the proof that a hundred lines can take its place.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import BaseModel, ConfigDict, Field, model_validator

State = dict[str, Any]


class BaseMemory(BaseModel):
    """Adds variables to inputs, and is told inputs and outputs."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    @property
    @abstractmethod
    def memory_variables(self) -> list[str]: ...

    @abstractmethod
    def load_memory_variables(self, inputs: State) -> State: ...

    async def aload_memory_variables(self, inputs: State) -> State:
        return self.load_memory_variables(inputs)

    @abstractmethod
    def save_context(self, inputs: State, outputs: State) -> None: ...

    async def asave_context(self, inputs: State, outputs: State) -> None:
        self.save_context(inputs, outputs)

    @abstractmethod
    def clear(self) -> None: ...

    async def aclear(self) -> None:
        self.clear()


class Chain(RunnableSerializable[State, State]):
    """Inputs and outputs in one dict, with a memory."""

    model_config = ConfigDict(arbitrary_types_allowed=True, protected_namespaces=())

    memory: Any = None
    callbacks: Callbacks = Field(default=None, exclude=True)
    verbose: bool = False
    tags: list[str] | None = None
    metadata: dict[str, Any] | None = None

    @property
    @abstractmethod
    def input_keys(self) -> list[str]: ...

    @property
    @abstractmethod
    def output_keys(self) -> list[str]: ...

    def _validate_inputs(self, inputs: Any) -> None:
        if missing := set(self.input_keys).difference(inputs):
            raise ValueError(f"Missing some input keys: {missing}")

    def _validate_outputs(self, outputs: State) -> None:
        if missing := set(self.output_keys).difference(outputs):
            raise ValueError(f"Missing some output keys: {missing}")

    def prep_inputs(self, inputs: Any) -> State:
        return {**inputs, **(self.memory.load_memory_variables(inputs) if self.memory else {})}

    async def aprep_inputs(self, inputs: Any) -> State:
        return {**inputs, **(await self.memory.aload_memory_variables(inputs) if self.memory else {})}

    def prep_outputs(self, inputs: State, outputs: State, return_only_outputs: bool = False) -> State:
        self._validate_outputs(outputs)
        if self.memory:
            self.memory.save_context(inputs, outputs)
        return outputs if return_only_outputs else {**inputs, **outputs}

    async def aprep_outputs(self, inputs: State, outputs: State, return_only_outputs: bool = False) -> State:
        self._validate_outputs(outputs)
        if self.memory:
            await self.memory.asave_context(inputs, outputs)
        return outputs if return_only_outputs else {**inputs, **outputs}

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> State:  # noqa: A002
        raise NotImplementedError


class SequentialChain(Chain):
    """Chains one after the other."""

    chains: Sequence[Any]
    input_variables: list[str]
    output_variables: list[str]

    @property
    def input_keys(self) -> list[str]:
        return self.input_variables

    @property
    def output_keys(self) -> list[str]:
        return self.output_variables

    @model_validator(mode="before")
    @classmethod
    def validate_chains(cls, values: State) -> State:
        known, last = {*values["input_variables"]}, list[str]()
        if values.get("memory"):
            known |= set(values["memory"].memory_variables)
        for chain in values["chains"]:
            if missing := set(chain.input_keys) - known:
                raise ValueError(f"Missing required input keys: {missing}, only had {known}")
            if overlapping := known & set(chain.output_keys):
                raise ValueError(f"Chain returned keys that already exist: {overlapping}")
            last = list(chain.output_keys)
            known |= set(last)
        return {**values, "output_variables": values.get("output_variables") or last}


class TransformChain(Chain):
    """A function from a state to what it adds."""

    input_variables: list[str]
    output_variables: list[str]
    transform_cb: Callable[[State], State] = Field(alias="transform")

    @property
    def input_keys(self) -> list[str]:
        return self.input_variables

    @property
    def output_keys(self) -> list[str]:
        return self.output_variables


def _install(name: str, **content: Any) -> None:
    module = ModuleType(name)
    module.__path__ = []
    vars(module).update(content)
    sys.modules[name] = module


MODULES: Mapping[str, Mapping[str, Any]] = {
    "langchain_classic": {},
    "langchain_classic.base_memory": {"BaseMemory": BaseMemory},
    "langchain_classic.chains": {},
    "langchain_classic.chains.base": {"Chain": Chain},
    "langchain_classic.chains.sequential": {"SequentialChain": SequentialChain},
    "langchain_classic.chains.transform": {"TransformChain": TransformChain},
    "langchain_classic.schema": {"RUN_KEY": "__run"},
}


def install() -> None:
    """Put the classes of this module in the place of langchain-classic's, before code_chains is imported."""
    assert "code_chains" not in sys.modules
    for name, content in MODULES.items():
        _install(name, **content)
