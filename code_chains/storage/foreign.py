"""The gate for files that others may have written: results, receipts, lessons, questions, indexes, and entries of stores.

Invariant: nothing here blocks, follows a link that such a file names or lies behind, reads more than a limit, or builds
anything of text before its depth and its items are counted. No other module opens or removes such a file.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

from code_chains.errors import InputError

MAX_DEPTH = 200
"""Lists and objects within each other: what walks them recurses, and pydantic reads no more."""
MAX_ITEMS = 1_000_000
MAX_BYTES, MAX_NAME_BYTES = 64 << 20, 255
"""Of a file that is held in memory, and of a line of one that is read line by line."""
_CHUNK_BYTES = 1 << 20
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]++|[\]}]++|,', re.DOTALL)
_LINK = "it is reached through a symbolic link, which is not followed"


# -- opening and removing ------------------------------------------------------------------------------------------------


def open_file(path: Path, *, below: Path | None = None) -> io.BufferedReader:
    """Open a regular file for reading, without blocking on a FIFO or starting a device.

    Args:
        path: The file.
        below: A folder that contains the file; no part of the path below it may be a symbolic link. None
            allows symbolic links everywhere: the user of this machine has named the file.

    Raises:
        OSError: There is no such file, it is not a regular one, or it is reached through a symbolic link.
    """
    flags = os.O_RDONLY
    flags |= getattr(os, "O_BINARY", 0) if sys.platform == "win32" else os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags) if below is None else _open_below(below, path, flags)
    except ValueError as error:  # A path with a null character.
        raise OSError(errno.ENOENT, str(error)) from error
    file = os.fdopen(descriptor, "rb")
    # Invariant: checked by descriptor, as the path may name another file by now.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return file


def _open_below(root: Path, path: Path, flags: int) -> int:
    """Open what lies in a folder part by part, each relative to its parent: a folder may be replaced at any time."""
    *folders, last = _parts(path.relative_to(root).as_posix())
    if sys.platform == "win32":  # Files cannot be opened in that way there.
        path = root.resolve().joinpath(*folders, last)
        if path.resolve() != path:
            raise OSError(errno.ELOOP, _LINK)
        return os.open(path, flags)
    parent = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            child = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            os.close(parent)
            parent = child
        return os.open(last, flags | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(error.errno, _LINK) from error
        raise
    finally:
        os.close(parent)


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a relative path, which stays below where it begins on any system.

    Raises:
        OSError: It does not.
    """
    theirs = PureWindowsPath(name)
    if not name or "\0" in name or theirs.anchor or name.startswith("/") or ".." in theirs.parts:
        raise OSError(errno.EACCES, "it leads out of its folder")
    return PurePosixPath(name).parts or (".",)


def find_below(folder: Path, name: str) -> Path:
    """Return the path of a regular file that a file of others names, in the folder of that one.

    Raises:
        OSError: There is none, it leads out of the folder, or it is reached through a symbolic link.
    """
    path = folder.joinpath(*_parts(name))
    open_file(path, below=folder).close()
    return path


def is_child(folder: Path, name: str) -> bool:
    """Return whether a name is that of a folder directly in another one, neither of which is a link."""
    is_name = bool(name) and not set(name) & set("/\\:\0") and name not in (".", "..")
    if not is_name or len(os.fsencode(name)) > MAX_NAME_BYTES:
        return False
    return not folder.is_symlink() and not (folder / name).is_symlink() and (folder / name).is_dir()


def make_child(folder: Path, name: str) -> Path:
    """Return a folder directly in another one; both are made unless they exist.

    Raises:
        OSError: They cannot be made, or one of them is a link or a file.
    """
    for path in (folder, folder / name):
        if path.is_symlink():
            raise OSError(errno.ELOOP, f"{str(path)!r} is a symbolic link")
        path.mkdir(parents=True, exist_ok=True)
    return folder / name


def remove_child(folder: Path, name: str) -> None:
    """Remove a folder that lies directly in another one; whatever else a name leads to stays."""
    if not is_child(folder, name):
        return
    if sys.platform == "win32":
        shutil.rmtree(folder / name, ignore_errors=True)
        return
    # Invariant: neither folder can be replaced by a link from now on; rmtree itself follows none.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        shutil.rmtree(name, ignore_errors=True, dir_fd=descriptor)
    finally:
        os.close(descriptor)


# -- reading -------------------------------------------------------------------------------------------------------------


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{str(path)!r} is not in UTF-8: {error}. Save it in that encoding.") from error


def read_bytes(path: Path, max_bytes: int = MAX_BYTES, *, below: Path | None = None) -> bytes:
    """Return the content of a file.

    Raises:
        InputError: It cannot be opened, see `open_file`, or is larger than the maximum.
    """
    with _readable(path), open_file(path, below=below) as file:
        # Read one more byte: a file may grow.
        is_large = os.fstat(file.fileno()).st_size > max_bytes
        # A file of the kernel that has nothing to say at the moment reads as None.
        if is_large or len(data := file.read(max_bytes + 1) or b"") > max_bytes:
            raise OSError(errno.EFBIG, f"it is larger than {max_bytes:,} bytes")
        return data


def has_content(path: Path, content: bytes) -> bool:
    """Return whether a path is that of a regular file, and no link, with this content."""
    try:
        return read_bytes(path, len(content), below=path.parent) == content
    except InputError:
        return False


def read_text(path: Path, max_bytes: int = MAX_BYTES, *, below: Path | None = None) -> str:
    """Return the text of a file, as editors and shells save it: in UTF-8, or UTF-16 with its mark.

    Raises:
        InputError: See `read_bytes`; or it is in another encoding, or no text.
    """
    data = read_bytes(path, max_bytes, below=below)
    encoding = "utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{str(path)!r} is not in UTF-8, see line {line}. Save it in that encoding."
        ) from error


def read_lines(path: Path, *, below: Path | None = None) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file that may be of any size, with where each begins; one that is too long is null.

    Raises:
        InputError: See `open_file`.
    """
    with _readable(path), open_file(path, below=below) as file:
        yield from lines_of(file)


def lines_of(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of an open file, as `read_lines` does."""
    start = file.tell()
    while line := file.readline(MAX_BYTES):
        if not line.endswith(b"\n") and len(line) == MAX_BYTES:
            while (rest := file.readline(_CHUNK_BYTES)) and not rest.endswith(b"\n"):
                pass
            line = b"\0" + rest[-1:]
        yield start, line
        start = file.tell()


def read_text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text in UTF-8, which may be of any size, with their ends.

    Raises:
        InputError: See `open_file`; or a line is too long, or not in that encoding.
    """
    with _readable(path), io.TextIOWrapper(open_file(path), "utf-8-sig", newline="") as file:
        while line := file.readline(MAX_BYTES):
            if len(line) == MAX_BYTES:
                raise OSError(errno.EFBIG, f"it has a line of more than {MAX_BYTES:,} characters")
            yield line


# -- parsing -------------------------------------------------------------------------------------------------------------


def parse_json(data: bytes | str, *, max_items: int = MAX_ITEMS, is_strict: bool = False) -> Any:
    """Parse JSON that others may have written.

    Args:
        data: The JSON; bytes are in UTF-8.
        max_items: How many items it may hold.
        is_strict: Whether keys that come twice, which readers take differently, and NaN and infinity are refused.

    Raises:
        ValueError: It is not JSON, is nested too deeply, or holds too many items.
    """
    raw = (
        data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data.removeprefix(codecs.BOM_UTF8)
    )
    count_json(raw, max_items)
    # Invariant: decoded as it was counted; `json` would take bytes for UTF-16 as well.
    text = data if isinstance(data, str) else raw.decode("utf-8", "surrogatepass")
    try:
        if is_strict:
            return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
        return json.loads(text)
    except RecursionError as error:  # Whoever calls is near the end of the stack.
        raise ValueError("it is nested too deeply") from error


def count_json(data: bytes | bytearray, max_items: int) -> None:
    """Raise if JSON is nested too deeply or has too many items, in time that its items and texts bound.

    Raises:
        ValueError: It is.
    """
    opening = data.count(b"[") + data.count(b"{")
    if opening <= MAX_DEPTH and opening + data.count(b",") <= max_items:
        return
    depth = items = texts = 0
    for match in _TOKEN.finditer(data):
        first, length = data[match.start()], match.end() - match.start()
        if first in b"[{":
            depth, items = depth + length, items + length
        elif first in b"]}":
            depth -= length
        elif first == ord(","):
            items += 1
        else:
            texts += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"it has more than {MAX_DEPTH} lists and objects within each other")
        # An item has two texts at most: a key and a value.
        if max(items, texts // 2 - 1) > max_items:
            raise ValueError(f"it has more than {max_items:,} items")


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found
