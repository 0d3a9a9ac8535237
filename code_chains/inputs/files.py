"""Files of a question: by path, as bytes or open, validated before a model is paid."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from code_chains.errors import InputError
from code_chains.inputs.text import is_text

__all__ = ["check_files", "check_name", "files_on_disk"]


@contextmanager
def files_on_disk(files: Mapping[str, Any] | Sequence[Any] | None) -> Iterator[dict[str, Path]]:
    """Yield checked files, with those that were given as bytes or open files in a folder that is removed at the end.

    Args:
        files: Paths, bytes or open binary files by their name in the working directory; or a list of paths.

    Raises:
        InputError: See `check_files`; or an open file cannot be read from its start.
    """
    named = _by_name(files)
    if all(isinstance(value, str | os.PathLike) for _, value in named):
        yield check_files(files)
        return
    with tempfile.TemporaryDirectory(prefix="code_chains-files-") as folder:
        paths = [
            (name, _on_disk(value, Path(folder, str(index)))) for index, (name, value) in enumerate(named)
        ]
        if len(dict(paths)) < len(paths):
            raise InputError("Two files have the same name.")
        yield check_files(dict(paths))


def _by_name(files: Any) -> list[tuple[Any, Any]]:
    """Return pairs of name and content; the paths of a list are named as they are in their folders."""
    if isinstance(files or {}, Mapping):
        return list((files or {}).items())
    if isinstance(files, list | tuple) and all(isinstance(path, str | os.PathLike) for path in files):
        return [(Path(path).name, path) for path in files]
    raise InputError('files must be a mapping, e.g. {"sales.csv": "data/sales.csv"}, or a list of paths.')


def _on_disk(value: Any, path: Path) -> Any:
    """Write bytes or an open file to a path, and return it; a path stays as it is."""
    if isinstance(value, bytes | bytearray | memoryview):
        path.write_bytes(value)
        return path
    if not hasattr(value, "read"):
        return value
    try:
        value.seek(0)  # It may have been read before, by a chain or by its owner.
        content = value.read()
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(f"An open file cannot be read from its start ({error}). Pass its bytes.") from error
    if not isinstance(content, bytes):
        raise InputError('An open file must be binary. Open it with "rb", or pass its path.')
    path.write_bytes(content)
    return path


def check_files(files: Mapping[str, Any] | Sequence[Any] | None) -> dict[str, Path]:
    """Return files by their name in the working directory, each existing and readable.

    Raises:
        InputError: A name leaves the working directory, or a file is missing, unreadable or no regular file.
    """
    named = _by_name(files)
    checked = {check_name(name): _check_file(path) for name, path in named}
    if len(checked) < len(named):
        raise InputError("Two files have the same name.")
    for name in checked:
        if inside := [other for other in checked if other.startswith(f"{name}/")]:
            raise InputError(f"{name!r} cannot be a file and the folder of {inside[0]!r} at once.")
    return checked


def check_name(name: object) -> str:
    """Return a validated file name, which does not lead out of the working directory.

    Raises:
        InputError: It is invalid.
    """
    text = name if isinstance(name, str) and name.isprintable() and is_text(name) else ""
    path = PurePosixPath(text)
    wrong = not text or path.is_absolute() or ".." in path.parts or str(path) == "."
    if wrong or any(len(part.encode()) > 255 for part in path.parts) or len(text) > 1000:
        raise InputError(
            f"A file cannot be called {name!r}: give a name relative to the working directory, without '..'."
        )
    return str(path)


def _check_file(value: object) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise InputError(
            f"A file is given by its path, its bytes or as an open binary file, not by {type(value).__name__}."
        )
    path = Path(value)
    try:
        if not path.is_file():
            raise InputError(
                f"The file {str(path)!r} {_why_no_file(path)}. Paths are relative to {os.getcwd()}."
            )
        with path.open("rb"):
            return path
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"The file {str(path)!r} cannot be read: {error}.") from error


def _why_no_file(path: Path) -> str:
    if path.is_dir():
        return "is a directory"
    return "is no regular file" if path.exists() else "does not exist"
