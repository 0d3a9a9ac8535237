"""A learner's work at a lesson, as its hosts show it: read, write, run, check, submit, ask."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from code_chains.apps.terminal import question_log
from code_chains.apps.terminal.chat import LineReader
from code_chains.arguments import resolve_executor
from code_chains.callbacks.redaction import strip_control_chars
from code_chains.errors import CodeChainsError, InputError, SessionError
from code_chains.executors.base import Executor, Session
from code_chains.lessons.gate import HintGate
from code_chains.lessons.grade import GradeChain
from code_chains.lessons.hints import Hints
from code_chains.lessons.lesson import Lesson, Step
from code_chains.lessons.progress import Progress
from code_chains.lessons.reading import read_lesson
from code_chains.lessons.running import Submission
from code_chains.lessons.tutor import TutorChain
from code_chains.models import resolve_model
from code_chains.storage.sqlite import SqliteStore

_EXIT = {"/exit", "/quit", "/q", "exit", "quit"}
_END = "."


class Learn:
    """A learner's work at a lesson.

    Args:
        lesson: The lesson.
        executor: Runs programs and tests, with the lesson's limits.
        progress: What the learner did before, and does now.
        hints: Gives hints.
        say: Shows a text, which may be Markdown.
    """

    def __init__(
        self,
        lesson: Lesson,
        executor: Executor,
        progress: Progress,
        hints: Hints,
        say: Callable[[str], object] = click.echo,
    ) -> None:
        self._lesson, self._executor, self._progress = lesson, executor, progress
        self._hints, self._show_text = hints, say
        self._lines: LineReader | None = None
        self._grade = GradeChain(lesson, executor)
        self._check_examples = GradeChain(lesson, executor, against="examples")
        self._session: Session | None = None
        self._told = ""
        self._step = progress.next_step() or lesson.steps[0]

    def begin(self) -> None:
        """Show where the learner is."""
        self._say(f"{self._lesson.title}\n")
        if self._progress.has_changed:
            self._say("The lesson was changed since you were here. Your programs are kept.\n")
        elif not self._progress.events() and self._lesson.text:
            self._say(f"{self._lesson.text}\n")
        self._show("")

    def run(self, lines: LineReader) -> None:
        """Teach until the input ends."""
        self._lines = lines
        self.begin()
        with lines:
            for entry in lines:
                if entry.strip() in _EXIT:
                    break
                try:
                    self.handle(entry)
                except (KeyboardInterrupt, click.Abort):
                    self._say("Stopped.")
                except CodeChainsError as error:
                    self._say(f"Error: {error}")
        self.close()

    def write(self, code: str) -> None:
        """Keep a program as the learner's draft."""
        self._progress.add("draft", self._step, code=code)

    def _say(self, text: str) -> None:
        self._show_text(strip_control_chars(text))

    def handle(self, entry: str) -> None:
        """Do what a line says: a command, or a question about the exercise.

        Raises:
            CodeChainsError: It cannot be done.
        """
        word, _, rest = entry.strip().partition(" ")
        if not word.startswith("/"):
            self._ask(entry.strip())
        elif word in _COMMANDS:
            _COMMANDS[word][1](self, rest.strip())
        else:
            self._say(f"Unknown command {word}. Commands: {', '.join([*_COMMANDS, '/exit'])}")

    @property
    def _code(self) -> str:
        return self._progress.draft(self._step)

    @property
    def _state(self) -> dict[str, object]:
        accepted = self._progress.accepted(self._step)
        return {"code": self._code, "step": self._step.number, "accepted": accepted}

    # -- read and write --------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        for word, (description, _command) in _COMMANDS.items():
            self._say(f"{word:<9}{description}")
        self._say("/exit    leave; your work is kept. Anything else is a question about the exercise.")

    def _show(self, _: str) -> None:
        step = self._step
        done = " (done)" if step.is_exercise and self._progress.is_done(step) else ""
        self._say(f"Step {step.number} of {len(self._lesson.steps)}: {step.title}{done}\n\n{step.text}\n")
        if step.examples:
            self._say(f"Examples:\n{_indented(step.examples.code)}\n")
        if self._code:
            self._say(f"Your program:\n{_indented(self._code)}\n")
        self._say("Type /help for commands.")

    def _edit(self, path: str) -> None:
        if path:
            self._keep(_read(Path(path).expanduser()))
        elif sys.stdin.isatty():
            text = click.edit(self._code, extension=".py", editor=os.environ.get("EDITOR"))
            if text is None:
                self._say("Nothing was changed.")
            else:
                self._keep(text)
        else:
            self._write("")

    def _write(self, _: str) -> None:
        self._say(f"Write your program. A line with only {_END} ends it.")
        self._keep("\n".join(self._lines_to_end()) + "\n")

    def _lines_to_end(self) -> Iterator[str]:
        with suppress(EOFError):
            while self._lines and (line := self._lines.read_line("  ")) != _END:
                yield line

    def _keep(self, code: str) -> None:
        self._progress.add("draft", self._step, code=code)
        self._say(
            f"Kept, {len(code.splitlines())} lines. /run runs it, /check tries the examples, /submit grades it."
        )

    def _restart(self, _: str) -> None:
        self._keep(self._step.starter.code if self._step.starter else "")
        self.close()

    # -- run and submit --------------------------------------------------------------------------------------

    def _run(self, words: str) -> None:
        given = "\n".join(words.split()) + "\n" if words else self._example_input()
        run = self._open().run(self._code, files=self._lesson.files, stdin=given)
        if given:
            self._say(f"(input: {' '.join(given.split())})")
        self._say(run.output or "(no output)")
        if not run.ok:
            place = f" (line {run.error.line})" if run.error and run.error.line else ""
            self._say(f"{run.summary}{place}")

    def _example_input(self) -> str:
        """Return the input of the first example; empty if there is none."""
        runs = self._step.examples.expectations.runs if self._step.examples else ()
        return (runs[0].stdin or "") if runs else ""

    def _open(self) -> Session:
        """Return the session, in which what was set up and accepted before has run already."""
        if self._session is None or not self._session.alive:
            self._session = self._executor.session()
            accepted = tuple(self._progress.accepted(self._step))
            self._session.run(Submission(self._lesson, self._step, "", accepted).before or "0")
        return self._session

    def _undo(self, _: str) -> None:
        if self._session is None or not self._session.alive:
            raise InputError("There is no run to undo.")
        try:
            self._session.rollback()
        except SessionError:
            self.close()
        self._say("The effects of the last run are undone.")

    def close(self) -> None:
        """End the session with what was run."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _check(self, _: str) -> None:
        if self._step.examples is None:
            raise InputError("This step has no examples. /run your program, or /submit it.")
        self._say(self._check_examples.invoke(self._state)["verdict"].reason)

    def _submit(self, _: str) -> None:
        if not self._step.is_exercise:
            raise InputError("There is nothing to submit at this step. /next goes on.")
        outcome = self._grade.invoke(self._state)
        results = outcome["results"]
        status, counts = results["status"], results["gradable"]
        self._progress.add("attempt", self._step, code=self._code, status=status, counts=counts)
        self._told = outcome["verdict"].reason
        self._say(self._told)
        if status == "pass":
            following = self._progress.next_step()
            self._say("That was the last exercise." if following is None else "/next goes on.")

    # -- ask -------------------------------------------------------------------------------------------------

    def _hint(self, _: str) -> None:
        self._ask("")

    def _ask(self, question: str) -> None:
        earlier = [event.text for event in self._progress.of(self._step, "hint")]
        state = {**self._state, "hints": earlier, "verdict": self._told, "query": question}
        hint = self._hints.give(state)
        if hint.is_new:
            self._progress.add("hint", self._step, text=hint.text)
        self._say(hint.text)

    # -- other steps -----------------------------------------------------------------------------------------

    def _next(self, _: str) -> None:
        if self._step.number == len(self._lesson.steps):
            raise InputError("This is the last step.")
        if not self._progress.is_done(self._step) and not self._lesson.is_released:
            raise InputError("This step is not done yet. /step N goes to another one.")
        self._go(self._step.number + 1)

    def _goto(self, number: str) -> None:
        if not number.isdecimal():
            titles = [f"{step.number} {self._mark(step)} {step.title}" for step in self._lesson.steps]
            self._say("\n".join(titles))
            return
        self._go(int(number))

    def _mark(self, step: Step) -> str:
        return "✓" if step.is_exercise and self._progress.is_done(step) else " "

    def _go(self, number: int) -> None:
        self._step, self._told = self._lesson.step(number), ""
        self.close()
        self._show("")

    def _forget(self, _: str) -> None:
        if sys.stdin.isatty():
            click.confirm("Delete your programs, attempts and hints of this lesson?", abort=True, err=True)
        self._progress.forget()
        self.close()
        self._say("Your work at this lesson is deleted.")


_COMMANDS: Mapping[str, tuple[str, Callable[[Learn, str], None]]] = {
    "/show": ("show the exercise and your program", Learn._show),
    "/edit": ("[FILE] write your program in $EDITOR, or take it from a file", Learn._edit),
    "/write": ("write your program here, line by line", Learn._write),
    "/run": ("[INPUT …] run it; variables are kept; each word is a line that it can read", Learn._run),
    "/undo": ("undo the effects of the last run", Learn._undo),
    "/check": ("try the examples; it costs nothing", Learn._check),
    "/submit": ("have it graded by the hidden tests", Learn._submit),
    "/hint": ("get a hint", Learn._hint),
    "/next": ("go to the next step", Learn._next),
    "/step": ("[N] list the steps, or go to one", Learn._goto),
    "/restart": ("begin this step again", Learn._restart),
    "/forget": ("delete all your work at this lesson", Learn._forget),
    "/help": ("show this help", Learn._help),
}


def _indented(text: str) -> str:
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{shlex.quote(str(path))} cannot be read: {error}.") from error


@contextmanager
def opened(
    path: Path,
    *,
    model: str | None = None,
    base_url: str | None = None,
    learner: str = "me",
    say: Callable[[str], object] = click.echo,
) -> Iterator[Learn]:
    """Open a lesson for a learner, whose work is kept in the folder of the user's data.

    Args:
        path: The lesson's file.
        model: Name of a model that answers questions and gives hints; None for no model.
        base_url: Base URL of an OpenAI-compatible server.
        learner: Who learns.
        say: Shows a text.
    """
    lesson = read_lesson(path)
    store = SqliteStore(question_log.data_folder() / "lessons.sqlite")
    with resolve_executor("strongest", lesson.limits) as executor, store:
        tutor = None
        if model is not None:
            chosen = resolve_model(model, base_url=base_url)
            tutor = TutorChain(model=chosen, lesson=lesson, gate=HintGate(executor), writer=chosen)
        learn = Learn(lesson, executor, Progress(store, lesson, learner), Hints(lesson, tutor), say)
        try:
            yield learn
        finally:
            learn.close()
