"""Report runs of chains to handlers.

LangChain creates a task per handler and event. Handlers that only account for runs are called directly
instead if no tracer listens, which saves up to a third of the cost of a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
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

AGENT_NAME = "code_chains_agent"
"""Key of the metadata of a run that answers a question; its value is the name of the chain."""
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


def begin(
    manager: CallbackManager, inputs: Any, *, run_id: UUID | None, name: str
) -> CallbackManagerForChainRun:
    """Begin a run; handlers that are notified of its beginning are notified of its end."""
    if is_traced(manager):
        return manager.on_chain_start(None, inputs, run_id, name=name)
    return _Untraced(**_begin_untraced(manager, run_id, name))


async def abegin(
    manager: AsyncCallbackManager, inputs: Any, *, run_id: UUID | None, name: str
) -> AsyncCallbackManagerForChainRun:
    """Like `begin`."""
    if is_traced(manager):
        return await manager.on_chain_start(None, inputs, run_id, name=name)
    return _AsyncUntraced(**_begin_untraced(manager, run_id, name))


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
