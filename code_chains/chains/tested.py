"""Verdicts of tests and examples, for `EvaluateChain`: which failed, were broken, or decided nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from code_chains.callbacks.redaction import strip_control_chars
from code_chains.executors.guest import comparing
from code_chains.records import ErrorReport, Execution, TestResult, Verdict
from code_chains.verification.expectations.examples import Example
from code_chains.verification.expectations.given import Expectations

_MAX_TEXT = 500


def verdict_of_tests(program: Execution, tests: Execution, expectations: Expectations) -> Verdict:
    """Return the verdict of tests.

    Args:
        program: The run of the program.
        tests: That of the tests.
        expectations: What they test.
    """
    results, weak, broken = _results(tests)
    if not tests.ok and broken:
        reason = f"{_sentence(broken)} Whether the program is right is not known: mend the test."
        return Verdict("unverified", "tests", reason, tests=results)
    # What it had defined by then may be right.
    if not program.ok and not (program.status == "error" and results and expectations.are_calls):
        return Verdict("failed", "tests", f"While it was tested: {program.summary}", tests=results)
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
        return TestResult(name, "fail", f"{given} the run ended: {run.summary}", line=number)
    is_right = printed == expected if example.exact else comparing.same_text(printed, expected)
    if is_right:
        return TestResult(name, "pass", output=printed[:_MAX_TEXT], line=number)
    hint = comparing.difference(printed, expected)
    message = f"{given} it printed {printed[:200]!r}, expected {expected[:200]!r}"
    return TestResult(
        name, "fail", f"{message}: {hint}" if hint else message, printed[:_MAX_TEXT], line=number
    )


def _verified(expectations: Expectations, ended: str = "") -> Verdict:
    kind = "tests" if expectations.tests.body else "examples"
    if expectations.count > 1:
        return Verdict(
            "verified", "tests", f"The program gives what {expectations.count} {kind} expect.{ended}"
        )
    return Verdict("verified", "tests", f"The program gives what the {kind[:-1]} expects.{ended}")


def _results(tests: Execution) -> tuple[tuple[TestResult, ...], str, str]:
    """Return how each case ended, why the tests say little, and why they are broken; empty if they are not."""
    try:
        report: dict[str, Any] = json.loads(tests.result or "")
        found = tuple(TestResult.from_dict(result) for result in report["tests"])
        return found, str(report["weak"]), str(report["broken"])
    except (ValueError, TypeError, KeyError):
        return (), "", ""


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
