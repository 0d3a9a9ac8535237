"""What downloads of weights have in common: their folder, its space, progress, and verified files."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from code_chains.errors import WeightsError
from code_chains.storage.files import sha256_file

__all__ = [
    "Progress",
    "check_disk_space",
    "file_size",
    "folder_size",
    "free_disk",
    "is_verified",
    "make_private",
    "models_directory",
    "remember",
    "report_size",
    "show_progress",
]

Progress = Callable[[int], None]
"""Receives the number of bytes downloaded so far."""
_REPORT_INTERVAL_S = 0.2
_verified: dict[Path, tuple[str | int, ...]] = {}
"""Files that this process has verified, by path: the checksum and the identity of the file."""


# -- verified files ------------------------------------------------------------------------------------------


def is_verified(path: Path, size: int, sha256: str) -> bool:
    """Return whether a file has the checksum; a stored result of an earlier check could be forged."""
    try:
        identity = _identity(path)
        has_size = path.stat().st_size == size
    except OSError:
        return False
    if not has_size:
        return False
    if _verified.get(path) != (sha256, *identity):
        if sha256_file(path) != sha256:
            return False
        _verified[path] = (sha256, *identity)
    return True


def remember(path: Path, sha256: str) -> None:
    """Remember for this process that a file has a checksum, as long as it does not change."""
    _verified[path] = (sha256, *_identity(path))


def _identity(path: Path) -> tuple[int, ...]:
    """Return values that change whenever a file is modified or replaced; users cannot set its ctime."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# -- the folder of models ------------------------------------------------------------------------------------


def models_directory() -> Path:
    """Return the directory of models: `CODE_CHAINS_MODELS` if set, else one in the user's cache."""
    from platformdirs import user_cache_path

    directory = os.environ.get("CODE_CHAINS_MODELS")
    return Path(directory).expanduser() if directory else user_cache_path("code_chains") / "models"


def make_private(folder: Path) -> None:
    """Create a folder that only its user may read.

    Raises:
        WeightsError: It cannot be created.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(
            f"The folder for models, {folder}, cannot be created: {error}. Set CODE_CHAINS_MODELS to another one."
        ) from error


def free_disk() -> int | None:
    """Return the free bytes of the disk of models, or `None` if the system does not tell."""
    folder = models_directory().absolute()
    for existing in (folder, *folder.parents):  # The folder is created on first use.
        with suppress(OSError):
            return shutil.disk_usage(existing).free
    return None


def check_disk_space(title: str, needed: int) -> None:
    """Raise unless the disk of models has room for a download.

    Raises:
        WeightsError: It has not.
    """
    free = shutil.disk_usage(models_directory()).free
    if free < needed:
        raise WeightsError(
            f"{title} needs {needed / 1e9:.1f} GB during the download, but {models_directory()} has"
            f" {free / 1e9:.1f} GB left. Free some space, or set CODE_CHAINS_MODELS to another folder."
        )


# -- progress ------------------------------------------------------------------------------------------------


@contextmanager
def show_progress(title: str, size: int, *, quiet: bool) -> Iterator[Progress]:
    """Show a progress bar on a terminal, and one line at the start and the end elsewhere."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal:
        start = time.monotonic()
        console.print(f"{title}: {size / 1e6:.0f} MB, once …", highlight=False)
        yield lambda done: None
        console.print(f"{title}: done after {time.monotonic() - start:.0f} s", highlight=False)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=size)
        yield lambda done: bar.update(task, completed=min(done, size))


@contextmanager
def report_size(path: Path, progress: Progress) -> Iterator[None]:
    """Report the size of a file, or of all files in a folder, regularly during a download."""
    is_done = threading.Event()

    def report() -> None:
        while not is_done.wait(_REPORT_INTERVAL_S):
            progress(folder_size(path) if path.is_dir() else file_size(path))

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


def file_size(path: Path) -> int:
    """Return the size of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def folder_size(folder: Path) -> int:
    """Return the size of all files under a folder, some of which may vanish meanwhile, as pip's temporary ones do."""
    size = 0
    for parent, _, names in os.walk(folder):  # Unlike Path.rglob, it passes over folders that are gone.
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(parent, name)).st_size
    return size
