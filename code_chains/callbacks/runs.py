"""Report runs of chains to handlers.

LangChain creates a task per handler and event. Handlers that only account for runs are called directly
instead if no tracer listens, which saves up to a third of the cost of a chain.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForChainRun,
    BaseCallbackHandler,
    CallbackManager,
    CallbackManagerForChainRun,
)
from langchain_core.utils.uuid import uuid7
from pydantic import BaseModel

from code_chains.records import Record
from code_chains.state import PrivateState

AGENT_NAME = "code_chains_agent"
"""Key of the metadata of a run that answers a question; its value is the name of the chain."""
_PRIVATE = PrivateState.__annotations__
_MAX_DEPTH, _MAX_ITEMS, _MAX_INTEGER, _MAX_DIGITS = 20, 1000, 1 << 63, 100
"""Of what handlers are told: serializers end at a depth, and at integers of 64 bits."""
_EVENTS = {"on_chain_start", "on_chain_end", "on_chain_error"}


class RunObserver:
    """A callback handler that only needs to know which runs exist, and their parents.

    Runs of our own chains are reported by these two methods, others by the usual events; a subclass that
    handles chain events itself gets all runs as events.

    Attributes:
        listens: Whether it needs events.
    """

    listens: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if _EVENTS & vars(cls).keys() and "listens" not in vars(cls):
            cls.listens = True

    def run_begins(self, run_id: UUID, parent_run_id: UUID | None, name: str) -> None:
        """Handle the beginning of a run; must neither raise nor block."""
        raise NotImplementedError

    def run_ends(self, run_id: UUID) -> None:
        """Handle the end of a run, successful or not."""
        raise NotImplementedError


def is_traced(manager: CallbackManager | AsyncCallbackManager) -> bool:
    """Return whether any of a manager's handlers needs the events of chains."""
    return any(
        handler.listens if isinstance(handler, RunObserver) else not handler.ignore_chain
        for handler in manager.handlers
    )


def public(value: Any, depth: int = 0) -> Any:
    """Return what handlers are told of a state: JSON, messages and records, whoever serializes it.

    What only we and the user's own process can hold, such as a frame, a session or bytes, is told by its type, and what is
    private is not told at all.
    """
    match value:
        case None | bool() | float() | Record() | BaseModel():
            return value
        case str():
            return value if value.isascii() else value.encode(errors="replace").decode()
        case int():
            return value if abs(value) < _MAX_INTEGER else hex(value)[:_MAX_DIGITS]
        case Mapping() | list() | tuple() if depth < _MAX_DEPTH:
            return _public_items(value, depth + 1)
        case os.PathLike():
            return public(os.fspath(value))
    return f"<{type(value).__name__}>"


def _public_items(value: Mapping[Any, Any] | Sequence[Any], depth: int) -> Any:
    if not isinstance(value, Mapping):
        return [public(item, depth) for item in islice(value, _MAX_ITEMS)]
    items = islice(value.items(), _MAX_ITEMS)
    return {str(key): public(item, depth) for key, item in items if key not in _PRIVATE}


def begin(
    manager: CallbackManager, inputs: Any, *, run_id: UUID | None, name: str
) -> CallbackManagerForChainRun:
    """Begin a run; handlers that are notified of its beginning are notified of its end."""
    if is_traced(manager):
        return manager.on_chain_start(None, public(inputs), run_id, name=name)
    return _Untraced(**_begin_untraced(manager, run_id, name))


async def abegin(
    manager: AsyncCallbackManager, inputs: Any, *, run_id: UUID | None, name: str
) -> AsyncCallbackManagerForChainRun:
    """Like `begin`."""
    if is_traced(manager):
        return await manager.on_chain_start(None, public(inputs), run_id, name=name)
    return _AsyncUntraced(**_begin_untraced(manager, run_id, name))


def end(run: CallbackManagerForChainRun, outputs: Any) -> None:
    """End a run."""
    run.on_chain_end(None if isinstance(run, _Untraced) else public(outputs))


async def aend(run: AsyncCallbackManagerForChainRun, outputs: Any) -> None:
    """Like `end`."""
    await run.on_chain_end(None if isinstance(run, _AsyncUntraced) else public(outputs))


class _Untraced(CallbackManagerForChainRun):
    """A run that is reported to observers only."""

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        _end(self)

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        _end(self)


class _AsyncUntraced(AsyncCallbackManagerForChainRun):
    """The async counterpart of `_Untraced`."""

    async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        _end(self)

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        _end(self)


def _begin_untraced(
    manager: CallbackManager | AsyncCallbackManager, run_id: UUID | None, name: str
) -> dict[str, Any]:
    run_id = run_id or uuid7()
    for observer in _observers(manager.handlers):
        observer.run_begins(run_id, manager.parent_run_id, name)
    return {
        "run_id": run_id,
        "handlers": manager.handlers,
        "inheritable_handlers": manager.inheritable_handlers,
        "parent_run_id": manager.parent_run_id,
        "tags": manager.tags,
        "inheritable_tags": manager.inheritable_tags,
        "metadata": manager.metadata,
        "inheritable_metadata": manager.inheritable_metadata,
    }


def _end(run: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun) -> None:
    for observer in _observers(run.handlers):
        observer.run_ends(run.run_id)


def _observers(handlers: list[BaseCallbackHandler]) -> Iterator[RunObserver]:
    return (handler for handler in handlers if isinstance(handler, RunObserver))
