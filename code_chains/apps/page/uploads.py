"""The files of a conversation, which its programs read by their names."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from code_chains.errors import InputError
from code_chains.executors.inputs import check_name
from code_chains.records.filenames import file_stem
from code_chains.state import Turn
from code_chains.storage.files import atomic_write
from code_chains.storage.foreign import remove_child

MAX_UPLOAD_BYTES = 20 << 20
"""Maximum size of the uploaded files of one conversation."""


def upload_name(name: str) -> str:
    r"""Return the name by which programs read a file: its own, unless no file can have that.

    Example:
        >>> upload_name("weird name é (1).csv"), upload_name("two\nlines.csv")
        ('weird name é (1).csv', 'two-lines.csv')
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    with suppress(InputError):
        return check_name(last)
    return file_stem(last)


class Uploads:
    """The files of a conversation. They are pending until a program that worked has received them.

    Args:
        folder: Where they are stored. Each version has a folder of its own: a turn that runs again needs the file as it
            was then.

    Attributes:
        received: Files that the state of the conversation holds, by name.
        pending: Files for the next program, by name.
        size: Size of all versions together, and of those that are being stored, in bytes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.abspath(folder))
        self.received: dict[str, Path] = {}
        self.pending: dict[str, Path] = {}
        self.size: int = 0

    @property
    def paths(self) -> dict[str, Path]:
        """All files by name; a pending one replaces one of its name."""
        return {**self.received, **self.pending}

    def measure(self) -> None:
        """Measure the files that are stored."""
        self.size = sum(path.stat().st_size for path in self._stored())

    def reserve(self, name: str, size: int) -> None:
        """Count a file that is to be stored.

        Raises:
            InputError: The files would be too large.
        """
        if self.size + size > MAX_UPLOAD_BYTES:
            limit = f"at most {MAX_UPLOAD_BYTES >> 20} MB together"
            raise InputError(f"{name!r} is too large: the files of a conversation may have {limit}.")
        self.size += size

    def _own(self, turn: Turn) -> dict[str, Path]:
        """Return the files of a stored turn that lie here: others may have written the path of another file."""
        paths = {name: Path(os.path.abspath(path)) for name, path in turn.files.items()}
        return {name: path for name, path in paths.items() if path.parent.parent == self._folder}

    def _stored(self) -> list[Path]:
        return [path for path in self._folder.glob("*/*") if path.is_file()]

    def add(self, name: str, data: bytes, *, keeps_older: bool = False) -> None:
        """Store a file for the next program. This blocks.

        Args:
            name: Its name.
            data: Its content.
            keeps_older: Whether an older version of this name stays, as a running question needs it.
        """
        path = self._folder / uuid.uuid4().hex / name
        path.parent.mkdir(mode=0o700, parents=True)
        atomic_write(path, data)
        if not keeps_older:
            self._discard(name)
        self.pending[name] = path

    def remove(self, name: str) -> None:
        """Remove a pending file.

        Raises:
            InputError: There is none of this name, or a program has received it already.
        """
        if name not in self.pending:
            raise InputError(f"{name!r} was used by a program. Undo its turn to remove the file.")
        self._discard(name)
        self.measure()

    def _discard(self, name: str) -> None:
        if path := self.pending.pop(name, None):
            remove_child(self._folder, path.parent.name)

    def settle(self, files: Mapping[str, Path]) -> None:
        """Mark the files that a program has received."""
        self.received.update(files)
        self.pending = {name: path for name, path in self.pending.items() if files.get(name) != path}

    def take_back(self, turn: Turn) -> None:
        """Make the files of a turn that was undone pending again."""
        files = self._own(turn)
        self.received = {name: path for name, path in self.received.items() if files.get(name) != path}
        self.pending = files | self.pending

    def restore(self, turns: Iterable[Turn], *, keeps_files: bool) -> None:
        """Find the files of a stored conversation, of which those that no turn has received are pending.

        Args:
            turns: The turns.
            keeps_files: Whether the state of the conversation holds the files of its turns.
        """
        used = [self._own(turn) for turn in turns if turn.runs and keeps_files]
        self.received = {name: path for files in used for name, path in files.items()}
        paths = {path for files in used for path in files.values()}
        rest = [path for path in self._stored() if path not in paths]
        self.pending = {path.name: path for path in sorted(rest, key=lambda path: path.stat().st_mtime_ns)}
        self.measure()
