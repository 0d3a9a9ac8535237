"""Programs that call tools of the application, and programs that attack the channel over which they do."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, ToolException, tool
from pydantic import BaseModel

from code_chains import (
    Budget,
    ConfigurationError,
    InputError,
    Repair,
    Toolbox,
    create_code_chain,
    create_python_tool,
)
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.approval import ToolRequest
from code_chains.executors.sandbox import tool_server
from code_chains.state import Execution, from_json
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import at_rest, soon

WHERE: contextvars.ContextVar[str] = contextvars.ContextVar("where", default="nowhere")
LIMITS = Limits(seconds=5, tool_calls=20, tool_seconds=2, tool_bytes="64K", tool_concurrency=4)


class Order(BaseModel):
    id: int
    total: float


@dataclasses.dataclass
class Point:
    x: int
    y: int


def echo(value: Any) -> Any:
    """Return the argument."""
    return value


def orders(customer: int, limit: int = 2) -> list[Order]:
    """Return orders."""
    return [Order(id=customer * 10 + number, total=1.5) for number in range(limit)]


async def double(x: int) -> int:
    """Double, after a while."""
    await asyncio.sleep(0.2)
    return 2 * x


def where() -> str:
    """Return where the caller is."""
    return WHERE.get()


def fail(kind: str) -> None:
    """Fail."""
    kinds: dict[str, BaseException] = {
        "value": ValueError("api_key='hidden-4711'"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "tool": ToolException("no such customer"),
    }
    raise kinds[kind]


async def cancelled() -> None:
    """Be cancelled."""
    raise asyncio.CancelledError


async def exit_async() -> None:
    """Exit."""
    raise SystemExit(3)


def hang(seconds: float = 20) -> str:
    """Hang."""
    time.sleep(seconds)
    return "done"


def odd(kind: str) -> Any:
    """Return what cannot be passed."""
    return {"object": object(), "generator": iter([1]), "class": int, "large": "x" * 100_000}[kind]


TOOLS = [echo, orders, double, where, fail, cancelled, exit_async, hang, odd]


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=LIMITS, preload=("numpy", "pandas")) as box:
        yield box


def value(execution: Execution) -> str | None:
    assert execution.ok, execution.error
    return execution.result


CALLS = {
    "import asyncio\nasync def main():\n    async with asyncio.TaskGroup() as group:\n"
    "        task = group.create_task(double(4))\n    return task.result()\nasyncio.run(main())": "8",
    "import asyncio\nasyncio.run(double(4))": "8",
    "import asyncio\ntasks = [double(n) for n in range(3)]\nawait asyncio.gather(*tasks)": "[0, 2, 4]",
    "import asyncio\nawait asyncio.gather(*map(double, range(3)))": "[0, 2, 4]",
    "call = double(1)\nawait call": "2",
    "async def twice(function, x):\n    return await function(x)\nawait twice(double, 3)": "6",
    "import asyncio\nawait asyncio.wait_for(double(5), 10)": "10",
    "import asyncio\nasync def own(x):\n    return x\nawait asyncio.gather(own(1), double(1), own(3))": "[1, 2, 3]",
    "orders(4)[1]['id']": "41",
    "orders(customer=4, limit=1)": "[{'id': 40, 'total': 1.5}]",
    "[orders(n, 1)[0]['id'] for n in range(3)]": "[0, 10, 20]",
    "double(21)": "42",
    "await double(21)": "42",
    "import asyncio\nawait asyncio.gather(*[double(n) for n in range(3)])": "[0, 2, 4]",
    "import asyncio\nasync def main():\n    return await asyncio.gather(double(1), double(x=2))\nasyncio.run(main())": (
        "[2, 4]"
    ),
    "import asyncio\nasync def main():\n    return orders(1, 0), await double(1)\nawait main()": "([], 2)",
    "from concurrent.futures import ThreadPoolExecutor\nlist(ThreadPoolExecutor(6).map(double, range(8)))": (
        "[0, 2, 4, 6, 8, 10, 12, 14]"
    ),
    "orders.__name__, orders.__doc__": "('orders', 'Return orders.')",
    "import inspect\nstr(inspect.signature(orders))": (
        "\"(customer: int, limit: int = 2) -> list[{'id': int, 'total': float}]\""
    ),
    "try:\n    fail('tool')\nexcept ToolError as error:\n    result = str(error)": "'fail: ToolException: no such customer'",
    "where()": "'in the test'",
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "expected"), CALLS.items())
def test_a_tool_is_a_function_of_the_program(box: SandboxExecutor, code: str, expected: str) -> None:
    WHERE.set("in the test")
    assert value(box.run(code, tools=TOOLS)) == expected
    assert value(asyncio.run(box.arun(code, tools=TOOLS))) == expected


VALUES: list[Any] = [
    None,
    True,
    0,
    -1.5,
    "Grüße \N{SNOWMAN}",
    [1, [2, None]],
    {"a": {"b": [1]}},
    datetime.date(2026, 1, 2),
    datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC),
    b"\x00\xff",
    {1: "a"},
    {"builtins.set": [1]},
]


@pytest.mark.parametrize("returned", VALUES, ids=repr)
def test_what_a_tool_returns_arrives_equal(box: SandboxExecutor, returned: Any) -> None:
    def give() -> Any:
        """Return a value."""
        return returned

    assert value(box.run("give()", tools=[give])) == (None if returned is None else repr(returned))


def test_tables_models_and_dataclasses_arrive_as_programs_know_them(box: SandboxExecutor) -> None:
    def frame() -> pandas.DataFrame:
        """Return a table."""
        return pandas.DataFrame({"a": [1, 2], "b": ["x", None]})

    def vector() -> Any:
        """Return an array."""
        return numpy.arange(3)

    def things() -> Any:
        """Return records."""
        return [Point(1, 2), Order(id=1, total=2.5), Path("/x/y")]

    code = "frame()['a'].sum(), frame().shape, vector().sum(), things()"
    expected = "(np.int64(3), (2, 2), np.int64(3), [{'x': 1, 'y': 2}, {'id': 1, 'total': 2.5}, '/x/y'])"
    assert value(box.run(code, tools=[frame, vector, things])) == expected


ARGUMENTS = {
    "numpy.int64(3)": "3",
    "numpy.arange(3)": "[0, 1, 2]",
    "pandas.DataFrame({'a': [1, None]})": "[{'a': 1.0}, {'a': None}]",
    "pandas.Series([1, 2])": "[1, 2]",
    "pandas.Timestamp('2026-01-02')": "'2026-01-02T00:00:00'",
    "datetime.date(2026, 1, 2)": "'2026-01-02'",
    "decimal.Decimal('1.50')": "'1.50'",
    "pathlib.Path('a') / 'b'": "'a/b'",
    "(1, {2})": "[1, [2]]",
    "{1: float('nan')}": "{'1': None}",
    "b'text'": "'text'",
}


@pytest.mark.rows(4)
@pytest.mark.parametrize(("argument", "expected"), ARGUMENTS.items())
def test_arguments_of_libraries_become_plain(box: SandboxExecutor, argument: str, expected: str) -> None:
    imports = "import numpy, pandas, datetime, decimal, pathlib\n"
    assert value(box.run(f"{imports}echo({argument})", tools=TOOLS)) == expected


@pytest.mark.slow
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**60), 2**60)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_json_survives_both_ways(box: SandboxExecutor, argument: Any) -> None:
    done = box.run("echo(argument) == argument", variables={"argument": argument}, tools=[echo])
    assert value(done) == "True"


ERRORS = {
    "fail('value')": "fail: ValueError: api_key='[secret]'",
    "fail('exit')": "fail: SystemExit: 3",
    "fail('interrupt')": "fail: KeyboardInterrupt",
    "cancelled()": "ancelled",
    "exit_async()": "exit_async: ToolException: It ended with SystemExit.",
    "orders('many')": "Wrong arguments for orders: customer",
    "odd('object')": "What odd returned cannot be passed to a program",
    "odd('generator')": "return a list",
    "odd('large')": "65,536 are allowed",
    "echo('x' * 100_000)": "65,536 are allowed",
    "hang()": "hang took longer than 2 seconds",
    "echo('\\ud800')": "not valid Unicode",
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "message"), ERRORS.items())
def test_a_failed_call_is_a_tool_error_without_a_traceback_of_the_host(
    box: SandboxExecutor, code: str, message: str
) -> None:
    for done in (box.run(code, tools=TOOLS), asyncio.run(box.arun(code, tools=TOOLS))):
        assert done.error is not None
        assert done.error.type == "ToolError"
        assert message in done.error.message
        assert "test_tool_calls" not in done.error.traceback + done.error.message


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("orders()", "TypeError"),
        ("orders(1, 2, 3)", "TypeError"),
        ("orders(customers=1)", "TypeError"),
        ("echo(lambda: 1)", "TypeError"),
        ("import math\necho(math)", "TypeError"),
        ("loop = []\nloop.append(loop)\necho(loop)", "TypeError"),
    ],
)
def test_arguments_that_do_not_fit_fail_before_anything_is_called(
    box: SandboxExecutor, code: str, kind: str
) -> None:
    done = box.run(code, tools=TOOLS)
    assert done.error is not None
    assert (done.error.type, done.tool_calls) == (kind, ())


def test_calls_are_recorded_with_arguments_results_and_durations(box: SandboxExecutor) -> None:
    done = box.run("orders(1)\ntry: fail('value')\nexcept ToolError: double(2)", tools=TOOLS)
    assert [(call.name, call.arguments, call.status) for call in done.tool_calls] == [
        ("orders", {"customer": 1}, "ok"),
        ("fail", {"kind": "value"}, "error"),
        ("double", {"x": 2}, "ok"),
    ]
    assert done.tool_calls[2].seconds >= 0.2
    assert "'total': 1.5" in done.tool_calls[0].summary
    assert from_json({"execution": done.to_dict()})["execution"] == done


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_run_makes_no_more_calls_than_its_limit(box: SandboxExecutor) -> None:
    code = """
count = 0
for n in range(100):
    try:
        echo(n)
        count += 1
    except ToolError as error:
        message = str(error)
count, message"""
    done = box.run(code, tools=TOOLS)
    assert value(done) == "(20, 'The limit of 20 tool calls in one run is reached.')"
    assert len(done.tool_calls) == 20


def test_no_more_calls_are_made_at_one_time_than_allowed(box: SandboxExecutor) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def busy(n: int) -> int:
        """Work."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.1)
        with lock:
            running -= 1
        return n

    code = (
        "from concurrent.futures import ThreadPoolExecutor\nsum(ThreadPoolExecutor(12).map(busy, range(12)))"
    )
    assert value(box.run(code, tools=[busy])) == "66"
    assert 1 < most <= 4


@pytest.mark.slow
def test_the_clock_of_a_program_stands_still_while_the_host_works() -> None:
    with SandboxExecutor(limits=Limits(seconds=2, tool_seconds=10), preload=()) as box:
        assert value(box.run("hang(1.5), hang(1.5)", tools=[hang])) == "('done', 'done')"
        assert box.run("hang(0.3)\nwhile True: pass", tools=[hang]).status == "timeout"
        with box.session() as session:
            assert value(session.run("hang(1.5), hang(1.5)", tools=[hang])) == "('done', 'done')"
            assert session.run("while True: pass", tools=[hang]).status == "timeout"


@pytest.mark.slow
def test_a_program_that_refused_calls_still_times_out() -> None:
    with SandboxExecutor(limits=Limits(seconds=1, tool_calls=1), preload=()) as box:
        flood = "while True:\n    try: echo(1)\n    except ToolError: pass"
        assert box.run(flood, tools=[echo]).status == "timeout"


def test_a_budget_counts_calls_of_all_runs() -> None:
    def reply(messages: Any) -> str:
        return "```python\nprint(echo(1), echo(2))\n```" if asks_for_code(messages) else "Both."

    pure = StructuredTool.from_function(echo, metadata={"pure": True})
    with create_code_chain(ScriptedModel(reply), tools=[pure], budget=Budget(tool_calls=3)) as chain:
        assert chain.invoke({"query": "One?"})["stop_reason"] == "answered"
        second = chain.invoke({"query": "Two?"})
    assert second["stop_reason"] == "tool_calls"
    assert "tool_calls=3" in second["verdict"].reason


def test_a_cancelled_question_cancels_its_calls(box: SandboxExecutor) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def cancel() -> None:
        running = asyncio.create_task(box.arun("wait()", tools=[wait]))
        assert await asyncio.to_thread(begun.wait, 30)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(ended.wait, 30)

    asyncio.run(cancel())


def test_a_program_that_is_killed_leaves_calls_recorded_as_cancelled(sandbox: SandboxExecutor) -> None:
    begun = threading.Event()

    def work() -> None:
        """Work."""
        begun.set()
        time.sleep(20)

    def has_begun() -> bool:
        """Wait for the work to begin."""
        return begun.wait(20)

    code = (
        "import os, threading\nthreading.Thread(target=work, daemon=True).start()\nhas_begun()\nos._exit(3)"
    )
    done = sandbox.run(code, tools=[work, has_begun])
    assert done.status == "killed"
    assert {call.name: call.status for call in done.tool_calls} == {"work": "cancelled", "has_begun": "ok"}


@pytest.mark.slow
def test_threads_and_descriptors_are_given_back(box: SandboxExecutor) -> None:
    box.run("echo(1)", tools=TOOLS)
    at_rest()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(30):
        box.run("echo(1)", tools=TOOLS)
    # What this process holds of supervisors that have ended is given back by the next run.
    assert soon(lambda: box.run("1").ok and len(list(Path("/proc/self/fd").iterdir())) <= before + 10, 20)
    assert soon(lambda: not [t for t in threading.enumerate() if t.name == "code-chains-tools"])


# -- approval ----------------------------------------------------------------------------------------------------------


async def decide_async(request: ToolRequest) -> bool | str:
    await asyncio.sleep(0.01)
    return request.arguments["value"] != 13 or "Not that number."


def decide(request: ToolRequest) -> bool | str:
    return request.arguments["value"] != 13 or "Not that number."


@pytest.mark.parametrize("approve", [decide, decide_async])
def test_an_approver_sees_each_call_and_its_reason_reaches_the_program(
    box: SandboxExecutor, approve: Any
) -> None:
    toolbox = Toolbox([echo], approve=approve)
    code = "result = [echo(1)]\ntry: echo(13)\nexcept ToolError as error: result.append(str(error))"
    for done in (box.run(code, tools=toolbox), asyncio.run(box.arun(code, tools=toolbox))):
        assert value(done) == "[1, 'Not that number.']"
        assert [call.status for call in done.tool_calls] == ["ok", "refused"]


@pytest.mark.parametrize("decision", [False, None, 1, "", "yes"])
def test_nothing_but_true_approves(box: SandboxExecutor, decision: Any) -> None:
    called: list[int] = []

    def note(x: int) -> None:
        """Note."""
        called.append(x)

    done = box.run("note(1)", tools=Toolbox([note], approve=lambda request: decision))
    assert (done.status, called) == ("error", [])


def test_an_approver_that_raises_approves_nothing(box: SandboxExecutor) -> None:
    def approve(request: ToolRequest) -> bool:
        raise RuntimeError("The dialog was closed.")

    done = box.run("echo(1)", tools=Toolbox([echo], approve=approve))
    assert "was not called, as its approval failed: RuntimeError: The dialog was closed." in str(done.error)
    assert [call.status for call in done.tool_calls] == ["refused"]


# -- sessions and chains -----------------------------------------------------------------------------------------------


def test_functions_of_a_session_call_the_tools_of_the_run_in_progress(box: SandboxExecutor) -> None:
    with box.session() as session:
        value(session.run("def twice(x): return echo(x) * 2\nkept = echo", tools=[echo]))
        assert value(session.run("twice(2), kept(3)", tools=[echo])) == "(4, 3)"
        assert "only while the program runs" in str(session.run("kept(3)").error)


def chain_model(*programs: str) -> ScriptedModel:
    """A model that writes the first program, and the others after failures."""

    def reply(messages: Any) -> str:
        if not asks_for_code(messages):
            return "Done."
        failures = sum("corrected program" in str(message.content) for message in messages)
        return f"```python\n{programs[failures]}\n```"

    return ScriptedModel(reply)


def test_the_model_sees_signatures_and_nothing_else_of_the_host() -> None:
    prompts: list[str] = []

    def reply(messages: Any) -> str:
        prompts.extend(str(message.content) for message in messages)
        return "```python\nprint(orders(1))\n```" if asks_for_code(messages) else "Done."

    with create_code_chain(ScriptedModel(reply), tools=[orders]) as chain:
        chain.invoke({"query": "Orders?"})
    assert any("def orders(customer: int, limit: int = 2)" in prompt for prompt in prompts)
    assert not any(__file__ in prompt or "Order(" in prompt for prompt in prompts)


def test_calls_are_child_runs_and_events() -> None:
    async def names() -> list[str]:
        with create_code_chain(
            chain_model("print(orders(1), await double(2))"), tools=[orders, double]
        ) as chain:
            events = [event async for event in chain.astream_events({"query": "Orders?"}, version="v2")]
        executed = next(event["run_id"] for event in events if event["name"] == "execute")
        started = [event for event in events if event["event"] == "on_tool_start"]
        assert all(executed in event["parent_ids"] for event in started)
        return [event["name"] for event in started]

    assert asyncio.run(names()) == ["orders", "double"]


class Sent:
    """A tool with effects, which counts."""

    def __init__(self) -> None:
        self.count = 0

    def tool(self, **options: Any) -> BaseTool:
        def send(text: str) -> str:
            """Send a text."""
            self.count += 1
            return "sent"

        return StructuredTool.from_function(send, **options)


BROKEN, MENDED = "send('a')\n1 / 0", "print('mended')"


def test_a_program_that_had_effects_and_failed_is_not_repeated() -> None:
    sent = Sent()
    with create_code_chain(chain_model(BROKEN, MENDED), tools=[sent.tool()]) as chain:
        result = chain.invoke({"query": "Send it."})
    assert (result["stop_reason"], len(result["attempts"]), sent.count) == ("effects", 1, 1)
    assert [call.name for call in result["attempts"][0].tool_calls] == ["send"]


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("metadata", "options"),
    [
        ({"read_only": True}, {}),
        (None, {"repeat_effects": True}),
        (None, {"approve": lambda request: True}),
    ],
    ids=["read-only", "policy", "approval"],
)
def test_a_program_is_repeated_if_it_had_no_effects_or_that_is_decided(
    metadata: dict[str, Any] | None, options: dict[str, Any]
) -> None:
    tools = Toolbox([Sent().tool(metadata=metadata)], **options)
    with create_code_chain(chain_model(BROKEN, MENDED), tools=tools) as chain:
        result = chain.invoke({"query": "Send it."})
    assert (result["stop_reason"], result["output"]) == ("answered", "mended")


def test_a_program_is_not_fixed_without_a_model_once_it_had_effects() -> None:
    sent = Sent()
    with create_code_chain(chain_model("send('a')\nprint(math.pi)", MENDED), tools=[sent.tool()]) as chain:
        chain.invoke({"query": "Send it."})
    assert sent.count <= 1


def test_tests_run_with_read_only_tools_and_never_repeat_effects() -> None:
    sent = Sent()
    for metadata, expected, count in (({"read_only": True}, "verified", 2), (None, "unverified", 1)):
        sent.count = 0
        tools = [sent.tool(metadata=metadata)]
        with create_code_chain(chain_model("x = send('a')\nprint(x)"), tools=tools) as chain:
            verdict = chain.invoke({"query": "Send it.", "tests": "assert x == 'sent'"})["verdict"]
        assert (verdict.status, sent.count) == (expected, count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metadata", "hits"), [({"pure": True}, True), ({"read_only": True}, False), (None, False)]
)
def test_an_answer_is_cached_only_if_all_tools_called_are_pure(
    tmp_path: Path, metadata: dict[str, Any] | None, hits: bool
) -> None:
    tools = [Sent().tool(metadata=metadata)]
    with create_code_chain(
        chain_model("print(send('a'))"), tools=tools, cache=tmp_path / "answers.sqlite"
    ) as chain:
        chain.invoke({"query": "Send it."})
        assert chain.invoke({"query": "Send it."})["cached"] == hits


def test_samples_need_tools_without_effects() -> None:
    with pytest.raises(ConfigurationError, match="read_only"):
        create_code_chain(chain_model(), tools=[echo], solve=Repair(samples=3))


def test_executors_that_cannot_provide_tools_refuse_them_at_once() -> None:
    pytest.importorskip("duckdb")
    with pytest.raises(ConfigurationError, match="SandboxExecutor"):
        create_code_chain(chain_model(), executor="sql", tools=[echo])


IN_MONTY = {
    "orders(4)[1]['id']": ("41", "ok"),
    "[double(n) for n in range(3)]": ("[0, 2, 4]", "ok"),
    "try:\n    fail('tool')\nexcept ToolError as error:\n    result = str(error)\nresult": (
        "'fail: ToolException",
        "ok",
    ),
    "echo({'a': [1, None]}), echo(x=1)": ("TypeError", "error"),
    "hang(20)": ("took longer than 1 seconds", "error"),
    "odd('object')": ("cannot be passed", "error"),
    "hang(0.8), hang(0.8)": ("('done', 'done')", "ok"),
    "odd('large')": ("bytes, and 2,048 are allowed", "error"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "expected"), IN_MONTY.items())
def test_monty_calls_tools_as_external_functions(code: str, expected: tuple[str, str]) -> None:
    pytest.importorskip("pydantic_monty")
    from code_chains.executors import MontyExecutor

    with MontyExecutor(limits=Limits(seconds=1, tool_seconds=1, tool_bytes="2K")) as executor:
        for done in (executor.run(code, tools=TOOLS), asyncio.run(executor.arun(code, tools=TOOLS))):
            assert (expected[0] in f"{done.result} {done.error}", done.status) == (True, expected[1]), done
            assert done.tool_calls


def test_arguments_of_a_call_in_monty_are_limited_before_it_is_made() -> None:
    pytest.importorskip("pydantic_monty")
    from code_chains.executors import MontyExecutor

    with MontyExecutor(limits=Limits(tool_bytes="2K")) as executor:
        done = executor.run("echo('x' * 3000)", tools=[echo])
    assert "allowed" in str(done.error)
    assert not done.tool_calls


def test_a_variable_must_not_have_the_name_of_a_tool(box: SandboxExecutor) -> None:
    with pytest.raises(InputError, match="'echo'"):
        box.run("1", variables={"echo": 1}, tools=[echo])


def test_a_chain_that_calls_itself_ends_with_its_budget() -> None:
    def ask(question: str) -> str:
        """Ask again."""
        return str(chain.invoke({"query": question})["answer"])

    model = ScriptedModel(
        lambda messages: "```python\nprint(ask('Again?'))\n```" if asks_for_code(messages) else "Done."
    )
    with create_code_chain(model, tools=[ask], budget=Budget(tool_calls=3), solve=Repair(1)) as chain:
        result = chain.invoke({"query": "Again?"})
    assert result["stop_reason"] in ("tool_calls", "answered", "effects", "attempts")


def test_an_agent_calls_its_tools_in_a_loop_by_one_program() -> None:
    looked: list[int] = []

    @tool
    def open_orders(customer: int) -> list[float]:
        """Return the totals of the open orders of a customer."""
        looked.append(customer)
        return [float(customer)]

    run = create_python_tool(tools=[open_orders])
    assert "def open_orders(customer: int) -> list[float]" in run.description
    assert run.invoke({"code": "sum(sum(open_orders(c)) for c in range(30))"}).startswith("435.0")
    assert looked == list(range(30))


# -- the channel -------------------------------------------------------------------------------------------------------

FORGE = """
import os, struct, json, threading, time
c = echo.__globals__['_connection']
out, into = c._outgoing, c._incoming
def frame(text): return struct.pack('!I', len(text)) + text
def ask(**request): return frame(json.dumps(request).encode())
"""
ATTACKS = {
    "garbage": "os.write(out, os.urandom(5000))",
    "a length of gigabytes": "os.write(out, struct.pack('!I', 0xffffffff) + b'x' * 1000)",
    "half a message": "os.write(out, struct.pack('!I', 1000) + b'{')",
    "no json": "os.write(out, frame(b'nonsense'))",
    "deep json": "os.write(out, frame(b'[' * 60_000))",
    "no object": "os.write(out, frame(b'[1, 2]'))",
    "a missing key": "os.write(out, frame(b'{\"id\": 1}'))",
    "an id that is not a number": "os.write(out, ask(id=[], name='echo', arguments={}))",
    "arguments that are no object": "os.write(out, ask(id=1, name='echo', arguments=[]))",
    "not a number": 'os.write(out, frame(b\'{"id": 1, "name": "echo", "arguments": {"value": NaN}}\'))',
    "a huge number": (
        "m = ask(id=1, name='echo', arguments={'value': 4711})\nos.write(out, frame(m[4:].replace(b'4711', b'9' * 50_000)))"
    ),
    "the same id twice": ("m = ask(id=7, name='hang', arguments={'seconds': 0.2})\nos.write(out, m + m)"),
    "closed pipes": "os.close(out); os.close(into)",
    "a reader that reads nothing": (
        "m = ask(id=1, name='none', arguments={})\n"
        "os.set_blocking(out, False)\n"
        "try:\n    while True: os.write(out, m)\nexcept BlockingIOError: pass"
    ),
    "a forked process": (
        "pid = os.fork()\nif not pid:\n    c._pid = os.getpid()\n"
        "    try: print(echo(1))\n    finally: os._exit(0)\nos.wait()"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_what_is_forged_on_the_channel_harms_nobody(box: SandboxExecutor, attack: str) -> None:
    done = box.run(
        f"{FORGE}{attack}\ntry: echo(1)\nexcept BaseException as error: print(repr(error))", tools=TOOLS
    )
    assert done.status in ("ok", "error", "timeout", "killed")
    assert value(box.run("echo(42)", tools=TOOLS)) == "42"


FORGED = {
    "an unknown tool": ({"name": "eval", "arguments": {"x": 1}}, "no tool 'eval'"),
    "an attribute of the toolbox": ({"name": "__class__", "arguments": {}}, "no tool"),
    "a call as LangChain's agents make it": (
        {"name": "echo", "arguments": {"type": "tool_call", "args": {"value": 1}, "id": "1", "name": "fail"}},
        "no 'args'",
    ),
    "further arguments": (
        {"name": "orders", "arguments": {"customer": "x", "config": {}}},
        "Wrong arguments",
    ),
}


@pytest.mark.parametrize(("request_", "message"), FORGED.values(), ids=FORGED.keys())
def test_a_forged_request_is_refused_like_any_other(
    box: SandboxExecutor, request_: dict[str, Any], message: str
) -> None:
    code = (
        FORGE
        + "os.write(out, frame(json.dumps({'id': 1, **request}).encode()))\nprint(c._await(1)[0]['error'])"
    )
    done = box.run(code, variables={"request": request_}, tools=TOOLS)
    assert message in done.stdout


def test_an_injected_argument_cannot_be_forged(box: SandboxExecutor) -> None:
    def account(x: int, owner: Annotated[str, InjectedToolArg] = "ann") -> str:
        """Return the owner."""
        return owner

    forged = {"id": 1, "name": "account", "arguments": {"x": 1, "owner": "bob"}}
    code = FORGE.replace("echo", "account") + "os.write(out, ask(**request))\nprint(c._await(1)[0])"
    assert "bob" not in box.run(code, variables={"request": forged}, tools=[account]).stdout


@pytest.mark.slow
def test_calls_whose_program_has_broken_the_channel_do_not_stop_its_clock() -> None:
    limits = Limits(seconds=2, tool_seconds=5, tool_calls=50)
    with SandboxExecutor(limits=limits, preload=()) as box:
        code = (
            FORGE.replace("echo", "hang")
            + "calls = [ask(id=n, name='hang', arguments={'seconds': 4}) for n in range(1, 50)]\n"
            "os.write(out, b''.join(calls) + b'\\xff' * 50)\nwhile True: pass"
        )
        done = box.run(code, tools=[hang])
    assert done.status == "timeout"
    assert done.duration < 15


@pytest.mark.slow
def test_results_that_nobody_reads_do_not_fill_the_memory_of_the_host() -> None:
    made: list[int] = []

    def large(n: int) -> str:
        """Return a lot."""
        made.append(n)
        return "x" * 1_000_000

    with SandboxExecutor(limits=Limits(seconds=2), preload=()) as box:
        code = (
            FORGE.replace("echo", "large")
            + "os.write(out, b''.join(ask(id=n, name='large', arguments={'n': n}) for n in range(1, 500)))\ntime.sleep(60)"
        )
        box.run(code, tools=[large])
    assert len(made) <= 2 * Limits().tool_concurrency


@pytest.mark.slow
def test_calls_with_equal_numbers_are_not_made_at_once() -> None:
    running: list[int] = []

    def busy(n: int) -> int:
        """Work."""
        running.append(n)
        time.sleep(2)
        return n

    with SandboxExecutor(limits=Limits(seconds=2, tool_concurrency=2), preload=()) as box:
        code = (
            FORGE.replace("echo", "busy")
            + "os.write(out, ask(id=1, name='busy', arguments={'n': 1}) * 100)\ntime.sleep(60)"
        )
        box.run(code, tools=[busy])
    assert len(running) <= 2


@pytest.mark.slow
def test_effects_are_known_however_many_calls_there_were() -> None:
    def look(n: int) -> int:
        """Look."""
        return n

    pure = StructuredTool.from_function(look, metadata={"pure": True})
    with SandboxExecutor(limits=Limits(seconds=30, tool_calls=1100), preload=()) as box:
        done = box.run("for n in range(1050): look(n)\necho(1)", tools=[pure, echo])
    assert done.has_effects
    assert len(done.tool_calls) < 1050


def test_an_approver_cannot_change_what_is_called(box: SandboxExecutor) -> None:
    def approve(request: ToolRequest) -> bool:
        arguments: Any = request.arguments
        arguments["value"] = 99
        return True

    assert value(box.run("echo(1)", tools=Toolbox([echo], approve=approve))) == "1"


@pytest.mark.slow
def test_calls_in_flight_of_a_hostile_program_do_not_stop_its_clock() -> None:
    with SandboxExecutor(limits=Limits(seconds=1, tool_seconds=1, tool_calls=3), preload=()) as box:
        code = (
            FORGE.replace("echo", "hang")
            + "for n in range(1, 9): os.write(out, ask(id=n, name='hang', arguments={}))\n"
            "while True: pass"
        )
        started = time.monotonic()
        assert box.run(code, tools=[hang]).status == "timeout"
        assert time.monotonic() - started < 30


def test_arguments_that_are_refused_have_no_effect(box: SandboxExecutor) -> None:
    done = box.run("double('x')", tools=TOOLS)
    assert (done.status, [call.status for call in done.tool_calls]) == ("error", ["refused"])
    assert not done.has_effects


async def test_a_run_that_ends_while_arguments_are_checked_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check(*_: Any) -> None:
        time.sleep(3)
        raise ValueError

    monkeypatch.setattr(tool_server, "begin_call", check)
    program = "import threading, os\nthreading.Timer(0.3, os._exit, [0]).start()\necho(1)"
    with SandboxExecutor(limits=LIMITS) as executor:
        ended = asyncio.ensure_future(executor.arun(program, tools=[echo]))
        longest, last = 0.0, time.monotonic()
        while not ended.done():
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
    assert longest < 1.5
    assert not (await ended).ok
