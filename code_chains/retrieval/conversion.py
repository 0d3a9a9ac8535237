"""Stores of what is not a folder of code: an installed package, or a folder that FAISS has written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.embeddings import Embeddings

from code_chains.retrieval.faiss_folder import read_faiss_folder
from code_chains.retrieval.search import SnippetSearch

__all__ = ["ConvertingStore"]


class ConvertingStore(SnippetSearch):
    """The constructors of a store that read what others have made, and execute nothing of it."""

    @classmethod
    def from_package(
        cls,
        name: str,
        embedding: Embeddings | str | None = None,
        *,
        search_path: Sequence[str | Path] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a store of references of an installed package: how its functions and classes are imported and called.

        Each public function, class, method and constant becomes a snippet with its import, its signature, what its
        docstring says of it, and the constructors of the classes that it names. The package is parsed and never
        imported, so nothing of it runs here; programs can import it if it is installed where they run. Add examples
        of your own with `add_documents`: they show which functions belong together.

        Args:
            name: The name to import, such as `"acme_tax"`, or dotted for a part of a package.
            embedding: As for the class.
            search_path: Folders to look in, such as the `site-packages` of another environment; None for `sys.path`.
            **kwargs: As for the class.

        Raises:
            InputError: The package is not installed, has no source and no stubs, or nothing that is public.

        Example:
            >>> from code_chains import SnippetStore
            >>> from langchain_core.embeddings import DeterministicFakeEmbedding
            >>> store = SnippetStore.from_package("colorsys", DeterministicFakeEmbedding(size=64))
            >>> print(store.similarity_search("What does rgb_to_hsv return?", k=1)[0].page_content)
            from colorsys import rgb_to_hsv
            rgb_to_hsv(r, g, b)
            <BLANKLINE>
        """
        from code_chains.retrieval.package import read_package

        store = cls(embedding, **kwargs)
        store.add_documents(read_package(name, search_path))
        return store

    @classmethod
    def from_faiss(
        cls,
        folder: str | Path,
        embedding: Embeddings | str | None = None,
        *,
        index_name: str = "index",
        **kwargs: Any,
    ) -> Self:
        """Create a store of the documents in a folder written by the community `FAISS.save_local`.

        Its pickle is interpreted, never executed. Texts, metadata and ids are carried over; vectors, index
        type and distance metric are not: the texts are embedded again.

        Args:
            folder: The folder given to `save_local`.
            embedding: Any embeddings; they need not be those that the index was made with.
            index_name: The `index_name` given to `save_local`.
            **kwargs: As for the class.

        Raises:
            StoreError: The folder holds no such file, or one with anything but documents with JSON metadata.
        """
        store = cls(embedding, **kwargs)
        store.add_documents(read_faiss_folder(Path(folder).expanduser(), index_name))
        return store
