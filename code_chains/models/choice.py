"""Which embedded model `local` is: the better one if memory and disk allow, and the same for the whole process."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from code_chains.errors import ConfigurationError, WeightsError
from code_chains.models.downloads import free_disk
from code_chains.models.memory import available_memory
from code_chains.models.weights import CATALOGUE, Weights

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
