"""A folder for the files and figures of answers, in which nothing is ever replaced."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from code_chains.errors import InputError, StoreError
from code_chains.records.filenames import numbered_names, safe_name
from code_chains.state import Artifact
from code_chains.storage.foreign import has_content

DEFAULT_FOLDER = "answer-files"


class ArtifactFolder:
    """A folder for the files and figures of answers, made when there is something to save.

    Files keep the names by which an answer refers to them: where one of them is taken by another file, all files of an
    answer are saved in a new folder inside, `2`, `3` and so on. Where the folder cannot be written they are saved in that
    of the user's data, and else in a temporary one: an answer was paid for.

    Args:
        path: The folder.

    Attributes:
        failure: Why files were last saved elsewhere; empty if they were not.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure = ""

    def check(self) -> None:
        """Make the folder, so that it is known to be writable before a model is paid.

        Raises:
            InputError: It cannot be made or written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"The folder {str(self.path)!r} cannot be made: {error}.") from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise InputError(f"The folder {str(self.path)!r} is not writable. Choose another.")

    def save(self, artifacts: Sequence[Artifact]) -> str:
        """Save the artifacts of an answer, and return a message that says where; empty if there are none.

        Raises:
            StoreError: One can be saved nowhere.
        """
        paths = self.save_all(artifacts)
        if not paths:
            return ""
        pairs = zip(paths, artifacts, strict=True)
        names = [
            path.name if path.name == artifact.name else f"{path.name} ({artifact.name})"
            for path, artifact in pairs
        ]
        return f"{self.failure} Saved in {paths[0].parent}: {', '.join(names)}".lstrip()

    def save_all(self, artifacts: Sequence[Artifact]) -> list[Path]:
        """Save the artifacts of an answer, and return the paths of their files.

        Raises:
            StoreError: One can be saved nowhere.
        """
        if not artifacts:
            return []
        named, self.failure = _with_names(artifacts), ""
        for root in _roots(self.path):
            try:
                return _save_in(root, named)
            except (InputError, OSError) as error:
                self.failure = self.failure or str(error)
        raise StoreError(
            f"{self.failure} Nor can the user's data or temporary folder be written. Free space."
        )


def _roots(path: Path) -> Iterator[Path]:
    from platformdirs import user_data_path

    yield path
    yield user_data_path("code_chains") / DEFAULT_FOLDER
    with suppress(OSError):
        yield Path(tempfile.mkdtemp(prefix="code_chains-"))


def _save_in(root: Path, named: dict[str, Artifact]) -> list[Path]:
    folder = next(folder for folder in _folders(root) if _is_free(folder, named))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder {str(folder)!r} cannot be made: {error}.") from error
    for name, artifact in named.items():
        if not os.path.lexists(folder / name):
            artifact.save(folder / name)
    return [folder / name for name in named]


def _folders(root: Path) -> Iterator[Path]:
    yield root
    yield from (root / str(number) for number in itertools.count(2))


def _with_names(artifacts: Sequence[Artifact]) -> dict[str, Artifact]:
    """Return artifacts by unique names of files."""
    named: dict[str, Artifact] = {}
    for artifact in artifacts:
        name = next(name for name in numbered_names(safe_name(artifact.name)) if name not in named)
        named[name] = artifact
    return named


def _is_free(folder: Path, named: dict[str, Artifact]) -> bool:
    """Return whether each name is free in a folder, or has the same content already."""
    if os.path.lexists(folder) and not folder.is_dir():
        return False
    return all(_is_same(folder / name, artifact.data) for name, artifact in named.items())


def _is_same(path: Path, data: bytes) -> bool:
    return not os.path.lexists(path) or has_content(path, data)
