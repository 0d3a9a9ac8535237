"""Snippet stores on disk: texts, metadata and vectors as rows of one SQLite file, which processes may change at once."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document

from code_chains.errors import StoreError
from code_chains.retrieval.embeddings import Vectors
from code_chains.retrieval.index import SnippetIndex, id_of
from code_chains.retrieval.prose import PROSE
from code_chains.storage.foreign import open_file, parse_json
from code_chains.storage.sqlite import SqliteStore
from code_chains.storage.sqlite_connections import connect
from code_chains.storage.sqlite_file import verify

FORMAT = "code-chains snippets 4"
_FILE, _OLD_FILE = "snippets.sqlite", "snippets.json"
_NOTE = ""
"""The key of the entry that describes the others. Each of those has a vector after its JSON, in which there is no NUL."""
_VECTOR = np.dtype("<f4")
TIMEOUT_S = 60.0
"""How long to wait for another process that saves."""
BATCH_ROWS = 1_000
_REBUILD = (
    "Delete it, and create the index again: `code-chains index PATH`, or SnippetStore.from_folder(…).save(…)."
)
_ENTRIES = "SELECT key, CAST(value AS BLOB) FROM entries ORDER BY id"
_PUT = """
INSERT INTO entries (key, value, size, used) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, size = excluded.size
"""


class Saved(NamedTuple):
    """What is noted in a file.

    Attributes:
        format: The version of the format.
        embedding: The identity of the embeddings.
        revision: How often the file was saved.
    """

    format: str
    embedding: str
    revision: int


def is_saved(folder: Path) -> bool:
    """Return whether a store was saved in a folder, also in an earlier format."""
    return (folder / _FILE).is_file() or _is_old(folder)


def searched_text(document: Document) -> str:
    """Return the text that is embedded for a document."""
    about = str(document.metadata.get("about") or document.page_content)
    if document.metadata.get("kind") == PROSE:
        about = f"{about}. {document.page_content}"
    questions = document.metadata.get("questions")
    return " ".join([about, *map(str, questions)]) if isinstance(questions, list) else about


def read_index(folder: Path, embedding: str) -> tuple[SnippetIndex, int]:
    """Return what was saved in a folder, and its revision. Nothing in the folder is executed.

    Args:
        folder: Where a store was saved.
        embedding: The identity of the embeddings that it must have been made with.

    Raises:
        StoreError: The folder holds no store, or one that is not readable, or one of other embeddings.
    """
    path = _no_link(folder / _FILE)
    if not is_saved(folder):
        raise StoreError(
            f"There are no snippets in {str(folder)!r}. Create an index with `code-chains index PATH`."
        )
    if not path.is_file():
        raise StoreError(f"The snippets in {str(folder)!r} have the format of an earlier version. {_REBUILD}")
    # No other user's folder need be writable; then nobody changes the file while it is read.
    mode = "ro" if os.access(folder, os.W_OK) else "ro&immutable=1"
    try:
        with closing(connect(path.absolute(), mode, TIMEOUT_S)) as connection:
            verify(path, connection)
            entries = dict(connection.execute(_ENTRIES))
        saved = _noted(entries.pop(_NOTE))
        if saved.format != FORMAT:
            raise ValueError(f"its format is {saved.format!r}, not {FORMAT!r}")
        documents, vectors = _decoded(entries.values()) if saved.embedding == embedding else ([], None)
    except (sqlite3.Error, OSError, ValueError, LookupError, TypeError) as error:
        raise StoreError(
            f"The snippets in {str(folder)!r} are damaged or in another format: {error}. {_REBUILD}",
            is_retryable=getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY,
        ) from error
    if saved.embedding != embedding:
        raise StoreError(
            f"The snippets in {str(folder)!r} were embedded with {saved.embedding!r}, not with {embedding!r}."
            " Pass the embeddings of the index, or create the index again."
        )
    index = SnippetIndex()
    if vectors is not None:
        index.put(documents, vectors)
    index.changed.clear()
    return index, saved.revision


def write_index(folder: Path, index: SnippetIndex, embedding: str, known: int | None) -> int:
    """Save an index in a folder, in one transaction; return the new revision.

    Args:
        folder: Where to save it.
        index: The index.
        embedding: The identity of its embeddings.
        known: The revision from which on what has changed here is all that need be written; None to replace
            everything.

    Raises:
        OSError: The folder cannot be written.
        StoreError: The file cannot be written, or is another database.
    """
    path = _no_link(folder / _FILE)
    try:
        return _write(path, index, embedding, known)
    except StoreError as error:
        code = getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF
        if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
    path.replace(path.with_suffix(".damaged"))
    return _write(path, index, embedding, None)


def cache_folder(key: str) -> Path:
    """Return the folder in the user's cache for the index with this key, in this format."""
    from platformdirs import user_cache_path

    name = hashlib.sha256(f"{FORMAT}\0{key}".encode("utf-8", "replace")).hexdigest()[:16]
    return user_cache_path("code_chains") / "snippets" / name


def _no_link(path: Path) -> Path:
    """Return the path of the file of an index, unless it leads to another store, which would be emptied."""
    if path.is_symlink():
        raise StoreError(f"{str(path)!r} is a symbolic link, which is not followed. Remove it.")
    return path


def _is_old(folder: Path) -> bool:
    """Return whether a folder holds a store in the format of before, which was JSON."""
    try:
        with open_file(folder / _OLD_FILE) as file:
            return file.read(40).startswith(b'{"format": "code-chains snippets')
    except OSError:
        return False


# -- rows ----------------------------------------------------------------------------------------------------


class _File(SqliteStore):
    """The file, written in one transaction."""

    def exchange(self, index: SnippetIndex, embedding: str, known: int | None) -> int:
        """Write what has changed, or all in the place of what there is."""
        with self._writing() as connection:
            row = connection.execute(
                "SELECT CAST(value AS BLOB) FROM entries WHERE key = ?", (_NOTE,)
            ).fetchone()
            saved = Saved(FORMAT, embedding, 0)
            with suppress(ValueError):
                saved = _noted(row[0]) if row else saved
            ids: Set[str] = index.changed
            # A smaller revision is that of a file which was deleted and created again.
            if known is None or saved.revision < known or saved[:2] != (FORMAT, embedding):
                connection.execute("DELETE FROM entries")
                ids = index.ids
            gone = [(_key(one),) for one in ids - index.ids]
            connection.executemany("DELETE FROM entries WHERE key = ?", gone)
            note = Saved(FORMAT, embedding, saved.revision + 1)
            connection.executemany(_PUT, [_row(_NOTE, json.dumps(note).encode())])
            for rows in _encoded(index, sorted(ids & index.ids)):
                connection.executemany(_PUT, rows)
        return note.revision


def _write(path: Path, index: SnippetIndex, embedding: str, known: int | None) -> int:
    with _File(path, timeout=TIMEOUT_S) as file:
        return file.exchange(index, embedding, known)


def _noted(value: bytes) -> Saved:
    """Return a note.

    Raises:
        ValueError: It is none of ours.
    """
    note = parse_json(value)
    if not isinstance(note, list) or [type(part) for part in note] != [str, str, int]:
        raise ValueError("it does not say what it is")
    return Saved(*note)


def _key(document_id: str) -> str:
    """Return an id as a key, which must be valid Unicode."""
    return json.dumps(document_id)


def _row(key: str, value: bytes) -> tuple[str, bytes, int, float]:
    return key, value, len(value), time.time()


def _encoded(index: SnippetIndex, ids: list[str]) -> Iterator[list[tuple[str, bytes, int, float]]]:
    for start in range(0, len(ids), BATCH_ROWS):
        batch = ids[start : start + BATCH_ROWS]
        vectors, rows = index.vectors_by_id(batch).astype(_VECTOR), []
        for one, vector in zip(filter(None, map(index.get, batch)), vectors, strict=True):
            head = json.dumps([one.id, one.page_content, one.metadata])
            rows.append(_row(_key(id_of(one)), head.encode() + b"\0" + vector.tobytes()))
        yield rows


def _decoded(values: Iterable[bytes]) -> tuple[list[Document], Vectors | None]:
    """Return the documents and vectors of entries; None if there are none.

    Vectors are bare numbers. Somebody who can write to the file can change search results, and nothing else.

    Raises:
        ValueError: An entry is damaged.
    """
    documents, tails = [], []
    for value in values:
        head, _, tail = value.partition(b"\0")
        documents.append(_document(parse_json(head)))
        tails.append(tail)
    if not documents:
        return [], None
    if len(set(map(id_of, documents))) < len(documents):
        raise ValueError("it holds a snippet twice")
    if len(set(map(len, tails))) > 1 or not tails[0]:
        raise ValueError("its vectors differ in length")
    vectors = np.frombuffer(b"".join(tails), _VECTOR).astype(np.float32).reshape(len(documents), -1)
    if not np.isfinite(vectors).all():
        raise ValueError("some of its numbers are not finite")
    return documents, vectors


def _document(entry: Any) -> Document:
    document_id, text, metadata = entry
    if not isinstance(document_id, str) or not isinstance(text, str) or not isinstance(metadata, dict):
        raise ValueError("an entry is no snippet")
    return Document(text, metadata=metadata, id=document_id)
