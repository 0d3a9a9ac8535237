"""The curated snippets that come with code_chains."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from code_chains.errors import StoreError
from code_chains.retrieval.embeddings import OfflineEmbeddings, Vectors, identity, resolve_embedding
from code_chains.retrieval.loaders import digest, read_folder
from code_chains.retrieval.persistence import cache_folder, searched_text
from code_chains.retrieval.store import SnippetStore
from code_chains.storage.files import is_private

VECTORS = Path(__file__).parents[1] / "data" / "curated_vectors.npz"
"""Vectors of the curated snippets, as embedding them takes a minute; `docs/generate.py` writes them."""


class CuratedEmbeddings(OfflineEmbeddings):
    """Embeddings that know the vectors of the curated snippets."""

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of documents, of shape `(texts, dimensions)`."""
        known = known_vectors()
        unknown = [text for text in texts if text_key(text) not in known]
        embedded = dict(zip(unknown, super().documents(unknown), strict=True)) if unknown else {}
        size = 2 * self.ENGLISH + 1 if self.multilingual else self.ENGLISH
        vectors = [embedded[text] if text in embedded else known[text_key(text)][:size] for text in texts]
        return np.array(vectors, np.float32).reshape(len(texts), size)


def text_key(text: str) -> str:
    """Return the name of the vector of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def known_vectors() -> Mapping[str, Vectors]:
    """Return the vectors of texts, by their keys; none where they are missing or of other models."""
    with suppress(OSError, ValueError, KeyError), np.load(VECTORS, allow_pickle=False) as file:
        if str(file["identity"]) == OfflineEmbeddings(multilingual=True).identity:
            return dict(zip(map(str, file["keys"]), file["vectors"].astype(np.float32), strict=True))
    return {}


def write_vectors() -> None:
    """Embed the curated snippets that have no vector yet, and keep those of the others."""
    embedding = CuratedEmbeddings(multilingual=True)
    texts = sorted(map(searched_text, read_folder(curated_folder())))
    np.savez_compressed(
        VECTORS,
        identity=np.array(embedding.identity),
        keys=np.array(list(map(text_key, texts))),
        vectors=embedding.documents(texts).astype(np.float16),
    )


def curated_folder() -> Path:
    """Return the folder of the curated snippets: in the package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    return next(filter(Path.is_dir, (package / "curated", package.parent / "snippets")))


def curated_snippets(embedding: Embeddings | str | None = None) -> SnippetStore:
    """Return a store of the curated snippets, which is embedded once and then read from the user's cache."""
    from filelock import FileLock

    embedding = resolve_embedding(embedding)
    documents = read_folder(curated_folder())
    content = "".join(sorted(map(digest, documents))) + identity(embedding)
    folder = cache_folder(content)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with FileLock(f"{folder}.lock"):
            if is_private(folder):
                with suppress(StoreError):
                    return SnippetStore.load(folder, embedding)
            store = _store_of(documents, embedding)
            store.save(folder)
            return store
    except (OSError, StoreError):  # The search works without a cache.
        return _store_of(documents, embedding)


def _store_of(documents: list[Document], embedding: Embeddings) -> SnippetStore:
    if type(embedding) is OfflineEmbeddings:
        embedding = CuratedEmbeddings(multilingual=embedding.multilingual)
    store = SnippetStore(embedding)
    store.add_documents(documents)
    return store
