"""Examples that help: search them in any language, let the model see them, learn from verified answers."""

from tempfile import TemporaryDirectory

from code_chains import SnippetStore, create_code_chain
from code_chains.snippets import curated_snippets

for found in curated_snippets().similarity_search("¿Qué palabra se lee igual al revés?", k=2):
    print(found.metadata["source"], "-", found.metadata["about"])

mine = SnippetStore.from_texts(
    ["def area(radius):\n    return 3.14159 * radius**2\n"],
    metadatas=[{"about": "Area of a circle.", "source": "circle.py"}],
)
with TemporaryDirectory() as folder:
    mine.save(folder)
    chain = create_code_chain("local", snippets=folder, learn=True)
    result = chain.invoke({"query": "Write a function area(radius) for circles.", "examples": [(1, 3.14159)]})
    print(result["verdict"].status, [source.name for source in result["sources"]], result["learned"])
