"""Collect what a program made from its sandbox, trusting nothing."""

from __future__ import annotations

import contextlib
import mimetypes
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from code_chains.executors.guest.display import VALUE_TYPE
from code_chains.executors.guest.sandbox.snapshot import FOLDER_FLAGS, Folders, open_folder
from code_chains.records import Artifact, DisplayData
from code_chains.records.filenames import numbered_names

MAX_FILES, MAX_DEPTH, MAX_ENTRIES = 100, 10, 20_000
"""Files that are collected, depth of folders, and entries that are looked at."""
_DISPLAYS = ("text/html", "text/csv", "text/markdown", "text/x-latex", VALUE_TYPE)
"""How a value displays itself as text, and the value itself; figures are artifacts."""
_FIGURE, _MEDIA_TYPE = re.compile(r"(?!\.\.?$)[\w. ()-]{1,100}"), re.compile(r"[a-z]+/[\w.+-]{1,80}")
Marks = Mapping[str, tuple[int, int, int]]


@dataclass
class ArtifactCollector:
    """Collects what a program made. Nothing is trusted: not names, not sizes, not links.

    Attributes:
        room: Bytes that may still be collected.
        artifacts: Files and figures that were collected.
        display_data: Markup that displays the last value.
        marks: By file name, what tells whether a file has changed.
        truncated: Whether something was left out.
    """

    room: int
    artifacts: list[Artifact] = field(default_factory=list)
    display_data: list[DisplayData] = field(default_factory=list)
    marks: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    truncated: bool = False

    def add(self, artifact: Artifact) -> None:
        """Add an artifact, unless there is no room for it."""
        if len(artifact.data) > self.room or len(self.artifacts) >= MAX_FILES:
            self.truncated = True
        else:
            self.artifacts.append(artifact)
            self.room -= len(artifact.data)

    def collect_files(self, root: int, *, inputs: Collection[str] = (), known: Marks | None = None) -> None:
        """Collect the regular files of a working directory that a program made or changed.

        Args:
            root: Descriptor of the directory that contains the working directory `box`.
            inputs: Names of files that were given to the program.
            known: Marks of the files that existed before.
        """
        try:
            top = os.open("box", FOLDER_FLAGS, dir_fd=root)
        except OSError:
            return
        for name, folder, status in _files(top):
            mark = self.marks[name] = (status.st_ino, status.st_size, status.st_ctime_ns)
            if (name in inputs and _is_unchanged_input(status)) or (known or {}).get(name) == mark:
                continue
            # Invariant: no more is read than is kept; a file without content takes no space on a disk, whatever its size.
            is_full = len(self.artifacts) >= MAX_FILES
            data = None if is_full else _read(folder, name.rpartition("/")[2], status, self.room)
            if data is None:
                self.truncated = True
            else:
                media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
                self.add(Artifact.of(name, media_type, data))

    def collect_views(self, result: Mapping[str, Any] | None) -> None:
        """Collect the figures and displays that the program's process sent with its result."""
        if result is None:
            return
        views = result.get("views")
        for view in views if isinstance(views, list) else ():
            with contextlib.suppress(ValueError, TypeError, KeyError):
                name, media_type = str(view["name"]), str(view["media_type"])
                if media_type in _DISPLAYS and not name.startswith("figure-"):
                    self._add_display(media_type, view["data"])
                elif _FIGURE.fullmatch(name) and _MEDIA_TYPE.fullmatch(media_type):
                    self._add_figure(Artifact.of(name, media_type, view["data"]))
        self.truncated = self.truncated or result.get("truncated") is True

    def _add_figure(self, figure: Artifact) -> None:
        """Add a figure, unless the program saved the same one itself."""
        if all(figure.data != other.data for other in self.artifacts):
            taken = {other.name for other in self.artifacts}
            name = next(name for name in numbered_names(figure.name) if name not in taken)
            self.add(replace(figure, name=name))

    def _add_display(self, media_type: str, data: bytes) -> None:
        if len(data) > self.room or len(self.display_data) >= len(_DISPLAYS):
            self.truncated = True
            return
        self.display_data.append(DisplayData(media_type, data.decode("utf-8", "replace")))
        self.room -= len(data)


def has_artifacts(root: int, inputs: Collection[str]) -> bool:
    """Return whether the working directory holds anything besides unchanged inputs."""
    try:
        with open_folder(root, "box") as folder:
            others = set(os.listdir(folder)) - set(inputs)
        return bool(others) or not all(_is_unchanged_input(_status(root, f"box/{name}")) for name in inputs)
    except OSError:
        return True


def _status(root: int, path: str) -> os.stat_result:
    """Return the status of an entry; none of the folders above it may be a link."""
    with Folders(root) as folders:
        folder, name = folders.entry(path)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _is_unchanged_input(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o444


def _files(top: int) -> Iterator[tuple[str, int, os.stat_result]]:
    """Yield regular files below a directory, each with the descriptor of its folder, which is closed afterwards."""
    pending, entries = [("", top, 0)], 0
    try:
        while pending:
            parent, folder, depth = pending.pop()
            try:
                for name in sorted(os.listdir(folder)):
                    entries += 1
                    if entries > MAX_ENTRIES or not name.isprintable():
                        continue
                    with contextlib.suppress(OSError):
                        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            yield parent + name, folder, status
                        elif stat.S_ISDIR(status.st_mode) and depth < MAX_DEPTH and len(pending) < MAX_FILES:
                            pending.append(
                                (f"{parent}{name}/", os.open(name, FOLDER_FLAGS, dir_fd=folder), depth + 1)
                            )
            finally:
                os.close(folder)
    finally:
        for _, folder, _ in pending:
            os.close(folder)


def _read(folder: int, name: str, status: os.stat_result, room: int) -> bytes | None:
    """Return the bytes of a file; None if it is too large, or not what it seemed."""
    if status.st_size > room or status.st_nlink > 1:
        return None
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = file.read(room + 1) if is_regular else None
    return None if data is None or len(data) > room else data
