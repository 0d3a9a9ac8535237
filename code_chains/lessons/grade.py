"""code, (step, accepted) -> problems, verdict, results: a learner's program against the hidden tests of a step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, get_type_hints

from langchain_core.runnables import Runnable

from code_chains.analysis.checks.policies import defines_dynamically, names_defined
from code_chains.analysis.work import is_brief
from code_chains.chains.base import Config, Flow, Invoke, RunFunction, State, StreamingChain
from code_chains.chains.validate import ValidateChain
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.base import Executor
from code_chains.lessons.criterion import CriterionChain
from code_chains.lessons.expected import Expected, Reveals
from code_chains.lessons.lesson import Lesson, Step
from code_chains.lessons.reveal import Feedback
from code_chains.lessons.running import Submission, Tested, program_of, run_alone, run_tests
from code_chains.lessons.tasks.base import Ask, Graded
from code_chains.lessons.texts import texts_in
from code_chains.state import CodeState, Problem, TestResult, Verdict

_MAX_CHARS, _MAX_ERRORS = 100_000, 10
_QUOTED = re.compile(r"'(\w+)'")
_STATUS = {"verified": "pass", "plausible": "pass", "failed": "fail", "unverified": "error"}


class LessonState(CodeState):
    """The keys of the chains of lessons.

    Attributes:
        step: The number of the step, from 1.
        accepted: The learner's programs of earlier steps that were accepted, the first one first.
        results: The outcome in Exercism's format of test results, version 3, of which each also has `seconds` (None if it
            ended its run) and `points`, what it is worth; `gradable` says whether it counts, `met_limit`
            whether the program met its limit of time, `points` of
            `max_points` what it is worth; None if a teacher has still to read it.
        hints: The hints so far, the first one first.
        hint: The next one.
        withheld: Hints that would have given the answer away, which no learner may see.
    """

    step: int
    accepted: Sequence[str]
    results: dict[str, Any]
    hints: Sequence[str]
    hint: str
    withheld: list[str]


class GradeChain(StreamingChain):
    r"""Grade a learner's program for a step of a lesson. Adds `problems`, `verdict` and `results`.

    The setup of the lesson, earlier accepted programs and this one run together in the sandbox. The hidden tests run in a
    sandbox of their own, which the program cannot reach. What the verdict reveals of a test that failed is what the lesson
    chooses: by default its description. The `reason` of the verdict is for the learner, in the language of the lesson.

    A step with a task, such as a choice, is graded by it: `code` is what the learner answered. An explanation that no model
    reads passes, with points that are not known.

    A program that is empty, cannot be read or breaks a rule, and a test that is broken, count no attempt: `gradable` in
    `results` is false, and the verdict is `unverified`.

    Args:
        lesson: The lesson; see `read_lesson`.
        executor: Runs programs and tests, e.g. `SandboxExecutor(limits=lesson.limits)`.
        against: The hidden `tests`, or the visible `examples`, which cost nothing and reveal everything.
        model: Reads explanations in words; None leaves them to the teacher.

    Example:
        >>> from code_chains import SandboxExecutor
        >>> from code_chains.lessons import read_lesson
        >>> tests = "```python tests\n# Doubles numbers.\nassert double(2) == 4\n```"
        >>> lesson = read_lesson(f"---\ntitle: First steps\n---\n## Functions\n{tests}")
        >>> grade = GradeChain(lesson, SandboxExecutor(limits=lesson.limits))
        >>> print(grade.invoke({"code": "def double(x): return x"})["verdict"].reason)
        1 of 1 tests fail:
        - Doubles numbers.
    """

    keys: ClassVar[Mapping[str, Any]] = get_type_hints(LessonState)
    input_keys: ClassVar[list[str]] = ["code"]
    optional_keys: ClassVar[list[str]] = ["step", "accepted"]
    output_keys: ClassVar[list[str]] = ["problems", "verdict", "results"]

    name: str | None = "grade"
    lesson: Lesson
    executor: Executor
    against: Literal["tests", "examples"] = "tests"
    model: Runnable[Any, Any] | None = None

    def __init__(self, lesson: Lesson, executor: Executor, **kwargs: Any) -> None:
        if not isinstance(executor, Executor) or not executor.runs_tests:
            raise ConfigurationError(
                "executor", executor, "one that can run tests, such as SandboxExecutor()"
            )
        super().__init__(**{"lesson": lesson, "executor": executor, **kwargs})

    @property
    def reveals(self) -> Reveals:
        """What is told of a test that failed."""
        return self.lesson.reveals if self.against == "tests" else "input and expected"

    def _flow(self, values: State, config: Config) -> Flow:
        submission = submission_of(self.lesson, values)
        step, code, texts = submission.step, submission.code, texts_in(self.lesson.language)
        if not code.strip() or len(code) > _MAX_CHARS:
            reason = texts.too_long.format(chars=_MAX_CHARS) if code.strip() else texts.empty
            yield self._neutral(reason, [])
            return
        if step.task is not None:
            graded: Graded = yield from step.task.grade(code, texts, self._ask(step, config))
            if not (step.task.has_tests and step.tests and graded.is_gradable):
                points = None if graded.share is None else graded.share * step.points
                yield self._outcome(
                    [], graded.verdict, is_gradable=graded.is_gradable, points=points, step=step
                )
                return
        problems = yield from self._check(submission, config)
        undefined = map(_QUOTED.search, (problem.message for problem in problems if _is_of_names(problem)))
        if number := submission.missing_step(match[1] for match in undefined if match):
            yield self._neutral(texts.first.format(step=number), problems)
            return
        if errors := (
            yield RunFunction(partial(_hindering, code=code), problems, config, inline=is_brief(code))
        ):
            shown = [*map(self._as_line, errors[:_MAX_ERRORS])]
            yield self._neutral(
                "\n".join([texts.unreadable, *shown, *["- …"] * (len(errors) > len(shown))]), problems
            )
            return
        expected = step.tests if self.against == "tests" else step.examples
        if expected is None:
            yield self._neutral(texts.no_tests, problems)
            return
        tested = yield RunFunction(lambda _: run_tests(self.executor, submission, expected), None, config)
        alone = None
        if tested.program is not None and not tested.program.ok and tested.program.status != "timeout":
            # Invariant: an error that a hidden input caused is not told; without tests there are no such inputs.
            alone = yield RunFunction(lambda _: run_alone(self.executor, submission), None, config)
        feedback = Feedback(submission, expected, self.reveals, tested, alone)
        share = 1.0 if tested.ok else expected.share(tested.verdict.tests)
        yield self._outcome(
            problems,
            feedback.verdict(),
            is_gradable=not feedback.is_neutral,
            points=share * step.points,
            step=step,
            expected=expected,
            met_limit=tested.met_limit,
        )

    def _ask(self, step: Step, config: Config) -> Ask | None:
        """Return what asks the model whether an explanation meets a criterion; None without a model."""
        if self.model is None:
            return None
        judge = CriterionChain(model=self.model)

        def ask(criterion: str, explanation: str) -> Flow:
            state = {"query": criterion, "code": step.text, "output": explanation}
            return (yield Invoke(judge, state, config))["verdict"]

        return ask

    def _check(self, submission: Submission, config: Config) -> Flow:
        """Return the problems that the checks find in the source."""
        checks = self.lesson.checks(submission.step)
        validate = ValidateChain(checks, has_module=self.executor.has_module)
        state = {"code": submission.code, "variables": dict.fromkeys(submission.known_names)}
        return (yield Invoke(validate, {**state, "files": self.lesson.files}, config))["problems"]

    def _as_line(self, problem: Problem) -> str:
        place = texts_in(self.lesson.language).line.format(line=problem.line) if problem.line else ""
        return f"- {place}: {problem.message}" if place else f"- {problem.message}"

    def _neutral(self, reason: str, problems: list[Problem]) -> State:
        text = f"{reason}\n{texts_in(self.lesson.language).uncounted}"
        return self._outcome(problems, Verdict("unverified", "tests", text), is_gradable=False)

    def _outcome(
        self,
        problems: list[Problem],
        verdict: Verdict,
        *,
        is_gradable: bool,
        points: float | None = 0.0,
        step: Step | None = None,
        expected: Expected | None = None,
        met_limit: bool = False,
    ) -> State:
        results = {
            "version": 3,
            "status": ("pass" if points is None else _STATUS[verdict.status]) if is_gradable else "error",
            "message": verdict.reason,
            "tests": [_as_json(result, expected) for result in verdict.tests],
            "gradable": is_gradable,
            "points": points if is_gradable else 0.0,
            "max_points": step.points if step else 0.0,
            "met_limit": met_limit,
        }
        return {"problems": problems, "verdict": verdict, "results": results}


def _hindering(problems: Sequence[Problem], code: str) -> list[Problem]:
    """Return the problems with which nothing can be tested; tests reach functions, where a model's program need not."""
    is_counted = any(map(_is_of_names, problems)) and not defines_dynamically(code)
    return [
        problem
        for problem in problems
        if problem.severity == "error" or (is_counted and _is_of_names(problem))
    ]


def _is_of_names(problem: Problem) -> bool:
    """Return whether a name is not defined."""
    return problem.check == names_defined.__name__


def submission_of(lesson: Lesson, values: State) -> Submission:
    """Return what a learner submits, as the keys of the state say.

    Raises:
        InputError: There is no such step, or a program is not text.
    """
    step: Step = lesson.step(1 if values.get("step") is None else values["step"])
    accepted = values.get("accepted") or ()
    if isinstance(accepted, str) or not all(isinstance(code, str) for code in accepted):
        raise InputError("accepted must be a list of programs, the first one first.")
    if not isinstance(values["code"], str):
        raise InputError(f"code must be the text of a program, not {type(values['code']).__name__}.")
    code = program_of(values["code"]) if step.form == "program" else values["code"]
    return Submission(lesson, step, code, tuple(map(program_of, accepted)))


def _as_json(result: TestResult, expected: Expected | None) -> dict[str, Any]:
    """Return the result of a test in Exercism's format, with its time and what it is worth among those of its step."""
    names = ("name", "status", "message", "output", "test_code", "seconds")
    worth = expected.note(result).points if expected else 0.0
    return {**{name: getattr(result, name) for name in names}, "points": worth}


__all__ = ["GradeChain", "LessonState", "Tested", "submission_of"]
