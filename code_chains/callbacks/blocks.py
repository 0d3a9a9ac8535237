"""Handlers of a block: `with handler:` adds it to all runs that begin in it, also beside those of blocks around it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Self

from langchain_core.tracers.context import register_configure_hook

from code_chains.errors import ConfigurationError

# LangChain asks each variable for one handler.
_LEVELS: tuple[ContextVar[Any], ...] = tuple(ContextVar(f"block_{level}", default=None) for level in range(4))
for _level in _LEVELS:
    register_configure_hook(_level, inheritable=True)


class Block:
    """A handler that is a context manager. Blocks may lie in each other, four deep."""

    def __enter__(self) -> Self:
        """Listen to the runs from here on.

        Raises:
            ConfigurationError: Too many blocks lie in each other.
        """
        free = next((level for level in _LEVELS if level.get() is None), None)
        if free is None:
            remedy = f"at most {len(_LEVELS)} blocks in each other; pass others as callbacks"
            raise ConfigurationError("with", type(self).__name__, remedy)
        free.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        own = next((level for level in reversed(_LEVELS) if level.get() is self), None)
        if own is not None:
            own.set(None)
