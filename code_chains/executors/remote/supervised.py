"""Reports of runs in third-party sandboxes, containers and WebAssembly, read as records; which modules run there."""

from __future__ import annotations

import base64
import hmac
import mimetypes
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from code_chains.executors.guest.frames import FrameReader
from code_chains.executors.guest.reports import reply_proof
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.outcomes import RunOutcome, counted, limit_reached, reported_outcome
from code_chains.executors.sandbox.artifacts import ArtifactCollector
from code_chains.records import signal_name
from code_chains.state import Artifact, ErrorReport, Execution, Isolation

MAX_REPORT_ITEMS = 10_000
"""Items of a supervisor's report, most of which name files."""
LAYERS = ("landlock", "seccomp")
"""What of a sandbox's own kernel may confine programs."""
_REPORT = '{"report": '
GUEST_FOLDER = Path(__file__).parents[1] / "guest"
GUEST_FILES = {f"guest/{path.name}": path for path in GUEST_FOLDER.glob("*.py")}
"""The modules that run a program anywhere."""


def find_report(output: str, key: str, number: int) -> dict[str, Any] | None:
    """Return the signed report on a request among the lines of an output; None if it is missing."""
    for line in output.split("\n"):
        if not line.startswith(_REPORT):  # A program may write to the same stream.
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
    status, error, result = _outcome(report, message, limits)
    collector = ArtifactCollector(limits.artifacts_bytes)
    for name, data in report.get("files") or ():
        if data is None:
            collector.truncated = True
        elif is_plain_name(name):
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            collector.add(Artifact(name, media_type, base64.b64decode(data)))
    collector.collect_views(message)
    return Execution(
        status,
        "".join([report["stdout"]]),
        "".join([report["stderr"]]),
        result,
        error,
        tuple(collector.artifacts),
        tuple(collector.display_data),
        duration=min(max(0.0, float(report["seconds"])), MAX_SECONDS),
        peak_memory=counted(report["peak"]),
        truncated=report["reason"] == "output" or collector.truncated,
        isolation=replace(isolation, layers=layers or isolation.layers),
    )


def max_report(limits: Limits) -> int:
    """Return the bytes that the report of a run may have: what it printed and made, as JSON and Base64."""
    return 12 * limits.output_bytes + 3 * limits.artifacts_bytes + (24 << 20)


def is_plain_name(name: str) -> bool:
    """Return whether a name is one of a file below the working directory."""
    parts = name.split("/")
    return name.isprintable() and "\\" not in name and not {"", ".", ".."}.intersection(parts)


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
