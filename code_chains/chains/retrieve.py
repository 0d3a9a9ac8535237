"""query, (translation, context) -> context, sources."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from code_chains.chains.base import Call, Config, Piece, Program, State
from code_chains.chains.generate import plain
from code_chains.embeddings import OfflineEmbeddings
from code_chains.errors import ConfigurationError
from code_chains.inputs import check_query, shortened
from code_chains.snippets import SnippetStore
from code_chains.state import Source

__all__ = ["RetrieveChain"]

_NEAR = 0.4
"""The least score, measured for the offline embeddings, of a snippet that is shown to a model. An example that has nothing
to do with the question misleads it."""
_LONGEST = 3000


class RetrieveChain(Piece):
    """Finds examples that may help to answer a question.

    Reads `query`, or its `translation` into English where there is one. Adds `context`, the examples as text (after the
    `context` that was given, if any), and `sources`, which says where each is from. Examples are text from strangers: the
    model sees them fenced, as data.

    Args:
        retriever: Any LangChain retriever or other Runnable from text to documents, or a vector store, of which the `k`
            nearest are taken.
        k: How many examples at most.
        near: Of a `SnippetStore` the least score of an example; None for what was measured for `OfflineEmbeddings`, and for
            any score with other embeddings, whose scores mean something else.

    Raises:
        ConfigurationError: The retriever is none, or gives no documents; `k` is below 1; or `near` is said of something
            else than a `SnippetStore`.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = SnippetStore.from_texts(["print(sum([1, 2]))"], DeterministicFakeEmbedding(size=64))
        >>> RetrieveChain(store).invoke({"query": "print(sum([1, 2]))"})["context"]
        'print(sum([1, 2]))'
    """

    name: str | None = "retrieve"
    retriever: Runnable[str, Any]
    k: int = 2
    near: float | None = None

    def __init__(
        self, retriever: Runnable[str, Any] | VectorStore, *, k: int = 2, near: float | None = None, **kwargs: Any
    ) -> None:
        if k < 1:
            raise ConfigurationError("k", k, "1 or more")
        if isinstance(retriever, SnippetStore):
            near = _NEAR if near is None and isinstance(retriever.embeddings, OfflineEmbeddings) else near
        elif near is not None:
            raise ConfigurationError("near", near, "it with a SnippetStore, whose scores are cosines")
        if isinstance(retriever, VectorStore):
            least = {} if near is None else {"score_threshold": near}
            retriever = retriever.as_retriever(search_kwargs={"k": k, **least})
        if not isinstance(retriever, Runnable):
            raise ConfigurationError("retriever", retriever, "a LangChain retriever, other Runnable or vector store")
        super().__init__(**{"retriever": retriever, "k": k, "near": near, **kwargs})

    @property
    def input_keys(self) -> list[str]:
        """It needs the question."""
        return ["query"]

    @property
    def optional_keys(self) -> list[str]:
        """It uses what else is known."""
        return ["translation", "context"]

    @property
    def output_keys(self) -> list[str]:
        """It adds the examples."""
        return ["context", "sources"]

    def _program(self, values: State, config: Config) -> Program:
        query = values.get("translation") or check_query(values["query"])
        found = _documents((yield Call(self.retriever, query, config)))[: self.k]
        given = [plain("context", values)] if values.get("context") else []
        yield {"context": "\n\n".join([*given, *map(_shown, found)]), "sources": tuple(map(_source, found))}


def _documents(found: object) -> list[Document]:
    if not isinstance(found, list | tuple) or not all(isinstance(one, Document) for one in found):
        raise ConfigurationError("retriever", found, "one that gives a list of documents")
    return list(found)


def _shown(document: Document) -> str:
    about = " ".join(str(document.metadata.get("about") or "").split())
    return f"{f'# {about}' if about else ''}\n{shortened(document.page_content.strip(), _LONGEST)}".strip()


def _source(document: Document) -> Source:
    metadata = document.metadata
    name = metadata.get("source") or document.id or "unnamed"
    return Source(str(name), str(metadata.get("about") or metadata.get("title") or ""))
