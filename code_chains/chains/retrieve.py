"""query, (translation, context) -> context, sources."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from code_chains.chains.base import Call, Config, Piece, Program, State
from code_chains.chains.generate import plain
from code_chains.errors import ConfigurationError
from code_chains.inputs import check_query, shortened
from code_chains.snippets import SnippetStore
from code_chains.state import Source

__all__ = ["RetrieveChain"]

_NEAR = 0.4
"""The least score of a snippet that is shown to a model. An example that has nothing to do with the question misleads it."""
_LONGEST = 3000


class RetrieveChain(Piece):
    """Finds examples that may help to answer a question.

    Reads `query`, or its `translation` into English where there is one. Adds `context`, the examples as text (after the
    `context` that was given, if any), and `sources`, which says where each is from. Examples are text from strangers: the
    model sees them fenced, as data.

    Args:
        retriever: Any LangChain retriever, or a vector store, of which the `k` nearest are taken; of a `SnippetStore` only
            those that are near enough.
        k: How many examples at most.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = SnippetStore.from_texts(["print(sum([1, 2]))"], DeterministicFakeEmbedding(size=64))
        >>> RetrieveChain(store).invoke({"query": "print(sum([1, 2]))"})["context"]
        'print(sum([1, 2]))'
    """

    name: str | None = "retrieve"
    retriever: BaseRetriever
    k: int = 2

    def __init__(self, retriever: BaseRetriever | VectorStore, *, k: int = 2, **kwargs: Any) -> None:
        if isinstance(retriever, VectorStore):
            near = {"score_threshold": _NEAR} if isinstance(retriever, SnippetStore) else {}
            retriever = retriever.as_retriever(search_kwargs={"k": k, **near})
        if not isinstance(retriever, BaseRetriever):
            raise ConfigurationError("retriever", retriever, "a LangChain retriever or vector store")
        super().__init__(**{"retriever": retriever, "k": k, **kwargs})

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
        found: list[Document] = (yield Call(self.retriever, query, config))[: self.k]
        given = [plain("context", values)] if values.get("context") else []
        yield {"context": "\n\n".join([*given, *map(_shown, found)]), "sources": tuple(map(_source, found))}


def _shown(document: Document) -> str:
    about = " ".join(str(document.metadata.get("about") or "").split())
    return f"{f'# {about}' if about else ''}\n{shortened(document.page_content.strip(), _LONGEST)}".strip()


def _source(document: Document) -> Source:
    metadata = document.metadata
    name = metadata.get("source") or document.id or "unnamed"
    return Source(str(name), str(metadata.get("about") or metadata.get("title") or ""))
