"""Profiles of files: run in an executor, once per content."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files as resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from code_chains.executors.base import Executor
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.runner import RUN_DEADLINE
from code_chains.profiles.report import (
    MAX_FILE_CHARS,
    MAX_TOTAL_CHARS,
    MIN_FILE_CHARS,
    notes_of,
    render_profile,
)
from code_chains.state import Execution

_log = logging.getLogger(__name__)
MODULES = tuple(
    (
        "encoding numbers dates columns source frames dialect header layout traps table pandas_lines"
        " delimited sheet markup workbook database documents cells kinds trees archive program"
    ).split()
)
"""Modules of the program, each after those that it imports."""
MAX_FILES = 20
"""Files that are profiled one by one."""
MAX_CACHED = 256
MAX_REPORT_ITEMS = 100_000
"""Items of the profile of a file, which the program may have forged."""
MAX_HASHED_BYTES = 16 << 20
"""Longer files are known by path, size and time instead of their content."""
FILE_SECONDS = 2
"""Processor time for one file: what else the machine does must not cost a profile."""
RUN_SECONDS = 20.0
"""Time for all files together with the start of the sandbox."""


_NOT_LOOKED_AT = "it was not looked at, as this took too long or failed"


class Profiles(dict[str, str]):
    """Texts for a model about files, by their names.

    Attributes:
        notes: For people: rows that are left out, values that are read otherwise, and what is not certain.
    """

    def __init__(self, texts: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(texts)
        self.notes: list[str] = []


class FileProfiler:
    """Profile files with a program of ours that runs where the answer's program will run.

    A profile says how a file is read: format, encoding, layout and the line of code that reads it, which the
    program has run; and what that line returns: columns with types, ranges and missing values, first rows.
    Profiles are computed once per content, and kept in memory. A file without a profile, such as one whose
    profile took too long, is not in the result but in its notes; nothing is raised.

    Args:
        executor: Where the program runs: any executor of Python.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self._profiles: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    def profile(self, files: Mapping[str, Path], *, schema_only: bool = False) -> Profiles:
        """Return texts about files, by their names.

        Args:
            files: Paths by name in the working directory.
            schema_only: Whether to leave out rows and values.
        """
        keys = _keys(files)
        if missing := self._missing(keys):
            with _run_deadline(), _never_failing():
                self._store(keys, self.executor.run(**_program(missing, files)))
        return self._render(keys, files, schema_only=schema_only)

    async def aprofile(self, files: Mapping[str, Path], *, schema_only: bool = False) -> Profiles:
        """Like `profile`, without blocking the event loop."""
        import asyncio

        keys = await asyncio.to_thread(_keys, files)
        if missing := self._missing(keys):
            with _run_deadline(), _never_failing():
                self._store(keys, await self.executor.arun(**_program(missing, files)))
        return self._render(keys, files, schema_only=schema_only)

    def _missing(self, keys: Mapping[str, tuple[Any, ...]]) -> list[str]:
        with self._lock:
            return [name for name, key in keys.items() if key not in self._profiles]

    def _store(self, keys: Mapping[str, tuple[Any, ...]], execution: Execution) -> None:
        """Keep what the program printed of each file, even if it was stopped at one of them."""
        for line in execution.stdout.splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                report = parse(line.encode(errors="replace"), MAX_REPORT_ITEMS)
                key = keys[report["name"]]
                with self._lock:
                    self._profiles[key] = report["profile"]
                    if len(self._profiles) > MAX_CACHED:
                        self._profiles.popitem(last=False)
        if not execution.ok:
            _log.info("Files were not profiled: %s", execution.summary)

    def _render(
        self, keys: Mapping[str, tuple[Any, ...]], files: Mapping[str, Path], *, schema_only: bool
    ) -> Profiles:
        texts = Profiles()
        max_chars = max(MIN_FILE_CHARS, min(MAX_FILE_CHARS, MAX_TOTAL_CHARS // max(len(keys), 1)))
        for name, key in keys.items():
            with self._lock:
                profile = self._profiles.get(key)
                is_known = key in self._profiles
                if is_known:
                    self._profiles.move_to_end(key)
            title = f"- file `{name}` in the working directory, {files[name].stat().st_size:,} bytes"
            if text := render_profile(title, profile, schema_only=schema_only, max_chars=max_chars):
                texts[name] = text
            texts.notes += notes_of(name, profile) if is_known else [f"{name}: {_NOT_LOOKED_AT}"]
        return texts


def _keys(files: Mapping[str, Path]) -> dict[str, tuple[Any, ...]]:
    """Return what identifies the first files: name and content."""
    return {name: (name, *_identity(path)) for name, path in itertools.islice(files.items(), MAX_FILES)}


def _identity(path: Path) -> tuple[Any, ...]:
    status = path.stat()
    if status.st_size > MAX_HASHED_BYTES:
        return str(path.absolute()), status.st_size, status.st_mtime_ns, status.st_ino
    with path.open("rb") as file:
        return (hashlib.file_digest(file, "sha256").hexdigest(),)


@cache
def _sources() -> tuple[str, list[list[str]]]:
    """Return the bootstrap and the modules of the program."""
    folder = resources(__package__)
    modules = []
    for name in MODULES:
        source = folder.joinpath("inside", f"{name}.py").read_text(encoding="utf-8")
        modules.append([name, source])
    bootstrap = folder.joinpath("bootstrap.py").read_text(encoding="utf-8")
    return f"{bootstrap}\n\nstart(request)\n", modules


def _program(names: list[str], files: Mapping[str, Path]) -> dict[str, Any]:
    """Return the arguments of the run that profiles files."""
    code, sources = _sources()
    request = {"sources": sources, "files": names, "seconds": FILE_SECONDS}
    return {"code": code, "files": {name: files[name] for name in names}, "variables": {"request": request}}


@contextlib.contextmanager
def _run_deadline() -> Iterator[None]:
    """Stop runs within the block soon, and at the deadline of the caller at the latest."""
    token = RUN_DEADLINE.set(min(RUN_DEADLINE.get(), time.monotonic() + RUN_SECONDS))
    try:
        yield
    finally:
        RUN_DEADLINE.reset(token)


@contextlib.contextmanager
def _never_failing() -> Iterator[None]:
    """Log what an executor raises: a question is answered without a profile as well."""
    try:
        yield
    except Exception as error:
        _log.info("Files were not profiled: %s", error)
