"""What a model is told about a program of its own that did not do: grounded in what happened, fenced as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from code_chains.inputs import fenced
from code_chains.state import ErrorReport, Execution, Verdict

__all__ = ["complaint", "signature"]

_NEIGHBOURS = 2
_LONGEST_TRACEBACK, _LONGEST_OUTPUT = 3000, 1000


def complaint(outcome: Mapping[str, Any]) -> str:
    """Tell a model in words what was wrong with its program.

    Args:
        outcome: What an attempt added: `code`, `problems`, `execution` and `verdict`.

    Returns:
        The reason; the failing line with its neighbours and the values of that moment; what there is instead of what was
        missing; and what was printed. All that comes from a program is fenced as data.
    """
    execution: Execution = outcome["execution"]
    code = outcome.get("code") or ""
    if execution.status == "refused":
        return "\n".join(["The program was not run:", *_listed(outcome, "error", code), *_advice(outcome, code)])
    error = execution.error
    parts = _error(error, code) if error else _judged(outcome["verdict"], execution)
    if execution.output.strip():
        parts.append(f"It had printed:\n{fenced(execution.output[-_LONGEST_OUTPUT:])}")
    return "\n".join([*parts, *_advice(outcome, code)])


def signature(outcome: Mapping[str, Any]) -> tuple[str, str]:
    """What makes two failures the same: the program, and the way in which it fails.

    Two failures are the same if either part is.
    """
    execution: Execution = outcome["execution"]
    error = execution.error
    code = "\n".join(line.rstrip() for line in outcome["code"].splitlines() if line.strip())
    where = _line(outcome["code"], error.line) if error else ""
    return code, f"{error or ''} {where} {outcome['verdict'].reason}"


def _listed(outcome: Mapping[str, Any], severity: str, code: str) -> list[str]:
    found = []
    for problem in outcome["problems"]:
        if problem.severity == severity:
            line = _line(code, problem.line)
            found.append(f"- {problem}" + (f", in: {line[:200]}" if line else ""))
    return found


def _advice(outcome: Mapping[str, Any], code: str) -> list[str]:
    found = _listed(outcome, "advice", code)
    return ["Besides:", *found] if found else []


def _line(code: str, number: int | None) -> str:
    lines = code.splitlines()
    return lines[number - 1].strip() if number and 0 < number <= len(lines) else ""


def _judged(verdict: Verdict, execution: Execution) -> list[str]:
    """A program that ran, and still is no answer."""
    if verdict.by != "none":
        return [f"The program ran, but its outcome was not accepted:\n{fenced(verdict.reason)}"]
    return [verdict.reason, *([] if execution.output.strip() else ["Print the answer at the end of the program."])]


def _error(error: ErrorReport, code: str) -> list[str]:
    parts = [f"The program failed{f' in line {error.line}' if error.line else ''}:\n{fenced(str(error))}"]
    if excerpt := _excerpt(code, error.line):
        parts.append(f"It failed at the line marked with >:\n{fenced(excerpt)}")
    if error.locals:
        values = "\n".join(f"{name} = {value}" for name, value in error.locals.items())
        parts.append(f"Values at that moment:\n{fenced(values)}")
    if error.traceback.count("\n  File ") > 1:
        parts.append(f"Traceback:\n{fenced(error.traceback[-_LONGEST_TRACEBACK:])}")
    if error.hint:
        parts.append(f"What there is:\n{fenced(error.hint)}")
    return parts


def _excerpt(code: str, number: int | None) -> str:
    """A line with its neighbours."""
    lines = code.splitlines()
    if not number or not 0 < number <= len(lines):
        return ""
    first, last = max(1, number - _NEIGHBOURS), min(len(lines), number + _NEIGHBOURS)
    return "\n".join(f"{'>' if at == number else ' '} {at:>3} | {lines[at - 1][:200]}" for at in range(first, last + 1))
