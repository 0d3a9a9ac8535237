"""Retrieve examples in any language, show them to the model, learn from verified answers."""

import argparse
from tempfile import TemporaryDirectory

from langchain_core.language_models import BaseChatModel

from code_chains import Snippets, SnippetStore, create_code_chain
from code_chains.retrieval.curated import curated_snippets


def main(model: str | BaseChatModel = "local") -> None:
    """Search, then ask with an example in the prompt."""
    for snippet in curated_snippets().similarity_search("¿Cuántos días hay entre dos fechas?", k=2):
        print(snippet.metadata["source"], "-", snippet.metadata["about"])

    mine = SnippetStore.from_texts(
        ["def area(radius):\n    return 3.14159 * radius**2\n"],
        metadatas=[{"about": "Area of a circle.", "source": "circle.py"}],
    )
    question = {"query": "Write a function area(radius) for circles.", "examples": [(1, 3.14159)]}
    with TemporaryDirectory() as folder:
        mine.save(folder)
        with create_code_chain(model, snippets=Snippets(folder, learn=True)) as chain:
            result = chain.invoke(question)
    print(result["verdict"].status, [source.name for source in result["sources"]], result["learned"])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    main(**vars(options.parse_args()))
