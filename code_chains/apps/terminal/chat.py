"""A conversation at the terminal, or through a pipe: questions and a few commands in, answers out.

Answers go to standard output, everything else to standard error. A turn that is stopped or fails leaves the
conversation unchanged.
"""

from __future__ import annotations

import hashlib
import io
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import click

from code_chains.apps.artifact_folder import ArtifactFolder
from code_chains.apps.shutdown import TurnGuard
from code_chains.apps.terminal.named_files import check_named_files
from code_chains.apps.terminal.progress import Progress, follow
from code_chains.apps.terminal.question_log import data_folder
from code_chains.assembly.code_chain import CodeChain
from code_chains.callbacks.redaction import describe_error
from code_chains.callbacks.usage import UsageMeter
from code_chains.conversations.export import EXPORTS, export
from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import CodeChainsError, InputError
from code_chains.executors.inputs import check_files
from code_chains.inputs import check_query
from code_chains.records.filenames import file_stem
from code_chains.records.printable import printable
from code_chains.state import Artifact, Turn
from code_chains.storage.sqlite import SqliteStore

_EXIT_WINDOW_S, _IGNORE_WINDOW_S = 3.0, 2.0
"""A second Ctrl-C within these times exits at a prompt, and is ignored while a turn is being stopped."""
_MAX_HISTORY_LINES = 1000
_EXIT = {"/exit", "/quit", "/q", "exit", "quit", "exit()", "quit()", ":q"}
"""What leaves a chat; none of these words alone is a question."""


class Chat:
    """A conversation.

    Args:
        chain: What answers; its memory comes from `open_memory`.
        progress: Where progress is shown.
        name: Name of the conversation; without one it ends with this process.
        files: Files for the first question, by name.
    """

    chain: CodeChain
    progress: Progress

    def __init__(
        self,
        chain: CodeChain,
        progress: Progress,
        *,
        name: str | None = None,
        files: Mapping[str, Path] | None = None,
    ) -> None:
        self.chain, self.progress = chain, progress
        self.session: str = name or f"chat-{uuid.uuid4().hex}"
        self.folder: ArtifactFolder = ArtifactFolder(Path(f"{file_stem(name or 'chat')}-files"))
        self.meter: UsageMeter = UsageMeter(chain.budget.prices.own if chain.budget else None)
        self._files = {name: path.absolute() for name, path in (files or {}).items()}
        self._pending_files = dict(self._files)
        self._saved_digests: set[str] = set()
        self._exported: set[Path] = set()

    def run(self) -> None:
        """Answer questions until the input ends."""
        lines = LineReader(data_folder() / "history")
        if count := len(self._turns()):
            _echo(
                f"Continuing a conversation with {count} turn{'s' if count > 1 else ''}. Type /help for commands."
            )
        elif lines.is_interactive:
            _echo("Ask a question. Type /help for commands.")
        with lines, _interrupt_turns(lines), TurnGuard() as guard:
            for entry in lines:
                try:
                    with guard.turn():
                        is_open = self._handle(entry)
                    if not is_open:
                        return
                except (KeyboardInterrupt, click.Abort):
                    _echo("Stopped.")
                except CodeChainsError as error:
                    _echo(f"Error: {describe_error(error)}")

    def _handle(self, entry: str) -> bool:
        """Answer a question or run a command, and return whether the conversation continues."""
        word, _, rest = entry.strip().partition(" ")
        if entry.strip().lower() in _EXIT:
            return False
        if not entry.startswith("/") or entry.startswith("//"):
            self._ask(entry.removeprefix("/") if entry.startswith("//") else entry)
        elif word in _COMMANDS:
            _COMMANDS[word][1](self, rest.strip())
        else:
            _echo(
                f"Unknown command {word}. Commands: {', '.join([*_COMMANDS, '/exit'])}. To ask a question: /{word}"
            )
        return True

    def _ask(self, question: str) -> None:
        check_named_files(question, self._files)
        state = {"query": check_query(question), "session_id": self.session, "files": self._pending_files}
        try:
            result = follow(self.chain, state, self.progress, callbacks=[self.meter])
        except (KeyboardInterrupt, click.Abort):
            _echo("Stopped. The conversation is unchanged.")
            return
        if result["verdict"].ok:
            # The session has them.
            if self.chain.conversations is not None and self.chain.conversations.keep_state:
                self._pending_files = {}
            self._save_files(result["execution"].artifacts)

    def _save_files(self, artifacts: tuple[Artifact, ...]) -> None:
        """Save the artifacts of a turn, except unchanged ones."""
        changed = [artifact for artifact in artifacts if _digest(artifact) not in self._saved_digests]
        if message := self.folder.save(changed):
            _echo(message)
        self._saved_digests |= set(map(_digest, changed))

    def _turns(self) -> list[Turn]:
        return self.chain.turns(self.session)

    # -- commands --------------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        for word, (description, _command) in _COMMANDS.items():
            _echo(f"{word:<8}{description}")
        _echo(
            "/exit   or Ctrl-D: leave. A trailing \\ continues a question on the next line; // starts one with /."
        )

    def _save(self, path: str) -> None:
        if not path:
            raise InputError(
                "Name a file, e.g. /save analysis.ipynb (a notebook), .py (a script) or .md (Markdown)."
            )
        target = Path(path).expanduser()
        if target.exists() and target not in self._exported:
            self._confirm_replacing(target)
        _echo(f"Saved: {', '.join(map(str, export(self._turns(), target)))}")
        self._exported.add(target)

    def _confirm_replacing(self, target: Path) -> None:
        """Have it confirmed that a file is replaced that this chat did not write; a pipe cannot confirm it."""
        if not target.is_file() or target.suffix not in EXPORTS:
            return  # The export says why it cannot be written.
        if not sys.stdin.isatty():
            raise InputError(f"{str(target)!r} exists. Remove it, or choose another name.")
        if not click.confirm(f"{target} exists. Replace it?", default=False, err=True):
            raise InputError("Nothing was saved.")

    def _undo(self, _: str) -> None:
        turn = self.chain.undo(self.session)
        if turn is None:
            raise InputError("There is nothing to undo.")
        files = {name: Path(path) for name, path in turn.files.items() if Path(path).is_file()}
        self._pending_files = {**files, **self._pending_files}
        _echo(f"Undone: {' '.join(turn.query.split())}")

    def _reset(self, _: str) -> None:
        self.chain.forget(self.session)
        self._pending_files = dict(self._files)
        _echo("The conversation is empty.")

    def _cost(self, _: str) -> None:
        usage = self.meter.usage
        _echo(usage.describe())

    def _file(self, path: str) -> None:
        if not path:
            raise InputError("Name a file, e.g. /file sales.csv.")
        absolute = Path(path).expanduser().absolute()
        files = check_files([absolute])
        self._files |= files
        self._pending_files |= files
        _echo(f"{', '.join(files)} will be available to the next program.")

    def _code(self, _: str) -> None:
        code = next((turn.code for turn in reversed(self._turns()) if turn.code.strip()), None)
        if code is None:
            raise InputError("There is no program yet.")
        self.progress.show_value("code", code)


def _digest(artifact: Artifact) -> str:
    return hashlib.sha256(artifact.data).hexdigest()


_COMMANDS: Mapping[str, tuple[str, Callable[[Chat, str], None]]] = {
    "/help": ("show this help", Chat._help),
    "/save": (
        "FILE.ipynb, .py or .md: export the conversation as a notebook, a script or Markdown",
        Chat._save,
    ),
    "/undo": ("undo the last turn and the effects of its program", Chat._undo),
    "/reset": ("start a new conversation", Chat._reset),
    "/cost": ("show the usage since the start of this run", Chat._cost),
    "/file": ("PATH: add a file that programs may read", Chat._file),
    "/code": ("show the last program", Chat._code),
}


def _echo(text: str) -> None:
    click.echo(printable(text), err=True)


@contextmanager
def _interrupt_turns(lines: LineReader) -> Iterator[None]:
    """Let Ctrl-C stop the running turn. Repeated ones interrupt neither its cleanup nor the next question."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last_interrupt = float("-inf")

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last_interrupt
        if lines.is_waiting or time.monotonic() - last_interrupt > _IGNORE_WINDOW_S:
            last_interrupt = time.monotonic()
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


# -- input ---------------------------------------------------------------------------------------------------


class LineReader:
    """Entries from a terminal, with line editing and a history, or from a pipe.

    A trailing backslash continues an entry on the next line. A context manager, which saves the history.

    Args:
        history: The file with the history.

    Attributes:
        is_interactive: Whether input comes from a terminal.
        is_waiting: Whether it waits for input at the prompt.
    """

    is_interactive: bool
    is_waiting: bool

    def __init__(self, history: Path) -> None:
        self.is_interactive, self.is_waiting = sys.stdin.isatty(), False
        self._history = history
        self._last_interrupt = float("-inf")
        self._editor = _line_editor() if self.is_interactive else None
        if isinstance(sys.stdin, io.TextIOWrapper):  # Invalid UTF-8 is rejected with its question.
            sys.stdin.reconfigure(errors="surrogateescape")

    def __enter__(self) -> LineReader:
        if self._editor is not None:
            # Replies to confirmation prompts do not belong in the history.
            self._editor.set_auto_history(False)
            with suppress(OSError):
                self._editor.read_history_file(self._history)
        return self

    def __exit__(self, *_: object) -> None:
        if self._editor is not None:
            try:
                _save_history(self._editor, self._history)
            except OSError as error:
                _echo(f"The history could not be saved: {error}")

    def __iter__(self) -> Iterator[str]:
        while True:
            try:
                entry = self._read_entry()
            except EOFError:
                return
            except KeyboardInterrupt:
                if not self.is_interactive:
                    raise
                if time.monotonic() - self._last_interrupt < _EXIT_WINDOW_S:
                    return
                self._last_interrupt = time.monotonic()
                _echo("\nPress Ctrl-C again, or Ctrl-D, to exit.")
                continue
            self._last_interrupt = float("-inf")
            if entry.strip():
                yield entry

    def _read_entry(self) -> str:
        lines: list[str] = []
        while True:
            try:
                line = self.read_line("... " if lines else "> ")
            except EOFError:
                if not lines:
                    raise
                return "\n".join(lines)
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)

    def read_line(self, prompt: str) -> str:
        """Return one line.

        Raises:
            EOFError: The input has ended.
        """
        if not self.is_interactive:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\r\n")
        if not sys.stdout.isatty():  # The prompt must not be among the answers.
            click.echo(prompt, nl=False, err=True)
            prompt = ""
        self.is_waiting = True
        try:
            line = input(prompt)
        except EOFError:
            _echo("")
            raise
        finally:
            self.is_waiting = False
        if self._editor is not None and line.strip():
            self._editor.add_history(" ".join(line.splitlines()))  # Its file has one entry per line.
        return line.rstrip("\n")  # A pasted text may end with a line break.


def _line_editor() -> ModuleType | None:
    """Return the module `readline` if Python was built with it; a text of several lines that is pasted is one entry."""
    try:
        import readline
    except ImportError:
        return None
    if "libedit" not in (readline.__doc__ or ""):  # It has no such setting.
        readline.parse_and_bind("set enable-bracketed-paste on")
    return readline


def _save_history(editor: Any, path: Path) -> None:
    """Write the last lines to a file that only its owner can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        editor.set_history_length(_MAX_HISTORY_LINES)
        editor.write_history_file(temporary)
        temporary.chmod(0o600)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


# -- storage -------------------------------------------------------------------------------------------------


def open_store() -> SqliteStore:
    """Open the store of named conversations."""
    return SqliteStore(data_folder() / "conversations.sqlite")


@contextmanager
def open_memory(name: str | None) -> Iterator[ConversationMemory]:
    """Open the memory of a conversation: in the user's data folder if it has a name, else in RAM."""
    if name is None:
        yield ConversationMemory()
        return
    with open_store() as store:
        yield ConversationMemory(store)
