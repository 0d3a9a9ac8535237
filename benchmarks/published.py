"""Questions of published data sets, put to a real model: alone, with one attempt, with the default chain.

    python -m benchmarks.published school FOLDER [--model local:1.5b] [--count 200] [--log FILE]
    python -m benchmarks.published twins FOLDER
    python -m benchmarks.published tables FOLDER [--ways bare,one,three,smolagents]
    python -m benchmarks.published analysts FOLDER
    python -m benchmarks.published tables FOLDER --ways written --programs OTHER

`FOLDER` is a copy of the repository on GitHub; none of its files is part of this one:

- `school`: GSM8K, `openai/grade-school-math`; `twins` are its questions with other numbers, whose answers follow from the
  steps of its solutions.
- `tables`: WikiTableQuestions, `ppasupat/WikiTableQuestions`, tables that its training never saw, judged by its evaluator.
- `analysts`: DABench, `InfiAgent/InfiAgent`, with its rule for what is equal.

With `--ways written` no model is asked: its replies are programs that somebody wrote, in files called like the questions
(`nu-1055.py`), and what comes out shows what a better model would get from the same chain.

The sample is fixed: the questions of which the SHA-256 of the name comes first. With `--log`, what was asked is kept and not
asked again.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pandas as pd

from benchmarks.answers import Outcome, grouped, interval, logged, note, outcome, smolagents_model, table
from code_chains import Budget, Repair, create_code_chain
from code_chains.models import resolve_model
from code_chains.testing import ScriptedModel
from code_chains.verification.number_words import stated_in_words

MAX_SECONDS = 300
"""A question that takes longer is not answered."""
WAYS: dict[str, dict[str, Any]] = {
    "one": {"solve": Repair(1)},
    "three": {},
    "verify": {"verify": True},
}
"""Of the chain; `bare` is one call of the model, which sees the files' text, and `smolagents` its `CodeAgent`."""
WRITTEN = "written"
"""The way in which no model is asked."""
HEAD = ("way", "questions", "right, 95 %", "wrong, unsaid", "says it failed", "model calls", "seconds each")
_MAX_SHOWN = 6_000
"""Characters of a file that the bare model is shown."""
_YES_NO = {"True": "yes", "False": "no"}
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
_IMPLIED = frozenset({0, 0.01, 0.1, 0.5, 1, 2, 3, 4, 5, 7, 10, 12, 24, 30, 52, 60, 100, 365, 1000})
"""Numbers that steps may have from words or units: a third, triplets, a dozen, weekdays, a percentage."""
_STEP = re.compile(r"<<([\d+\-*/(). ]+)=([\d.]+)>>")


@dataclass(frozen=True)
class PublishedQuestion:
    """A question with a known answer.

    Attributes:
        id: Its name in the data set.
        query: What is asked.
        is_right: Whether a text answers it.
        file: What is given with it, if anything.
    """

    id: str
    query: str
    is_right: Callable[[str], bool]
    file: Path | None = None


def school(folder: Path) -> list[PublishedQuestion]:
    """Read GSM8K: the last number of an answer counts."""
    lines = (folder / "grade_school_math/data/test.jsonl").read_text(encoding="utf-8").splitlines()
    entries = map(json.loads, lines)
    return [
        school_question(f"school-{number}", entry["question"], entry["answer"].rpartition("####")[2])
        for number, entry in enumerate(entries)
    ]


def school_question(name: str, query: str, answer: str) -> PublishedQuestion:
    """Return a question whose answer is a number."""
    expected = _value(answer)
    return PublishedQuestion(name, query, lambda output: _last_number(output) == expected)


def twins(folder: Path) -> list[PublishedQuestion]:
    """Read GSM8K with other numbers; questions whose steps do not tell where each number comes from are left out."""
    lines = (folder / "grade_school_math/data/test.jsonl").read_text(encoding="utf-8").splitlines()
    made = (renumbered(f"twin-{number}", **json.loads(line)) for number, line in enumerate(lines))
    return [twin for twin in made if twin is not None]


def renumbered(name: str, question: str, answer: str) -> PublishedQuestion | None:
    """Return a question with other numbers, or None where the steps are not a whole solution.

    A number of the question is replaced if it stands there once, in digits alone, and in the steps; results of steps replace
    what later steps take from them. Results stay whole and positive if they were.
    """
    steps = _STEP.findall(answer)
    if not steps or _value(steps[-1][1]) != _value(answer.rpartition("####")[2]):
        return None
    used = {_value(text) for expression, _ in steps for text in _NUMBER.findall(expression)}
    stated = Counter(_NUMBER.findall(question))
    kept = {*_IMPLIED, *stated_in_words(question)}
    changing = {
        _value(text)
        for text, count in stated.items()
        if count == 1 and text.isdigit() and _value(text) in used - kept and int(text) < 1900
    }
    given = {*map(_value, stated), *kept}
    for more in (1, 2, 3, 4, 5, 6, 10):
        values = {value: value + more for value in changing}
        result = _worked_out(steps, values, given)
        if values and result not in (None, _value(steps[-1][1])):
            return school_question(name, _with_numbers(question, values), str(result))
    return None


def _with_numbers(text: str, values: Mapping[float, float]) -> str:
    """Return a text in which some numbers are replaced by others."""
    return _NUMBER.sub(lambda match: _written(match.group(), values), text)


def _worked_out(
    steps: Sequence[tuple[str, str]], values: Mapping[float, float], given: Set[float]
) -> float | None:
    """Return the result of steps with other numbers, or None.

    It is None if a step has a number that is neither given, nor a percentage of what stays, nor the result of another step,
    or one that may be given as well as a result; and if a result is not positive or not whole any more.
    """
    known = dict(values)
    results, ambiguous = set[float](), set[float]()
    result = 0.0
    for expression, written in steps:
        numbers = set(map(_value, _NUMBER.findall(expression)))
        percentages = {number for number in numbers if round(number * 100, 6) in given - values.keys()}
        if numbers & ambiguous or numbers - results - percentages - given:
            return None
        replaced = _with_numbers(expression, known)
        result, before = float(str(pd.eval(replaced, engine="python"))), _value(written)
        if result <= 0 or result.is_integer() < before.is_integer():
            return None
        if result != before and (before in given or known.get(before, result) != result):
            ambiguous.add(before)
        known[before] = result
        results.add(before)
    return result


def _written(text: str, values: Mapping[float, float]) -> str:
    changed = values.get(_value(text))
    return text if changed is None else f"{changed:g}"


def _value(text: str) -> float:
    return float(text.strip().replace(",", ""))


def _last_number(text: str) -> float | None:
    numbers = _NUMBER.findall(text)
    return _value(numbers[-1]) if numbers else None


def tables(folder: Path) -> list[PublishedQuestion]:
    """Read WikiTableQuestions: each line of an answer is an item."""
    judge = _evaluator(folder)
    with (folder / "tagged/data/pristine-unseen-tables.tagged").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [_table_question(row, folder, judge) for row in rows]


def _table_question(row: Mapping[str, str], folder: Path, judge: ModuleType) -> PublishedQuestion:
    targets = (judge.tsv_unescape_list(row[name]) for name in ("targetValue", "targetCanon"))
    expected = judge.to_value_list(*targets)

    def is_right(output: str) -> bool:
        items = [_YES_NO.get(line, line) for line in _items(output)]
        return bool(judge.check_denotation(expected, judge.to_value_list(items)))

    wish = (
        "Print only the answer, as it stands in the table; if there are several, each on a line of its own."
    )
    return PublishedQuestion(row["id"], f"{row['utterance']}\n{wish}", is_right, folder / row["context"])


def _items(output: str) -> list[str]:
    """Return the items of an answer: those of a list in Python, or the lines."""
    with suppress(ValueError, SyntaxError):
        shown = ast.literal_eval(output.strip())
        if isinstance(shown, list):
            return list(map(str, shown))
    return [line.strip() for line in output.splitlines() if line.strip()]


def _evaluator(folder: Path) -> ModuleType:
    """Return the evaluator of the data set, which is written in Python 2, without its command line."""
    source = (folder / "evaluator.py").read_text(encoding="utf-8")
    functions, unescape = source.split("def main():")[0].split("################ Batch Mode")
    text = re.sub(r"\bur(['\"])", r"r\1", functions).replace(", long", "") + "#" + unescape
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "wikitables_evaluator.py")
        path.write_text(text, encoding="utf-8")
        specification = importlib.util.spec_from_file_location(path.stem, path)
        assert specification is not None
        assert specification.loader is not None
        module = importlib.util.module_from_spec(specification)
        vars(module).update(unicode=str, basestring=str)
        specification.loader.exec_module(module)
    return module


def analysts(folder: Path) -> list[PublishedQuestion]:
    """Read DABench: the value of each name in `@name[value]` counts."""
    data = folder / "examples/DA-Agent/data"
    questions = map(json.loads, (data / "da-dev-questions.jsonl").read_text(encoding="utf-8").splitlines())
    labels = map(json.loads, (data / "da-dev-labels.jsonl").read_text(encoding="utf-8").splitlines())
    expected = {label["id"]: dict(label["common_answers"]) for label in labels}
    return [_analysts_question(one, expected[one["id"]], data) for one in questions]


def _analysts_question(
    entry: Mapping[str, Any], expected: Mapping[str, str], data: Path
) -> PublishedQuestion:
    def is_right(output: str) -> bool:
        found = dict(re.findall(r"@(\w+)\[(.*?)\]", output))
        return all(_equal(found.get(name, ""), value) for name, value in expected.items())

    query = f"{entry['question']}\n{entry['constraints']}\nAnswer format: {entry['format']}"
    return PublishedQuestion(
        f"analysts-{entry['id']}", query, is_right, data / "da-dev-tables" / entry["file_name"]
    )


def _equal(found: str, expected: str) -> bool:
    try:
        return found == expected or abs(float(found) - float(expected)) < 1e-6
    except ValueError:
        return False


SETS: dict[str, Callable[[Path], list[PublishedQuestion]]] = {
    "school": school,
    "twins": twins,
    "tables": tables,
    "analysts": analysts,
}


def sample(questions: Iterable[PublishedQuestion], count: int) -> list[PublishedQuestion]:
    """Return the fixed sample of some questions; a twin is in it where its question is."""
    by_hash = {sha256(one.id.rpartition("-")[2].encode()).hexdigest(): one for one in questions}
    return [by_hash[key] for key in sorted(by_hash)[:count]]


Ask = Callable[[PublishedQuestion], Mapping[str, Any]]


def bare(model: Any) -> Ask:
    """Ask the model alone, once, with the text of the file."""

    def ask(question: PublishedQuestion) -> Mapping[str, Any]:
        given = ""
        if question.file is not None:
            given = question.file.read_text(encoding="utf-8", errors="replace")[:_MAX_SHOWN]
        return {"output": str(model.invoke(f"{given}\n\n{question.query}".strip()).text)}

    return ask


def smolagents(model: Any) -> Ask:
    """Ask a `CodeAgent` that may read the file with pandas."""
    from smolagents import CodeAgent, LogLevel

    served = smolagents_model(model)

    def ask(question: PublishedQuestion) -> Mapping[str, Any]:
        agent = CodeAgent(
            tools=[],
            model=served,
            max_steps=3,
            verbosity_level=LogLevel.OFF,
            additional_authorized_imports=["*"],
        )
        place = f"\nThe data are in the CSV file {question.file}." if question.file else ""
        return {"output": str(agent.run(question.query + place))}

    return ask


def written(programs: Path, stack: ExitStack) -> Ask:
    """Put programs that somebody wrote through the chain, the same at each attempt; one that is missing is no reply."""
    current = dict[str, str]()
    model = ScriptedModel(lambda messages: f"```python\n{current['program']}\n```")
    chain = stack.enter_context(create_code_chain(model, interpret=False))

    def ask(question: PublishedQuestion) -> Mapping[str, Any]:
        path = programs / f"{question.id}.py"
        current["program"] = path.read_text(encoding="utf-8") if path.exists() else ""
        files = {} if question.file is None else {question.file.name: question.file}
        return chain.invoke({"query": question.query, "files": files})

    return ask


def asking(way: str, model: Any, stack: ExitStack) -> Ask:
    """Return what answers in a way."""
    if way == "bare":
        return bare(model)
    if way == "smolagents":
        return smolagents(model)
    budget = Budget(seconds=MAX_SECONDS, per="question")
    chain = stack.enter_context(create_code_chain(model, interpret=False, budget=budget, **WAYS[way]))

    def ask(question: PublishedQuestion) -> Mapping[str, Any]:
        files = {} if question.file is None else {question.file.name: question.file}
        return chain.invoke({"query": question.query, "files": files})

    return ask


def answered(way: str, question: PublishedQuestion, ask: Ask) -> Outcome:
    """Put one question, and judge what comes out."""
    if way in WAYS or way == WRITTEN:
        return outcome(
            way, question.id, lambda: ask(question), lambda result: question.is_right(result["output"])
        )
    began = time.monotonic()
    try:
        output = str(ask(question)["output"])
    except Exception as error:  # Whatever others raise, they have no answer.
        return Outcome(way, question.id, False, "error", 0, 1, 0, time.monotonic() - began, repr(error)[:500])
    seconds = round(time.monotonic() - began, 3)
    return Outcome(way, question.id, question.is_right(output), "unverified", 1, 1, 0, seconds, output[:500])


def rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each way."""
    for way, ones in grouped(outcomes).items():
        right = sum(one.right for one in ones)
        told = sum(one.status in ("failed", "error") and not one.right for one in ones)
        seconds = sum(one.seconds for one in ones) / len(ones)
        share = f"{right}: {interval(right, len(ones))}"
        yield (
            way,
            len(ones),
            share,
            len(ones) - right - told,
            told,
            sum(o.calls for o in ones),
            f"{seconds:.0f}",
        )


@click.command()
@click.argument("data_set", type=click.Choice(list(SETS)))
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--model", default="local:1.5b", help="Whatever create_code_chain takes.")
@click.option("--ways", default="bare,one,three", help=f"Some of bare, smolagents, {', '.join(WAYS)}.")
@click.option("--count", default=200, help="How many questions of the fixed sample, from its first.")
@click.option("--seed", default=7, help="The seed of the model.")
@click.option("--programs", type=click.Path(path_type=Path), help="Programs in place of replies of a model.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to go on from.")
def main(
    data_set: str,
    folder: Path,
    model: str,
    ways: str,
    count: int,
    seed: int,
    programs: Path | None,
    log: Path | None,
) -> None:
    """Put a fixed sample of questions in each way, and print the table."""
    name = f"{model} seed={seed}"
    known = {(one.group, one.task): one for one in logged(log, name)}
    questions, chosen = sample(SETS[data_set](folder), count), ways.split(",")
    if (programs is None) == (WRITTEN in chosen) or (programs and len(chosen) > 1):
        raise click.UsageError("--ways written and --programs go together, and with no other way.")
    with ExitStack() as stack:
        if programs is not None:
            solvers = {WRITTEN: written(programs, stack)}
        else:
            chat_model = resolve_model(model, seed=seed)
            solvers = {way: asking(way, chat_model, stack) for way in chosen}
        # Ways take turns, so that a run that is stopped has asked each of them the same.
        for question in questions:
            for way in chosen:
                if (way, question.id) not in known:
                    one = known[way, question.id] = answered(way, question, solvers[way])
                    note(one, name, log)
    table(HEAD, rows([known[way, question.id] for way in chosen for question in questions]))


if __name__ == "__main__":
    main()
