"""Runs that are killed at any instant, and resumed: each question has its own answer, once, in one of the two files."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import multiprocessing
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.batch.results_file import ResultsFile
from code_chains.batch.runner import map_questions
from code_chains.errors import CodeChainsError
from code_chains.testing import ScriptedExecutor, ScriptedModel
from tests.conftest import room

QUESTIONS = 40
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks and kills")

# The process that forks has loaded everything and has one thread: a fork of the tests' own would lack the others.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__, "genai_prices.data"])


def ask(path: Path, day: int, *, bytes_left: int | None) -> None:
    """Answer all questions as far as they are not answered, on a disk that may be full at some point."""

    def reply(messages: list[Any]) -> str:
        number = int(str(messages[-1].text).split()[1])
        if random.random() < 0.1:
            raise RuntimeError("no connection")
        return f"print({number} * {day})"

    questions = [{"id": str(n), "query": f"Times {n} of day {day}"} for n in range(QUESTIONS)]
    executor = ScriptedExecutor(lambda code: str(math.prod(map(int, re.findall(r"\d+", code)))))
    with contextlib.ExitStack() as stack:
        if bytes_left is not None:
            size = path.stat().st_size if path.exists() else 0
            stack.enter_context(room(size + bytes_left))
        chain = stack.enter_context(
            create_code_chain(ScriptedModel(reply), executor=executor, interpret=False)
        )
        results_file = stack.enter_context(ResultsFile(path, resume=True))
        for _ in map_questions(chain, questions, results_file=results_file, concurrency=2):
            pass


def run_seeded(path: Path, day: int, bytes_left: int | None) -> None:
    """Run in a process of its own, which fails where something was left."""
    random.seed(time.time_ns())
    try:
        ask(path, day, bytes_left=bytes_left)
    except CodeChainsError:
        sys.exit(1)


def run_and_kill(path: Path, day: int, seconds: float, bytes_left: int | None) -> bool:
    """Run in a process of its own, which is killed after a while; return whether it had ended before."""
    process = _PROCESSES.Process(target=run_seeded, args=(path, day, bytes_left))
    process.start()
    process.join(seconds)
    process.kill()
    process.join()
    return process.exitcode == 0


def faults(path: Path) -> list[str]:
    """Return what is wrong with the files of a run, whatever happened to it."""
    lines = path.read_bytes().splitlines()[1:] if path.exists() else []
    records = list[dict[str, Any]]()
    for line in lines:
        with contextlib.suppress(ValueError):
            records.append(json.loads(line))
    found = list[str]()
    for record in records:
        number, day = record["given"]["query"].split()[1], record["given"]["query"].split()[4]
        if record["computed"]["output"] != str(int(number) * int(day)) or record["id"] != number:
            found.append(f"of another question: {record['id']}")
    ids = [record["id"] for record in records]
    failed = Path(f"{path}.failed")
    lost = [json.loads(line)["id"] for line in failed.read_text().splitlines()] if failed.exists() else []
    found += [f"twice: {each}" for each in {*ids} if ids.count(each) > 1]
    return found + [f"in both files: {each}" for each in {*ids} & {*lost}]


@pytest.mark.parametrize("kills", [20, pytest.param(500, marks=pytest.mark.soak)])
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_killed_run_that_is_resumed_has_each_answer_once(tmp_path: Path, kills: int) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")  # noqa: T201 - of a failure
    chance = random.Random(seed)
    # A run that starts longer than it may take would never get further; and the first one loads more than the others.
    for path in (tmp_path / "first.jsonl", tmp_path / "whole.jsonl"):
        begin = time.monotonic()
        run_and_kill(path, 1, 600, None)
        whole = time.monotonic() - begin
    done = 0
    for number in itertools.count():
        if done >= kills:
            break
        path, day = tmp_path / f"{number}.jsonl", 1
        while True:
            full = chance.randrange(40_000) if chance.random() < 0.2 else None
            has_ended = run_and_kill(path, day, chance.random() * whole * 1.5, full)
            done += not has_ended
            assert faults(path) == []
            if has_ended and not Path(f"{path}.failed").exists():
                break
            if chance.random() < 0.1:
                day += 1  # The questions were edited meanwhile.
        with ResultsFile(path, resume=True) as results_file:
            assert results_file.done == set(map(str, range(QUESTIONS)))
