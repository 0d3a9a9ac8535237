"""Examples that are found again: a vector store on FAISS, kept as an index and JSON, without pickle."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import operator
import threading
import uuid
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from code_chains.embeddings import OfflineEmbeddings, Vectors, identity, resolve_embedding
from code_chains.errors import InputError, StoreError
from code_chains.files import checksum, keep
from code_chains.sources import digest, read_file, read_folder

__all__ = ["INSIDE", "Changes", "SnippetStore", "curated_snippets", "is_saved"]

Filter = Mapping[str, Any] | Callable[[Document], bool]
"""Metadata that a snippet must have, or a function that says whether it will do. A collection means any of its values; of
metadata that is a list, any element will do."""

_FORMAT = "code-chains snippets 1"
_DOCUMENTS = "snippets.json"
_PATIENCE = 60.0
"""Seconds that another process may take to save or load."""
INSIDE = ".code_chains"
"""The folder inside a folder of code in which its index is kept."""
_HERE = "."
"""How snippets name the folder that their index lies in."""


@dataclass(frozen=True)
class Changes:
    """What bringing a store up to date came to, in numbers of snippets."""

    added: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0


class SnippetStore(VectorStore):
    """Snippets of code that are found by what they are about; a LangChain `VectorStore` on FAISS.

    What is searched is `metadata["about"]` where there is one (docstrings, headings), else the text itself. Scores are
    cosines: 1 for the same text, about 0 for texts that have nothing in common. Below `approximate_from` snippets the search
    is exact; from then on FAISS looks through the nearest cells of an inverted index. A `filter` is always exact, however
    rare what it lets through. All methods may be called from several threads, and none keeps half of a change.

    Args:
        embedding: Any `Embeddings`, a name such as `"openai:text-embedding-3-small"`, or None for the offline ones.
        approximate_from: Number of snippets from which the search is approximate; None for 50,000, and for 500,000 with the
            offline embeddings, whose vectors have two parts that share no cells well.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = SnippetStore(DeterministicFakeEmbedding(size=64))
        >>> ids = store.add_texts(["sum(range(1, 6))", "sorted('hello')"])
        >>> store.similarity_search("sum(range(1, 6))", k=1)[0].page_content
        'sum(range(1, 6))'
    """

    def __init__(self, embedding: Embeddings | str | None = None, *, approximate_from: int | None = None) -> None:
        self._embedding = resolve_embedding(embedding)
        usual = 500_000 if isinstance(self._embedding, OfflineEmbeddings) else 50_000
        self._approximate_from = usual if approximate_from is None else approximate_from
        self._documents: dict[int, Document] = {}
        self._numbers: dict[str, int] = {}
        self._next = 0
        self._content = 0  # The checksums of all snippets in one, whatever their order.
        self._base: dict[str, int] = {}  # Checksums of what the folder held when it was last saved or loaded,
        self._version = ""  # and the checksum of the JSON there.
        self._index: Any = None
        self._lock = threading.RLock()
        self.folder: Path | None = None
        """Where it was last saved or loaded."""

    # -- making and keeping one ---------------------------------------------------------------------------------------

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
        """A store of these texts; without an embedding of the offline ones."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    def from_folder(cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """A store of all code under a folder: Python, Markdown, notebooks and other languages.

        Raises:
            InputError: There is no such folder, or no code in it.
        """
        store = cls(embedding, **kwargs)
        store.update(folder)
        return store

    @classmethod
    def open(cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """The store that was saved in a folder, or a store of the code in it, brought up to date.

        A store of code that is saved again goes to the hidden folder `.code_chains` inside.

        Raises:
            InputError: There is no such folder, or neither in it.
            StoreError: What was saved there cannot be loaded.
        """
        folder = Path(folder).expanduser()
        saved = next((one for one in (folder, folder / INSIDE) if is_saved(one)), None)
        store = cls(embedding, **kwargs) if saved is None else cls.load(saved, embedding, **kwargs)
        store.folder = saved or folder / INSIDE
        origin = store._origin(folder)
        if saved is None or any(one.metadata.get("origin") == origin for one in store._documents.values()):
            store.update(folder)
        return store

    @classmethod
    def from_files(cls, paths: Iterable[str | Path], embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """A store of the code in some files."""
        store = cls(embedding, **kwargs)
        store.add_documents([snippet for path in paths for snippet in read_file(path)])
        return store

    def save(self, folder: str | Path) -> None:
        """Keep the store in a folder: a FAISS index and JSON, written so that a crash leaves the old one or the new one.

        What others have saved since there, where it was last saved or loaded, is kept, and found here from now on. In any
        other folder the store takes the place of what was there.

        Raises:
            StoreError: It cannot be written.
        """
        folder = Path(folder).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with _alone(folder), self._lock:
                if self.folder is not None and self.folder.resolve() == folder.resolve():
                    self._catch_up(folder)
                self._write(folder)
        except (OSError, RuntimeError) as error:  # FAISS has errors of its own.
            raise StoreError(f"The snippets cannot be kept in {str(folder)!r}: {error}.") from error

    def add_and_save(self, documents: list[Document], *, ids: list[str] | None = None) -> list[str]:
        """Add snippets and save the store where it was last saved or loaded, with what others have saved there since.

        Raises:
            InputError: As for `add_documents`.
            StoreError: There is no such folder, or it cannot be written.
        """
        if self.folder is None:
            raise StoreError("The store has no folder yet: it was neither saved nor loaded. Call save(folder) first.")
        added = self.add_documents(documents, ids=ids)
        self.save(self.folder)
        return added

    @classmethod
    def load(cls, folder: str | Path, embedding: Embeddings | str | None = None, **kwargs: Any) -> Self:
        """The store that was saved in a folder. Nothing in it is ever executed.

        Args:
            folder: Where it was saved.
            embedding: The same as when it was made.
            **kwargs: As for the class.

        Raises:
            StoreError: There is none, it is damaged or of another kind, or it was made with other embeddings.
        """
        store = cls(embedding, **kwargs)
        folder = Path(folder).expanduser()
        if not is_saved(folder):
            raise StoreError(f"There are no snippets in {str(folder)!r}. `code-chains index PATH` makes an index.")
        with _unchanged(folder):
            store._load(folder)
        return store

    def _load(self, folder: Path) -> None:
        """Become what was saved in a folder; for a store that is empty."""
        try:
            data = (folder / _DOCUMENTS).read_bytes()
            note = json.loads(data.decode("utf-8", "surrogatepass"))
            if note["format"] != _FORMAT:
                raise ValueError(f"its format is {note['format']!r}, not {_FORMAT!r}")
            made_with = note["embedding"]
            self._read(note, folder)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise StoreError(
                f"The snippets in {str(folder)!r} are damaged or of another kind: {error}. Make the index again."
            ) from error
        if made_with != identity(self._embedding):
            raise StoreError(
                f"The snippets in {str(folder)!r} were made with the embeddings {made_with!r}, not"
                f" {identity(self._embedding)!r}. Pass these, or make the index again."
            )
        self._settle(folder, data, _placed(self._documents, _home(folder), _home(folder)))

    def _settle(self, folder: Path, data: bytes, documents: dict[int, Document]) -> None:
        """Be a store of this folder, which holds these snippets by this JSON."""
        self._documents = documents
        self._numbers = {str(document.id): number for number, document in documents.items()}
        self._base = self._checksums()
        self._content = functools.reduce(operator.xor, self._base.values(), 0)
        self.folder, self._version = folder, hashlib.sha256(data).hexdigest()

    def _checksums(self) -> dict[str, int]:
        return {str(document.id): _checksum(document) for document in self._documents.values()}

    def _catch_up(self, folder: Path) -> None:
        """Take over what others have changed in a folder; where both have changed a snippet, this store's is kept."""
        try:
            if hashlib.sha256((folder / _DOCUMENTS).read_bytes()).hexdigest() == self._version:
                return
            saved = SnippetStore(self._embedding, approximate_from=self._approximate_from)
            saved._load(folder)
        except (OSError, StoreError):  # Nothing was saved there yet, or nothing that can be used.
            return
        mine, base, theirs = self._checksums(), self._base, saved._base
        changed = {one for one in base | theirs if base.get(one) != theirs.get(one) and base.get(one) == mine.get(one)}
        self.delete([one for one in changed if one not in theirs])
        numbers = [saved._numbers[one] for one in changed if one in theirs]
        if numbers:
            vectors = saved._index.reconstruct_batch(np.array(numbers, np.int64))
            self._put([saved._documents[number] for number in numbers], vectors)

    def _write(self, folder: Path) -> None:
        index = self._write_index(folder)
        documents = _placed(self._documents, _home(self.folder), _home(folder))
        note = {
            "format": _FORMAT,
            "embedding": identity(self._embedding),
            "index": index.name if index else None,
            "sha256": checksum(index) if index else None,
            "next": self._next,
            "snippets": [
                {"number": number, "id": document.id, "text": document.page_content, "metadata": document.metadata}
                for number, document in documents.items()
            ],
        }
        data = json.dumps(note, ensure_ascii=False).encode("utf-8", "surrogatepass")
        keep(folder / _DOCUMENTS, data)
        self._settle(folder, data, documents)
        for old in folder.glob("index-*.faiss"):
            if index is None or old.name != index.name:
                old.unlink(missing_ok=True)

    def _write_index(self, folder: Path) -> Path | None:
        if self._index is None:
            return None
        path = folder / f"index-{uuid.uuid4().hex[:12]}.faiss"
        _faiss().write_index(self._index, str(path))
        return path

    def _read(self, note: Mapping[str, Any], folder: Path) -> None:
        self._documents = {
            int(one["number"]): Document(page_content=one["text"], metadata=dict(one["metadata"]), id=one["id"])
            for one in note["snippets"]
        }
        self._next = int(note["next"])
        if note["index"] is not None:
            path = folder / Path(note["index"]).name
            if checksum(path) != note["sha256"]:
                raise ValueError("its index is not the one that belongs to it")
            self._index = _faiss().read_index(str(path))
        if not len(self) == len(self._documents) == len({document.id for document in self._documents.values()}):
            raise ValueError("it does not hold as many texts as vectors")
        if self._index is not None:
            self._fit()

    # -- what is in it ------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._index.ntotal) if self._index is not None else 0

    def __repr__(self) -> str:
        return f"SnippetStore({len(self)} snippets, {identity(self._embedding)})"

    @property
    def embeddings(self) -> Embeddings:
        """What makes its vectors."""
        return self._embedding

    @property
    def fingerprint(self) -> str:
        """What tells its content from that of another; it changes with any snippet."""
        return f"{identity(self._embedding)}:{self._content:064x}"

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The snippets of these ids; those that are not there are left out."""
        with self._lock:
            return [_copy(self._documents[self._numbers[one]]) for one in ids if one in self._numbers]

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add texts; see `add_documents`."""
        texts = list(texts)
        if metadatas is not None and len(metadatas) != len(texts):
            raise InputError(f"There are {len(texts)} texts, but {len(metadatas)} metadatas.")
        documents = [
            Document(text, metadata=dict(data))
            for text, data in zip(texts, metadatas or [dict[str, Any]()] * len(texts), strict=True)
        ]
        return self.add_documents(documents, ids=ids, **kwargs)

    def add_documents(self, documents: list[Document], *, ids: list[str] | None = None, **kwargs: Any) -> list[str]:
        """Add snippets, and give their ids. One whose id is there already takes its place.

        Args:
            documents: The snippets; their metadata must be JSON.
            ids: Their ids; else their own, else one that follows from their content, so that nothing is there twice.
            **kwargs: Ignored, for other stores' sake.

        Raises:
            InputError: Something is no JSON, or there are not as many ids as snippets.
        """
        if ids is not None and len(ids) != len(documents):
            raise InputError(f"There are {len(documents)} snippets, but {len(ids)} ids.")
        checked = [_checked(document, given) for document, given in zip(documents, ids or repeat(None), strict=False)]
        latest = {str(document.id): document for document in checked}
        with self._lock:
            same = {
                one for one in latest if one in self._numbers and latest[one] == self._documents[self._numbers[one]]
            }
        new = [document for one, document in latest.items() if one not in same]
        vectors = self._vectors([_searched(document) for document in new]) if new else None
        if vectors is not None:
            with self._lock:
                self._put(new, vectors)
        return [str(document.id) for document in checked]

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete the snippets of these ids, or all; those that are not there are no error."""
        with self._lock:
            if ids is None:
                self._documents, self._numbers, self._index, self._content = {}, {}, None, 0
                return True
            numbers = [self._numbers.pop(one) for one in dict.fromkeys(ids) if one in self._numbers]
            for number in numbers:
                self._content ^= _checksum(self._documents.pop(number))
            if numbers:
                self._index.remove_ids(np.array(numbers, np.int64))
                self._fit()
        return True

    def update(self, folder: str | Path) -> Changes:
        """Bring the store up to date with a folder: only what changed is embedded, and what is gone is deleted.

        Raises:
            InputError: There is no such folder, or no code in it.
        """
        origin = self._origin(folder)
        found = {}
        for snippet in read_folder(folder):
            snippet.id = _prefix(origin) + str(snippet.id)
            snippet.metadata["origin"] = origin
            found[snippet.id] = snippet
        with self._lock:
            before = {str(one.id): one for one in self._documents.values() if one.metadata.get("origin") == origin}
        gone = [one for one in before if one not in found]
        changed = [one for one in found.values() if before.get(str(one.id)) != one]
        self.add_documents(changed)
        self.delete(gone)
        updated = sum(str(one.id) in before for one in changed)
        return Changes(len(changed) - updated, updated, len(gone), len(found) - len(changed))

    def _origin(self, folder: str | Path) -> str:
        """How snippets say which folder they are from."""
        origin = str(Path(folder).expanduser().resolve())
        return _HERE if origin == _home(self.folder) else origin

    def _put(self, documents: list[Document], vectors: Vectors) -> None:
        if self._index is None:
            self._index = _flat(vectors.shape[1])
        if vectors.shape[1] != self._index.d:
            raise InputError(f"These vectors have {vectors.shape[1]} numbers; those of the store have {self._index.d}.")
        self.delete([str(document.id) for document in documents])
        numbers = range(self._next, self._next + len(documents))
        self._next += len(documents)
        self._index.add_with_ids(vectors, np.array(numbers, np.int64))
        for document in documents:
            self._content ^= _checksum(document)
        self._documents |= dict(zip(numbers, documents, strict=True))
        self._numbers |= {str(document.id): number for number, document in zip(numbers, documents, strict=True)}
        self._fit()

    def _fit(self) -> None:
        """Have the kind of index that suits the number of snippets; cells are made anew where they became too few."""
        near, cells = len(self) >= self._approximate_from, _cells(self._index)
        if near == bool(cells) and cells * cells * 2 >= len(self) * near:
            return
        numbers = np.array(list(self._documents), np.int64)
        vectors = self._index.reconstruct_batch(numbers)
        self._index = _approximate(vectors, numbers) if near else _flat(self._index.d)
        if not near:
            self._index.add_with_ids(vectors, numbers)

    def _vectors(self, texts: list[str]) -> Vectors:
        if isinstance(self._embedding, OfflineEmbeddings):
            return self._embedding.documents(
                texts
            )  # Of the right length already; a query says which part of them counts.
        return _units(np.array(self._embedding.embed_documents(texts), np.float32))

    # -- searching ----------------------------------------------------------------------------------------------------

    def similarity_search(self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        """The snippets nearest to a query, best first.

        Args:
            query: What is looked for, in any language that the embeddings know.
            k: How many at most.
            filter: Metadata they must have, or a function of a document; exact at any rarity.
            **kwargs: `score_threshold`, the least score.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, filter, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Filter | None = None,  # noqa: A002
        *,
        score_threshold: float | None = None,
        **kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """The same with their scores, from 1 for the same text to about 0."""
        found = self._search(self._query(query), k, filter)
        least = -np.inf if score_threshold is None else score_threshold
        return [(document, score) for document, score in found if score >= least]

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: Filter | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """The snippets nearest to a vector."""
        return [document for document, _ in self._search(self._asked(embedding), k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """Snippets that are near to a query and unlike each other.

        Args:
            query: What is looked for.
            k: How many at most.
            fetch_k: Among how many of the nearest they are chosen.
            lambda_mult: From 0 for the most unlike to 1 for the nearest.
            filter: As for `similarity_search`.
            **kwargs: Ignored.
        """
        return self._diverse(self._query(query), k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,  # noqa: A002
        **kwargs: Any,
    ) -> list[Document]:
        """The same for a vector."""
        return self._diverse(self._asked(embedding), k, fetch_k, lambda_mult, filter)

    def _query(self, query: str) -> Vectors:
        if isinstance(self._embedding, OfflineEmbeddings):
            return self._embedding.query(query)
        return self._asked(self._embedding.embed_query(query))

    def _asked(self, vector: Sequence[float]) -> Vectors:
        given = np.array(vector, np.float32)
        return given if isinstance(self._embedding, OfflineEmbeddings) else _units(given)

    def _search(self, vector: Vectors, k: int, allowed: Filter | None) -> list[tuple[Document, float]]:
        with self._lock:
            return [(_copy(self._documents[number]), score) for number, score in self._nearest(vector, k, allowed)]

    def _diverse(self, vector: Vectors, k: int, fetch_k: int, weight: float, allowed: Filter | None) -> list[Document]:
        with self._lock:
            found = self._nearest(vector, max(k, fetch_k), allowed)
            vectors = np.array([self._index.reconstruct(number) for number, _ in found])
            documents = [self._documents[number] for number, _ in found]
        if found and isinstance(self._embedding, OfflineEmbeddings):
            vectors = vectors[:, : OfflineEmbeddings.ENGLISH]
        scores = np.array([score for _, score in found], np.float32)
        return [_copy(documents[place]) for place in _diverse(scores, vectors, k, weight)]

    def _nearest(self, vector: Vectors, k: int, allowed: Filter | None) -> list[tuple[int, float]]:
        """Numbers and scores; what they stand for may be gone as soon as the lock is free."""
        if self._index is None or k < 1:
            return []
        if vector.shape != (self._index.d,):
            raise InputError(f"The vector has {vector.size} numbers; those of the store have {self._index.d}.")
        numbers = None if allowed is None else [n for n, one in self._documents.items() if _passes(one, allowed)]
        if numbers == []:
            return []
        scores, found = self._index.search(vector[None], min(k, len(self)), params=_parameters(self._index, numbers))
        return [(int(number), float(score)) for number, score in zip(found[0], scores[0], strict=True) if number >= 0]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: min(1.0, max(0.0, score))


def _checked(document: Document, given: str | None) -> Document:
    try:
        metadata = json.loads(json.dumps(document.metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The metadata of a snippet must be JSON: {error}.") from error
    return Document(document.page_content, metadata=metadata, id=given or document.id or digest(document))


def _checksum(document: Document) -> int:
    return int(hashlib.sha256(f"{document.id} {digest(document)}".encode("utf-8", "replace")).hexdigest(), 16)


def _home(index: Path | None) -> str | None:
    """The folder of code whose index lies inside it, and may be moved with it."""
    return str(index.absolute().parent.resolve()) if index is not None and index.name == INSIDE else None


def _prefix(origin: str) -> str:
    """What the ids of snippets of a folder begin with."""
    return "./" if origin == _HERE else f"{hashlib.sha256(origin.encode('utf-8', 'replace')).hexdigest()[:8]}/"


def _placed(documents: Mapping[int, Document], before: str | None, after: str | None) -> dict[int, Document]:
    """Snippets as an index inside one folder names them, from how an index inside another did.

    The folder that the index lies in is ".", so that both may be moved; all others are named by their paths.
    """

    def one(document: Document) -> Document:
        origin = document.metadata.get("origin")
        path = before if origin == _HERE else origin
        named = _HERE if path == after else path
        if not isinstance(origin, str) or not isinstance(named, str) or named == origin:
            return document
        if not str(document.id).startswith(_prefix(origin)):
            return document
        metadata = {**document.metadata, "origin": named}
        name = _prefix(named) + str(document.id).removeprefix(_prefix(origin))
        return Document(document.page_content, metadata=metadata, id=name)

    return {number: one(document) for number, document in documents.items()}


def _searched(document: Document) -> str:
    return str(document.metadata.get("about") or document.page_content)


def _copy(document: Document) -> Document:
    return document.model_copy(deep=True)


def _passes(document: Document, allowed: Filter) -> bool:
    if callable(allowed):
        return bool(allowed(document))
    return all(_matches(document.metadata.get(key), wanted) for key, wanted in allowed.items())


def _matches(value: object, wanted: object) -> bool:
    """Whether a value is wanted, or one of several; of a list any element."""
    if value == wanted or (isinstance(value, list) and any(_matches(one, wanted) for one in value)):
        return True
    if not isinstance(wanted, Collection) or isinstance(wanted, str | Mapping):
        return False
    return value in wanted if isinstance(value, Hashable) else any(value == one for one in wanted)


def _units(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    units: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return units


def _diverse(scores: Vectors, vectors: Vectors, k: int, weight: float) -> list[int]:
    """Places of what is near and unlike what was chosen before (maximal marginal relevance, Carbonell and Goldstein 1998).

    LangChain's own function works out how near things are from whole vectors, of which an offline query asks but one part.
    """
    chosen: list[int] = []
    likeness = np.zeros(len(scores), np.float32)
    while len(chosen) < min(k, len(scores)):
        worth = weight * scores - (1 - weight) * likeness
        worth[chosen] = -np.inf
        chosen.append(int(np.argmax(worth)))
        likeness = np.maximum(likeness, vectors @ vectors[chosen[-1]])
    return chosen


# -- FAISS ---------------------------------------------------------------------------------------------------------------


def _faiss() -> Any:
    """FAISS, imported on use; its stubs do not know all that it has."""
    return importlib.import_module("faiss")


def _flat(size: int) -> Any:
    faiss = _faiss()
    return faiss.IndexIDMap2(faiss.IndexFlatIP(size))


def _cells(index: Any) -> int:
    """In how many cells an approximate index looks; 0 for an exact one."""
    return int(index.nlist) if isinstance(index, _faiss().IndexIVFFlat) else 0


def _approximate(vectors: Vectors, numbers: Any) -> Any:
    """An inverted index: as many cells as the root of the number of vectors, a tenth of them searched."""
    faiss = _faiss()
    size, cells = vectors.shape[1], max(1, round(float(np.sqrt(len(vectors)))))
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(size), size, cells, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.set_direct_map_type(faiss.DirectMap.Hashtable)
    index.add_with_ids(vectors, numbers)
    index.nprobe = max(1, cells // 10)
    return index


def _parameters(index: Any, numbers: Sequence[int] | None) -> Any:
    """What a search is told about a filter; then all cells are searched, so that nothing is missed."""
    if numbers is None:
        return None
    faiss = _faiss()
    selector = faiss.IDSelectorBatch(np.array(numbers, np.int64))
    if _cells(index):
        return faiss.SearchParametersIVF(sel=selector, nprobe=index.nlist)
    return faiss.SearchParameters(sel=selector)


# -- files ---------------------------------------------------------------------------------------------------------------


def is_saved(folder: Path) -> bool:
    """Whether a store was saved in a folder."""
    return (folder / _DOCUMENTS).is_file()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else saves into a folder, or loads from it, meanwhile."""
    from filelock import FileLock

    with FileLock(folder / "snippets.lock", timeout=_PATIENCE):
        yield


@contextmanager
def _unchanged(folder: Path) -> Iterator[None]:
    """Nobody saves into a folder meanwhile, as far as can be: a folder that cannot be written to has no lock."""
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(_alone(folder))
        yield


# -- the curated ones ----------------------------------------------------------------------------------------------------


def curated_folder() -> Path:
    """Where the curated snippets lie: in the package, or beside it in a checkout."""
    package = Path(__file__).parent
    return next(folder for folder in (package / "curated", package.parent / "snippets") if folder.is_dir())


def curated_snippets(embedding: Embeddings | str | None = None) -> SnippetStore:
    """The store of the curated snippets that come with code_chains, embedded once and then kept in the user's cache."""
    from filelock import FileLock
    from platformdirs import user_cache_path

    embedding = resolve_embedding(embedding)
    documents = read_folder(curated_folder())
    content = "".join(sorted(digest(document) for document in documents)) + identity(embedding) + _FORMAT
    folder = user_cache_path("code_chains") / "snippets" / hashlib.sha256(content.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            with suppress(StoreError):
                return SnippetStore.load(folder, embedding)
            store = _of(documents, embedding)
            store.save(folder)
            return store
    except OSError:  # A cache that cannot be written to is no reason not to search.
        return _of(documents, embedding)


def _of(documents: list[Document], embedding: Embeddings) -> SnippetStore:
    store = SnippetStore(embedding)
    store.add_documents(documents)
    return store
