"""What downloads of weights need: their folder, its space, progress, and verified files."""

from __future__ import annotations

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from code_chains.errors import WeightsError
from code_chains.storage.files import sha256_file

Progress = Callable[[int], None]
"""Receives the number of bytes downloaded so far."""
_verified: dict[Path, tuple[str | int, ...]] = {}
"""Files that this process has verified, by path: the checksum and the identity of the file."""


# -- verified files ------------------------------------------------------------------------------------------


def is_verified(path: Path, size: int, sha256: str) -> bool:
    """Return whether a file has the checksum; a stored result of an earlier check could be forged."""
    if file_size(path) != size:
        return False
    identity: tuple[str | int, ...] = (sha256, *_identity(path))
    if _verified.get(path) != identity and sha256_file(path) == sha256:
        _verified[path] = identity
    return _verified.get(path) == identity


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
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal:
        start = time.monotonic()
        console.print(f"{title}: {size / 1e6:.0f} MB, once …", highlight=False)
        yield lambda done: None
        console.print(f"{title}: done after {time.monotonic() - start:.0f} s", highlight=False)
        return
    columns = (
        "{task.description}",
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=size)
        yield lambda done: bar.update(task, completed=min(done, size))


class Partial(io.BufferedWriter):
    """The file of a download that is under way: says how much is there, and takes no more than is missing.

    Args:
        path: The file; what it holds is continued.
        size: The size of the whole.
        progress: Is told the size after each write.
    """

    def __init__(self, path: Path, size: int, progress: Progress) -> None:
        super().__init__(io.FileIO(path, "a", opener=lambda name, flags: os.open(name, flags, 0o600)))
        self._path, self._size, self._progress = path, size, progress

    def write(self, data: Any) -> int:
        """Append bytes.

        Raises:
            WeightsError: The whole would be larger than it should be.
        """
        if self.tell() + len(memoryview(data)) > self._size:
            raise WeightsError(f"{self._path.name} would contain more than its {self._size} bytes")
        written = super().write(data)
        self._progress(self.tell())
        return written


def file_size(path: Path) -> int:
    """Return the size of a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
