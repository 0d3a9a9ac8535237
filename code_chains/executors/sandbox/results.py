"""From a run that has ended to its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from code_chains.errors import ExecutorError
from code_chains.executors.guest.wire import OUT_OF_TIME
from code_chains.executors.limits import Limits
from code_chains.executors.outcomes import RunOutcome, counted, limit_reached, reported_outcome
from code_chains.executors.sandbox.artifacts import ArtifactCollector
from code_chains.executors.sandbox.fork import Fork
from code_chains.records import ErrorReport, Execution, signal_name

LOST_THREADS = (
    "A library that has threads of its own, such as polars, may have waited for them: they ended when an earlier run of"
    " this session was undone. Use another library, or a new session."
)


def build_execution(fork: Fork, limits: Limits, seconds: float, collected: ArtifactCollector) -> Execution:
    """Build the record of a run.

    Args:
        fork: The sandbox that it ran in.
        limits: Its limits.
        seconds: Its duration, unless the supervisor measured it.
        collected: What it made.

    Raises:
        ExecutorError: The sandbox broke.
    """
    ending = (fork.last_reply or {}).get("ended") or {}
    if not ending and fork.pipes.result is None and not fork.pipes.violation:
        raise ExecutorError("The sandbox ended unexpectedly while a program ran in it.", is_retryable=True)
    status, error, result = _outcome(fork, limits, ending)
    return Execution(
        status=status,
        stdout=fork.pipes.stdout,
        stderr=fork.pipes.stderr,
        result=result,
        error=error,
        artifacts=tuple(collected.artifacts),
        display_data=tuple(collected.display_data),
        duration=float(ending.get("seconds", seconds)),
        peak_memory=counted(ending.get("peak")) or counted((fork.pipes.result or {}).get("peak")),
        truncated=fork.pipes.violation == "output" or collected.truncated,
        isolation=fork.supervisor.isolation,
    )


def _outcome(fork: Fork, limits: Limits, ending: dict[str, Any]) -> RunOutcome:
    """Return status, error and result. The supervisor is trusted before the program's own process."""
    if fork.pipes.violation == "output":
        return limit_reached(limits, "output")
    if fork.pipes.violation == "timeout":
        return limit_reached(limits, "timeout")
    if fork.pipes.violation == "deadline":
        message = "The program was stopped, as the time of the budget was spent."
        return "timeout", ErrorReport("Timeout", message), None
    if fork.pipes.violation == "protocol":
        message = "The program wrote into the pipe on which its process reports its result."
        return "killed", ErrorReport("Garbled", message), None
    was_left = ending.get("reason") == "left"  # It had reported, and was killed before it had exited.
    if ending.get("reason") and not was_left:
        return _limit_reached(limits, ending)
    has_ended_well = was_left or not ending.get("exit")
    if has_ended_well and fork.pipes.result is not None and (outcome := reported_outcome(fork.pipes.result)):
        return outcome
    if ending.get("signal") in OUT_OF_TIME:
        return limit_reached(limits, "timeout")
    if ending.get("signal"):
        message = f"The program was killed by {signal_name(ending['signal'])}."
        return "killed", ErrorReport("Killed", message), None
    message = (
        f"The process ended itself with exit code {ending.get('exit', 0)} before the program was finished."
    )
    return "killed", ErrorReport("Exited", message), None


def _limit_reached(limits: Limits, ending: dict[str, Any]) -> RunOutcome:
    status, error, result = limit_reached(limits, str(ending["reason"]))
    if error is not None and status == "timeout" and ending.get("has_lost_threads"):
        error = replace(error, message=f"{error.message} {LOST_THREADS}")
    return status, error, result
