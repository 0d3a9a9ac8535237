"""How well a model tells questions that cannot be answered from those that can, asked apart from writing a program.

    python -m benchmarks.answerability [--model local:1.5b]

The questions without a file of `benchmarks.unanswerable`, and the everyday ones. The examples that the model is shown were
chosen by looking at all but the fifth ones.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from benchmarks.answers import interval, table
from benchmarks.corpora import read_corpus
from benchmarks.everyday import DEVELOPMENT, UNSEEN
from code_chains.chains import AnswerabilityChain
from code_chains.models import resolve_model

UNANSWERABLE = (
    "unanswerable",
    "unanswerable_more",
    "unanswerable_third",
    "unanswerable_fourth",
    "unanswerable_fifth",
)
ANSWERABLE = ("answerable", "answerable_fourth", "answerable_fifth")


def questions() -> dict[str, list[str]]:
    """Return what is asked, by where it is from."""
    asked = {}
    for name in (*UNANSWERABLE, *ANSWERABLE):
        asked[name] = [question["query"] for question in read_corpus(name) if "name" not in question]
    for name, everyday in (("everyday, development", DEVELOPMENT), ("everyday, unseen", UNSEEN)):
        asked[name] = [question.query for question in everyday]
    return asked


def told(chain: AnswerabilityChain, asked: Sequence[str]) -> int:
    """Return of how many questions the model says that something is missing."""
    return sum(chain.invoke({"query": query})["verdict"].by == "provenance" for query in asked)


@click.command()
@click.option("--model", default="local:1.5b", help="Whatever create_code_chain takes.")
def main(model: str) -> None:
    """Ask about all questions, and print the table."""
    chain, rows = AnswerabilityChain(model=resolve_model(model)), []
    for name, asked in questions().items():
        began = time.perf_counter()
        count = told(chain, asked)
        seconds = (time.perf_counter() - began) / len(asked)
        rows.append((name, len(asked), count, interval(count, len(asked)), f"{seconds:.1f}"))
        print(name, count, flush=True)
    table(("questions", "asked", "told that something is missing", "share, 95 %", "seconds each"), rows)


if __name__ == "__main__":
    main()
