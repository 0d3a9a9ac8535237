"""How far verdicts without tests can be trusted: everyday questions with known answers, put to a real model.

    python -m benchmarks.verdicts [--model local:0.5b] [--ways plain,verify] [--part unseen] [--every N] [--log FILE]

The questions are those of `benchmarks.everyday`. Nothing was written or tuned with those that are
`unseen`. With `--log`, what was asked is kept and not asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.answers import Outcome, ask, grouped, interval, logged, note, table
from benchmarks.everyday import DEVELOPMENT, QUESTIONS, UNSEEN
from code_chains import Data, Repair, create_code_chain
from code_chains.models import resolve_model

WAYS: dict[str, dict[str, Any]] = {
    "bare": {"solve": Repair(1), "checks": "none", "data": Data(paste=False)},
    "plain": {},
    "snippets": {"snippets": True},
    "verify": {"verify": True},
    "verify by 1.5B": {"verify": "local:1.5b"},
}
STATUSES = ("plausible", "unverified", "failed", "error")
HEAD = ("way", "verdict", "questions", "right", "share right, 95 %", "model calls", "seconds")
PARTS = {"all": QUESTIONS, "development": DEVELOPMENT, "unseen": UNSEEN}


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each way and verdict."""
    for way, ones in grouped(outcomes).items():
        for status in (None, *STATUSES):
            group = [one for one in ones if status in (None, one.status)]
            right = sum(one.right for one in group)
            spent = (sum(one.calls for one in group), f"{sum(one.seconds for one in group):.0f}")
            if group:
                yield way, status or "**all**", len(group), right, interval(right, len(group)), *spent


@click.command()
@click.option("--model", default="local:0.5b", help="Whatever create_code_chain takes.")
@click.option("--ways", default="plain,verify", help=f"Some of {', '.join(WAYS)}.")
@click.option("--part", default="unseen", type=click.Choice(list(PARTS)), help="Which questions.")
@click.option("--every", default=1, help="Only every nth of them.")
@click.option("--seed", default=7, help="The seed of the model.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to go on from.")
def main(model: str, ways: str, part: str, every: int, seed: int, log: Path | None) -> None:
    """Ask all questions in each way, and print the table."""
    chosen, name, questions = ways.split(","), f"{model} seed={seed}", PARTS[part][::every]
    known = {(one.group, one.task): one for one in logged(log, name)}
    for way in chosen:
        with create_code_chain(resolve_model(model, seed=seed), interpret=False, **WAYS[way]) as chain:
            for question in questions:
                if (way, question.id) not in known:
                    one = known[way, question.id] = ask(chain, way, question)
                    note(one, name, log)
    table(HEAD, rows([known[way, question.id] for way in chosen for question in questions]))


if __name__ == "__main__":
    main()
