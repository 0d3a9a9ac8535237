"""Iteration: a model writes one cell after the other, sees what each shows, and declares the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import StructuredTool

from code_chains import Budget, CodeChain, ConfigurationError, Data, Iterate, Plan, create_code_chain
from code_chains.chains import ValidateChain
from code_chains.chains.iterate import is_open_ended
from code_chains.executors import Limits, SandboxExecutor
from code_chains.testing import ScriptedExecutor, ScriptedModel

Messages = list[BaseMessage]


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=5), preload=()) as box:
        yield box


def cells_so_far(messages: Messages) -> int:
    """Return how many cells a model has written, besides that of the example."""
    return sum(message.type == "ai" for message in messages) - 2


def scripted(*cells: str | Callable[[Messages], str]) -> ScriptedModel:
    """A model that writes these cells, the last one again and again, and any answer."""

    def reply(messages: Messages) -> str:
        if "notebook" not in str(messages[0].content):
            return "The answer."
        cell = cells[min(cells_so_far(messages), len(cells) - 1)]
        if callable(cell):
            return cell(messages)
        return cell if cell.startswith("!") else f"```python\n{cell}\n```"

    return ScriptedModel(reply)


@pytest.fixture
def chain(box: SandboxExecutor) -> Callable[..., CodeChain]:
    def create(*cells: str | Callable[[Messages], str], **options: Any) -> CodeChain:
        return create_code_chain(
            scripted(*cells), executor=box, **{"solve": Iterate(), "checks": (), **options}
        )

    return create


def test_a_model_sees_what_a_cell_shows_before_it_writes_the_next_one(chain: Any) -> None:
    def second(messages: Messages) -> str:
        shown = str(messages[-1].content)
        return (
            "```python\nfinal_answer(sum(numbers))\n```" if "[20, 22]" in shown else "```python\n1 / 0\n```"
        )

    result = chain("numbers = [20, 22]\nprint(numbers)", second).invoke({"query": "What is the sum?"})
    assert (result["output"], result["stop_reason"], result["verdict"].status) == (
        "42",
        "answered",
        "unverified",
    )
    assert [attempt.strategy for attempt in result["attempts"]] == ["initial", "continue"]


def test_a_cell_that_fails_changes_nothing_and_is_the_next_observation(chain: Any) -> None:
    def third(messages: Messages) -> str:
        assert "ZeroDivisionError" in str(messages[-1].content)
        return "```python\nfinal_answer(x)\n```"

    result = chain("x = 42", "x = 1\n1 / 0", third).invoke({"query": "What is x?"})
    assert result["output"] == "42"
    assert "1 / 0" not in result["code"]


ENDINGS = {
    "in a branch of a loop": ("for i in range(3):\n    if i == 2:\n        final_answer(i * 21)", "42"),
    "under another name": ("answer = final_answer\nanswer(42)", "42"),
    "in place of the function": ("final_answer = 42", "42"),
    "twice": ("final_answer(1)\nfinal_answer(42)", "42"),
    "caught": ("try:\n    final_answer(42)\nexcept Exception:\n    pass", "42"),
    "in a function": ("def main():\n    final_answer(42)\nmain()", "42"),
    "with further output": ("print('Sum:')\nfinal_answer(42)", "Sum:\n42"),
    "none after output": ("print('nothing')\nfinal_answer(None)", "nothing"),
    "a text": ("final_answer('forty-two')", "'forty-two'"),
}


@pytest.mark.parametrize(("cell", "output"), ENDINGS.values(), ids=ENDINGS.keys())
def test_the_answer_is_declared_by_a_call(chain: Any, cell: str, output: str) -> None:
    result = chain(cell).invoke({"query": "What?"})
    assert (result["output"], result["stop_reason"]) == (output, "answered")


def test_words_without_code_end_it_once_a_cell_has_run(chain: Any) -> None:
    result = chain("print(42)", "!It is 42.").invoke({"query": "What?"})
    assert (result["output"], result["stop_reason"], len(result["attempts"])) == ("42", "answered", 1)


NEVER: dict[str, tuple[tuple[str, ...], dict[str, Any], str]] = {
    "words at once": (("!It is 42.",), {}, "same_failure"),
    "the same cell": (("print(1)",), {}, "same_failure"),
    "two cells in turn": (("print(1)", "print(2)") * 4, {}, "same_failure"),
    "ever new cells": (tuple(f"print({number})" for number in range(9)), {"solve": Iterate(4)}, "attempts"),
    "a mention without a call": (("# final_answer(1)\nprint(1)",), {}, "same_failure"),
    "a call that is not reached": (("if False:\n    final_answer(1)",), {}, "same_failure"),
    "a function of its own": (("def final_answer(x): print(x)\nfinal_answer(42)",), {}, "same_failure"),
    "None as the answer": (("final_answer(None)",), {}, "same_failure"),
    "the budget": (("print(1)", "print(2)"), {"budget": Budget(attempts=1)}, "attempts"),
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("cells", "options", "reason"), NEVER.values(), ids=NEVER.keys())
def test_a_model_that_never_answers_is_stopped(
    chain: Any, cells: tuple[str, ...], options: dict[str, Any], reason: str
) -> None:
    result = chain(*cells, **options).invoke({"query": "What?"})
    assert (result["stop_reason"], result["verdict"].status) == (reason, "failed")
    assert len(result["attempts"]) <= 8


def test_a_model_that_gets_no_cell_by_its_budget_gives_a_result(chain: Any) -> None:
    result = chain("print(1)", budget=Budget(tokens=10)).invoke({"query": "What?"})
    assert (result["stop_reason"], result["attempts"], result["verdict"].status) == ("tokens", [], "failed")


@pytest.mark.slow
def test_a_cell_that_hangs_or_exits_does_not_lose_the_others(box: SandboxExecutor) -> None:
    with SandboxExecutor(limits=Limits(seconds=2), preload=()) as quick:
        model = scripted("x = 42", "while True: pass", "import os\nos._exit(1)", "final_answer(x)")
        chain = create_code_chain(model, executor=quick, solve=Iterate(), checks=())
        result = chain.invoke({"query": "What?"})
    assert result["output"] == "42"
    assert [attempt.status for attempt in result["attempts"]] == ["ok", "timeout", "killed", "ok"]


def test_the_program_of_all_cells_gives_the_answer_again(chain: Any, box: SandboxExecutor) -> None:
    result = chain(
        "open('n.txt', 'w').write('42')", "with open('n.txt') as f: n = int(f.read())", "final_answer(n)"
    ).invoke({"query": "What?"})
    assert box.run(result["code"]).result == "42"
    assert "ran" in result["verdict"].reason


def test_imports_from_the_future_come_first_in_the_program(chain: Any, box: SandboxExecutor) -> None:
    result = chain("x = 42", "from __future__ import annotations\nfinal_answer(x)").invoke({"query": "What?"})
    assert box.run(result["code"]).result == "42"
    assert "ran" in result["verdict"].reason


@pytest.mark.parametrize(
    "cell",
    ["import random\nfinal_answer(random.random())", "import time\nfinal_answer(time.time_ns())"],
    ids=["random", "clock"],
)
def test_an_answer_that_does_not_come_again_says_so(chain: Any, cell: str) -> None:
    verdict = chain("print(1)", cell).invoke({"query": "What?"})["verdict"]
    assert (verdict.status, "does not give this answer again" in verdict.reason) == ("unverified", True)


def test_tests_decide_and_a_wrong_answer_goes_back_to_the_model(chain: Any) -> None:
    def second(messages: Messages) -> str:
        assert "expected 4" in str(messages[-1].content)
        return "```python\ndef double(x): return 2 * x\nfinal_answer(double(4))\n```"

    wrong = "def double(x): return 3 * x\nfinal_answer(double(4))"
    result = chain(wrong, second).invoke({"query": "Double 4.", "tests": "assert double(2) == 4"})
    assert (result["verdict"].status, result["output"]) == ("verified", "8")


def test_observations_keep_their_ends_and_older_ones_make_room(chain: Any) -> None:
    sizes: list[int] = []

    def look(number: int) -> Callable[[Messages], str]:
        def reply(messages: Messages) -> str:
            sizes.append(sum(len(str(message.content)) for message in messages))
            if number:
                assert "END" in str(messages[-1].content)
            return f"```python\nprint('x' * 100_000, 'END', {number})\n```"

        return reply

    result = chain(*(look(number) for number in range(8))).invoke({"query": "What?"})
    assert len(result["attempts"]) == 8
    assert max(sizes) < 40_000


def test_files_and_variables_are_there_in_each_cell(chain: Any, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("40")
    cells = ("print(open('n.txt').read())", "final_answer(int(open('n.txt').read()) + n)")
    result = chain(*cells).invoke({"query": "What?", "files": [tmp_path / "n.txt"], "variables": {"n": 2}})
    assert result["output"] == "42"


def test_a_conversation_keeps_the_state_of_an_answer_and_nothing_of_a_failure(chain: Any) -> None:
    with chain("x = 42", "final_answer(x)") as first:
        first.invoke({"query": "What?", "session_id": "ann"})
        assert first.execute("x + 1", "ann")["output"] == "43"
    with chain("y = 1", "print(y)", solve=Iterate(2)) as second:
        second.invoke({"query": "What?", "session_id": "ann"})
        assert "NameError" in str(second.execute("y", "ann")["execution"].error)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])
def test_all_ways_of_calling_give_the_same(chain: Any, how: str) -> None:
    iterating = chain("print('look')\nx = 6", "final_answer(x * 7)")

    async def total() -> dict[str, Any]:
        added: Any = None
        async for chunk in iterating.astream({"query": "What?"}):
            added = chunk if added is None else added + chunk
        return dict(added)

    def summed() -> dict[str, Any]:
        added: Any = None
        for chunk in iterating.stream({"query": "What?"}):
            added = chunk if added is None else added + chunk
        return dict(added)

    ways: dict[str, Callable[[], dict[str, Any]]] = {
        "invoke": lambda: iterating.invoke({"query": "What?"}),
        "ainvoke": lambda: asyncio.run(iterating.ainvoke({"query": "What?"})),
        "stream": summed,
        "astream": lambda: asyncio.run(total()),
    }
    result = ways[how]()
    assert (result["output"], len(result["attempts"]), result["stdout"]) == ("42", 2, "look\n")
    assert result["programs"] == ["print('look')\nx = 6\n", "final_answer(x * 7)\n"]


def test_approval_and_checks_apply_to_each_cell(chain: Any) -> None:
    def approve(request: Any) -> bool | str:
        return "secret" not in request.code or "Not that."

    def second(messages: Messages) -> str:
        assert "Not that." in str(messages[-1].content)
        return "```python\nfinal_answer(6 * 7)\n```"

    result = chain("secret = 1", second, checks=ValidateChain(approve=approve)).invoke(
        {"query": "What is 6 * 7?"}
    )
    assert [attempt.status for attempt in result["attempts"]] == ["refused", "ok"]


def test_a_cell_calls_tools_and_effects_are_not_repeated(chain: Any) -> None:
    called: list[int] = []

    def look_up(n: int) -> int:
        """Look a number up."""
        called.append(n)
        return n * 2

    result = chain("x = look_up(21)\nprint(x)", "final_answer(x)", tools=[look_up]).invoke({"query": "What?"})
    assert (result["output"], called) == ("42", [21])
    assert [call.name for call in result["execution"].tool_calls] == ["look_up"]
    called.clear()
    failed = chain("look_up(1)\n1 / 0", "final_answer(2)", tools=[look_up]).invoke({"query": "What?"})
    assert (failed["stop_reason"], called) == ("effects", [1])
    read_only = StructuredTool.from_function(look_up, metadata={"read_only": True})
    again = chain("look_up(1)\n1 / 0", "final_answer(look_up(2))", tools=[read_only]).invoke(
        {"query": "What?"}
    )
    assert (again["stop_reason"], again["output"]) == ("answered", "4")


@pytest.mark.slow
def test_figures_are_shown_to_models_that_accept_images(chain: Any) -> None:
    pytest.importorskip("matplotlib")
    plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"

    def second(messages: Messages) -> str:
        blocks = messages[-1].content
        kinds = (
            [block["type"] for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        )
        return f"```python\nfinal_answer({kinds!r})\n```"

    with create_code_chain(scripted(plot, second), solve=Iterate(vision=True), checks=()) as seeing:
        assert seeing.invoke({"query": "What?"})["output"].endswith("['text', 'image']")
    with create_code_chain(scripted(plot, second), solve=Iterate(), checks=()) as blind:
        assert blind.invoke({"query": "What?"})["output"].endswith("[]")


def test_auto_iterates_where_there_is_something_to_look_at(box: SandboxExecutor, tmp_path: Path) -> None:
    (tmp_path / "n.txt").write_text("1")
    prompts: list[bool] = []

    def reply(messages: Messages) -> str:
        system = str(messages[0].content)
        if "Python block" in system:
            prompts.append("notebook" in system)
            return "```python\nfinal_answer(0 + 1)\n```" if prompts[-1] else "```python\nprint(0 + 1)\n```"
        return "One."

    chain = create_code_chain(ScriptedModel(reply), executor=box, solve=Iterate(when="auto"))
    chain.invoke({"query": "What is 1?"})
    chain.invoke({"query": "What is 1?", "files": [tmp_path / "n.txt"]})
    chain.invoke({"query": "Explore the data."})
    assert prompts == [False, True, True]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Analyse the sales and tell me what stands out.", True),
        ("Untersuche die Daten.", True),
        ("Analiza las ventas.", True),
        ("What is 2 + 2?", False),
        ("How many rows are there?", False),
    ],
)
def test_open_ended_questions_are_recognized(query: str, expected: bool) -> None:
    assert is_open_ended(query) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"data": Data(schema_only=True)}, "the model sees what its cells show"),
        ({"executor": ScriptedExecutor(str)}, "does not open sessions"),
    ],
)
def test_what_does_not_go_together_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        create_code_chain(scripted("1"), solve=Iterate(), **options)


def test_the_steps_of_a_plan_are_solved_by_cells(box: SandboxExecutor) -> None:
    def reply(messages: Messages) -> str:
        system, last = str(messages[0].content), str(messages[-1].content)
        if "split a task" in system:
            return '{"steps": ["Set x to 6.", "Print x times 7."]}'
        if "notebook" in system:
            step = "x *= 7" if "times 7.\n(This" in last else "x = 6"
            return f"```python\n{step}\nfinal_answer(x)\n```"
        return "It is 42."

    chain = create_code_chain(ScriptedModel(reply), executor=box, solve=Plan(Iterate()))
    result = chain.invoke({"query": "Set x to 6, then print x times 7."})
    assert result["output"].split() == ["6", "42"]


def test_messages_of_cells_are_part_of_the_conversation_with_the_model(chain: Any) -> None:
    seen: list[Messages] = []

    def second(messages: Messages) -> str:
        seen.append(messages)
        return "```python\nfinal_answer(1)\n```"

    chain("print('shown')", second).invoke({"query": "What?"})
    question, cell, observation = seen[0][-3:]
    assert (question.content, cell.type) == ("What?", "ai")
    assert "print('shown')" in str(cell.content)
    assert isinstance(observation, HumanMessage)


def test_help_on_an_installed_function_is_an_observation_of_bounded_length(sandbox: SandboxExecutor) -> None:
    seen: list[str] = []
    cells = [
        "import statistics\nhelp(statistics.fmean)",
        "help(statistics)",
        "final_answer(statistics.fmean([1, 2]))",
    ]

    def write(messages: list[BaseMessage]) -> str:
        seen.append(messages[-1].text)
        return f"```python\n{cells[len(seen) - 1]}\n```"

    with create_code_chain(ScriptedModel(write), executor=sandbox, solve=Iterate(), interpret=False) as chain:
        assert chain.invoke({"query": "What is the mean of 1 and 2?"})["output"] == "1.5"
    assert "fmean(data, weights=None)" in seen[1]
    assert "NormalDist" in seen[2]
    assert len(seen[2]) < 7000
