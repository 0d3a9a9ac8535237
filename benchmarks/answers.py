"""Whether answers are right, or say that they are not.

    python -m benchmarks.answers replay [--given tests] [--only BUG]
    python -m benchmarks.answers live [--model local:0.5b] [--ways pass@1,repair] [--log FILE]

`replay` plays a model that makes known mistakes: once it mends them when it is told, once it never does. What a program is
worth is found out by running it on all examples and comparing out here, whatever the library says. `live` asks a real model;
with `--log`, what was asked is kept and not asked again.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import click
from langchain_core.messages import BaseMessage

from benchmarks.bugs import Case, build, fence
from benchmarks.tasks import TASKS, Task, put_files, retrieve
from code_chains import Limits, Repair, SandboxExecutor, create_code_chain
from code_chains.errors import CodeChainsError
from code_chains.evaluation.statistics import wilson
from code_chains.testing import ScriptedModel

WAYS: dict[str, dict[str, Any]] = {
    "pass@1": {"solve": Repair(1)},
    "repair": {"solve": Repair(3)},
    "samples=5": {"solve": Repair(1, samples=5)},
    "retrieval": {"solve": Repair(1)},
    "snippets": {"solve": Repair(1), "snippets": True},
    "all": {"solve": Repair(3, samples=5)},
}
RETRIEVE = ("retrieval", "all")
CHECKED = ("verified", "plausible")
_AGAIN = "Write the whole corrected program."


@dataclass(frozen=True)
class Outcome:
    """How one question went.

    Attributes:
        group: The class of bug, or the way of asking.
        task: The question.
        right: Whether what came out is right, whatever the library says.
        status: What the library says.
        attempts: How often a program was asked for.
        calls: Calls of the model.
        tokens: Tokens the model wrote.
        seconds: How long it took.
        output: What was shown, or the error.
    """

    group: str
    task: str
    right: bool
    status: str
    attempts: int
    calls: int
    tokens: int
    seconds: float
    output: str = ""

    @property
    def passed_wrongly(self) -> bool:
        """Whether a wrong answer is called right."""
        return not self.right and self.status in CHECKED

    @property
    def told(self) -> bool:
        """Whether it says itself that it has no answer."""
        return self.status == "failed"


def outcome(
    group: str, task: str, ask: Callable[[], Mapping[str, Any]], judge: Callable[[Any], bool]
) -> Outcome:
    """Ask, and judge what comes out; an error of the library is an outcome too."""
    began = time.monotonic()
    try:
        result = ask()
    except CodeChainsError as error:
        return Outcome(group, task, False, "error", 0, 0, 0, time.monotonic() - began, repr(error))
    seconds = round(time.monotonic() - began, 3)
    usage, status = result["usage"], result["verdict"].status
    spent = (len(result["attempts"]), usage.model_calls, usage.output_tokens, seconds)
    return Outcome(group, task, judge(result), status, *spent, result["output"][:500])


class Question(Protocol):
    """A question whose answer is known."""

    @property
    def id(self) -> str:
        """Its name in logs."""

    @property
    def query(self) -> str:
        """Its text."""

    def right(self, output: str) -> bool:
        """Return whether an output answers it."""


def ask(chain: Any, way: str, question: Question) -> Outcome:
    """Put one question to a chain."""
    return outcome(
        way,
        question.id,
        lambda: chain.invoke(question.query),
        lambda result: question.right(result["output"]),
    )


def smolagents_model(model: Any) -> Any:
    """Return a chat model of OpenAI's protocol as smolagents takes it."""
    from smolagents import OpenAIServerModel

    client = model.root_client
    return OpenAIServerModel(
        model.model_name,
        api_base=str(client.base_url),
        api_key=client.api_key,
        temperature=0,
        seed=model.seed,
    )


def interval(right: int, count: int) -> str:
    """Return a share with its interval, such as `75 % (60 to 86)`."""
    low, high = wilson(right, count)
    return f"{right / count:.0%} ({low:.0%} to {high:.0%})"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown."""
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def grouped(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes by their group."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.group].append(one)
    return dict(groups)


def replayed(case: Case, *, stubborn: bool) -> ScriptedModel:
    """A model that makes the mistake of a case, until it is told; a stubborn one makes it for ever."""

    def reply(messages: list[BaseMessage]) -> str:
        told = str(messages[-1].text).rstrip().endswith(_AGAIN)
        return fence(case.right) if told and not stubborn else case.wrong

    return ScriptedModel(reply)


def question(case: Case, given: Literal["examples", "tests"]) -> dict[str, Any]:
    """What the chain is asked."""
    state: dict[str, Any] = {"query": case.task}
    if case.variables:
        state["variables"] = case.variables
    if case.name and given == "examples":
        state["examples"] = list(case.examples)
    elif case.name:
        calls = ((", ".join(map(repr, args)), expected) for args, expected in case.examples)
        state["tests"] = "\n".join(f"assert {case.name}({args}) == {expected!r}" for args, expected in calls)
    return state


def play(
    case: Case, sandbox: SandboxExecutor, given: Literal["examples", "tests"], *, stubborn: bool
) -> Outcome:
    """Put one case to the library."""
    model = replayed(case, stubborn=stubborn)

    def judge(result: Mapping[str, Any]) -> bool:
        done = sandbox.run(case.probe(result["code"]), variables=case.variables)
        return done.ok and case.holds(done.output)

    with create_code_chain(model, executor=sandbox, interpret=False) as chain:
        return outcome(case.bug, case.task, lambda: chain.invoke(question(case, given)), judge)


def replay_rows(helped: Sequence[Outcome], stubborn: Sequence[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each class of bug, and the totals."""
    by_bug = grouped(helped)
    others = grouped(stubborn)
    for bug, first, second in [
        *((bug, by_bug[bug], others[bug]) for bug in by_bug),
        ("**all**", helped, stubborn),
    ]:
        mended = sum(one.right and one.attempts == 1 for one in first)
        attempts = sum(one.attempts for one in first) / len(first)
        row = (bug, len(first), sum(one.right for one in first), mended, f"{attempts:.2f}", _wrongs(first))
        yield (*row, sum(one.right for one in second), sum(one.told for one in second), _wrongs(second))


def _wrongs(outcomes: Sequence[Outcome]) -> str:
    """Wrong answers that are called right, and those that are not called wrong."""
    unsaid = sum(not one.right and not one.told for one in outcomes)
    return f"{sum(one.passed_wrongly for one in outcomes)} / {unsaid}"


REPLAY_HEAD = (
    *(
        "mistake",
        "cases",
        "right in the end",
        "mended without the model",
        "attempts",
        "wrong, passed as right / unsaid",
    ),
    *("stubborn: right", "says it failed", "wrong, passed as right / unsaid"),
)
LIVE_HEAD = (
    *(
        "way",
        "tasks",
        "right",
        "plausible: right, wrong",
        "unverified: right, wrong",
        "says it failed",
        "broke",
    ),
    *("model calls", "output tokens", "seconds"),
)


@click.group()
def main() -> None:
    """Measure whether answers are right, or say that they are not."""


@main.command()
@click.option(
    "--given", type=click.Choice(["examples", "tests"]), default="examples", help="How examples are given."
)
@click.option("--only", default="", help="One class of bug.")
@click.option("--seconds", default=2.0, help="What one run may take.")
def replay(given: Literal["examples", "tests"], only: str, seconds: float) -> None:
    """Play known mistakes of models."""
    cases = [case for case in build() if only in ("", case.bug)]
    began = time.monotonic()
    runs: dict[bool, list[Outcome]] = {False: [], True: []}
    with SandboxExecutor(limits=Limits(seconds=seconds)) as sandbox:
        for stubborn, outcomes in runs.items():
            for number, case in enumerate(cases, start=1):
                outcomes.append(play(case, sandbox, given, stubborn=stubborn))
                print(f"{number}/{len(cases)} {case.bug}{' stubborn' * stubborn}", end="\r", file=sys.stderr)
    helped, stubbornly = runs[False], runs[True]
    table(REPLAY_HEAD, replay_rows(helped, stubbornly))
    took = time.monotonic() - began
    print(f"\n{len(helped) + len(stubbornly)} questions in {took:.0f} s; a run may take {seconds:g} s.\n")
    for mode, outcomes in (("told", helped), ("stubborn", stubbornly)):
        for one in outcomes:
            if one.passed_wrongly or one.status == "error" or (mode == "told" and not one.right):
                print(
                    f"- {one.group}, {mode}, **{one.status}**: {one.task} {' '.join(one.output.split())[:200]}"
                )
    sys.exit(any(one.passed_wrongly for one in (*helped, *stubbornly)))


def live_rows(outcomes: Sequence[Outcome]) -> Iterator[tuple[object, ...]]:
    """A line for each way."""
    for way, ones in grouped(outcomes).items():
        right = sum(one.right and not one.told for one in ones)
        checked = [one for one in ones if one.status in CHECKED]
        unchecked = [one for one in ones if one.status == "unverified"]
        pairs = [
            f"{sum(o.right for o in group)}, {sum(not o.right for o in group)}"
            for group in (checked, unchecked)
        ]
        spent = (
            sum(one.calls for one in ones),
            sum(one.tokens for one in ones),
            f"{sum(o.seconds for o in ones):.0f}",
        )
        yield (
            way,
            len(ones),
            right,
            *pairs,
            sum(one.told for one in ones),
            sum(o.status == "error" for o in ones),
            *spent,
        )


def logged(log: Path | None, model: str) -> list[Outcome]:
    """What a log has of a model; a line that was cut off is left out."""
    found: list[Outcome] = []
    for line in log.read_text().splitlines() if log and log.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            record = json.loads(line)
            if record.pop("model") == model:
                found.append(Outcome(**record))
    return found


def ask_live(chain: Any, way: str, task: Task, folder: Path) -> Outcome:
    """Put one task to a model."""
    state: dict[str, Any] = {"query": task.query}
    if task.files:
        state["files"] = {name: folder / name for name in task.files}
    if way in RETRIEVE:
        state["context"] = retrieve(task.query)
    return outcome(way, task.query, lambda: chain.invoke(state), lambda result: task.right(result["output"]))


@main.command()
@click.option("--model", default="local:0.5b", help="Whatever create_code_chain takes.")
@click.option("--ways", default=",".join(WAYS), help=f"Some of {', '.join(WAYS)}.")
@click.option("--tasks", default=len(TASKS), help="How many tasks, from the first.")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="A file to go on from.")
def live(model: str, ways: str, tasks: int, log: Path | None) -> None:
    """Ask a real model."""
    chosen = [way.strip() for way in ways.split(",")]
    if unknown := [way for way in chosen if way not in WAYS]:
        raise click.BadParameter(f"no such way: {', '.join(unknown)}", param_hint="--ways")
    wanted = [(way, task) for way in chosen for task in TASKS[:tasks]]
    known = {(one.group, one.task): one for one in logged(log, model)}
    with tempfile.TemporaryDirectory() as name:
        put_files(Path(name))
        for way in chosen:
            missing = [task for other, task in wanted if other == way and (way, task.query) not in known]
            if not missing:
                continue
            with create_code_chain(model, interpret=False, **WAYS[way]) as chain:
                for task in missing:
                    one = known[way, task.query] = ask_live(chain, way, task, Path(name))
                    note(one, model, log)
    table(LIVE_HEAD, live_rows([known[way, task.query] for way, task in wanted]))
    print(f"\n{model}, {tasks} tasks.")


def note(one: Outcome, model: str, log: Path | None) -> None:
    """Tell of an outcome, and keep it."""
    mark = "right" if one.right else "WRONG"
    shown = " ".join(one.output.split())[:60]
    print(
        f"{one.group:10} {mark} {one.status:10} {one.seconds:5.1f} s  {one.task[:50]} -> {shown}",
        file=sys.stderr,
    )
    if log:
        with log.open("a") as file:
            file.write(json.dumps({"model": model, **asdict(one)}) + "\n")


if __name__ == "__main__":
    main()
