"""Snippet indexes on disk: documents as JSON and vectors as bare float32, with locks and a merge of concurrent changes."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document

from code_chains.errors import StoreError
from code_chains.retrieval.embeddings import Vectors
from code_chains.retrieval.index import MAX_NUMBER, SnippetIndex
from code_chains.storage.files import atomic_write, open_regular, sha256_file

__all__ = [
    "FORMAT",
    "cache_folder",
    "exclusive_lock",
    "is_saved",
    "merge",
    "read_index",
    "read_lock",
    "saved_version",
    "searched_text",
    "write_index",
]

_log = logging.getLogger(__name__)

FORMAT = "code-chains snippets 2"
_DOCUMENTS = "snippets.json"
_VECTOR_SUFFIX = ".f32"
_FLOAT_BYTES = 4
MAX_DIMENSIONS = 100_000
LOCK_TIMEOUT_S = 60.0
"""How long to wait for another process that saves or loads."""

Embed = Callable[[list[str]], Vectors]


def is_saved(folder: Path) -> bool:
    """Return whether an index was saved in a folder."""
    return (folder / _DOCUMENTS).is_file()


def searched_text(document: Document) -> str:
    """Return the text that is embedded for a document."""
    about = str(document.metadata.get("about") or document.page_content)
    questions = document.metadata.get("questions")
    return " ".join([about, *map(str, questions)]) if isinstance(questions, list) else about


def read_index(folder: Path, index: SnippetIndex, embedding: str, embed: Embed) -> str:
    """Fill an empty index with what was saved in a folder. Nothing in the folder is executed.

    Args:
        folder: Where an index was saved.
        index: The empty index.
        embedding: The identity of the embeddings that the index must have been made with.
        embed: Makes vectors from texts where the saved vectors are unusable.

    Returns:
        The version of the folder; see `saved_version`.

    Raises:
        StoreError: The folder holds no readable index, or an index of other embeddings.
    """
    try:
        data = (folder / _DOCUMENTS).read_bytes()
        note = json.loads(data.decode("utf-8", "surrogatepass"))
        if note["format"] != FORMAT:
            raise ValueError(f"its format is {note['format']!r}, not {FORMAT!r}")
        saved_embedding = note["embedding"]
        documents = _documents_of(note)
        next_number = max([int(note["next"]), *(number + 1 for number in documents)])
        if next_number > MAX_NUMBER:
            raise ValueError("its next number is out of range")
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise StoreError(
            f"The snippets in {str(folder)!r} are damaged or in another format: {error}. Create the index again."
        ) from error
    if saved_embedding != embedding:
        raise StoreError(
            f"The snippets in {str(folder)!r} were embedded with {saved_embedding!r}, not with {embedding!r}."
            " Pass the embeddings of the index, or create the index again."
        )
    vectors, centroids = _vectors_of(folder, note, documents, embed)
    index.restore(documents, next_number, vectors, centroids)
    return _version(data)


def write_index(folder: Path, index: SnippetIndex, embedding: str) -> str:
    """Save an index in a folder; a crash leaves the previous index or the new one. Return the version of the folder.

    The JSON names the file of its vectors, which is new each time. So the one atomic replacement of the JSON
    commits both.

    Raises:
        OSError: A file cannot be written.
        RuntimeError: FAISS cannot return the vectors.
    """
    snippets = [
        {"number": number, "id": document.id, "text": document.page_content, "metadata": document.metadata}
        for number, document in index.documents.items()
    ]
    vectors = _write_vectors(folder, index)
    note = {
        "format": FORMAT,
        "embedding": embedding,
        **vectors,
        "next": index.next_number,
        "snippets": snippets,
    }
    data = json.dumps(note, ensure_ascii=False).encode("utf-8", "surrogatepass")
    atomic_write(folder / _DOCUMENTS, data, mode=0o600)
    for old in folder.glob(f"vectors-*{_VECTOR_SUFFIX}"):
        if old.name != vectors["vectors"]:
            old.unlink(missing_ok=True)
    return _version(data)


def saved_version(folder: Path) -> str:
    """Return the version of what is saved in a folder: the checksum of its JSON.

    Raises:
        OSError: Nothing is saved there, or it cannot be read.
    """
    return _version((folder / _DOCUMENTS).read_bytes())


def merge(index: SnippetIndex, base: Mapping[str, int], saved: SnippetIndex) -> None:
    """Apply to an index what another process has changed in its folder (a three-way merge).

    Invariant: a snippet that this process has changed since `base` stays as it is here, also where the other
        process has
    changed it, too. All other snippets become what is saved: added, replaced or deleted.

    Args:
        index: The index of this process.
        base: The checksums by id when this process last saved or loaded the folder.
        saved: What the folder holds now.
    """
    ours, theirs = index.checksums, saved.checksums
    changed = {
        document_id
        for document_id in base.keys() | theirs.keys()
        if theirs.get(document_id) != base.get(document_id) == ours.get(document_id)
    }
    index.delete(changed - theirs.keys())
    updated = [document for document in saved.documents.values() if document.id in changed]
    if updated:
        index.put(updated, saved.vectors_by_id(str(document.id) for document in updated))


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _documents_of(note: Mapping[str, Any]) -> dict[int, Document]:
    """Return the snippets in a note by their numbers.

    Raises:
        ValueError: A number or id occurs twice, or a number is out of range.
    """
    documents = {
        int(entry["number"]): Document(
            page_content=entry["text"], metadata=dict(entry["metadata"]), id=entry["id"]
        )
        for entry in note["snippets"]
    }
    if not len(note["snippets"]) == len(documents) == len({document.id for document in documents.values()}):
        raise ValueError("it holds a snippet twice")
    if any(not 0 <= number < MAX_NUMBER for number in documents):
        raise ValueError("the number of a snippet is out of range")
    return documents


# -- vectors -------------------------------------------------------------------------------------------------


def _vectors_of(
    folder: Path, note: Mapping[str, Any], documents: Mapping[int, Document], embed: Embed
) -> tuple[Vectors, Vectors | None]:
    """Return the saved vectors and centroids; where they are unusable, embed the texts again."""
    if not documents:
        return np.empty((0, 0), np.float32), None
    try:
        return _read_vectors(folder, note, len(documents))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        _log.warning(
            "The vectors in %r cannot be used: %s. The snippets are embedded again.", str(folder), error
        )
    return embed([searched_text(document) for document in documents.values()]), None


def _read_vectors(folder: Path, note: Mapping[str, Any], count: int) -> tuple[Vectors, Vectors | None]:
    """Read the vectors of a note, and the centroids of their cells where there are any.

    They are bare numbers without structure. An index file of FAISS is different: its reader also opens and
    maps other files that the index names. Somebody who can write to the folder can change search results, and
    nothing else.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file does not belong to the note.
    """
    size, cells = int(note["size"]), int(note["cells"])
    if not 0 < size <= MAX_DIMENSIONS or not 0 <= cells <= count:
        raise ValueError("their shape is impossible")
    expected_bytes = _FLOAT_BYTES * size * (cells + count)
    with open_regular(folder / Path(note["vectors"]).name) as file:
        # Checked before reading: the note decides how much memory the read allocates.
        if os.fstat(file.fileno()).st_size != expected_bytes:
            raise ValueError("their number differs from that of the texts")
        data = file.read(expected_bytes)
    if hashlib.sha256(data).hexdigest() != note["sha256"]:
        raise ValueError("their checksum differs from the recorded one")
    rows = np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, size)
    if not np.isfinite(rows).all():
        raise ValueError("some are not finite")
    return rows[cells:], rows[:cells] if cells else None


def _write_vectors(folder: Path, index: SnippetIndex) -> dict[str, Any]:
    """Write the centroids, then the vectors, as rows of float32, and return what the note records of them."""
    if not index.documents:
        return {"vectors": None}
    vectors, cells = index.vectors(), index.cells
    rows = np.concatenate([index.centroids(), vectors]) if cells else vectors
    path = folder / f"vectors-{uuid.uuid4().hex[:12]}{_VECTOR_SUFFIX}"
    atomic_write(path, rows.astype("<f4").tobytes(), mode=0o600)
    return {"vectors": path.name, "sha256": sha256_file(path), "size": index.dimensions, "cells": cells}


# -- locks and locations -------------------------------------------------------------------------------------


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from saving into a folder or loading from it."""
    from filelock import FileLock

    with FileLock(folder / "snippets.lock", timeout=LOCK_TIMEOUT_S):
        yield


@contextmanager
def read_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from saving into a folder (best effort: a folder that is not writable cannot be locked)."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(exclusive_lock(folder))
        yield


def cache_folder(key: str) -> Path:
    """Return the folder in the user's cache for the index with this key."""
    from platformdirs import user_cache_path

    return (
        user_cache_path("code_chains")
        / "snippets"
        / hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]
    )
