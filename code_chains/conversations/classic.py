"""Memories of LangChain's classic chains, as they are: whoever holds one sees what the chain saves to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_classic.base_memory import BaseMemory
from pydantic import PrivateAttr

from code_chains.errors import InputError


class ClassicMemory(BaseMemory):
    """Saves the question and the answer of each run to another memory, under the keys that it looks for.

    Args:
        memory: The other memory.
        answer_key: The key of the answer.
    """

    memory: BaseMemory
    answer_key: str
    _session_id: object = PrivateAttr(None)

    @property
    def memory_variables(self) -> list[str]:
        """The keys that it adds to inputs."""
        return self.memory.memory_variables

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return what was said before."""
        return self.memory.load_memory_variables(self._asked(inputs))

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Like `load_memory_variables`."""
        return await self.memory.aload_memory_variables(self._asked(inputs))

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Save a question and its answer."""
        self.memory.save_context(self._asked(inputs), self._answered(outputs))

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Like `save_context`."""
        await self.memory.asave_context(self._asked(inputs), self._answered(outputs))

    def clear(self) -> None:
        """Forget everything."""
        self.memory.clear()

    async def aclear(self) -> None:
        """Like `clear`."""
        await self.memory.aclear()

    def _asked(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        # Invariant: LangChain's hold one conversation, so that nobody is shown what another one said.
        session_id = inputs.get("session_id") if hasattr(self.memory, "input_key") else None
        if session_id is not None and self._session_id not in (None, session_id):
            raise InputError(
                f"The {type(self.memory).__name__} holds the conversation of another session_id."
                " Use memory=ConversationMemory(…), which keeps them apart, or a chain for each."
            )
        self._session_id = session_id if self._session_id is None else self._session_id
        return self._keyed("input", inputs, "query")

    def _answered(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        return self._keyed("output", outputs, self.answer_key)

    def _keyed(self, kind: str, values: Mapping[str, Any], key: str) -> dict[str, Any]:
        """Return values under the key that the memory looks for; of one that names none, the only value."""
        if not hasattr(self.memory, f"{kind}_key"):
            return dict(values)
        name = getattr(self.memory, f"{kind}_key")
        return {**values, name: values[key]} if name else {kind: values[key]}
