"""Answers that are made up say so, and what is missing is asked for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from code_chains import Agreement, Judge, SandboxExecutor, create_code_chain
from code_chains.testing import ScriptedModel

WEATHER = b"day,temp,rain\n2024-01-01,3.5,0.2\n2024-01-02,4.5,1.2\n2024-01-03,2.5,0.0\n"


def replies(*texts: str) -> ScriptedModel:
    """A model with these replies, the last one again and again; those without a fence are programs."""
    left = itertools.chain(texts, itertools.repeat(texts[-1]))
    return ScriptedModel(
        lambda messages: text if "Not" in (text := next(left)) else f"```python\n{text}\n```"
    )


def ask(
    box: SandboxExecutor, query: str, *texts: str, state: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    with create_code_chain(replies(*texts), executor=box, **{"interpret": False, **options}) as chain:
        return dict(chain.invoke({"query": query, **(state or {})}))


def test_made_up_data_is_asked_for_once_more_with_the_reason(sandbox: SandboxExecutor) -> None:
    seen = []

    def reply(messages: Any) -> str:
        seen.append(str(messages[-1].content))
        return "```python\nprint(sum([100, 217, 300]))\n```"

    with create_code_chain(ScriptedModel(reply), executor=sandbox, interpret=False) as chain:
        result = chain.invoke({"query": "What is the total amount?"})
    assert len(seen) == 2
    assert "217" in seen[1]
    assert "`Not given:`" in seen[1]
    assert (result["verdict"].status, result["verdict"].by) == ("unverified", "provenance")
    assert result["verdict"].reason.startswith("The program made up its data: ")
    assert result["output"] == "617"


def test_a_second_program_that_computes_is_the_answer(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "What is 17 * 23?", "print(391)", "print(17 * 23)")
    assert (result["output"], result["verdict"].by, len(result["attempts"])) == ("391", "none", 2)


def test_an_assumption_is_said_and_not_asked_again(sandbox: SandboxExecutor) -> None:
    result = ask(sandbox, "How much is 250 euros in dollars?", "rate = 1.08\nprint(250 * rate)")
    assert len(result["attempts"]) == 1
    assert result["verdict"].status == "unverified"
    assert "assumes 1.08 (line 1)" in result["verdict"].reason


def test_agreement_and_judges_do_not_make_an_invention_plausible(sandbox: SandboxExecutor) -> None:
    judge = ScriptedModel(lambda messages: "YES: It is right.")
    for verify in ([Agreement()], [Judge(judge)]):
        query = "How much is 250 euros in dollars?"
        result = ask(sandbox, query, "rate = 1.08\nprint(250 * rate)", verify=verify)
        assert (result["verdict"].status, result["verdict"].by) == ("unverified", "provenance")


def test_programs_that_assume_something_have_no_vote(sandbox: SandboxExecutor) -> None:
    query = "How much is 250 euros in dollars, at 1.1 dollars each?"
    programs = ["print(250 * 1.1)", "rate = 1.1 * 1.02\nprint(250 * 1.1 if rate else 0)", "print(250 + 25)"]
    result = ask(sandbox, query, *programs, verify=[Agreement()])
    assert result["verdict"].status == "unverified"


def test_a_file_that_is_not_used_is_said(sandbox: SandboxExecutor) -> None:
    code = "temp = [10, 21, 17]\nprint(sum(temp) / len(temp))"
    result = ask(sandbox, "What is the mean of temp?", code, state={"files": {"weather.csv": WEATHER}})
    assert result["verdict"].by == "provenance"
    assert result["verdict"].reason.startswith("weather.csv was given but does not reach the output;")


def test_another_column_than_the_one_asked_for_is_said(sandbox: SandboxExecutor) -> None:
    code = "import csv\nprint(sum(float(row['rain']) for row in csv.DictReader(open('weather.csv'))) / 3)"
    files = {"files": {"weather.csv": WEATHER}}
    result = ask(sandbox, "What is the mean humidity?", code, state=files)
    assert "Nothing in the data is called humidity" in result["verdict"].reason


@pytest.mark.parametrize(
    "reply",
    [
        "```python\nprint('Not given: the price of diesel')\n```",
        "```python\n# Not given: the price of diesel\n```",
        "I cannot know that.\nNot given: the price of diesel",
    ],
)
def test_what_is_missing_is_asked_for_after_one_attempt(sandbox: SandboxExecutor, reply: str) -> None:
    result = ask(sandbox, "What does the diesel for 420 km cost?", reply, interpret=True)
    assert result["verdict"].needs == ("the price of diesel",)
    assert (result["verdict"].status, len(result["attempts"])) == ("failed", 1)
    assert result["answer"] == "To answer this I still need: the price of diesel"
    assert result["stop_reason"] == "answered"


def test_any_error_may_say_what_is_missing(sandbox: SandboxExecutor) -> None:
    result = ask(
        sandbox, "What do 50 litres of diesel cost?", "assert False, 'Not given: the price'\nprint(1)"
    )
    assert (result["verdict"].needs, len(result["attempts"])) == (("the price",), 1)


@pytest.mark.parametrize(
    "code",
    [
        "# Not given: the price of diesel\nprice = len('')\nprint(420 * price)",
        "price = len('')  # Not given: the price of diesel\nprint(420 * price)",
    ],
)
def test_what_a_program_goes_on_without_is_said(sandbox: SandboxExecutor, code: str) -> None:
    verdict = ask(sandbox, "What does the diesel for 420 km cost?", f"```python\n{code}\n```")["verdict"]
    assert (verdict.status, verdict.by) == ("unverified", "provenance")
    assert verdict.reason == "The program assumes the price of diesel, which was not given."


def test_without_a_network_a_fact_of_the_world_takes_two_attempts_at_most(sandbox: SandboxExecutor) -> None:
    code = "import urllib.request\nprint(urllib.request.urlopen('http://example.org/{}').read())"
    seen: list[str] = []

    def reply(messages: Any) -> str:
        seen.append(str(messages[-1].content))
        return f"```python\n{code.format(len(seen))}\n```"

    with create_code_chain(ScriptedModel(reply), executor=sandbox, interpret=False) as chain:
        result = chain.invoke({"query": "What is the price of a bitcoin now?"})
    assert (len(result["attempts"]), result["verdict"].status) == (2, "failed")
    assert "Programs cannot reach the network." in seen[1]
    assert "`Not given:`" in seen[1]


def test_the_question_back_is_in_the_language_of_the_question(sandbox: SandboxExecutor) -> None:
    query = "Was kostet der Diesel für die 420 km nach Hamburg?"
    result = ask(sandbox, query, "# Not given: Dieselpreis", interpret=True)
    assert result["answer"] == "Um das zu beantworten, brauche ich noch: Dieselpreis"


def test_the_next_turn_goes_on_from_what_was_missing(sandbox: SandboxExecutor) -> None:
    def reply(messages: Any) -> str:
        seen.append("\n".join(str(message.content) for message in messages))
        return (
            "# Not given: the price of diesel"
            if len(seen) == 1
            else "```python\nprint(420 * 6 / 100 * 1.7)\n```"
        )

    seen: list[str] = []
    with create_code_chain(ScriptedModel(reply), executor=sandbox, interpret=False, memory=True) as chain:
        chain.invoke({"query": "What does diesel for 420 km cost at 6 l per 100 km?", "session_id": "a"})
        result = chain.invoke({"query": "It costs 1.70.", "session_id": "a"})
    assert "420 km" in seen[1]
    assert "the price of diesel" in seen[1]
    assert result["verdict"].ok


def test_the_columns_that_were_read_stand_beside_what_nothing_checked(sandbox: SandboxExecutor) -> None:
    program = "import pandas as pd\ndf = pd.read_csv('w.csv')\nprint(df['temp'].mean())"
    result = ask(sandbox, "What is the mean temp?", program, state={"files": {"w.csv": WEATHER}})
    assert result["verdict"].reason == "The program ran; nothing checked its output. It read: `temp`."


def test_rows_that_nobody_named_are_no_answer_without_a_word(sandbox: SandboxExecutor) -> None:
    program = (
        "import pandas as pd\ndf = pd.read_csv('a.csv')\nprint(df[df['kind'] == 'owl']['name'].tolist())"
    )
    files = {"a.csv": b"name,kind\nIda,owl\nBo,cat\n"}
    result = ask(sandbox, "Who is ill?", program, state={"files": files})
    assert (result["verdict"].status, result["verdict"].by) == ("unverified", "provenance")
    assert "selects `kind` = `owl`" in result["verdict"].reason


def test_rows_of_a_variable_that_nobody_named_are_told_as_those_of_a_file(sandbox: SandboxExecutor) -> None:
    rows = [{"child": "Ann", "group": "Owls"}, {"child": "Bo", "group": "Cats"}]
    code = "print([row['child'] for row in rows if row['group'] == 'Owls'])"
    told = ask(sandbox, "Which children have a nut allergy?", code, state={"variables": {"rows": rows}})
    assert "selects `group` = `Owls`" in told["verdict"].reason
    code = "print([row['child'] for row in rows if row['group'] == 'Owls'])"
    state = {"variables": {"rows": rows, "wanted": "Owls"}}
    assert ask(sandbox, "Which children are in it?", code, state=state)["verdict"].by == "none"


def test_a_turn_is_told_as_a_question_alone_unless_it_may_use_an_earlier_one(
    sandbox: SandboxExecutor,
) -> None:
    programs = iter(
        ["print(sum([100, 217, 340]))"] * 2  # Told, and insisted on.
        + ["amounts = [3, 4]\nprint(sum(amounts) * 6)", "print(sum(amounts))"]
        + ["print(sum([519, 623, 857]))"] * 2
    )
    model = ScriptedModel(lambda messages: f"```python\n{next(programs)}\n```")
    with create_code_chain(model, executor=sandbox, interpret=False) as chain:
        said = [
            chain.invoke({"query": query, "session_id": "a"})["verdict"].by
            for query in (
                "What is the total amount?",
                "What is 6 times 3 + 4?",
                "And their sum?",
                "What did we sell?",
            )
        ]
    assert said == ["provenance", "none", "none", "provenance"]


def test_what_a_doubted_turn_left_is_there_for_the_next(sandbox: SandboxExecutor) -> None:
    model = ScriptedModel(lambda messages: "```python\namounts = [100, 217, 340]\nprint(sum(amounts))\n```")
    with create_code_chain(model, executor=sandbox, interpret=False) as chain:
        result = chain.invoke({"query": "What is the total amount?", "session_id": "a"})
        assert (result["verdict"].by, len(result["attempts"])) == ("provenance", 2)
        assert chain.execute("print(len(amounts))", "a")["output"] == "3"


def test_a_turn_that_goes_on_with_a_name_of_an_earlier_one_is_not_alone(sandbox: SandboxExecutor) -> None:
    programs = iter(["total = 6 * 7\nprint(total)", "total = total * 1.08\nprint(total)"])
    model = ScriptedModel(lambda messages: f"```python\n{next(programs)}\n```")
    with create_code_chain(model, executor=sandbox, interpret=False) as chain:
        chain.invoke({"query": "What is 6 * 7?", "session_id": "a"})
        result = chain.invoke({"query": "Convert it to dollars as before", "session_id": "a"})
    assert (result["output"], result["verdict"].by, len(result["attempts"])) == ("45.36", "none", 1)
