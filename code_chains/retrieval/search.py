"""The search half of a snippet store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from code_chains.retrieval.embeddings import OfflineEmbeddings, Vectors, identity, resolve_embedding
from code_chains.retrieval.identifiers import identifiers_in
from code_chains.retrieval.index import Filter, SnippetIndex, id_of, select_diverse
from code_chains.retrieval.persistence import searched_text
from code_chains.retrieval.references import distinct_texts, is_reference, signature_of

MIN_REFERENCE_CHARS = 20
"""No reference is shorter: it has a line with an import, and another with what that is."""

_MAX_SIGNATURES = 20


class SnippetSearch(VectorStore):
    """A vector store's reading methods, on an index that other threads may change.

    Args:
        embedding: Any `Embeddings`, a name such as `"openai:text-embedding-3-small"`, or None for the offline
            ones.
    """

    def __init__(self, embedding: Embeddings | str | None = None) -> None:
        self._embedding = resolve_embedding(embedding)
        self._index = SnippetIndex()
        # Guards the index. Embedding, which is slow, never holds it.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} snippets, {identity(self._embedding)})"

    @property
    def embeddings(self) -> Embeddings:
        """The embeddings of the store."""
        return self._embedding

    @property
    def fingerprint(self) -> str:
        """A checksum of the content and the embeddings; it changes with any snippet."""
        return f"{identity(self._embedding)}:{self._index.content_checksum:064x}"

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the snippets with these ids; unknown ids are skipped."""
        with self._lock:
            snippets = [self._index.get(snippet_id) for snippet_id in ids]
        return [_copy(snippet) for snippet in snippets if snippet is not None]

    def all_references(self, max_chars: int) -> list[Document]:
        """Return all references of packages, in the order of their names; none if together they are longer than that."""
        with self._lock:
            references = list(filter(is_reference, self._index.documents.values()))
            # Invariant: under the lock only as much is read as may be shown, however large the store is.
            if not references or len(references) > max_chars // MIN_REFERENCE_CHARS:
                return []
            references = list(map(_copy, sorted(references, key=id_of)))
        return references if sum(map(len, distinct_texts(references))) <= max_chars else []

    def signatures(self, names: Iterable[str], misspelt: Iterable[str] = ()) -> list[str]:
        """Return how references of these names are imported and called, or else those of names like misspelt ones."""
        with self._lock:
            known = self._index.names
            found = known.find(names)[0] or known.find(chain.from_iterable(map(known.nearest, misspelt)))[0]
            references = [_copy(self._index.documents[number]) for number in sorted(found)[:_MAX_SIGNATURES]]
        return [signature_of(one) for one in references if is_reference(one)]

    def similarity_search(
        self,
        query: str,
        k: int = 4,
        filter: Filter | None = None,  # noqa: A002
        *,
        with_scores: bool = False,
        **kwargs: Any,
    ) -> list[Document]:
        """Return the snippets nearest to a query, best first; before them those that it names.

        A snippet is named by what looks like code in the query: in backticks, called, `snake_case`, `CamelCase`
        or dotted. After what has that name come those that have it in their signature.

        Args:
            query: The text to search for, in any language that the embeddings know.
            k: Number of snippets at most.
            filter: Metadata that they must have, or a predicate on documents; exact however rare its matches.
            with_scores: Whether `score` in the metadata says how near each is.
            **kwargs: As for `similarity_search_with_score`.
        """
        matches = self.similarity_search_with_score(query, k, filter, **kwargs)
        for document, score in matches if with_scores else ():  # They are copies.
            document.metadata["score"] = round(float(score), 4)
        return [document for document, _ in matches]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Filter | None = None,  # noqa: A002
        *,
        score_threshold: float | None = None,
        reference_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return the same with their scores, from 1 for the same text to about 0.

        Args:
            query: The text to search for.
            k: Number of snippets at most.
            filter: As for `similarity_search`.
            score_threshold: The minimum score; what the query names needs none.
            reference_threshold: The minimum score of references of a package; None for the same.
            **kwargs: Ignored.
        """
        named, others = self._search(self._query_vector(query), k, filter, identifiers_in(query))
        least = -np.inf if score_threshold is None else score_threshold
        least_of_references = least if reference_threshold is None else reference_threshold
        near = [
            (document, score)
            for document, score in others
            if score >= (least_of_references if is_reference(document) else least)
        ]
        return _distinct([*named, *near])[:k]

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: Filter | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """Return the snippets nearest to a vector."""
        _, near = self._search(self._normalized_query(embedding), k, filter)
        return [document for document, _ in near]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """Return snippets that are near to a query and differ from each other.

        Args:
            query: The text to search for.
            k: Number of snippets at most.
            fetch_k: Number of nearest snippets to choose from.
            lambda_mult: From 0, the most diverse, to 1, the nearest.
            filter: As for `similarity_search`.
            **kwargs: Ignored.
        """
        return self._diverse(self._query_vector(query), k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """Return the same for a vector."""
        return self._diverse(self._normalized_query(embedding), k, fetch_k, lambda_mult, filter)

    def _embed(self, snippets: Iterable[Document]) -> Vectors:
        texts = list(map(searched_text, snippets))
        if isinstance(self._embedding, OfflineEmbeddings):
            # Not normalized: each part has its own length, and a query selects one of them.
            return self._embedding.documents(texts)
        return _normalized(np.array(self._embedding.embed_documents(texts), np.float32))

    def _query_vector(self, query: str) -> Vectors:
        if isinstance(self._embedding, OfflineEmbeddings):
            return self._embedding.query(query)
        return self._normalized_query(self._embedding.embed_query(query))

    def _normalized_query(self, vector: Sequence[float]) -> Vectors:
        row = np.array(vector, np.float32)
        return row if isinstance(self._embedding, OfflineEmbeddings) else _normalized(row)

    def _search(
        self, vector: Vectors, k: int, allowed: Filter | None, identifiers: Sequence[str] = ()
    ) -> tuple[list[tuple[Document, float]], list[tuple[Document, float]]]:
        """Return the snippets with these names; and those with them in their signature, before the nearest ones."""
        # Numbers are only valid under the lock: as soon as it is free, their documents may be deleted.
        with self._lock:
            named, worded = self._index.search_names(identifiers, vector, k, allowed)
            near = self._index.search(vector, k, allowed)
            return self._copies(named), self._copies([*worded, *near])

    def _copies(self, matches: Iterable[tuple[int, float]]) -> list[tuple[Document, float]]:
        return [(_copy(self._index.documents[number]), score) for number, score in matches]

    def _diverse(
        self, vector: Vectors, k: int, fetch_k: int, weight: float, allowed: Filter | None
    ) -> list[Document]:
        with self._lock:
            matches = self._index.search(vector, max(k, fetch_k), allowed)
            if not matches:
                return []
            vectors = self._index.vectors(number for number, _ in matches)
            documents = [self._index.documents[number] for number, _ in matches]
        if isinstance(self._embedding, OfflineEmbeddings):
            vectors = vectors[:, : OfflineEmbeddings.ENGLISH]
        scores = np.array([score for _, score in matches], np.float32)
        return [_copy(documents[position]) for position in select_diverse(scores, vectors, k, weight)]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: min(1.0, max(0.0, score))

    def _changed(self, snippets: Iterable[Document]) -> list[Document]:
        """Return the snippets that the store does not hold with the same content."""
        with self._lock:
            return [snippet for snippet in snippets if self._index.get(str(snippet.id)) != snippet]

    def _ids_from(self, origin: str) -> set[str]:
        """Return the ids of the snippets of a folder."""
        with self._lock:
            snippets = list(self._index.documents.values())
        return {id_of(snippet) for snippet in snippets if snippet.metadata.get("origin") == origin}


def _distinct(matches: Iterable[tuple[Document, float]]) -> list[tuple[Document, float]]:
    """Return each snippet once, where it is first."""
    found: dict[str | None, tuple[Document, float]] = {}
    for document, score in matches:
        found.setdefault(document.id, (document, score))
    return list(found.values())


def _copy(document: Document) -> Document:
    """Copy a document of the store, which callers must not be able to change."""
    return document.model_copy(deep=True)


def _normalized(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit_vectors: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return unit_vectors
