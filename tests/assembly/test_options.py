"""Options per question, in the `configurable` of a config."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import (
    ConfigurableField,
    ConfigurableFieldSingleOption,
    RunnableConfig,
    RunnableLambda,
)
from langchain_core.runnables.history import RunnableWithMessageHistory

from code_chains import Budget, Iterate, Limits, Repair, SandboxExecutor, Verdict, create_code_chain
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains import ValidateChain
from code_chains.errors import CodeChainsError, ConfigurationError, InputError
from code_chains.state import ErrorReport, Execution
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code


def run(code: str) -> Execution | str:
    return (
        Execution("error", error=ErrorReport("ZeroDivisionError", "division by zero")) if "/" in code else "4"
    )


def chosen(**options: Any) -> RunnableConfig:
    return {"configurable": options}


def failing(**arguments: Any) -> CodeChain:
    return create_code_chain(ScriptedModel(lambda _: "1 / 0"), executor=ScriptedExecutor(run), **arguments)


def answering(seen: list[BaseMessage] | None = None, **arguments: Any) -> CodeChain:
    def reply(messages: list[BaseMessage]) -> str:
        if seen is not None:
            seen.extend(messages)
        return "len('five')" if asks_for_code(messages) else "It is 4."

    return create_code_chain(ScriptedModel(reply), **{"executor": ScriptedExecutor(run), **arguments})


def test_attempts() -> None:
    chain = failing()
    assert len(chain.invoke("Why?", chosen(max_attempts=1))["attempts"]) == 1
    assert len(chain.invoke("Why?")["attempts"]) > 1
    assert len(asyncio.run(chain.ainvoke("Why?", chosen(max_attempts=1)))["attempts"]) == 1


def test_approval_and_checks() -> None:
    result = answering().invoke("Why?", chosen(approve=lambda request: "not today", max_attempts=1))
    assert "not today" in result["verdict"].reason
    result = answering().invoke("Why?", chosen(checks=lambda code: "no len", max_attempts=1))
    assert result["problems"][0].message == "no len"


def test_other_checks_keep_the_approval() -> None:
    chain = answering(checks=ValidateChain(approve=lambda request: False))
    assert not chain.invoke("Why?", chosen(checks="none"))["verdict"].ok


def test_a_budget() -> None:
    assert failing().invoke("Why?", chosen(budget=Budget(model_calls=1)))["stop_reason"] == "model_calls"


def test_instructions_and_language() -> None:
    seen: list[BaseMessage] = []
    answering(seen).invoke("Why?", chosen(instructions="Use SI units.", language="es"))
    assert "Use SI units." in str(seen)
    assert "Spanish" in str(seen)


def test_verifiers() -> None:
    verdict = Verdict("plausible", "judge", "Said so.")
    assert answering().invoke("Why?", chosen(verify=[lambda state: verdict]))["verdict"] == verdict


def test_limits() -> None:
    chain = create_code_chain(ScriptedModel(lambda _: "while True: pass"), executor="none", solve=Repair(1))
    with chain:
        assert chain.invoke("Why?", chosen(limits=Limits(seconds=0.2)))["execution"].status == "timeout"


def test_limits_of_what_takes_none_are_refused() -> None:
    class Own(ScriptedExecutor):
        def __init__(self) -> None:
            super().__init__(str)

    with pytest.raises(ConfigurationError, match="limits"):
        answering(executor=Own()).invoke("Why?", chosen(limits=Limits(seconds=1)))


def test_a_conversation_keeps_its_state_with_other_options(sandbox: SandboxExecutor) -> None:
    programs = iter(["x = len('five')\nprint(x)", "print(x + 1)"])
    model = ScriptedModel(lambda messages: next(programs) if asks_for_code(messages) else "Told.")
    chain = create_code_chain(model, executor=sandbox)
    chain.invoke("Set x", chosen(thread_id="ann", max_attempts=1))
    assert chain.invoke("Add one", chosen(thread_id="ann", instructions="Be brief."))["stdout"] == "5\n"


def test_configurable_fields() -> None:
    chain = failing().configurable_fields(max_attempts=ConfigurableField(id="tries"))
    one_try: Any = chain.with_config(configurable={"tries": 1})
    assert len(one_try.invoke("Why?")["attempts"]) == 1


def test_options_reach_a_chain_in_a_pipe() -> None:
    pipe: Any = RunnableLambda(dict) | failing()
    assert len(pipe.invoke({"query": "Why?"}, chosen(max_attempts=1))["attempts"]) == 1


@pytest.mark.parametrize(
    "options",
    [
        *(
            {name: None}
            for name in ("executor", "solve", "tools", "snippets", "data", "answer_type", "memory")
        ),
        {"max_atempts": 1},
        {"max_attempts": 0},
        {"checks": "strikt"},
        {"limits": 3},
        {"budget": 3},
        {"verify": 3},
        {"approve": "yes"},
        {"instructions": 3},
    ],
)
def test_what_cannot_be_chosen_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(CodeChainsError, match=next(iter(options)).replace("atempts", "attempts")):
        answering().invoke("Why?", chosen(**options))


def test_a_solver_without_attempts_refuses_their_number(sandbox: SandboxExecutor) -> None:
    with pytest.raises(ConfigurationError, match="max_attempts"):
        answering(executor=sandbox, solve=Iterate()).invoke("Why?", chosen(max_attempts=1))


def test_the_config_of_another_library_is_no_obstacle() -> None:
    options = chosen(model="gpt-5", temperature=0, user_id="ann", checkpoint_ns="", thread_ts=1)
    assert answering().invoke("Why?", options)["answer"] == "It is 4."


@pytest.mark.parametrize("key", ["approve", "max_attempts", "tools", "model", "Query", "lang", "df", "steps"])
def test_unknown_inputs_are_refused_by_name(key: str) -> None:
    with pytest.raises(InputError, match=key):
        answering().invoke({"query": "Why?", key: 1})


@pytest.mark.parametrize(
    "call",
    [
        lambda chain: chain.invoke("Why?", max_attempts=1),
        lambda chain: chain.bind(max_attempts=1).invoke("Why?"),
        lambda chain: list(chain.stream("Why?", stop=["x"])),
        lambda chain: asyncio.run(chain.ainvoke("Why?", foo=1)),
    ],
)
def test_keywords_are_refused(call: Callable[[CodeChain], object]) -> None:
    with pytest.raises(InputError, match="keyword"):
        call(answering())


@pytest.mark.parametrize(
    ("keys", "given"),
    [
        ({"input_messages_key": "query", "history_messages_key": "history"}, lambda text: {"query": text}),
        ({"input_messages_key": "query"}, lambda text: {"query": text}),
        ({"input_messages_key": "messages"}, lambda text: {"messages": [HumanMessage(text)]}),
        ({}, lambda text: [HumanMessage(text)]),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_form_of_a_runnable_with_history(keys: dict[str, Any], given: Callable[[str], Any]) -> None:
    seen: list[BaseMessage] = []
    histories: dict[str, InMemoryChatMessageHistory] = {}
    chain = RunnableWithMessageHistory(
        answering(seen, memory=False),
        lambda session_id: histories.setdefault(session_id, InMemoryChatMessageHistory()),
        output_messages_key="answer",
        **keys,
    )
    chain.invoke(given("My number is 7."), chosen(session_id="ann"))
    list(chain.stream(given("Double it?"), chosen(session_id="ann")))
    texts = [message.text for message in histories["ann"].messages]
    assert texts == ["My number is 7.", "It is 4.", "Double it?", "It is 4."]
    assert "My number is 7." in seen[-1].text or "My number is 7." in str(seen)


def test_servers_are_told_of_the_session_and_of_no_option() -> None:
    assert [spec.id for spec in answering().config_specs] == ["session_id"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_classic_memory_keeps_turns_whatever_its_former_keys_were() -> None:
    memory = ConversationBufferMemory(input_key="input", output_key="result")
    answering(memory=memory).invoke("Why?")
    assert [message.text for message in memory.buffer_as_messages] == ["Why?", "It is 4."]


def test_a_check_that_raises_refuses_the_program() -> None:
    def block(code: str) -> None:
        raise ValueError("len is blocked")

    assert (
        answering().invoke("Why?", chosen(checks=block, max_attempts=1))["problems"][0].message
        == "len is blocked"
    )
    assert (
        "len is blocked"
        in answering().invoke("Why?", chosen(approve=block, max_attempts=1))["verdict"].reason
    )


def test_a_mistake_in_a_check_is_raised() -> None:
    with pytest.raises(AttributeError):
        answering().invoke("Why?", chosen(checks=lambda code: code.nothing))


def test_limits_and_a_budget_may_come_as_json(sandbox: SandboxExecutor) -> None:
    with create_code_chain(ScriptedModel(lambda _: "while True: pass"), executor=sandbox) as chain:
        result = chain.invoke(
            "Why?", chosen(limits={"seconds": 0.5}, max_attempts=1, budget={"model_calls": 1})
        )
        assert (result["execution"].status, result["usage"].model_calls) == ("timeout", 1)
        with pytest.raises(InputError, match="limits lack: they have seconds"):
            chain.invoke("Why?", chosen(limits={"second": 1}))


@pytest.mark.parametrize("name", ["executor", "answer_type", "memory", "rebuild", "model_name", "limit"])
def test_only_options_are_configurable(name: str) -> None:
    field = ConfigurableField(id="mine")
    chain = answering().configurable_fields(max_attempts=field)
    assert chain.invoke("Why?", chosen(mine=1))["output"] == "4"
    with pytest.raises(
        ConfigurationError, match="Pass limits" if name == "limit" else "Pass one of max_attempts"
    ):
        answering().configurable_fields(**{name: field})


def test_a_renamed_chain_is_configured_as_the_chain_is() -> None:
    tries = ConfigurableField(id="tries")
    for chain in (
        failing().configurable_fields(max_attempts=tries).with_keys(query="question"),
        failing().with_keys(query="question").configurable_fields(max_attempts=tries),
    ):
        assert [spec.id for spec in chain.config_specs] == ["session_id", "tries"]
        assert len(chain.invoke({"question": "Why?"}, chosen(tries=1))["attempts"]) == 1


def test_an_option_may_be_one_of_those_that_the_chain_offers() -> None:
    tries = ConfigurableFieldSingleOption(id="effort", options={"low": 1, "high": 2}, default="high")
    chain = failing().configurable_fields(max_attempts=tries)
    counts = [len(chain.invoke("Why?", chosen(**one))["attempts"]) for one in ({}, {"effort": "low"})]
    assert counts == [2, 1]
    with pytest.raises(InputError, match="none of low, high"):
        chain.invoke("Why?", chosen(effort="none"))


def test_a_misspelt_session_is_not_forgotten() -> None:
    with pytest.raises(InputError, match="did you mean 'session_id'"):
        answering().invoke("Why?", chosen(sesion_id="ann"))


def test_inputs_name_no_other_session_than_the_config() -> None:
    with pytest.raises(InputError, match="another session_id"):
        answering().invoke({"query": "Why?", "session_id": "bob"}, chosen(session_id="ann"))


def test_a_misspelt_key_is_told_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="Pass query"):
        answering().with_keys(quary="question")


@pytest.mark.parametrize("key", ["input", "question", "prompt"])
def test_what_other_chains_call_the_question_is_told_its_name(key: str) -> None:
    with pytest.raises(InputError, match="did you mean 'query'"):
        answering().invoke({key: "Why?"})


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_a_chat_history_is_told_where_it_goes() -> None:
    with pytest.raises(ConfigurationError, match="RunnableWithMessageHistory"):
        answering(memory=InMemoryChatMessageHistory())


def test_a_policy_stands_beside_checks_of_ones_own() -> None:
    chain = answering(checks=["strict", lambda code: "5 is forbidden" if "5" in code else None])
    assert chain.invoke("Why?")["output"] == "4"
    with pytest.raises(ConfigurationError, match="'stict'"):
        answering(checks=["stict"])
