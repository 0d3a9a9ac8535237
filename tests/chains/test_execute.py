"""Programs are seen as they are written, and their output as it is printed."""

from __future__ import annotations

import functools
import operator
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tracers.context import collect_runs

from code_chains import Judge, Repair, SnippetStore, create_code_chain
from code_chains.callbacks.budget import Budget
from code_chains.chains import ExecuteChain
from code_chains.executors import SandboxExecutor
from code_chains.executors.guest.sandbox.pipes import ProgramPipes
from code_chains.state import Execution, Problem
from code_chains.testing import ScriptedModel, asks_for_code

FAKE = DeterministicFakeEmbedding(size=32)
SLOW = "import time\nfor i in range(4):\n    print('step', i, 'é' * i)\n    time.sleep(0.2)\n"
FAILS = SLOW + "1 / 0\n"
PRINTED = "".join(f"step {i} {'é' * i}\n" for i in range(4))


def in_turn(*programs: str) -> ScriptedModel:
    """Return a model that writes one program after the other, as the feedback shows that it must."""

    def script(messages: list[Any]) -> str:
        if not asks_for_code(messages):
            return "Done."
        written = sum(message.type == "ai" for message in messages[5:])
        return f"```python\n{programs[min(written, len(programs) - 1)]}```"

    return ScriptedModel(script)


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(preload=()) as executor:
        executor.run("1")
        yield executor


def test_output_comes_while_the_program_runs(executor: SandboxExecutor) -> None:
    started = time.monotonic()
    chunks = [(chunk, time.monotonic() - started) for chunk in ExecuteChain(executor).stream({"code": SLOW})]
    first, end = (
        next(seconds for chunk, seconds in chunks if chunk.get(key)) for key in ("stdout", "execution")
    )
    assert first < end - 0.3
    assert "".join(chunk.get("stdout", "") for chunk, _ in chunks) == PRINTED


async def test_output_comes_while_the_program_runs_on_an_event_loop(executor: SandboxExecutor) -> None:
    events = [
        event
        async for event in ExecuteChain(executor).astream_events({"code": SLOW}, version="v2")
        if event["event"] == "on_chain_stream" and event["data"]["chunk"].get("stdout")
    ]
    assert len(events) > 1
    assert "".join(event["data"]["chunk"]["stdout"] for event in events) == PRINTED


@pytest.mark.slow
def test_each_program_comes_before_it_runs_and_its_output_before_the_next(executor: SandboxExecutor) -> None:
    chain = create_code_chain(in_turn(FAILS, SLOW), executor=executor)
    keys = [next(iter(chunk)) for chunk in chain.stream("?") if next(iter(chunk.values()))]
    story = [key for key, before in zip(keys, [None, *keys], strict=False) if key != before]
    attempt = ["programs", "stdout", "attempts"]
    assert story[: story.index("code")] == ["query", "answer_language", *attempt, *attempt]


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", [SLOW, FAILS, "6 * 7", "print('x' * 30_000)", "import os; os.write(1, b'\\xff\\xc3')"]
)
async def test_a_stream_with_live_output_sums_to_the_result(executor: SandboxExecutor, code: str) -> None:
    chain = create_code_chain(in_turn(f"{code}\n"), executor=executor, solve=Repair(2))
    result = chain.invoke("?")
    streams = list(chain.stream("?")), [chunk async for chunk in chain.astream("?")]
    for chunks in streams:
        streamed = functools.reduce(operator.add, chunks)
        assert {key: streamed[key] for key in ("programs", "stdout", "output", "code")} == {
            key: result[key] for key in ("programs", "stdout", "output", "code")
        }


def test_streamed_output_is_bounded(executor: SandboxExecutor) -> None:
    code = "for i in range(5):\n    print('x' * 9_999, flush=True)\n    import time; time.sleep(0.15)"
    chunks = list(ExecuteChain(executor).stream({"code": code}))
    assert sum(len(chunk.get("stdout", "")) for chunk in chunks) == 20_000
    assert len(chunks[-1]["execution"].stdout) == 50_000


@pytest.mark.slow
def test_a_reader_who_takes_long_does_not_end_the_program(executor: SandboxExecutor) -> None:
    stream = executor.stream(SLOW)
    next(stream)
    time.sleep(1)
    assert [item.status for item in stream if isinstance(item, Execution)] == ["ok"]


def test_an_executor_that_vetoes_runs_vetoes_streams(executor: SandboxExecutor) -> None:
    class Vetoing(SandboxExecutor):
        def run(self, code: str, **inputs: Any) -> Execution:
            return Execution("refused")

    with Vetoing(preload=()) as vetoing:
        assert [
            chunk["execution"].status
            for chunk in ExecuteChain(vetoing).stream({"code": "1"})
            if "execution" in chunk
        ] == ["refused"]


def test_what_a_program_showed_is_kept_if_the_budget_does_not_allow_its_judge(
    executor: SandboxExecutor,
) -> None:
    chain = create_code_chain(
        in_turn("print(3 * 5)\n"), executor=executor, budget=Budget(model_calls=1), verify=[Judge()]
    )
    result = chain.invoke("What is 3 * 5?")
    assert (result["output"], result["verdict"].status) == ("15", "unverified")
    assert "judge" in result["verdict"].reason


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=5))
def test_parts_of_output_add_up_to_its_text(data: bytes, cuts: list[int]) -> None:
    parts, sent = [], 0
    with ExitStack() as stack:
        writers: list[int] = []
        pipes = ProgramPipes(stack, writers, max_output_bytes=100, max_view_bytes=100)
        for descriptor in writers:
            stack.callback(os.close, descriptor)
        for end in [*sorted(cuts), len(data)]:
            sent += os.write(writers[1], data[sent:end])
            pipes.drain()
            parts.append(pipes.take_stdout())
    assert data.decode(errors="replace").startswith("".join(parts))


@pytest.mark.parametrize(
    ("code", "tags"), [("1", []), ("1 / 0", ["failed", "status:error"]), (None, ["failed", "status:refused"])]
)
def test_failed_runs_can_be_found_in_traces(
    executor: SandboxExecutor, code: str | None, tags: list[str]
) -> None:
    problems = [] if code else [Problem("check", "Not this one.")]
    with collect_runs() as collected:
        ExecuteChain(executor).invoke({"code": code or "1", "problems": problems}, {"tags": ["mine"]})
    (run,) = collected.traced_runs
    assert [tag for child in run.child_runs for tag in child.tags or [] if tag != "mine"] == tags
    assert run.error is None


def test_a_mixin_that_vetoes_runs_vetoes_streams() -> None:
    class Veto:
        def run(self, code: str, **inputs: Any) -> Execution:
            return Execution("refused")

        async def arun(self, code: str, **inputs: Any) -> Execution:
            return Execution("refused")

    class Guarded(Veto, SandboxExecutor):
        pass

    with Guarded(preload=()) as guarded:
        assert [item.status for item in guarded.stream("1") if isinstance(item, Execution)] == ["refused"]


@pytest.mark.slow
def test_a_chain_of_its_own_reports_a_program_that_outlasts_the_budget(executor: SandboxExecutor) -> None:
    budget = Budget(seconds=1)
    assert budget.seconds_left
    outcome = ExecuteChain(executor).invoke({"code": "import time; time.sleep(9)"}, {"callbacks": [budget]})
    assert outcome["execution"].status == "timeout"


@pytest.mark.parametrize(
    "problems", [["blocked"], "blocked", (False, "blocked"), Problem("rule", "blocked"), {"blocked"}]
)
def test_problems_may_be_what_a_check_returns(executor: SandboxExecutor, problems: Any) -> None:
    ran = ExecuteChain(executor).invoke({"code": "print(1)", "problems": problems})
    assert (ran["execution"].status, ran["output"]) == ("refused", "The program was refused: blocked")


@pytest.mark.parametrize(
    "problems", [None, [], True, (True, "fine"), [Problem("rule", "look", severity="advice")]]
)
def test_no_problem_lets_a_program_run(executor: SandboxExecutor, problems: Any) -> None:
    assert ExecuteChain(executor).invoke({"code": "print(1)", "problems": problems})["output"] == "1"


@pytest.mark.parametrize(
    ("code", "output"), [("'2+2'", "2+2"), ('{"code": "print(1)"}', "{'code': 'print(1)'}")]
)
def test_a_program_that_is_a_text_or_data_shows_it(executor: SandboxExecutor, code: str, output: str) -> None:
    assert ExecuteChain(executor).invoke({"code": code})["output"].strip("'") == output


def test_a_text_that_looks_like_a_program_is_a_value(executor: SandboxExecutor) -> None:
    chain = create_code_chain(in_turn("'12/5'\n"), executor=executor, answer_type=str)
    assert chain.invoke({"query": "Which fraction?"})["value"] == "12/5"


FAILED_CALLS = {
    "a wrong argument": (
        "import statistics\nstatistics.harmonic_mean([1], weight=[1])",
        "harmonic_mean(data, weights=None)",
    ),
    "a misspelt name": ("from statistics import harmonicmean", "harmonic_mean(data, weights=None)"),
    "a misspelt attribute": (
        "import statistics\nstatistics.harmonic_meen([1])",
        "harmonic_mean(data, weights=None)",
    ),
    "a wrong module": ("from statistics.means import harmonic_mean", "harmonic_mean(data, weights=None)"),
    "an object of another type": (
        "from statistics import harmonic_mean\nharmonic_mean(3)",
        "harmonic_mean(data, weights=None)",
    ),
    "a wrong value": (
        "from statistics import quantiles\nquantiles([1, 2], n=0)",
        "quantiles(data, *, n=4, method='exclusive')",
    ),
}


@pytest.mark.parametrize(("code", "signature"), FAILED_CALLS.values(), ids=FAILED_CALLS)
def test_a_failed_call_of_an_indexed_package_says_how_it_is_called(
    sandbox: SandboxExecutor, code: str, signature: str
) -> None:
    chain = ExecuteChain(sandbox, references=SnippetStore.from_package("statistics", FAKE))
    error = chain.invoke({"code": code})["execution"].error
    assert f"from statistics import {signature.partition('(')[0]}\n{signature}" in error.hint
    assert "not installed" not in error.hint


@pytest.mark.parametrize("code", ["print(meen)", "import statistics\nprint(1 / 0)"])
def test_other_failures_say_nothing_of_the_package(sandbox: SandboxExecutor, code: str) -> None:
    chain = ExecuteChain(sandbox, references=SnippetStore.from_package("statistics", FAKE))
    assert "from statistics" not in chain.invoke({"code": code})["execution"].error.hint


def test_a_repair_is_told_how_a_function_is_called(sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def write(messages: list[BaseMessage]) -> str:
        seen.append(messages[-1].text)
        name = "meanof" if len(seen) == 1 else "fmean"
        return f"```python\nfrom statistics import {name}\nprint({name}([1, 2]))\n```"

    store = SnippetStore.from_package("statistics", FAKE)
    with create_code_chain(ScriptedModel(write), executor=sandbox, snippets=store, interpret=False) as chain:
        assert chain.invoke({"query": "What is the mean of 1 and 2?"})["output"] == "1.5"
    assert (
        "from statistics import fmean\nfmean(data, weights=None)" in seen[1]
        or "from statistics import mean\nmean(data)" in seen[1]
    )


REPLIES = {
    "a refusal": "I'm sorry, I cannot do that.",
    "advice": "Sure! Use pandas.\n\nIt reads the file (see its docs): quick.",
    "a refusal in Chinese": "抱歉，我不能这样做。",
    "two words": "I cannot.",
    "a word": "Sorry!",
    "nothing": "",
    "blanks": " \n",
}


@pytest.mark.rows(2)
@pytest.mark.parametrize("wrap", [AIMessage, str])
@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_without_a_program_is_not_run(reply: str, wrap: Any, executor: SandboxExecutor) -> None:
    outcome = ExecuteChain(executor).invoke(wrap(reply))
    assert outcome["execution"].status == "refused"
    assert "The reply held no Python program." in outcome["output"]


BROKEN = [
    *("imprt pandas as pd", '"hello world', "retrun total plus tax", "await sleep one"),
    "fro i in range(3)\n    i plus 1",
    "for i in range(3) print(i)",
    "total = (1 +\nprint(total)",
    "print('a",
    "x +",
    "def f(x:\n  return 1",
]


@pytest.mark.parametrize("code", BROKEN)
def test_a_broken_program_is_told_where_it_is_broken(code: str, executor: SandboxExecutor) -> None:
    assert ExecuteChain(executor).invoke({"code": code})["execution"].error.type == "SyntaxError"
