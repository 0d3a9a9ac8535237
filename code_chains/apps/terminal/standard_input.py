"""Standard input of a command that is no conversation: data for programs, or the question itself."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import sys
from contextlib import suppress

from code_chains.apps.terminal.cli_options import echo
from code_chains.errors import InputError

_NOTICE_AFTER_S = 1.0
_MAX_BYTES = 256 << 20
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": ".png",
    b"\xff\xd8\xff": ".jpg",
    b"GIF8": ".gif",
    b"%PDF-": ".pdf",
    b"PAR1": ".parquet",
    b"SQLite format 3\0": ".sqlite",
    b"\x1f\x8b": ".gz",
}
_ZIP, _ZIP_KINDS = b"PK\x03\x04", {b"xl/": ".xlsx", b"word/": ".docx"}
_SEPARATORS = {",": ".csv", ";": ".csv", "\t": ".tsv"}


def read_data() -> bytes:
    """Return what a pipe or a redirected file holds; empty at a terminal and without either."""
    return b"" if _is_terminal_or_nothing() else _read()


def is_redirected() -> bool:
    """Return whether standard input is a pipe or a regular file, from which somebody may expect data."""
    with suppress(AttributeError, OSError, ValueError):
        mode = os.fstat(sys.stdin.fileno()).st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
    return False


def read_question() -> str:
    """Return standard input as a question.

    Raises:
        InputError: It is not text.
    """
    try:
        return _read().decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise InputError(
            'Standard input is not UTF-8 text, so it cannot be a question. To pass data, ask: cat data | code-chains ask "…"'
        ) from None


def _is_terminal_or_nothing() -> bool:
    """Return whether standard input is no pipe and no regular file, e.g. a terminal, /dev/null or closed."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except io.UnsupportedOperation:  # Replaced by an object in memory.
        return False
    except (AttributeError, OSError, ValueError):  # Closed.
        return True
    return not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode))


def _read() -> bytes:
    if sys.stdin is None:
        return b""
    _announce_waiting()
    data = sys.stdin.buffer.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise InputError(f"Standard input is longer than {_MAX_BYTES >> 20} MB. Pass a file with -f.")
    return data


def _announce_waiting() -> None:
    """Say what the command waits for, if nothing has arrived for a moment."""
    try:
        descriptor = sys.stdin.fileno()
        is_waiting = not select.select([descriptor], [], [], _NOTICE_AFTER_S)[0]
    except (OSError, ValueError):  # Nothing that can be waited for.
        return
    if is_waiting:
        echo("Reading standard input. Ctrl-D ends it; without data, add </dev/null.", err=True)


def name_of_data(data: bytes) -> str:
    """Return a file name for data that came without one, with the suffix of what it seems to be."""
    return f"stdin{_suffix(data)}"


def _suffix(data: bytes) -> str:
    for signature, suffix in _SIGNATURES.items():
        if data.startswith(signature):
            return suffix
    if data.startswith(_ZIP):
        return next((suffix for part, suffix in _ZIP_KINDS.items() if part in data), ".zip")
    if b"\0" in data[:10_000] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ".bin"
    return _suffix_of_text(data)


def _suffix_of_text(data: bytes) -> str:
    first, _, rest = data.strip().partition(b"\n")
    if first.startswith((b"{", b"[")):
        return ".json" if _is_json(data) else ".jsonl" if _is_json(first) and rest else ".txt"
    lines = data.decode("utf-8", "replace").splitlines()[:20]
    for separator, suffix in _SEPARATORS.items():
        counts = {line.count(separator) for line in lines if line.strip()}
        if len(lines) > 1 and counts and min(counts) > 0 and len(counts) <= 2:
            return suffix
    return ".txt"


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
