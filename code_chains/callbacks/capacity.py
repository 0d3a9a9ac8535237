"""Refuse questions while the executor is at capacity, before anything is spent on a model."""

from __future__ import annotations

from collections.abc import Callable

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler

from code_chains.callbacks.budget import suppress_callback_errors


class CapacityCheck(BaseCallbackHandler):
    """Refuse a question before its first model call, if the executor would refuse its program now.

    Args:
        check_capacity: Raises if a program would be refused.
    """

    raise_error = ignore_chain = True

    def __init__(self, check_capacity: Callable[[], object]) -> None:
        self._check_capacity = check_capacity
        self._passed = False
        suppress_callback_errors(CapacityCheck.__name__, AsyncCapacityCheck.__name__)

    def check(self) -> None:
        """Raise if the executor is at capacity; check once per question."""
        if not self._passed:
            self._check_capacity()
            self._passed = True

    def on_chat_model_start(self, *_: object, **__: object) -> None:
        """Check before a model is called."""
        self.check()

    on_llm_start = on_chat_model_start


class AsyncCapacityCheck(AsyncCallbackHandler):
    """The async counterpart; not inline, as LangChain would leave other handlers unawaited if it raised."""

    raise_error = ignore_chain = True

    def __init__(self, capacity_check: CapacityCheck) -> None:
        self._capacity_check = capacity_check

    async def on_chat_model_start(self, *_: object, **__: object) -> None:
        """Check before a model is called."""
        self._capacity_check.check()

    on_llm_start = on_chat_model_start
