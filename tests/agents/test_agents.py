"""The middleware for agents of LangChain: programs in a session for each thread, in the real sandbox."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from code_chains.agents import PythonMiddleware
from code_chains.chains import ValidateChain
from code_chains.errors import ConfigurationError, ExecutorError, InputError, SessionError
from code_chains.executors import MontyExecutor, SandboxExecutor
from code_chains.state import from_json
from code_chains.testing import ScriptedModel
from tests.conftest import at_rest, descendants, soon

KILL = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(os.getpid(), signal.SIGKILL)"
LOST = "are lost"


def thread(name: object) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


def calls(*programs: str, name: str = "run_python") -> AIMessage:
    """A message that calls the tool, several times at once."""
    return AIMessage(
        "",
        tool_calls=[
            {"name": name, "args": {"code": code}, "id": f"{name}-{number}", "type": "tool_call"}
            for number, code in enumerate(programs)
        ],
    )


def script(messages: list[BaseMessage]) -> str | AIMessage:
    """Call the tool with what the user says: programs after each other by ---, at once by +++."""
    last_human = max(index for index, message in enumerate(messages) if message.type == "human")
    rounds = messages[last_human].text.split("---")
    done = sum(message.type == "ai" for message in messages[last_human:])
    return calls(*rounds[done].split("+++")) if done < len(rounds) else "Done."


def agent_with(*middleware: Any, saver: Any = None) -> Any:
    return create_agent(ScriptedModel(script), middleware=middleware, checkpointer=saver)


def results(state: dict[str, Any]) -> list[ToolMessage]:
    """The results of the last turn."""
    messages: list[BaseMessage] = state["messages"]
    last_human = max(index for index, message in enumerate(messages) if message.type == "human")
    return [message for message in messages[last_human:] if isinstance(message, ToolMessage)]


def ask(agent: Any, text: str, config: RunnableConfig | None = None) -> list[ToolMessage]:
    return results(agent.invoke({"messages": [HumanMessage(text)]}, config))


def told(agent: Any, text: str, config: RunnableConfig | None = None) -> list[str]:
    return [message.text for message in ask(agent, text, config)]


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(max_sessions=16) as executor:
        yield executor


@pytest.fixture
def python(executor: SandboxExecutor) -> Iterator[PythonMiddleware]:
    with PythonMiddleware(executor) as python:
        yield python


@pytest.fixture
def agent(python: PythonMiddleware) -> Any:
    return agent_with(python, saver=InMemorySaver())


# -- threads -------------------------------------------------------------------------------------------------------------


def test_turns_of_a_thread_share_variables_imports_and_files(agent: Any) -> None:
    ask(agent, "import math\nopen('a.txt', 'w').write('42')\nn = 6", thread("shared"))
    assert told(agent, "math.floor(n * 7.1), open('a.txt').read()", thread("shared")) == ["(42, '42')"]


def test_threads_see_nothing_of_each_other(agent: Any) -> None:
    ask(agent, "secret = 'ann'\nopen('secret.txt', 'w').write(secret)", thread("ann"))
    [variable, files] = told(agent, "secret---import os\nos.listdir()", thread("bob"))
    assert ("NameError" in variable, files) == (True, "[]")
    assert told(agent, "secret", thread("ann")) == ["'ann'"]


def test_a_thread_may_be_named_by_a_number(agent: Any) -> None:
    ask(agent, "n = 7", thread(7))
    assert told(agent, "n", thread(7)) == ["7"]


def test_without_a_thread_the_programs_of_one_invocation_share_a_session(python: PythonMiddleware) -> None:
    agent = agent_with(python)
    assert told(agent, "n = 41---n + 1")[1] == "42"
    assert "NameError" in told(agent, "n")[0]


def test_the_session_of_an_invocation_ends_with_it() -> None:
    with SandboxExecutor(max_sessions=1) as executor, PythonMiddleware(executor) as python:
        agent = agent_with(python)
        ask(agent, "n = 1")
        assert executor.session().alive


def test_a_program_that_fails_changes_nothing_and_is_explained(agent: Any) -> None:
    ask(agent, "n = 1", thread("failure"))
    [failed, after] = ask(agent, "n = 2\nn / 0---n", thread("failure"))
    assert (failed.status, after.text) == ("error", "1")
    assert all(part in failed.text for part in ("ZeroDivisionError", ">   2 | n / 0"))


@pytest.mark.slow
def test_calls_at_once_in_one_thread_are_served_one_after_the_other(agent: Any) -> None:
    ask(agent, "import time\nn = 0", thread("at once"))
    program = "before = n\ntime.sleep(0.05)\nn = before + 1"
    ask(agent, "+++".join([program] * 5), thread("at once"))
    assert told(agent, "n", thread("at once")) == ["5"]


@pytest.mark.slow
async def test_an_agent_may_run_on_an_event_loop(agent: Any) -> None:
    async def turn(text: str, name: str) -> list[str]:
        state = await agent.ainvoke({"messages": [HumanMessage(text)]}, thread(name))
        return [message.text for message in results(state)]

    program = "import time\nn = {}+++time.sleep(0.1)\nn += 1"
    await asyncio.gather(*(turn(program.format(number), f"async {number}") for number in range(4)))
    after = await asyncio.gather(*(turn("n", f"async {number}") for number in range(4)))
    assert after == [["1"], ["2"], ["3"], ["4"]]


def test_more_threads_than_sessions_wait_for_each_other() -> None:
    with PythonMiddleware(max_sessions=2) as python, ThreadPoolExecutor(6) as pool:
        agent = agent_with(python)
        turns = [pool.submit(told, agent, f"import time\ntime.sleep(0.1)\n{n}", thread(n)) for n in range(6)]
        assert [turn.result() for turn in turns] == [[str(n)] for n in range(6)]


def test_an_agent_that_waits_for_approval_goes_on_in_its_session(python: PythonMiddleware) -> None:
    approve = HumanInTheLoopMiddleware(interrupt_on={"run_python": True})
    agent = agent_with(python, approve, saver=InMemorySaver())
    decision: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
    for program, shown in (("n = 41", "printed nothing"), ("n + 1", "42")):
        state = agent.invoke({"messages": [HumanMessage(program)]}, thread("approved"))
        assert results(state) == []
        assert shown in results(agent.invoke(decision, thread("approved")))[0].text


@pytest.mark.slow
def test_streams_of_an_agent_have_the_results(agent: Any) -> None:
    asked = {"messages": [HumanMessage("6 * 7")]}
    chunks = list(agent.stream(asked, thread("stream"), stream_mode="updates"))
    [result] = [chunk["tools"]["messages"][0].text for chunk in chunks if "tools" in chunk]
    assert result == "42"


# -- sessions that have ended --------------------------------------------------------------------------------------------


def assert_lost_and_then_new(agent: Any, config: RunnableConfig) -> None:
    [lost, new] = ask(
        agent, "open('ran.txt', 'w').write('it ran')---import os\nos.listdir(), 'n' in globals()", config
    )
    assert (lost.status, LOST in lost.text) == ("error", True)
    assert new.text == "([], False)"


@pytest.mark.slow
def test_a_session_that_was_killed_is_not_replaced_unnoticed(agent: Any) -> None:
    ask(agent, "n = 1", thread("killed"))
    programs = f"{KILL}---'n' in globals()---'n' in globals()"
    killed, following, new = ask(agent, programs, thread("killed"))
    # The end of the process is noticed with its last program, or with the next one.
    assert (killed.status, LOST in killed.text or LOST in following.text) == ("error", True)
    assert new.text == "False"


def test_a_session_that_was_lost_with_its_sandbox_is_not_replaced_unnoticed() -> None:
    with SandboxExecutor() as executor, PythonMiddleware(executor) as python:
        agent = agent_with(python, saver=InMemorySaver())
        ask(agent, "n = 1", thread("a"))
        executor.restart()
        assert_lost_and_then_new(agent, thread("a"))


@pytest.mark.slow
def test_a_session_that_was_idle_for_too_long_is_not_replaced_unnoticed() -> None:
    with SandboxExecutor(session_timeout=0.3) as executor, PythonMiddleware(executor) as python:
        agent = agent_with(python, saver=InMemorySaver())
        ask(agent, "n = 1", thread("a"))
        time.sleep(1.5)
        assert_lost_and_then_new(agent, thread("a"))


def test_a_session_that_gave_way_to_another_is_not_replaced_unnoticed() -> None:
    with PythonMiddleware(max_sessions=1) as python:
        agent = agent_with(python, saver=InMemorySaver())
        ask(agent, "n = 1", thread("a"))
        assert told(agent, "n = 2---n", thread("b"))[1] == "2"
        assert_lost_and_then_new(agent, thread("a"))


def test_a_session_of_another_process_is_not_replaced_unnoticed(executor: SandboxExecutor) -> None:
    saver = InMemorySaver()
    with PythonMiddleware(executor) as before:
        ask(agent_with(before, saver=saver), "n = 1", thread("restarted"))
    with PythonMiddleware(executor) as after:
        assert_lost_and_then_new(agent_with(after, saver=saver), thread("restarted"))


@pytest.mark.slow
def test_messages_alone_tell_that_a_session_has_ended(python: PythonMiddleware) -> None:
    agent = agent_with(python)
    messages = agent.invoke({"messages": [HumanMessage("n = 1")]})["messages"]
    state = agent.invoke({"messages": [*messages, HumanMessage("n---1")]})
    [lost, new] = [message.text for message in results(state)]
    assert (LOST in lost, new) == (True, "1")


async def test_a_run_that_is_cancelled_ends_its_session_and_says_so(agent: Any) -> None:
    ask(agent, "n = 1", thread("cancelled"))
    asked = {"messages": [HumanMessage("import time\ntime.sleep(5)")]}
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(agent.ainvoke(asked, thread("cancelled")), 0.5)
    follow_up = {"messages": [HumanMessage("n")]}
    state = await agent.ainvoke(follow_up, thread("cancelled"))
    assert LOST in results(state)[-1].text


# -- what programs have and make -----------------------------------------------------------------------------------------


def test_files_are_in_each_session(
    executor: SandboxExecutor, sales: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(sales.parent)
    files = {"sales.csv": Path("sales.csv"), "numbers.bin": b"\1\2"}
    with PythonMiddleware(executor, files=files) as python:
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        agent = agent_with(python)
        look = "len(open('sales.csv').readlines()), len(open('numbers.bin', 'rb').read())"
        change = "import os\nos.remove('sales.csv')\nopen('numbers.bin', 'wb').close()"
        assert told(agent, f"{look}---{change}", thread("first"))[0] == "(3, 2)"
        assert told(agent, look, thread("second")) == ["(3, 2)"]
        assert "sales.csv, numbers.bin" in python.tools[0].description


def test_a_file_that_is_gone_is_no_affair_of_the_model(executor: SandboxExecutor, sales: Path) -> None:
    with PythonMiddleware(executor, files=[sales]) as python:
        sales.unlink()
        with pytest.raises(ExecutorError, match="cannot be given its files"):
            ask(agent_with(python), "1")


def test_a_message_carries_files_and_figures_as_bytes(agent: Any) -> None:
    draw = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nopen('table.txt', 'w').write('1')"
    [message] = ask(agent, draw, thread("artifacts"))
    artifacts = {made.name: made.data for made in from_json(message.artifact)["execution"].artifacts}
    assert artifacts.pop("table.txt") == b"1"
    [figure] = artifacts.values()
    assert figure.startswith(b"\x89PNG")
    assert "Made: " in message.text


def test_programs_may_call_tools_of_the_application(executor: SandboxExecutor) -> None:
    @tool
    def double(number: int) -> int:
        """Return twice a number."""
        return 2 * number

    with PythonMiddleware(executor, tools=[double]) as python:
        agent = agent_with(python)
        assert told(agent, "n = sum(double(k) for k in (1, 20))---n", thread("tools"))[1] == "42"
        assert "def double(number: int)" in python.tools[0].description


def test_an_app_may_approve_each_program(executor: SandboxExecutor) -> None:
    with PythonMiddleware(
        executor, checks=ValidateChain(approve=lambda request: "n" not in request.code or "Not n.")
    ) as python:
        [refused, ran] = told(agent_with(python), "n = 1---6 * 7", thread("approve"))
        assert ("Not n." in refused, ran) == (True, "42")


def test_a_refused_program_is_explained(executor: SandboxExecutor) -> None:
    with PythonMiddleware(executor, checks="strict") as python:
        assert "`subprocess` starts" in told(agent_with(python), "import subprocess")[0]


@pytest.mark.parametrize(("arguments", "words"), [({}, "code: Field required"), ({"code": 3}, "code:")])
def test_wrong_arguments_of_a_model_are_explained(
    python: PythonMiddleware, arguments: dict[str, Any], words: str
) -> None:
    def wrong(messages: Sequence[BaseMessage]) -> str | AIMessage:
        call = {"name": "run_python", "args": arguments, "id": "1", "type": "tool_call"}
        return "Done." if messages[-1].type == "tool" else AIMessage("", tool_calls=[call])

    agent = create_agent(ScriptedModel(wrong), middleware=[python])
    [result] = ask(agent, "Go.")
    assert (result.status, words in result.text) == ("error", True)


def test_a_model_is_asked_for_the_program_alone(python: PythonMiddleware) -> None:
    assert set(python.tools[0].args) == {"code"}


def test_a_trace_of_the_tool_has_the_program_and_no_other_message(python: PythonMiddleware) -> None:
    class Seen(BaseCallbackHandler):
        inputs: ClassVar[list[str]] = []

        def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
            self.inputs.append(f"{input_str}{kwargs.get('inputs')}")

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            if kwargs.get("name") == "run_python":
                self.inputs.append(str(inputs))

    ask(agent_with(python), "6 * 7", {"callbacks": [Seen()]})
    assert len(Seen.inputs) == 2
    assert all("6 * 7" in seen and "HumanMessage" not in seen for seen in Seen.inputs)


def test_a_model_cannot_choose_its_thread(agent: Any, python: PythonMiddleware) -> None:
    ask(agent, "secret = 1", thread("ann"))

    def choosing(messages: Sequence[BaseMessage]) -> str | AIMessage:
        chosen = {"code": "secret", "state": {"python_invocation": "x"}, "thread": "thread:ann"}
        call = {"name": "run_python", "args": chosen, "id": "1", "type": "tool_call"}
        return "Done." if messages[-1].type == "tool" else AIMessage("", tool_calls=[call])

    other = create_agent(ScriptedModel(choosing), middleware=[python])
    assert "NameError" in told(other, "Go.", thread("bob"))[0]


def test_an_agent_may_have_two_with_other_names(executor: SandboxExecutor) -> None:
    with PythonMiddleware(executor) as one, PythonMiddleware(executor, name="other_python") as two:
        agent = create_agent(
            ScriptedModel(
                lambda messages: (
                    "Done."
                    if messages[-1].type == "tool"
                    else AIMessage(
                        "",
                        tool_calls=[
                            *calls("n = 1\nn").tool_calls,
                            *calls("'n' in globals()", name="other_python").tool_calls,
                        ],
                    )
                )
            ),
            middleware=[one, two],
        )
        assert told(agent, "Go.") == ["1", "False"]


def test_the_tool_works_without_an_agent(python: PythonMiddleware) -> None:
    [run_python] = python.tools
    run_python.invoke({"code": "n = 41"}, thread("alone"))
    assert run_python.invoke({"code": "n + 1"}, thread("alone")) == "42"
    run_python.invoke({"code": "n = 1"})
    assert "NameError" in run_python.invoke({"code": "n"})


def test_a_session_that_ended_is_said_without_an_agent_and_to_each_agent(executor: SandboxExecutor) -> None:
    with PythonMiddleware(executor, max_sessions=1) as python:
        [run_python], agent = python.tools, agent_with(python, saver=InMemorySaver())
        ask(agent, "total = 7", thread("a"))
        run_python.invoke({"code": "q = 2"}, thread("b"))  # Which ends the session of the other one.
        assert LOST in run_python.invoke({"code": "1"}, thread("a"))
        assert run_python.invoke({"code": "1"}, thread("a")) == "1"
        [said] = ask(agent, "globals().get('total', -99)", thread("a"))
        assert (said.status, LOST in said.text) == ("error", True)
        assert told(agent, "globals().get('total', -99)", thread("a")) == ["-99"]
        assert LOST in run_python.invoke({"code": "q"}, thread("b"))


def test_an_agent_whose_messages_lost_their_artifacts_goes_on(python: PythonMiddleware) -> None:
    agent, history, said = agent_with(python), list[Any](), list[str]()
    for _ in range(3):
        question = HumanMessage("n = globals().get('n', 0) + 1\nprint(n)")
        state = agent.invoke({"messages": [*history, question]}, thread("kept"))
        said.append(results(state)[-1].text)
        history = convert_to_messages(convert_to_openai_messages(state["messages"]))
    assert said == ["1", "2", "3"]


# -- its own life ----------------------------------------------------------------------------------------------------------


def test_nothing_is_started_before_the_first_program() -> None:
    at_rest()  # What earlier tests left behind has been built, or is gone.
    before = descendants()
    with PythonMiddleware() as python:
        agent_with(python)
        assert descendants() <= before


def test_closing_ends_all_that_was_started() -> None:
    before = at_rest()
    with PythonMiddleware(files={"a.txt": b"1"}) as python:
        ask(agent_with(python), "n = 1", thread("a"))
    python.close()
    assert soon(lambda: at_rest() <= before, 20)


def test_a_middleware_that_is_discarded_ends_what_it_started() -> None:
    before = at_rest()
    python = PythonMiddleware()
    python.tools[0].invoke({"code": "6 * 7"}, thread("a"))
    del python
    gc.collect()
    assert soon(lambda: at_rest() <= before, 20)


def test_an_executor_of_the_caller_stays_open(executor: SandboxExecutor) -> None:
    with PythonMiddleware(executor) as python:
        ask(agent_with(python), "n = 1", thread("a"))
    assert executor.run("6 * 7").output == "42"


def test_a_closed_one_says_so(executor: SandboxExecutor) -> None:
    with PythonMiddleware(executor) as python:
        agent = agent_with(python)
    with pytest.raises(SessionError, match="PythonMiddleware is closed"):
        ask(agent, "1", thread("closed"))


def test_wrong_arguments_are_refused_at_once(executor: SandboxExecutor) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"executor": MontyExecutor()}, "executor"),
        ({"executor": "sandbox"}, "executor"),
        ({"max_sessions": 0}, "max_sessions"),
        ({"max_sessions": True}, "max_sessions"),
        ({"executor": executor, "max_sessions": 17}, "max_sessions"),
        ({"name": "run python"}, "name"),
        ({"description": 3}, "description"),
        ({"checks": "lax"}, "checks"),
        ({"checks": 5}, "checks"),
        ({"tools": [3]}, "tools"),
    ]
    for arguments, argument in wrong:
        with pytest.raises(ConfigurationError, match=f"{argument}"):
            PythonMiddleware(**arguments)


def test_a_file_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="does not exist"):
        PythonMiddleware(files=[Path("nowhere.csv")])


@pytest.mark.slow
def test_the_library_without_it_loads_no_graph_runtime() -> None:
    code = "import sys, code_chains\ncode_chains.create_python_tool()\nprint([n for n in sys.modules if 'langgraph' in n])"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "[]"
