"""Reports of what ran in a third-party sandbox, as one line of JSON that its command prints."""

from __future__ import annotations

import hmac
import json
import os
import tempfile
from base64 import b64encode
from typing import Any

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


def views_of(frame: Json) -> list[tuple[Any, Any, str]]:
    """Return the figures and displays of a frame in Base64."""
    views = frame.get("views")
    return [
        (view.get("name"), view.get("media_type"), b64encode(view["data"]).decode())
        for view in (views if isinstance(views, list) else ())
        if isinstance(view, dict) and isinstance(view.get("data"), bytes)
    ]


def sign(key: bytes, text: str) -> str:
    """Return the proof that a text is the host's, or ours."""
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def token_of(key: bytes, number: int) -> str:
    """Return the token of the reply to a request, which no program can know."""
    return sign(key, f"reply {number}")
