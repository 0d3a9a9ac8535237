"""Chains with other names for their keys, and what they take as inputs."""

from __future__ import annotations

import asyncio
import functools
import operator
from typing import Any

import pytest
from langchain_classic.chains import SequentialChain, SimpleSequentialChain
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate

from code_chains import create_code_chain
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains import ExecuteChain, ValidateChain
from code_chains.chains.base import StreamingSequentialChain
from code_chains.errors import ConfigurationError, InputError
from code_chains.inputs.text import check_history
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code

Sequence: Any = StreamingSequentialChain
BOX = ScriptedExecutor(lambda code: str(eval(code)))
HISTORY = [HumanMessage("My number is 7."), AIMessage("Fine."), HumanMessage("Double it?")]


def answered() -> CodeChain:
    model = ScriptedModel(lambda messages: "len('five')" if asks_for_code(messages) else "It is 4.")
    return create_code_chain(model, executor=BOX)


def test_two_assembled_chains_fit_into_a_stock_sequence() -> None:
    first, second = answered().with_keys(answer="first"), answered().with_keys(query="first", answer="second")
    chain = SequentialChain(
        chains=[first, second], input_variables=["query"], output_variables=["first", "second"]
    )
    result = chain.invoke("How long?")
    assert set(result) == {"query", "first", "second"}
    assert result["second"].startswith("It is 4.")


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_a_simple_sequence_and_run_take_a_chain_with_one_output() -> None:
    chain = SimpleSequentialChain(chains=[answered().with_keys(answer="a"), answered().with_keys(answer="b")])
    assert chain.run("How long?").startswith("It is 4.")
    assert answered().with_keys(query="question", answer="text").run(question="How long?") == "It is 4."


def test_pieces_can_be_used_twice() -> None:
    pieces = [
        ExecuteChain(BOX).with_keys(output="one"),
        ExecuteChain(BOX).with_keys(code="other", output="two"),
    ]
    chain = SequentialChain(chains=pieces, input_variables=["code", "other"], output_variables=["one", "two"])
    result = chain.invoke({"code": "1 + 1", "other": "2 + 2"})
    assert (result["one"], result["two"]) == ("2", "4")


def test_without_names_of_outputs_all_of_them_stay() -> None:
    assert "verdict" in answered().with_keys(query="question").invoke({"question": "How long?"})


def test_chunks_add_up_and_async_equals_sync() -> None:
    chain = answered().with_keys(query="question", answer="text", verdict="sure")
    result = chain.invoke("How long?")
    assert functools.reduce(operator.add, chain.stream("How long?")) == result
    assert asyncio.run(chain.ainvoke("How long?")) == result


def test_names_can_be_given_twice() -> None:
    chain = answered().with_keys(answer="a").with_keys(a="b", query="x")
    assert chain.invoke("How long?") == {"x": "How long?", "b": "It is 4."}


def test_sessions_and_schemas_work_by_the_new_names() -> None:
    inner = answered()
    chain = inner.with_keys(query="question", answer="text")
    chain.invoke({"question": "How long?", "session_id": "ann"})
    chain.invoke("And then?", {"configurable": {"thread_id": "ann"}})
    assert len(inner.turns("ann")) == 2
    assert chain.get_output_schema().model_fields["text"].annotation is str


@pytest.mark.parametrize("other", [{}, {"session_id": None, "chat_history": None}])
def test_a_thread_of_the_inputs_is_a_session_also_where_a_server_sends_all_names(
    other: dict[str, Any],
) -> None:
    chain = answered()
    for query in ("How long?", "And then?"):
        chain.invoke({"query": query, "thread_id": "ann", **other})
    assert len(chain.turns("ann")) == 2
    assert {"chat_history", "thread_id"} <= chain.get_input_schema().model_fields.keys()


@pytest.mark.parametrize(
    "names", [{"nonsense": "x"}, {"answer": "x", "verdict": "x"}, {"query": "files"}, {"answer": ""}]
)
def test_names_that_fit_nothing_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="with_keys"):
        answered().with_keys(names)


def test_what_belongs_to_others_is_not_read() -> None:
    chain = ExecuteChain(BOX).with_keys(code="program", output="shown")
    assert chain.invoke({"program": "1 + 1", "code": "of another chain"})["shown"] == "2"


def test_a_sequence_finds_out_what_it_needs() -> None:
    chain = Sequence(chains=[answered().with_keys(answer="a"), answered().with_keys(query="a", answer="b")])
    assert chain.input_keys == ["query"]


def test_a_chain_inside_itself_is_refused() -> None:
    chain = Sequence(chains=[answered().with_keys(answer="a")])
    chain.chains.append(chain)
    with pytest.raises(ConfigurationError, match="inside itself"):
        chain.invoke("How long?")


@pytest.mark.parametrize(
    "given",
    [
        HISTORY,
        {"messages": HISTORY},
        {"query": HISTORY},
        {"messages": [("human", "My number is 7."), ("ai", "Fine."), ("human", "Double it?")]},
        {"messages": [{"role": "user", "content": message.content} for message in HISTORY]},
        ChatPromptTemplate.from_messages(HISTORY).invoke({}),
    ],
)
def test_messages_are_a_question_and_its_history(given: Any) -> None:
    result = answered().invoke(given)
    assert result["query"] == "Double it?"
    assert result["history"][0].text == "My number is 7."


@pytest.mark.parametrize(
    "pair", [("My number is 7.", "Fine."), ["My number is 7.", "Fine."], ["My number is 7.", None]]
)
def test_pairs_of_question_and_answer_are_a_history(pair: Any) -> None:
    messages: Any = check_history([pair])
    assert [message.text for message in messages] == [text for text in pair if text]
    assert [message.type for message in messages] == ["human", "ai"][: len(messages)]
    assert answered().invoke({"query": "Double it?", "history": [pair]})["answer"]


@pytest.mark.parametrize(
    "history",
    [
        [HumanMessage("a"), AIMessage("b"), ("What is x?", "5")],
        [("Hi", "hello"), {"role": "user", "content": "x"}],
        [("system", "x"), ("What is?", "y")],
        [("air", "is a gas"), ("thanks", "np")],
    ],
)
def test_pairs_may_stand_beside_messages(history: Any) -> None:
    assert len(check_history(history)) > len(history)


def test_a_role_that_is_misspelt_is_no_question() -> None:
    with pytest.raises(InputError, match="humam"):
        answered().invoke({"query": "Double it?", "history": [("humam", "My number is 7.")]})


@pytest.mark.parametrize(
    "given", [HumanMessage("Why?"), PromptTemplate.from_template("Why?").invoke({}), "Why?"]
)
def test_a_message_and_a_prompt_are_a_question(given: Any) -> None:
    assert answered().invoke(given)["query"] == "Why?"


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"messages": []},
        [1, 2],
        [*HISTORY, AIMessage("It is 14.")],
        {"messages": HISTORY, "history": "Something else."},
        HumanMessage([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]),
    ],
)
def test_messages_without_a_question_are_refused(given: Any) -> None:
    with pytest.raises(InputError):
        answered().invoke(given)


@pytest.mark.parametrize(
    "reply",
    [
        AIMessage("```python\nlen('five')\n```"),
        AIMessage([{"type": "text", "text": "```python\nlen('five')\n```"}]),
        AIMessage("", tool_calls=[{"name": "run", "args": {"code": "len('five')"}, "id": "1"}]),
    ],
)
def test_a_reply_of_a_model_is_a_program(reply: AIMessage) -> None:
    chain = ChatPromptTemplate.from_template("{q}") | ScriptedModel(lambda _: reply) | ExecuteChain(BOX)
    assert chain.invoke({"q": "How long?"})["output"] == "4"
    assert ValidateChain().invoke(reply)["problems"] == []
