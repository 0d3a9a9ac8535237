"""Outcomes of runs: the limit that was reached, or what the process reported."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from code_chains.executors.limits import Limits
from code_chains.records import ErrorReport, Execution, Problem, Status
from code_chains.records.decisions import REFUSED, read_result

RunOutcome = tuple[Status, ErrorReport | None, str | None]
"""Status, error and result."""
REPORTABLE = ("ok", "error", "memory", "disk_limit", "file_limit", "process_limit")
"""Statuses that a program's process may report about itself."""


def limit_reached(limits: Limits, reason: str) -> RunOutcome:
    """Return the outcome of a run that was stopped for a reason."""
    reports: dict[str, tuple[Status, str, str]] = {
        "timeout": ("timeout", "Timeout", f"The program did not end within {limits.seconds:g} seconds."),
        "memory": ("memory", "MemoryLimit", f"The program used more than {limits.memory} of memory."),
        "output": ("output_limit", "OutputLimit", f"More than {limits.output} bytes were printed."),
        "processes": (
            "process_limit",
            "ProcessLimit",
            f"The program started more than {limits.processes} processes.",
        ),
        "files": ("disk_limit", "DiskLimit", f"The program made more than {limits.files} files."),
        "disk": ("disk_limit", "DiskLimit", f"The program wrote more than {limits.disk} bytes."),
        "stopped": ("killed", "Stopped", "The program was stopped."),
    }
    status, kind, message = reports[reason]
    return status, ErrorReport(kind, message), None


def reported_outcome(report: Mapping[str, Any], statuses: Collection[str] = REPORTABLE) -> RunOutcome | None:
    """Return the outcome that the program's process reported; None if the report is malformed.

    Args:
        report: What it reported.
        statuses: The statuses that may be reported.
    """
    status, error, result = report.get("status"), report.get("error"), report.get("result")
    if status not in statuses or not isinstance(result, str | None):
        return None
    if result is not None:
        result = result.encode(errors="replace").decode()  # A forged report may hold half a character.
    try:
        told = None if error is None else ErrorReport.from_dict(error)
    except (ValueError, TypeError):
        return None
    if told is not None and told.line is not None and not 0 < told.line < 1 << 31:
        return None
    return cast(Status, status), told, result


def objections(check: Callable[[Execution], object], execution: Execution) -> list[Problem]:
    """Return why an outcome in a session is not accepted; none if it is.

    Raises:
        ConfigurationError: The check returned what is no decision.
    """
    result = check(execution)
    if result is None or inspect.isawaitable(result):
        result = read_result(False if result is None else result, "check")
    is_reason = isinstance(result, bool | str | Problem | tuple | list | set | frozenset)
    found = read_result(result if is_reason else bool(result), "check")
    return [problem for problem in found if problem.severity == "error"]


def rejected(execution: Execution, reasons: Sequence[Problem]) -> Execution:
    """Return an execution in a session whose outcome was not accepted."""
    why = "; ".join(problem.message for problem in reasons if problem.message != REFUSED)
    message = f"The outcome was not accepted{f' ({why})' if why else ''}; the state is as it was before."
    return replace(execution, status="error", error=ErrorReport("CheckFailed", message))


def counted(value: Any) -> int:
    """Return a number that a program's process reported, if it is one; else 0."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return value if is_integer and 0 <= value < 1 << 62 else 0
