"""One budget of work bounds all that analyses a program on the host, and its end is no finding."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from code_chains import create_code_chain
from code_chains.analysis.checks import find_problems, no_calls, resolve_checks
from code_chains.analysis.checks.imports import imports_available
from code_chains.analysis.determinism import is_repeatable
from code_chains.analysis.replies.extraction import as_program, extract_code
from code_chains.analysis.work import MAX_STEPS, TooMuchWorkError, limited_to
from code_chains.chains import EvaluateChain, JudgeChain, ValidateChain, _drivers
from code_chains.chains.base import Analyse
from code_chains.chains.cached import is_cacheable
from code_chains.records import NOT_ANALYSED, Execution
from code_chains.testing import ScriptedModel, asks_for_code
from code_chains.verification.expectations import expect
from code_chains.verification.sanity import sanity_verdict

CHECKS = [*resolve_checks("strict"), imports_available(set(), is_installed=lambda module: False)]
QUERY = "What is the total of 5 amounts?"
NESTING = (
    *(
        "{'k': _}",
        "[_]",
        "f(_)",
        "(a := _)",
        "(lambda: _)",
        "(not _)",
        "(_ + 1)",
        "[_ for i in y]",
        "_.b(1)",
        "(1 if a else _)",
    ),
    *("x[_]", "{_: 1}", "f'{_}'", "(_, _2)", "P(_)", "-_"),
)
STATEMENTS = (
    *(
        "x = _",
        "print(_)",
        "d['k'] = _",
        "for i in _: pass",
        "def f(a): return _",
        "import zz, os",
        "x = x + _",
        "if _: pass",
    ),
    *(
        "try: _\nexcept E: pass",
        "with _ as x: pass",
        "a = b = _",
        "class C:\n    y = _",
        "df = df[df['a'] > _]",
    ),
)
TOO_LARGE = "x = 1\n" * 33_000


def steps_of(code: str) -> int:
    """Return the steps that all checks and analyses of a program take."""
    state = {"query": QUERY, "execution": Execution("ok", stdout="42"), "code": code, "files": {"a.csv": b""}}
    with limited_to(MAX_STEPS) as work:
        find_problems(code, CHECKS)
        sanity_verdict(state, as_program(code))
        is_repeatable(code)
        extract_code(f"```python\n{code}\n```")
        expect("assert f(1) == 2").program(code)
    return work.spent


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(NESTING), min_size=1, max_size=3), st.sampled_from(STATEMENTS))
def test_twice_the_program_is_at_most_three_times_the_work(nesting: list[str], statement: str) -> None:
    def nested(depth: int) -> str:
        expression = "1.5"
        for level in range(depth):
            expression = nesting[level % len(nesting)].replace("_2", "2").replace("_", expression, 1)
        return statement.replace("_", expression)

    def repeated(count: int) -> str:
        return "\n".join([nested(2)] * count)

    for program in (nested, repeated):
        assert steps_of(program(24)) <= 3 * steps_of(program(12)) + 200


def test_a_budget_that_is_spent_is_an_error_that_no_handler_takes_for_another() -> None:
    assert not issubclass(TooMuchWorkError, Exception)
    with limited_to(10), pytest.raises(TooMuchWorkError):
        find_problems("x = [1, 2, 3]\nprint(x)", CHECKS)


@pytest.mark.parametrize(
    ("checks", "severity"), [("strict", "error"), ([no_calls("os.system")], "error"), ("standard", "advice")]
)
def test_a_program_that_is_too_large_to_check_is_refused_but_where_checks_only_advise(
    checks: Any, severity: str
) -> None:
    (problem,) = ValidateChain(checks).invoke({"code": TOO_LARGE})["problems"]
    assert ("too large to check" in problem.message, problem.severity) == (True, severity)


def test_nobody_makes_more_of_what_was_not_analysed_than_that() -> None:
    judge = JudgeChain(model=ScriptedModel(lambda messages: "yes"))
    chain = EvaluateChain(verifiers=[judge], sanity_checks=True)
    state = {"code": TOO_LARGE, "query": QUERY, "execution": Execution("ok", stdout="5")}
    verdict = chain.invoke(state)["verdict"]
    assert verdict == NOT_ANALYSED
    assert not is_cacheable({"verdict": verdict, "code": "x = 1"})


@pytest.mark.parametrize(
    "code",
    [
        "match x:\n" + "\n".join(f" case {number}: y = 1" for number in range(1_000)),
        "try: y = 1\n" + "\n".join("except E: y = 1" for _ in range(1_000)),
    ],
    ids=["cases", "handlers"],
)
def test_branches_that_are_compared_in_pairs_count_as_pairs(code: str) -> None:
    with limited_to(MAX_STEPS), pytest.raises(TooMuchWorkError):
        find_problems(f"x = E = 1\n{code}", CHECKS)


@pytest.mark.parametrize("sign", ["9", "٩", "9,", "1 ", "五", "9万"])
def test_a_long_question_of_repeated_signs_is_read_once(sign: str) -> None:
    state = {
        "query": sign * (80_000 // len(sign)),
        "execution": Execution("ok", stdout="15"),
        "code": "print(15)",
    }
    start = time.process_time()
    sanity_verdict(state, "print(15)")
    assert time.process_time() - start < 5  # It took a minute.


async def test_long_texts_are_not_read_on_the_event_loop() -> None:
    seen: list[int] = []
    for query in ("What?", "What? " * 5_000):
        effect = Analyse(
            lambda state: seen.append(threading.get_ident()), {"query": query}, {}, otherwise=None
        )
        await _drivers._arun_function(effect)
    here = threading.get_ident()
    assert [thread == here for thread in seen] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "x = " + "{'k': " * 60 + "1" + "}" * 60 + "\nprint(x)",
        "import " + ", ".join(f"zz{number}" for number in range(240)),
        "x = " + "".join(f"(a{number} := " for number in range(60)) + "1" + ")" * 60 + "\nprint(x)",
        "````\n# ```\n1 x=1\n" + "x=1\n" * 5000,
        "x = 1 " + "a" * 20_000,
        "print('\\x1b[99999Cx\\n' * 2000)",
        "print('\\r' * 200_000)",
    ],
    ids=[
        "a nested dict",
        "missing modules",
        "nested assignments",
        "fences",
        "a long word",
        "moves",
        "returns",
    ],
)
async def test_no_short_program_stops_an_event_loop(code: str) -> None:
    model = ScriptedModel(
        lambda messages: f"```python\n{code}\n```" if asks_for_code(messages) else "It is 1."
    )
    chain = create_code_chain(model)
    await chain.ainvoke({"query": "Add 1 and 2."})  # It loads what it needs.
    worst, running = 0.0, asyncio.create_task(chain.ainvoke({"query": QUERY}))
    while not running.done():
        started = time.thread_time()
        await asyncio.sleep(0)
        worst = max(worst, time.thread_time() - started)
    await running
    chain.close()
    assert worst < 0.5  # A tenth of a second on a quiet machine; see `benchmarks/stalls.py`.
