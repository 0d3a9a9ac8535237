"""Chains as tools of other people's agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from code_chains import CodeChain, SandboxExecutor, create_code_chain, create_python_tool
from code_chains.agents import PythonMiddleware
from code_chains.chains import ExecuteChain
from code_chains.errors import ConfigurationError
from code_chains.state import from_json
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import QUESTION

DRAWS = "import pathlib\npathlib.Path('plot.svg').write_text('<svg/>')\nprint(42)"


@pytest.fixture
def chain(sandbox: SandboxExecutor) -> Iterator[CodeChain]:
    script = ScriptedModel(lambda messages: DRAWS if asks_for_code(messages) else "It is 42.")
    with create_code_chain(script, executor=sandbox) as made:
        yield made


@pytest.fixture
def tool(chain: CodeChain) -> BaseTool:
    return chain.as_tool()


def called(**arguments: Any) -> ToolCall:
    return ToolCall(name="answer_with_code", args=arguments, id="1", type="tool_call")


def test_a_model_sees_a_question_and_nothing_else(tool: BaseTool) -> None:
    assert list(tool.args) == ["query"]
    assert tool.args["query"]["type"] == "string"


def test_a_model_is_told_the_answer_and_the_verdict(tool: BaseTool) -> None:
    told = tool.invoke({"query": "6 * 7?"})
    assert told.startswith("It is 42.\n\n(unverified: ")


def test_the_message_carries_the_whole_result(tool: BaseTool) -> None:
    message = tool.invoke(called(query="6 * 7?"))
    result = from_json(message.artifact)
    assert [artifact.data for artifact in result["execution"].artifacts] == [b"<svg/>"]
    assert result["verdict"].status == "unverified"


def test_a_question_that_is_refused_is_told_to_the_model(tool: BaseTool) -> None:
    message = tool.invoke(called(query=" " * 9))
    assert message.status == "error"
    assert "The question is empty" in message.content


def test_a_model_cannot_name_a_file_of_this_machine(chain: CodeChain) -> None:
    asked = chain.as_tool().invoke(called(query="what is in it?", files={"a": "/etc/passwd"}))
    assert "a" not in asked.artifact.get("files", {})


def test_the_app_names_the_conversation(chain: CodeChain, tool: BaseTool) -> None:
    tool.invoke({"query": "6 * 7?"}, {"configurable": {"session_id": "ann"}})
    assert [turn.query for turn in chain.turns("ann")] == ["6 * 7?"]


async def test_it_does_not_block_the_event_loop(tool: BaseTool) -> None:
    assert (await tool.ainvoke({"query": "6 * 7?"})).startswith("It is 42.")


def test_a_piece_asks_for_what_it_needs(sandbox: SandboxExecutor) -> None:
    tool = ExecuteChain(sandbox).as_tool(name="run_python")
    assert list(tool.args) == ["code"]
    assert tool.invoke({"code": "6 * 7"}) == "42"


def test_a_failed_program_tells_the_model_the_line_the_values_and_what_exists(
    sandbox: SandboxExecutor,
) -> None:
    code = "```python\nrows = [{'price': 1}]\nfor row in rows:\n    print(row['prize'])\n```"
    message = ExecuteChain(sandbox).as_tool().invoke({**called(code=code), "name": "run_program"})
    assert message.status == "error"
    assert all(part in message.content for part in (">   3 |", "row = {'price': 1}", "The keys are 'price'"))


def test_a_program_that_runs_and_a_refused_answer_have_their_status(sandbox: SandboxExecutor) -> None:
    tool = ExecuteChain(sandbox).as_tool()
    assert tool.invoke({**called(code="6 * 7"), "name": "run_program"}).status == "success"
    with create_code_chain(ScriptedModel(lambda messages: "1 / 0"), executor=sandbox) as chain:
        assert chain.as_tool().invoke(called(query="6 * 7?")).status == "error"


def test_the_description_of_programs_is_for_the_model(sandbox: SandboxExecutor) -> None:
    tool = ExecuteChain(sandbox).as_tool()
    words = ("Python", "no network", "Each program starts from nothing")
    assert all(word in tool.description for word in words)
    assert "Print what you need" in tool.args["code"]["description"]


def test_arguments_can_be_given_by_type(sandbox: SandboxExecutor) -> None:
    tool = ExecuteChain(sandbox).as_tool(name="run", arg_types={"code": str, "variables": dict[str, int]})
    assert tool.invoke({"code": "6 * n", "variables": {"n": 7}}) == "42"


def test_a_model_is_told_no_bytes_and_no_flood(sandbox: SandboxExecutor) -> None:
    tool = ExecuteChain(sandbox).as_tool(name="run_python")
    told = tool.invoke({"code": "open('a.bin', 'wb').write(bytes(900_000))\nprint('x' * 900_000)\n1 / 0"})
    assert len(told) < 30_000
    assert "ZeroDivisionError" in told
    assert "Made: a.bin" in tool.invoke({"code": "open('a.bin', 'wb').write(bytes(900_000))"})


def test_the_chain_is_a_child_of_the_tools_run(tool: BaseTool) -> None:
    seen: dict[str, Any] = {}

    class Parents(BaseCallbackHandler):
        def on_tool_start(self, *_: Any, run_id: UUID, **__: Any) -> None:
            seen["tool"] = run_id

        def on_chain_start(
            self, *_: Any, name: str = "", parent_run_id: UUID | None = None, **__: Any
        ) -> None:
            seen.setdefault(name, parent_run_id)

    tool.invoke({"query": "6 * 7?"}, {"callbacks": [Parents()]})
    assert seen["code_chain"] == seen["tool"]


@pytest.mark.parametrize("arguments", [{"query": ""}, {}, {"query": ["a"]}])
def test_arguments_of_a_wrong_kind_are_told_to_the_model(tool: BaseTool, arguments: dict[str, Any]) -> None:
    assert tool.invoke(called(**arguments)).status == "error"


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_of_langchain_calls_it(tool: BaseTool, stream: bool) -> None:
    def script(messages: list[BaseMessage]) -> str | AIMessage:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            return f"The tool says: {last.text}"
        return AIMessage("", tool_calls=[called(query=str(last.text))])

    agent = create_agent(ScriptedModel(script), [tool])
    asked: Any = {"messages": [{"role": "user", "content": "6 * 7?"}]}
    if stream:
        chunks: list[Any] = [chunk for chunk, _ in agent.stream(asked, stream_mode="messages")]
        assert "The tool says: It is 42." in "".join(str(chunk.text) for chunk in chunks)
    else:
        messages = agent.invoke(asked)["messages"]
        assert messages[-1].text.startswith("The tool says: It is 42.")
        assert from_json(messages[-2].artifact)["verdict"].status == "unverified"


class Contract:
    """What LangChain asks of every tool."""

    @pytest.fixture(autouse=True)
    def _made(self, chain: CodeChain) -> None:
        self.made = chain.as_tool()

    @property
    def tool_constructor(self) -> BaseTool:
        return self.made

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": QUESTION}


class TestAlone(Contract, ToolsUnitTests):
    pass


class TestTogether(Contract, ToolsIntegrationTests):
    pass


@pytest.mark.parametrize("name", ["bad name!", "", "a.b", "ä", "x" * 65, "run\n"])
def test_a_name_that_providers_refuse_is_refused(
    name: str, chain: CodeChain, sandbox: SandboxExecutor
) -> None:
    for make in (
        chain.as_tool,
        ExecuteChain(sandbox).as_tool,
        lambda name: create_python_tool(sandbox, name=name),
        lambda name: PythonMiddleware(sandbox, name=name),
    ):
        with pytest.raises(ConfigurationError, match="at most 64 letters"):
            make(name=name)
    assert chain.as_tool(name="my-tool_2").name == "my-tool_2"
