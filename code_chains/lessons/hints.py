"""Which hint comes next: the teacher's first, then the tutor's, at last the solution if the teacher allows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable

from code_chains.errors import InputError
from code_chains.executors.base import Executor
from code_chains.lessons.gate import HintGate
from code_chains.lessons.lesson import Lesson
from code_chains.lessons.texts import texts_in
from code_chains.lessons.tutor import TutorChain


@dataclass(frozen=True)
class Hint:
    """A hint.

    Attributes:
        text: The hint, as Markdown.
        is_new: Whether it is another one than before; there may be no more.
    """

    text: str
    is_new: bool = True


class Hints:
    """Gives the hints of a lesson.

    Args:
        lesson: The lesson.
        tutor: Answers questions, and gives hints after the teacher's; None for no model.
    """

    def __init__(self, lesson: Lesson, tutor: TutorChain | None = None) -> None:
        self._lesson, self._tutor = lesson, tutor

    @property
    def model(self) -> Runnable[Any, Any] | None:
        """The model that is asked; None if there is none."""
        return self._tutor.model if self._tutor else None

    def give(self, state: dict[str, Any]) -> Hint:
        """Return the next hint, or the answer to a question.

        Args:
            state: The keys that `TutorChain` reads.

        Raises:
            InputError: A question is asked, and there is no model.
        """
        step, shown = self._lesson.step(state["step"]), list(state["hints"])
        if state["query"] and self._tutor is None:
            raise InputError(
                "Questions in words need a model: start with -m, e.g. -m local. /hint gives a hint."
            )
        left = [hint for hint in step.hints if hint not in shown]
        if left and not state["query"]:
            return Hint(left[0])
        asked = [hint for hint in shown if hint not in step.hints]
        if self._tutor is not None and len(asked) < self._lesson.quota:
            return Hint(self._tutor.invoke(state)["hint"])
        solution = step.solution.code if step.solution and self._lesson.gives_solution else ""
        full = f"```python\n{solution}```"
        if solution and full not in shown:
            return Hint(full)
        return Hint(texts_in(self._lesson.language).no_more, is_new=False)


def hints_of(lesson: Lesson, executor: Executor, model: Runnable[Any, Any] | None) -> Hints:
    """Return what gives the hints of a lesson: the teacher's, and those of a model behind the gate, if there is one."""
    if model is None:
        return Hints(lesson)
    return Hints(lesson, TutorChain(model=model, lesson=lesson, gate=HintGate(executor), writer=model))
