"""Each of the examples shows what it promises."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import LangSmithParams
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult

from code_chains.testing import ScriptedModel
from tests.conftest import ROOT, SUM_ANSWER, SUM_CODE, OpenAI

EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
ALONE = {
    "sandbox_alone": ("ok 3 kernel", "'/etc/shadow'", "2 s"),
    "session": ("[3.5, 4.0, 12.5]", "Sum: 20.0"),
}
"""Examples that ask no model, with what they show."""
TOLD, JUDGED, FAILED = "Output of the program:", "Does the output answer", "Write the whole corrected program"
"""Cues: an answer is to be told, an outcome judged, a program corrected."""

Replies = Mapping[str, str | Callable[[str], str]]
"""`{cue: reply}`: a model replies to the cue that was said last; a reply may be a function of the last message."""
SUM: Replies = {"from 1 to 5": SUM_CODE, TOLD: SUM_ANSWER}
UNSORTED = (
    "import random\nnumbers = random.sample(range(1, 100), 10)\nprint(numbers, 'Average:', sum(numbers) / 10)"
)
MEAN = "def mean(numbers):\n    return sum(numbers) / len(numbers)"
DF = "import pandas as pd\ndf = pd.read_csv('visits.csv')\nprint(df.isna().sum())"
VENTAS = "import pandas as pd\ndf = pd.read_csv('ventas.csv')\nprint('Filas:', len(df))"
PLOT = "import matplotlib.pyplot as plt\ndf.groupby('region')['importe'].sum().plot.bar()\nplt.show()"
DICE = "import numpy as np\nprint('Sevens:', (np.random.randint(1, 7, (100_000, 2)).sum(axis=1) == 7).sum())"
FIT = """\
def fit(xs, ys):
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)
    return slope, y - slope * x"""

EXTRACT = """\
import datetime, pathlib, re
formats = ("%d %B %Y", "%Y/%m/%d", "%d.%m.%Y")
def day(text):
    for form in formats:
        try:
            return datetime.datetime.strptime(text, form).date()
        except ValueError:
            pass
def amount(text):
    return text
invoices = []
for path in sorted(pathlib.Path().glob("*.txt")):
    text = path.read_text()
    number = re.search(r"(?:no:?|#) ?(\\S+)", text, re.IGNORECASE)[1]
    date = re.search(r"\\d+ [A-Z]\\w+ \\d{4}|\\d{4}/\\d+/\\d+|\\d+[.]\\d+[.]\\d{4}", text)[0]
    total = re.findall(r"\\d+(?:[.,]\\d+)*", text)[-1]
    invoices.append({"number": number, "date": day(date), "total": amount(total)})
invoices"""
AMOUNT = "return float(text.replace('.', '').replace(',', '.') if ',' in text else text)"

LOOK, SQL = "print(open('export.csv').read())", "query_database('SELECT id, name FROM customers')"
JOIN = f"""\
import pandas as pd
sales = pd.read_csv("export.csv", sep=";", skiprows=3, thousands=".", decimal=",", na_values="-")
sales["name"] = sales["customer"].map(dict({SQL}))
final_answer(sales.groupby("name")["amount"].sum().to_dict())"""

PLAYS: dict[str, tuple[Replies, tuple[str, ...]]] = {
    "agent_evaluation": (
        {
            "Make 10 random integers": UNSORTED,
            "total of the column": "import pandas as pd\nprint('Total:', pd.read_csv('sales.csv')['amount'].sum())",
            "Write a file": "open('sales.csv', 'w').write('amount\\n42\\n')\nprint(open('sales.csv').read())",
            FAILED: UNSORTED.replace("print(numbers,", "print(sorted(numbers),"),
            JUDGED: lambda case: "NO: It is not sorted." if UNSORTED in case else "YES: It does what is asked.",
            TOLD: "Done.",
        },
        ("attempt 1: failed: It is not sorted.", "attempt 2: plausible", "failed: FileNotFoundError", "Total: 42"),
    ),
    "analyst": (
        {"by name of the customer": LOOK, "Sales report;;": JOIN, TOLD: "Acme 1250.5, Bolt 89.9."},
        ("cell 2: The program ran", "query_database('SELECT", "{'Acme': 1250.5, 'Bolt': 89.9}", "unverified: Acme"),
    ),
    "cached": (SUM, ("The sum is 15. (cache miss) 2 model calls", "The sum is 15. (cache hit) 0 model calls")),
    "conversation": (
        {
            "named prices": "prices = [3, 5, 10]\nprint(sum(prices))",
            "average": "print(sum(prices) / len(prices))",
            TOLD: "There it is.",
        },
        ("-> 18", "-> 6.0", "Turns of ann: 2 - turns of bob: 0"),
    ),
    "conversation_es": (
        {
            "cuántas filas": VENTAS,
            "total por región?": "print(df.groupby('region')['importe'].sum())",
            "más alto": "print(df.loc[df['importe'].idxmax(), 'mes'])",
            "gráfico": PLOT,
            "media": "print('Media:', df['importe'].mean())",
            TOLD: "Hecho.",
        },
        ("¿Cuál es la media del importe?\n  Hecho.", "tutorial.ipynb", "ventas.csv"),
    ),
    "data_analysis": (
        {
            "Load visits.csv": DF,
            "Drop the rows": "df = df.dropna()\nprint('Rows left:', len(df))",
            "three times the median": "print(df[df['visitor'] > 3 * df['visitor'].median()])",
            FAILED: "print(df[df['visitors'] > 3 * df['visitors'].median()])",
            "Print a summary": "print(df['visitors'].agg(['mean', 'median', 'min', 'max']))",
        },
        ("visitors    2", "Rows left: 5", "fri     240.0", "median     22.0"),
    ),
    "errors": (
        {"sales.csv": "print(open('sales.csv').read())"},
        (
            "Found before it ran: line 2: undefined name 'total'; did you mean 'totl'?",
            "ZeroDivisionError: division by zero in line 2",
            "Asked wrongly:",
            "failed after 2 attempts",
            "No such file or directory: 'sales.csv'",
        ),
    ),
    "first_question": (SUM, (SUM_CODE, "-> Sum: 15 (unverified)", SUM_ANSWER)),
    "guard_rails": (
        {
            "17 * 23": "print(17 * 23)",
            "/etc/passwd": "print(open('/etc/passwd').read())",
            "Make up": "password = 'secret'\nprint(password)",
            TOLD: "It is 391.",
        },
        ("391\n  unverified", "`open` may not be used here", "Do not use 'password'", "failed, ended because: attempts"),
    ),
    "in_steps": (
        {
            "Task: Create grades.csv": '{"steps": ["Save the grades.", "Read grades.csv again."]}',
            "Save the grades": "open('grades.csv', 'w').write('grade\\n1\\n5\\n')\nprint('Saved 2 rows')",
            "Read grades.csv": "import pandas as pd\nprint('Mean:', pd.read_csv('grades.csv')['grade'].mean())",
        },
        ("2. Read grades.csv again. (1 attempts)", "Mean: 3.0", "ended because: answered"),
    ),
    "multilingual": (
        {
            "4": "print((4 + 8 + 15) / 3)",
            "Answer in English": "It is 9.0.",
            "Answer in Spanish": "Es 9.0.",
            "Answer in German": "Es sind 9.0.",
            "Answer in Japanese": "9.0です。",
        },
        ("[en]", "[es]", "  Es 9.0.", "[de]", "  Es sind 9.0.", "[ja]", "  9.0です。"),
    ),
    "own_chain": ({"6 times 7": "product = 6 * 7\nprint(product)"}, ("42  (2 lines)",)),
    "reflection": (
        {
            "mean(numbers)": f"<execute_python>\n{MEAN}\n</execute_python>",
            FAILED: f"<execute_python>\n{MEAN} if numbers else 0\n</execute_python>",
        },
        ("attempt 1 (initial)", "ZeroDivisionError", "attempt 2 (repair)", "verified; ended because: answered"),
    ),
    "regression": ({"fit(xs, ys)": FIT}, ("verified: ", "y = 1.94 x + 0.15")),
    "cited_answers": (
        {
            "6 kg?": "def freight(kg):\n    return 4 + 1.5 * kg\nprint('EUR:', freight(6))",
            "can be understood alone": "What does express() ask for a parcel of 6 kg?",
            "And express?": "print('EUR:', 2 * (4 + 1.5 * 6) + 3)",
            TOLD: lambda said: "It asks for 13 EUR." if "13.0" in said else "It asks for 29 EUR.",
        },
        ("It asks for 13 EUR.", "It asks for 29 EUR.", "shop/freight.py:18", "def express(kg):"),
    ),
    "retrieval": (
        {"circles": "def area(radius):\n    return 3.14159 * radius**2", TOLD: "There it is."},
        ("verified ['circle.py']", "dates/days_between.py"),
    ),
    "safety_chain": (
        {"squares": "print([n * n for n in range(1, 6)])", "tick": "while True:\n    print('tick')"},
        ("ok: [1, 4, 9, 16, 25]", "refused: Refused: line 1: Use a loop that ends"),
    ),
    "secure": (
        {"divided by 3": "print(100 // 15)", "os.system": "import os\nos.system('ps aux')", TOLD: "There are 6."},
        ("Approved: 1 lines", "ok, unverified: There are 6.", "refused, failed", "`os.system` starts or stops processes"),
    ),
    "simulation": (
        {"second die": DICE},
        ("Sevens: 16", "The same again: True"),
    ),
    "switch_sandbox": (
        {"squares": "print(sum(n * n for n in range(1, 11)))"},
        ("SandboxExecutor: 385 (kernel, by ", "MontyExecutor: 385 (interpreter, by "),
    ),
    "thinking": (
        {"divided by 7": "print([n for n in range(1, 31) if n % 7 == 0])", TOLD: "They are 7, 14, 21 and 28."},
        ("[generate]\nprint([n", "[execute]\nThe program ran to its end. [7, 14, 21, 28]", "[interpret]\nThey are 7"),
    ),
    "typed_extraction": (
        {"Which invoices": EXTRACT, FAILED: EXTRACT.replace("return text", AMOUNT)},
        ("[0].total: expected a number, got '1.250,00'", "attempt 2: ", "09 Mar 2024  B/204     89.90", "Total: 1347.40"),
    ),
    "verified": (
        {"initials(name)": "def initials(name):\n    return name[0]",
         FAILED: "def initials(name):\n    return ''.join(word[0] for word in name.split()).upper()"},
        ("verified by tests", "attempt 1 (initial): ", "gave 'a', expected 'AL'", "attempt 2 (repair): "),
    ),
}  # fmt: skip


class Priced(ScriptedModel):
    """A model whose price is known."""

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return {
            **super()._get_ls_params(stop, **kwargs),
            "ls_provider": "openai",
            "ls_model_name": "gpt-5-mini",
        }


def plays(replies: Replies) -> ScriptedModel:
    def script(messages: list[BaseMessage]) -> str:
        said = "\n".join(message.text for message in messages)
        reply = replies[max(replies, key=said.rfind)]
        return reply if isinstance(reply, str) else reply(messages[-1].text)

    return Priced(script=script)


def main_of(name: str) -> Callable[..., None]:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES[name])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[..., None] = module.main
    return main


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_each_example_is_run_by_a_test() -> None:
    # The last by test_apps.py.
    assert sorted([*PLAYS, *ALONE, "agent_tools", "own_server", "web_service"]) == sorted(EXAMPLES)


def test_the_table_names_each_example() -> None:
    table = (ROOT / "examples" / "README.md").read_text()
    assert [name for name in EXAMPLES if f"]({name}.py) |" not in table] == []


NEED_SESSIONS_OR_PANDAS = {"agent_evaluation", "conversation", "conversation_es", "data_analysis", "in_steps"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.kernel_sandbox] if name in NEED_SESSIONS_OR_PANDAS else [])
        for name in PLAYS
    ],
)
def test_it_shows_what_it_promises(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    replies, promised = PLAYS[name]
    main_of(name)(plays(replies))
    shown = capsys.readouterr().out
    assert [part for part in promised if part not in shown] == [], shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ALONE)
def test_it_shows_what_it_promises_without_a_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main_of(name)()
    shown = capsys.readouterr().out
    assert [part for part in ALONE[name] if part not in shown] == [], shown


def test_own_server_asks_the_server_that_it_is_told(
    openai_server: OpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    main_of("own_server")("llama3.2", openai_server.base_url)
    assert SUM_ANSWER in capsys.readouterr().out
    assert {request["model"] for request in openai_server.requests} == {"llama3.2"}


@pytest.mark.soak
@pytest.mark.local_model
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["first_question", "retrieval"])
def test_it_runs_with_the_embedded_model(name: str) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES[name], "--model", "local"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout != "") == (0, True), done.stderr


class Calling(ScriptedModel):
    """A model that calls a tool once, and then answers."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        message = AIMessage("It is 4875 dollars.")
        if messages[-1].type == "human":
            call = ToolCall(name="run_python", args={"code": TOTAL_OF_ORDERS}, id="1", type="tool_call")
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


TOTAL_OF_ORDERS = """\
total = 0
for customer in list_customers():
    for order in open_orders(customer):
        total += order["total"] * exchange_rate(order["currency"])
round(total)"""


def test_the_program_of_an_agent_calls_its_tools_in_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    main_of("agent_tools")(Calling(script=lambda messages: ""))
    printed = capsys.readouterr().out
    assert "The program called 61 tools: 4875" in printed
    assert "2 model calls: It is 4875 dollars." in printed
