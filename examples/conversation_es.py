"""Five turns in Spanish about a CSV, with a plot, in one session; exported as a notebook that runs."""

import argparse
import tempfile
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from code_chains import create_code_chain
from code_chains.conversations.export import export

QUESTIONS = (
    "Carga ventas.csv en un DataFrame llamado df e imprime cuántas filas tiene.",
    "¿Cuál es el importe total por región?",
    "¿Qué mes tuvo el importe más alto?",
    "Ahora dibuja un gráfico de barras del importe total por región.",
    "¿Cuál es la media del importe?",
)
SALES = """\
mes,region,importe
enero,norte,67
enero,sur,122
marzo,norte,147
marzo,sur,163
abril,norte,110
abril,sur,97
"""


def main(model: str | BaseChatModel = "local", folder: str | None = None) -> None:
    """Ask, then export the conversation to a folder; by default a new one, as nothing of yours must be overwritten."""
    folder = folder or tempfile.mkdtemp(prefix="code_chains-example-")
    data = Path(folder, "ventas.csv")
    data.write_text(SALES)

    with create_code_chain(model) as chain:
        for question in QUESTIONS:
            turn = chain.invoke({"query": question, "session_id": "clase", "files": {"ventas.csv": data}})
            print(f"- {question}\n  {turn['answer']}")
        for path in export(chain.turns("clase"), Path(folder, "tutorial.ipynb")):
            print(path)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    options.add_argument("folder", nargs="?", help="where the notebook goes; by default a new folder")
    main(**vars(options.parse_args()))
