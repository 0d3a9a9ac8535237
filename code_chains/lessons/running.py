"""Run a learner's program against tests: after the setup and the earlier accepted steps, in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from code_chains.analysis.parsing import names_in, parse
from code_chains.analysis.replies.extraction import extract_code
from code_chains.analysis.replies.syntax import top_level_names
from code_chains.chains.tested import Reason, TestRun, testing, verdict_of_runs
from code_chains.conversations.scripts import extract_futures
from code_chains.executors.base import Executor
from code_chains.executors.guest import comparing
from code_chains.executors.guest.rpc import ASKED
from code_chains.executors.guest.wire import WALL_FACTOR
from code_chains.lessons.expected import Expected
from code_chains.lessons.lesson import Lesson, Step
from code_chains.state import Execution, Verdict
from code_chains.verification.expectations.assertions import free_names
from code_chains.verification.expectations.examples import Example
from code_chains.verification.expectations.given import Expectations, UntestableError
from code_chains.verification.expectations.oracles import OUTPUT

_TRIES = 2
_CPU_SHARE = 0.9
"""Of the limit of time; whoever spends less of it before the limit of wall time may have been held up by others."""
_PASTED = re.compile(r"^\ufeff?[ \t]*(?:```|~~~|>>>|%|!|In \[)|\ufeff", re.MULTILINE)
"""What a program has that was copied from a page, a session, a notebook or a file."""
_PROMPT = re.compile("\x0e(.*?)\x0f", re.DOTALL)
# What earlier steps print or read is not part of this one, and what they import is not imported for it.
_BEFORE = """\
import contextlib, io, sys
given, sys.stdin = sys.stdin, io.StringIO()
with contextlib.redirect_stdout(io.StringIO()):
    for source in setups:
        exec(compile(source, "<setup>", "exec"), names)
    for source in accepted:
        with contextlib.suppress(Exception, SystemExit):
            exec(compile(source, "<an earlier step>", "exec"), names)
sys.stdin = given
"""


# What `input()` is given to say is marked, as it is no output; and the program may take so much processor time.
_READING = """\
import builtins, contextlib, sys
def ask(prompt="", read=builtins.input):
    sys.stdout.write(f"\x0e{prompt}\x0f")
    sys.stdout.flush()
    return read()
builtins.input = ask
with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
    import signal
    signal.setitimer(signal.ITIMER_PROF, seconds)
"""


def program_of(text: str) -> str:
    """Return the program that a learner typed or pasted: without fences, prompts, magics and a byte order mark around it."""
    is_pasted = _PASTED.search(text) is not None and parse(text) is None
    return (extract_code(text) if is_pasted else "") or text


@dataclass(frozen=True)
class Submission:
    """A learner's program for a step.

    Attributes:
        lesson: The lesson.
        step: The step.
        code: The program.
        accepted: The programs of earlier steps that were accepted.
    """

    lesson: Lesson
    step: Step
    code: str
    accepted: tuple[str, ...] = ()

    @property
    def setups(self) -> list[str]:
        """What runs before all programs of learners."""
        return [block.code for block in (self.lesson.setup, self.step.setup) if block]

    @property
    def before(self) -> str:
        """What runs before this program, as one line of source; empty if nothing does."""
        if not self.setups and not self.accepted:
            return ""
        variables = f"'setups': {self.setups!r}, 'accepted': {list(self.accepted)!r}, 'names': globals()"
        return f"exec({_BEFORE!r}, {{{variables}}})\n"

    @property
    def program(self) -> str:
        """What is run."""
        return self._after(self.before)

    def reading(self, seconds: float) -> str:
        """Return what is run with an input, and may take so many seconds of processor time."""
        first = f"exec({_READING!r}, {{'seconds': {seconds!r}}})"
        return self._after(f"{first}; {self.before}" if self.before else f"{first}\n")

    def _after(self, before: str) -> str:
        if not before:
            return self.code
        code, features = extract_futures(self.code)  # Which must come before everything else.
        futures = f"from __future__ import {', '.join(sorted(features))}; " if features else ""
        return f"{futures}{before}{code}"

    @property
    def known_names(self) -> list[str]:
        """The names that it finds defined."""
        return sorted({name for code in (*self.setups, *self.accepted) for name in top_level_names(code)})

    def missing_step(self, undefined: Iterable[str] = ()) -> int:
        """Return the number of the earlier step that is not solved, and whose solution is needed; 0 if there is none.

        Args:
            undefined: Names that the program uses and does not define; those of the tests are looked up as well.
        """
        expected = self.step.tests or self.step.examples
        needed = {*(free_names(expected.expectations.tests) if expected else ()), *undefined}
        needed -= {*self.known_names, *top_level_names(self.code), *self.given_names}
        for step in self.lesson.steps[: self.step.number - 1]:
            if step.solution and step.form == "program" and needed & top_level_names(step.solution.code):
                return step.number
        return 0

    @property
    def given_names(self) -> set[str]:
        """The names that the starter and the solution bind."""
        blocks = filter(None, (self.step.starter, self.step.solution))
        return {name for block in blocks for name in top_level_names(block.code)}

    def own_line(self, line: int | None) -> int | None:
        """Return a line of what is run as a line of the learner's program."""
        return line - self.before.count("\n") if line else line


@dataclass(frozen=True)
class Tested:
    """How a program did.

    Attributes:
        verdict: The verdict, which names inputs and expected values: no learner may see it as it is.
        program: The run of the program in which it was tested; None if there was none.
        is_machine_slow: Whether the tests themselves were too slow, and not the program.
        lost: Why tests ended their run, of those that did.
    """

    verdict: Verdict
    program: Execution | None = None
    is_machine_slow: bool = False
    lost: frozenset[Reason] = frozenset()

    @property
    def passed(self) -> int:
        """Number of tests that passed."""
        return sum(result.status == "pass" for result in self.verdict.tests)

    @property
    def met_limit(self) -> bool:
        """Whether the program met its limit of time, in a test or by itself."""
        return "endless" in self.lost or (self.program is not None and self.program.status == "timeout")

    @property
    def ok(self) -> bool:
        """Whether all tests passed."""
        return self.verdict.status in ("verified", "plausible")


def run_alone(executor: Executor, submission: Submission) -> Execution:
    """Run a program without any test; lines of an error are those of the learner's program."""
    execution = executor.run(submission.program, files=submission.lesson.files)
    if execution.error is None:
        return execution
    error = replace(execution.error, line=submission.own_line(execution.error.line), traceback="")
    return replace(execution, error=error)


def run_tests(executor: Executor, submission: Submission, expected: Expected) -> Tested:
    """Run the tests, or the examples, of a step against a program.

    Tests run beside one run of the program. Only tests of what it prints need a run before.
    """
    if expected.expectations.runs:
        return _run_examples(executor, submission, expected.expectations)
    for _ in range(_TRIES):
        tested = _run_once(executor, submission, expected)
        if not tested.is_machine_slow:
            break
    return tested


def _run_once(executor: Executor, submission: Submission, expected: Expected) -> Tested:
    expectations, files, program = expected.expectations, submission.lesson.files, submission.program
    output = ""
    if OUTPUT in names_in(expectations.tests):
        first = executor.run(program, files=files, stdin="")
        output = first.output
        if first.status not in ("ok", "error"):
            return Tested(Verdict("failed", "tests", first.summary), first)
    source = "\n".join([*submission.setups, *submission.accepted, submission.code])
    build = partial(
        expectations.program, source, query=submission.step.text, output=output, given=submission.given_names
    )
    steps = testing(expectations)
    try:
        skipped = next(steps)
        while True:
            skipped = steps.send(executor.run_tests(program, build(skipped=skipped), files=files))
    except UntestableError as error:
        return Tested(Verdict("failed", "tests", str(error)))
    except StopIteration as end:
        return _tested(end.value)


def _run_examples(executor: Executor, submission: Submission, expectations: Expectations) -> Tested:
    """Run a program with the input of each example, until one met the limit of wall time."""
    runs = list[Execution]()
    for example in expectations.runs:
        runs.append(_run_example(executor, submission, example))
        if _has_waited(executor, runs[-1]):
            reason = "The program waited, or the machine is busy: try again."
            return Tested(Verdict("unverified", "tests", reason), runs[-1], is_machine_slow=True)
    worst = next((run for run in runs if not run.ok), runs[0])
    return Tested(verdict_of_runs(Verdict("verified", "tests", ""), runs, expectations), worst)


def _run_example(executor: Executor, submission: Submission, example: Example) -> Execution:
    """Run a program with an input; one that met the limit of wall time may take the same processor time once more."""
    seconds, files, stdin = executor.limits.seconds, submission.lesson.files, example.stdin or ""
    run = executor.run(submission.reading(_CPU_SHARE * seconds), files=files, stdin=stdin)
    if run.status == "timeout" and run.duration >= seconds:
        patient = executor.with_limits(replace(executor.limits, seconds=WALL_FACTOR * seconds))
        try:
            run = patient.run(submission.reading(seconds), files=files, stdin=stdin)
        finally:
            patient.close()
    shown, hidden = _PROMPT.sub(r"\1", run.stdout), _PROMPT.sub("", run.stdout)
    is_expected = comparing.same_output(shown, example.output or "", example.compare, example.tolerance)
    error = run.error and replace(run.error, line=run.error.line and run.error.line - 1, traceback="")
    return replace(run, stdout=shown if is_expected else hidden, error=error)


def _has_waited(executor: Executor, run: Execution) -> bool:
    """Return whether a run met the limit of wall time, and not that of processor time."""
    return run.status == "timeout" and run.duration >= WALL_FACTOR * executor.limits.seconds


def _tested(run: TestRun) -> Tested:
    """Return how a program did in its tests."""
    ran, tests, verdict = run.program, run.tests, run.verdict
    if run.lost:
        reasons = frozenset(test.reason for test in run.lost)
        is_slow = verdict.status == "unverified" and "waited" in reasons
        return Tested(
            verdict,
            None if is_slow else ran,
            is_machine_slow=is_slow,
            lost=reasons,
        )
    # A program that takes too long is stopped itself; one whose tests are stopped only waited for them, or they for it. Both
    # are if the tests still import what they need.
    has_asked = ASKED in tests.stderr
    is_machine_slow = tests.status == "timeout" and (ran.status != "timeout" or not has_asked)
    return Tested(verdict, ran, is_machine_slow)
