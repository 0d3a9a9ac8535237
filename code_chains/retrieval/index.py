"""Documents and their vectors in memory, searched with FAISS by inner product."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from langchain_core.documents import Document

from code_chains.errors import InputError
from code_chains.retrieval.embeddings import Vectors
from code_chains.retrieval.identifiers import NameIndex
from code_chains.retrieval.loaders import digest

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata that a snippet must have, or a predicate. A collection matches any of its values; metadata that is a list matches
where any of its elements does."""


class SnippetIndex:
    """Documents with an id, a number and a vector each, searchable by inner product, always exactly. Not thread-safe.

    The id is the caller's; the number is the document's id within FAISS. Every method keeps these invariants:

    - `documents`, `names`, `_numbers` and the FAISS index describe the same documents.
    - A number is never assigned twice.
    - `content_checksum` is the XOR of the documents' checksums, so that it does not depend on the order of changes.
    - The FAISS index is None until the first document determines the number of dimensions.

    Attributes:
        documents: The documents by number.
        names: Their numbers by the names that they have.
        changed: The ids of documents that were added, replaced or deleted; who saves them empties it.
        content_checksum: The checksum of all documents, whatever their order.
    """

    def __init__(self) -> None:
        self.documents: dict[int, Document] = {}
        self.changed: set[str] = set()
        self.content_checksum: int = 0
        self._next_number = 0
        self._numbers: dict[str, int] = {}
        self.names = NameIndex()
        self._faiss: Any = None

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def ids(self) -> Set[str]:
        """The ids of the documents."""
        return self._numbers.keys()

    def get(self, document_id: str) -> Document | None:
        """Return the document with this id, if there is one."""
        number = self._numbers.get(document_id)
        return None if number is None else self.documents[number]

    def put(self, documents: Sequence[Document], vectors: Vectors) -> None:
        """Add documents, which must have distinct ids; they replace documents with the same ids.

        Raises:
            InputError: The vectors have another length than those of the index. Nothing has changed then.
        """
        if self._faiss is None:
            self._faiss = _empty(vectors.shape[1])
        if vectors.shape[1] != self._faiss.d:
            raise InputError(
                f"These vectors have {vectors.shape[1]} dimensions; those of the store have {self._faiss.d}."
                " Use the embeddings that the store was made with."
            )
        self.delete(map(id_of, documents))
        numbers = range(self._next_number, self._next_number + len(documents))
        self._next_number += len(documents)
        self._faiss.add_with_ids(vectors, np.array(numbers, np.int64))
        for number, document in zip(numbers, documents, strict=True):
            self.documents[number] = document
            self._numbers[str(document.id)] = number
            self.names.add(number, document)
            self.content_checksum ^= _checksum(document)
            self.changed.add(str(document.id))

    def delete(self, ids: Iterable[str]) -> None:
        """Delete the documents with these ids; unknown ids are ignored."""
        existing = [document_id for document_id in dict.fromkeys(ids) if document_id in self._numbers]
        numbers = [self._numbers.pop(document_id) for document_id in existing]
        for number in numbers:
            document = self.documents.pop(number)
            self.names.discard(number, document)
            self.content_checksum ^= _checksum(document)
        self.changed.update(existing)
        if numbers:
            self._faiss.remove_ids(np.array(numbers, np.int64))

    def clear(self) -> None:
        """Delete all documents. Vectors added afterwards may have another length."""
        self.changed.update(self._numbers)
        self.documents, self._numbers, self.names = {}, {}, NameIndex()
        self.content_checksum, self._faiss = 0, None

    def vectors(self, numbers: Iterable[int]) -> Vectors:
        """Return the vectors of these documents, as rows in their order."""
        rows: Vectors = self._faiss.reconstruct_batch(np.array(list(numbers), np.int64))
        return rows

    def vectors_by_id(self, ids: Iterable[str]) -> Vectors:
        """Return the vectors of the documents with these ids, as rows in their order."""
        return self.vectors(self._numbers[document_id] for document_id in ids)

    def search(
        self, vector: Vectors, k: int, allowed: Filter | None, among: Iterable[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return the numbers and scores of the `k` nearest documents that pass the filter, best first.

        Args:
            vector: The vector of the query.
            k: Number of documents at most.
            allowed: The filter.
            among: The numbers of the documents to search; None for all.

        Raises:
            InputError: The vector has another length than those of the index.
        """
        if self._faiss is None or k < 1:
            return []
        if vector.shape != (self._faiss.d,):
            raise InputError(
                f"The vector has {vector.size} dimensions; those of the store have {self._faiss.d}."
            )
        parameters = None
        if allowed is not None or among is not None:
            numbers = sorted(self.documents if among is None else among)
            passing = [one for one in numbers if allowed is None or _passes(self.documents[one], allowed)]
            if not passing:
                return []
            faiss = _faiss()
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBatch(np.array(passing, np.int64)))
        scores, matches = self._faiss.search(vector[None], min(k, len(self)), params=parameters)
        # FAISS pads a row that has fewer than k matches with -1.
        pairs = zip(matches[0].tolist(), scores[0].tolist(), strict=True)
        return [(number, score) for number, score in pairs if number >= 0]

    def search_names(
        self, identifiers: Sequence[str], vector: Vectors, k: int, allowed: Filter | None
    ) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        """Return the documents that have one of these names, and others that have one in their signature, nearest first."""
        named, worded = self.names.find(identifiers)
        return self.search(vector, k, allowed, named), self.search(vector, k, allowed, worded)


def id_of(document: Document) -> str:
    """Return the id of a document that has one."""
    return str(document.id)


def select_diverse(scores: Vectors, vectors: Vectors, k: int, weight: float) -> list[int]:
    """Return positions of vectors with high scores that differ from each other.

    This is maximal marginal relevance (Carbonell and Goldstein 1998). LangChain's function derives the scores
    from whole vectors, but an offline query compares only one part of them.

    Args:
        scores: How near each vector is to the query.
        vectors: The vectors, as rows.
        k: Number of positions at most.
        weight: From 0, the most diverse, to 1, the nearest.
    """
    chosen: list[int] = []
    similarity = np.zeros(len(scores), np.float32)  # Of each vector to the most similar chosen vector.
    while len(chosen) < min(k, len(scores)):
        gain = weight * scores - (1 - weight) * similarity
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
        similarity = np.maximum(similarity, vectors @ vectors[chosen[-1]])
    return chosen


def _checksum(document: Document) -> int:
    return int(hashlib.sha256(f"{document.id} {digest(document)}".encode("utf-8", "replace")).hexdigest(), 16)


def _passes(document: Document, allowed: Filter) -> bool:
    if callable(allowed):
        return bool(allowed(document))
    return all(_matches(document.metadata.get(key), expected) for key, expected in allowed.items())


def _matches(value: object, expected: object) -> bool:
    """Return whether a value, or any element of a list, equals the expected one or any element of it."""
    if value == expected or (
        isinstance(value, list) and any(_matches(element, expected) for element in value)
    ):
        return True
    if not isinstance(expected, Collection) or isinstance(expected, str | Mapping):
        return False
    return value in (expected if isinstance(value, Hashable) else list(expected))


# -- FAISS ---------------------------------------------------------------------------------------------------


def _faiss() -> Any:
    """Import FAISS on use; its stubs are incomplete."""
    # Idle threads of GNU OpenMP spin by default, after each search; the variable is read at the first import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return importlib.import_module("faiss")


def _empty(dimensions: int) -> Any:
    """Make an exact index, in which vectors are looked up and deleted by number."""
    faiss = _faiss()
    return faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions))
