"""A learner's work at a lesson, as all hosts show it: write, run, check, submit, ask."""

from __future__ import annotations

from code_chains.errors import InputError, SessionError
from code_chains.executors.base import Executor, Session
from code_chains.lessons.grade import GradeChain
from code_chains.lessons.hints import Hint, Hints
from code_chains.lessons.lesson import Lesson, Step
from code_chains.lessons.progress import Progress
from code_chains.lessons.running import Submission, program_of
from code_chains.records import Execution, Verdict

LOST_STATE = "What earlier runs made is gone, as their session has ended."


class LearnerWork:
    """The work of one learner at one lesson.

    Args:
        lesson: The lesson.
        executor: Runs programs and tests, with the lesson's limits.
        progress: What the learner did before, and does now.
        hints: Gives hints.

    Attributes:
        executor: Runs programs and tests.
        step: Where the learner is.
        reason: What the learner was told of the last submission at this step.
        has_lost_state: Whether the last run found nothing of those before it, as their session had ended.
        met_limit: Whether the program met its limit of time when it was last run, checked or submitted.
    """

    def __init__(self, lesson: Lesson, executor: Executor, progress: Progress, hints: Hints) -> None:
        self.lesson: Lesson = lesson
        self.progress: Progress = progress
        self.executor: Executor = executor
        self._hints = hints
        self._grade = GradeChain(lesson, executor, model=hints.model)
        self._check = GradeChain(lesson, executor, against="examples")
        self._session: Session | None = None
        self.reason: str = ""
        self.has_lost_state: bool = False
        self.met_limit: bool = False
        self.step: Step = progress.next_step() or lesson.steps[0]

    @property
    def code(self) -> str:
        """The learner's program at this step."""
        return self.progress.draft(self.step)

    @property
    def given_hints(self) -> list[str]:
        """The hints that the learner was given at this step, the first one first."""
        return [event.text for event in self.progress.of(self.step, "hint")]

    @property
    def example_input(self) -> str:
        """What the program of the first example reads; empty if there is none."""
        runs = self.step.examples.expectations.runs if self.step.examples else ()
        return (runs[0].stdin or "") if runs else ""

    def write(self, code: str) -> None:
        """Keep a program as the learner's draft."""
        if code != self.code:
            self.progress.add("draft", self.step, code=code)

    def restart(self) -> None:
        """Begin this step again."""
        self.write(self.step.initial)
        self.close()

    def run(self, stdin: str = "") -> Execution:
        """Run the program in a session, in which what was set up and accepted before has run already.

        Raises:
            InputError: The step asks for no program.
        """
        if self.step.form != "program":
            raise InputError("This step asks for no program. Answer it, and submit.")
        self.has_lost_state = self._session is not None and not self._session.alive
        if self._session is None or not self._session.alive:
            self._session = self.executor.session()
            accepted = tuple(self.progress.accepted(self.step))
            self._session.run(Submission(self.lesson, self.step, "", accepted).before or "0")
        run = self._session.run(program_of(self.code), files=self.lesson.files, stdin=stdin)
        self.met_limit = run.status == "timeout"
        return run

    def undo(self) -> None:
        """Take back the effects of the last run.

        Raises:
            InputError: There is none.
        """
        if self._session is None or not self._session.alive:
            raise InputError("There is no run to undo.")
        try:
            self._session.rollback()
        except SessionError:
            self.close()

    def check(self) -> Verdict:
        """Try the examples; it costs nothing.

        Raises:
            InputError: There are none.
        """
        if self.step.examples is None:
            raise InputError("This step has no examples. Run your program, or submit it.")
        outcome = self._check.invoke(self._state)
        self.met_limit = outcome["results"]["met_limit"]
        verdict: Verdict = outcome["verdict"]
        return verdict

    def submit(self) -> bool:
        """Have the program graded by the hidden tests, and return whether it was accepted; `reason` says why not.

        Raises:
            InputError: There is nothing to submit at this step.
        """
        if not self.step.is_exercise:
            raise InputError("There is nothing to submit at this step. Go on to the next one.")
        state = self._state
        outcome = self._grade.invoke(state)
        self.met_limit = outcome["results"]["met_limit"]
        status, counts = outcome["results"]["status"], outcome["results"]["gradable"]
        failed = [test["name"] for test in outcome["results"].get("tests", ()) if test["status"] != "pass"]
        self.progress.add(
            "attempt",
            self.step,
            code=str(state["code"]),
            status=status,
            counts=counts,
            failed=failed,
            points=outcome["results"]["points"],
        )
        self.reason = outcome["verdict"].reason
        return bool(status == "pass")

    def ask(self, question: str = "") -> Hint:
        """Return the next hint, or the answer to a question in words.

        Raises:
            InputError: A question is asked, and there is no model.
        """
        state = {**self._state, "hints": self.given_hints, "verdict": self.reason, "query": question}
        hint = self._hints.give(state)
        if hint.is_new:
            self.progress.add("hint", self.step, text=hint.text)
        return hint

    def next(self) -> None:
        """Go to the next step.

        Raises:
            InputError: There is none, or this one is not done yet.
        """
        if self.step.number == len(self.lesson.steps):
            raise InputError("This is the last step.")
        if not self.progress.is_done(self.step) and not self.lesson.is_released:
            raise InputError("This step is not done yet.")
        self.go(self.step.number + 1)

    def go(self, number: int) -> None:
        """Go to a step by its number.

        Raises:
            InputError: There is none.
        """
        self.step, self.reason = self.lesson.step(number), ""
        self.close()

    def forget(self) -> None:
        """Delete all of it."""
        self.progress.forget()
        self.close()

    def close(self) -> None:
        """End the session with what was run. Idempotent."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def release(self) -> bool:
        """End the session for want of room, which the next run says; return whether there was one."""
        is_open = self._session is not None and self._session.alive
        if self._session is not None:
            self._session.close()
        return is_open

    @property
    def _state(self) -> dict[str, object]:
        accepted = self.progress.accepted(self.step)
        return {"code": self.code, "step": self.step.number, "accepted": accepted}
