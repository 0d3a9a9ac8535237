"""query, (translation, context) -> context, sources."""

from __future__ import annotations

from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore

from code_chains.chains.base import Config, Flow, Invoke, State, StreamingChain
from code_chains.chains.generate import to_text
from code_chains.errors import ConfigurationError
from code_chains.inputs import check_query, shortened
from code_chains.retrieval.embeddings import OfflineEmbeddings
from code_chains.retrieval.store import SnippetStore
from code_chains.state import Source

__all__ = ["RetrieveChain"]

MIN_OFFLINE_SCORE = 0.4
"""Default threshold for the offline embeddings, from a measurement: an unrelated example misleads a model."""
MAX_EXAMPLE_CHARS = 3000


class RetrieveChain(StreamingChain):
    """Retrieve examples that may help to answer a question.

    Reads `query`, or its `translation` into English if present. Adds `context`, the examples as text (after
    the input `context`, if any), and `sources`, their origins. Examples are untrusted text: the model sees
    them fenced, as data.

    Args:
        retriever: A LangChain retriever or another Runnable from text to documents, or a vector store, which
            is searched for the `k` nearest documents.
        k: Number of examples at most.
        min_score: Minimum score of an example from a `SnippetStore`. None means a measured default with
            `OfflineEmbeddings`, and no minimum with other embeddings, whose scores are not comparable.

    Raises:
        ConfigurationError: The retriever is of another type, or does not return documents; `k` is below 1; or
            `min_score` is used with anything but a `SnippetStore`.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = SnippetStore.from_texts(["print(sum([1, 2]))"], DeterministicFakeEmbedding(size=64))
        >>> RetrieveChain(store).invoke({"query": "print(sum([1, 2]))"})["context"]
        'print(sum([1, 2]))'
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["translation", "context"]
    output_keys: ClassVar[list[str]] = ["context", "sources"]

    name: str | None = "retrieve"
    retriever: Runnable[str, Any]
    k: int = 2
    min_score: float | None = None

    def __init__(
        self,
        retriever: Runnable[str, Any] | VectorStore,
        *,
        k: int = 2,
        min_score: float | None = None,
        **kwargs: Any,
    ) -> None:
        if k < 1:
            raise ConfigurationError("k", k, "1 or more")
        if isinstance(retriever, SnippetStore):
            if min_score is None and isinstance(retriever.embeddings, OfflineEmbeddings):
                min_score = MIN_OFFLINE_SCORE
        elif min_score is not None:
            raise ConfigurationError(
                "min_score", min_score, "it with a SnippetStore, whose scores are cosines"
            )
        if isinstance(retriever, VectorStore):
            search_kwargs: dict[str, Any] = {"k": k}
            if min_score is not None:
                search_kwargs["score_threshold"] = min_score
            retriever = retriever.as_retriever(search_kwargs=search_kwargs)
        if not isinstance(retriever, Runnable):
            raise ConfigurationError(
                "retriever", retriever, "a LangChain retriever, other Runnable or vector store"
            )
        super().__init__(**{"retriever": retriever, "k": k, "min_score": min_score, **kwargs})

    def _flow(self, values: State, config: Config) -> Flow:
        query = values.get("translation") or check_query(values["query"])
        documents = _checked((yield Invoke(self.retriever, query, config)))[: self.k]
        paragraphs = [to_text("context", values)] if values.get("context") else []
        paragraphs += map(_format_for_model, documents)
        yield {"context": "\n\n".join(paragraphs), "sources": tuple(map(_source, documents))}


def _checked(documents: object) -> list[Document]:
    if not isinstance(documents, list | tuple) or not all(
        isinstance(document, Document) for document in documents
    ):
        raise ConfigurationError("retriever", documents, "a retriever that returns a list of documents")
    return list(documents)


def _format_for_model(document: Document) -> str:
    about = " ".join(str(document.metadata.get("about") or "").split())
    heading = f"# {about}\n" if about else ""
    return f"{heading}{shortened(document.page_content.strip(), MAX_EXAMPLE_CHARS)}".strip()


def _source(document: Document) -> Source:
    metadata = document.metadata
    name = metadata.get("source") or document.id or "unnamed"
    return Source(str(name), str(metadata.get("about") or metadata.get("title") or ""))
