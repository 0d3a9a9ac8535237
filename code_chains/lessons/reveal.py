"""What a learner is told of the tests: no more than the lesson chooses to reveal."""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass, replace

from code_chains.lessons.expected import Expected, Note, Reveals
from code_chains.lessons.running import Submission, Tested
from code_chains.lessons.texts import Texts, texts_in
from code_chains.records import ErrorReport, TestResult
from code_chains.records.printable import strip_control_chars
from code_chains.state import Execution, Verdict
from code_chains.verification.expectations.ownership import missing_names

_MAX_FAILURES = 5
_MAX_MESSAGE = 500
_PLACE = re.compile(r"\b(in line )(\d+)( of the program)")


@dataclass(frozen=True)
class Feedback:
    """The verdict on a submission, as its learner sees it.

    Invariant: without `input and expected` nothing that a program said while it was tested is part of it: no exception's
    text, nothing printed, no variable. A program could put hidden inputs there. Of a program that reads, the line of an
    error is told, and its kind if that is Python's own; its text if it is the same without any input.

    Attributes:
        submission: What was submitted.
        expected: The tests.
        reveals: What may be told of a test that failed.
        tested: How the program did.
        alone: The program's run without tests, if it ended with an error while it was tested.
    """

    submission: Submission
    expected: Expected
    reveals: Reveals
    tested: Tested
    alone: Execution | None

    @property
    def texts(self) -> Texts:
        """The texts of the lesson's language."""
        return texts_in(self.submission.lesson.language)

    @property
    def is_neutral(self) -> bool:
        """Whether this is no attempt: a test is broken, or the machine was too slow."""
        return self.tested.verdict.status == "unverified" or self.tested.is_machine_slow

    def verdict(self) -> Verdict:
        """Return the verdict."""
        verdict = self.tested.verdict
        numbered = enumerate(verdict.tests, 1)
        results = tuple(self._result(number, result) for number, result in numbered)
        if self.is_neutral:
            reason = f"{self._neutral_reason()}\n{self.texts.uncounted}"
            return Verdict("unverified", "tests", reason, tests=results)
        if self.tested.ok:
            count = max(len(results), 1)
            return replace(verdict, reason=self.texts.passed.format(count=count), tests=results)
        return Verdict("failed", "tests", self._failure(results), tests=results)

    def _neutral_reason(self) -> str:
        if self.tested.is_machine_slow:
            return self.texts.slow
        broken = [result for result in self.tested.verdict.tests if result.status == "error"]
        return self.texts.broken.format(line=broken[0].line if broken else self.expected.line)

    def _failure(self, results: tuple[TestResult, ...]) -> str:
        """Return why a program was not accepted."""
        lines = [self._ending(self.tested.program)] if self.tested.program else []
        failed = [result for result in results if result.status != "pass"]
        if failed:
            lines.append(self.texts.failed.format(failed=len(failed), count=len(results)))
            lines += dict.fromkeys(f"- {result.message}" for result in failed[:_MAX_FAILURES])
        if self.tested.program is None or not any(lines):  # The program lacks what is tested.
            lines.append(self.tested.verdict.reason)
        return "\n".join(filter(None, lines))

    def _ending(self, program: Execution) -> str:
        """Return how a program ended, if it did not run to its end."""
        endings: dict[str, str] = {
            "endless": self.texts.endless.format(seconds=self.submission.lesson.limits.seconds),
            "output_limit": self.texts.output,
            "memory": self.texts.memory,
            "ended": self.texts.ended,
        }
        for reason in (*self.tested.lost, program.status):
            if reason in endings:
                return endings[reason]
        if program.ok:
            return ""
        if program.status == "timeout" or (self.alone and self.alone.status == "timeout"):
            return self.texts.endless.format(seconds=self.submission.lesson.limits.seconds)
        if self.expected.expectations.runs:
            if program.error is None or program.status != "error":
                return self.texts.ended
            return self.texts.crashed.format(error=self._error_with_input(program.error))
        if self.alone is None or self.alone.ok:
            return self.texts.ended
        return self.texts.crashed.format(error=self._error(self.alone.error, self.alone.summary))

    def _error(self, error: ErrorReport | None, summary: str) -> str:
        text = _plain(str(error) if error else summary)
        return f"{text} ({self.texts.line.format(line=error.line)})" if error and error.line else text

    def _error_with_input(self, error: ErrorReport) -> str:
        if self.reveals == "input and expected":
            return self._error(error, "")
        alone = self.alone.error if self.alone else None
        if alone is not None and (alone.type, alone.line) == (error.type, error.line):
            return self._error(alone, "")
        is_own = isinstance(vars(builtins).get(error.type), type)
        return self._error(replace(error, type=error.type if is_own else "Exception", message=""), "")

    def _result(self, number: int, result: TestResult) -> TestResult:
        """Return the result of a test without what is not revealed."""
        note = self.expected.note(result)
        name = note.description or self.texts.test.format(number=number)
        message = "" if result.status == "pass" else self._message(name, note, result)
        if self._reveals(note) == "input and expected":
            code, output = result.test_code, _plain(result.output)
            return replace(result, name=name, message=message, test_code=code, output=output)
        return TestResult(name, result.status, message, line=result.line, seconds=result.seconds)

    def _reveals(self, note: Note) -> Reveals:
        """Return what may be told of a test: what the test says, or else the lesson; examples tell everything."""
        return self.reveals if self.reveals == "input and expected" else note.reveals or self.reveals

    def _message(self, name: str, note: Note, result: TestResult) -> str:
        if result.status == "error":
            return self.texts.broken.format(line=result.line)
        hint = f" {note.hint}" if note.hint else ""
        if result.message in self._missing():
            return f"{result.message}."
        reveals = self._reveals(note)
        if reveals == "input and expected":
            described = f"{note.description} " if note.description else ""
            return f"{described}{self._with_own_lines(_plain(result.message))}{hint}"
        if reveals == "input" and note.inputs:
            name = self.texts.with_input.format(test=name, inputs=note.inputs)
        return f"{name}{hint}"

    def _with_own_lines(self, message: str) -> str:
        """Return a message in which lines are those of the learner's program, without the setup before it."""
        own = self.submission.own_line
        return _PLACE.sub(lambda match: f"{match[1]}{own(int(match[2]))}{match[3]}", message)

    def _missing(self) -> set[str]:
        """Return what is said of names that tests need, and that the program does not define."""
        code = "\n".join([*self.submission.setups, *self.submission.accepted, self.submission.code])
        expectations, given = self.expected.expectations, self.submission.given_names
        return missing_names(
            expectations.tests, code, self.submission.step.text, imported=expectations.imported, given=given
        )


def _plain(text: str) -> str:
    """Return text of a program without what steers a terminal."""
    return strip_control_chars(text)[:_MAX_MESSAGE]
