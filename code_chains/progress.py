"""What a person at a terminal sees of a running chain: a spinner and a line for each stage, the code, the answer."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import UUID

import click
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import LangChainException
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.syntax import Syntax
from rich.text import Text

from code_chains.chains.validate import ApprovalRequest
from code_chains.code_chain import CodeChain
from code_chains.errors import CodeChainsError
from code_chains.state import Usage

if TYPE_CHECKING:
    from code_chains.answers import Answer

__all__ = ["DOING", "Counts", "Progress", "counted", "explained", "follow", "harmless", "note", "spent", "working"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
DOING = {
    "translate": "Translating the question",
    "retrieve": "Looking for examples",
    "plan": "Planning",
    "write_tests": "Writing tests",
    "generate": "Writing a program",
    "validate": "Checking it",
    "execute": "Running it in the sandbox",
    "evaluate": "Judging the outcome",
    "interpret": "Telling the answer",
}


class Progress(BaseCallbackHandler):
    """A callback handler that shows stages on standard error: a spinner on a terminal, plain lines elsewhere.

    It is a context manager, to be entered for each question.

    Args:
        shown: Keys of the result to show there as they come, e.g. `("code", "output")`.
    """

    def __init__(self, shown: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.shown = shown
        self.console = Console(stderr=True, highlight=False)
        self._status = self.console.status("Starting …")
        self._running: dict[UUID, tuple[str, float]] = {}
        self._answering = False
        self._asking = threading.Lock()

    def __enter__(self) -> Self:
        self._answering = False
        self._running.clear()
        if self.console.is_terminal:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()
        if self._answering and kind is not BrokenPipeError:
            click.echo()

    def on_chain_start(
        self, serialized: dict[str, Any], inputs: dict[str, Any], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A stage begins."""
        name = kwargs.get("name") or ""
        if name in DOING:
            self._running[run_id] = (name, time.monotonic())
            self._status.update(f"{DOING[name]} …")

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        """A stage has ended."""
        name, began = self._running.pop(run_id, ("", 0.0))
        if name and not self._answering:
            said = note(name, outputs)
            self.console.print(
                f"[dim]{DOING[name]:<28}{time.monotonic() - began:6.1f} s  [/dim]", Text(harmless(said), "yellow")
            )

    def approve(self, request: ApprovalRequest) -> bool:
        """Show a program that is about to run, with what the checks say of it, and ask for a yes."""
        with self._asking:  # Several may be asked for at once.
            self._status.stop()
            self.console.print("[bold]This program is about to run:[/bold]")
            self.reveal("code", request.code)
            for problem in request.problems:
                self.console.print(Text(f"  ! {harmless(str(problem))}", "yellow"))
            for name, path in request.files.items():
                self.console.print(Text(harmless(f"  it may read {name}, a copy of {path}"), "dim"))
            said = click.confirm("Run it?", default=False, err=True)
            if self.console.is_terminal:
                self._status.start()
            return said

    def show(self, chunk: Mapping[str, Any], *, answer: bool) -> None:
        """Show what a chunk of the stream adds; the answer goes to standard output as it comes."""
        for key in self.shown:
            if key in chunk:
                self.reveal(key, chunk[key])
        if answer and chunk.get("answer"):
            self._status.stop()
            self._answering = True
            click.echo(harmless(chunk["answer"]), nl=False)

    def _print(self, plain: str, pretty: RenderableType) -> None:
        """Dress text up for a terminal; elsewhere leave its lines as they are."""
        if self.console.is_terminal:
            self.console.print(Padding(pretty, (0, 2)))
        else:
            indented = "\n".join(f"  {line}" for line in harmless(plain).rstrip().split("\n"))
            self.console.print(Text(indented), soft_wrap=True)

    def reveal(self, key: str, value: Any) -> None:
        """Show the value of one key of a result on standard error."""
        if key == "code" and value:
            self._print(value, Syntax(harmless(value.rstrip()), "python", background_color="default", word_wrap=True))
        elif key == "output" and value:
            self._print(value, Text(harmless(value), "green"))
        elif key == "verdict":
            self.console.print(Text.assemble((value.status, "bold"), f" (by {value.by}): {harmless(value.reason)}"))
        elif key == "attempts":
            for attempt in value:
                mended = f" ({', '.join(attempt.mends)})" if attempt.mends else ""
                said = f"attempt {attempt.number}, {attempt.tack}{mended}: {attempt.status}, {attempt.verdict.reason}"
                self.console.print(Text(harmless(" ".join(said.split()))))
        elif key == "sources":
            for source in value:
                self.console.print(Text(harmless(f"Example: {source.name} ({source.about})"), "dim"))
        elif key == "usage":
            self.console.print(f"\n[dim]{spent(value)}[/dim]")


def follow(
    chain: CodeChain,
    state: dict[str, Any],
    progress: Progress,
    *,
    answer: bool = True,
    callbacks: Sequence[BaseCallbackHandler] = (),
) -> dict[str, Any]:
    """Run a chain and show what it does.

    Args:
        chain: What is run.
        state: Its input.
        progress: What shows it.
        answer: Whether the answer goes to standard output as it comes.
        callbacks: Who else is told.

    Returns:
        The whole result.

    Raises:
        CodeChainsError: Something went wrong, be it in the model's provider; its message is one line.
    """
    result: Any = None
    stream = cast("Generator[Any, None, None]", chain.stream(state, {"callbacks": [progress, *callbacks]}))
    try:
        with progress, closing(stream):
            for chunk in stream:
                result = chunk if result is None else result + chunk
                progress.show(chunk, answer=answer)
    except (CodeChainsError, BrokenPipeError, click.Abort):
        raise
    except Exception as error:
        raise CodeChainsError(explained(error)) from error
    return dict(result)


def explained(error: Exception) -> str:
    """What went wrong, in a line that says what to do."""
    if isinstance(error, CodeChainsError):
        return str(error)
    kind = "The model" if isinstance(error, LangChainException) else type(error).__name__
    return f"{kind}: {' '.join(str(error).split())[:500]}. See `code-chains doctor`."


def spent(usage: Usage) -> str:
    """What was spent, in a line."""
    cost = f", {usage.usd:.4f} dollars" if usage.usd else ""
    return f"{usage.model_calls} model calls, {usage.input_tokens} tokens read, {usage.output_tokens} written{cost}"


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner on standard error while something takes its time; nothing elsewhere than on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} …"):
        yield


@dataclass
class Counts:
    """What became of many questions.

    Attributes:
        total: How many there are.
        done: How many are answered, those of earlier runs among them.
        unanswered: How many of these have no program that held.
        failed: How many could not be asked, or were set aside.
    """

    total: int
    done: int = 0
    unanswered: int = 0
    failed: int = 0

    def __str__(self) -> str:
        left = self.total - self.done - self.failed
        parts = [f"{self.done} of {self.total} done"]
        parts += [f"{self.unanswered} without a program that held"] if self.unanswered else []
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{left} not asked"] if left else []
        return ", ".join(parts)

    @property
    def all_done(self) -> bool:
        """Whether each question has an answer of its own or an honest no."""
        return self.done == self.total


def counted(answers: Iterable[Answer], *, total: int, done: int = 0) -> Counts:
    """Take all answers and show how far it is: a bar on a terminal, a line for each failure."""
    counts, console = Counts(total, done), Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("Answering", total=total, completed=done)
        for answer in answers:
            if answer.error:
                counts.failed += 1
                console.print(Text(harmless(f"{answer.id}: {answer.error}"), "yellow"), soft_wrap=True)
            else:
                counts.done += 1
                counts.unanswered += not answer.ok
            bar.advance(task)
    return counts


def harmless(text: str) -> str:
    """Text without the control characters that steer a terminal or turn its direction, and without half characters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def note(name: str, outputs: Any) -> str:
    """What is worth saying about a stage that did not go well."""
    outputs = outputs if isinstance(outputs, Mapping) else {}
    if name == "validate" and outputs.get("problems"):
        return str(outputs["problems"][0])
    execution = outputs.get("execution") if name == "execute" else None
    return execution.summary if execution and execution.status not in ("ok", "refused") else ""
