"""Five turns in Spanish over a CSV, with a plot, in one state; then saved as a notebook that runs."""

import sys
from pathlib import Path
from tempfile import mkdtemp

from code_chains import create_code_chain
from code_chains.export import export

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

folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp())
(folder / "ventas.csv").write_text(SALES)

with create_code_chain("local") as chain:
    for question in QUESTIONS:
        turn = chain.invoke({"query": question, "session_id": "clase", "files": {"ventas.csv": folder / "ventas.csv"}})
        print(f"- {question}\n  {turn['answer']}")
    for path in export(chain.turns("clase"), folder / "tutorial.ipynb"):
        print(path.name)
