"""Progress of many questions at a terminal: a bar or lines, what is waited for, and how Ctrl-C ends it."""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from code_chains.records.printable import printable
from code_chains.state import Usage

if TYPE_CHECKING:
    from code_chains.batch.records import Answer
    from code_chains.batch.runner import Answers

REPORT_INTERVAL_S = 10.0
"""How often progress is reported where there is no terminal."""
STALL_S = 30.0
"""After how long without an answer it is said who is waited for."""
MAX_NAMED = 3
_KINDS = {"passing": "by outages or limits", "hopeless": "by settings", "question": "by themselves"}


@dataclass
class Counts:
    """The outcomes of many questions.

    Attributes:
        total: Number of questions.
        done: How many are done, including those of earlier runs.
        unanswered: How many of these have no program that passed verification.
        changed: How many are asked again, as they or their files have changed.
        failed: How many raised an error, by what failed.
        abandoned: How many were given up, as their workers died.
        in_words: How many of the done were answered in words alone, without a program.
        interrupted: How many were being answered when the run was ended at once; what they cost is unknown.
        usage: What was spent in this run.
        known_usd: Dollars of the answers whose price is known.
        started: When it began.
    """

    total: int
    done: int = 0
    unanswered: int = 0
    changed: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    abandoned: int = 0
    in_words: int = 0
    interrupted: int = 0
    usage: Usage = field(default_factory=Usage)
    known_usd: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def add(self, answer: Answer) -> None:
        """Count an answer."""
        self.usage += answer.usage
        self.known_usd += answer.usage.usd or 0.0
        if answer.is_lost:
            self.abandoned += 1
        elif answer.error:
            self.failed[answer.failure] += 1
        else:
            self.done += 1
            self.unanswered += not answer.ok
            self.in_words += answer.ok and not answer.result.get("code")

    @property
    def all_done(self) -> bool:
        """Whether no question failed or remains, so that each has an answer or a failed verdict."""
        return self.done == self.total

    def __str__(self) -> str:
        failed = self.failed.total()
        kinds = ", ".join(f"{count} {_KINDS[kind]}" for kind, count in self.failed.items() if kind in _KINDS)
        parts = {
            f"{self.done} of {self.total} done": True,
            f"{self.unanswered} without an answer": self.unanswered,
            f"{self.in_words} in words without a program": self.in_words,
            f"{self.changed} asked again as they changed": self.changed,
            f"{failed} failed ({kinds})": failed,
            f"{self.abandoned} abandoned": self.abandoned,
            f"{self.interrupted} interrupted": self.interrupted,
            f"{self.remaining} not started": self.remaining,
        }
        return ", ".join(part for part, is_said in parts.items() if is_said)

    @property
    def remaining(self) -> int:
        """How many were not asked."""
        return self.total - self.done - self.failed.total() - self.abandoned - self.interrupted

    @property
    def cost(self) -> str:
        """What was spent in this run, and how long it took."""
        cost = self.usage.describe(self.known_usd, is_partial=bool(self.interrupted))
        return f"{cost}, {time.monotonic() - self.started:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        names = ("total", "done", "unanswered", "in_words", "changed", "abandoned", "interrupted")
        spent = ("usd", "tokens", "model_calls", "estimated_calls")
        return {
            **{name: getattr(self, name) for name in names},
            **{name: getattr(self.usage, name) for name in spent},
            "failed": dict(self.failed),
            "not_started": self.remaining,
            "seconds": round(time.monotonic() - self.started, 3),
        }


def watch_batch(answers: Answers, counts: Counts) -> Iterator[Answer]:
    """Yield answers as they come, count and show them: a line per failure, and on a terminal a bar, else lines.

    The first Ctrl-C ends the run once what is being answered is written; the second one ends it at once.
    """
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(Progress(*columns, console=console, disable=not console.is_terminal))
        task = bar.add_task("Answering", total=counts.total, completed=counts.done)
        watch = _Watch(console, bar, task, answers, counts)
        stack.enter_context(_stopping(answers, watch))
        stack.enter_context(watch)
        try:
            for answer in answers:
                counts.add(answer)
                watch.last = time.monotonic()
                if answer.error:
                    told = printable(f"{answer.question}: {answer.error}")
                    console.print(Text(told, "yellow"), soft_wrap=True)
                bar.advance(task)
                yield answer
        finally:
            counts.interrupted = len(answers.running)
        if watch.is_stopped:
            raise KeyboardInterrupt


def show_batch(answers: Answers, counts: Counts) -> Counts:
    """Consume all answers, count and show them."""
    try:
        for _ in watch_batch(answers, counts):
            pass
    except KeyboardInterrupt:
        click.echo(f"{counts}; go on with: {resume_command()}", err=True)
        raise
    return counts


def resume_command() -> str:
    """Return the command that goes on with this one."""
    arguments = [argument for argument in sys.argv[1:] if argument not in ("--anew", "--resume")]
    is_run = arguments[:1] == ["run"]
    return shlex.join(["code-chains", *arguments, *(["--resume"] if is_run else [])])


class _Watch:
    """Says in a thread how far a run is, and whom it waits for."""

    def __init__(self, console: Console, bar: Progress, task: Any, answers: Answers, counts: Counts) -> None:
        self._console, self._bar, self._task = console, bar, task
        self._answers, self._counts = answers, counts
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._report, daemon=True, name="code_chains-progress")
        self.last = time.monotonic()
        self.is_stopped = False

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def _report(self) -> None:
        is_terminal = self._console.is_terminal
        while not self._has_ended.wait(1.0 if is_terminal else REPORT_INTERVAL_S):
            if is_terminal:
                self._bar.update(self._task, description=self._state() or "Answering")
            else:
                self.say(f"{self._counts}{self._state('; ')}")

    def _state(self, before: str = "") -> str:
        running = self._answers.running
        if self.is_stopped:
            return f"{before}stopping, {len(running)} being answered"
        if cooling := self._answers.cooling:
            return f"{before}waiting {cooling:.0f} s for the provider"
        if time.monotonic() - self.last < STALL_S or not running:
            return ""
        named = [f"{name[:40]} ({seconds:.0f} s)" for name, seconds in list(running.items())[:MAX_NAMED]]
        return f"{before}waiting for {', '.join(named)}"

    def say(self, text: str) -> None:
        self._console.print(Text(printable(text)), soft_wrap=True)


@contextlib.contextmanager
def _stopping(answers: Answers, watch: _Watch) -> Iterator[None]:
    """Let the first Ctrl-C stop a run, so that what is being answered, and paid, is written."""

    def stop(number: int, frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        watch.is_stopped = True
        answers.stop()
        count = len(answers.running)
        watch.say(
            f"Stopping: {count} being answered are finished and written. Ctrl-C once more ends at once."
        )

    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # Not in the main thread.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
