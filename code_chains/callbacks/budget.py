"""Limits on what is spent: reserved before it is spent, shared by every chain that gets the same budget."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig

from code_chains.callbacks.blocks import Block
from code_chains.callbacks.runs import RunObserver
from code_chains.callbacks.usage import ModelCall, UsageMeter, estimate_tokens
from code_chains.errors import BudgetError, BudgetLimit, ConfigurationError, check_int
from code_chains.records import Usage

T = TypeVar("T")
LIMITS = ("usd", "tokens", "model_calls", "tool_calls", "seconds", "attempts", "code_lines")
INTEGER_LIMITS = ("tokens", "model_calls", "tool_calls", "attempts", "code_lines")
"""Names of the limits, and of those that are integers."""
_POLL_INTERVAL_S, _MAX_WAIT_S = 0.02, 300.0
"""How often and how long a call checks whether it fits into what is left."""
_suppressed: set[str] = set()


class Budget(Block, UsageMeter):
    """Limits on spending, and the record of what was spent. It may be used from many threads and tasks at once.

    Pass it once to `create_code_chain(budget=…)`; there the limit that is reached becomes the `stop_reason`,
    with the best result so far. On any other LangChain chain it is a callback handler, `chain.invoke(…,
    {"callbacks": [budget]})`, and the call that would go beyond a limit raises `BudgetError` instead of being
    made. `with Budget() as budget:` counts and limits all calls in it, of every chain and model, as do blocks around it.

    Before a call its messages and the longest reply are reserved. A call that does not fit beside others in
    flight waits until they have settled; as a callback handler on an event loop, where waiting would block
    them, it fails instead (`budget.handler()` is a twin that waits). So limits of tokens and money are
    exceeded by the reply of one call at most.

    Args:
        usd: Dollars. Each model needs a known price: from `prices`, or the public list
            (the extra `prices`); the embedded ones are free.
        tokens: Input and output tokens.
        model_calls: Model calls, including failed ones.
        tool_calls: Calls that programs make to tools of the application, including failed ones.
        seconds: Wall-clock seconds from the first call on: with `per="all"` a deadline for all that follows, with
            `per="question"` a limit for each question. A call in flight is abandoned, and a program is stopped;
            in a session of a container or cloud it ends by the `Limits` of its executor.
        attempts: Attempts, over all questions that share the budget; with `samples` each asks for several
            programs.
        code_lines: Lines of one program.
        per: Whether `"all"` questions share the budget, or each `"question"` has its own; then the spending
            of each is in its own `usage`, and `spent` stays empty.
        prices: `{model name: (dollars per million input tokens, dollars per million output tokens)}`.
        reply_tokens: Tokens reserved for a reply without `max_tokens`.

    Raises:
        ConfigurationError: A limit is invalid.

    Example:
        >>> from code_chains.testing import ScriptedModel
        >>> budget, model = Budget(model_calls=1), ScriptedModel(lambda messages: "Hello.")
        >>> model.invoke("Hi", {"callbacks": [budget]}).text
        'Hello.'
        >>> model.invoke("Hi again", {"callbacks": [budget]})
        Traceback (most recent call last):
        ...
        code_chains.errors.BudgetError: The budget is exhausted (model_calls=1). Raise the limit, or use a new Budget.
    """

    reply_tokens: int

    raise_error = True
    run_inline = True

    def __init__(
        self,
        *,
        usd: float | None = None,
        tokens: int | None = None,
        model_calls: int | None = None,
        tool_calls: int | None = None,
        seconds: float | None = None,
        attempts: int | None = None,
        code_lines: int | None = None,
        per: Literal["all", "question"] = "all",
        prices: Mapping[str, tuple[float, float]] | None = None,
        reply_tokens: int = 2048,
    ) -> None:
        super().__init__(prices)
        values = (usd, tokens, model_calls, tool_calls, seconds, attempts, code_lines)
        self.limits: dict[str, float] = {
            name: _number(name, value)
            for name, value in zip(LIMITS, values, strict=True)
            if value is not None
        }
        if per not in ("all", "question"):
            raise ConfigurationError("per", per, '"all" or "question"')
        if per == "question" and not self.limits:
            raise ConfigurationError("per", per, "a limit as well, e.g. Budget(usd=0.05, per='question')")
        self.per, self.reply_tokens = per, int(_number("reply_tokens", reply_tokens))
        self._began: float | None = None
        self._begun_calls = self._begun_attempts = self._begun_tool_calls = 0
        self._reservations: dict[UUID, _Reservation] = {}
        self._settled = threading.Condition(self._lock)
        suppress_callback_errors(Budget.__name__, _OnTheLoop.__name__)

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

    @property
    def deadline(self) -> float:
        """Monotonic time at which the time is spent; infinite without a limit of time, and until its clock starts."""
        with self._lock:
            return self._began + self.limits.get("seconds", math.inf) if self._began else math.inf

    def fresh(self) -> Budget:
        """Return the same limits with nothing spent."""
        limits: dict[str, Any] = self.limits
        return Budget(**limits, per=self.per, prices=self.prices.own, reply_tokens=self.reply_tokens)

    def handler(self, *, before: Callable[[], object] = lambda: None) -> AsyncCallbackHandler:
        """Return a twin for event loops, which waits without blocking them.

        Args:
            before: Called before a call of a model is counted. What it raises is raised, and nothing is
                counted.
        """
        return _OnTheLoop(self, before)

    def begin_attempt(self) -> None:
        """Count an attempt that is about to be made.

        Raises:
            BudgetError: The limit of attempts, or that of tool calls, is reached.
        """
        with self._lock:
            self._begun_attempts += 1
            if self._begun_attempts > self.limits.get("attempts", float("inf")):
                raise BudgetError("attempts", self.limits["attempts"])
            if self._begun_tool_calls >= self.limits.get("tool_calls", float("inf")):
                raise BudgetError("tool_calls", self.limits["tool_calls"])
        self.check_time()

    def begin_tool_call(self) -> None:
        """Count a call to a tool that is about to be made.

        Raises:
            BudgetError: The limit of tool calls is reached, or no time is left.
        """
        with self._lock:
            if self._begun_tool_calls >= self.limits.get("tool_calls", math.inf):
                raise BudgetError("tool_calls", self.limits["tool_calls"])
            self._begun_tool_calls += 1
        self.check_time()

    def check_time(self) -> None:
        """Check that time is left.

        Raises:
            BudgetError: No time is left.
        """
        if (left := self.seconds_left) is not None and left <= 0:
            raise BudgetError("seconds", self.limits["seconds"])

    # -- reservations ----------------------------------------------------------------------------------------

    def _begin(
        self, run_id: UUID, parent: UUID | None, call: ModelCall, messages: Sequence[BaseMessage | str]
    ) -> None:
        # On an event loop, waiting would block the calls that it waits for.
        deadline = time.monotonic() + (0.0 if _in_a_loop() else _MAX_WAIT_S)
        while (limit := self.reserve(run_id, parent, call, messages)) is not None:
            self.raise_if_expired(deadline, limit)
            with self._settled:
                self._settled.wait(_POLL_INTERVAL_S)

    def raise_if_expired(self, until: float, limit: BudgetLimit) -> None:
        """Give up waiting for other calls after some time.

        Raises:
            BudgetError: The wait for this limit is over.
        """
        if time.monotonic() >= until:
            raise BudgetError(limit, self.limits[limit])

    def reserve(
        self, run_id: UUID, parent: UUID | None, call: ModelCall, messages: Sequence[BaseMessage | str]
    ) -> BudgetLimit | None:
        """Reserve what a call may take; return the limit for which it must wait until others settle, or None.

        Raises:
            BudgetError: It does not fit.
            ConfigurationError: There is a limit of money, and the price of the model is unknown.
        """
        if "usd" in self.limits:
            self.prices.require_price(call.model, call.provider)
        self.check_time()
        with self._lock:
            if run_id in self._reservations:  # It is attached in two places.
                return None
            if self._begun_calls >= self.limits.get("model_calls", float("inf")):
                raise BudgetError("model_calls", self.limits["model_calls"])
            input_tokens, output_tokens = estimate_tokens(messages), call.max_tokens or self.reply_tokens
            if (limit := self._blocking_limit(call, input_tokens)) is not None:
                return limit
            needs = {
                "tokens": float(input_tokens + output_tokens),
                "usd": self._cost(call, input_tokens, output_tokens),
            }
            owner = None if _in_a_loop() else threading.current_thread()
            self._reservations[run_id] = _Reservation(needs, owner)
            self._begun_calls += 1
            super()._begin(run_id, parent, call, messages)
        return None

    def _blocking_limit(self, call: ModelCall, input_tokens: int) -> BudgetLimit | None:
        """Return the limit for which a call must wait until those in flight settle; None if it may begin."""
        self._reservations = {
            run_id: reservation for run_id, reservation in self._reservations.items() if reservation.is_alive
        }
        me = threading.current_thread()
        others = call.is_single and any(
            reservation.owner is not me for reservation in self._reservations.values()
        )
        all_needs: dict[BudgetLimit, float] = {
            "tokens": float(input_tokens),
            "usd": self._cost(call, input_tokens, 0),
        }
        for name, needs in all_needs.items():
            limit = self.limits.get(name, float("inf"))
            reserved = sum(reservation.needs[name] for reservation in self._reservations.values())
            if self._used(name) + needs > limit or self._used(name) >= limit:
                raise BudgetError(name, limit)
            if self._reservations and self._used(name) + reserved + needs > limit:
                if not others:  # Nobody else will settle.
                    raise BudgetError(name, limit)
                return name
        return None

    def _used(self, name: str) -> float:
        if name == "usd":
            return self._usd or 0.0
        return sum(sum(tokens.values()) for tokens in self._models.values())

    def _cost(self, call: ModelCall, input_tokens: int, output_tokens: int) -> float:
        if "usd" not in self.limits:
            return 0.0
        return self.prices.cost(call.model, call.provider, input_tokens, output_tokens) or 0.0

    def _end(self, run_id: UUID) -> Any:
        self._reservations.pop(run_id, None)
        self._settled.notify_all()
        return super()._end(run_id)

    def _take_back(self, run_id: UUID) -> None:
        super()._take_back(run_id)
        self._begun_calls -= 1


@dataclass(frozen=True)
class _Reservation:
    """What is reserved for a call.

    Attributes:
        needs: Tokens and dollars, at most.
        owner: The thread of the call, which it does not outlive; None on an event loop.
    """

    needs: Mapping[str, float]
    owner: threading.Thread | None

    @property
    def is_alive(self) -> bool:
        """Whether its owner can still settle it."""
        return self.owner is None or self.owner.is_alive()


class _OnTheLoop(AsyncCallbackHandler, RunObserver):
    """A budget as an async callback handler."""

    raise_error = True
    listens = False

    def __init__(self, budget: Budget, before: Callable[[], object]) -> None:
        self.budget, self._before = budget, before

    def run_begins(self, run_id: UUID, parent_run_id: UUID | None, name: str) -> None:
        """Forward the event."""
        self.budget.run_begins(run_id, parent_run_id, name)

    def run_ends(self, run_id: UUID) -> None:
        """Forward the event."""
        self.budget.run_ends(run_id)

    async def _begin(self, kwargs: Mapping[str, Any], messages: Sequence[BaseMessage | str]) -> None:
        self._before()
        call, deadline = ModelCall.from_event(kwargs), time.monotonic() + _MAX_WAIT_S
        run_id, parent = kwargs["run_id"], kwargs.get("parent_run_id")
        while (limit := self.budget.reserve(run_id, parent, call, messages)) is not None:
            self.budget.raise_if_expired(deadline, limit)
            await asyncio.sleep(_POLL_INTERVAL_S)  # What it waits for may settle in any thread.

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """Reserve a call."""
        await self._begin(kwargs, messages[0] if messages else [])

    async def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], **kwargs: Any) -> None:
        """Reserve a call."""
        await self._begin(kwargs, prompts)

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Settle a call."""
        self.budget.on_llm_end(response, **kwargs)

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Settle a failed call."""
        self.budget.on_llm_error(error, **kwargs)

    async def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        """Forward the event."""
        self.budget.on_chain_start(serialized, inputs, **kwargs)

    async def on_chain_end(self, outputs: dict[str, Any], **kwargs: Any) -> None:
        """Forward the event."""
        self.budget.on_chain_end(outputs, **kwargs)

    async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        """Forward the event."""
        self.budget.on_chain_error(error, **kwargs)


def handlers_of(config: RunnableConfig) -> Sequence[BaseCallbackHandler]:
    """Return the callback handlers that listen to a run."""
    callbacks = config.get("callbacks") or []
    return callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else callbacks


def find_budgets(config: RunnableConfig) -> list[Budget]:
    """Return the budgets that listen to a run."""
    handlers = handlers_of(config)
    budgets = [handler.budget if isinstance(handler, _OnTheLoop) else handler for handler in handlers]
    return list({id(budget): budget for budget in budgets if isinstance(budget, Budget)}.values())


def count_attempt(config: RunnableConfig) -> None:
    """Count an attempt on the budgets that listen to a run.

    Raises:
        BudgetError: The limit of attempts is reached, or no time is left.
    """
    for budget in find_budgets(config):
        budget.begin_attempt()


def _number(name: str, value: object) -> float:
    if name in (*INTEGER_LIMITS, "reply_tokens"):
        return check_int(name, value, "a whole number greater than 0, or None for no limit", minimum=1)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise ConfigurationError(name, value, "a number greater than 0, or None for no limit")
    return value


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def suppress_callback_errors(*handlers: str) -> None:
    """Stop LangChain from logging the exceptions with which these callback handlers refuse a call."""
    _suppressed.update(handlers)
    logger = logging.getLogger("langchain_core.callbacks.manager")
    if _is_not_suppressed not in logger.filters:
        logger.addFilter(_is_not_suppressed)


def _is_not_suppressed(record: logging.LogRecord) -> bool:
    return not record.args or next(iter(record.args)) not in _suppressed
