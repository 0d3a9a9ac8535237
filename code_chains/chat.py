"""A conversation at the terminal, or through a pipe: questions in, answers out, and a few commands beside them.

Answers go to standard output, everything else to standard error. A turn that is stopped or fails leaves the conversation as
it was before.
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

from code_chains.code_chain import CodeChain
from code_chains.draining import WholeTurns
from code_chains.errors import CodeChainsError, InputError
from code_chains.export import export, numbered, plain_name, safe_name
from code_chains.files import keep
from code_chains.inputs import check_files, check_query
from code_chains.memory import ConversationMemory
from code_chains.progress import Progress, follow, harmless, spent
from code_chains.state import Artifact, Turn
from code_chains.stores import SqliteStore
from code_chains.usage import UsageMeter

__all__ = ["Chat", "Lines", "remembered", "saved"]

_PATIENCE, _IMPATIENCE = 3.0, 2.0
"""Seconds in which a second Ctrl-C means more than the first at a prompt, and in which it means nothing elsewhere."""
_LONGEST_HISTORY = 1000
_VIEWS = ("text/html", "text/markdown", "text/x-latex")


class Chat:
    """A conversation.

    Args:
        chain: What answers; its memory is what `remembered` gave.
        progress: What shows it.
        name: The conversation's name; without one it is of this run only.
        files: Files that come with the first question, by name.
    """

    def __init__(
        self, chain: CodeChain, progress: Progress, *, name: str | None = None, files: Mapping[str, Path] | None = None
    ) -> None:
        self.chain, self.progress = chain, progress
        self.session = name or f"chat-{uuid.uuid4().hex}"
        self.folder = Path(f"{plain_name(name or 'chat')}-files")
        self.meter = UsageMeter(chain.budget.prices.given if chain.budget else None)
        self._given = {name: path.absolute() for name, path in (files or {}).items()}
        self._pending = dict(self._given)
        self._saved: set[str] = set()

    def run(self) -> None:
        """Answer until there are no more questions."""
        lines = Lines(data_folder() / "history")
        if count := len(self._turns()):
            _say(
                f"This conversation has {count} turn{'s' if count > 1 else ''} and goes on. /help says what else there is."
            )
        elif lines.interactive:
            _say("Ask something. /help says what else there is.")
        with lines, _interrupts(lines), WholeTurns() as whole:
            for entry in lines:
                try:
                    with whole.turn():
                        goes_on = self._take(entry)
                    if not goes_on:
                        return
                except (KeyboardInterrupt, click.Abort):
                    _say("Stopped.")
                except CodeChainsError as error:
                    _say(f"Error: {error}")

    def _take(self, entry: str) -> bool:
        """Do what an entry says; whether the conversation goes on."""
        word, _, rest = entry.strip().partition(" ")
        if word == "/exit":
            return False
        if not entry.startswith("/") or entry.startswith("//"):
            self._ask(entry.removeprefix("/") if entry.startswith("//") else entry)
        elif word in _COMMANDS:
            _COMMANDS[word][1](self, rest.strip())
        else:
            _say(f"There is no {word}; there are {', '.join([*_COMMANDS, '/exit'])}. Questions that begin so: /{word}")
        return True

    def _ask(self, question: str) -> None:
        state = {"query": check_query(question), "session_id": self.session, "files": self._pending}
        try:
            result = follow(self.chain, state, self.progress, callbacks=[self.meter])
        except (KeyboardInterrupt, click.Abort):
            _say("Stopped; the conversation is as it was before.")
            return
        if result["verdict"].ok:
            if self.chain.conversations is not None and self.chain.conversations.keep_state:  # It has them from now on.
                self._pending = {}
            self._save_files(result["execution"].artifacts, result["code"])

    def _save_files(self, artifacts: tuple[Artifact, ...], code: str) -> None:
        """Save what a turn made, but for what is unchanged."""
        names = []
        for artifact in artifacts:
            digest = hashlib.sha256(artifact.data).hexdigest()
            if digest not in self._saved and not _is_view(artifact, code):
                names.append(saved(artifact, self.folder).name)
                self._saved.add(digest)
        if names:
            _say(f"Saved in {self.folder}: {', '.join(names)}")

    def _turns(self) -> list[Turn]:
        return self.chain.turns(self.session)

    # -- commands ------------------------------------------------------------------------------------------------------

    def _help(self, _: str) -> None:
        for word, (about, _command) in _COMMANDS.items():
            _say(f"{word:<8}{about}")
        _say("/exit   or Ctrl-D: leave. A line that ends with \\ goes on in the next; // begins a question with /.")

    def _save(self, path: str) -> None:
        if not path:
            raise InputError("Say where, e.g. /save analysis.ipynb (a notebook), .py (a script) or .md (Markdown).")
        _say(f"Saved: {', '.join(map(str, export(self._turns(), Path(path).expanduser())))}")

    def _undo(self, _: str) -> None:
        turn = self.chain.undo(self.session)
        if turn is None:
            raise InputError("There is nothing to take back.")
        files = {name: Path(path) for name, path in turn.files.items() if Path(path).is_file()}
        self._pending = {**files, **self._pending}
        _say(f"Taken back: {' '.join(turn.query.split())}")

    def _reset(self, _: str) -> None:
        self.chain.forget(self.session)
        self._pending = dict(self._given)
        _say("The conversation is empty.")

    def _cost(self, _: str) -> None:
        usage = self.meter.usage
        _say(f"{spent(usage)}{', at an unknown price' if usage.usd is None else ''}")

    def _file(self, path: str) -> None:
        if not path:
            raise InputError("Say which, e.g. /file sales.csv.")
        place = Path(path).expanduser().absolute()
        files = check_files({place.name: place})
        self._given |= files
        self._pending |= files
        _say(f"{place.name} comes with the next question.")

    def _code(self, _: str) -> None:
        code = next((turn.code for turn in reversed(self._turns()) if turn.code.strip()), None)
        if code is None:
            raise InputError("There is no program yet.")
        self.progress.reveal("code", code)


_COMMANDS: Mapping[str, tuple[str, Callable[[Chat, str], None]]] = {
    "/help": ("show this", Chat._help),
    "/save": ("FILE.ipynb, .py or .md: write the conversation as a notebook, a script or Markdown", Chat._save),
    "/undo": ("take back the last question, and what its program did", Chat._undo),
    "/reset": ("begin anew", Chat._reset),
    "/cost": ("say what was spent since the start of this run", Chat._cost),
    "/file": ("PATH: add a file that programs may read", Chat._file),
    "/code": ("show the last program", Chat._code),
}


def _say(text: str) -> None:
    click.echo(harmless(text), err=True)


@contextmanager
def _interrupts(lines: Lines) -> Iterator[None]:
    """Let Ctrl-C stop what runs. Impatient ones that follow disturb neither its cleaning up nor the next question."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stopped = float("-inf")

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        if lines.waiting or time.monotonic() - stopped > _IMPATIENCE:
            stopped = time.monotonic()
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


# -- what comes in -----------------------------------------------------------------------------------------------------


class Lines:
    """Entries as they are typed, with line editing and a history, or as they come from a pipe.

    A line that ends with a backslash goes on in the next. A context manager, which keeps the history.

    Args:
        history: The file with the lines that were typed before.

    Attributes:
        interactive: Whether somebody types.
        waiting: Whether it is their turn.
    """

    def __init__(self, history: Path) -> None:
        self.interactive, self.waiting = sys.stdin.isatty(), False
        self._history = history
        self._interrupted = float("-inf")
        self._editor = _editor() if self.interactive else None
        if isinstance(sys.stdin, io.TextIOWrapper):  # What is no text is refused as a question, not here.
            sys.stdin.reconfigure(errors="surrogateescape")

    def __enter__(self) -> Lines:
        if self._editor is not None:
            self._editor.set_auto_history(False)  # Answers to questions of ours are none of yours.
            with suppress(OSError):
                self._editor.read_history_file(self._history)
        return self

    def __exit__(self, *_: object) -> None:
        if self._editor is not None:
            try:
                _keep_history(self._editor, self._history)
            except OSError as error:
                _say(f"The history of lines could not be kept: {error}")

    def __iter__(self) -> Iterator[str]:
        while True:
            try:
                entry = self._entry()
            except EOFError:
                return
            except KeyboardInterrupt:
                if not self.interactive:
                    raise
                if time.monotonic() - self._interrupted < _PATIENCE:
                    return
                self._interrupted = time.monotonic()
                _say("\nCtrl-C again, or Ctrl-D, leaves.")
                continue
            self._interrupted = float("-inf")
            if entry.strip():
                yield entry

    def _entry(self) -> str:
        lines: list[str] = []
        while True:
            try:
                line = self._line("... " if lines else "> ")
            except EOFError:
                if not lines:
                    raise
                return "\n".join(lines)
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)

    def _line(self, prompt: str) -> str:
        if not self.interactive:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\r\n")
        if not sys.stdout.isatty():  # There it would be among the answers.
            click.echo(prompt, nl=False, err=True)
            prompt = ""
        self.waiting = True
        try:
            line = input(prompt)
        except EOFError:
            _say("")
            raise
        finally:
            self.waiting = False
        if self._editor is not None and line.strip():
            self._editor.add_history(line)
        return line


def _editor() -> ModuleType | None:
    """What edits lines, where Python has it."""
    try:
        import readline
    except ImportError:
        return None
    return readline


def _keep_history(editor: Any, path: Path) -> None:
    """Write the last lines into a file that is nobody else's to read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        editor.set_history_length(_LONGEST_HISTORY)
        editor.write_history_file(beside)
        beside.chmod(0o600)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


# -- what is kept ------------------------------------------------------------------------------------------------------


def data_folder() -> Path:
    """Where conversations that have a name are kept."""
    from platformdirs import user_data_path

    return user_data_path("code_chains")


@contextmanager
def remembered(name: str | None) -> Iterator[ConversationMemory]:
    """Where the turns of a conversation are: in the user's data folder if it has a name, else in memory."""
    if name is None:
        yield ConversationMemory()
        return
    with SqliteStore(data_folder() / "conversations.sqlite") as store:
        yield ConversationMemory(store)


def saved(artifact: Artifact, folder: Path) -> Path:
    """Save what a program made under its own name, or that with a number if there is another file of this name.

    Raises:
        InputError: Its name leads out of the folder, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in numbered(safe_name(artifact.name)):
            with suppress(FileExistsError):
                (folder / name).touch(exist_ok=False)
                break
        keep(folder / name, artifact.data)
    except OSError as error:
        raise InputError(f"{artifact.name!r} cannot be saved in {str(folder)!r}: {error}.") from error
    return folder / name


def _is_view(artifact: Artifact, code: str) -> bool:
    """Whether it is how a value is shown elsewhere, which a terminal shows as text; no file that the program wrote."""
    return artifact.media_type in _VIEWS and artifact.name.startswith("result.") and artifact.name not in code
