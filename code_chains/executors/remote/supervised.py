"""Reports of runs in third-party sandboxes, containers and WebAssembly, read as records; which modules run there."""

from __future__ import annotations

import base64
import hmac
import math
import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from code_chains.executors.guest.frames import MAX_ITEMS, MAX_RESULT_BYTES, FrameReader
from code_chains.executors.guest.reports import MAX_REPORT_BYTES, reply_proof
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.guest.wire import MAX_FRAME_BYTES
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.outcomes import RunOutcome, counted, limit_reached, reported_outcome
from code_chains.executors.remote.stdio_frames import Blobs
from code_chains.executors.sandbox.artifacts import MAX_DEPTH, MAX_FILES, ArtifactCollector
from code_chains.records import Artifact, ErrorReport, Execution, Isolation, signal_name
from code_chains.records.printable import printable
from code_chains.records.runs import PROBED, Level, Status

MAX_REPORT_ITEMS = 10_000
"""Items of a supervisor's report, most of which name files."""
LAYERS = ("landlock", "seccomp")
"""What of a sandbox's own kernel may confine programs."""
_REPORT = '{"report": '
_TEXTS = ("result", "stdout", "stderr")
_MAX_LINE_CHARS = 4 * MAX_REPORT_BYTES
"""JSON is escaped twice in a line; longer reports are in files."""
_MAX_NAME_CHARS, _MAX_LAYERS, _MAX_PART_BYTES = 100, 20, 255
GUEST_FOLDER = Path(__file__).parents[1] / "guest"
GUEST_FILES = {f"guest/{path.name}": path for path in GUEST_FOLDER.glob("*.py")}
"""The modules that run a program anywhere."""


def find_report(output: str, key: str, number: int) -> dict[str, Any] | None:
    """Return the signed report on a request among the lines of an output; None if it is missing."""
    for line in output.split("\n"):
        # A program may write to the same stream.
        if len(line) > _MAX_LINE_CHARS or not line.startswith(_REPORT):
            continue
        signed = parse_line(line)
        text, proof = str(signed.get("report")), str(signed.get("proof"))
        expected = reply_proof(key.encode(), number, text.encode(errors="replace").decode())
        if hmac.compare_digest(expected.encode(), proof.encode(errors="replace")):
            return parse_line(text)
    return None


def is_confined(report: Mapping[str, Any]) -> bool:
    """Return whether a signed report says that the sandbox's own kernel confines programs."""
    return set(LAYERS) <= set(map(str, report.get("layers") or ()))


def is_lost(report: Mapping[str, Any]) -> bool:
    """Return whether there is no signed report, or one that says that its supervisor has ended or something is left."""
    return not report or "broken" in report or "remains" in report


def execution_of(
    report: Mapping[str, Any] | None,
    limits: Limits,
    isolation: Isolation,
) -> Execution:
    """Build the record of a run.

    Args:
        report: The supervisor's report; None if it was ended before.
        limits: The limits of the run.
        isolation: What the probe found.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: The report is malformed.
    """
    if report is None:
        killed = ErrorReport("Killed", "The program killed its supervisor.")
        return Execution("killed", error=killed, isolation=isolation)
    layers = tuple(name for name in LAYERS if name in report.get("layers", ()))
    message = _read_frame(base64.b64decode(report["result"]), limits)
    files = [
        (name, None if data is None else base64.b64decode(data)) for name, data in report.get("files") or ()
    ]
    truncated = report["reason"] == "output"
    claimed = replace(isolation, layers=layers or isolation.layers)
    return _checked(
        report, _outcome(report, message, limits), files, message, claimed, limits, truncated=truncated
    )


def claimed_execution(claimed: Mapping[str, Any], blobs: Blobs, limits: Limits) -> Execution:
    """Build the record of a run from what a server of runs claims of it; see `report_of`.

    Args:
        claimed: What it claims.
        blobs: The data that belongs to it.
        limits: The limits of the run.

    Raises:
        KeyError, TypeError, ValueError, AttributeError, IndexError: It is malformed.
    """
    most = max(limits.output_bytes, MAX_RESULT_BYTES)
    texts = {name: blobs.text(claimed[name], most) for name in _TEXTS if claimed[name] is not None}
    report = {**claimed, **texts}
    numbers = [number for _, number in claimed["files"] if number is not None]
    if len(set(numbers)) < len(numbers) or len(numbers) > MAX_FILES:
        raise ValueError("the same data for several files, or too many")
    outcome = reported_outcome(report, get_args(Status))
    if outcome is None:
        raise ValueError("no outcome")
    files = [(name, None if number is None else blobs[number]) for name, number in report["files"]]
    views = [{"name": "", "media_type": kind, "data": blobs[number]} for kind, number in report["displays"]]
    return _checked(
        report,
        outcome,
        files,
        {"views": views},
        _claimed(report["isolation"]),
        limits,
        truncated=report["truncated"] is True,
    )


def report_of(execution: Execution, blobs: Blobs) -> dict[str, Any]:
    """Return what a server of runs says of one, for `claimed_execution`."""
    isolation = execution.isolation
    return {
        "status": execution.status,
        "error": None if execution.error is None else execution.error.to_dict(),
        "result": None if execution.result is None else blobs.add_text(execution.result),
        "stdout": blobs.add_text(execution.stdout),
        "stderr": blobs.add_text(execution.stderr),
        "files": [(artifact.name, blobs.add(artifact.data)) for artifact in execution.artifacts],
        "displays": [(item.media_type, blobs.add_text(item.data)) for item in execution.display_data],
        "seconds": execution.duration,
        "peak": execution.peak_memory,
        "truncated": execution.truncated,
        "isolation": None if isolation is None else isolation.to_dict(),
    }


def _claimed(isolation: Any) -> Isolation | None:
    """Return what a server says that isolates its programs; nothing of it was probed from here."""
    if isolation is None:
        return None
    level = cast(Level, isolation["level"] if isolation["level"] in get_args(Level) else "none")
    layers = [printable(str(layer), _MAX_NAME_CHARS) for layer in isolation["layers"][:_MAX_LAYERS]]
    probed = {name: isolation[name] is True for name in PROBED}
    launcher = printable(str(isolation["launcher"]), _MAX_NAME_CHARS)
    return Isolation(level, f"{launcher} (as claimed)", **probed, layers=tuple(layers))


def _checked(
    report: Mapping[str, Any],
    outcome: RunOutcome,
    files: Iterable[tuple[str, bytes | None]],
    message: Mapping[str, Any],
    isolation: Isolation | None,
    limits: Limits,
    *,
    truncated: bool,
) -> Execution:
    """Build a record of what another machine reports. Invariant: nothing of it is taken that was not checked here."""
    status, error, result = outcome
    if len(result or "") > MAX_RESULT_BYTES or (error is not None and _is_long(error)):
        raise ValueError("its outcome is too long")
    collector = ArtifactCollector(limits.artifacts_bytes)
    for name, data in files:
        if data is None:
            collector.truncated = True
        elif is_plain_name(name):
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            collector.add(Artifact.of(name, media_type, data))
    collector.collect_views(message)
    stdout, stderr = map(as_text, (report["stdout"], report["stderr"]))
    seconds = float(report["seconds"])
    is_long = max(len(stdout), len(stderr)) > limits.output_bytes
    return Execution(
        status,
        stdout[: limits.output_bytes],
        stderr[: limits.output_bytes],
        result,
        error,
        tuple(collector.artifacts),
        tuple(collector.display_data),
        duration=min(max(0.0, seconds), MAX_SECONDS) if math.isfinite(seconds) else 0.0,
        peak_memory=counted(report["peak"]),
        truncated=truncated or collector.truncated or is_long,
        isolation=isolation,
    )


def _is_long(error: ErrorReport) -> bool:
    """Return whether no program can report as much, to which a sandbox may add a sentence."""
    return len(error.locals) > MAX_ITEMS or len(error.to_json()) > MAX_FRAME_BYTES + (1 << 10)


def as_text(text: str) -> str:
    """Return what a report holds as text, without half characters, which nothing can print.

    Raises:
        TypeError: It is none.
    """
    return "".join([text]).encode(errors="replace").decode()


def max_report(limits: Limits) -> int:
    """Return the bytes that the report of a run may have: what it printed and made, as JSON and Base64."""
    return 12 * limits.output_bytes + 3 * limits.artifacts_bytes + (24 << 20)


def is_plain_name(name: str) -> bool:
    """Return whether a name is one of a file below the working directory."""
    parts = name.split("/")
    is_short = len(parts) <= MAX_DEPTH + 1 and all(len(part.encode()) <= _MAX_PART_BYTES for part in parts)
    return name.isprintable() and is_short and "\\" not in name and not {"", ".", ".."}.intersection(parts)


def timed_out(limits: Limits, isolation: Isolation) -> Execution:
    """Return the record of a run whose supervisor was ended for its time."""
    error = limit_reached(limits, "timeout")[1]
    return Execution("timeout", error=error, duration=limits.seconds, isolation=isolation)


def _read_frame(data: bytes, limits: Limits) -> dict[str, Any]:
    """Return what the program's process reported, as in the kernel sandbox; empty if that is no frame."""
    frames = FrameReader(limits.artifacts_bytes).feed(data)
    return frames[0] if frames else {}


def parse_line(line: str) -> dict[str, Any]:
    """Parse a line of JSON; empty if it is none, as a program may write to the same stream."""
    try:
        message = parse(line.encode(errors="replace"), MAX_REPORT_ITEMS)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _outcome(report: Mapping[str, Any], message: Mapping[str, Any], limits: Limits) -> RunOutcome:
    if report["reason"]:
        return limit_reached(limits, report["reason"])
    if report["exit"] == 0 and (outcome := reported_outcome(message)):
        return outcome
    if report["exit"] < 0:
        text = f"The program was killed by {signal_name(-report['exit'])}."
        return "killed", ErrorReport("Killed", text), None
    text = f"The process ended itself with exit code {report['exit']} before the program was finished."
    return "killed", ErrorReport("Exited", text), None
