"""The assembled chain, from a question to an answer."""

from __future__ import annotations

import asyncio
import functools
import operator
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.chains import SequentialChain
from langchain_classic.memory import ConversationBufferMemory, ConversationSummaryMemory
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from code_chains import Data, Language, Prompts, Repair, Snippets, Toolbox, create_code_chain
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains import ValidateChain
from code_chains.chains.base import State, StreamingTransformChain
from code_chains.chains.validate import ApprovalRequest
from code_chains.errors import CodeChainsError, ConfigurationError, ExecutorError, InputError
from code_chains.executors import Limits, SandboxExecutor, SqlExecutor
from code_chains.testing import ScriptedExecutor, ScriptedModel, asks_for_code
from tests.conftest import QUESTION, SUM_ANSWER, at_rest, descendants, soon


@pytest.fixture
def chain(model: ScriptedModel, sandbox: SandboxExecutor) -> CodeChain:
    return create_code_chain(model, executor=sandbox)


def writing(code: str) -> ScriptedModel:
    return ScriptedModel(lambda messages: f"```python\n{code}\n```" if asks_for_code(messages) else "Told.")


def test_a_question_gets_code_output_verdict_and_answer(chain: CodeChain) -> None:
    result = chain.invoke({"query": QUESTION})
    assert (result["output"], result["verdict"].status, result["answer"]) == (
        "Sum: 15",
        "unverified",
        SUM_ANSWER,
    )
    assert set(result) == {"query", *chain.output_keys}


def test_it_streams_the_story_and_then_the_answer(chain: CodeChain) -> None:
    keys = [next(iter(chunk)) for chunk in chain.stream({"query": QUESTION})]
    assert list(dict.fromkeys(keys))[:8] == [
        "query",
        "answer_language",
        "notes",
        "programs",
        "stdout",
        "attempts",
        "code",
        "answer",
    ]
    assert keys[-1] == "usage"


def test_what_is_noted_of_no_files_is_shared_by_no_answers(chain: CodeChain) -> None:
    chain.invoke(QUESTION)["notes"].append("mine")
    assert chain.invoke(QUESTION)["notes"] == []


async def test_all_ways_give_the_same(chain: CodeChain) -> None:
    expected = chain.invoke(QUESTION)
    chunks = [chunk async for chunk in chain.astream(QUESTION)]
    assert await chain.ainvoke(QUESTION) == expected
    assert dict(functools.reduce(operator.add, chunks)) == expected
    assert (
        chain.batch([{"query": QUESTION}] * 2)
        == [expected] * 2
        == await chain.abatch([{"query": QUESTION}] * 2)
    )


async def test_every_stage_is_an_event_by_its_name(chain: CodeChain) -> None:
    events = [event async for event in chain.astream_events(QUESTION, version="v2")]
    stages = [
        "code_chain",
        "language",
        "repair",
        "attempt",
        "generate",
        "validate",
        "execute",
        "evaluate",
        "interpret",
    ]
    assert [event["name"] for event in events if event["event"] == "on_chain_start"] == stages
    assert events[-1]["name"] == "code_chain"


def test_usage_counts_every_call(chain: CodeChain) -> None:
    usage = chain.invoke(QUESTION)["usage"]
    assert (usage.model_calls, usage.by_model["scripted"]["output_tokens"]) == (2, usage.output_tokens)


def test_the_data_of_a_file_is_used(sandbox: SandboxExecutor, sales: Path) -> None:
    code = "import csv\nprint(sum(int(row['amount']) for row in csv.DictReader(open('sales.csv'))))"
    chain = create_code_chain(writing(code), executor=sandbox)
    assert chain.invoke({"query": "total?", "files": {"sales.csv": sales}})["output"] == "42"


def test_it_can_leave_the_telling_out(model: ScriptedModel, sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(model, executor=sandbox, interpret=False)
    assert "answer" not in chain.invoke(QUESTION)


def test_it_fits_into_a_users_stock_chain(chain: CodeChain) -> None:
    def shout(state: State) -> State:
        return {"loud": state["answer"].upper()}

    loud = StreamingTransformChain(input_variables=["answer"], output_variables=["loud"], transform=shout)
    stock = SequentialChain(
        chains=[chain, loud], input_variables=["query"], output_variables=["loud", "verdict"]
    )
    assert stock.invoke({"query": QUESTION})["loud"] == SUM_ANSWER.upper()


@pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning")
def test_a_classic_memory_gives_the_history(sandbox: SandboxExecutor) -> None:
    asked: list[str] = []

    def script(messages: list[BaseMessage]) -> str:
        asked.append(str(messages[-1].text))
        return "print(15)" if asks_for_code(messages) else "It is 15."

    memory = ConversationBufferMemory(memory_key="history", input_key="query", output_key="answer")
    chain = create_code_chain(ScriptedModel(script), executor=sandbox, memory=memory, checks=())
    chain.invoke({"query": "first"})
    chain.invoke({"query": "second"})
    assert "Human: first\nAI: It is 15." in asked[2]


def test_the_graph_draws_every_stage(chain: CodeChain) -> None:
    drawn = chain.get_graph().draw_mermaid()
    assert all(
        f"{stage}({stage})" in drawn for stage in ("generate", "validate", "execute", "evaluate", "interpret")
    )


def test_a_chain_shows_itself_in_a_line(model: ScriptedModel) -> None:
    with create_code_chain(model, executor="none") as chain:
        assert re.fullmatch(r"CodeChain\(\w+( > \w+)+\)", repr(chain))


# -- bad models and bad code: honest values ------------------------------------------------------------------------------

HOPELESS = {
    "a figure in prose": ("It may be 16.", "no Python program. It was: 'It may be 16.'"),
    "nothing": ("", "no Python program"),
    "the same broken code again": ("```python\n1 / 0\n```", "division by zero"),
    "an unknown name": ("```python\nprint(total)\n```", "undefined name 'total'"),
    "code that prints nothing": ("```python\npass\n```", "printed nothing"),
    "code that never ends": ("```python\nwhile True: pass\n```", "did not end within 1 seconds"),
    "a flood": ("```python\nwhile True: print('x' * 9999)\n```", "bytes were printed"),
    "forks": (
        "```python\nimport os\nwhile True:\n  try: os.fork()\n  except OSError: pass\n```",
        "processes|did not end",
    ),
    "eats memory": ("```python\nx = bytearray(1 << 36)\n```", "MemoryError"),
    "sys.exit": ("```python\nimport sys; sys.exit('gave up')\n```", "gave up"),
    "os._exit": ("```python\nimport os; os._exit(0)\n```", "exit code 0"),
    "kills itself": ("```python\nimport os; os.kill(os.getpid(), 9)\n```", "SIGKILL"),
}


NEED_PROCESSES = ("forks", "eats memory", "kills itself")
"""What WebAssembly ends in other ways, without processes and with an address space of 4 GB."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.kernel_sandbox] if name in NEED_PROCESSES else [])
        for name, case in HOPELESS.items()
    ],
)
def test_what_cannot_be_answered_is_said_honestly(reply: str, reason: str) -> None:
    told = ScriptedModel(lambda messages: reply if asks_for_code(messages) else "It is 15.")
    before = len(descendants())
    with create_code_chain(told, limits=Limits(seconds=1), solve=Repair(3)) as chain:
        result = chain.invoke({"query": QUESTION})
    assert (result["verdict"].status, len(result["attempts"]), result["stop_reason"]) == (
        "failed",
        3,
        "same_failure",
    )
    assert re.search(reason, result["answer"])
    assert soon(lambda: len(descendants()) <= before)


# -- wrong use -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"executor": "lxc"}, "executor='lxc'"),
        ({"executor": None}, "executor=None"),
        ({"checks": "paranoid"}, "checks='paranoid'"),
        ({"solve": "3"}, "solve='3'"),
        ({"interpret": "no"}, "interpret='no'"),
        ({"limits": {"seconds": 5}}, "limits="),
    ],
)
def test_a_wrong_argument_is_named_with_what_would_do(
    model: ScriptedModel, arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named) as raised:
        create_code_chain(model, **arguments)
    assert "Pass " in str(raised.value)


def test_limits_belong_to_an_executor_that_is_passed_in(
    model: ScriptedModel, sandbox: SandboxExecutor
) -> None:
    with pytest.raises(ConfigurationError, match="limits"):
        create_code_chain(model, executor=sandbox, limits=Limits())


@pytest.mark.parametrize("query", ["", "   ", "x" * 1_000_000, 5])
def test_a_question_that_is_none_is_refused(chain: CodeChain, query: Any) -> None:
    with pytest.raises(InputError):
        chain.invoke({"query": query})


def test_a_missing_file_is_refused(chain: CodeChain) -> None:
    with pytest.raises(InputError, match="does not exist"):
        chain.invoke({"query": QUESTION, "files": {"a.csv": Path("/nowhere/a.csv")}})


def test_leaving_it_closes_its_own_executor_alone(model: ScriptedModel, sandbox: SandboxExecutor) -> None:
    with create_code_chain(model) as own:
        pass
    with pytest.raises(ExecutorError, match="closed"):
        own.invoke(QUESTION)
    with create_code_chain(model, executor=sandbox):
        pass
    assert sandbox.run("1").ok


def test_every_error_of_ours_has_one_root() -> None:
    assert issubclass(ConfigurationError, CodeChainsError)
    assert issubclass(InputError, ValueError)


# -- async ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_the_loop_is_never_blocked(sandbox: SandboxExecutor) -> None:
    slow = ScriptedModel(
        lambda m: "import time; time.sleep(1); print(1)" if asks_for_code(m) else "1", delay=1
    )
    task, gap = asyncio.create_task(create_code_chain(slow, executor=sandbox).ainvoke(QUESTION)), 0.0
    while not task.done():
        before = time.monotonic()
        await asyncio.sleep(0.005)
        gap = max(gap, time.monotonic() - before)
    assert (task.result()["output"], gap < 0.9) == ("1", True)


async def test_cancelling_kills_the_running_code(sandbox: SandboxExecutor) -> None:
    sandbox.run("1")
    before = at_rest()
    chain = create_code_chain(writing("import time; time.sleep(60)"), executor=sandbox)
    task = asyncio.create_task(chain.ainvoke(QUESTION))
    assert await asyncio.to_thread(soon, lambda: len(descendants()) > before)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert soon(lambda: len(descendants()) <= before)


def test_a_question_leaves_no_file_behind(
    chain: CodeChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.invoke(QUESTION)  # The folder of this process stays until its end.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chain.invoke(QUESTION)
    assert [name for name in os.listdir(tmp_path) if "canary" not in name] == []


def test_a_variable_is_used(sandbox: SandboxExecutor) -> None:
    chain = create_code_chain(writing("print(n * 2)"), executor=sandbox)
    assert chain.invoke({"query": "double n", "variables": {"n": 3}})["output"] == "6"


def test_a_result_can_be_asked_on(chain: CodeChain) -> None:
    again = chain.invoke(QUESTION) | {"query": "And now?"}
    assert dict(functools.reduce(operator.add, chain.stream(again))) == chain.invoke(again)


def test_the_model_is_told_what_the_place_can_import() -> None:
    rules: list[str] = []

    def script(messages: list[Any]) -> str:
        rules.append(str(messages[0].text))
        return "```python\n1 + 1\n```" if asks_for_code(messages) else "It is 2."

    with SandboxExecutor(packages=("numpy",), preload=()) as box:
        create_code_chain(ScriptedModel(script), executor=box).invoke(QUESTION)
    assert "numpy; nothing else is installed" in rules[0]


def test_a_question_is_answered_in_sql(sales: Path) -> None:
    query = "SELECT region FROM sales ORDER BY amount DESC LIMIT 1"
    model = ScriptedModel(
        lambda messages: f"```sql\n{query}\n```" if asks_for_code(messages) else "The south."
    )
    with SqlExecutor() as place:
        result = create_code_chain(model, executor=place).invoke(
            {"query": "Which region sold most?", "files": {"sales.csv": sales}}
        )
    assert (result["code"], result["execution"].status, result["answer"]) == (
        f"{query}\n",
        "ok",
        "The south.",
    )
    assert "south" in result["output"]


@pytest.mark.parametrize(
    "call",
    [
        lambda chain: chain.invoke({"query": "f?", "test": "assert f(1)"}),
        lambda chain: chain.invoke({"query": "f?", "file": ["sales.csv"]}),
        lambda chain: chain.invoke("f?", tests="assert f(1)"),
        lambda chain: list(chain.stream("f?", session_id="ann")),
        lambda chain: asyncio.run(chain.ainvoke("f?", files=[Path("sales.csv")])),
    ],
)
def test_an_input_that_would_be_ignored_is_an_error_before_a_model_is_asked(call: Any) -> None:
    model = ScriptedModel(lambda messages: pytest.fail("It must not be asked."))
    with (
        create_code_chain(model, executor=ScriptedExecutor(str)) as chain,
        pytest.raises(InputError, match=r"did you mean|in the dict of inputs"),
    ):
        call(chain)


def test_keys_of_others_pass_through_a_pipe(model: ScriptedModel) -> None:
    with create_code_chain(model, executor="none") as chain:
        pipe: Any = RunnableLambda(dict) | chain
        assert pipe.invoke({"query": QUESTION, "customer": 5, "text": "x"})["customer"] == 5


@pytest.mark.parametrize(
    ("name", "create"),
    [
        ("Data.schema_only", lambda: Data(schema_only="no")),  # type: ignore[arg-type]
        ("Data.paste", lambda: Data(paste="no")),  # type: ignore[arg-type]
        ("Language.translate", lambda: Language(translate="no")),  # type: ignore[arg-type]
        ("Snippets.learn", lambda: Snippets(learn="no")),  # type: ignore[arg-type]
        ("Toolbox.repeat_effects", lambda: Toolbox([], repeat_effects="no")),  # type: ignore[arg-type]
        ("interpret", lambda: create_code_chain(ScriptedModel(str), interpret="no")),  # type: ignore[arg-type]
    ],
)
def test_a_switch_is_true_or_false(name: str, create: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError, match=f"Invalid {name}='no'. Pass True or False"):
        create()


def test_a_policy_for_python_is_refused_for_another_language() -> None:
    with SqlExecutor() as place, pytest.raises(ConfigurationError, match="reads Python"):
        create_code_chain(ScriptedModel(lambda messages: ""), executor=place, checks="strict")


@pytest.mark.kernel_sandbox
def test_the_place_gets_ready_while_the_model_thinks(model: ScriptedModel) -> None:
    with create_code_chain(model) as chain:
        assert isinstance(chain.executor, SandboxExecutor)
        stream = chain.stream({"query": QUESTION})
        next(stream)
        started = chain.executor._provider.pool.worker is not None
        list(stream)
    assert started


# -- executors by name -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "program"), [("monty", "print(6 * 7)"), ("sql", "```sql\nSELECT 42 AS answer\n```")]
)
def test_an_executor_may_be_named(name: Any, program: str) -> None:
    model = ScriptedModel(lambda messages: program)
    with create_code_chain(model, executor=name, limits=Limits(seconds=5), interpret=False) as chain:
        assert "42" in chain.invoke(QUESTION)["output"]


def test_an_unknown_executor_is_refused_with_all_names() -> None:
    with pytest.raises(
        ConfigurationError,
        match='"docker", "podman", "e2b", "modal", "daytona", "monty", "sql", "wasm", "none"',
    ):
        create_code_chain(ScriptedModel(lambda messages: ""), executor="lxc")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("llm", "model=…"),
        ("max_attempts", "solve=Repair(attempts=…)"),
        ("retriever", "snippets=…"),
        ("timeout", "limits=Limits(seconds=…) for programs"),
        ("verbose", "a callback"),
        ("excutor", "executor=…"),
        ("answer_types", "answer_type=…"),
        ("quux", "only model, executor, limits"),
    ],
)
def test_a_keyword_that_does_not_exist_is_answered_with_the_one_that_does(name: str, remedy: str) -> None:
    create: Any = create_code_chain
    with pytest.raises(ConfigurationError, match=re.escape(f"There is no argument {name!r}. Pass {remedy}")):
        create(ScriptedModel(lambda messages: ""), **{name: 1})
    with pytest.raises(TypeError):  # As for any other function.
        create(ScriptedModel(lambda messages: ""), **{name: 1})


def test_who_approves_sees_the_program_that_runs() -> None:
    seen: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        seen.append(request.code)
        return True

    model = ScriptedModel(lambda messages: "```sql\nSELECT 41 + 1 AS x -- code: print(1)\n```")
    with create_code_chain(
        model, executor="sql", interpret=False, checks=ValidateChain(approve=approve)
    ) as chain:
        assert "42" in chain.invoke("What is 41 + 1?")["output"]
    assert seen == ["SELECT 41 + 1 AS x -- code: print(1)\n"]


# -- instructions and prompts --------------------------------------------------------------------------------------------


def asked_with(**options: Any) -> tuple[str, str]:
    """Return the system messages of the model that writes the program, and of the one that phrases the answer."""
    system: dict[bool, str] = {}

    def script(messages: list[BaseMessage]) -> str:
        system[asks_for_code(messages)] = messages[0].text
        return "print(15)" if asks_for_code(messages) else "It is 15."

    with create_code_chain(ScriptedModel(script), executor="none", **options) as chain:
        chain.invoke(QUESTION)
    return system[True], system[False]


def test_instructions_reach_the_program_and_the_answer() -> None:
    generate, interpret = asked_with(instructions="  Amounts are in euros.\n")
    assert generate.endswith("\n\nAmounts are in euros.")
    assert interpret.endswith("\n\nAmounts are in euros.")


def test_prompts_can_be_replaced_as_a_whole() -> None:
    prompts: dict[str, Any] = {
        "generate": "Write Python that prints JSON.",
        "interpret": "Speak like a pirate.",
    }
    assert asked_with(instructions=Prompts(**prompts)) == tuple(prompts.values())
    assert asked_with(instructions=Prompts("In euros.", interpret="Short."))[1] == "Short.\n\nIn euros."


@pytest.mark.parametrize(
    "options",
    [
        {"instructions": 5},
        {"instructions": ["a"]},
        {"instructions": None},
    ],
)
def test_instructions_are_text(options: Any) -> None:
    with pytest.raises(ConfigurationError, match="instructions"):
        create_code_chain(ScriptedModel(lambda messages: ""), **options)


def test_prompts_are_text() -> None:
    with pytest.raises(ConfigurationError, match=r"Prompts\.generate=5"):
        Prompts(generate=5)  # type: ignore[arg-type]


# -- histories of others -------------------------------------------------------------------------------------------------

HISTORIES: dict[str, Any] = {
    "messages": [HumanMessage("My name is Ann."), AIMessage("Hello Ann.")],
    "tuples": [("human", "My name is Ann."), ("ai", "Hello Ann.")],
    "OpenAI": [
        {"role": "user", "content": "My name is Ann."},
        {"role": "assistant", "content": "Hello Ann."},
    ],
    "text": "Human: My name is Ann.",
    "one message": HumanMessage("My name is Ann."),
    "one dict": {"role": "user", "content": "My name is Ann."},
    "one tuple": ("user", "My name is Ann."),
    "pairs of words": [("hi", "hello"), ["thanks", "My name is Ann."]],
    "a question without an answer": [("My name is Ann.", None)],
}


def prompts_of(inputs: dict[str, Any], **options: Any) -> str:
    prompts: list[str] = []

    def script(messages: list[BaseMessage]) -> str:
        prompts.append(messages[-1].text)
        return "print(15)"

    with create_code_chain(ScriptedModel(script), executor="none", interpret=False, **options) as chain:
        chain.invoke({"query": QUESTION, **inputs})
    return prompts[0]


@pytest.mark.rows(4)
@pytest.mark.parametrize("key", ["history", "chat_history"])
@pytest.mark.parametrize("session", [{}, {"session_id": "ann"}], ids=["no session", "a session"])
@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_a_history_that_is_given_is_shown_to_the_model(history: Any, session: Any, key: str) -> None:
    assert "My name is Ann." in prompts_of({key: history, **session})


@pytest.mark.parametrize(
    "history", [5, [5], [{"role": "user"}], [object()], [("user", "Hi"), ("bot", "Hello")]]
)
def test_a_history_that_is_none_is_refused(history: Any) -> None:
    with pytest.raises(InputError, match="history must be text or messages"):
        prompts_of({"history": history})


def test_two_histories_are_refused() -> None:
    with pytest.raises(InputError, match="Pass what was said before once"):
        prompts_of({"history": "My name is Ann.", "chat_history": "My name is Bob."})


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
@pytest.mark.parametrize("key", ["history", "chat_history"])
def test_a_classic_memory_is_shown_to_the_model_under_either_name(key: str) -> None:
    memory = ConversationBufferMemory(memory_key=key)
    memory.save_context({"query": "My name is Ann."}, {"output": "Hello Ann."})
    assert "My name is Ann." in prompts_of({}, memory=memory)


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (ConversationBufferMemory, {}),
        (ConversationBufferMemory, {"input_key": "question", "output_key": "text", "return_messages": True}),
        (ConversationSummaryMemory, {"llm": ScriptedModel(lambda messages: "Ann asked for 15.")}),
    ],
)
def test_a_classic_memory_is_the_one_that_the_application_holds(kind: Any, options: dict[str, Any]) -> None:
    memory, seen = kind(**options), list[str]()

    def reply(messages: list[BaseMessage]) -> str:
        seen.append(str(messages))
        return "print(15)" if asks_for_code(messages) else "It is 15."

    with create_code_chain(ScriptedModel(reply), memory=memory) as chain:
        chain.invoke("What is 3 * 5?")
        assert "15" in str(memory.buffer)
        memory.clear()
        seen.clear()
        chain.invoke("And 2 * 8?")
    assert "3 * 5" not in seen[0]
    assert "15" not in seen[0]


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_a_classic_memory_holds_the_conversation_of_one_session() -> None:
    memory = ConversationBufferMemory(memory_key="history")
    model = ScriptedModel(lambda messages: "print(15)")
    with create_code_chain(model, memory=memory, interpret=False) as chain:
        for _ in range(2):
            chain.invoke({"query": "What is 3 * 5?", "session_id": "alice"})
        with pytest.raises(InputError, match="another session_id"):
            chain.invoke({"query": "What did I ask?", "session_id": "bob"})


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
def test_a_classic_memory_under_another_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="memory_key"):
        prompts_of({}, memory=ConversationBufferMemory(memory_key="past"))


@pytest.mark.filterwarnings("ignore::langchain_core._api.deprecation.LangChainDeprecationWarning")
@pytest.mark.parametrize("key", ["history", "chat_history"])
def test_runnable_with_message_history_is_shown_to_the_model(key: str) -> None:
    store = InMemoryChatMessageHistory(messages=list(HISTORIES["messages"]))
    prompts: list[str] = []

    def script(messages: list[BaseMessage]) -> str:
        prompts.append(messages[-1].text)
        return "print(15)" if asks_for_code(messages) else "It is 15."

    with create_code_chain(ScriptedModel(script), executor="none") as chain:
        with_history = RunnableWithMessageHistory(
            chain,
            lambda session_id: store,
            input_messages_key="query",
            output_messages_key="answer",
            history_messages_key=key,
        )
        with_history.invoke({"query": QUESTION}, {"configurable": {"session_id": "ann"}})
    assert "My name is Ann." in prompts[0]
