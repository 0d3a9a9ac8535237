"""Ten everyday questions, put to a model, with how many come out right.

Usage: python -m benchmarks.questions [MODEL]
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.corpora import read_corpus
from code_chains import create_code_chain

SALES = "region,product,amount\nnorth,apple,10\nsouth,apple,32\nnorth,pear,7\neast,pear,15\nsouth,plum,4\n"
QUESTIONS: tuple[tuple[str, str], ...] = tuple(
    (entry["question"], entry["pattern"]) for entry in read_corpus("questions")
)


def main(model: str) -> None:
    """Ask and print the table."""
    right = 0
    print("| question | output | answer right | attempts | s |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, create_code_chain(model) as chain:
        sales = Path(folder) / "sales.csv"
        sales.write_text(SALES)
        for question, pattern in QUESTIONS:
            state: dict[str, Any] = {"query": question}
            if "sales.csv" in question:
                state["files"] = {"sales.csv": sales}
            began = time.monotonic()
            result = chain.invoke(state)
            ok = bool(re.search(pattern, result["output"]) and re.search(pattern, result["answer"]))
            right += ok
            seen = result["output"] or result["execution"].summary
            cells = (
                question,
                " ".join(seen.split())[:60],
                "yes" if ok else f"**no**: {result['answer'][:110]}",
            )
            seconds = f"{time.monotonic() - began:.1f}"
            print(
                "| " + " | ".join((*cells, str(len(result["attempts"])), seconds)).replace("\n", " ") + " |"
            )
    print(f"\n{right} of {len(QUESTIONS)} right with {model}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "local:0.5b")
