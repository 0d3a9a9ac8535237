"""How often sanity checks doubt a right program, and how often they find a wrong one. No model is asked.

    python -m benchmarks.alarms

The programs are the 621 reference programs of `benchmarks.everyday`, all of which are right. Its `DEVELOPMENT` questions
served while the checks were written; those `HELD_OUT` were not looked at. A wrong program is a right one in which the digits
of one number are changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from benchmarks.answers import table
from benchmarks.everyday import DEVELOPMENT, HELD_OUT, Everyday
from code_chains import SandboxExecutor
from code_chains.analysis.definitions import defines_what_is_asked
from code_chains.inputs import find_pasted, without_references
from code_chains.verification.sanity.failure_reports import empty_output, reported_failure
from code_chains.verification.sanity.invariants import broken_invariant
from code_chains.verification.sanity.question_values import unused_values

NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?![\w.])")


def task_of(question: Everyday) -> str:
    """The question as sanity checks see it, without data: the reference programs have those in them."""
    paste = find_pasted(question.query)
    return without_references(paste.task) if paste else question.query


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
    checked = [
        (task_of(q), program) for q, program in programs if not defines_what_is_asked(program, q.query)
    ]
    doubted = sum(bool(unused_values(task, program)) for task, program in checked)
    outputs = [(question.query, sandbox.run(program).output) for question, program in programs]
    failures = sum(bool(reported_failure(query, output)) for query, output in outputs)
    empty = sum(empty_output(query, output) for query, output in outputs)
    impossible = sum(bool(broken_invariant(query, output)) for query, output in outputs)
    wrong = [(task_of(q), each) for q, program in programs for each in wrong_programs(q, program)]
    found = sum(bool(unused_values(task, each)) for task, each in wrong)
    return name, len(programs), doubted, failures, empty, impossible, f"{found} of {len(wrong)}"


def main() -> None:
    """Print the table."""
    head = (
        "questions",
        "right programs",
        "values doubted",
        "output a failure",
        "output empty",
        "output impossible",
        "wrong values found",
    )
    with SandboxExecutor() as sandbox:
        rows = [row("development", DEVELOPMENT, sandbox), row("held out", HELD_OUT, sandbox)]
    table(head, rows)


if __name__ == "__main__":
    main()
