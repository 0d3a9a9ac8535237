"""Functions as executors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from code_chains import ExecuteChain, create_code_chain
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.function import FunctionExecutor
from code_chains.state import Execution
from code_chains.testing import ScriptedModel


@pytest.mark.parametrize(
    "outcome",
    [
        "4",
        {"output": "4"},
        {"success": True, "output": "4", "error": None},
        {"stdout": "4", "stderr": "a warning", "returncode": 0},
        {"result": 4},
        Execution("ok", stdout="4"),
    ],
)
def test_what_functions_of_tutorials_return_is_output(outcome: Any) -> None:
    assert ExecuteChain(lambda code: outcome).invoke({"code": "2 + 2"})["output"] == "4"


@pytest.mark.parametrize(
    "outcome",
    [
        {"success": False, "output": "", "error": "ValueError: bad"},
        {"stdout": "", "stderr": "Traceback …\nValueError: bad", "returncode": 1},
        {"output": "", "error": "ValueError: bad"},
    ],
)
def test_failures_are_told(outcome: Any) -> None:
    execution = FunctionExecutor(lambda code: outcome).run("1")
    assert str(execution.error) == "ValueError: bad"


def test_an_exception_is_a_failure() -> None:
    def refuse(code: str) -> str:
        raise ValueError("import os is blocked")

    chain = create_code_chain(ScriptedModel(lambda _: "print(len('five'))"), executor=refuse)
    assert "import os is blocked" in chain.invoke("Why?")["answer"]


def test_async_functions_and_objects_with_run() -> None:
    async def run(code: str) -> str:
        return "4"

    class Shell:
        def run(self, code: str) -> str:
            return "4"

    assert asyncio.run(ExecuteChain(run).ainvoke({"code": "1"}))["output"] == "4"
    shell: Any = Shell()
    assert ExecuteChain(shell).invoke({"code": "1"})["output"] == "4"


def test_other_outcomes_and_inputs_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="executor"):
        FunctionExecutor(lambda code: 5).run("1")
    with pytest.raises(InputError, match="files or variables"):
        FunctionExecutor(lambda code: "").run("1", variables={"n": 1})
