"""Reports of what ran in a third-party sandbox, as one line of JSON that its command prints."""

from __future__ import annotations

import json
import os
import tempfile

from .wire import Json

MAX_REPORT_BYTES = 16_384
"""Longer reports are in a file, as a sandbox may cut what a command prints."""


def as_line(report: Json, folder: str) -> str:
    """Return a report as a line; if it is long, a line that says which file of a folder has it."""
    text = json.dumps(report)
    if len(text) <= MAX_REPORT_BYTES:
        return text
    # Invariant: a new file under a name that no program could know, as one may have replaced any folder by a link.
    descriptor, path = tempfile.mkstemp(prefix="code_chains-report-", dir=folder)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return json.dumps({"token": report["token"], "path": path})
