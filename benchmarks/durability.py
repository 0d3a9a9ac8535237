"""What is still there after writers were killed: everything they were told is kept must be.

    python -m benchmarks.durability [ROUNDS]

In each round four processes write at once and say of each entry when it is written. At a random moment all are killed
(`kill -9`). Then the file is read: an entry that was acknowledged and is not there is lost; a file that SQLite finds
fault with, or that nobody can write to any more, is corrupt.
"""

from __future__ import annotations

import json
import os
import platform
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from code_chains import ConversationMemory, SqliteStore, Verdict
from code_chains.chains import CachedChain, StreamingTransformChain

PROCESSES = 4
WRITES = 1000
"""What each process would write if it lived."""


@dataclass(frozen=True)
class Subject:
    """Something that writes to a SQLite file.

    Attributes:
        make_write: Opens it at a path and gives a function that writes one entry of a name, and returns when it is safe.
        read: The names of all entries there that are as they were written.
    """

    make_write: Callable[[Path], Callable[[str], None]]
    read: Callable[[Path], set[str]]


@dataclass(frozen=True)
class Outcome:
    """What came of some rounds: entries that were acknowledged, those of them that were lost, files that were corrupt."""

    rounds: int
    acknowledged: int
    lost: int
    corrupt: int


def _value(name: str) -> bytes:
    return name.encode() * 50


def _write_store(path: Path) -> Callable[[str], None]:
    store = SqliteStore(path)
    return lambda name: store.mset([(name, _value(name))])


def _read_store(path: Path) -> set[str]:
    with SqliteStore(path) as store:
        keys = list(store.yield_keys())
        return {key for key, value in zip(keys, store.mget(keys), strict=True) if value == _value(key)}


def _write_answer(path: Path) -> Callable[[str], None]:
    """Each is a question to a chain whose answers are cached."""
    verdict = Verdict("verified", "tests", "It passed.")
    chain = StreamingTransformChain(
        input_variables=["query"],
        output_variables=["answer", "verdict"],
        transform=lambda state: {"answer": state["query"], "verdict": verdict},
    )
    cached = CachedChain(chain, store=SqliteStore(path), version="1")

    def write(name: str) -> None:
        cached.invoke({"query": name})

    return write


def _read_answers(path: Path) -> set[str]:
    with SqliteStore(path) as store:
        kept = [
            json.loads((value or b"\n{}").partition(b"\n")[2])
            for value in store.mget(list(store.yield_keys()))
        ]
    return {str(note["outputs"]["answer"]) for note in kept}


def _write_turn(path: Path) -> Callable[[str], None]:
    """Each is a turn of one conversation."""
    memory = ConversationMemory(SqliteStore(path))
    return lambda name: memory.save_context({"query": name, "session_id": "all"}, {"answer": name})


def _read_turns(path: Path) -> set[str]:
    return {
        turn.query for turn in ConversationMemory(SqliteStore(path)).turns("all") if turn.answer == turn.query
    }


SUBJECTS = {
    "store": Subject(_write_store, _read_store),
    "answers": Subject(_write_answer, _read_answers),
    "turns": Subject(_write_turn, _read_turns),
}


def run(name: str, rounds: int, writes: int = WRITES) -> Outcome:
    """Kill the writers of a subject so many times, in a new file each time."""
    acknowledged = lost = corrupt = 0
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file.db"
            told = _round(name, path, writes)
            acknowledged += len(told)
            try:
                lost += len(told - SUBJECTS[name].read(path))
                SUBJECTS[name].make_write(path)("afterwards")
                corrupt += not (_is_sound(path) and "afterwards" in SUBJECTS[name].read(path))
            except Exception as error:  # Whatever it is: nobody can go on with this file.
                print(error, file=sys.stderr)
                corrupt += 1
    return Outcome(rounds, acknowledged, lost, corrupt)


def _round(name: str, path: Path, writes: int) -> set[str]:
    """Let processes write until some moment; what they have acknowledged."""
    reading, writing = os.pipe()
    commands = [
        [sys.executable, "-m", "benchmarks.durability", "write", name, str(path), str(number), str(writes)]
        for number in range(PROCESSES)
    ]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing) for command in commands]
    os.close(writing)
    with open(reading) as told:
        for _ in writers:
            told.readline()
        for writer in writers:
            assert writer.stdin
            writer.stdin.close()  # All are there: go.
        early = {told.readline() for _ in range(random.randrange(PROCESSES * writes))}
        for writer in random.sample(writers, PROCESSES):
            writer.kill()
            time.sleep(random.random() / 500)
        said = early | set(told)
    for writer in writers:
        writer.wait()
    return {line.rstrip("\n") for line in said} - {""}


def _write(name: str, path: Path, number: str, writes: int) -> None:
    write = SUBJECTS[name].make_write(path)
    _say("ready")
    sys.stdin.read()
    for count in range(writes):
        entry = f"{number}-{count}"
        write(entry)
        _say(entry)


def _say(line: str) -> None:
    """One line in one piece: all writers share the pipe."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def _is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        found: list[tuple[str]] = connection.execute("PRAGMA integrity_check").fetchall()
        return found == [("ok",)]


def main(rounds: int) -> None:
    """Measure and print the table."""
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores;")
    print(f"{PROCESSES} processes with up to {WRITES} writes each are killed at a random moment\n")
    print("| | rounds | acknowledged | lost | corrupt |\n|---|---|---|---|---|")
    for name in SUBJECTS:
        came = run(name, rounds)
        print(f"| {name} | {came.rounds} | {came.acknowledged} | {came.lost} | {came.corrupt} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        _write(sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
