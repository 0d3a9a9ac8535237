"""An expression that is nested nearly as deeply as Python allows, such as a long sum, ends no chain."""

from __future__ import annotations

import pytest

from code_chains import Repair, create_code_chain
from code_chains.executors import SandboxExecutor
from code_chains.testing import ScriptedModel

READ = "import pandas as pd\ndf = pd.read_csv('sales.csv')\nx = float(df['sales'].sum())\n"
DEEP = "+".join(["x"] * 900)
PROGRAMS = {
    "shown": f"{READ}print('2023', {DEEP})",
    "compared": f"{READ}print(({DEEP}) > 50)",
    "compared with a name": f"LIMIT = 40\n{READ}print(({DEEP}) > LIMIT)",
    "multiplied": f"{READ}print(({DEEP}) * 0.15)",
    "looked up": f"{READ}print({{}}.get('x', ({DEEP},)[0]))",
    "beside a wrong column": f"{READ}print(df['Sales'], {DEEP})",
    "a set": f"{READ}print({{1, 2}}{'.union({3})' * 500})",
    "in a branch": f"{READ}if x:\n    {DEEP}",
    "without what it reads": f"{READ.partition('df =')[2]}print({DEEP})",
}


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_deep_expression_ends_no_chain(sandbox: SandboxExecutor, program: str) -> None:
    model = ScriptedModel(lambda messages: f"```python\n{program}\n```")
    with create_code_chain(model, executor=sandbox, interpret=False, solve=Repair(2)) as chain:
        result = chain.invoke(
            {"query": "What were sales in 2023?", "files": {"sales.csv": b"year,sales\n2018,5\n2022,6\n"}}
        )
    assert result["verdict"] is not None
