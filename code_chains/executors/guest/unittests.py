"""Tests of unittest as a bench runs them."""

from __future__ import annotations

import unittest
from typing import Any


def errors_of(test: unittest.TestCase) -> list[BaseException]:
    """Run a test, and return the exceptions that it and its subtests ended with.

    Raises:
        BaseException: It ended with one that is no `Exception`, such as one that says that the program has ended.
    """
    result = _Result()
    test.run(result)
    return result.exceptions


def is_expected_to_fail(test: unittest.TestCase, name: str) -> bool:
    """Return whether `unittest.expectedFailure` decorates a test, which then decides nothing."""
    return any(
        getattr(marked, "__unittest_expecting_failure__", False) for marked in (test, getattr(test, name))
    )


class _Result(unittest.TestResult):
    """Keeps exceptions as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.exceptions = list[BaseException]()

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - the name is that of unittest
        """Note that a test was skipped."""
        self.exceptions.append(AssertionError("a test was skipped"))

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Note a failed assertion."""
        if not isinstance(err[1], Exception):
            raise err[1]
        self.exceptions.append(err[1])

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Note any other exception."""
        self.addFailure(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: N802
        """Note a subtest that failed."""
        if err is not None:
            self.addFailure(test, err)
