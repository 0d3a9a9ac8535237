"""Each tool of ours works in each kind of agent, with and without an event loop, and keeps a state for each thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_classic.agents import (
    AgentExecutor,
    AgentType,
    create_react_agent,
    create_tool_calling_agent,
    initialize_agent,
)
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from code_chains import CodeChain, SnippetStore, create_code_chain, create_python_tool
from code_chains.agents import PythonMiddleware
from code_chains.chains import ExecuteChain
from code_chains.executors import SandboxExecutor
from code_chains.records import Record
from code_chains.state import CodeState
from code_chains.testing import ScriptedModel, asks_for_code

FAKE = DeterministicFakeEmbedding(size=32)
SERDE = JsonPlusSerializer(allowed_msgpack_modules=Record.__subclasses__())
KEPT, STATELESS = ["create_python_tool", "as_tool"], ["ExecuteChain", "PythonMiddleware"]
REACT = "Answer with {tools}, one of {tool_names}. Question: {input}\n{agent_scratchpad}"


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(max_sessions=100) as executor:
        yield executor


@pytest.fixture
def tools(executor: SandboxExecutor) -> Iterator[dict[str, BaseTool]]:
    model = ScriptedModel(lambda messages: messages[-1].text.splitlines()[-1])  # The question is the program.
    chain = create_code_chain(model, executor=executor, interpret=False)
    with PythonMiddleware(executor) as middleware:
        yield {
            "create_python_tool": create_python_tool(executor),
            "as_tool": chain.as_tool(),
            "ExecuteChain": ExecuteChain(executor).as_tool(),
            "PythonMiddleware": middleware.tools[0],
        }


def call_once(tool: BaseTool, text: str) -> ScriptedModel:
    """Return a model that calls a tool with a text, and then repeats what the tool answered."""

    def script(messages: list[BaseMessage]) -> str | AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return str(messages[-1].text)
        call = {"name": tool.name, "args": {next(iter(tool.args)): text}, "id": "1", "type": "tool_call"}
        return AIMessage("", tool_calls=[call])

    return ScriptedModel(script)


def act_once(tool: BaseTool, text: str) -> ScriptedModel:
    """Return a model that does the same in the text format of ReAct."""

    def script(messages: list[BaseMessage]) -> str:
        _, is_done, seen = messages[-1].text.rpartition("Question: ")[2].rpartition("Observation: ")
        if is_done:
            return f"Thought: done\nFinal Answer: {seen.partition(chr(10))[0]}"
        return f"Thought: compute\nAction: {tool.name}\nAction Input: {text}"

    return ScriptedModel(script)


def tool_calling(tool: BaseTool, text: str) -> Any:
    prompt = ChatPromptTemplate([("human", "{input}"), ("placeholder", "{agent_scratchpad}")])
    agent = create_tool_calling_agent(call_once(tool, text), [tool], prompt)
    return AgentExecutor(agent=agent, tools=[tool])


def react(tool: BaseTool, text: str) -> Any:
    agent = create_react_agent(act_once(tool, text), [tool], PromptTemplate.from_template(REACT))
    return AgentExecutor(agent=agent, tools=[tool])


def initialized(tool: BaseTool, text: str) -> Any:
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # It warns once only.
        return initialize_agent([tool], act_once(tool, text), agent=AgentType.ZERO_SHOT_REACT_DESCRIPTION)


def graph_agent(tool: BaseTool, text: str) -> Any:
    return create_agent(call_once(tool, text), [tool])


def tool_node(tool: BaseTool, text: str) -> Any:
    model = call_once(tool, text)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    graph.add_edge("tools", END)
    return graph.compile()


CLASSIC, GRAPHS = [tool_calling, react, initialized], [graph_agent, tool_node]


async def ask(make: Callable[..., Any], tool: BaseTool, text: str, *, thread: str, is_async: bool) -> str:
    """Ask an agent in a thread, and return what its tool answered."""
    question: dict[str, Any] = {"input": "Go."} if make in CLASSIC else {"messages": [("human", "Go.")]}
    config = {"metadata" if make in CLASSIC else "configurable": {"thread_id": thread}}
    agent = make(tool, text)
    state = await agent.ainvoke(question, config) if is_async else agent.invoke(question, config)
    return str(state["output"] if make in CLASSIC else state["messages"][-1].text)


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("make", [*CLASSIC, *GRAPHS])
@pytest.mark.parametrize("name", KEPT)
async def test_a_tool_keeps_the_state_of_a_thread_in_any_agent(
    tools: dict[str, BaseTool], name: str, make: Callable[..., Any], is_async: bool
) -> None:
    thread = f"{name} {make.__name__} {is_async}"
    await ask(make, tools[name], "n = 41; print(n)", thread=thread, is_async=is_async)
    assert "42" in await ask(make, tools[name], "print(n + 1)", thread=thread, is_async=is_async)
    assert "42" not in await ask(make, tools[name], "print(n + 1)", thread="another", is_async=is_async)


@pytest.mark.slow
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("make", CLASSIC)
@pytest.mark.parametrize("name", STATELESS)
async def test_a_tool_without_a_state_runs_in_any_agent(
    tools: dict[str, BaseTool], name: str, make: Callable[..., Any], is_async: bool
) -> None:
    assert "42" in await ask(make, tools[name], "print(6 * 7)", thread="any", is_async=is_async)


@pytest.mark.rows(2)
@pytest.mark.parametrize("name", [*KEPT, *STATELESS])
async def test_a_tool_runs_without_an_agent(tools: dict[str, BaseTool], name: str) -> None:
    arguments = {next(iter(tools[name].args)): "print(6 * 7)"}
    assert "42" in str(tools[name].run(arguments))
    assert "42" in str(await tools[name].arun(arguments))


def answering_chain() -> CodeChain:
    """Return a chain whose model computes 6 * 7."""
    return create_code_chain(
        ScriptedModel(lambda messages: "print(6 * 7)" if asks_for_code(messages) else "It is 42."),
        executor="none",
    )


def run_node(state: Any, node: Any, given: dict[str, Any]) -> dict[str, Any]:
    graph = StateGraph(state)
    graph.add_node("code", node)
    graph.add_edge(START, "code")
    graph.add_edge("code", END)
    return graph.compile(checkpointer=None).invoke(given)


def test_a_chain_is_a_node_of_a_graph() -> None:
    with answering_chain() as chain:
        state = run_node(CodeState, chain, {"query": "What is 6 * 7?"})
    assert (state["answer"], state["verdict"].ok) == ("It is 42.", True)


def test_a_chain_is_a_node_of_a_graph_of_messages() -> None:
    with answering_chain() as chain:
        node = chain | (lambda result: {"messages": [("ai", result["answer"])]})
        state = run_node(MessagesState, node, {"messages": [("human", "What is 6 * 7?")]})
    assert [message.text for message in state["messages"]] == ["What is 6 * 7?", "It is 42."]


def test_a_graph_that_keeps_its_state_asks_each_question_anew() -> None:
    prompts: list[str] = []

    def script(messages: list[BaseMessage]) -> str:
        prompts.append("\n".join(str(message.text) for message in messages))
        return "print(1 + 2)" if asks_for_code(messages) else "3"

    about = [{"about": "the sum"}, {"about": "the largest"}]
    examples = SnippetStore.from_texts(["sum(range(3))", "max(3, 4)"], FAKE, about)
    with create_code_chain(ScriptedModel(script), executor="none", snippets=examples) as chain:
        graph: Any = StateGraph(CodeState)
        graph.add_node("code", chain)
        graph.add_edge(START, "code")
        app = graph.compile(checkpointer=InMemorySaver(serde=SERDE))
        thread = {"configurable": {"thread_id": "1"}}
        app.invoke({"query": "Was ist die Summe der Zahlen von eins bis zwei?"}, thread)
        first, prompts[:] = prompts[0], []
        app.invoke({"query": "What is the sum of the numbers from one to two?"}, thread)
    assert "German" in first
    assert "German" not in "".join(prompts)
    (asked,) = [prompt for prompt in prompts if prompt.startswith("You answer questions")]
    assert asked.count("sum(range(3))") == first.count("sum(range(3))")
