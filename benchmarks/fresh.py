"""Which rules catch programs that cannot answer, of those that a small model wrote for questions nobody tuned on.

    python -m benchmarks.fresh write TABLES SCHOOL [--model local:1.5b]
    python -m benchmarks.fresh rules TABLES SCHOOL

`TABLES` is a copy of `ppasupat/WikiTableQuestions` and `SCHOOL` one of `openai/grade-school-math`; of both the training
questions count, those of which the SHA-256 of the name comes first, and none of their files is part of this repository. Half
of the questions cannot be answered: the file lacks the column that holds the answer, or the text says "some" in place of a
number that the solution needs. `write` asks the model for one program each, of which the records keep name and source;
`rules` runs these and counts by rule. **Nothing may be mended for this set.**
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain as chained
from itertools import islice
from pathlib import Path

import click

from benchmarks.answers import table
from code_chains import Repair, SandboxExecutor, create_code_chain
from code_chains.chains import ProfileChain
from code_chains.models import resolve_model
from code_chains.records import Verdict
from code_chains.verification.sanity.failure_reports import reported_failure
from code_chains.verification.sanity.verdict import CHECKS, ORIGINS, Outcome

RECORDS = Path(__file__).parent / "records/fresh_1.5b.jsonl"
COUNTS = {"table": 115, "school": 45}
"""Questions of each kind that have an answer; as many have none."""
_NUMBER = re.compile(r"(?<![\w.,$])\d+(?![\w%]|[.,]\d)")
_STEP = re.compile(r"<<([^=<>]+)=")


@dataclass(frozen=True)
class FreshQuestion:
    """A question of a data set, as it stands there or without what its answer needs.

    Attributes:
        name: The data set's name of it, with `-lacks` if it cannot be answered.
        query: What is asked.
        file: The text of `table.csv`, if there is one.
        answer: The right answer; several are between bars.
    """

    name: str
    query: str
    file: str = ""
    answer: str = ""

    @property
    def is_answerable(self) -> bool:
        """Whether what is given suffices."""
        return not self.name.endswith("-lacks")

    @property
    def files(self) -> dict[str, bytes]:
        """What is given with it."""
        return {"table.csv": self.file.encode()} if self.file else {}


def table_questions(folder: Path, *, lacks: bool) -> Iterator[FreshQuestion]:
    """Yield questions about a table; with `lacks`, without the one column that holds the answer."""
    with (folder / "data/random-split-1-train.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    ordered = sorted(rows, key=lambda row: sha256(f"{row['id']}{lacks}".encode()).digest())
    for row in ordered:
        text = (folder / row["context"]).read_text(encoding="utf-8")
        if not lacks:
            yield FreshQuestion(row["id"], row["utterance"], text, row["targetValue"])
        elif lacking := without_answer(text, row["targetValue"]):
            yield FreshQuestion(f"{row['id']}-lacks", row["utterance"], lacking)


def without_answer(text: str, answer: str) -> str:
    """Return a table without the column of an answer; empty if it is a number, or stands in no or in several columns."""
    rows = [row for row in csv.reader(io.StringIO(text), escapechar="\\") if row]
    if not rows or answer.replace(".", "").isdigit() or "|" in answer:
        return ""
    holding = {at for row in rows for at, cell in enumerate(row) if answer in cell}
    if len(holding) != 1 or len(rows[0]) < 3 or answer in str(rows[0]):
        return ""
    out = io.StringIO()
    csv.writer(out).writerows([cell for at, cell in enumerate(row) if at not in holding] for row in rows)
    return out.getvalue()


def school_questions(folder: Path, *, lacks: bool) -> Iterator[FreshQuestion]:
    """Yield exercises; with `lacks`, with "some" in place of a number that the solution takes."""
    lines = (folder / "grade_school_math/data/train.jsonl").read_text(encoding="utf-8").splitlines()
    numbered = sorted(enumerate(lines), key=lambda pair: sha256(f"{pair[0]}{lacks}".encode()).digest())
    for number, line in numbered:
        entry = json.loads(line)
        query = entry["question"]
        if not lacks:
            yield FreshQuestion(f"school-{number}", query, "", entry["answer"].rpartition("####")[2].strip())
        elif lacking := without_number(query, entry["answer"]):
            yield FreshQuestion(f"school-{number}-lacks", lacking)


def without_number(query: str, solution: str) -> str:
    """Return an exercise without its first number above 2 that a step takes and that stands there once; empty if none."""
    taken = Counter(re.findall(r"\d+", " ".join(_STEP.findall(solution))))
    stated = Counter(re.findall(r"\d+", query))
    for match in _NUMBER.finditer(query):
        if stated[match[0]] == 1 and taken[match[0]] and int(match[0]) > 2:
            return f"{query[: match.start()]}some{query[match.end() :]}"
    return ""


def questions(tables: Path, school: Path) -> list[FreshQuestion]:
    """Return the set, mixed, so that each part of it has all kinds."""
    kinds = [
        islice(table_questions(tables, lacks=False), COUNTS["table"]),
        islice(table_questions(tables, lacks=True), COUNTS["table"]),
        islice(school_questions(school, lacks=False), COUNTS["school"]),
        islice(school_questions(school, lacks=True), COUNTS["school"]),
    ]
    return sorted(chained(*kinds), key=lambda one: sha256(one.name.encode()).digest())


@click.group(help=__doc__)
def main() -> None:
    """Dispatch the commands."""


_FOLDER = click.Path(exists=True, path_type=Path)


@main.command()
@click.argument("tables", type=_FOLDER)
@click.argument("school", type=_FOLDER)
@click.option("--model", default="local:1.5b")
def write(tables: Path, school: Path, model: str) -> None:
    """Ask a model for the programs that the records lack."""
    lines = RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else []
    done = {json.loads(line)["name"] for line in lines}
    chain = create_code_chain(resolve_model(model), solve=Repair(1), interpret=False)
    with chain, RECORDS.open("a", encoding="utf-8") as records:
        for question in questions(tables, school):
            if question.name not in done:
                result = chain.invoke({"query": question.query, "files": question.files})
                record = {"name": question.name, "program": result.get("code") or ""}
                records.write(json.dumps(record, ensure_ascii=False) + "\n")
                records.flush()


def is_right(question: FreshQuestion, output: str) -> bool:
    """Return whether an output has all that the right answer has, and no other last number if that is one."""
    items = [item.casefold().strip().removesuffix(".0") for item in question.answer.split("|")]
    numbers = re.findall(r"-?\d[\d,]*(?:\.\d+)?", output)
    if len(items) == 1 and items[0].replace(",", "").replace(".", "").isdigit():
        return bool(numbers) and float(numbers[-1].replace(",", "")) == float(items[0].replace(",", ""))
    return all(item in output.casefold() for item in items)


def said_by(outcome: Outcome) -> Iterator[str]:
    """Yield the names of the rules that say something of an outcome, whatever the others say."""
    if outcome.shows_text and reported_failure(outcome.query, outcome.output):
        yield "reported failure"
    for rule in (*CHECKS, *ORIGINS):
        said = rule(outcome)
        if said is not None and (isinstance(said, Verdict) or list(said)):
            yield rule.__name__.strip("_").replace("_", " ")


@main.command()
@click.argument("tables", type=_FOLDER)
@click.argument("school", type=_FOLDER)
def rules(tables: Path, school: Path) -> None:
    """Count by rule: wrong programs that it finds, those that it alone finds, and right ones that it doubts."""
    programs = {
        entry["name"]: entry["program"] for entry in map(json.loads, RECORDS.read_text("utf-8").splitlines())
    }
    known = [question for question in questions(tables, school) if question.name in programs]
    counts: dict[str, Counter[str]] = {}
    kinds = Counter[str]()
    with SandboxExecutor() as sandbox:
        profile = ProfileChain(sandbox)
        for question in known:
            state = {"query": question.query, "files": question.files}
            execution = sandbox.run(programs[question.name], files=question.files)
            if not execution.ok or not execution.output.strip():
                kinds["failed by themselves"] += 1
                continue
            outcome = Outcome(
                {**state, **profile.invoke(state), "execution": execution}, programs[question.name]
            )
            is_fine = question.is_answerable and is_right(question, execution.output)
            kind = "right" if is_fine else "wrong" if question.is_answerable else "cannot answer"
            kinds[kind] += 1
            said = list(said_by(outcome))
            for name in said:
                count = counts.setdefault(name, Counter())
                count[kind] += 1
                count[f"{kind}, alone"] += len(said) == 1
    print(dict(kinds))
    columns = ("cannot answer", "cannot answer, alone", "wrong", "wrong, alone", "right")
    table(
        ("rule", *columns), [(name, *(count[column] for column in columns)) for name, count in counts.items()]
    )


if __name__ == "__main__":
    main()
