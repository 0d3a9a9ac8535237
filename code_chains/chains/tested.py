"""Verdicts of tests and examples, for `EvaluateChain`: which failed, were broken, or decided nothing."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from pydantic import BaseModel, ValidationError

from code_chains.errors import ExecutorError
from code_chains.executors.guest import comparing
from code_chains.records import ErrorReport, Execution, TestResult, Verdict
from code_chains.records.printable import strip_control_chars
from code_chains.storage.foreign import parse_json
from code_chains.verification.expectations.examples import Example
from code_chains.verification.expectations.given import Expectations

_MAX_TEXT = 500
_MAX_LOST = 10
"""Tests that may end their runs; each costs a run of all that are left."""


Reason = Literal["endless", "ended", "waited", "output_limit", "memory"]


@dataclass(frozen=True)
class LostTest:
    """A test that ended its run, so that it has no outcome of its own.

    Attributes:
        key: Its line and name, by which it is skipped.
        result: How it ended.
        reason: The program spent the processor time of a test (`endless`), met a limit (`output_limit`, `memory`) or ended
            itself (`ended`), or the test met the limit of wall time (`waited`), which may be the fault of a busy machine.
    """

    key: str
    result: TestResult
    reason: Reason


@dataclass(frozen=True)
class TestRun:
    """How the tests of a program ended.

    Attributes:
        verdict: The verdict.
        program: The last run of the program.
        tests: That of the tests.
        lost: The tests that ended their run.
    """

    __test__ = False  # It is not itself a test of pytest.

    verdict: Verdict
    program: Execution
    tests: Execution
    lost: tuple[LostTest, ...] = ()


Testing = Generator[list[str], tuple[Execution, Execution], TestRun]
"""Yields which tests to skip, and takes what the others found; see `testing`."""


def testing(expectations: Expectations) -> Testing:
    """Yield which tests to skip in a run, and then also the one that ended it, until each test has an outcome.

    Args:
        expectations: What is tested.

    Yields:
        The tests to skip, by line and name; send the runs of the program and of the tests.

    Returns:
        How the tests ended. After a test that waited, or ten that were lost, the others are not run.
    """
    lost = list[LostTest]()
    while True:
        program, tests = yield [test.key for test in lost]
        found = _lost_test(program, tests)
        if found is not None:
            lost.append(found)
        if found is None or found.reason == "waited" or len(lost) == _MAX_LOST:
            verdict = verdict_of_tests(program, tests, expectations, lost)
            return TestRun(verdict, program, tests, tuple(lost))


def _lost_test(program: Execution, tests: Execution) -> LostTest | None:
    """Return the test that ended a run, if one did."""
    ended = _report(tests).ended
    if ended is None:
        return None
    reason: Reason
    place = f"The test in line {ended.line}"
    if ended.waited:
        said, reason = f"{place} waited too long, or the machine is busy: try again", "waited"
    elif program.status == "timeout":
        said, reason = f"{place} did not end: {program.summary}", "endless"
    else:
        said = f"{place} ended the program: {program.summary}"
        reason = program.status if program.status in ("output_limit", "memory") else "ended"
    result = TestResult(
        ended.name, "error" if ended.waited else "fail", said, test_code=ended.test_code, line=ended.line
    )
    return LostTest(ended.key, result, reason)


def verdict_of_tests(
    program: Execution, tests: Execution, expectations: Expectations, lost: Sequence[LostTest] = ()
) -> Verdict:
    """Return the verdict of tests.

    Args:
        program: The run of the program.
        tests: That of the tests.
        expectations: What they test.
        lost: Tests that ended an earlier run, or this one.
    """
    report = _report(tests)
    weak, broken, results = report.weak, report.broken, report.tests
    if lost:
        return _verdict_of_lost((*results, *(test.result for test in lost)))
    if not tests.ok and broken:
        reason = f"{_sentence(broken)} Whether the program is right is not known: change the test."
        return Verdict("unverified", "tests", reason, tests=results)
    # What it had defined by then may be right.
    if not program.ok and not (program.status == "error" and results and expectations.are_calls):
        return Verdict("failed", "tests", f"While it was tested: {program.summary}", tests=results)
    if tests.ok and not (results and all(result.status == "pass" for result in results)):
        # A machine of somebody else may say so.
        reason = "The tests were said to hold, and not each of them is reported to have passed."
        return Verdict("unverified", "tests", reason, tests=results)
    if not tests.ok:
        reason = _failed_assertion(tests.error) if tests.error else tests.summary
        ended = "" if program.ok else f" The program ended with {program.summary}"
        return Verdict("failed", "tests", f"{reason}{ended}", tests=results)
    if program.isolation is None or program.isolation.level == "none":
        reason = "The tests hold, but without isolation the program could have tampered with them."
        return Verdict("plausible", "tests", reason, tests=results)
    if weak:
        return Verdict(
            "plausible", "tests", f"The tests hold, but {weak[:1].lower()}{weak[1:]}", tests=results
        )
    return replace(
        _verified(expectations, "" if program.ok else f" Its own last run ended with {program.summary}"),
        tests=results,
    )


def verdict_of_runs(verdict: Verdict, runs: Sequence[Execution], expectations: Expectations) -> Verdict:
    """Return the verdict of examples of what a program prints, after that of the tests."""
    compared = zip(expectations.runs, runs, strict=True)
    results = [_result(number, example, run) for number, (example, run) in enumerate(compared, 1)]
    failed = [result.message for result in results if result.status != "pass"]
    tests = (*verdict.tests, *results)
    if not failed:
        return replace(verdict if verdict.reason else _verified(expectations), tests=tests)
    if len(failed) == 1:
        return Verdict("failed", "tests", _sentence(failed[0]), tests=tests)
    reason = f"{len(failed)} of {len(results)} examples failed: {'; '.join(failed[:3])}"
    return Verdict("failed", "tests", _sentence(reason), tests=tests)


def _result(number: int, example: Example, run: Execution) -> TestResult:
    """Return how a run of the program on an example ended."""
    name, printed, expected = str(example), run.stdout, example.output or ""
    given = f"With the {name.split(' prints ')[0]}"
    if not run.ok:
        message = f"{given} the run ended: {run.summary}"
        return TestResult(name, "fail", message, line=number, seconds=run.duration)
    if comparing.same_output(printed, expected, example.compare, example.tolerance):
        return TestResult(name, "pass", output=printed[:_MAX_TEXT], line=number, seconds=run.duration)
    hint = comparing.beside(printed, expected) if example.compare == "lines" else ""
    hint = hint or comparing.difference(printed, expected)
    message = f"{given} it printed {printed[:200]!r}, expected {expected[:200]!r}"
    told = f"{message}: {hint}" if hint else message
    return TestResult(name, "fail", told, printed[:_MAX_TEXT], line=number, seconds=run.duration)


def _verified(expectations: Expectations, ended: str = "") -> Verdict:
    kind = "tests" if expectations.tests.body else "examples"
    if expectations.count > 1:
        return Verdict(
            "verified", "tests", f"The program gives what {expectations.count} {kind} expect.{ended}"
        )
    return Verdict("verified", "tests", f"The program gives what the {kind[:-1]} expects.{ended}")


def _verdict_of_lost(results: Sequence[TestResult]) -> Verdict:
    """Return the verdict of tests of which some ended their run: a failure wins over one that only waited."""
    results = tuple(sorted(results, key=attrgetter("line")))
    failed = [result.message for result in results if result.status == "fail"]
    if not failed:
        waited = next(result.message for result in results if result.status == "error")
        return Verdict("unverified", "tests", _sentence(waited), tests=results)
    said = "; ".join(message.rstrip(".") for message in failed[:3])
    reason = said if len(failed) == 1 else f"{len(failed)} of {len(results)} tests failed: {said}"
    return Verdict("failed", "tests", _sentence(reason), tests=results)


class _Ended(BaseModel):
    key: str
    line: int
    waited: bool
    name: str = ""
    test_code: str = ""


class _Report(BaseModel):
    """What the harness reports, which a machine of somebody else may have written; see `executors.guest.bench`."""

    tests: tuple[TestResult, ...] = ()
    weak: str = ""
    broken: str = ""
    ended: _Ended | None = None


def _report(tests: Execution) -> _Report:
    """Return what the harness has reported; nothing if it did not get so far.

    Raises:
        ExecutorError: It is no such report.
    """
    try:
        report = parse_json(tests.result or "{}")
    except ValueError:
        return _Report()
    if not isinstance(report, dict):
        return _Report()
    try:
        return _Report.model_validate({key: value for key, value in report.items() if value})
    except (ValidationError, RecursionError) as error:
        raise ExecutorError(
            "The executor's report of the tests cannot be read.", is_retryable=True
        ) from error


def _failed_assertion(error: ErrorReport) -> str:
    """Describe a failed test, with the place in the program if it is known."""
    if error.type == "AssertionError":
        return _sentence(error.message or "An assertion does not hold")
    where = error.traceback.rpartition(error.message)[2].strip() if error.message else ""
    return _sentence(f"A test ended with {error}{f', {where}' if where else ''}")


def _sentence(text: str) -> str:
    """Return a text of tests and programs as a sentence, without control characters."""
    text = strip_control_chars(text)
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
