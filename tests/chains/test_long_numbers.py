"""A number of more than 4300 digits, which Python refuses to write, ends no chain, wherever a model puts it."""

from __future__ import annotations

import pytest

from code_chains import Repair, create_code_chain
from code_chains.executors import SandboxExecutor
from code_chains.testing import ScriptedModel

DIGITS, HEX = "9" * 5000, "0x" + "f" * 5000
REPLIES = [
    *(f"print({DIGITS})", f"print({HEX})", HEX, DIGITS, f"{DIGITS} is it", f"x = {HEX}\nx", f"[{HEX}][0]"),
    *(f'{{"code": {DIGITS}}}', f"def f(x={HEX}):\n    return x\nf()", f"if True:\n    {HEX}", f"d = {{{HEX}: 1}}"),
    *(f"1.{DIGITS}", f"1e{DIGITS}", f"```json\n[{DIGITS}]\n```", f"raise ValueError({HEX})"),
]  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: reply[:20])
@pytest.mark.parametrize("query", ["Compute.", f"Is {DIGITS} even?"], ids=["short", "long"])
def test_a_long_number_ends_no_chain(sandbox: SandboxExecutor, reply: str, query: str) -> None:
    model = ScriptedModel(lambda messages: reply)
    with create_code_chain(model, executor=sandbox, answer_type=int, solve=Repair(1)) as chain:
        assert chain.invoke(query)["verdict"] is not None
