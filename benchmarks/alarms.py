"""How often sanity checks doubt a right program, and how often they find a wrong one. No model is asked.

    python -m benchmarks.alarms --gsm train.jsonl --gsm-hard gsmhardv2.jsonl

The programs are the 621 reference programs of `benchmarks.everyday`, all of which are right. Its `DEVELOPMENT` questions
served while the checks were written; those `HELD_OUT` were not looked at. A wrong program is a right one in which the digits
of one number are changed. Besides, programs that make up what they show, in `data/inventions.jsonl`: they were written in
the manner of small models, while the rules were. Those that the reference programs have from the text of a question count as
given. Of the forty pairs in `data/mistakes.jsonl` one program reads a file that lacks what is asked for, and the other
answers the like from one that has it; who wrote them knew no rule. Those in `data/over_files*.jsonl` are not in pairs; each
set was written by somebody who knew none, and counted before what it showed was mended; nothing was for the sixth.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.answers import table
from benchmarks.corpora import read_corpus
from benchmarks.everyday import DEVELOPMENT, HELD_OUT, Everyday
from code_chains import Repair, SandboxExecutor, create_code_chain
from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.analysis.parsing import parse
from code_chains.testing import ScriptedModel
from code_chains.verification.provenance import Given, find_invention
from code_chains.verification.sanity.failure_reports import empty_output, reported_failure

OVER_FILES = (
    "mistakes",
    *(f"over_files{which}" for which in ("", "_more", "_third", "_fourth", "_fifth", "_sixth")),
)
STEP = re.compile(r"<<([^=<>]+)=([^<>]+)>>")
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?![\w.])")


def wrong_programs(question: Everyday, program: str) -> Iterator[str]:
    """Yield a program with each of its longer numbers changed that the question states literally."""
    for match in NUMBER.finditer(program):
        digits = match[0].replace("_", "")
        is_stated = re.search(rf"(?<![\d.,]){re.escape(digits)}(?![\d]|[.,]\d)", question.query)
        if is_stated and len(digits.replace(".", "").strip("0")) > 2:
            changed = digits[:-1] + str((int(digits[-1]) + 3) % 10)
            yield program[: match.start()] + changed + program[match.end() :]


def row(name: str, questions: Sequence[Everyday], sandbox: SandboxExecutor) -> tuple[object, ...]:
    """Count what the checks say of the programs of some questions."""
    programs = [(question, program) for question in questions for program in question.programs]
    texts = [(q.query, program) for q, program in programs if not defines_what_is_asked(program, q.query)]
    made_up = sum(find_invention(query, program, Given(query)) is not None for query, program in texts)
    outputs = [(question.query, sandbox.run(program).output) for question, program in programs]
    failures = sum(bool(reported_failure(query, output)) for query, output in outputs)
    empty = sum(empty_output(query, output) for query, output in outputs)
    wrong = [(q.query, each) for q, program in programs for each in wrong_programs(q, program)]
    found = sum(find_invention(query, each, Given(query)) is not None for query, each in wrong)
    return name, len(programs), made_up, failures, empty, f"{found} of {len(wrong)}"


def told(kind: str) -> tuple[object, ...]:
    """Count the inventions of a kind that are told."""
    entries = [entry for entry in read_corpus("inventions") if entry["kind"] == kind]
    found = []
    for entry in entries:
        query = entry["query"]
        given = {"files": entry.get("files", ()), "names": entry.get("names", ())}
        found.append(find_invention(query, entry["program"], Given(query), **given))
    same = [invention for invention in found if invention is not None and invention.kind == kind]
    return kind, len(entries), len(entries) - found.count(None), len(same)


def solutions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield questions of GSM8K (`openai/grade-school-math`) with their worked solutions as programs."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        names: dict[str, str] = {}
        program = []
        for number, (formula, result) in enumerate(STEP.findall(entry["answer"])):
            for value, name in names.items():
                formula = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.])", name, formula)
            program.append(f"step{number} = {formula}")
            names[result] = f"step{number}"
        source = "\n".join([*program, f"print(step{len(program) - 1})"])
        if program and parse(source) is not None:
            yield entry["question"], source


def references(path: Path) -> Iterator[tuple[str, str]]:
    """Yield questions of GSM-hard (`reasoning-machines/pal`) with their programs, without the question in these."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        yield entry["input"], re.sub(r'"""[\s\S]*?"""', "", entry["code"]) + "\nprint(solution())"


def doubted_over_files(corpus: str) -> tuple[object, ...]:
    """Count the programs over files of a corpus that are doubted, or said to fail: those that cannot answer, and others."""
    counts = [corpus]
    for is_answerable in (False, True):
        doubted, total = _doubted(
            [entry for entry in read_corpus(corpus) if entry["answerable"] is is_answerable]
        )
        counts.append(f"{doubted} of {total}")
    return tuple(counts)


def _doubted(entries: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    programs = (entry["program"] for entry in entries)
    model = ScriptedModel(lambda messages: f"```python\n{next(programs)}\n```")
    verdicts = []
    with create_code_chain(model, solve=Repair(1), interpret=False) as chain:
        for entry in entries:
            given = {"query": entry["query"], "files": {entry["name"]: entry["text"].encode()}}
            verdicts.append(chain.invoke(given)["verdict"])
    return sum(verdict.is_doubt or not verdict.ok for verdict in verdicts), len(entries)


def made_up(name: str, programs: Iterable[tuple[str, str]]) -> tuple[object, ...]:
    """Count the programs that are said to make something up."""
    kinds = []
    for query, program in programs:
        invention = find_invention(query, program, Given(query))
        kinds.append(invention.kind if invention else "")
    return name, len(kinds), len(kinds) - kinds.count("")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--gsm", type=Path, help="a file of GSM8K's questions, of which solutions 3001 to 4200 count"
    )
    parser.add_argument("--gsm-hard", type=Path, help="the file of GSM-hard's questions")
    arguments = parser.parse_args()
    head = (
        "questions",
        "right programs",
        "said to be made up",
        "output a failure",
        "output empty",
        "one number changed: found",
    )
    with SandboxExecutor() as sandbox:
        rows = [row("development", DEVELOPMENT, sandbox), row("held out", HELD_OUT, sandbox)]
    table(head, rows)
    table(
        ("kind", "inventions", "told", "told as this kind"),
        map(told, ("text", "data", "assumption", "ignored")),
    )
    sets = ("over files", "cannot answer: doubted", "answer: doubted")
    table(sets, map(doubted_over_files, OVER_FILES))
    others = []
    if arguments.gsm:
        others.append(made_up("GSM8K, worked solutions", islice(solutions(arguments.gsm), 3000, 4200)))
    if arguments.gsm_hard:
        others.append(made_up("GSM-hard, reference programs", references(arguments.gsm_hard)))
    table(("questions", "programs", "said to be made up"), others)


if __name__ == "__main__":
    main()
