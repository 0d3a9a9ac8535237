"""Feedback for the model on its failed program: grounded in the run, with all of the program's data fenced."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping, Sequence
from typing import Any

from code_chains.inputs import fenced
from code_chains.state import ErrorReport, Execution, ToolCall, Verdict
from code_chains.verification.obstacles import find_obstacle

_CONTEXT_LINES = 2
_KINDS = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
_KINDS |= {"Timeout", "MemoryLimit", "OutputLimit", "ProcessLimit", "DiskLimit"}
"""Kinds of errors that have a meaning without their message."""
_MAX_TRACEBACK_CHARS, _MAX_OUTPUT_CHARS = 3000, 1000
_MAX_CALLS, _MAX_CALL_CHARS = 5, 200
_MAX_PROBLEMS = 20


_USE_WHAT_IS_GIVEN = (
    "Compute the answer from what is given, without data of your own. If something that is needed is missing, print one line"
    " that begins with `Not given:` and names it."
)
ANOTHER_WAY = (
    "Programs for this failed twice in the same way. Solve it in another way, with other functions or steps."
)
_OWN_FRAME = re.compile(r'^  File "<code>".*\n(?:    .*\n)*', re.MULTILINE)
"""A frame of the program in a traceback; those of libraries say nothing to whoever does not read their source."""
_TYPE_HINT = "The program ran, but has no value of the type that was asked for. End it with an expression of this type."


def repair_feedback(outcome: Mapping[str, Any], *, schema_only: bool = False) -> str:
    """Describe for a model what was wrong with its program.

    Args:
        outcome: What an attempt added: `code`, `problems`, `execution` and `verdict`.
        schema_only: Whether to leave out everything that may hold values of the user's data: messages, values,
            output and reasons; what is left is the kind of the error and its line.

    Returns:
        The reason; the failing line with its context and the values at that moment; what exists instead of
        what was missing; and what was printed. Everything that comes from a program is fenced as data.
    """
    execution: Execution = outcome["execution"]
    code = outcome.get("code") or ""
    if execution.status == "refused":
        parts = ["The program was not run:", *_format_problems(outcome, "error", code)]
    elif schema_only:
        parts = [_describe_kind(execution.error, code, outcome["verdict"])]
    else:
        parts = _describe_run(execution, code, outcome["verdict"])
    if advice := _format_problems(outcome, "advice", code):
        parts += ["Besides:", *advice]
    return "\n".join(parts)


def _describe_run(execution: Execution, code: str, verdict: Verdict) -> list[str]:
    error = execution.error
    parts = _describe_error(error, code) if error else _describe_verdict(verdict, execution)
    if error and (cause := _cause(verdict, execution)):
        parts.append(f"A cause may be:\n{fenced(cause)}")
    if is_offline(execution):
        parts.append(f"Programs cannot reach the network. {_USE_WHAT_IS_GIVEN}")
    if execution.tool_calls:
        parts.append(f"It had called:\n{fenced(_format_calls(execution.tool_calls))}")
    if execution.output.strip():
        parts.append(f"It had printed:\n{fenced(execution.output[-_MAX_OUTPUT_CHARS:])}")
    return parts


def _cause(verdict: Verdict, execution: Execution) -> str:
    """Return what the verdict on a failure adds to how it ended."""
    summary, _, added = verdict.reason.partition(execution.summary)
    return "" if summary else added.strip()


def _format_calls(calls: Sequence[ToolCall]) -> str:
    lines = []
    for call in calls[-_MAX_CALLS:]:
        line = f"{call.name}({call.arguments}): {call.status}: {call.summary}"
        lines.append(line[:_MAX_CALL_CHARS])
    return "\n".join(lines)


def failure_signature(outcome: Mapping[str, Any]) -> tuple[str, str]:
    """Return what identifies a failure: the program, and the way in which it fails.

    Two failures are the same if either part is.
    """
    execution: Execution = outcome["execution"]
    error = execution.error
    code = "\n".join(_lines(outcome["code"]))
    where = _line(outcome["code"], error.line) if error else ""
    return code, f"{error or ''} {where} {outcome['verdict'].reason}"


def fails_again(execution: Execution) -> bool:
    """Return whether a program failed in a sandbox, cut off from anything that may have changed when it is run again."""
    if execution.status in ("ok", "refused") or execution.tool_calls or execution.isolation is None:
        return False
    obstacle = find_obstacle(execution)  # An address that is allowed may answer the next time.
    return execution.isolation.network and not (obstacle and obstacle.kind == "network")


def is_offline(execution: Execution) -> bool:
    """Return whether a program failed because it needs the network, which its sandbox does not have."""
    obstacle = find_obstacle(execution)
    is_cut_off = execution.isolation is not None and execution.isolation.network
    return is_cut_off and obstacle is not None and obstacle.kind == "network"


def same_program(code: str, other: str) -> bool:
    """Return whether two programs differ in blank space at the ends of lines and in empty lines only."""
    return _lines(code) == _lines(other)


def _lines(code: str) -> list[str]:
    return list(filter(None, map(str.rstrip, code.splitlines())))


def _format_problems(outcome: Mapping[str, Any], severity: str, code: str) -> list[str]:
    lines = code.splitlines()
    found = [problem for problem in outcome["problems"] if problem.severity == severity]
    formatted = []
    for problem in found[:_MAX_PROBLEMS]:
        line = lines[problem.line - 1].strip() if problem.line and problem.line <= len(lines) else ""
        formatted.append(f"- {problem}" + (f", in: {line[:200]}" if line else ""))
    return (
        [*formatted, f"- and {len(found) - _MAX_PROBLEMS:,} more"]
        if len(found) > _MAX_PROBLEMS
        else formatted
    )


def _line(code: str, number: int | None) -> str:
    lines = code.splitlines()
    return lines[number - 1].strip() if number and 0 < number <= len(lines) else ""


def _describe_verdict(verdict: Verdict, execution: Execution) -> list[str]:
    """Describe a program that ran and still is not an answer."""
    if verdict.by != "none":
        parts = [f"The program ran, but its outcome was not accepted:\n{fenced(verdict.reason)}"]
        return [*parts, _USE_WHAT_IS_GIVEN] if verdict.by == "provenance" else parts
    if execution.output.strip():
        return [verdict.reason]
    return [verdict.reason, "Print the answer at the end of the program."]


def _describe_error(error: ErrorReport, code: str) -> list[str]:
    parts = [f"The program failed{f' in line {error.line}' if error.line else ''}:\n{fenced(str(error))}"]
    if error.hint:
        parts.append(f"What there is:\n{fenced(error.hint)}")
    if excerpt := _excerpt(code, error.line):
        parts.append(f"It failed at the line marked with >:\n{fenced(excerpt)}")
    if error.locals:
        values = "\n".join(map("{} = {}".format, error.locals, error.locals.values()))
        parts.append(f"Values at that moment:\n{fenced(values)}")
    if len(frames := _OWN_FRAME.findall(error.traceback)) > 1:
        parts.append(f"It was called from:\n{fenced(''.join(frames)[-_MAX_TRACEBACK_CHARS:])}")
    return parts


def _describe_kind(error: ErrorReport | None, code: str, verdict: Verdict) -> str:
    """Describe a failure by its kind and line alone; a program chooses the rest, and may put data into it."""
    if error is not None:
        kind = error.type if error.type in _KINDS else "an exception"
        where = f" in line {error.line}:\n{fenced(_excerpt(code, error.line))}" if error.line else "."
        return f"The program failed with {kind}{where}"
    if verdict.by == "type":
        return _TYPE_HINT
    return "The program ran, but its outcome was not accepted. Print the answer at the end of the program."


def _excerpt(code: str, number: int | None) -> str:
    """Return a line with its neighbours."""
    lines = code.splitlines()
    if not number or not 0 < number <= len(lines):
        return ""
    first, last = max(1, number - _CONTEXT_LINES), min(len(lines), number + _CONTEXT_LINES)
    excerpt = []
    for at in range(first, last + 1):
        mark = ">" if at == number else " "
        excerpt.append(f"{mark} {at:>3} | {lines[at - 1][:200]}")
    return "\n".join(excerpt)
