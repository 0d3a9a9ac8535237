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

from code_chains import create_code_chain

SALES = "region,product,amount\nnorth,apple,10\nsouth,apple,32\nnorth,pear,7\neast,pear,15\nsouth,plum,4\n"
QUESTIONS: tuple[tuple[str, str], ...] = (
    ("What is the sum of the numbers from 1 to 5?", r"\b15\b"),
    ("What is the 20th Fibonacci number, if the first two are 1 and 1?", r"\b6,?765\b"),
    ("How many prime numbers are there below 100?", r"\b25\b"),
    ("How many times does the letter r occur in 'strawberry raspberry'?", r"\b6\b"),
    ("What weekday was 20 July 1969?", r"(?i)sunday"),
    (
        "1000 euros grow by 5 percent a year. How much are they after 10 years, rounded to cents?",
        r"1,?628\.89",
    ),
    ("Reverse the words of the sentence 'the quick brown fox'.", r"fox brown quick the"),
    ("¿Cuál es el máximo común divisor de 462 y 1071?", r"\b21\b"),
    ("Which region sold most in sales.csv, and how much?", r"(?is)south.*36|36.*south"),
    (
        "Was ist die Standardabweichung (Grundgesamtheit) von 2, 4, 4, 4, 5, 5, 7, 9?",
        r"\b2([.,]0+)?(?![.,]?\d)(?!,)",
    ),
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
