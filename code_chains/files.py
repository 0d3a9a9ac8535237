"""Files that are the old one or the new one, and what tells one from another."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import uuid
from pathlib import Path
from typing import IO

__all__ = ["checksum", "keep"]


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep(path: Path, content: Path | bytes) -> None:
    """Write a file so that it is the old one or the new one, whatever happens."""
    beside = path.with_name(f".{uuid.uuid4().hex}.new")
    try:
        with beside.open("xb") as file, _opened(content) as source:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _opened(content: Path | bytes) -> IO[bytes]:
    return io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")
