"""The curated snippets that come with code_chains."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from code_chains.errors import StoreError
from code_chains.retrieval.embeddings import identity, resolve_embedding
from code_chains.retrieval.loaders import digest, read_folder
from code_chains.retrieval.persistence import cache_folder
from code_chains.retrieval.store import SnippetStore
from code_chains.storage.files import is_private


def curated_folder() -> Path:
    """Return the folder of the curated snippets: in the package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    return next(folder for folder in (package / "curated", package.parent / "snippets") if folder.is_dir())


def curated_snippets(embedding: Embeddings | str | None = None) -> SnippetStore:
    """Return a store of the curated snippets, which is embedded once and then read from the user's cache."""
    from filelock import FileLock

    embedding = resolve_embedding(embedding)
    documents = read_folder(curated_folder())
    content = "".join(sorted(digest(document) for document in documents)) + identity(embedding)
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
    store = SnippetStore(embedding)
    store.add_documents(documents)
    return store
