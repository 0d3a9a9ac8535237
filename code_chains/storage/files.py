"""Atomic writes, checksums and locks."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import stat
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from code_chains.errors import OverloadedError
from code_chains.storage.foreign import open_file

if sys.platform != "win32":
    import fcntl

_LOCK_INTERVAL_S = 0.02


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def atomic_write(path: Path, content: Path | bytes, *, mode: int = 0o666) -> None:
    """Replace a file so that it holds either the previous or the new content, even after a crash.

    Args:
        path: The file.
        content: The new content: bytes, or a file to copy.
        mode: Its permissions, reduced by the umask; 0o600 for a file that is private to its user.
    """
    with _opened(content) as source:
        replace_by(path, source, mode=mode)


def replace_by(path: Path, source: IO[bytes], *, mode: int = 0o666) -> None:
    """Replace a file by what can be read from another one, as `atomic_write` does."""
    temporary = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # A disk that has vanished; the first error tells it.
            temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def exclusive(path: Path, seconds: float) -> Iterator[None]:
    """Keep others that lock the same file from entering the block; without locks of the system, as on Windows, do nothing.

    Raises:
        OverloadedError: They took longer than these seconds.
    """
    until = time.monotonic() + seconds
    while (descriptor := _locked(path)) is None:
        if time.monotonic() > until:
            raise OverloadedError(f"Others have locked {path} for {seconds:g} seconds. Try again later.")
        time.sleep(_LOCK_INTERVAL_S)
    try:
        yield
    finally:
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                path.unlink()
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # A forked process may have it open, too.
            os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock, None if somebody else has it, and -1 if there are no locks."""
    if sys.platform == "win32":
        return -1
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:  # As in a folder that cannot be written to.
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Invariant: the file has its name; the one who had the lock removes it.
        if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        return None
    except OSError:  # The file system has no locks.
        os.close(descriptor)
        return -1
    os.close(descriptor)
    return None


def _opened(content: Path | bytes) -> IO[bytes]:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")


def is_private(folder: Path) -> bool:
    """Return whether a folder belongs to this user and nobody else may write to it.

    Invariant: on Windows the access list of the user's profile answers for that, as modes and owners tell nothing.
    """
    status = folder.lstat()
    if sys.platform == "win32":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
