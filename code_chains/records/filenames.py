"""Names for files that are derived from untrusted text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import PurePosixPath

from code_chains.errors import InputError


def safe_name(name: str) -> str:
    """Return a name for the file of an artifact that stays within its folder, and is not hidden.

    Raises:
        InputError: The name points outside the folder.

    Example:
        >>> safe_name("plots/of 2024.png")
        'plots-of-2024.png'
        >>> safe_name("../plot.png")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        code_chains.errors.InputError: A file cannot be called '../plot.png': ...
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.name or not name.isprintable():
        raise InputError(
            f"A file cannot be called {name!r}: it must stay within its folder and be printable."
        )
    return file_stem(name)


def file_stem(text: str) -> str:
    """Return any text as a file name of letters, digits, underscores, dots and dashes."""
    path = PurePosixPath(re.sub(r"[^\w.-]+", "-", text).strip(".-") or "file")
    return f"{_truncate(path.stem, 150)}{_truncate(path.suffix, 50)}"


def _truncate(text: str, size: int) -> str:
    return text.encode()[:size].decode("utf-8", "ignore")


def numbered_names(name: str) -> Iterator[str]:
    """Yield a name and alternatives: `plot.png`, `plot-2.png`, `plot-3.png` and so on."""
    path = PurePosixPath(name)
    yield name
    yield from (f"{path.stem}-{number}{path.suffix}" for number in count(2))
