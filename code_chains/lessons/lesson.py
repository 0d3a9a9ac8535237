"""What a lesson is: its steps, their programs, tests and hints, as a file states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from code_chains.analysis.checks import STANDARD, Check, imports_only, resolve_checks
from code_chains.errors import InputError
from code_chains.executors.limits import Limits
from code_chains.lessons.expected import Expected, Reveals
from code_chains.lessons.tasks.base import Form, Task


@dataclass(frozen=True)
class Block:
    """Source in a lesson's file.

    Attributes:
        code: The source.
        line: The line of the file where it begins.
    """

    code: str
    line: int


@dataclass(frozen=True)
class Wrong(Block):
    """A wrong program, which the tests must reject.

    Attributes:
        message: What a learner must be told; empty for anything.
    """

    message: str = ""


@dataclass(frozen=True)
class Step:
    """One exercise, or a part to read.

    Attributes:
        number: From 1.
        title: Its heading.
        line: The line of its heading.
        text: What a learner reads, as Markdown.
        demos: Programs of the text, which run in order.
        starter: The program that a learner begins with.
        setup: Runs before the learner's program.
        solution: The teacher's program.
        examples: Visible tests.
        tests: Hidden tests.
        hints: The teacher's hints, the weakest first.
        wrong: Programs that the tests must reject.
        checks: The rules on the source of a learner's program.
        task: What is asked where no test decides, such as a choice; None for an exercise that tests decide.
        worth: What it is worth; None for as much as its tests.
    """

    number: int
    title: str
    line: int
    text: str = ""
    demos: tuple[Block, ...] = ()
    starter: Block | None = None
    setup: Block | None = None
    solution: Block | None = None
    examples: Expected | None = None
    tests: Expected | None = None
    hints: tuple[str, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    checks: tuple[Check, ...] = ()
    task: Task | None = None
    worth: float | None = None

    @property
    def form(self) -> Form:
        """How a learner answers."""
        return self.task.form if self.task else "program"

    @property
    def initial(self) -> str:
        """What a learner begins with."""
        return self.starter.code if self.starter else self.task.starter if self.task else ""

    @property
    def points(self) -> float:
        """What it is worth."""
        if self.worth is not None:
            return self.worth
        return self.tests.points if self.tests else float(self.task is not None)

    @property
    def is_exercise(self) -> bool:
        """Whether there is something to submit."""
        return any((self.tests, self.examples, self.starter, self.task))


@dataclass(frozen=True)
class Lesson:
    """A lesson, as `read_lesson` reads it.

    Attributes:
        title: Its title.
        language: The language of its text and of our messages.
        level: For whom it is, in the teacher's words.
        imports: Modules that learners may import; None for any.
        limits: Limits of one run.
        reveals: What a learner is told of a hidden test that failed.
        quota: Hints of a model that a learner may ask for at each step.
        gives_solution: Whether the solution is shown after all hints.
        is_released: Whether it is the learner's copy, without hidden tests.
        files: What programs can read: paths by name.
        text: The introduction.
        setup: Runs before the programs of all steps.
        steps: The steps.
        digest: Changes with each change of the file.
        path: The file; None if it was read from text.
    """

    title: str
    language: str = "en"
    level: str = ""
    imports: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=lambda: Limits(seconds=2))
    reveals: Reveals = "behaviour"
    quota: int = 5
    gives_solution: bool = False
    is_released: bool = False
    files: Mapping[str, Path] = field(default_factory=dict)
    text: str = ""
    setup: Block | None = None
    steps: tuple[Step, ...] = ()
    digest: str = ""
    path: Path | None = None

    @cached_property
    def exercises(self) -> tuple[Step, ...]:
        """The steps at which there is something to submit."""
        return tuple(step for step in self.steps if step.is_exercise)

    @property
    def name(self) -> str:
        """A short name, by which progress is kept: that of the file, or the title."""
        return self.path.stem if self.path else self.title

    def step(self, number: int) -> Step:
        """Return a step by its number.

        Raises:
            InputError: There is none.
        """
        if isinstance(number, int) and 1 <= number <= len(self.steps):
            return self.steps[number - 1]
        raise InputError(f"The lesson has no step {number!r}. Its steps are 1 to {len(self.steps)}.")

    def checks(self, step: Step) -> tuple[Check, ...]:
        """Return the checks of a program's source: that it can run, the imports of the lesson, and the rules of the step."""
        imports = () if self.imports is None else (imports_only(*self.imports),)
        return (*resolve_checks(STANDARD), *imports, *step.checks)
