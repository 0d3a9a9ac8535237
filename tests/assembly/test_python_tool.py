"""A tool that runs an agent's programs and keeps their state by thread."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests

from code_chains import ConfigurationError, SandboxExecutor, create_python_tool
from code_chains.chains import ValidateChain
from code_chains.executors import MontyExecutor
from code_chains.state import from_json
from code_chains.testing import ScriptedModel
from tests.conftest import at_rest, soon

PROGRAMS = ("numbers = [1, 2, 39]", "print(sum(numbers))")


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name}}


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor() as executor:
        yield executor


@pytest.fixture(scope="module")
def tool(executor: SandboxExecutor) -> BaseTool:
    return create_python_tool(executor)


def called(**arguments: Any) -> ToolCall:
    return ToolCall(name="run_python", args=arguments, id="1", type="tool_call")


@pytest.mark.slow
def test_calls_of_a_thread_share_variables_imports_and_files(tool: BaseTool) -> None:
    tool.invoke({"code": "import math\nopen('a.txt', 'w').write('42')\nn = 6"}, thread("shared"))
    assert (
        tool.invoke({"code": "math.floor(n * 7.1), open('a.txt').read()"}, thread("shared")) == "(42, '42')"
    )


@pytest.mark.slow
def test_threads_see_nothing_of_each_other(tool: BaseTool) -> None:
    tool.invoke({"code": "secret = 'ann'"}, thread("ann"))
    assert "NameError" in tool.invoke({"code": "secret"}, thread("bob"))


def test_a_failure_changes_nothing_and_is_explained(tool: BaseTool) -> None:
    tool.invoke({"code": "prices = {'price': 2}\nn = 1"}, thread("failure"))
    told = tool.invoke({"code": "n = 2\nprices['prize']"}, thread("failure"))
    assert all(part in told for part in ("line 2", "KeyError: 'prize'", ">   2 | prices['prize']", "'price'"))
    assert tool.invoke({"code": "n"}, thread("failure")) == "1"


def test_without_a_thread_nothing_is_kept_and_the_model_is_told_so(tool: BaseTool) -> None:
    assert "Nothing of it is kept" in tool.invoke({"code": "left = 1"})
    assert "undefined name 'left'" in tool.invoke({"code": "left"})


def test_the_session_id_of_this_library_names_the_thread_as_well(tool: BaseTool) -> None:
    config: RunnableConfig = {"configurable": {"session_id": "named", "thread_id": 7}}
    tool.invoke({"code": "n = 5"}, config)
    assert tool.invoke({"code": "n"}, {"configurable": {"session_id": "named"}}) == "5"


def test_a_state_that_was_lost_is_rebuilt() -> None:
    with SandboxExecutor(session_timeout=0.5, preload=()) as executor:
        tool = create_python_tool(executor)
        tool.invoke({"code": "n = 41"}, thread("a"))
        executor.restart()
        assert tool.invoke({"code": "n + 1"}, thread("a")) == "42"


async def test_it_does_not_block_the_event_loop(tool: BaseTool) -> None:
    await tool.ainvoke({"code": "n = 6"}, thread("async"))
    assert await tool.ainvoke({"code": "n * 7"}, thread("async")) == "42"


@pytest.mark.parametrize("reply", ["```python\nprint(6 * 7)\n```", "6 * 7", "%%time\nprint(6 * 7)"])
def test_models_may_send_fences_and_magics(tool: BaseTool, reply: str) -> None:
    assert tool.invoke({"code": reply}).startswith("42")


def test_a_program_that_shows_nothing_is_no_empty_reply(tool: BaseTool) -> None:
    assert tool.invoke({"code": "n = 1"}, thread("silent")) == "The program ran and printed nothing."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "code: Field required"),
        ({"code": 3}, "code: Input should be a valid string"),
        ({"code": ""}, "code:"),
    ],
)
def test_wrong_arguments_are_explained_in_words(
    tool: BaseTool, arguments: dict[str, Any], words: str
) -> None:
    message = tool.invoke(called(**arguments))
    assert (message.status, words in message.content) == ("error", True)


def test_a_refused_program_is_explained(executor: SandboxExecutor) -> None:
    tool = create_python_tool(executor, checks="strict")
    assert "`subprocess` starts" in tool.invoke({"code": "import subprocess"}, thread("refused"))


def test_an_app_may_approve_each_program(executor: SandboxExecutor) -> None:
    tool = create_python_tool(
        executor, checks=ValidateChain(approve=lambda request: "n" not in request.code or "Not n.")
    )
    assert tool.invoke({"code": "6 * 7"}, thread("approved")) == "42"
    assert "Not n." in tool.invoke({"code": "n = 1"}, thread("approved"))


def test_the_message_carries_the_whole_outcome(tool: BaseTool) -> None:
    message = tool.invoke(called(code="open('plot.svg', 'w').write('<svg/>')"), thread("artifacts"))
    outcome = from_json(message.artifact)
    assert [artifact.data for artifact in outcome["execution"].artifacts] == [b"<svg/>"]
    assert "Made: plot.svg" in message.content


def test_an_executor_without_sessions_says_that_nothing_is_kept() -> None:
    tool = create_python_tool(MontyExecutor())
    assert "Each program starts from nothing" in tool.description
    assert tool.invoke({"code": "6 * 7"}, thread("monty")) == "42"


def test_the_executor_of_a_tool_that_is_discarded_is_closed() -> None:
    before = at_rest()
    tool = create_python_tool()
    tool.invoke({"code": "6 * 7"})
    del tool
    gc.collect()
    assert soon(lambda: at_rest() <= before)


def test_an_unknown_executor_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="executor='it'"):
        create_python_tool("it")


def test_an_agent_of_langchain_goes_on_where_it_was(tool: BaseTool) -> None:
    def script(messages: list[BaseMessage]) -> str | AIMessage:
        done = sum(isinstance(message, ToolMessage) for message in messages)
        if isinstance(messages[-1], ToolMessage):
            return f"It says {messages[-1].text}"
        return AIMessage("", tool_calls=[called(code=PROGRAMS[done])])

    agent = create_agent(ScriptedModel(script), [tool])
    messages: list[BaseMessage] = []
    for _ in PROGRAMS:
        asked: Any = {"messages": [*messages, {"role": "user", "content": "Go on."}]}
        messages = agent.invoke(asked, thread("agent"))["messages"]
    assert messages[-1].text == "It says 42"


class TestContract(ToolsIntegrationTests):
    """What LangChain asks of every tool."""

    @property
    def tool_constructor(self) -> Any:
        return create_python_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"code": "6 * 7"}


async def test_text_alone_is_the_program(tool: BaseTool) -> None:
    assert (tool.invoke("6 * 7", thread("text")), await tool.ainvoke("6 * 7", thread("text"))) == ("42", "42")


@pytest.mark.slow
def test_variables_and_files_are_given_to_each_thread_and_keep_their_changes(
    executor: SandboxExecutor,
) -> None:
    tool = create_python_tool(
        executor, variables=lambda name: {"who": [name]}, files={"greeting.txt": b"Hello"}
    )
    told = tool.invoke({"code": "who.append('B.')\nprint(open('greeting.txt').read(), who)"}, thread("ann"))
    assert told == "Hello ['ann', 'B.']"
    assert tool.invoke({"code": "who"}, thread("ann")) == "['ann', 'B.']"
    assert tool.invoke({"code": "who"}, thread("bob")) == "['bob']"
