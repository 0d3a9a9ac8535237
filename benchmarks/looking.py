"""Questions about messy files, put to a real model: without profiles of the files, with them, and with iteration as well.

    python -m benchmarks.looking [--model local:1.5b] [--ways without,profiles,iterate] [--seed 7] [--log FILE]

The files and questions are those of `benchmarks.messy`, which nothing was developed with. With `--log`, what was asked is
kept and not asked again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.answers import Outcome, grouped, logged, note, outcome, table
from benchmarks.messy import QUESTIONS, MessyQuestion, write_files
from code_chains import Budget, Data, Iterate, create_code_chain
from code_chains.models import resolve_model

MAX_SECONDS = 300
"""A question that takes longer is not answered."""
WAYS: dict[str, dict[str, Any]] = {
    "without": {"data": Data(profile=False)},
    "profiles": {},
    "iterate": {"solve": Iterate()},
}
HEAD = (
    "way",
    "questions",
    "right",
    "wrong, unsaid",
    "says it failed",
    "model calls",
    "output tokens",
    "seconds",
)


def ask(chain: Any, way: str, question: MessyQuestion, folder: Path) -> Outcome:
    """Put one question to a chain."""
    state = {"query": question.query, "files": {question.file: folder / question.file}}
    return outcome(
        way, question.query, lambda: chain.invoke(state), lambda result: question.right(result["output"])
    )


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each way."""
    for way, ones in grouped(outcomes).items():
        told = [one for one in ones if one.status in ("failed", "error")]
        right = sum(one.right for one in ones if one not in told)
        spent = (sum(one.calls for one in ones), sum(one.tokens for one in ones))
        seconds = f"{sum(one.seconds for one in ones):.0f}"
        yield way, len(ones), right, len(ones) - right - len(told), len(told), *spent, seconds


@click.command()
@click.option("--model", default="local:1.5b", help="Whatever create_code_chain takes.")
@click.option("--ways", default=",".join(WAYS), help=f"Some of {', '.join(WAYS)}.")
@click.option("--seed", default=7, help="The seed of the model.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to go on from.")
def main(model: str, ways: str, seed: int, log: Path | None) -> None:
    """Ask all questions in each way, and print the table."""
    chosen, name = ways.split(","), f"{model} seed={seed}"
    known = {(one.group, one.task): one for one in logged(log, name)}
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for way in chosen:
            budget = Budget(seconds=MAX_SECONDS, per="question")
            with create_code_chain(
                resolve_model(model, seed=seed), interpret=False, budget=budget, **WAYS[way]
            ) as chain:
                for question in QUESTIONS:
                    if (way, question.query) not in known:
                        one = known[way, question.query] = ask(chain, way, question, Path(folder))
                        note(one, name, log)
    outcomes = [known[way, question.query] for way in chosen for question in QUESTIONS]
    table(HEAD, rows(outcomes))
    for one in outcomes:
        verdict = "right" if one.right else "WRONG"
        print(f"- {one.group}: {verdict}, {one.status}: {one.task} -> {' '.join(one.output.split())[:150]}")


if __name__ == "__main__":
    main()
