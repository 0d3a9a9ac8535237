"""Cases of unittest as a bench runs them."""

from __future__ import annotations

import unittest
from typing import Any, Protocol


class Counting(Protocol):
    """Counts assertions.

    Attributes:
        ran: How many ran.
    """

    ran: int


class Result(unittest.TestResult):
    """Keeps the names of cases that passed, and of those that failed with their errors."""

    def __init__(self, bench: Counting) -> None:
        super().__init__()
        self._bench, self._ran = bench, 0
        self.passed, self.failed = list[str](), list[tuple[str, BaseException]]()

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - the name is that of unittest
        """Remember how much was asserted before it."""
        super().startTest(test)
        self._ran = self._bench.ran

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802 - the name is that of unittest
        """Note a success, unless nothing was asserted."""
        super().addSuccess(test)
        if self._bench.ran == self._ran:
            self.failed.append((test._testMethodName, AssertionError("Nothing was asserted")))
        else:
            self.passed.append(test._testMethodName)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Note a failed assertion."""
        self.failed.append((getattr(test, "_testMethodName", ""), err[1]))

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Note any other exception."""
        self.addFailure(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Note a subtest that failed."""
        if err is not None:
            self.addFailure(test, err)
