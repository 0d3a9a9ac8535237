"""query, (translation, standalone_question, history, context) -> context, sources."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStore
from pydantic import PrivateAttr

from code_chains.chains.base import Config, Flow, Invoke, State, StreamingChain
from code_chains.chains.generate import HELP, to_text
from code_chains.errors import BudgetError, ConfigurationError
from code_chains.inputs import FencedText, check_history, check_query, fenced, shortened
from code_chains.retrieval.embeddings import OfflineEmbeddings
from code_chains.retrieval.options import named_options
from code_chains.retrieval.prose import is_prose
from code_chains.retrieval.references import distinct_texts, is_reference
from code_chains.retrieval.search import SnippetSearch
from code_chains.retrieval.store import SnippetStore
from code_chains.state import Source

_log = logging.getLogger(__name__)
MIN_OFFLINE_SCORE = 0.4
"""Default threshold for the offline embeddings, from a measurement: an unrelated example misleads a model."""
MIN_CURATED_SCORE = 0.575
"""Threshold for the curated snippets, which keeps most of them away from everyday questions that need none: 18 of 210
held-out ones are shown one (133 at 0.4). Of 160 questions that a snippet answers 38 are shown it, and 1 is shown another."""
REFERENCES = 3
"""References of functions at most, for each example at most: a question may need several, and they are short."""
MAX_PACKAGE_CHARS = 12_000
"""A package whose references are no longer is shown as a whole: nothing that a question needs can be missed then. They are
some 3,500 tokens, which leave room for the rest in the smallest context of a supported model, 8,192."""
_SEARCHED = 5
"""Snippets that are searched for, for each example at most, so that both kinds are among them."""
MAX_EXAMPLE_CHARS, MAX_TASK_CHARS = 3000, 300
_EXAMPLES = (
    "Worked examples of other tasks. The values in them belong to those tasks: only the values of the question count,"
    " so adapt the program."
)
_FUNCTIONS = (
    "Functions that are installed. Import and call those that answer the question, instead of writing them again, with each"
    " option that it asks for. They return objects of the types shown: print the attribute that is asked for."
)
_OPTIONS = "Words of the question may mean these options:"


class RetrieveChain(StreamingChain):
    """Retrieve examples that may help to answer a question.

    Reads `query`, or its `translation` into English if present, or the `standalone_question` that it is in its conversation.
    A retriever that is down costs a sentence in `notes`, not the question. Adds `context`, the examples as text (after
    the input `context`, if any), and `sources`, their origins. Documents that say what they are `about` in
    their metadata become worked examples, a task with its program; sections of documentation are shown as they are;
    references of a package (see `SnippetStore.from_package`) become the functions that are installed. Of a small
    package, up to 12,000 characters, all references are shown as soon as one is found, in an order that is always the
    same, so that providers and local models can cache the prompt. All of them are untrusted text: the model sees each
    in a fence, as data.

    Args:
        retriever: A LangChain retriever or another Runnable from text to documents, or a vector store, which
            is searched for the `k` nearest documents; or a Runnable from `input` and `chat_history`, such as
            `create_history_aware_retriever` makes.
        k: Number of examples at most; of references three times as many.
        min_score: Minimum score of an example from a `SnippetStore`. None means a measured default with
            `OfflineEmbeddings`, and no minimum with other embeddings, whose scores are not comparable. A
            reference needs half of it, and what the question names none.

    Raises:
        ConfigurationError: The retriever is of another type, or does not return documents; `k` is below 1; or
            `min_score` is used with anything but a `SnippetStore`.

    Example:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = SnippetStore.from_texts(["print(sum([1, 2]))"], DeterministicFakeEmbedding(size=64), ids=["sum"])
        >>> RetrieveChain(store).invoke({"query": "print(sum([1, 2]))"})["sources"][0].name
        'sum'
    """

    input_keys: ClassVar[list[str]] = ["query"]
    optional_keys: ClassVar[list[str]] = ["translation", "standalone_question", "history", "context"]
    output_keys: ClassVar[list[str]] = ["context", "sources"]

    name: str | None = "retrieve"
    retriever: Runnable[str, Any]
    k: int = 2
    min_score: float | None = None
    _store: SnippetSearch | None = PrivateAttr(default=None)

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
        store = retriever if isinstance(retriever, SnippetStore) else None
        if store is None and min_score is not None:
            raise ConfigurationError(
                "min_score",
                min_score,
                "a SnippetStore as retriever, or no min_score",
                because="only its scores are known to be cosines",
            )
        if store is not None and min_score is None and isinstance(store.embeddings, OfflineEmbeddings):
            min_score = MIN_OFFLINE_SCORE
        if isinstance(retriever, VectorStore):
            search_kwargs: dict[str, Any] = {"k": k}
            if store is not None:
                search_kwargs |= {"k": _SEARCHED * k, "with_scores": True}
            if min_score is not None:
                search_kwargs |= {"score_threshold": min_score, "reference_threshold": min_score / 2}
            retriever = retriever.as_retriever(search_kwargs=search_kwargs)
        if not isinstance(retriever, Runnable):
            raise ConfigurationError(
                "retriever", retriever, "a LangChain retriever, other Runnable or vector store"
            )
        super().__init__(**{"retriever": retriever, "k": k, "min_score": min_score, **kwargs})
        self._store = store

    def _flow(self, values: State, config: Config) -> Flow:
        query = str(
            values.get("translation") or values.get("standalone_question") or check_query(values["query"])
        )
        asked: Any = query
        if takes_history(self.retriever):
            asked = {"input": check_query(values["query"]), "chat_history": _messages(values.get("history"))}
        try:
            documents = _checked((yield Invoke(self.retriever, asked, config)))
        except (BudgetError, ConfigurationError):
            raise
        except Exception as error:  # Any error of a retriever, which is somebody else's.
            _log.warning("Nothing was retrieved: %s", error, exc_info=error)
            documents = []
            yield {
                "notes": [f"Nothing was retrieved, since the retriever failed with {type(error).__name__}."]
            }
        references = self._references(documents)
        examples = [one for one in documents if not is_reference(one) and not one.metadata.get("failure")]
        examples = examples[: self.k]
        given = to_text("context", values) if values.get("context") else ""
        yield {
            "context": _context(query, given, examples, references),
            "sources": tuple(map(_source, [*examples, *references])),
        }

    def _references(self, documents: list[Document]) -> list[Document]:
        """Return the references to show: all of a small package, or else the nearest."""
        nearest = list(filter(is_reference, documents))[: REFERENCES * self.k]
        if not nearest or self._store is None:
            return nearest
        return self._store.all_references(MAX_PACKAGE_CHARS) or nearest


def takes_history(retriever: Runnable[Any, Any]) -> bool:
    """Return whether a retriever takes `input` and `chat_history`, as its schema says, and condenses questions itself."""
    fields: Mapping[str, object] = getattr(retriever.get_input_schema(), "model_fields", {})
    return {"input", "chat_history"}.issubset(fields)


def _messages(history: Any) -> list[BaseMessage]:
    said = check_history(history) if history else []
    return [HumanMessage(said)] if isinstance(said, str) else list(said)


def _checked(documents: object) -> list[Document]:
    if not isinstance(documents, list | tuple) or not all(
        isinstance(document, Document) for document in documents
    ):
        raise ConfigurationError("retriever", documents, "a retriever that returns a list of documents")
    return list(documents)


def _context(query: str, given: str, examples: list[Document], references: list[Document]) -> FencedText:
    """Return what the model is shown; of this the values in references may be used."""
    shown = [document for document in examples if _about(document) and not is_prose(document)]
    told = [f"{_origin(document)}{_text(document)}" for document in examples if document not in shown]
    tasks = list(map(_task, shown))
    others = [_section(HELP, [given, *told] if given else told), _section(_EXAMPLES, tasks)]
    functions = "\n\n".join(distinct_texts(references))
    # Invariant: the same functions are always the same text, so that it can be cached; what depends on the question follows.
    named = "\n".join(named_options(query, functions))
    sections = [_section(_FUNCTIONS, [functions]), _section(_OPTIONS, [named]), *others]
    return FencedText("\n\n".join(filter(None, sections)), examples="\n".join([given, *told, *tasks]))


def _section(heading: str, texts: list[str]) -> str:
    return "\n".join([heading, *map(fenced, texts)]) if any(texts) else ""


def _task(document: Document) -> str:
    output = f"\nIt prints:\n{document.metadata['output']}" if document.metadata.get("output") else ""
    return f"Task: {_about(document)}\nProgram:\n{_text(document)}{output}"


def _about(document: Document) -> str:
    return shortened(" ".join(str(document.metadata.get("about") or "").split()), MAX_TASK_CHARS)


def _text(document: Document) -> str:
    return shortened(document.page_content.strip(), MAX_EXAMPLE_CHARS)


def _origin(document: Document) -> str:
    """Return where a passage is from, as a line before it, so that a model can cite it."""
    name = " ".join(str(document.metadata.get("source") or "").split())
    return f"[{shortened(name, MAX_TASK_CHARS)}]\n" if name else ""


def _source(document: Document) -> Source:
    metadata = document.metadata
    name = metadata.get("source") or document.id or "unnamed"
    return Source(
        str(name),
        str(metadata.get("about") or metadata.get("title") or ""),
        document.page_content[:MAX_EXAMPLE_CHARS],
        _score(metadata),
        {key: value for key, value in metadata.items() if isinstance(value, str | int | float | bool | None)},
    )


def _score(metadata: Mapping[str, Any]) -> float | None:
    """Return how near a document is, where its retriever says that; a reranker does as well."""
    scores = (metadata.get(name) for name in ("score", "relevance_score"))
    return next((float(score) for score in scores if isinstance(score, int | float)), None)
