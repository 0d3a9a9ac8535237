"""A question is that of its conversation: for what retrieves, plans or translates, and among the messages of others."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.chains import create_history_aware_retriever
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from code_chains import Language, Plan, SandboxExecutor, create_code_chain
from code_chains.errors import InputError
from code_chains.inputs import as_state
from code_chains.testing import ScriptedModel

STANDALONE = "What are the freight costs of an express parcel?"
HISTORY = [HumanMessage("What are the freight costs of a parcel?"), AIMessage("5 EUR.")]


class Model:
    """Counts what it is asked; each question of a conversation means express parcels."""

    def __init__(self, *, condensed: str = STANDALONE) -> None:
        self.condensed = condensed
        self.asked: list[str] = []
        self.seen: list[str] = []

    def __call__(self, messages: list[BaseMessage]) -> str:
        text = "\n".join(str(message.text) for message in messages)
        if "can be understood alone" in text:
            self.asked.append("condense")
            return self.condensed
        self.seen.append(str(messages[-1].text))
        if "Output of the program" in self.seen[-1]:
            self.asked.append("phrase")
            return "It is 7."
        self.asked.append("program")
        return "print(3 + 4)"


def retriever(asked: list[Any], *, fails: bool = False) -> Any:
    def retrieve(query: Any) -> list[Document]:
        asked.append(query)
        if fails:
            raise ConnectionError("The index is down.")
        return [
            Document(
                "Express costs 7 EUR.", metadata={"source": "prices.md", "page": 3, "relevance_score": 0.5}
            )
        ]

    return RunnableLambda(retrieve)


def ask(sandbox: SandboxExecutor, model: Model, inputs: dict[str, Any], **options: Any) -> dict[str, Any]:
    with create_code_chain(ScriptedModel(model), executor=sandbox, **options) as chain:
        return chain.invoke(inputs)


def test_a_retriever_is_asked_for_what_a_question_means_in_its_conversation(sandbox: SandboxExecutor) -> None:
    asked: list[Any] = []
    result = ask(sandbox, Model(), {"query": "And express?", "history": HISTORY}, snippets=retriever(asked))
    assert (asked, result["query"]) == ([STANDALONE], "And express?")
    (source,) = result["sources"]
    assert (source.name, source.text, source.score) == ("prices.md", "Express costs 7 EUR.", 0.5)
    assert source.metadata["page"] == 3


@pytest.mark.parametrize(
    "inputs",
    [
        {"query": "And express?"},
        {
            "query": "What does a parcel of 4 kg cost that goes to Norway, and what one to Chile? " * 2,
            "history": HISTORY,
        },
    ],
    ids=["no history", "a long question"],
)
def test_a_question_that_refers_to_nothing_costs_no_call(
    sandbox: SandboxExecutor, inputs: dict[str, Any]
) -> None:
    asked, model = list[Any](), Model()
    ask(sandbox, model, inputs, snippets=retriever(asked))
    assert "condense" not in model.asked
    assert asked == [inputs["query"]]


def test_without_anything_to_search_for_nothing_is_condensed(sandbox: SandboxExecutor) -> None:
    model = Model()
    ask(sandbox, model, {"query": "And express?", "history": HISTORY})
    assert model.asked == ["program", "phrase"]


@pytest.mark.parametrize("said", ["", "x" * 10_000])
def test_what_is_no_question_is_left_aside(sandbox: SandboxExecutor, said: str) -> None:
    asked: list[Any] = []
    ask(
        sandbox,
        Model(condensed=said),
        {"query": "And express?", "history": HISTORY},
        snippets=retriever(asked),
    )
    assert asked == ["And express?"]


@pytest.mark.parametrize(
    "options", [{"solve": Plan()}, {"language": Language(translate=True)}], ids=["plan", "translate"]
)
def test_plans_and_translations_are_of_what_is_meant(
    sandbox: SandboxExecutor, options: dict[str, Any]
) -> None:
    model = Model()
    ask(
        sandbox,
        model,
        {"query": "Y express?", "language": "es", "history": HISTORY},
        interpret=False,
        **options,
    )
    assert model.asked[0] == "condense"
    assert STANDALONE in model.seen[0]


def test_a_retriever_that_reads_the_history_condenses_by_itself(sandbox: SandboxExecutor) -> None:
    asked, model = list[Any](), Model()
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("user", "{input}")])
    own = create_history_aware_retriever(ScriptedModel(lambda messages: STANDALONE), retriever(asked), prompt)
    ask(sandbox, model, {"query": "And express?", "history": HISTORY}, snippets=own)
    ask(sandbox, model, {"query": "And express?"}, snippets=own)
    assert asked == [STANDALONE, "And express?"]
    assert "condense" not in model.asked


def test_a_retriever_that_is_down_costs_a_note(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, Model(), {"query": "And express?"}, snippets=retriever([], fails=True))
    assert (result["output"], result["sources"]) == ("7", ())
    assert result["notes"] == ["Nothing was retrieved, since the retriever failed with ConnectionError."]


# -- messages of others --------------------------------------------------------------------------------------------------

QUESTION = HumanMessage("Is 42 even?")
OF_BO = HumanMessage("Hi", name="bo")
QUESTION_OF_ANN = HumanMessage("Is 7 odd?", name="ann")
REPORT = HumanMessage("found: 42 is 2 * 21", name="researcher")
HANDOVER = AIMessage("", tool_calls=[{"name": "to_coder", "args": {}, "id": "1"}])


@pytest.mark.parametrize(
    ("messages", "query", "earlier", "said"),
    [
        ([QUESTION], "Is 42 even?", 0, ""),
        ([QUESTION, REPORT], "Is 42 even?", 0, "found: 42 is 2 * 21"),
        ([QUESTION_OF_ANN, REPORT], "Is 7 odd?", 0, "found: 42 is 2 * 21"),
        ([OF_BO, AIMessage("Hello"), QUESTION_OF_ANN], "Is 7 odd?", 2, ""),
        ([OF_BO, AIMessage("Hello"), QUESTION_OF_ANN, REPORT], "Is 7 odd?", 2, "found: 42"),
        ([OF_BO, AIMessage("Hello"), REPORT, AIMessage("So?"), QUESTION_OF_ANN], "Is 7 odd?", 4, ""),
        ([QUESTION, AIMessage("Let me ask."), REPORT], "Is 42 even?", 0, "found: 42"),
        ([QUESTION, AIMessage("It is.", name="critic")], "Is 42 even?", 0, "It is."),
        (
            [QUESTION, HANDOVER, ToolMessage("Over to you.", tool_call_id="1")],
            "Is 42 even?",
            0,
            "Over to you.",
        ),
        ([*HISTORY, QUESTION, REPORT], "Is 42 even?", 2, "found"),
        ([SystemMessage("Be short."), QUESTION], "Is 42 even?", 1, ""),
        ([HumanMessage("Hi", name="ana"), HumanMessage("Is 42 even?", name="ana")], "Is 42 even?", 1, ""),
    ],
)
def test_the_question_is_that_of_the_user(
    messages: list[BaseMessage], query: str, earlier: int, said: str
) -> None:
    state = as_state({"messages": messages}, "query", "history")
    assert (state["query"], len(state.get("history") or ())) == (query, earlier)
    assert said in state.get("context", "")


def test_a_conversation_that_ends_with_a_reply_asks_nothing() -> None:
    with pytest.raises(InputError, match="Let the messages end with the question"):
        as_state({"messages": [QUESTION, AIMessage("Yes.")]}, "query", "history")


def test_what_others_said_is_shown_to_the_model_and_may_be_used(sandbox: SandboxExecutor) -> None:
    seen: list[str] = []

    def reply(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].text))
        return "print(2 * 21 % 2 == 0)"

    chain = create_code_chain(ScriptedModel(reply), executor=sandbox, interpret=False)
    result = chain.invoke({"messages": [QUESTION, REPORT]})
    assert "found: 42 is 2 * 21" in seen[0]
    assert result["query"] == "Is 42 even?"
