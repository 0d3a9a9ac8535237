"""Check a lesson as its learners would find it: what its tests accept and reject, and what its text refers to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from code_chains.analysis.parsing import names_in
from code_chains.analysis.references import read
from code_chains.executors.base import Executor
from code_chains.lessons.expected import Expected
from code_chains.lessons.grade import GradeChain
from code_chains.lessons.lesson import Block, Lesson, Step
from code_chains.lessons.mutants import mutants
from code_chains.lessons.running import Submission, run_tests
from code_chains.state import Verdict
from code_chains.verification.expectations.oracles import OUTPUT

_MAX_MUTANTS = 20
_NOTHING = "pass\n"


@dataclass(frozen=True)
class Finding:
    """What is wrong with a lesson.

    Attributes:
        line: Its line in the file.
        severity: `error`, or `warning` for what may be meant.
        message: What it is.
    """

    line: int
    severity: Literal["error", "warning"]
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity}: {self.message}"


class LessonCheck:
    """Checks a lesson.

    Args:
        lesson: The lesson.
        executor: Runs its programs and tests.
    """

    def __init__(self, lesson: Lesson, executor: Executor) -> None:
        self._lesson, self._executor = lesson, executor
        self._grade = GradeChain(lesson, executor)
        # Teachers are told everything.
        self._told = GradeChain(replace(lesson, reveals="input and expected"), executor)
        self._examples = GradeChain(lesson, executor, against="examples")
        self._accepted: list[str] = []

    def findings(self, begin: Callable[[Step], object] = lambda step: None) -> Iterator[Finding]:
        """Yield what is wrong, step by step.

        Args:
            begin: Called with each step before it is checked.
        """
        yield from _broken_links(self._lesson)
        yield from self._missing_modules()
        yield from self._demos()
        for step in self._lesson.steps:
            begin(step)
            if step.is_exercise:
                yield from self._exercise(step)
            if step.solution and step.form == "program":
                self._accepted.append(step.solution.code)

    def _exercise(self, step: Step) -> Iterator[Finding]:
        if step.task and not step.task.solution:
            return  # Somebody reads what is answered.
        if step.solution is None:
            yield Finding(step.line, "error", f"step {step.title!r} has no solution that its tests accept")
        elif step.tests is None and step.task is None:
            yield Finding(step.line, "warning", f"step {step.title!r} has examples, but no hidden tests")
        if step.solution:
            yield from self._solution(step, step.solution)
        if step.tests:
            yield from self._rejected(step, step.tests)

    def _solution(self, step: Step, solution: Block) -> Iterator[Finding]:
        """Yield why a solution is not accepted, and which mutants of it are."""
        for expected, grade in ((step.tests or step.task, self._told), (step.examples, self._examples)):
            if expected is None:
                continue
            verdict = self._verdict(grade, step, solution.code)
            if verdict.status == "plausible":
                yield Finding(solution.line, "warning", verdict.reason.split("\n")[0])
            elif verdict.status != "verified":
                reason = _flat(self._why(step, solution.code, verdict))
                yield Finding(solution.line, "error", f"the solution is not accepted: {reason}")
                return
        if step.tests:
            yield from self._mutants(step, solution, step.tests)

    def _why(self, step: Step, code: str, verdict: Verdict) -> str:
        """Return why a solution is not accepted, for the teacher: of a broken test what is broken."""
        if verdict.status != "unverified" or step.tests is None:
            return verdict.reason
        submission = Submission(self._lesson, step, code, tuple(self._accepted))
        return run_tests(self._executor, submission, step.tests).verdict.reason or verdict.reason

    def _mutants(self, step: Step, solution: Block, tests: Expected) -> Iterator[Finding]:
        prints = OUTPUT in names_in(tests.expectations.tests) or bool(tests.expectations.runs)
        has_lines = any("\n" in (run.output or "").strip() for run in tests.expectations.runs)
        for mutant in mutants(solution.code, limit=_MAX_MUTANTS, prints=prints, has_lines=has_lines):
            submission = Submission(self._lesson, step, mutant.code, tuple(self._accepted))
            if run_tests(self._executor, submission, tests).ok:
                line = solution.line + mutant.line - 1
                message = f"the tests also accept a solution that is changed here: {mutant.change}"
                yield Finding(line, "warning", message)

    def _rejected(self, step: Step, tests: Expected) -> Iterator[Finding]:
        """Yield which programs are accepted that should not be."""
        starter = step.starter or Block(_NOTHING, step.line)
        if self._verdict(self._grade, step, starter.code).status in ("verified", "plausible"):
            what = "the starter passes" if step.starter else "a program that does nothing passes"
            yield Finding(starter.line, "error", f"{what} all tests")
        for wrong in step.wrong:
            verdict = self._verdict(self._grade, step, wrong.code)
            if verdict.status in ("verified", "plausible"):
                yield Finding(wrong.line, "error", "the tests accept this wrong program")
            elif wrong.message not in verdict.reason:
                message = f"learners are not told {wrong.message!r}, but: {_flat(verdict.reason)}"
                yield Finding(wrong.line, "error", message)
        undescribed = [note for note in tests.notes if not note.description]
        if undescribed and self._lesson.reveals == "behaviour":
            line = undescribed[0].first if undescribed[0].first >= tests.line else tests.line
            message = (
                f"{len(undescribed)} of {len(tests.notes)} tests have no description: learners are told only"
            )
            yield Finding(line, "warning", f"{message} their number. Write a comment above each.")

    def _verdict(self, grade: GradeChain, step: Step, code: str) -> Verdict:
        outcome = grade.invoke({"code": code, "step": step.number, "accepted": self._accepted})
        verdict: Verdict = outcome["verdict"]
        return verdict

    # -- the text --------------------------------------------------------------------------------------------

    def _missing_modules(self) -> Iterator[Finding]:
        blocks = [block for step in self._lesson.steps for block in (step.solution, step.setup) if block]
        imported = [(name, block.line) for block in blocks for name in _imports(block.code)]
        allowed = [(name, 1) for name in self._lesson.imports or ()]
        for name, line in dict(reversed([*allowed, *imported])).items():
            if self._executor.has_module(name.partition(".")[0]) is False:
                yield Finding(line, "error", f"programs cannot import {name!r}: it is not installed")

    def _demos(self) -> Iterator[Finding]:
        """Yield which programs of the text do not run, one after the other in one session."""
        if not self._executor.has_sessions or not any(step.demos for step in self._lesson.steps):
            return
        with self._executor.session() as session:
            for step in self._lesson.steps:
                for block in filter(None, (self._lesson.setup, step.setup, *step.demos)):
                    run = session.run(block.code, files=self._lesson.files)
                    if not run.ok:
                        line = block.line + ((run.error and run.error.line) or 1) - 1
                        yield Finding(line, "error", f"the program of the text fails: {run.summary}")


def _imports(code: str) -> list[str]:
    reading = read(code)
    return [imported.name.partition(".")[0] for imported in reading.imports] if reading else []


def _broken_links(lesson: Lesson) -> Iterator[Finding]:
    """Yield the links and images that lead to no file; addresses elsewhere are not asked."""
    folder = lesson.path.parent if lesson.path else Path()
    for text, line in [(lesson.text, 1), *((step.text, step.line) for step in lesson.steps)]:
        for target in _targets(text):
            parsed = urlsplit(target)
            is_local = not parsed.scheme and not parsed.netloc and parsed.path
            if is_local and not (folder / unquote(parsed.path)).exists():
                yield Finding(line, "error", f"{target!r} does not exist")


def _targets(text: str) -> Iterator[str]:
    for token in MarkdownIt("commonmark").parse(text):
        for child in token.children or ():
            attributes: dict[str, Any] = child.attrs
            target = attributes.get("href") or attributes.get("src")
            if target:
                yield str(target)


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)
