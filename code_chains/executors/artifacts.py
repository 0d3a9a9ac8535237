"""What a program made, taken out of its box as from a stranger."""

from __future__ import annotations

import base64
import contextlib
import mimetypes
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from code_chains.executors.inside.places import FOLDER
from code_chains.state import Artifact

__all__ = ["Haul", "any_file", "collect", "views"]

COUNT, DEPTH, ENTRIES = 100, 10, 20_000
"""Most files that are taken, deepest folder that is looked into, most entries that are looked at."""
Marks = Mapping[str, tuple[int, int, int]]


@dataclass
class Haul:
    """What was taken.

    Attributes:
        room: Bytes that may still be taken.
        artifacts: Those that were.
        marks: What tells whether a file has changed, by its name.
        truncated: Whether something was left behind.
    """

    room: int
    artifacts: list[Artifact] = field(default_factory=list)
    marks: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    truncated: bool = False

    def add(self, artifact: Artifact) -> None:
        """Take an artifact, unless there is no room for it or the same bytes were taken already."""
        if len(artifact.data) > self.room or len(self.artifacts) >= COUNT:
            self.truncated = True
        elif all(artifact.data != other.data or not artifact.data for other in self.artifacts):
            self.artifacts.append(artifact)
            self.room -= len(artifact.data)


def collect(root: int, haul: Haul, *, inputs: Collection[str] = (), before: Marks | None = None) -> None:
    """Take the files of a working directory that a program made or changed.

    Nothing but regular files is opened, nothing is followed, nothing is trusted: not names, not sizes.

    Args:
        root: Descriptor of the directory that has the working directory `box`.
        haul: Where they go.
        inputs: Names of files that were given to the program.
        before: Marks of the files that were there before.
    """
    try:
        top = os.open("box", FOLDER, dir_fd=root)
    except OSError:
        return
    for name, folder, known in _files(top):
        mark = haul.marks[name] = (known.st_ino, known.st_size, known.st_ctime_ns)
        if (name in inputs and _as_given(known)) or (before or {}).get(name) == mark:
            continue
        data = _read(folder, name.rpartition("/")[2], known, haul.room)
        if data is None:
            haul.truncated = True
        else:
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            haul.add(Artifact(name, media_type, data))


def any_file(root: int, inputs: Collection[str]) -> bool:
    """Whether there is anything in the working directory besides what was given, as it was given."""
    place = f"/proc/self/fd/{root}/box"
    try:
        return bool(set(os.listdir(place)) - set(inputs)) or not all(
            _as_given(os.lstat(f"{place}/{one}")) for one in inputs
        )
    except OSError:
        return True


def _as_given(known: os.stat_result) -> bool:
    return stat.S_ISREG(known.st_mode) and stat.S_IMODE(known.st_mode) == 0o444


def _files(top: int) -> Iterator[tuple[str, int, os.stat_result]]:
    """Regular files below a directory, with the descriptor of their folder, which is closed afterwards."""
    waiting, seen = [("", top, 0)], 0
    try:
        while waiting:
            above, folder, depth = waiting.pop()
            try:
                for name in sorted(os.listdir(folder)):
                    seen += 1
                    if seen > ENTRIES or not name.isprintable():
                        continue
                    with contextlib.suppress(OSError):
                        known = os.stat(name, dir_fd=folder, follow_symlinks=False)
                        if stat.S_ISREG(known.st_mode):
                            yield above + name, folder, known
                        elif stat.S_ISDIR(known.st_mode) and depth < DEPTH and len(waiting) < COUNT:
                            waiting.append((f"{above}{name}/", os.open(name, FOLDER, dir_fd=folder), depth + 1))
            finally:
                os.close(folder)
    finally:
        for _, folder, _ in waiting:
            os.close(folder)


def _read(folder: int, name: str, known: os.stat_result, room: int) -> bytes | None:
    """A file's bytes; None if it is larger than there is room for, or is not what it seemed."""
    if known.st_size > room or known.st_nlink > 1:
        return None
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        data = file.read(room + 1) if regular else None
    return None if data is None or len(data) > room else data


def views(frame: Mapping[str, Any], haul: Haul) -> None:
    """Take the figures and rich views that the program's process sent."""
    sent = frame.get("views")
    for view in sent if isinstance(sent, list) else ():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            name, media_type, data = str(view["name"]), str(view["media_type"]), view["data"]
            if name.isprintable() and len(name) < 256 and "/" not in name:
                haul.add(Artifact(name, media_type[:100], base64.b64decode(data, validate=True)))
    haul.truncated = haul.truncated or frame.get("truncated") is True
