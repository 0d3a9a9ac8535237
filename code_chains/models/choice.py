"""Which embedded model `local` is: the better one if memory and disk allow, and the same for the whole process."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from code_chains.errors import ConfigurationError, WeightsError
from code_chains.models.downloads import free_disk
from code_chains.models.weights import CATALOGUE, Weights

_MAX_FILE_BYTES = 1 << 16
_MAX_DEPTH = 32
_UNIFIED = ("memory.max", "memory.current", "inactive_file")
"""Version 2 of control groups: the files of limit and usage, and what of the usage is given back on demand."""
_LEGACY = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
"""The same of version 1."""


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that are available, or `None` if the system does not tell.

    That is the smaller of what the machine has and what is left below the limits of the control groups that
    this process belongs to, as containers have them.

    Args:
        root: The folder with `proc` and `sys`.
    """
    machine = _machine(root)
    return None if machine is None else max(0, min([machine, *_control_groups(root)]))


def _machine(root: Path) -> int | None:
    found = re.search(
        r"^MemAvailable:\s+(\d{1,15}) kB$", _read(root / "proc/meminfo"), re.MULTILINE | re.ASCII
    )
    return int(found[1]) * 1024 if found else _free_pages()


def _free_pages() -> int | None:
    """Return the memory that nothing uses, not even as a cache: less than is available, but known to more systems."""
    try:
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    return pages * size if pages > 0 and size > 0 else None


def _control_groups(root: Path) -> Iterator[int]:
    """Yield what each control group with a limit leaves."""
    base = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if (number, controllers) == ("0", ""):
            yield from _left_below(base, group, _UNIFIED)
        elif "memory" in controllers.split(","):
            yield from _left_below(base / "memory", group, _LEGACY)


def _left_below(base: Path, group: str, names: tuple[str, str, str]) -> Iterator[int]:
    """Yield what a group and those above it leave; a container may see its own as the topmost."""
    limit_name, usage_name, reclaimable_name = names
    parts = [part for part in PurePosixPath(group).parts if part not in ("/", "//", "..")][:_MAX_DEPTH]
    for depth in range(len(parts) + 1):
        folder = base.joinpath(*parts[:depth])
        limit = _number(_read(folder / limit_name))
        if limit is not None:
            used = _number(_read(folder / usage_name)) or 0
            yield limit - used + min(used, _statistic(folder, reclaimable_name))


def _statistic(folder: Path, name: str) -> int:
    found = re.search(rf"^{name} (\d{{1,20}})$", _read(folder / "memory.stat"), re.MULTILINE | re.ASCII)
    return int(found[1]) if found else 0


def _number(text: str) -> int | None:
    """Return the number in a file; `max` is none."""
    return int(text) if re.fullmatch(r"\d{1,20}\s*", text, re.ASCII) else None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_FILE_BYTES).decode(errors="replace")
    except (OSError, ValueError):  # Not there, not readable, or a name that no file can have.
        return ""


_VARIABLE = "CODE_CHAINS_LOCAL"
_SMALL, _BETTER = CATALOGUE["local:0.5b"], CATALOGUE["local:1.5b"]
_NEEDED_BYTES = 3_000_000_000
"""The memory that must be available for the better model, which takes about two thirds of it."""


@dataclass(frozen=True)
class LocalChoice:
    """The embedded model that `local` is.

    Attributes:
        weights: Its weights.
        reason: Why it is this one.
        is_explicit: Whether a person chose it.
    """

    weights: Weights
    reason: str
    is_explicit: bool = False

    def __str__(self) -> str:
        size = self.weights.name.removeprefix("local:").upper()
        return f"local: Qwen2.5-Coder {size} ({self.reason})"


class _Process:
    """The choice of this process: made once, so that caches and records name one model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._installing = threading.Lock()
        self._choice: LocalChoice | None = None
        self._is_announced = self._is_installed = False

    def choice(self) -> LocalChoice:
        with self._lock:
            if self._choice is None:
                self._choice = _choose()
            return self._choice

    def install(self, *, quiet: bool) -> Weights:
        with self._installing:
            choice = self.choice()
            if self._is_installed:
                choice.weights.install(quiet=quiet)
                return choice.weights
            if not self._is_announced:
                _announce(choice, quiet=quiet)
                self._is_announced = True
            self._choice = _installed(choice, quiet=quiet)
            self._is_installed = True
            return self._choice.weights


_process = _Process()


def local_choice() -> LocalChoice:
    """Return which embedded model `local` is in this process, and why.

    The better one needs 3 GB of available memory, and unless it is installed room on the disk for its
    download. `CODE_CHAINS_LOCAL` (`0.5b` or `1.5b`) overrides both.

    Raises:
        ConfigurationError: `CODE_CHAINS_LOCAL` names none of them.
    """
    return _process.choice()


def install_local(*, quiet: bool = False) -> Weights:
    """Install the embedded model that `local` is and return its weights; say once on standard error which one and why.

    Nothing is said of a model that `CODE_CHAINS_LOCAL` names. If the better one cannot be downloaded and the
    small one is installed, `local` is that one.

    Args:
        quiet: Whether to say nothing, and to hide the progress bar.

    Raises:
        ConfigurationError: `CODE_CHAINS_LOCAL` names no embedded model.
        WeightsError: The weights cannot be downloaded.
    """
    return _process.install(quiet=quiet)


def _choose() -> LocalChoice:
    if value := os.environ.get(_VARIABLE):
        if (weights := CATALOGUE.get(f"local:{value}")) is None:
            raise ConfigurationError(_VARIABLE, value, "0.5b or 1.5b, or unset it")
        return LocalChoice(weights, f"{_VARIABLE}={value}", is_explicit=True)
    memory = available_memory()
    if memory is None:
        return LocalChoice(_SMALL, f"how much memory is available is unknown; {_BETTER.name} answers better")
    if memory < _NEEDED_BYTES:
        needed = f"{_BETTER.name} needs {_gigabytes(_NEEDED_BYTES)}"
        return LocalChoice(_SMALL, f"{_gigabytes(memory)} of memory available, {needed}")
    if lack := _lack_of_disk():
        return LocalChoice(_SMALL, lack)
    return LocalChoice(_BETTER, f"{_gigabytes(memory)} of memory available; {_SMALL.name} is faster")


def _lack_of_disk() -> str:
    """Return why the better model cannot be downloaded; nothing if it can, or if it is installed."""
    if _BETTER.is_installed():
        return ""
    free, needed = free_disk(), _BETTER.download_bytes
    if free is not None and free >= needed:
        return ""
    left = "unknown free disk space" if free is None else f"{_gigabytes(free)} of disk space left"
    return f"{left}, the download of {_BETTER.name} needs {_gigabytes(needed)}"


def _installed(choice: LocalChoice, *, quiet: bool) -> LocalChoice:
    """Install the chosen model; without a network, an installed small one serves in the place of the better."""
    try:
        choice.weights.install(quiet=quiet)
    except WeightsError:
        if choice.is_explicit or choice.weights is _SMALL or not _SMALL.is_installed():
            raise
        choice = LocalChoice(_SMALL, f"{_BETTER.name} cannot be downloaded now")
        _announce(choice, quiet=quiet)
        _SMALL.install(quiet=quiet)
    return choice


def _announce(choice: LocalChoice, *, quiet: bool) -> None:
    from rich.console import Console

    if not choice.is_explicit:
        Console(stderr=True, quiet=quiet).print(str(choice), highlight=False, markup=False, soft_wrap=True)


def _gigabytes(size: int) -> str:
    """Return a size rounded down, so that what is too little does not look like enough."""
    return f"{size // 10**8 / 10:g} GB"
