"""Reports of what ran in a third-party sandbox, as one line of JSON that its command prints."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import tempfile
from base64 import b64encode

from .wire import Json, outcome_frame

MAX_REPORT_BYTES = 16_384
"""Longer reports are in a file, as a sandbox may cut what a command prints."""


def as_line(report: Json, key: bytes, number: int, folder: str) -> str:
    """Return the report on a request as a signed line; if it is long, one that says which file of a folder has it.

    Invariant: the proof is of the whole content, as a program could put its own beside a secret that it has seen.
    """
    text = json.dumps(report)
    if len(text) > MAX_REPORT_BYTES:
        if report.get("goes_on"):
            raise ValueError("a program that still runs could replace the file of its report")
        try:
            text = _in_file(text, folder)
        except OSError as error:  # A disk that is full must not cost the report.
            known = {
                name: report[name] for name in ("layers", "remains", "changes_startup") if name in report
            }
            text = json.dumps({**known, "broken": f"there was no room for its report ({error.strerror})"})
    return json.dumps({"report": text, "proof": reply_proof(key, number, text)})


def _in_file(text: str, folder: str) -> str:
    """Write a report to a file; return what says where it is.

    Invariant: it has a new name that no program could know, as one may have replaced any folder by a link.
    """
    descriptor, path = tempfile.mkstemp(prefix="code_chains-report-", dir=folder)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    except OSError:
        os.remove(path)
        raise
    data = text.encode()
    return json.dumps({"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()})


def encode_frame(frame: Json) -> str:
    """Return a frame that was read as it was sent, in Base64."""
    views = [(view.get("name"), view.get("media_type"), view["data"]) for view in frame.get("views", ())]
    return b64encode(outcome_frame({"result": None, **frame, "views": views})).decode()


def sign(key: bytes, text: str) -> str:
    """Return the proof that a text is the host's, or ours."""
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def reply_proof(key: bytes, number: int, text: str) -> str:
    """Return the proof that a text is the reply to a request; 0 is the start of a server, or its only request."""
    return sign(key, f"reply {number} {text}")
