"""Inputs of a program, validated before a model is paid: its code, files by path, as bytes or open, and kinds of tables.

Invariant: text is no path. The JSON of a client holds text and no `pathlib.Path`, so that it can never name a file of this
machine, also where a chain is a route of a web service.
"""

from __future__ import annotations

import glob
import itertools
import os
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from code_chains.errors import InputError, brief
from code_chains.temporary import process_folder

_MAX_SHOWN_CHARS = 100
MAX_FILES = 1000
"""Files of a folder that can be passed."""
MAX_CODE_CHARS = 200_000
"""Maximum length of a program, in characters. Its checks take a second."""
VARIABLES_REMEDY = 'variables must be a mapping, e.g. {"n": 3}.'
_TABLES = {
    ("numpy", "ndarray"): "numpy",
    ("pandas", "DataFrame"): "pandas",
    ("pandas", "Series"): "pandas_series",
    ("polars", "DataFrame"): "polars",
    ("polars", "Series"): "polars_series",
    ("pyarrow", "Table"): "pyarrow",
}
"""Arrays, frames and series by library and class."""


def check_code(code: object) -> str:
    """Return validated source code.

    Raises:
        InputError: It is not text, or longer than 200,000 characters, which take seconds to check.
    """
    if not isinstance(code, str):
        raise InputError(f"Code must be text, not {type(code).__name__}.")
    if len(code) > MAX_CODE_CHARS:
        limit = f"The program has {len(code):,} characters; {MAX_CODE_CHARS:,} are allowed."
        raise InputError(f"{limit} Pass data as files or variables.")
    return code


@contextmanager
def files_on_disk(files: Mapping[str, Any] | Sequence[Any] | None) -> Iterator[dict[str, Path]]:
    """Yield checked files, with those that were given as bytes or open files in a folder that is removed at the end.

    Args:
        files: A `pathlib.Path`, bytes or an open binary file by its name in the working directory; or a list of paths and
            of open files that have a name, as those of Streamlit do. A path may be a folder, for all files in it, and in a
            list a pattern such as `data/*.csv`.

    Raises:
        InputError: See `check_files`; or an open file cannot be read from its start.
    """
    named = pairs_of_files(files)
    if all(isinstance(value, os.PathLike) for _, value in named):
        yield check_files(files)
        return
    with tempfile.TemporaryDirectory(prefix="files-", dir=process_folder()) as folder:
        paths: dict[str, Any] = {}
        for name, value in named:
            if name in paths:
                raise InputError("Two files have the same name.")
            paths[name] = _on_disk(value, Path(folder, str(len(paths))))
        yield check_files(paths)


def pairs_of_files(files: Any) -> list[tuple[Any, Any]]:
    """Return pairs of name and content; the files of a list are named as they are in their folders.

    Raises:
        InputError: It is neither a mapping nor a list of files with names.
    """
    pairs: Iterable[list[tuple[Any, Any]]]
    if isinstance(files or {}, Mapping):
        pairs = itertools.starmap(_expand, (files or {}).items())
    elif isinstance(files, list | tuple):
        pairs = map(_expand_listed, files)
    else:
        raise InputError(
            'files must be a mapping, e.g. {"sales.csv": Path("data/sales.csv")}, or a list of paths.'
        )
    return list(itertools.chain.from_iterable(pairs))


def _check_path(value: object) -> os.PathLike[str]:
    if isinstance(value, str):
        raise InputError(
            f"The file {value[:_MAX_SHOWN_CHARS]!r} is given as text. Pass pathlib.Path(…) for a path, or bytes for content:"
            " text may come from a client, which must not read files of this machine."
        )
    if not isinstance(value, os.PathLike):
        raise InputError(
            f"A file is given by its pathlib.Path, its bytes or as an open binary file, not by {type(value).__name__}."
        )
    return value


def _expand(name: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return what a name stands for: a file, or the files of a folder."""
    if not isinstance(value, os.PathLike) or not os.path.isdir(value):
        return [(name, value)]
    files = [(f"{name}/{inner}", path) for inner, path in walk_folder(Path(value))]
    if not files:
        raise InputError(f"The folder {os.fspath(value)!r} has no files; hidden ones and links are left out.")
    return files


def _expand_listed(value: Any) -> list[tuple[Any, Any]]:
    """Return what an entry of a list stands for: an open file, or all that a path or a pattern means."""
    is_open = hasattr(value, "read") and not isinstance(value, os.PathLike)
    if is_open or isinstance(value, bytes | bytearray | memoryview):
        return [(_own_name(value), value)]
    path = _check_path(value)
    if not os.path.exists(path) and glob.has_magic(os.fspath(path)):
        return _matches(os.fspath(path))
    name = Path(path).name
    return _expand(Path(path).resolve().name if name in ("", "..") else name, path)


def _own_name(file: Any) -> str:
    """Return the name that an open file has itself, without the suffix of what unpacks it."""
    given = getattr(file, "name", None)
    if not isinstance(given, str):
        kind = type(file).__name__
        raise InputError(f'In a list, {kind} has no name. Pass it by one: files={{"sales.csv": …}}.')
    name = PureWindowsPath(given).name  # Of a browser's path on any system.
    is_unpacked = type(file).__module__ in ("gzip", "bz2", "lzma")
    return PurePosixPath(name).stem if is_unpacked else name


def _matches(pattern: str) -> list[tuple[Any, Any]]:
    """Return the files that match a pattern, named from its first folder with a wildcard on."""
    paths = list(map(Path, filter(os.path.isfile, sorted(glob.glob(pattern, recursive=True)))))
    if len(paths) > MAX_FILES:
        raise InputError(f"{len(paths)} files match {pattern!r}. Pass at most {MAX_FILES}.")
    if not paths:
        raise InputError(f"No file matches {pattern!r}. Patterns are relative to {os.getcwd()}.")
    fixed = itertools.takewhile(lambda part: not glob.has_magic(part), Path(pattern).parts)
    root = Path(*fixed)
    return [(path.relative_to(root).as_posix(), path) for path in paths]


def walk_folder(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder with their names in it; hidden entries and symbolic links are left out.

    Raises:
        InputError: There are too many.
    """
    count = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(entry for entry in folders if not entry.startswith("."))
        for entry in sorted(files):
            path = Path(place, entry)
            if entry.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > MAX_FILES:
                raise InputError(f"The folder {str(folder)!r} has more than {MAX_FILES} files. Pass fewer.")
            yield path.relative_to(folder).as_posix(), path


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
    checked: dict[str, Path] = {}
    for raw_name, path in pairs_of_files(files):
        name = check_name(raw_name)
        if name in checked:
            raise InputError(f"Two files have the same name, {name!r}. Rename one of them.")
        checked[name] = _check_file(path)
    for name in checked:
        for folder in map(str, PurePosixPath(name).parents):
            if folder in checked:
                raise InputError(f"{folder!r} cannot be a file and the folder of {name!r} at once.")
    return checked


def check_name(name: object) -> str:
    """Return a validated file name, which does not lead out of the working directory.

    Raises:
        InputError: It is invalid.
    """
    text = name if isinstance(name, str) and name.isprintable() and is_text(name) else ""
    # Models write composed letters; macOS has names in decomposed ones.
    text = unicodedata.normalize("NFC", text)
    path = PurePosixPath(text)
    wrong = not text or path.is_absolute() or ".." in path.parts or str(path) == "."
    if wrong or any(len(part.encode()) > 255 for part in path.parts) or len(text) > 1000:
        raise InputError(
            f"A file cannot be called {brief(name)}: give a name relative to the working directory, without '..'."
        )
    return str(path)


def _check_file(value: object) -> Path:
    path = Path(_check_path(value))
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
    return "is not a regular file" if path.exists() else "does not exist"


def table_kind(value: object) -> str | None:
    """Return `numpy`, `pandas`, `polars` or `pyarrow` for their arrays and frames, `pandas_series` or `polars_series`.

    Anything else gives None.
    """
    kind = type(value)
    return _TABLES.get((str(getattr(kind, "__module__", "")).partition(".")[0], kind.__name__))


def is_text(text: str) -> bool:
    """Return whether a string can be encoded: it holds no half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
