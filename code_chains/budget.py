"""One budget over everything: reserved before it is spent, shared by whatever it is passed to."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig

from code_chains.errors import BudgetError, ConfigurationError
from code_chains.runs import RunKeeper
from code_chains.state import StopReason, Usage
from code_chains.usage import Asked, UsageMeter

__all__ = [
    "LIMITS",
    "WHOLE",
    "Budget",
    "awithin",
    "count_attempt",
    "find_budgets",
    "hush",
    "stream_within",
    "timed",
    "within",
]

T = TypeVar("T")
LIMITS = ("usd", "tokens", "model_calls", "seconds", "attempts", "code_lines")
WHOLE = ("tokens", "model_calls", "attempts", "code_lines")
"""Names of the limits, and of those that are whole numbers."""
_PAUSE, _PATIENCE = 0.02, 300.0
"""Seconds between looks at whether a call fits by now, and until that is given up."""


class Budget(UsageMeter):
    """Limits on what may be spent, and the account of what was. It may be used from many threads and tasks at once.

    Pass it once to `create_code_chain(budget=…)`; there the limit that is reached becomes the `stop_reason`, with the best
    result so far. On any other LangChain chain it is a callback handler, `chain.invoke(…, {"callbacks": [budget]})`, and the
    call that would go beyond a limit raises `BudgetError` instead of being made.

    Before a call its messages and the longest reply are reserved. A call that does not fit beside others that are under way
    waits until they have settled; as a callback handler on an event loop, where waiting would block them, it fails instead
    (`budget.handler()` is a twin that waits). So limits of tokens and money are overshot by the reply of one
    call at most.

    Args:
        usd: Dollars. Each model needs a known price: from `prices`, or the public list (`code-chains[prices]`); the embedded
            ones are free.
        tokens: Tokens, read and written.
        model_calls: Calls of models, those that fail included.
        seconds: Wall-clock seconds from the first call on. A call under way is given up; a program under way ends by the
            `Limits` of its executor.
        attempts: Attempts, over all questions that share the budget; with `samples` each asks for several programs.
        code_lines: Lines of one program.
        per: What shares the budget: `"all"` questions together, or each `"question"` has it for itself; then the account of
            each is in its own `usage`, and `spent` stays empty.
        prices: `{model name: (dollars for a million tokens read, dollars for a million written)}`.
        reply_tokens: What is reserved for a reply whose length is not limited by `max_tokens`.

    Raises:
        ConfigurationError: A limit is none.

    Example:
        >>> from code_chains.testing import ScriptedModel
        >>> budget, model = Budget(model_calls=1), ScriptedModel(lambda messages: "Hello.")
        >>> model.invoke("Hi", {"callbacks": [budget]}).text
        'Hello.'
        >>> model.invoke("Hi again", {"callbacks": [budget]})
        Traceback (most recent call last):
        ...
        code_chains.errors.BudgetError: The budget's limit of 1 model calls is reached.
    """

    raise_error = True
    run_inline = True

    def __init__(
        self,
        *,
        usd: float | None = None,
        tokens: int | None = None,
        model_calls: int | None = None,
        seconds: float | None = None,
        attempts: int | None = None,
        code_lines: int | None = None,
        per: Literal["all", "question"] = "all",
        prices: Mapping[str, tuple[float, float]] | None = None,
        reply_tokens: int = 2048,
    ) -> None:
        super().__init__(prices)
        given = (usd, tokens, model_calls, seconds, attempts, code_lines)
        self.limits: dict[str, float] = {
            name: _number(name, value) for name, value in zip(LIMITS, given, strict=True) if value is not None
        }
        if per not in ("all", "question"):
            raise ConfigurationError("per", per, '"all" or "question"')
        self.per, self.reply_tokens = per, int(_number("reply_tokens", reply_tokens))
        self._began: float | None = None
        self._begun_calls = self._begun_attempts = 0
        self._estimated = 0.0
        self._held: dict[UUID, _Hold] = {}
        self._settled = threading.Condition(self._lock)
        hush(Budget.__name__, _OnTheLoop.__name__)

    @property
    def spent(self) -> Usage:
        """What was spent so far."""
        return self.usage

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the limit of time; None without one. The clock starts with the first call."""
        if "seconds" not in self.limits:
            return None
        with self._lock:
            self._began = self._began or time.monotonic()
            return self._began + self.limits["seconds"] - time.monotonic()

    def fresh(self) -> Budget:
        """The same limits with nothing spent."""
        limits: dict[str, Any] = self.limits
        return Budget(**limits, per=self.per, prices=self.prices.given, reply_tokens=self.reply_tokens)

    def handler(self, *, before: Callable[[], object] = lambda: None) -> AsyncCallbackHandler:
        """What listens for it in event loops: a twin that waits without blocking them.

        Args:
            before: Called before a call of a model is counted. What it raises is raised, and nothing is counted.
        """
        return _OnTheLoop(self, before)

    def begin_attempt(self) -> None:
        """Count an attempt that is about to be made.

        Raises:
            BudgetError: There were as many as are allowed.
        """
        with self._lock:
            self._begun_attempts += 1
            if self._begun_attempts > self.limits.get("attempts", float("inf")):
                raise BudgetError("attempts", self.limits["attempts"])
        self.check_time()

    def check_time(self) -> None:
        """Insist that time is left.

        Raises:
            BudgetError: There is none.
        """
        if (left := self.seconds_left) is not None and left <= 0:
            raise BudgetError("seconds", self.limits["seconds"])

    # -- accounts ---------------------------------------------------------------------------------------------------------

    def _begin(self, run_id: UUID, parent: UUID | None, asked: Asked, messages: Sequence[BaseMessage | str]) -> None:
        patience = time.monotonic() + (0 if _in_a_loop() else _PATIENCE)  # On a loop it would block what it waits for.
        while not self.reserve(run_id, parent, asked, messages):
            self.lose_patience(patience)
            with self._settled:
                self._settled.wait(_PAUSE)

    def lose_patience(self, until: float) -> None:
        """Give up waiting for other calls after some time.

        Raises:
            BudgetError: The time has come.
        """
        if time.monotonic() >= until:
            name: StopReason = "tokens" if "tokens" in self.limits else "usd"
            raise BudgetError(name, self.limits[name])

    def reserve(self, run_id: UUID, parent: UUID | None, asked: Asked, messages: Sequence[BaseMessage | str]) -> bool:
        """Reserve what a call may take; False where it must wait for others to settle.

        Raises:
            BudgetError: It does not fit.
            ConfigurationError: There is a limit of money, and the price of the model is not known.
        """
        if "usd" in self.limits:
            self.prices.demand(asked.model, asked.provider)
        self.check_time()
        with self._lock:
            if run_id in self._held:  # It is attached in two places.
                return True
            if self._begun_calls >= self.limits.get("model_calls", float("inf")):
                raise BudgetError("model_calls", self.limits["model_calls"])
            read, most = _tokens(messages), asked.most or self.reply_tokens
            if not self._fits(asked, read):
                return False
            needs = {"tokens": float(read + most), "usd": self._cost(asked, read, most)}
            owner = None if _in_a_loop() else threading.current_thread()
            above = frozenset(run for run, _ in self._above(parent))
            self._held[run_id] = _Hold(needs, read, owner, above)
            self._begun_calls += 1
            super()._begin(run_id, parent, asked, messages)
        return True

    def _fits(self, asked: Asked, read: int) -> bool:
        """Whether a call may begin beside those that are under way; False where others have to settle first."""
        self._held = {run_id: hold for run_id, hold in self._held.items() if hold.lives}
        me = threading.current_thread()
        others = asked.alone and any(hold.owner is not me for hold in self._held.values())
        for name, needs in (("tokens", float(read)), ("usd", self._cost(asked, read, 0))):
            limit = self.limits.get(name, float("inf"))
            held = sum(hold.needs[name] for hold in self._held.values())
            if self._used(name) + needs > limit or self._used(name) >= limit:
                raise BudgetError(name, limit)  # type: ignore[arg-type]
            if self._held and self._used(name) + held + needs > limit:
                if not others:  # Nobody else will settle.
                    raise BudgetError(name, limit)  # type: ignore[arg-type]
                return False
        return True

    def _used(self, name: str) -> float:
        if name == "usd":
            return self._usd or 0.0
        return sum(sum(tokens.values()) for tokens in self._models.values()) + self._estimated

    def _cost(self, asked: Asked, read: int, written: int) -> float:
        return (self.prices.cost(asked.model, asked.provider, read, written) or 0.0) if "usd" in self.limits else 0.0

    def run_ends(self, run_id: UUID) -> None:
        """What was held for calls of a run that has ended is free again, even if nobody said how they ended."""
        super().run_ends(run_id)
        self._release(run_id)

    def _release(self, run_id: UUID) -> None:
        with self._settled:
            for call in [call for call, hold in self._held.items() if run_id in hold.above]:
                del self._held[call]
                self._asked.pop(call, None)
            self._settled.notify_all()

    def _settle(self, run_id: UUID, asked: Asked, message: AIMessage, counts: dict[str, int]) -> None:
        hold, known = self._held.pop(run_id, None), self._usd
        super()._settle(run_id, asked, message, counts)
        if hold and not message.usage_metadata:  # It keeps no account: it is estimated.
            written = count_tokens_approximately([message])
            self._estimated += hold.read + written
            if "usd" in self.limits:
                self._usd = (known or 0.0) + self._cost(asked, hold.read, written)
        self._settled.notify_all()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A call came to nothing; what was read of it is counted where it began to reply."""
        super().on_llm_error(error, run_id=run_id, **kwargs)
        with self._settled:
            hold = self._held.pop(run_id, None)
            response = kwargs.get("response")
            if hold and isinstance(response, LLMResult) and response.generations and response.generations[0]:
                self._estimated += hold.read
            self._settled.notify_all()


@dataclass(frozen=True)
class _Hold:
    """What is reserved for a call.

    Attributes:
        needs: Tokens and dollars at most.
        read: Tokens of its messages.
        owner: The thread that makes it, which it does not outlive; None on an event loop.
        above: The runs that it is part of.
    """

    needs: Mapping[str, float]
    read: int
    owner: threading.Thread | None
    above: frozenset[UUID]

    @property
    def lives(self) -> bool:
        """Whether somebody is still there to settle it."""
        return self.owner is None or self.owner.is_alive()


class _OnTheLoop(AsyncCallbackHandler, RunKeeper):
    """A budget as event loops hear it."""

    raise_error = True
    listens = False

    def __init__(self, budget: Budget, before: Callable[[], object]) -> None:
        self.budget, self._before = budget, before

    def run_begins(self, run_id: UUID, parent_run_id: UUID | None, name: str) -> None:
        """A stage begins."""
        self.budget.run_begins(run_id, parent_run_id, name)

    def run_ends(self, run_id: UUID) -> None:
        """A stage has ended."""
        self.budget.run_ends(run_id)

    async def _begin(self, kwargs: Mapping[str, Any], messages: Sequence[BaseMessage | str]) -> None:
        self._before()
        asked, patience = Asked.read(kwargs), time.monotonic() + _PATIENCE
        while not self.budget.reserve(kwargs["run_id"], kwargs.get("parent_run_id"), asked, messages):
            self.budget.lose_patience(patience)
            await asyncio.sleep(_PAUSE)  # What it waits for may settle in any thread.

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """A chat model is called."""
        await self._begin(kwargs, messages[0] if messages else [])

    async def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], **kwargs: Any) -> None:
        """A model that completes text is called."""
        await self._begin(kwargs, prompts)

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """A call has ended."""
        self.budget.on_llm_end(response, **kwargs)

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """A call came to nothing."""
        self.budget.on_llm_error(error, **kwargs)

    async def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        """A stage begins."""
        self.budget.on_chain_start(serialized, inputs, **kwargs)

    async def on_chain_end(self, outputs: dict[str, Any], **kwargs: Any) -> None:
        """A stage has ended."""
        self.budget.on_chain_end(outputs, **kwargs)

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """A stage has failed."""
        self.budget.on_chain_error(error, **kwargs)


def find_budgets(config: RunnableConfig) -> list[Budget]:
    """The budgets that listen to a run."""
    callbacks = config.get("callbacks") or []
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks
    found = [handler.budget if isinstance(handler, _OnTheLoop) else handler for handler in handlers]
    return list({id(one): one for one in found if isinstance(one, Budget)}.values())


def count_attempt(config: RunnableConfig) -> None:
    """Count an attempt on the budgets that listen to a run.

    Raises:
        BudgetError: There were as many as are allowed, or no time is left.
    """
    for budget in find_budgets(config):
        budget.begin_attempt()


def timed(config: RunnableConfig) -> Budget | None:
    """The budget that listens to a run and has the least time left; None where time is not limited."""
    limited = [budget for budget in find_budgets(config) if "seconds" in budget.limits]
    return min(limited, key=lambda budget: budget.seconds_left or 0.0, default=None)


def within(budget: Budget, function: Callable[[], T]) -> T:
    """Call a function in a thread and wait for it no longer than the budget has time.

    Raises:
        BudgetError: It took longer. It goes on by itself, and nobody hears of it.
    """
    return next(stream_within(budget, lambda: iter([function()])))


def stream_within(budget: Budget, begin: Callable[[], Iterator[T]]) -> Iterator[T]:
    """What an iterator yields in a thread, as long as the budget has time.

    Raises:
        BudgetError: It took longer. It goes on by itself, and nobody hears of it.
    """
    told: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
    left = threading.Event()

    def run() -> None:
        try:
            for item in begin():
                if left.is_set():
                    return
                told.put((item, None))
            told.put((None, StopIteration()))
        except BaseException as error:
            told.put((None, error))

    budget.check_time()
    threading.Thread(target=partial(contextvars.copy_context().run, run), daemon=True, name="within a budget").start()
    try:
        while True:
            try:
                item, error = told.get(timeout=max(0.0, budget.seconds_left or 0.0))
            except queue.Empty:
                raise BudgetError("seconds", budget.limits["seconds"]) from None
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        left.set()


async def awithin(budget: Budget, call: Awaitable[T]) -> T:
    """Await something no longer than the budget has time; then it is cancelled.

    Raises:
        BudgetError: It took longer.
    """
    try:
        async with asyncio.timeout(max(0.0, budget.seconds_left or 0.0)) as clock:
            return await call
    except TimeoutError:
        if clock.expired():
            raise BudgetError("seconds", budget.limits["seconds"]) from None
        raise


def _number(name: str, value: object) -> float:
    whole = name in (*WHOLE, "reply_tokens")
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < float("inf"):
        raise ConfigurationError(
            name, value, f"a{' whole' if whole else ''} number greater than 0, or None for no limit"
        )
    return value


def _tokens(messages: Sequence[BaseMessage | str]) -> int:
    return count_tokens_approximately(
        [message if isinstance(message, BaseMessage) else ("user", message) for message in messages]
    )


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_hushed: set[str] = set()


def hush(*handlers: str) -> None:
    """What these callback handlers refuse is told by an exception; LangChain would log it as a broken callback as well."""
    logger = logging.getLogger("langchain_core.callbacks.manager")
    _hushed.update(handlers)
    if _not_hushed not in logger.filters:
        logger.addFilter(_not_hushed)


def _not_hushed(record: logging.LogRecord) -> bool:
    return not record.args or next(iter(record.args)) not in _hushed
