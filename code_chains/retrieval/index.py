"""Documents and their vectors in memory, searched with FAISS by inner product."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document

from code_chains.errors import InputError
from code_chains.retrieval.embeddings import Vectors
from code_chains.retrieval.identifiers import NameIndex
from code_chains.retrieval.loaders import digest

__all__ = ["MAX_NUMBER", "Filter", "SnippetIndex", "select_diverse"]

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata that a snippet must have, or a predicate. A collection matches any of its values; metadata that is a list matches
where any of its elements does."""

MAX_NUMBER = 2**62
"""Exclusive upper bound of document numbers; FAISS ids have 63 bits."""
PROBED_FRACTION = 10
"""An approximate search looks into one cell out of this many."""


class SnippetIndex:
    """Documents with an id, a number and a vector each, searchable by inner product. Not thread-safe.

    The id is the caller's; the number is the document's id within FAISS. Every method keeps these invariants:

    - `documents`, `checksums`, `_numbers`, `_names` and the FAISS index describe the same documents.
    - The order of `documents` is the order of the rows of `vectors()`; the file format relies on it.
    - A number is never assigned twice: `next_number` only grows, and is saved with the documents.
    - `content_checksum` is the XOR of all `checksums`, so that it does not depend on the order of changes.
    - The FAISS index is None until the first document determines the number of dimensions.

    Args:
        approximate_from: Number of documents from which the search is approximate.

    Attributes:
        documents: The documents by number.
        checksums: The checksum of each document by id.
        next_number: The number of the next document.
        content_checksum: The checksum of all documents, whatever their order.
    """

    def __init__(self, approximate_from: int) -> None:
        self.documents: dict[int, Document] = {}
        self.checksums: dict[str, int] = {}
        self.next_number: int = 0
        self.content_checksum: int = 0
        self._approximate_from = approximate_from
        self._numbers: dict[str, int] = {}
        self._names = NameIndex()
        self._faiss: Any = None

    def __len__(self) -> int:
        return int(self._faiss.ntotal) if self._faiss is not None else 0

    @property
    def dimensions(self) -> int:
        """Length of the vectors; 0 while there has never been one."""
        return int(self._faiss.d) if self._faiss is not None else 0

    @property
    def cells(self) -> int:
        """Number of cells of an approximate index; 0 for an exact one."""
        return _cell_count(self._faiss)

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
            self._faiss = _flat(vectors[:0])
        if vectors.shape[1] != self._faiss.d:
            raise InputError(
                f"These vectors have {vectors.shape[1]} dimensions; those of the store have {self._faiss.d}."
                " Use the embeddings that the store was made with."
            )
        self._remove(str(document.id) for document in documents)
        self._faiss.add_with_ids(
            vectors, np.arange(self.next_number, self.next_number + len(documents), dtype=np.int64)
        )
        for document in documents:
            self._register(self.next_number, document)
            self.next_number += 1
        self._fit()

    def delete(self, ids: Iterable[str]) -> None:
        """Delete the documents with these ids; unknown ids are ignored."""
        if self._remove(ids):
            self._fit()

    def clear(self) -> None:
        """Delete all documents. Vectors added afterwards may have another length."""
        self.documents, self.checksums, self._numbers, self._names = {}, {}, {}, NameIndex()
        self.content_checksum, self._faiss = 0, None

    def restore(
        self, documents: Mapping[int, Document], next_number: int, vectors: Vectors, centroids: Vectors | None
    ) -> None:
        """Fill an empty index with what another had, without computing the cells again.

        Args:
            documents: The documents by number.
            next_number: Larger than any number ever assigned.
            vectors: A row for each document, in the order of `documents`.
            centroids: The centroids of the cells; None for an exact index.
        """
        self.next_number = next_number
        for number, document in documents.items():
            self._register(number, document)
        if documents:
            numbers = np.array(list(documents), np.int64)
            self._faiss = (
                _flat(vectors, numbers) if centroids is None else _inverted(vectors, numbers, centroids)
            )
            self._fit()

    def vectors(self, numbers: Iterable[int] | None = None) -> Vectors:
        """Return the vectors of these documents, or of all, as rows in their order."""
        selected = list(self.documents if numbers is None else numbers)
        rows: Vectors = self._faiss.reconstruct_batch(np.array(selected, np.int64))
        return rows

    def vectors_by_id(self, ids: Iterable[str]) -> Vectors:
        """Return the vectors of the documents with these ids, as rows in their order."""
        return self.vectors(self._numbers[document_id] for document_id in ids)

    def centroids(self) -> Vectors:
        """Return the centroids of the cells of an approximate index."""
        rows: Vectors = self._faiss.quantizer.reconstruct_n(0, self.cells)
        return rows

    def search(self, vector: Vectors, k: int, allowed: Filter | None) -> list[tuple[int, float]]:
        """Return the numbers and scores of the `k` nearest documents that pass the filter, best first.

        Raises:
            InputError: The vector has another length than those of the index.
        """
        if self._faiss is None or k < 1:
            return []
        if vector.shape != (self._faiss.d,):
            raise InputError(
                f"The vector has {vector.size} dimensions; those of the store have {self._faiss.d}."
            )
        numbers = None
        if allowed is not None:
            numbers = [number for number, document in self.documents.items() if _passes(document, allowed)]
            if not numbers:
                return []
        parameters = self._search_parameters(numbers)
        scores, matches = self._faiss.search(vector[None], min(k, len(self)), params=parameters)
        # FAISS pads a row that has fewer than k matches with -1.
        return [
            (int(number), float(score))
            for number, score in zip(matches[0], scores[0], strict=True)
            if number >= 0
        ]

    def search_names(
        self, identifiers: Sequence[str], vector: Vectors, k: int, allowed: Filter | None
    ) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        """Return the documents that have one of these names, and others that have one in their signature, nearest first."""
        named, worded = self._names.find(identifiers)
        return self._nearest(named, vector, k, allowed), self._nearest(worded, vector, k, allowed)

    def _nearest(
        self, numbers: Iterable[int], vector: Vectors, k: int, allowed: Filter | None
    ) -> list[tuple[int, float]]:
        passing = sorted(
            number for number in numbers if allowed is None or _passes(self.documents[number], allowed)
        )
        if not passing or k < 1:
            return []
        scores = self.vectors(passing) @ vector
        return [(passing[place], float(scores[place])) for place in np.argsort(-scores, kind="stable")[:k]]

    def _search_parameters(self, numbers: Sequence[int] | None) -> Any:
        """Restrict a search to some documents.

        It then probes all cells, so that a rare match is never missed.
        """
        if numbers is None:
            return None
        faiss = _faiss()
        selector = faiss.IDSelectorBatch(np.array(numbers, np.int64))
        if self.cells:
            return faiss.SearchParametersIVF(sel=selector, nprobe=self.cells)
        return faiss.SearchParameters(sel=selector)

    def _register(self, number: int, document: Document) -> None:
        document_id, checksum = str(document.id), _checksum(document)
        self.documents[number] = document
        self._numbers[document_id] = number
        self._names.add(number, document)
        self.checksums[document_id] = checksum
        self.content_checksum ^= checksum

    def _remove(self, ids: Iterable[str]) -> bool:
        """Delete documents without fitting the index; return whether there were any."""
        existing = [document_id for document_id in dict.fromkeys(ids) if document_id in self._numbers]
        numbers = [self._numbers.pop(document_id) for document_id in existing]
        for document_id, number in zip(existing, numbers, strict=True):
            self._names.discard(number, self.documents.pop(number))
            self.content_checksum ^= self.checksums.pop(document_id)
        if numbers:
            self._faiss.remove_ids(np.array(numbers, np.int64))
        return bool(numbers)

    def _fit(self) -> None:
        """Replace the FAISS index where its kind or its number of cells no longer suits the number of documents.

        Invariant: from `approximate_from` documents on, the index is approximate and n <= 2 * cells**2;
            below, it is exact.
        As training makes about sqrt(n) cells, an index is trained again when its documents have doubled, and
        n additions cost O(log n) trainings. Deletions never train.
        """
        count, cells = len(self), self.cells
        approximate = count >= self._approximate_from
        if approximate and cells and count <= 2 * cells * cells:
            return
        if not approximate and not cells:
            return
        vectors, numbers = self.vectors(), np.array(list(self.documents), np.int64)
        self._faiss = _inverted(vectors, numbers) if approximate else _flat(vectors, numbers)


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
    return value in expected if isinstance(value, Hashable) else any(value == element for element in expected)


# -- FAISS ---------------------------------------------------------------------------------------------------


def _faiss() -> Any:
    """Import FAISS on use; its stubs are incomplete."""
    # Idle threads of GNU OpenMP spin by default, after each search; the variable is read at the first import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    return importlib.import_module("faiss")


def _cell_count(index: Any) -> int:
    return int(index.nlist) if index is not None and isinstance(index, _faiss().IndexIVFFlat) else 0


def _flat(vectors: Vectors, numbers: Any = ()) -> Any:
    """Make an exact index."""
    faiss = _faiss()
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
    if len(vectors):
        index.add_with_ids(vectors, numbers)
    return index


def _inverted(vectors: Vectors, numbers: Any, centroids: Vectors | None = None) -> Any:
    """Make an approximate index (inverted file): about sqrt(n) cells, of which a search probes a tenth.

    Args:
        vectors: The vectors, as rows.
        numbers: Their FAISS ids.
        centroids: The centroids of the cells; None to train them, which is slow.
    """
    faiss = _faiss()
    size = vectors.shape[1]
    cells = max(1, round(float(np.sqrt(len(vectors))))) if centroids is None else len(centroids)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(size), size, cells, faiss.METRIC_INNER_PRODUCT)
    if centroids is None:
        index.train(vectors)
    else:
        index.quantizer.add(centroids)
        index.is_trained = True
    # Needed to look up and delete vectors by number.
    index.set_direct_map_type(faiss.DirectMap.Hashtable)
    index.add_with_ids(vectors, numbers)
    index.nprobe = max(1, cells // PROBED_FRACTION)
    return index
