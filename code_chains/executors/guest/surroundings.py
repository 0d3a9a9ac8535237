"""What surrounds a call from tests to a program: standard input, chance, and files that one makes and the other reads.

Tests and program have a folder each. Invariant: a program changes no file that was given to the tests, none that they wrote
unless they name it in the call, and none that Python would import or read as settings.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import importlib
import io
import os
import random
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from .wire import Json

MAX_FILES, MAX_FILE_BYTES, MAX_BYTES = 500, 4 << 20, 32 << 20
NOT_SENT = (
    ".py",
    ".pyc",
    ".pyd",
    ".pth",
    ".so",
    ".dll",
    ".egg-link",
    ".zip",
    "rc",
    "-journal",
    "-wal",
    "-shm",
)
NOT_SENT_FOLDERS = (".dist-info", ".egg-info", "_data")
"""What Python, its packaging, SQLite or libraries that look for data of theirs would read without being asked to."""
Stat = tuple[int, int]
_open, _walk, _stat = open, os.walk, os.stat
_makedirs, _remove, _remove_folder, _chdir = os.makedirs, os.remove, os.rmdir, os.chdir


def listing(root: str) -> dict[str, Stat]:
    """Return the files below a folder by their names from there, with the time of their last change and their size."""
    found: dict[str, Stat] = {}
    for folder, folders, names in _walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        place = os.path.relpath(folder, root)
        found |= {
            os.path.normpath(os.path.join(place, name)) + os.sep: (0, 0) for name in folders[:MAX_FILES]
        }
        for name in names:
            path = os.path.normpath(os.path.join(place, name))
            if len(found) < MAX_FILES and is_plain(path):
                with contextlib.suppress(OSError):
                    state = _stat(os.path.join(root, path), follow_symlinks=False)
                    if not stat.S_ISREG(state.st_mode):
                        continue
                    found[path] = (state.st_mtime_ns, state.st_size)
    return found


def is_plain(path: Any) -> bool:
    """Return whether a name is that of a file below the working directory which nothing but a program reads."""
    if not isinstance(path, str) or not path or os.path.isabs(path) or "\0" in path:
        return False
    # Invariant: a file has one name.
    if os.path.normpath(path) != path.removesuffix(os.sep):
        return False
    parts = path.lower().split(os.sep)
    is_hidden = any(part.startswith((".", "__")) or part.endswith(NOT_SENT_FOLDERS) for part in parts)
    return not is_hidden and not path.lower().endswith(NOT_SENT)


class Exchange:
    """The files of one side: what it has told the other, and what it got. Their names are those from its first folder.

    Args:
        known: Files that both have, which are left alone.
    """

    def __init__(self, known: Iterator[str] | list[str] | None = None) -> None:
        self._root = os.getcwd()
        self.known = set(listing(self._root) if known is None else known)
        self._seen: dict[str, Stat] = {}
        self._bytes = 0

    def own(self) -> dict[str, Stat]:
        """Return the files that are not known to both sides from the start."""
        return {path: state for path, state in listing(self._root).items() if path not in self.known}

    @property
    def folder(self) -> str:
        """The working directory, from the first one; empty if that is it, or it is elsewhere."""
        path = os.path.relpath(os.getcwd(), self._root)
        return path if is_plain(path) else ""

    def enter(self, folder: str) -> None:
        """Make a folder, by its name from the first one, the working directory, if it is there."""
        if not folder or is_plain(folder):
            with contextlib.suppress(OSError):
                _chdir(os.path.join(self._root, folder))

    def paths_in(self, arguments: list[Any]) -> set[str]:
        """Return the arguments that may be names of files, from the first folder."""
        texts = {str(value) for value in arguments if isinstance(value, (str, os.PathLike))}
        places = {os.path.join(os.getcwd(), text) for text in texts}
        return texts | {os.path.relpath(place, self._root) for place in places if "\0" not in place}

    def changed_among(self, own: dict[str, Stat]) -> set[str]:
        """Return which files were made or changed since the other side was told of them."""
        return {path for path, state in own.items() if self._seen.get(path) != state}

    def changes(self, own: dict[str, Stat], may_send: Callable[[str], bool] = bool) -> Json:
        """Return the content of the files that were made or changed since the last time; None for those that are gone."""
        now = {path: state for path, state in own.items() if path in self._seen or may_send(path)}
        changed: Json = {path: None for path in self._seen if path not in now}
        for path, state in now.items():
            fits = state[1] <= MAX_FILE_BYTES and self._bytes + state[1] <= MAX_BYTES
            if self._seen.get(path) != state and fits:
                self._bytes += state[1]
                if path.endswith(os.sep):
                    changed[path] = ""
                    continue
                with contextlib.suppress(OSError), _open(os.path.join(self._root, path), "rb") as file:
                    changed[path] = base64.b64encode(file.read(MAX_FILE_BYTES)).decode()
        self._seen = now
        return changed

    def apply(self, changed: Json, may_change: Callable[[str], bool]) -> None:
        """Write the files of the other side, unless it must not."""
        for path, content in list(changed.items())[:MAX_FILES]:
            is_written = content is not None  # Without a file tests can at most fail.
            if not is_plain(path) or path in self.known or (is_written and not may_change(path)):
                continue
            with contextlib.suppress(OSError, ValueError):
                self._write(path, content)

    def _write(self, path: str, content: Any) -> None:
        place = os.path.join(self._root, path)
        if content is None:
            self._seen.pop(path, None)
            (_remove_folder if path.endswith(os.sep) else _remove)(place)
            return
        if path.endswith(os.sep):
            _makedirs(place, exist_ok=True)
            self._seen[path] = (0, 0)
            return
        data = base64.b64decode(str(content))
        if self._bytes + len(data) > MAX_BYTES:
            return
        self._bytes += len(data)
        _makedirs(os.path.dirname(place), exist_ok=True)
        with _open(place, "wb") as file:
            file.write(data)
        state = _stat(place)
        self._seen[path] = (state.st_mtime_ns, state.st_size)


class OfTests:
    """What tests have put around a call, and what comes back from it.

    Args:
        request: Makes the program's side do something by name.
        lend: Packs a function of the tests for the program.

    Attributes:
        given: What the program reads from its standard input in the next call.
        has_files: Whether the program has made files.
    """

    def __init__(self, request: Callable[..., Any], lend: Callable[[Any], Any]) -> None:
        self._request, self._lend = request, lend
        self._stdin, self._input = sys.stdin, builtins.input
        self._files: Exchange | None = None
        self._mine, self._named = set[str](), frozenset[str]()
        self._environment: dict[str, str] | None = None
        self.given: str | None = None
        self.has_files = False

    def share_files(self, named: list[str]) -> None:
        """From here on the program's files are there for the tests, and for the program those that it or a call names.

        Args:
            named: Words of the program.
        """
        os.environ["HOME"] = tempfile.mkdtemp()  # Where libraries look for files of theirs.
        self._files, self._named = Exchange(), frozenset(named)
        self._request("share_files", sorted(self._files.known))

    def follow_environment(self) -> None:
        """From here on environment variables that tests set are there for the program, too."""
        self._environment = dict(os.environ)

    def follow_chance(self) -> None:
        """Let seeds that tests set hold for the program, too."""
        random.seed = self._seeding("random", random.seed)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed = self._seeding("numpy", numpy.random.seed)

    def _seeding(self, module: str, seed: Callable[..., Any]) -> Callable[..., Any]:
        def seed_both(*args: Any, **options: Any) -> Any:
            self._request("seed", module, *args, **options)
            return seed(*args, **options)

        return seed_both

    def sent(self, arguments: list[Any]) -> Json:
        """Return what goes with a call."""
        around: Json = {}
        stream = sys.stdin
        if self.given is not None:
            around["stdin"] = self.given
        elif stream is not self._stdin and hasattr(stream, "read"):
            around["stdin"] = str(stream.read())
        if builtins.input is not self._input:
            around["input"] = self._lend(builtins.input)
        before = self._environment
        if before is not None and os.environ != before:
            now = dict(os.environ)
            names = [name for name in {**now, **before} if now.get(name) != before.get(name)]
            around["environment"] = {name: now.get(name) for name in names}
            self._environment = now
        if self._files is not None:
            # Invariant: what tests have written is theirs for good, whatever the program wrote there before.
            own, texts, folder = self._files.own(), self._files.paths_in(arguments), self._files.folder
            self._mine |= self._files.changed_among(own)
            texts |= {folder} if folder else set()
            around["files"] = self._files.changes(own, lambda path: self._is_named(path, texts))
            around["folder"] = folder
        return around

    def _is_named(self, path: str, texts: set[str]) -> bool:
        """Return whether a call names a file, its folder, or a file to write there; or the program names it."""
        is_folder = path.endswith(os.sep)
        is_argument = any(
            path.rstrip(os.sep) == text
            or path.startswith(text + os.sep)
            or (is_folder and text.startswith(path))
            for text in texts
        )
        return is_argument or os.path.basename(path.rstrip(os.sep)) in self._named

    def received(self, around: Any, arguments: list[Any]) -> None:
        """Take over what a call has changed."""
        if not isinstance(around, dict):
            return
        self._leave_unread(around.get("unread"))
        changed = around.get("files")
        if self._files is not None and isinstance(changed, dict):
            texts = self._files.paths_in(arguments)
            self.has_files = self.has_files or bool(changed)
            self._files.apply(changed, lambda path: path not in self._mine or path in texts)

    def _leave_unread(self, unread: Any) -> None:
        if not isinstance(unread, str):
            return
        if self.given is not None:
            self.given = unread
        elif isinstance(sys.stdin, io.StringIO) and sys.stdin is not self._stdin:
            end = sys.stdin.tell()
            sys.stdin.seek(max(0, end - len(unread)))


def set_variable(name: str, value: str | None) -> None:
    """Set an environment variable; None removes it."""
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


class OfProgram:
    """What the tests have put around a call that the program serves."""

    def __init__(self) -> None:
        self._files: Exchange | None = None
        self._folder = ""
        self._replaced = dict[tuple[str, str], Any]()

    def share_files(self, known: list[str]) -> None:
        """See `OfTests`."""
        self._files = Exchange(known)

    def replace(self, module: str, name: str, *value: Any) -> None:
        """Put in place of a module's attribute what tests do, or back what was there."""
        owner, key = importlib.import_module(module), (module, name)
        if value:
            self._replaced.setdefault(key, getattr(owner, name, None))
            setattr(owner, name, value[0])
        elif key in self._replaced:
            setattr(owner, name, self._replaced.pop(key))

    def seed(self, module: str, *args: Any, **options: Any) -> None:
        """Seed random numbers as the tests did."""
        if module == "random":
            random.seed(*args, **options)
        elif numpy := sys.modules.get("numpy"):
            numpy.random.seed(*args, **options)

    @contextlib.contextmanager
    def around(self, given: Json, borrow: Callable[[Any], Any], reply: Json) -> Iterator[None]:
        """Put it there for one call, and add to its reply what has changed."""
        for name, value in given.get("environment", {}).items():
            set_variable(name, value)
        if self._files is not None:
            self._files.apply(given.get("files") or {}, lambda _: True)
            if (folder := str(given.get("folder", ""))) != self._folder:  # Tests have changed it.
                self._files.enter(folder)
                self._folder = folder
        stdin, read = sys.stdin, builtins.input
        text = given.get("stdin")
        stream = None if text is None else io.StringIO(text)
        sys.stdin = stdin if stream is None else stream
        if "input" in given:
            builtins.input = borrow(given["input"])
        try:
            yield
        finally:
            sys.stdin, builtins.input = stdin, read
        changed: Json = {} if stream is None else {"unread": stream.read()}
        if self._files is not None:
            changed["files"] = self._files.changes(self._files.own())
        if changed:
            reply["around"] = changed
