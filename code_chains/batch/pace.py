"""How fast questions are asked: rates, a cool-down that all workers share, and when a run is hopeless."""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from code_chains.batch.records import Answer
from code_chains.errors import ConfigurationError

MAX_COOL_DOWN_S, MAX_GUESS_S = 3600.0, 20.0
"""How long all wait at most, as a provider says, and as it is guessed."""
WINDOW_S = 60.0
"""Seconds over which rates are counted."""
MAX_HOPELESS, FIRST_HOPELESS = 5, 2
"""Failures in a row that no other question would be spared, after an answer and before the first one."""
CAREFUL, CAREFUL_S = 2, 0.5
"""Questions at once in the first seconds, or until one did not fail hopelessly, so that a wrong key costs a few requests."""
MIN_FOR_SHARE = 20
"""Questions of which a share may fail before the share counts."""
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*(requests|tokens)?", re.IGNORECASE)


@dataclass(frozen=True)
class Rate:
    """How much may be asked in a minute.

    Attributes:
        requests: Calls of models; None for any number.
        tokens: Tokens; None for any number.
    """

    requests: float | None = None
    tokens: float | None = None

    @classmethod
    def parse(cls, *limits: str) -> Rate:
        """Read limits such as `60`, `60 requests` and `90000 tokens`, all of them a minute.

        Raises:
            ConfigurationError: One of them is something else.
        """
        values = dict[str, float]()
        for limit in limits:
            match = _LIMIT.fullmatch(limit.strip().removesuffix("/min"))
            if match is None or not float(match[1]):
                raise ConfigurationError(
                    "rate", limit, 'a number a minute, e.g. "60 requests" or "90000 tokens"'
                )
            values[(match[2] or "requests").lower()] = float(match[1])
        return cls(**values)


ANY_RATE = Rate()


class Pace(BaseCallbackHandler):
    """Says when the next question may start, and lets the requests of running ones wait as well.

    Args:
        rate: The limits.
        max_errors: The number of questions that may fail, or below 1 their share; None for any number.
    """

    def __init__(self, rate: Rate, max_errors: float | None) -> None:
        self._rate, self._max_errors = rate, max_errors
        self._spent: deque[tuple[float, int, int]] = deque()
        self._cool_until, self._level = 0.0, 0
        self._answered = self._failed = self._in_a_row = 0
        self._is_proven, self._careful_until = False, 0.0

    @property
    def is_careful(self) -> bool:
        """Whether few questions may run: until one did not fail hopelessly, or not at once."""
        is_early = not self._careful_until or time.monotonic() < self._careful_until
        return not self._is_proven and (is_early or self._in_a_row > 0)

    @property
    def wait(self) -> float:
        """Seconds until a question may start; 0 if one may start now."""
        now = time.monotonic()
        return max(0.0, self._cool_until - now, self._rate_wait(now))

    @property
    def cooling(self) -> float:
        """Seconds for which all wait, as the provider asked them to or could not answer."""
        return max(0.0, self._cool_until - time.monotonic())

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        """Wait while all wait; LangChain calls this before each request."""
        while self.cooling:
            time.sleep(0.1)

    def _rate_wait(self, now: float) -> float:
        if self._rate == ANY_RATE:
            return 0.0
        while self._spent and self._spent[0][0] <= now - WINDOW_S:
            self._spent.popleft()
        requests, tokens = sum(each[1] for each in self._spent), sum(each[2] for each in self._spent)
        is_over = requests >= (self._rate.requests or float("inf")) or tokens >= (
            self._rate.tokens or float("inf")
        )
        return self._spent[0][0] + WINDOW_S - now if is_over and self._spent else 0.0

    def start(self) -> None:
        """Note that a question starts, which takes one request at least."""
        now = time.monotonic()
        self._careful_until = self._careful_until or now + CAREFUL_S
        self._spend(now, 1, 0)

    def _spend(self, now: float, requests: int, tokens: int) -> None:
        if self._rate != ANY_RATE:  # Else nobody would remove it.
            self._spent.append((now, requests, tokens))

    def spend(self, answer: Answer) -> None:
        """Note what an answer took besides the request that was noted at its start."""
        self._spend(time.monotonic(), max(0, answer.usage.model_calls - 1), answer.usage.tokens)

    def add(self, answer: Answer) -> None:
        """Note how a question ended."""
        self._level = 0
        self._is_proven = self._is_proven or answer.failure != "hopeless"
        self._answered += 1
        self._failed += bool(answer.error)
        self._in_a_row = self._in_a_row + 1 if answer.failure == "hopeless" else 0

    def cool(self, answer: Answer, started: float) -> None:
        """Let all wait after a failure that passes: as long as the provider says, or twice as long as the last time.

        Args:
            answer: The answer.
            started: When its question started; those that failed before everybody waited are one failure.
        """
        now = time.monotonic()
        if started >= self._cool_until:
            self._level += 1
            self._cool_until = now + min(
                answer.retry_after or min(2.0**self._level, MAX_GUESS_S), MAX_COOL_DOWN_S
            )
        elif answer.retry_after:
            self._cool_until = max(self._cool_until, now + min(answer.retry_after, MAX_COOL_DOWN_S))

    @property
    def is_hopeless(self) -> bool:
        """Whether no further question should be asked."""
        if self._in_a_row >= (MAX_HOPELESS if self._is_proven else FIRST_HOPELESS):
            return True
        if self._max_errors is None:
            return False
        if self._max_errors < 1:
            return self._answered >= MIN_FOR_SHARE and self._failed > self._max_errors * self._answered
        return self._failed > self._max_errors
