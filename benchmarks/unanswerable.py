"""How often a model answers as if it could, where what a question needs was not given.

    python -m benchmarks.unanswerable --model local:1.5b --log unanswerable.jsonl [--questions unanswerable_third]

Five times sixty questions of our own, forty of them without a file and twenty with one that lacks what is asked for. What
the first run of the first sixty showed was used to mend rules, and so were the first fourteen of the second ones, written
by somebody who had not seen the rules; the last forty-six of these measured, and then the third, fourth and fifth sixty,
each of another writer. The sixty of `answerable`, `answerable_fourth` and `answerable_fifth` are like them, and have what
they need: what is doubted there is a false alarm, unless it is wrong. An outcome counts as `answered` if nothing tells it
from a computed one: no question back, no failure, and no verdict that says what was made up or what is impossible.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.answers import table
from benchmarks.corpora import read_corpus
from code_chains import create_code_chain

OUTCOMES = ("question back", "doubted", "failed", "answered")


def outcome_of(result: dict[str, Any]) -> str:
    """Return what the user was told."""
    verdict = result["verdict"]
    if verdict.needs:
        return "question back"
    if verdict.is_doubt:
        return "doubted"
    return "answered" if verdict.ok else "failed"


def main() -> None:
    """Ask what is not in the log yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="local:1.5b")
    parser.add_argument(
        "--questions",
        default="unanswerable",
        help="also unanswerable_more, _third, _fourth and _fifth, answerable, answerable_fourth and _fifth",
    )
    parser.add_argument("--log", type=Path, required=True, help="JSON lines with what was answered")
    arguments = parser.parse_args()
    questions = read_corpus(arguments.questions)
    known = {}
    if arguments.log.exists():
        known = {entry["query"]: entry for entry in map(json.loads, arguments.log.read_text().splitlines())}
    with create_code_chain(arguments.model, interpret=False) as chain, arguments.log.open("a") as log:
        for question in questions:
            if question["query"] in known:
                continue
            files = {question["name"]: question["text"].encode()} if "name" in question else {}
            began = time.perf_counter()
            result = chain.invoke({"query": question["query"], "files": files})
            entry = {
                "query": question["query"],
                "outcome": outcome_of(result),
                "verdict": result["verdict"].to_dict(),
                "code": result["code"],
                "output": result["output"][:500],
                "attempts": len(result["attempts"]),
                "seconds": round(time.perf_counter() - began, 1),
            }
            known[question["query"]] = entry
            log.write(json.dumps(entry, ensure_ascii=False) + "\n")
            log.flush()
    rows = []
    for name, has_file in (("without a file", False), ("with a file", True)):
        asked = [question["query"] for question in questions if ("name" in question) == has_file]
        counts = Counter(known[query]["outcome"] for query in asked)
        rows.append((name, len(asked), *(counts[outcome] for outcome in OUTCOMES)))
    table(("questions", "asked", *OUTCOMES), rows)


if __name__ == "__main__":
    main()
