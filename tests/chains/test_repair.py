"""Attempts that learn, change strategy, stop, leave no trace, and are asked for before they run."""

from __future__ import annotations

import asyncio
import functools
import operator
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from pydantic import Field

from code_chains import (
    Agreement,
    Data,
    GeneratedTests,
    Iterate,
    Judge,
    Plan,
    Repair,
    Snippets,
    create_code_chain,
)
from code_chains.chains import (
    ApprovalRequest,
    AttemptChain,
    EvaluateChain,
    ExecuteChain,
    GenerateChain,
    RepairChain,
    ValidateChain,
)
from code_chains.chains.generate import EXAMPLES
from code_chains.errors import ConfigurationError, InputError, SessionError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.testing import ScriptedModel, asks_for_code
from tests.chains.test_verdicts import fenced, writing
from tests.conftest import QUESTION


class Asked(ScriptedModel):
    """Remembers the messages and temperatures it was asked with, and writes one program after the other."""

    codes: tuple[str, ...]
    temperature: float = 0.0
    seen: list[str] = Field(default_factory=list)
    heat: list[float] = Field(default_factory=list)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        self.seen.append("\n".join(str(message.text) for message in messages))
        self.heat.append(kwargs.get("temperature", self.temperature))
        return super()._generate(messages, stop, run_manager)

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        return AIMessage(fenced(self.codes[min(len(self.seen), len(self.codes)) - 1]))


def numbered(*codes: str) -> Asked:
    """A model that writes the first program, then the second, and so on."""
    return Asked(script=lambda messages: "", codes=codes)


# -- attempts ------------------------------------------------------------------------------------------------------------


def test_a_mend_costs_no_call_and_is_told(sandbox: SandboxExecutor) -> None:
    result = create_code_chain(writing("print(math.factorial(5))"), executor=sandbox, interpret=False).invoke(
        QUESTION
    )
    assert (result["output"], result["usage"].model_calls) == ("120", 1)
    assert result["attempts"][0].autofixes == ("added `import math`",)


def test_mends_follow_one_another(sandbox: SandboxExecutor) -> None:
    result = create_code_chain(writing("x = math.factorial(5)"), executor=sandbox, interpret=False).invoke(
        QUESTION
    )
    assert result["attempts"][0].autofixes == ("added `import math`", "printed `x` at the end")


@pytest.mark.parametrize("code", ["while True: pass", "while True: print('x' * 1000)"])
def test_a_program_that_reached_a_limit_is_not_tried_again_unless_asked_for(code: str) -> None:
    limits = Limits(seconds=0.5, output="64K")
    with SandboxExecutor(limits=limits, preload=()) as sandbox:
        for repeats, attempts in ((False, 1), (True, 2)):
            model = numbered(code, f"{code}  # again")
            chain = create_code_chain(
                model, executor=sandbox, solve=Repair(2, repeat_limits=repeats), interpret=False
            )
            result = chain.invoke({"query": "Loop."})
            assert (len(result["attempts"]), result["stop_reason"]) == (attempts, "attempts")


def test_the_same_failure_twice_makes_a_fresh_start_at_a_higher_temperature(sandbox: SandboxExecutor) -> None:
    model = numbered("1 / 0", "1 / 0", "print(sum(range(1, 6)))")
    result = create_code_chain(model, executor=sandbox, interpret=False, solve=Repair(5)).invoke(QUESTION)
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "repair", "restart"]
    assert (model.heat, "ZeroDivisionError" in model.seen[2]) == ([0.0, 0.0, 0.8], False)


def test_a_model_that_repeats_a_program_is_told_to_take_another_way(sandbox: SandboxExecutor) -> None:
    model = numbered("1 / 0", "1 / 0\n", "print(15)")
    result = create_code_chain(model, executor=sandbox, interpret=False).invoke(QUESTION)
    assert "failed before, so it was not run again" in result["attempts"][1].problems[0].message
    assert [text.endswith("in another way, with other functions or steps.") for text in model.seen] == [
        False,
        False,
        True,
    ]


def test_a_restart_for_tests_is_not_told_so(sandbox: SandboxExecutor) -> None:
    model = numbered(*(f"def double(x): return {number} * x" for number in (3, 3, 2)))
    restarting(model, sandbox, 3).invoke(DOUBLE)
    assert not any("another way" in text for text in model.seen)


def test_the_same_error_in_other_code_is_the_same_failure(sandbox: SandboxExecutor) -> None:
    model = numbered("x = 1\nx / 0", "y = 2\nx = 1\nx / 0", "print(15)")
    result = create_code_chain(model, executor=sandbox, interpret=False).invoke(QUESTION)
    assert result["attempts"][2].strategy == "restart"


def test_other_failures_are_patched_until_the_end(sandbox: SandboxExecutor) -> None:
    model = numbered("1 / 0", "[][1]", "{}[1]", "int('x')")
    result = create_code_chain(model, executor=sandbox, interpret=False, solve=Repair(4)).invoke(QUESTION)
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "repair", "repair", "repair"]
    assert result["stop_reason"] == "attempts"


def test_the_best_attempt_is_kept_and_not_the_last(sandbox: SandboxExecutor) -> None:
    model = numbered("def double(x): return 3 * x", "1 / 0", "import nothing_of_that_name")
    state = {"query": "Write double(x).", "examples": [(2, 4)]}
    assert "3 * x" in create_code_chain(model, executor=sandbox, interpret=False).invoke(state)["code"]


@pytest.mark.parametrize("most", [1, 3])
def test_never_more_programs_are_asked_for_than_allowed(sandbox: SandboxExecutor, most: int) -> None:
    model = numbered(*(f"x = {number}\n1 / 0 + {number}" for number in range(9)))
    create_code_chain(model, executor=sandbox, interpret=False, solve=Repair(most)).invoke(QUESTION)
    assert len(model.seen) == most


DOUBLE = {"query": "Write double(x).", "examples": [(2, 4)]}


def restarting(model: Asked, executor: SandboxExecutor, most: int) -> RepairChain:
    stages = [
        GenerateChain(model=model),
        ValidateChain(),
        ExecuteChain(executor),
        EvaluateChain(executor=executor),
    ]
    outputs = ["code", "problems", "execution", "output", "verdict"]
    attempt = AttemptChain(chains=stages, input_variables=["query"], output_variables=outputs)
    return RepairChain(attempt=attempt, max_attempts=most, on_failed_tests="restart")


def test_after_failed_tests_it_may_restart_each_time(sandbox: SandboxExecutor) -> None:
    model = numbered(*(f"def double(x): return {number} * x" for number in (3, 3, 4, 2)))
    result = restarting(model, sandbox, 4).invoke(DOUBLE)
    assert [attempt.strategy for attempt in result["attempts"]] == [
        "initial",
        "restart",
        "restart",
        "restart",
    ]
    assert (result["verdict"].status, model.heat) == ("verified", [0.0, 0.8, 0.8, 0.8])
    assert not any("3 * x" in text for text in model.seen)


def test_restarts_never_exceed_the_attempts(sandbox: SandboxExecutor) -> None:
    model = numbered("def double(x): return 3 * x")
    result = restarting(model, sandbox, 4).invoke(DOUBLE)
    assert (len(model.seen), result["stop_reason"]) == (4, "attempts")


def test_what_is_no_failed_test_is_repaired(sandbox: SandboxExecutor) -> None:
    model = numbered("1 / 0", "def double(x): return 3 * x", "def double(x): return 2 * x")
    result = restarting(model, sandbox, 3).invoke(DOUBLE)
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "repair", "restart"]
    assert "ZeroDivisionError" in model.seen[1]


@pytest.mark.parametrize(
    ("name", "strategy"), [("local:0.5b", "restart"), ("local:1.5b", "repair"), ("another", "repair")]
)
def test_the_smallest_model_restarts_after_failed_tests(
    sandbox: SandboxExecutor, name: str, strategy: str
) -> None:
    class Embedded(Asked):
        model_name: str = name

    model = Embedded(
        script=lambda _: "", codes=("def double(x): return 3 * x", "def double(x): return 2 * x")
    )
    chain = create_code_chain(model, executor=sandbox, interpret=False)
    assert [attempt.strategy for attempt in chain.invoke(DOUBLE)["attempts"]] == ["initial", strategy]
    assert (model.heat[1] == 0.8, "3 * x" in model.seen[1]) == (strategy == "restart", strategy == "repair")


def test_a_restart_for_tests_is_not_the_last_try_after_another_failure(sandbox: SandboxExecutor) -> None:
    model = numbered("1 / 0", "def double(x): return 3 * x", "1 / 0", "def double(x): return 2 * x")
    result = restarting(model, sandbox, 5).invoke(DOUBLE)
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "repair", "restart", "restart"]
    assert result["verdict"].status == "verified"


def test_other_failures_that_keep_coming_back_stop_it(sandbox: SandboxExecutor) -> None:
    model = numbered("def double(x): return 3 * x", "1 / 0")
    result = restarting(model, sandbox, 9).invoke(DOUBLE)
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "restart", "repair", "restart"]
    assert result["stop_reason"] == "same_failure"


async def test_restarts_are_alike_in_all_ways(sandbox: SandboxExecutor) -> None:
    state = {"query": "Write double(x).", "tests": "assert double(2) == 4"}

    def chain() -> RepairChain:
        return restarting(numbered(*(f"def double(x): return {n} * x" for n in (3, 4, 2))), sandbox, 3)

    expected = chain().invoke(state)
    assert [attempt.strategy for attempt in expected["attempts"]] == ["initial", "restart", "restart"]
    assert functools.reduce(operator.add, chain().stream(state)) == expected == await chain().ainvoke(state)


@pytest.mark.parametrize("value", ["Restart", None, True])
def test_what_follows_failed_tests_is_one_of_two(sandbox: SandboxExecutor, value: Any) -> None:
    attempt = restarting(numbered("1"), sandbox, 1).attempt
    with pytest.raises(ValueError, match="'repair' or 'restart'"):
        RepairChain(attempt=attempt, on_failed_tests=value)


# -- sessions ------------------------------------------------------------------------------------------------------------

LEAVES = "import os\nopen('left', 'w').write('x')\nleft = 1\n"
LOOKS = "import os\nprint('left' in globals(), os.path.exists('left'))"


@pytest.mark.parametrize("failure", [LEAVES + "1 / 0", "left = 1\npass"])
def test_an_attempt_starts_from_the_state_before_the_first(sandbox: SandboxExecutor, failure: str) -> None:
    with sandbox.session() as session:
        result = create_code_chain(numbered(failure, LOOKS), executor=sandbox, interpret=False).invoke(
            {"query": "?", "session": session}
        )
    assert result["output"] == "False False"


def test_an_outcome_that_is_not_accepted_leaves_no_trace(sandbox: SandboxExecutor) -> None:
    judge = ScriptedModel(lambda messages: "NO: not that.")
    with sandbox.session() as session:
        chain = create_code_chain(
            writing(LEAVES + "print(1)"), executor=sandbox, interpret=False, verify=[Judge(judge)]
        )
        chain.invoke({"query": "?", "session": session})
        assert session.run(LOOKS).output == "False False"


def test_an_answer_stays_in_the_session(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(numbered("x = 3\nprint(x)", "print(x * 2)"), executor=sandbox, interpret=False)
    with sandbox.session() as session:
        chain.invoke({"query": "?", "session": session})
        assert chain.invoke({"query": "?", "session": session})["output"] == "6"


def test_samples_in_a_session_leave_what_the_winner_did_once(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(
        writing("x = x + 1\nprint(x)"), executor=sandbox, interpret=False, solve=Repair(samples=3)
    )
    with sandbox.session() as session:
        session.run("x = 0")
        chain.invoke({"query": "?", "session": session, "variables": {}})
        assert session.run("x").result == "1"


def test_samples_of_which_none_is_accepted_leave_no_trace(sandbox: SandboxExecutor) -> None:
    judge = ScriptedModel(lambda messages: "NO: not that.")
    chain = create_code_chain(
        writing(LEAVES + "print(1)"),
        executor=sandbox,
        interpret=False,
        solve=Repair(samples=3),
        verify=[Judge(judge)],
    )
    with sandbox.session() as session:
        assert chain.invoke({"query": "?", "session": session})["verdict"].status == "failed"
        assert session.run(LOOKS).output == "False False"


def test_the_winner_runs_with_its_variables(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(
        writing("y = n + 1\nprint(y)"), executor=sandbox, interpret=False, solve=Repair(samples=3)
    )
    with sandbox.session() as session:
        chain.invoke({"query": "?", "session": session, "variables": {"n": 3}})
        assert session.run("y").result == "4"


def test_tests_and_a_session_do_not_go_together(sandbox: SandboxExecutor) -> None:
    with sandbox.session() as session, pytest.raises(InputError, match="Leave tests or session out"):
        create_code_chain(writing("x = 1"), executor=sandbox).invoke(
            {"query": "?", "session": session, "tests": "assert x == 1"}
        )


def test_an_error_after_the_run_leaves_no_trace(sandbox: SandboxExecutor) -> None:
    class Broken(EvaluateChain):
        def _flow(self, values: Any, config: Any) -> Any:
            if values:
                raise KeyError("It broke.")
            yield {}

    stages = [
        GenerateChain(model=writing(LEAVES + "print(1)")),
        ValidateChain(),
        ExecuteChain(sandbox),
        Broken(),
    ]
    attempt = AttemptChain(chains=stages, input_variables=["query"], output_variables=["code", "verdict"])
    with sandbox.session() as session:
        with pytest.raises(KeyError):
            attempt.invoke({"query": "?", "session": session})
        assert session.run(LOOKS).output == "False False"


def test_a_session_that_has_ended_is_an_error(sandbox: SandboxExecutor) -> None:
    session = sandbox.session()
    session.close()
    with pytest.raises(SessionError):
        create_code_chain(writing("print(1)"), executor=sandbox).invoke({"query": "?", "session": session})


def test_what_is_no_session_is_refused(sandbox: SandboxExecutor) -> None:
    with pytest.raises(InputError, match="session"):
        create_code_chain(writing("print(1)"), executor=sandbox).invoke({"query": "?", "session": "ann"})


# -- approval ------------------------------------------------------------------------------------------------------------


def test_who_approves_sees_code_advice_and_inputs(sandbox: SandboxExecutor, sales: Any) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    chain = create_code_chain(
        writing("import os\nos.remove('x') if 0 else print(n)"),
        executor=sandbox,
        checks=ValidateChain(approve=approve),
    )
    chain.invoke({"query": QUESTION, "files": {"sales.csv": sales}, "variables": {"n": 1}})
    (request,) = asked
    assert (request.query, request.files, request.variables) == (QUESTION, {"sales.csv": sales}, {"n": 1})
    assert any("remove" in problem.message for problem in request.problems)


@pytest.mark.parametrize("said", [False, "Not on a Sunday.", None, 1])
def test_nothing_runs_without_a_clear_yes(sandbox: SandboxExecutor, said: Any) -> None:
    result = create_code_chain(
        writing("print(1)"), executor=sandbox, checks=ValidateChain(approve=lambda request: said)
    ).invoke(QUESTION)
    assert {attempt.status for attempt in result["attempts"]} == {"refused"}


def test_a_reason_goes_back_to_the_model(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(
        writing("print(16)", "print(15)"),
        executor=sandbox,
        checks=ValidateChain(approve=lambda request: "16" not in request.code or "Not 16."),
    )
    result = chain.invoke(QUESTION)
    assert (result["output"], "Not 16." in result["attempts"][0].summary) == ("15", True)


def test_a_mended_program_is_shown_as_it_will_run(sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        seen.append(request.code)
        return True

    create_code_chain(
        writing("print(math.pi)"), executor=sandbox, checks=ValidateChain(approve=approve)
    ).invoke(QUESTION)
    assert [code.splitlines()[0] for code in seen] == ["import math"]


def test_tests_that_a_model_wrote_are_shown_too(sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def script(messages: list[BaseMessage]) -> str:
        return fenced(
            "assert '15' in output" if "write tests" in str(messages[0].text) else "print(sum(range(1, 6)))"
        )

    def approve(request: ApprovalRequest) -> bool:
        seen.append(request.code)
        return "assert" not in request.code

    chain = create_code_chain(
        ScriptedModel(script),
        executor=sandbox,
        interpret=False,
        verify=[GeneratedTests()],
        checks=ValidateChain(approve=approve),
    )
    assert (chain.invoke(QUESTION)["verdict"].status, len(seen)) == ("unverified", 2)


async def test_approval_may_be_async_and_never_blocks_the_loop(sandbox: SandboxExecutor) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        await asyncio.sleep(0.2)
        return True

    def slow(request: ApprovalRequest) -> bool:
        time.sleep(0.3)
        return threading.current_thread() is not threading.main_thread()

    for one in (approve, slow):
        chain = create_code_chain(writing("print(1)"), executor=sandbox, checks=ValidateChain(approve=one))
        task, gap = asyncio.create_task(chain.ainvoke(QUESTION)), 0.0
        while not task.done():
            before = time.monotonic()
            await asyncio.sleep(0.005)
            gap = max(gap, time.monotonic() - before)
        assert (task.result()["output"], gap < 0.25) == ("1", True)


def test_async_approval_works_in_a_plain_call(sandbox: SandboxExecutor) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        return True

    assert (
        create_code_chain(
            writing("print(1)"), executor=sandbox, checks=ValidateChain(approve=approve)
        ).invoke(QUESTION)["output"]
        == "1"
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (lambda: {"solve": Repair(samples=0)}, r"Repair\.samples=0"),
        (lambda: {"solve": 3}, r"solve=3.*Repair\(3\)"),
        (lambda: {"solve": Plan(when="often")}, r"Plan\.when='often'"),  # type: ignore[arg-type]
        (lambda: {"solve": Plan(Plan())}, r"Plan\.solver"),
        (lambda: {"solve": Iterate(0)}, r"Iterate\.cells=0"),
        (lambda: {"budget": 5}, "budget=5"),
        (lambda: {"checks": ValidateChain(approve="yes")}, r"approve='yes'"),  # type: ignore[arg-type]
        (lambda: {"verify": True}, r"verify=True.*Agreement\(\)"),
        (lambda: {"verify": [Judge("yes")]}, r"Judge\.model='yes'"),
        (lambda: {"verify": [GeneratedTests()], "executor": "none"}, "does not isolate tests"),
        (lambda: {"verify": [Agreement(lead=1)]}, r"Agreement\.lead=1"),
        (
            lambda: {"verify": [Judge()], "data": Data(schema_only=True)},
            "with schema_only a judge would see the data",
        ),
        (lambda: {"data": {"profile": False}}, r"Data\(schema_only=True\)"),
        (lambda: {"data": Data(profile="no")}, r"Data\.profile='no'"),  # type: ignore[arg-type]
        (lambda: {"language": 5}, "language=5"),
        (lambda: {"snippets": Snippets(learn=True)}, r"Snippets\.learn"),
    ],
)
def test_a_wrong_argument_is_named(arguments: Callable[[], dict[str, Any]], named: str) -> None:
    model = ScriptedModel(lambda messages: str(asks_for_code(messages)))
    with pytest.raises(ConfigurationError, match=named):
        create_code_chain(model, **arguments())


def test_the_example_of_the_prompt_answers_no_other_question() -> None:
    (asked, example), _ = EXAMPLES
    check = ValidateChain()
    for query, messages in (
        ("Which column is the longest?", ["It is the example of the prompt"]),
        (asked, []),
    ):
        problems = check.invoke({"query": query, "code": f"{example}\nprint('done')"})["problems"]
        assert [problem.message[:31] for problem in problems] == messages
