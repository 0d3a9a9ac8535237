"""How a run ended, in words: what broke a limit, and what a program's process says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from code_chains.executors.base import Limits
from code_chains.state import ErrorReport, Status

__all__ = ["Ending", "limit_reached", "said_by_program"]

Ending = tuple[Status, ErrorReport | None, str | None]
"""Status, error and result."""
TOLD = ("ok", "error", "memory", "disk_limit", "file_limit", "process_limit")
"""What a program's process may say of its own ending."""


def limit_reached(limits: Limits, reason: str) -> Ending:
    """The ending of a run that a watcher stopped for a reason."""
    reports: dict[str, tuple[Status, str, str]] = {
        "timeout": ("timeout", "Timeout", f"The program did not end within {limits.seconds:g} seconds."),
        "memory": ("memory", "MemoryLimit", f"The program used more than {limits.memory} of memory."),
        "output": ("output_limit", "OutputLimit", f"More than {limits.output} bytes were printed."),
        "processes": ("process_limit", "ProcessLimit", f"The program started more than {limits.processes} processes."),
        "files": ("disk_limit", "DiskLimit", f"The program made more than {limits.files} files."),
        "disk": ("disk_limit", "DiskLimit", f"The program wrote more than {limits.disk} bytes."),
        "stopped": ("killed", "Stopped", "The program was stopped."),
    }
    status, kind, message = reports[reason]
    return status, ErrorReport(kind, message), None


def said_by_program(frame: Mapping[str, Any]) -> Ending | None:
    """What the program's process says of its own ending, if it has the right shape."""
    status, error, result = frame.get("status"), frame.get("error"), frame.get("result")
    if status not in TOLD or not isinstance(result, str | None):
        return None
    try:
        return status, None if error is None else ErrorReport.from_dict(error), result
    except (ValueError, TypeError):
        return None
