"""The folder of this process for temporary files: removed when it ends, or by the next process if it was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

_PREFIX = "code_chains-process-"
_MIN_AGE_S = 60.0
"""A younger folder may belong to a process that has not locked it yet."""
_lock = threading.Lock()


class _Owner:
    """Owns the folder of one process; those that are forked from it make their own."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.folder = tempfile.mkdtemp(prefix=_PREFIX)
        os.chmod(self.folder, 0o711)  # noqa: S103 - programs of another user pass through
        # Invariant: the lock is held while the process lives, whichever pid namespace it is in, and no longer.
        self.lock = _locked(self.folder)
        self.release = weakref.finalize(self, _remove, self.pid, self.folder)

    def is_usable(self) -> bool:
        """Return whether it is of this process, below the folder that is in use, and was not removed from outside."""
        is_current = os.path.dirname(self.folder) == os.path.abspath(tempfile.gettempdir())
        return self.pid == os.getpid() and is_current and os.path.isdir(self.folder)


_owners: list[_Owner] = []


def process_folder() -> str:
    """Return the folder in which this process makes its temporary files and folders.

    What processes left that were killed is removed in the background when it is made.

    Raises:
        OSError: There is no folder for temporary files that can be written to.
    """
    with _lock:
        if not _owners or not _owners[-1].is_usable():
            _owners.append(_Owner())
            threading.Thread(target=_sweep, args=(tempfile.gettempdir(),), daemon=True).start()
        return _owners[-1].folder


def _locked(folder: str) -> int | None:
    """Return a descriptor that locks a folder; None if another process has locked it, or there are no such locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _sweep(parent: str) -> None:
    """Remove the folders of this user whose owners are gone."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX):
                with contextlib.suppress(OSError):
                    _sweep_one(Path(entry.path))


def _sweep_one(folder: Path) -> None:
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if not is_own or time.time() - status.st_ctime < _MIN_AGE_S:
        return
    descriptor = _locked(str(folder))
    if descriptor is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _remove(pid: int, folder: str) -> None:
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)
