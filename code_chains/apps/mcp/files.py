"""Files for programs of a Model Context Protocol server: those that clients pass, and those of the server's owner."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import shutil
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.inputs import MAX_FILES, check_files, check_name, walk_folder

MAX_INPUT_BYTES = 64 << 20
"""Maximum size of the files of a call, and of the files of all sessions."""
MAX_SHARED_BYTES = 256 << 20
_MAX_LISTED = 20
_DATA_URI = re.compile(r"data:[^,]{0,200};base64,", re.IGNORECASE)


class SharedFiles:
    """Files and folders of this machine that all programs may read: copies, made for each run.

    Folders are listed anew for each call. Hidden entries and symbolic links in them are left out.

    Args:
        files: Paths of files, known to programs by their names.
        folders: Paths of folders, whose files are known as `folder/file`.

    Raises:
        ConfigurationError: A folder does not exist, or two have the same name.
        InputError: A file does not exist, or two have the same name.
    """

    def __init__(self, files: Sequence[str] = (), folders: Sequence[str] = ()) -> None:
        self._files = check_files([Path(file) for file in files])
        self._folders = {Path(folder).resolve().name: Path(folder).resolve() for folder in folders}
        if missing := [folder for folder in folders if not Path(folder).is_dir()]:
            raise ConfigurationError("folder", missing[0], "an existing folder")
        if len(self._folders) < len(folders) or set(self._folders) & set(self._files):
            raise ConfigurationError("folder", list(folders), "folders and files with different names")
        self.list()

    def list(self) -> dict[str, Path]:
        """Return the paths by the names that programs see.

        Raises:
            InputError: There are too many files, or they are too large.
        """
        paths = dict(self._files)
        for name, folder in self._folders.items():
            paths |= {f"{name}/{inner}": path for inner, path in walk_folder(folder)}
        size = sum(path.stat().st_size for path in paths.values())
        if len(paths) > MAX_FILES or size > MAX_SHARED_BYTES:
            raise InputError(
                f"{len(paths)} files with {size / 1e6:,.0f} MB are too many to share: at most {MAX_FILES} files with"
                f" {MAX_SHARED_BYTES >> 20} MB. Share a folder with fewer."
            )
        return paths

    def describe(self) -> str:
        """Return a sentence for models that names the files; empty if there are none."""
        names = list(self.list())
        if not names and not self._folders:
            return ""
        more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        folders = "".join(f", whatever else is in {name}/" for name in self._folders)
        return f"Programs can read {', '.join(names[:_MAX_LISTED])}{more}{folders}: copies in their working directory."


class InputFiles:
    """Files that clients pass. Those of a session are kept as long as it is, as rebuilding its state needs them.

    Args:
        folder: Where they are stored.
        shared: Files of the owner, which every call gets.
    """

    def __init__(self, folder: Path, shared: SharedFiles) -> None:
        self._folder, self._shared = folder, shared
        self._kept: dict[str, list[tuple[Path, int]]] = {}

    @asynccontextmanager
    async def write(
        self, files: Mapping[str, str] | None, session_id: str | None
    ) -> AsyncIterator[dict[str, Path]]:
        """Write files, and yield their paths and those of the shared files by name.

        Raises:
            InputError: A name or content is invalid or names a shared file, or the files are too large.
        """
        shared = await asyncio.to_thread(self._shared.list)
        if len(files or {}) > MAX_FILES:
            raise InputError(f"{len(files or {})} files are too many: pass at most {MAX_FILES}.")
        contents = {check_name(name): _encode(name, text) for name, text in (files or {}).items()}
        if taken := set(contents) & set(shared):
            raise InputError(f"There is a file {min(taken)!r} already. Choose another name.")
        size = sum(map(len, contents.values()))
        if size > MAX_INPUT_BYTES:
            raise InputError(
                f"Files of {size:,} bytes are too large: pass at most {MAX_INPUT_BYTES >> 20} MB together."
            )
        if session_id is not None and self._kept_bytes + size > MAX_INPUT_BYTES:
            limit = f"{MAX_INPUT_BYTES >> 20} MB together"
            raise InputError(f"The files of all sessions may have {limit}: pass no files, or no session_id.")
        folder = await asyncio.to_thread(_write, self._folder, contents)
        try:
            yield {**shared, **{name: folder / name for name in contents}}
        finally:
            if session_id is None or not contents:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            else:
                self._kept.setdefault(session_id, []).append((folder, size))

    def forget(self, session_id: str) -> None:
        """Delete the files of a session."""
        for folder, _ in self._kept.pop(session_id, ()):
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _kept_bytes(self) -> int:
        return sum(size for kept in self._kept.values() for _, size in kept)


def _encode(name: str, text: str) -> bytes:
    """Return the content of a file that was passed as text, or as a data URI."""
    try:
        if match := _DATA_URI.match(text):
            return base64.b64decode(text[match.end() :], validate=True)
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The file {name!r} is not valid text (broken UTF-8).") from error
    except binascii.Error as error:
        raise InputError(f"The file {name!r} is not a valid data URI: {error}.") from error


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    target = folder / uuid.uuid4().hex
    target.mkdir()
    for name, content in files.items():
        path = target / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            shutil.rmtree(target, ignore_errors=True)
            raise InputError(f"The file {name!r} cannot be stored beside the others.") from error
    return target
