"""Hints of a model for wrong programs of three lessons, to be read and marked by people.

    python -m benchmarks.tutoring --model local:1.5b --log hints.jsonl

The programs are those of `wrong` blocks and mutants of the solutions, `PER_STEP` of each step. Whoever reads the log marks
each hint: is what it says true, does it help with this mistake, does it give the answer away? The table counts how many
learners got a hint of the model, how many were told that there is none, and what the gate withheld.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.answers import table
from code_chains import SandboxExecutor
from code_chains.lessons import GradeChain, TutorChain, read_lesson
from code_chains.lessons.gate import HintGate
from code_chains.lessons.lesson import Lesson, Step
from code_chains.lessons.mutants import mutants
from code_chains.lessons.texts import texts_in
from code_chains.models import resolve_model

LESSONS = Path(__file__).parents[1] / "examples/lessons"
PER_STEP = 8


def wrong_programs(step: Step) -> Iterator[str]:
    """Yield wrong programs for an exercise: the teacher's first, then mutants of the solution."""
    yield from (block.code for block in step.wrong)
    if step.solution is not None:
        yield from (mutant.code for mutant in mutants(step.solution.code, limit=2 * PER_STEP))


def submissions(lesson: Lesson, grade: GradeChain) -> Iterator[dict[str, object]]:
    """Yield what the tutor is asked about: programs that the hidden tests reject, with the steps before them accepted."""
    accepted: list[str] = []
    for step in lesson.steps:
        if not step.is_exercise or step.solution is None:
            continue
        count = 0
        for code in wrong_programs(step):
            state: dict[str, object] = {"code": code, "step": step.number, "accepted": list(accepted)}
            verdict = grade.invoke(state)["verdict"]
            if count < PER_STEP and not verdict.ok:
                count += 1
                yield {**state, "verdict": verdict}
        accepted.append(step.solution.code)


def main() -> None:
    """Ask for what is not in the log yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="local:1.5b")
    parser.add_argument("--log", type=Path, required=True)
    arguments = parser.parse_args()
    lines = arguments.log.read_text().splitlines() if arguments.log.exists() else []
    known = {(entry["lesson"], entry["code"]): entry for entry in map(json.loads, lines)}
    model = resolve_model(arguments.model)
    for path in sorted(LESSONS.glob("*.md")):
        lesson = read_lesson(path)
        with SandboxExecutor(limits=lesson.limits) as executor, arguments.log.open("a") as log:
            tutor = TutorChain(model=model, lesson=lesson, gate=HintGate(executor), writer=model)
            for state in submissions(lesson, GradeChain(lesson=lesson, executor=executor)):
                key = path.name, str(state["code"])
                if key in known:
                    continue
                began = time.perf_counter()
                outcome = tutor.invoke(state)
                is_given = outcome["hint"] != texts_in(lesson.language).no_hint
                entry = {
                    "lesson": path.name,
                    "step": state["step"],
                    "exercise": lesson.steps[int(str(state["step"])) - 1].text,
                    "code": state["code"],
                    "failed": str(getattr(state["verdict"], "reason", "")),
                    "hint": outcome["hint"] if is_given else "",
                    "withheld": outcome["withheld"],
                    "seconds": round(time.perf_counter() - began, 1),
                }
                known[key] = entry
                log.write(json.dumps(entry, ensure_ascii=False) + "\n")
                log.flush()
    given = Counter(bool(entry["hint"]) for entry in known.values())
    withheld = sum(len(entry["withheld"]) for entry in known.values())
    table(
        ("submissions", "with a hint", "without", "hints withheld"),
        [(len(known), given[True], given[False], withheld)],
    )


if __name__ == "__main__":
    main()
