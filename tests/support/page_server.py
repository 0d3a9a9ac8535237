"""The page with a scripted model, run as a process by `test_page.py`."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryByteStore

from code_chains import Repair, SandboxExecutor, create_code_chain
from code_chains.apps.page import PageApprover, approve, hosting, serve
from code_chains.apps.page.address import Address
from code_chains.apps.page.history import open_memory
from code_chains.apps.page.lesson_server import serve_lessons
from code_chains.apps.page.lessons import LessonShelf
from code_chains.chains import ValidateChain
from code_chains.errors import WeightsError
from code_chains.executors import Limits
from code_chains.testing import ScriptedModel, asks_for_code

PAUSE = "[pause]"
"""In a reply: the model stops writing here until the file of `--pauses=FILE` counts this pause."""
_CHART = Path(__file__).with_name("hostile_chart.html").read_text()
PROGRAMS = {
    "hostile chart": (
        f"open('chart.html', 'w').write({_CHART!r}.replace('ADDRESS', open('address.txt').read()))",
        "There it is.",
    ),
    "remote chart": (
        "open('chart.html', 'w').write('<script src=\"https://x.example/x.js\"></script>')",
        "There it is.",
    ),
    "six times seven": ("x = 6 * 7\nprint('Product:', x)", "Six times seven is **42**."),
    "and one more": ("print(x + 1)", "That makes 43."),
    "slow": ("import time\ntime.sleep(1.5)\nprint('slow', 1)", "It took its time."),
    "endless": ("import time\nwhile True:\n    time.sleep(0.1)", "Never."),
    "fails": ("n = 0\n1 / n", "Nothing."),
    "total": (
        "import csv\nrows = list(csv.DictReader(open('sales.csv')))\nprint('Total:', sum(int(r['amount']) for r in rows))",
        "The total is 42.",
    ),
    "report": ("open('report.csv', 'w').write('a,b\\n')\nprint('written')", "It is in report.csv."),
    "plot": ("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.gca()", "There it is."),
    "table": ("import pandas as pd\npd.DataFrame({'n': [1, 2]})", "There it is."),
    "evil": (
        "class Evil:\n    def _repr_html_(self):\n"
        "        return '<b>drawn</b><script>top.document.title = \"taken\"</script>'\nEvil()",
        "<img src=x onerror=\"document.title = 'taken'\"> shown <script>document.title = 'taken'</script>",
    ),
    "sly": ("print('fetched')", "<img src=x onerror=\"document.title = 'taken'\"> **shown**"),
    "lengthy": (
        "".join(f"total_{n} = {n} * {n}  # The square of {n}\n" for n in range(60))
        + f"# {PAUSE} \n"
        + "".join(f"print('Square', {n}, total_{n})\n" for n in range(60)),
        "| n | square |\n|---|---|\n"
        + "".join(f"| {n} | {n * n} |\n" for n in range(12))
        + f"\n{PAUSE} These are the squares, each {'of a number ' * 40}to the end.",
    ),
    "chatty": (
        "import time\nfor n in range(80):\n    print('Line', n, flush=True)\nwhile True:\n    time.sleep(0.1)",
        "Never.",
    ),
    "markup": (
        "print('**not bold**')\nprint('# no heading')\nprint('| a | b |\\n|---|---|\\n| 7919 | 1 |')",
        "Something else.",
    ),
    "matrix": ("import pandas as pd\npd.DataFrame({'name': ['ä, b', '=1+1'], 'n': [1, 2]})", "There it is."),
    "große Summe": ("print('Summe:', 42)", "Die Summe ist 42."),
    "listed": ("import os\nprint(sorted(os.listdir('.')))", "These are the files."),
    "progress": (
        "for n in range(3):\n    print(f'\\r{n} of 2', end='')\nprint('\\n\\x1b[31mred\\x1b[0m')\nprint('a ' * 300)",
        "Done.",
    ),
    "Arabic": ("open('نتيجة 😀.txt', 'w').write('x')\nprint('written')", "There it is."),
    "many lines": ("for n in range(100_000): print(n)", "Counted."),
    "wide": ("print('x' * 3000)\n" + "# " + "y" * 400, f"A word: {'z' * 500}"),
}


SUM = re.compile(r"\d+ \+ \d+")


def _sum(text: str) -> int:
    return sum(map(int, text.split(" + ")))


def script(messages: list[BaseMessage]) -> str:
    """Reply with the program that the question names."""
    question = str(messages[-1].text)
    if "can be understood alone" in str(messages[0].text):
        return question.rpartition("The last message:\n")[2]
    if "refused by the provider" in question:
        raise ConnectionError("401 from http://10.0.0.1: key sk-proj-1234567890abcdef")
    if "without weights" in question:
        raise WeightsError("The weights of 'local' cannot be fetched: there is no network.")
    if sums := SUM.findall(question):
        return f"```python\nprint({sums[-1]})\n```" if asks_for_code(messages) else f"It is {_sum(sums[-1])}."
    name = max(PROGRAMS, key=question.rfind)  # The history names others.
    program, answer = PROGRAMS[name]
    return f"Here it is:\n```python\n{program}\n```" if asks_for_code(messages) else answer


class PausingModel(ScriptedModel):
    """A model that stops in the middle of its reply until a test lets it go on.

    Attributes:
        gate: The file in which the test counts the pauses that are over.
        pauses: How many there were.
    """

    gate: Path | None = None
    pauses: int = 0

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        text = ""
        for chunk in super()._stream(*args, **kwargs):
            yield chunk
            text += str(chunk.text)
            if self.gate is not None and text.count(PAUSE):
                text = ""
                self.pauses += 1
                end = time.monotonic() + 60  # A test that failed lets nobody wait for ever.
                while int(self.gate.read_text() or 0) < self.pauses and time.monotonic() < end:
                    time.sleep(0.02)


def second_script(messages: list[BaseMessage]) -> str:
    """Reply like the first model, and say so."""
    reply = script(messages)
    return reply if asks_for_code(messages) else f"The second model says: {reply}"


def option(name: str) -> str:
    """Return the value of `--name=value`; empty without one."""
    values = [value.partition("=")[2] for value in sys.argv if value.startswith(f"--{name}=")]
    return values[0] if values else ""


def related(query: str) -> list[Document]:
    """Return an example for questions about numbers."""
    return (
        [Document("print(1)", metadata={"source": "sums.py", "about": "Adds numbers"})]
        if "six" in query
        else []
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    hosting.RECONNECT_TIMEOUT_S = float(option("reconnect") or hosting.RECONNECT_TIMEOUT_S)
    sandbox = SandboxExecutor(limits=Limits(seconds=20, memory="1G"))
    model = PausingModel(script=script, gate=Path(gate) if (gate := option("pauses")) else None)
    models = {"first": model, "second": ScriptedModel(second_script)}
    approver = approve if "--approve" in sys.argv else None
    if "--consent" in sys.argv:
        approver = PageApprover(("api.example.org:443",), is_once=True)
    folder = Path(store) if (store := option("store")) else None
    with sandbox, open_memory(folder) as memory:
        chains = {
            name: create_code_chain(
                model,
                executor=sandbox,
                snippets=RunnableLambda(related),
                memory=memory,
                solve=Repair(1),
                checks=ValidateChain(approve=approver),
            )
            for name, model in models.items()
        }
        served = chains if "--models" in sys.argv else chains["first"]
        port = int(option("port") or 0)
        hosts = [host] if (host := option("allowed-host")) else []
        options: dict[str, Any] = {
            "address": Address(port=port, token="--token" in sys.argv, allowed_hosts=hosts),
            "concurrency": int(option("concurrency") or 4),
            "open_browser": False,
            "folder": folder,
        }
        if path := option("lessons"):
            serve_lessons(LessonShelf(Path(path), InMemoryByteStore(), model), **options)
        else:
            serve(served, **options)
