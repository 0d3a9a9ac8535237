"""The gate before hints of a model: what a learner could assemble from them must not pass more hidden tests than before."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from code_chains.analysis.parsing import parse
from code_chains.executors.base import Executor
from code_chains.lessons.assembly import assemble
from code_chains.lessons.fragments import read_fragments
from code_chains.lessons.running import Submission, run_tests
from code_chains.verification.expectations.assertions import free_names

_MAX_PROGRAMS, _MAX_CHARS = 150, 500_000
_MAX_SECONDS = 20.0
_CONSTANTS = ("None", "0", "1", "''", "[]", "{}", "True", "False", "given[0] if given else None")


class _TooMuchCodeError(Exception):
    """A hint holds more code than can be tried."""


@dataclass(frozen=True)
class HintGate:
    """Tells whether hints give an answer away, by running what can be assembled from them.

    It assembles programs from all hints so far: blocks, inline code, sessions, diffs, quotes. Each is completed with the
    starter and with the learner's program, renamed to what is asked for, and run against the hidden tests. A hint with which
    more tests pass than before gives the answer away, as does a program in a language that cannot be run.

    It reads no prose: for that, `TutorChain` has a `writer`.

    Args:
        executor: Runs the programs.
    """

    executor: Executor

    def leak(self, submission: Submission, earlier: Sequence[str], hint: str) -> str:
        """Return why a hint gives the answer away; empty if it does not.

        Args:
            submission: The learner's program.
            earlier: The hints that the learner has seen.
            hint: The next one.
        """
        if submission.step.task and submission.step.task.is_told(hint):
            return "It says what is right."
        said = read_fragments([hint])
        if said.foreign:
            return "It holds a program in another language."
        if said.lines and not (submission.step.tests or submission.step.examples):
            return "There are no tests to try its code with."
        if not (said.lines or said.diffs):
            return ""
        try:
            return self._gain(submission, earlier, hint)
        except _TooMuchCodeError:  # Invariant: what was not tried is not shown.
            return "It holds more code than can be tried."

    def _gain(self, submission: Submission, earlier: Sequence[str], hint: str) -> str:
        """Return how many more hidden tests pass with a hint; empty if none does."""
        deadline = time.monotonic() + _MAX_SECONDS
        old = set(self._programs(submission, earlier, deadline))
        # Whatever returns always the same passes some tests, as what is meant for another exercise does.
        before = self.passed(submission, [submission.code, *_trivial(submission)])
        tried = set(old)
        for program in self._programs(submission, [*earlier, hint], deadline):
            if program in tried:
                continue
            tried.add(program)
            if len(tried) - len(old) > _MAX_PROGRAMS:
                raise _TooMuchCodeError
            now = self.passed(submission, [program])
            if now > before:
                before = max(before, self.passed(submission, old))
            if now > before:
                return f"With it {now} hidden tests pass instead of {before}."
        return ""

    def passed(self, submission: Submission, programs: Iterable[str]) -> int:
        """Return how many hidden tests pass with the best of some programs."""
        expected = submission.step.tests or submission.step.examples
        if expected is None:
            return 0
        runs = (run_tests(self.executor, replace(submission, code=code), expected) for code in programs)
        return max((tested.passed for tested in runs), default=0)

    def _programs(self, submission: Submission, hints: Sequence[str], deadline: float) -> Iterator[str]:
        """Yield the programs that can be assembled.

        Raises:
            _TooMuchCodeError: There are too many, or it takes too long.
        """
        step = submission.step
        starter = step.initial
        programs = assemble(
            read_fragments(hints), learner=submission.code, starter=starter, asked=_asked(submission)
        )
        chars = 0
        for program in programs:
            chars += len(program)
            if chars > _MAX_CHARS or time.monotonic() > deadline:
                raise _TooMuchCodeError
            if parse(program):
                yield program


def _trivial(submission: Submission) -> Iterator[str]:
    """Yield programs that solve nothing: each function that is asked for returns a constant, or what it is given."""
    names = _asked(submission)
    for value in _CONSTANTS:
        yield "".join(f"def {name}(*given, **named): return {value}\n" for name in names)


def _asked(submission: Submission) -> list[str]:
    """Return the names that the tests use, or those of the starter's functions where tests are calls in YAML."""
    expected = submission.step.tests or submission.step.examples
    names = free_names(expected.expectations.tests) if expected else []
    if names:
        return names
    sources = [block.code for block in (submission.step.starter, submission.step.solution) if block]
    trees = filter(None, map(parse, sources))
    return list(dict.fromkeys(n.name for tree in trees for n in tree.body if isinstance(n, ast.FunctionDef)))
