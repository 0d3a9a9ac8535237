"""Answer a conversation about your own code, and cite the passages that were found: an own vector store, two turns."""

import argparse

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.vectorstores import InMemoryVectorStore

from code_chains import CodeChain, create_code_chain
from code_chains.retrieval.embeddings import OfflineEmbeddings
from code_chains.state import Source

PASSAGES = [
    Document(
        "def freight(kg):\n    '''Freight of a parcel in EUR: 4 EUR, and 1.5 EUR for each kg.'''\n    return 4 + 1.5 * kg",
        metadata={"source": "shop/freight.py", "line": 12},
    ),
    Document(
        "def express(kg):\n    '''Freight of an express parcel in EUR: twice that of a parcel, and 3 EUR.'''\n"
        "    return 2 * freight(kg) + 3",
        metadata={"source": "shop/freight.py", "line": 18},
    ),
    Document(
        "Parcels of more than 30 kg go by a forwarder, whom the office asks for a price.",
        metadata={"source": "docs/shipping.md", "line": 3},
    ),
]


def index() -> InMemoryVectorStore:
    """Return the passages in a vector store; any of LangChain's does."""
    store = InMemoryVectorStore(OfflineEmbeddings())
    store.add_documents(PASSAGES)
    return store


def cite(source: Source) -> str:
    """Return where a passage is, how near it is to the question, and its first line."""
    nearness = "" if source.score is None else f", {source.score:.2f}"
    return f"{source.name}:{source.metadata['line']}{nearness}: {source.text.splitlines()[0]}"


def ask(chain: CodeChain, question: str) -> None:
    """Ask, and print answer, verdict and passages."""
    result = chain.invoke(question, {"configurable": {"session_id": "a customer"}})
    print(f"{question}\n  {result['answer']} ({result['verdict'].status})")
    for source in result["sources"]:
        print(f"  - {cite(source)}")


def main(model: str | BaseChatModel = "local") -> None:
    """Ask twice; the second question is found by what it means after the first."""
    with create_code_chain(model, snippets=index()) as chain:
        ask(chain, "What does freight() ask for a parcel of 6 kg?")
        ask(chain, "And express?")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
