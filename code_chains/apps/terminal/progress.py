"""Progress of a chain at a terminal: a spinner, a line per stage, the program and the answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import UUID

import click
from langchain_core.callbacks import BaseCallbackHandler
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.syntax import Syntax
from rich.text import Text

from code_chains.apps.remedies import remedy
from code_chains.apps.run_view import STAGE_LABELS, RunView, did_work, file_notes, stage_note
from code_chains.assembly.code_chain import CodeChain
from code_chains.callbacks.redaction import describe_error
from code_chains.chains.validate import ApprovalRequest
from code_chains.errors import CodeChainsError, InputError
from code_chains.language.reasons import verdict_words
from code_chains.records.printable import printable, strip_control_chars
from code_chains.state import Attempt, Source, Verdict

if TYPE_CHECKING:
    pass

_MAX_SOURCES = 5
WAITING_INTERVAL_S = 30.0
"""How often a long stage of one question is reported where there is no terminal."""


class Progress(BaseCallbackHandler):
    """A callback handler that shows stages on standard error: a spinner on a terminal, plain lines elsewhere.

    A context manager, entered once per question.

    Args:
        keys: Keys of the result to show there as they arrive, e.g. `("code", "output")`.
    """

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.keys = keys
        self.console: Console = Console(stderr=True, highlight=False)
        self._status = self.console.status("Starting …")
        self._stages: dict[UUID, tuple[str, float]] = {}
        self._has_answer = False
        self._run, self._shown = RunView(), ""
        self._approval_lock = threading.Lock()
        self._has_ended = threading.Event()

    def __enter__(self) -> Self:
        self._has_answer = False
        self._run, self._shown = RunView(), ""
        self._stages.clear()
        if self.console.is_terminal:
            self._status.start()
        else:
            self._has_ended.clear()
            threading.Thread(target=self._report_waiting, daemon=True).start()
        return self

    def _report_waiting(self) -> None:
        """Say at times what is waited for, where no spinner does."""
        while not self._has_ended.wait(WAITING_INTERVAL_S):
            for name, start in list(self._stages.values()):
                seconds = time.monotonic() - start
                if seconds >= WAITING_INTERVAL_S:
                    self.console.print(f"{STAGE_LABELS[name]} … {seconds:.0f} s so far")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._has_ended.set()
        self._status.stop()
        if self._has_answer and kind is not BrokenPipeError:
            click.echo()

    def on_chain_start(
        self, serialized: dict[str, Any], inputs: dict[str, Any], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Show the current stage."""
        name = kwargs.get("name") or ""
        if name in STAGE_LABELS:
            self._stages[run_id] = (name, time.monotonic())
            self._status.update(f"{STAGE_LABELS[name]} …")

    def on_chain_end(self, outputs: dict[str, Any], *, run_id: UUID, **kwargs: Any) -> None:
        """Show a finished stage with its duration."""
        name, start = self._stages.pop(run_id, ("", 0.0))
        if name and not self._has_answer and did_work(name, outputs):
            note = Text(printable(stage_note(name, outputs)), "yellow")
            self.console.print(
                f"[dim]{STAGE_LABELS[name]:<28}{time.monotonic() - start:6.1f} s  [/dim]", note
            )

    def approve(self, request: ApprovalRequest) -> bool:
        """Show a program that is about to run with the problems that checks reported, and ask for approval."""
        with self._approval_lock:  # Samples may request approval concurrently.
            self._status.stop()
            self.console.print("[bold]This program is about to run:[/bold]")
            self.show_value("code", request.code)
            for problem in request.problems:
                self.console.print(Text(f"  ! {strip_control_chars(str(problem))}", "yellow"))
            for name, path in request.files.items():
                self.console.print(
                    Text(strip_control_chars(f"  it may read {name}, a copy of {path}"), "dim")
                )
            try:
                is_approved = click.confirm("Run it?", default=False, err=True)
            except click.Abort as abort:
                if isinstance(abort.__context__, EOFError):
                    raise InputError(
                        "--approve needs an answer on standard input, which has ended."
                    ) from None
                raise
            if self.console.is_terminal:
                self._status.start()
            return is_approved

    def show(self, chunk: Mapping[str, Any], *, answer: bool) -> None:
        """Show a chunk of the stream; the answer is streamed to standard output."""
        self._show_run(chunk)
        for key in self.keys:
            if key in chunk and key not in ("code", "output", "verdict"):
                self.show_value(key, chunk[key])
        if answer and chunk.get("answer"):
            self._status.stop()
            self._has_answer = True
            click.echo(strip_control_chars(chunk["answer"]), nl=False)

    def _show_run(self, chunk: Mapping[str, Any]) -> None:
        """Show programs as they are written, what they print meanwhile, and of the outcome what was not shown yet."""
        for kind, value in self._run.add(chunk):
            if kind in ("program", "selected"):
                self._shown = ""
                if "code" in self.keys:
                    self.show_value("code", value)
            elif kind == "printed" and "output" in self.keys:
                self._show_lines(value.rpartition("\n")[0])
        if "output" in self.keys and "output" in chunk:
            self._show_lines(chunk["output"])

    def _show_lines(self, output: str) -> None:
        """Show the output of a program as far as it was not shown."""
        if not output.startswith(self._shown):
            self._shown = ""
        remainder = output[len(self._shown) :].strip("\n")
        self._shown = output
        self.show_value("output", remainder)

    def _print(self, plain: str, styled: RenderableType) -> None:
        """Print the styled text on a terminal, and elsewhere the plain one without wrapping."""
        if self.console.is_terminal:
            self.console.print(Padding(styled, (0, 2)))
        else:
            indented = "\n".join(f"  {line}" for line in strip_control_chars(plain).rstrip().split("\n"))
            self.console.print(Text(indented), soft_wrap=True)

    def show_value(self, key: str, value: Any) -> None:
        """Show the value of a key of the result on standard error."""
        if key == "code" and value:
            code = strip_control_chars(value.rstrip())
            self._print(value, Syntax(code, "python", background_color="default", word_wrap=True))
        elif key == "output" and value:
            self._print(value, Text(strip_control_chars(value), "green"))
        elif key == "verdict":
            self.show_verdict(value)
        elif key == "attempts":
            for attempt in value:
                self.console.print(Text(printable(_format_attempt(attempt))))
        elif key == "sources":
            self._show_sources(value)
        elif key == "usage":
            self.console.print(f"\n[dim]{value.describe()}[/dim]")

    def show_verdict(self, verdict: Verdict, language: str | None = None) -> None:
        """Show a verdict, in the language of the answer."""
        title, reason = verdict_words(verdict, language)
        judge = f" (by {verdict.by})" if title == verdict.status and verdict.by != "none" else ""
        self.console.print(Text.assemble((title, "bold"), f"{judge}: {printable(reason)}"))

    def _show_sources(self, sources: Sequence[Source]) -> None:
        for source in sources[:_MAX_SOURCES]:
            self.console.print(Text(strip_control_chars(f"Source: {source.name} ({source.about})"), "dim"))
        if len(sources) > _MAX_SOURCES:
            self.console.print(f"[dim]… and {len(sources) - _MAX_SOURCES} more sources[/dim]")


def _format_attempt(attempt: Attempt) -> str:
    autofixes = f" ({', '.join(attempt.autofixes)})" if attempt.autofixes else ""
    outcome = f"{attempt.status}, {attempt.verdict.reason}"
    model = f", {attempt.model}" if attempt.model else ""
    line = f"attempt {attempt.number}{model}, {attempt.strategy}{autofixes}: {outcome}"
    return " ".join(line.split())


def follow(
    chain: CodeChain,
    state: dict[str, Any],
    progress: Progress,
    *,
    answer: bool = True,
    callbacks: Sequence[BaseCallbackHandler] = (),
) -> dict[str, Any]:
    """Run a chain and show its progress.

    Args:
        chain: The chain.
        state: Its input.
        progress: Where progress is shown.
        answer: Whether to stream the answer to standard output.
        callbacks: Further callback handlers.

    Returns:
        The complete result.

    Raises:
        CodeChainsError: Any error, including those of the model's provider, with a message of one line.
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
        raise CodeChainsError(describe_error(error)) from error
    for note in file_notes(result):
        progress.console.print(Text(printable(note), "yellow"))
    if "verdict" in progress.keys:  # Last, where it is seen beside the answer.
        progress.show_verdict(result["verdict"], result.get("answer_language"))
    if advice := remedy(result, "terminal"):
        progress.console.print(Text(printable(advice)))
    return dict(result)


@contextmanager
def spinner(label: str) -> Iterator[None]:
    """Show a spinner on standard error; only on a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{label} …"):
        yield
