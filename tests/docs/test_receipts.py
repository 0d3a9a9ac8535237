"""What the documentation asks can be computed again by anybody: ten receipts of its questions are verified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from langchain_core.messages import BaseMessage

from code_chains import CodeChain, SandboxExecutor, create_code_chain
from code_chains.apps.terminal.cli import cli
from code_chains.receipts import Receipt, save_receipt
from code_chains.testing import ScriptedModel
from tests.conftest import ROOT, SUM_CODE
from tests.docs.test_docs import PAGES, REPLIES

pytestmark = pytest.mark.slow
FILES = {
    "sales.csv": "region,amount\nnorth,10\nsouth,32\n",
    "stock.txt": "17;open\n18;closed\n19; Open\n",
}
MOST = (
    "import pandas as pd\nsales = pd.read_csv('sales.csv')\nprint(sales.loc[sales.amount.idxmax(), 'region'])"
)
PROGRAMS = {
    "What is the sum of the numbers from 1 to 5?": SUM_CODE,
    "What is the sum of 1 to 5?": "sum(range(1, 6))",
    "What is 6 times 7?": "print(6 * 7)",
    "What is the total amount in sales.csv?": REPLIES["total amount"],
    "What is the total amount?": REPLIES["total amount"],
    "What are the sales by region?": REPLIES["sales by region"],
    "Which region sold most?": MOST,
    "Which region sold most? Draw a bar chart.": f"{MOST}\nsales.plot.bar(x='region')",
    "What is the harmonic_mean of 40 and 60?": REPLIES["harmonic_mean of"],
    "How many orders are still open?": "print(sum('open' in line.lower() for line in open('stock.txt')))",
}


@pytest.fixture(scope="module")
def chain() -> Iterator[CodeChain]:
    def write(messages: list[BaseMessage]) -> str:
        asked = messages[-1].text.rpartition("\n\n")[2]
        return f"```python\n{PROGRAMS[asked]}\n```"

    with (
        SandboxExecutor() as sandbox,
        create_code_chain(ScriptedModel(write), executor=sandbox, interpret=False) as asking,
    ):
        yield asking


def receipt_of(chain: CodeChain, question: str, folder: Path) -> dict[str, Any]:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    files = [folder / name for name in FILES if name in PROGRAMS[question]]
    result = chain.invoke({"query": question, "files": files})
    assert result["verdict"].ok
    return dict(result["receipt"])


def verify(receipt: dict[str, Any], folder: Path) -> tuple[int, str]:
    save_receipt(receipt, folder / "receipt.json")
    told = CliRunner().invoke(cli, ["verify", str(folder / "receipt.json")])
    return told.exit_code, told.output.splitlines()[-1]


@pytest.mark.parametrize("question", PROGRAMS)
def test_a_receipt_of_a_documented_question_is_verified(
    chain: CodeChain, question: str, tmp_path: Path
) -> None:
    assert any(question in page.read_text() for page in (ROOT / "README.md", *PAGES))
    receipt = receipt_of(chain, question, tmp_path)
    assert verify(receipt, tmp_path) == (0, "same: The program shows the same again.")


def test_an_edited_receipt_is_refused_and_another_program_is_different(
    chain: CodeChain, tmp_path: Path
) -> None:
    receipt = receipt_of(chain, "What is 6 times 7?", tmp_path)
    edited = {**receipt, "program": "print(6 * 8)\n"}
    assert verify(edited, tmp_path)[0] != 0
    edited["sha256"] = Receipt.from_dict(edited).checksum()
    assert verify(edited, tmp_path) == (1, "different: The program shows now: 48")
