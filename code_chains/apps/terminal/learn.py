"""A lesson at the terminal and in notebooks: its commands, and what they say."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import nbformat

from code_chains.apps.terminal import question_log
from code_chains.apps.terminal.chat import LineReader
from code_chains.errors import CodeChainsError, InputError
from code_chains.executors.registry import resolve_executor
from code_chains.lessons.hints import hints_of
from code_chains.lessons.lesson import Step
from code_chains.lessons.notebook import to_notebook
from code_chains.lessons.progress import Progress, open_store
from code_chains.lessons.reading import read_lesson
from code_chains.lessons.report import best_points
from code_chains.lessons.work import LOST_STATE, LearnerWork
from code_chains.models import resolve_model
from code_chains.records.printable import strip_control_chars
from code_chains.storage.files import atomic_write
from code_chains.storage.foreign import read_text

_EXIT = {"/exit", "/quit", "/q", "exit", "quit"}
_END = "."


class Learn:
    """A lesson at the terminal or in a notebook.

    Args:
        work: The learner's work.
        say: Shows a text, which may be Markdown.
    """

    def __init__(self, work: LearnerWork, say: Callable[[str], object] = click.echo) -> None:
        self._work, self._show_text = work, say
        self._lines: LineReader | None = None

    def begin(self) -> None:
        """Show where the learner is."""
        lesson, progress = self._work.lesson, self._work.progress
        self._say(f"{lesson.title}\n")
        if progress.has_changed:
            self._say("The lesson was changed since you were here. Your programs are kept.\n")
        elif not progress.events() and lesson.text:
            self._say(f"{lesson.text}\n")
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

    def write(self, code: str) -> None:
        """Keep a program as the learner's draft."""
        self._work.write(code)

    def _say(self, text: str) -> None:
        self._show_text(strip_control_chars(text))

    def handle(self, entry: str) -> None:
        """Do what a line says: a command, or a question about the exercise.

        Raises:
            CodeChainsError: It cannot be done.
        """
        word, _, rest = entry.strip().partition(" ")
        if not word.startswith("/"):
            self._say(self._work.ask(entry.strip()).text)
        elif word in _COMMANDS:
            _COMMANDS[word][1](self, rest.strip())
        else:
            self._say(f"Unknown command {word}. Commands: {', '.join([*_COMMANDS, '/exit'])}")

    # -- read and write --------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        for word, (description, _command) in _COMMANDS.items():
            self._say(f"{word:<9}{description}")
        self._say("/exit    leave; your work is kept. Anything else is a question about the exercise.")

    def _show(self, _: str) -> None:
        work, step = self._work, self._work.step
        done = " (done)" if step.is_exercise and work.progress.is_done(step) else ""
        self._say(f"Step {step.number} of {len(work.lesson.steps)}: {step.title}{done}\n\n{step.text}\n")
        if step.examples:
            self._say(f"Examples:\n{_indented(step.examples.code)}\n")
        if code := work.code:
            self._say(f"{'Your program' if step.form == 'program' else 'Your answer'}:\n{_indented(code)}\n")
        if step.form == "choice":
            self._say("Answer with letters: /answer B")
        self._say("Type /help for commands.")

    def _edit(self, path: str) -> None:
        if path:
            self._keep(read_text(Path(path).expanduser()))
        elif sys.stdin.isatty():
            text = click.edit(self._work.code, extension=".py", editor=os.environ.get("EDITOR"))
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
        self._work.write(code)
        self._say(
            f"Kept, {len(code.splitlines())} lines. /run runs it, /check tries the examples, /submit grades it."
        )

    def _restart(self, _: str) -> None:
        self._work.restart()
        self._say("This step begins again.")

    # -- run and submit --------------------------------------------------------------------------------------

    def _run(self, words: str) -> None:
        given = "\n".join(words.split()) + "\n" if words else self._work.example_input
        run = self._work.run(given)
        if self._work.has_lost_state:
            self._say(LOST_STATE)
        if given:
            self._say(f"(input: {' '.join(given.split())})")
        self._say(run.output or "(no output)")
        if not run.ok:
            place = f" (line {run.error.line})" if run.error and run.error.line else ""
            self._say(f"{run.summary}{place}")

    def _undo(self, _: str) -> None:
        self._work.undo()
        self._say("The effects of the last run are undone.")

    def _check(self, _: str) -> None:
        self._say(self._work.check().reason)

    def _submit(self, _: str) -> None:
        is_accepted = self._work.submit()
        self._say(self._work.reason)
        if is_accepted:
            is_last = self._work.progress.next_step() is None
            self._say("That was the last exercise." if is_last else "/next goes on.")

    def _answer(self, words: str) -> None:
        if not words:
            raise InputError("Write your answer behind it: /answer B")
        self._work.write(words)
        self._submit("")

    def _hint(self, _: str) -> None:
        self._say(self._work.ask().text)

    # -- other steps -----------------------------------------------------------------------------------------

    def _next(self, _: str) -> None:
        self._work.next()
        self._show("")

    def _goto(self, number: str) -> None:
        if number.isdecimal():
            self._work.go(int(number))
            self._show("")
            return
        steps = self._work.lesson.steps
        self._say(
            "\n".join(f"{step.number} {self._mark(step)} {step.title}{self._points(step)}" for step in steps)
        )

    def _mark(self, step: Step) -> str:
        return "✓" if step.is_exercise and self._work.progress.is_done(step) else " "

    def _points(self, step: Step) -> str:
        """Return what the learner earned at a step, as the teacher's table has it."""
        attempts = self._work.progress.of(step, "attempt")
        if not attempts:
            return ""
        earned = best_points(attempts, step)
        points = "to be read" if earned is None else f"{earned:g} of {step.points:g} points"
        return f" ({points}, attempts: {len(attempts)})"

    def _export(self, path: str) -> None:
        if Path(path).suffix != ".ipynb":
            raise InputError("Name the notebook: /export loops.ipynb")
        notebook = nbformat.writes(to_notebook(self._work.progress))  # type: ignore[no-untyped-call]
        try:
            atomic_write(Path(path).expanduser(), f"{notebook}\n".encode())
        except OSError as error:
            raise InputError(f"{shlex.quote(path)} cannot be written: {error.strerror}.") from error
        self._say(f"{path} has the exercises and your programs.")

    def _name(self, name: str) -> None:
        if name:
            self._work.progress.introduce(name)
        self._say(f"Your teacher knows you as {self._work.progress.label}.")

    def _forget(self, _: str) -> None:
        if sys.stdin.isatty():
            click.confirm("Delete your programs, attempts and hints of this lesson?", abort=True, err=True)
        self._work.forget()
        self._say("Your work at this lesson is deleted.")


_COMMANDS: Mapping[str, tuple[str, Callable[[Learn, str], None]]] = {
    "/show": ("show the exercise and your program", Learn._show),
    "/edit": ("[FILE] write your program in $EDITOR, or take it from a file", Learn._edit),
    "/write": ("write your program here, line by line", Learn._write),
    "/run": ("[INPUT …] run it; variables are kept; each word is a line that it can read", Learn._run),
    "/undo": ("undo the effects of the last run", Learn._undo),
    "/check": ("try the examples; it costs nothing", Learn._check),
    "/submit": ("have it graded by the hidden tests", Learn._submit),
    "/answer": ("ANSWER answer a question in a line, and have it graded", Learn._answer),
    "/hint": ("get a hint", Learn._hint),
    "/next": ("go to the next step", Learn._next),
    "/step": ("[N] list the steps, or go to one", Learn._goto),
    "/restart": ("begin this step again", Learn._restart),
    "/export": ("FILE.ipynb: save the exercises and your programs as a notebook", Learn._export),
    "/name": ("[NAME] say who you are, for your teacher", Learn._name),
    "/forget": ("delete all your work at this lesson", Learn._forget),
    "/help": ("show this help", Learn._help),
}


def _indented(text: str) -> str:
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))


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
    kept = open_store(question_log.data_folder())
    with resolve_executor("strongest", lesson.limits) as executor, kept as store:
        chosen = None if model is None else resolve_model(model, base_url=base_url)
        hints = hints_of(lesson, executor, chosen)
        work = LearnerWork(lesson, executor, Progress(store, lesson, learner), hints)
        try:
            yield Learn(work, say)
        finally:
            work.close()
