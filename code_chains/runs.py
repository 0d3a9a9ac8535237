"""Runs of chains, and who is told of them.

LangChain tells each handler of each run by a task of its own. Where only accounts are kept, and no tracer listens, they are
told by a plain call instead, which saves up to a third of what a chain costs.
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

__all__ = ["RunKeeper", "abegin", "begin", "is_heard"]


_EVENTS = {"on_chain_start", "on_chain_end", "on_chain_error"}


class RunKeeper:
    """A callback handler that only has to know which runs there are, and what they are part of.

    Of runs of our own chains it is told by these two methods, of others by the usual events; a subclass that has events of
    its own is told of all by these.

    Attributes:
        listens: Whether it has to be told by events.
    """

    listens: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if _EVENTS & vars(cls).keys() and "listens" not in vars(cls):
            cls.listens = True

    def run_begins(self, run_id: UUID, parent_run_id: UUID | None, name: str) -> None:
        """A run begins; it neither raises nor blocks."""
        raise NotImplementedError

    def run_ends(self, run_id: UUID) -> None:
        """A run has ended, well or not."""
        raise NotImplementedError


def is_heard(manager: CallbackManager | AsyncCallbackManager) -> bool:
    """Whether any of a manager's handlers has to be told of chains by events."""
    return any(
        handler.listens if isinstance(handler, RunKeeper) else not handler.ignore_chain for handler in manager.handlers
    )


def begin(manager: CallbackManager, inputs: Any, *, run_id: UUID | None, name: str) -> CallbackManagerForChainRun:
    """Begin a run; who is told of its beginning is told of its end."""
    if is_heard(manager):
        return manager.on_chain_start(None, inputs, run_id, name=name)
    return _Unheard(**_begun(manager, run_id, name))


async def abegin(
    manager: AsyncCallbackManager, inputs: Any, *, run_id: UUID | None, name: str
) -> AsyncCallbackManagerForChainRun:
    """Like `begin`."""
    if is_heard(manager):
        return await manager.on_chain_start(None, inputs, run_id, name=name)
    return _AsyncUnheard(**_begun(manager, run_id, name))


class _Unheard(CallbackManagerForChainRun):
    """A run that only keepers know of."""

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        _end(self)

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        _end(self)


class _AsyncUnheard(AsyncCallbackManagerForChainRun):
    """The async twin of `_Unheard`."""

    async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        _end(self)

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        _end(self)


def _begun(manager: CallbackManager | AsyncCallbackManager, run_id: UUID | None, name: str) -> dict[str, Any]:
    run_id = run_id or uuid7()
    for keeper in _keepers(manager.handlers):
        keeper.run_begins(run_id, manager.parent_run_id, name)
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
    for keeper in _keepers(run.handlers):
        keeper.run_ends(run.run_id)


def _keepers(handlers: list[BaseCallbackHandler]) -> Iterator[RunKeeper]:
    return (handler for handler in handlers if isinstance(handler, RunKeeper))
