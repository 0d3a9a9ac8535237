"""Limits of one run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from code_chains.errors import ConfigurationError, check_int

MAX_SECONDS = 86_400
MAX_COUNT = 1_000_000
MIN_MEMORY_BYTES = 16 << 20
"""Less does not even hold Python."""
MAX_BYTES = 1 << 40
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?\s*")


@dataclass(frozen=True)
class Limits:
    """Limits of one run. Sizes are bytes, or text such as `"512M"` (K, M and G are powers of 1024).

    Attributes:
        seconds: Wall-clock seconds of the program.
        memory: Memory of the program and all its processes together.
        output: Bytes of standard output, and as many of standard error; more of either ends the run.
        processes: Processes and threads at one time.
        open_files: Files, pipes and sockets that one process may have open.
        disk: Bytes that the program may write to its working directory, `/tmp` and `/dev/shm` together.
        files: Files and directories that it may create.
        artifacts: Bytes of files and figures that are collected from a run.
        tool_calls: Calls of the application's tools in one run.
        tool_seconds: Seconds of one such call; the clock of the program stands still meanwhile.
        tool_bytes: Bytes of one call's arguments, and as many of its result.
        tool_concurrency: Calls that are made at one time; further ones wait.

    Raises:
        ConfigurationError: A limit is not a positive number or size.
    """

    seconds: float = 10.0
    memory: int | str = "512M"
    output: int | str = "1M"
    processes: int = 64
    open_files: int = 256
    disk: int | str = "64M"
    files: int = 10_000
    artifacts: int | str = "16M"
    tool_calls: int = 1000
    tool_seconds: float = 30.0
    tool_bytes: int | str = "4M"
    tool_concurrency: int = 8

    def __post_init__(self) -> None:
        for name in ("seconds", "tool_seconds"):
            seconds = getattr(self, name)
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not is_number or not 0 < seconds <= MAX_SECONDS:
                remedy = "a number of seconds, greater than 0 and at most a day"
                raise ConfigurationError(f"Limits.{name}", seconds, remedy)
        for name in ("processes", "files", "open_files", "tool_calls", "tool_concurrency"):
            remedy = "a whole number from 1 to a million"
            check_int(f"Limits.{name}", getattr(self, name), remedy, minimum=1, maximum=MAX_COUNT)
        for name in ("memory", "output", "disk", "artifacts", "tool_bytes"):
            _bytes(f"Limits.{name}", getattr(self, name))
        if self.memory_bytes < MIN_MEMORY_BYTES:
            remedy = f'at least {MIN_MEMORY_BYTES >> 20} MB, e.g. "512M"; a number alone is in bytes'
            raise ConfigurationError("Limits.memory", self.memory, remedy)

    @property
    def memory_bytes(self) -> int:
        """The limit of memory in bytes."""
        return _bytes("Limits.memory", self.memory)

    @property
    def output_bytes(self) -> int:
        """The limit of output in bytes."""
        return _bytes("Limits.output", self.output)

    @property
    def artifacts_bytes(self) -> int:
        """The limit of artifacts in bytes."""
        return _bytes("Limits.artifacts", self.artifacts)

    @property
    def tool_message_bytes(self) -> int:
        """The limit of arguments and results of a tool call in bytes."""
        return _bytes("Limits.tool_bytes", self.tool_bytes)

    @property
    def disk_bytes(self) -> int:
        """The limit of disk in bytes."""
        return _bytes("Limits.disk", self.disk)


def _bytes(name: str, size: int | str) -> int:
    match = _SIZE.fullmatch(str(size).upper().replace("IB", "B"))
    amount = int(float(match[1]) * _UNITS[match[2]]) if match and not isinstance(size, bool) else 0
    if not 0 < amount <= MAX_BYTES:
        raise ConfigurationError(
            name, size, 'a number of bytes, or a size such as "512M" or "1G", at most "1024G"'
        )
    return amount
