"""The public snippet store: a LangChain vector store that threads and processes share."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from code_chains.errors import InputError, StoreError
from code_chains.retrieval import persistence
from code_chains.retrieval.embeddings import identity
from code_chains.retrieval.executed import ExampleRuns, Run, run_examples
from code_chains.retrieval.index import id_of
from code_chains.retrieval.loaders import digest, read_file, read_folder
from code_chains.retrieval.search import SnippetSearch
from code_chains.storage.files import is_private

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Changes:
    """Numbers of snippets that an update has added, updated, deleted and left unchanged."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0


class SnippetStore(SnippetSearch):
    """Code snippets, searched by what they are about; a LangChain `VectorStore` on FAISS.

    The searched text is `metadata["about"]` where there is one (docstrings, headings), else the snippet
    itself. Scores are cosines: 1 for the same text, about 0 for unrelated texts. The search is exact, also with a
    `filter`, however rare its matches. All methods are thread-safe, and each change is atomic: a search sees
    all of it or nothing.

    Args:
        embedding: Any `Embeddings`, a name such as `"openai:text-embedding-3-small"`, or None for offline ones.

    Attributes:
        folder: Where the store was last saved or loaded.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = SnippetStore(DeterministicFakeEmbedding(size=64))
        >>> ids = store.add_texts(["sum(range(1, 6))", "sorted('hello')"])
        >>> store.similarity_search("sum(range(1, 6))", k=1)[0].page_content
        'sum(range(1, 6))'
    """

    def __init__(self, embedding: Embeddings | str | None = None) -> None:
        super().__init__(embedding)
        self._revision = 0  # How often the folder had been saved when this store was last saved or loaded.
        self._update_lock = threading.Lock()  # Taken before `_lock`.
        self.folder: Path | None = None

    # -- create, load and save -------------------------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | str | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Create a store of texts; by default with the offline embeddings."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    def from_folder(
        cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any
    ) -> Self:
        """Create a store of all code under a folder: Python, Markdown, notebooks and other languages.

        Raises:
            InputError: The folder does not exist, or holds no code.
        """
        store = cls(embedding, **kwargs)
        store.update(folder)
        return store

    @classmethod
    def from_files(
        cls, paths: Iterable[str | Path], embedding: Embeddings | str | None = None, **kwargs: Any
    ) -> Self:
        """Create a store of the code in files."""
        store = cls(embedding, **kwargs)
        store.add_documents([snippet for path in paths for snippet in read_file(path)])
        return store

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
    def open(cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """Open the store saved in a folder, or else a store of the code in the folder, brought up to date.

        The index of a folder of code is saved in the user's cache, one for each folder and embedding; an
        index that lies beside the code is never loaded. Call `save(store.folder)` to save it there.

        Raises:
            InputError: The folder does not exist, or holds neither a store nor code.
            StoreError: The store saved there cannot be loaded.
        """
        folder = Path(folder).expanduser()
        is_saved = persistence.is_saved(folder)
        store = cls.load(folder, embedding, **kwargs) if is_saved else cls.cached(folder, embedding, **kwargs)
        if not is_saved or store._ids_from(_origin(folder)):
            store.update(folder)
        return store

    @classmethod
    def cached(cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """Load the index of a folder of code from the user's cache, as it was last saved there.

        A cache miss gives an empty store, and so does an index that is unusable; the reason is logged.
        """
        store = cls(embedding, **kwargs)
        store.folder = cache = persistence.cache_folder(f"{_origin(folder)}\0{identity(store._embedding)}")
        if not persistence.is_saved(cache):
            return store
        if not is_private(cache):
            _log.warning(
                "The index %r is not used: other users may write to it. Delete the folder.", str(cache)
            )
            return store
        try:
            return cls.load(cache, store._embedding, **kwargs)
        except StoreError as error:
            _log.warning("The index of %r is created again. %s", str(folder), error)
            return store

    @classmethod
    def load(cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """Load the store saved in a folder. Nothing in it is ever executed.

        Args:
            folder: Where it was saved.
            embedding: The embeddings that it was made with.
            **kwargs: As for the class.

        Raises:
            StoreError: The folder holds no store, one that is damaged, or one of other embeddings.
        """
        store = cls(embedding, **kwargs)
        store._read(Path(folder).expanduser())
        return store

    def save(self, folder: str | Path) -> None:
        """Save the store in a folder, in one SQLite file; a crash leaves the previous store or the new one.

        In the folder where the store was last saved or loaded, only what has changed here is written; what
        others have saved since stays, and can be searched here from now on. In any other folder the store
        replaces the previous one. Only the user may read the file.

        Raises:
            StoreError: The folder cannot be written.
        """
        folder = Path(folder).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._lock:
                is_own = self.folder is not None and self.folder.resolve() == folder.resolve()
                previous = self._revision
                self._write(folder, previous if is_own else None)
                if is_own and self._revision > previous + 1:  # Others have saved, too.
                    self._read_or_replace(folder)
        except (OSError, RuntimeError, StoreError) as error:  # FAISS raises RuntimeError.
            is_retryable = isinstance(error, StoreError) and error.is_retryable
            raise StoreError(
                f"The snippets cannot be saved in {str(folder)!r}: {error}", is_retryable=is_retryable
            ) from error

    def add_and_save(self, documents: list[Document], *, ids: list[str] | None = None) -> list[str]:
        """Add snippets, then save the store where it was last saved or loaded, merged with what others have saved since.

        Raises:
            InputError: As for `add_documents`.
            StoreError: The store has no folder yet, or the folder cannot be written.
        """
        if self.folder is None:
            raise StoreError("The store was neither saved nor loaded yet. Call save(folder) first.")
        ids = self.add_documents(documents, ids=ids)
        self.save(self.folder)
        return ids

    def _write(self, folder: Path, known: int | None) -> None:
        self._revision = persistence.write_index(folder, self._index, identity(self._embedding), known)
        self._index.changed.clear()
        self.folder = folder

    def _read_or_replace(self, folder: Path) -> None:
        try:
            self._read(folder)
        except StoreError as error:
            if error.is_retryable:
                raise
            self._write(folder, None)

    def _read(self, folder: Path) -> None:
        """Hold what is saved in a folder."""
        index, revision = persistence.read_index(folder, identity(self._embedding))
        with self._lock:
            self._index, self._revision, self.folder = index, revision, folder

    # -- changes ---------------------------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts; see `add_documents`."""
        if isinstance(texts, str):
            raise InputError("texts must be a list of texts, not one text. Pass it in a list.")
        texts = list(texts)
        if metadatas is not None and len(metadatas) != len(texts):
            raise InputError(
                f"There are {len(texts)} texts, but {len(metadatas)} metadatas. Pass one for each text."
            )
        pairs = zip(texts, metadatas or repeat({}), strict=False)
        documents = [Document(text, metadata=dict(data)) for text, data in pairs]
        return self.add_documents(documents, ids=ids, **kwargs)

    def add_documents(
        self, documents: list[Document], *, ids: list[str] | None = None, **kwargs: Any
    ) -> list[str]:
        """Add snippets and return their ids. A snippet replaces the one with the same id.

        Args:
            documents: The snippets; their metadata must be JSON.
            ids: Their ids; by default their own, or else ids derived from their content, so that none is
                added twice.
            **kwargs: Ignored, for compatibility with other stores.

        Raises:
            InputError: Some metadata is not JSON, or the number of ids differs from that of snippets.
        """
        if ids is not None and len(ids) != len(documents):
            raise InputError(
                f"There are {len(documents)} snippets, but {len(ids)} ids. Pass one for each snippet."
            )
        snippets = list(map(_validated, documents, ids or repeat(None)))
        latest = {id_of(snippet): snippet for snippet in snippets}
        changed = self._changed(latest.values())
        if changed:
            vectors = self._embed(changed)
            with self._lock:
                self._index.put(changed, vectors)
        return list(map(id_of, snippets))

    def run_examples(self, run: Run) -> ExampleRuns:
        """Run the examples of packages and of snippets once; from now on those that failed are not shown, and outputs are.

        Those are the `>>>` examples in docstrings, up to 200, and up to 50 programs that say what they are `about`. Each
        is run where the package is installed and programs are isolated, or else shown as not run. What ran is not run
        again, also after `save` and `load`.

        Args:
            run: Runs a program, such as `SandboxExecutor().run`.
        """
        with self._lock:
            documents = list(self._index.documents.values())
        changed, report = run_examples(documents, run)
        with self._lock:
            kept = [one for one in changed if one.id in self._index.ids]
            if kept:  # What they are searched by stays the same.
                self._index.put(kept, self._index.vectors_by_id(map(id_of, kept)))
        return report

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete the snippets with these ids, or all; unknown ids are ignored."""
        with self._lock:
            if ids is None:
                self._index.clear()
            else:
                self._index.delete(ids)
        return True

    def update(self, folder: str | Path) -> Changes:
        """Bring the store up to date with a folder: embed only what changed, and delete what is gone.

        Updates run one after another. Searches continue meanwhile and see all of an update or nothing of it.

        Raises:
            InputError: The folder does not exist, or holds no code.
        """
        origin = _origin(folder)
        with self._update_lock:
            current = {id_of(snippet): snippet for snippet in _read_snippets(folder, origin)}
            changed = self._changed(current.values())
            vectors = self._embed(changed) if changed else None
            # One critical section: nobody sees the additions without the deletions.
            with self._lock:
                previous = self._ids_from(origin)
                gone = previous - current.keys()
                if vectors is not None:
                    self._index.put(changed, vectors)
                self._index.delete(gone)
        updated = sum(snippet.id in previous for snippet in changed)
        return Changes(len(changed) - updated, updated, len(gone), len(current) - len(changed))


def _validated(document: Document, given_id: str | None) -> Document:
    """Return a copy whose metadata is plain JSON, with an id.

    Raises:
        InputError: The metadata is not JSON.
    """
    try:
        metadata = json.loads(json.dumps(document.metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The metadata of a snippet must be JSON: {error}.") from error
    return Document(document.page_content, metadata=metadata, id=given_id or document.id or digest(document))


def _read_snippets(folder: str | Path, origin: str) -> Iterable[Document]:
    """Read the snippets of a folder; their ids and metadata name the folder."""
    prefix = hashlib.sha256(origin.encode("utf-8", "replace")).hexdigest()[:8]
    for snippet in read_folder(folder):
        snippet.id = f"{prefix}/{snippet.id}"
        snippet.metadata["origin"] = origin
        yield _validated(snippet, None)


def _origin(folder: str | Path) -> str:
    """Return the name by which snippets refer to their folder."""
    return str(Path(folder).expanduser().resolve())
