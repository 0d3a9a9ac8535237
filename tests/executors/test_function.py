"""Functions as executors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.chains import ExecuteChain
from code_chains.errors import ConfigurationError, InputError
from code_chains.executors.function import FunctionExecutor
from code_chains.state import Execution
from code_chains.testing import ScriptedModel, asks_for_code


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


@pytest.mark.parametrize(
    "code", ["1 / 0", "[][1]", "{}['a']", "nope", "1 + 'a'", "None.a", "import nope", "int('a')"]
)
def test_an_error_of_the_program_is_a_failed_attempt(code: str) -> None:
    def run(code: str) -> dict[str, Any]:
        names: dict[str, Any] = {}
        exec(code, names)
        return {"output": names["result"]}

    programs = iter([code, "result = len('five')"])
    model = ScriptedModel(lambda messages: next(programs) if asks_for_code(messages) else "It is 4.")
    result = create_code_chain(model, executor=run, checks=[]).invoke("How long is 'five'?")
    assert (result["answer"], len(result["attempts"])) == ("It is 4.", 2)


def test_a_mistake_in_the_function_is_an_exception() -> None:
    def run(code: str) -> str:
        return nope  # type: ignore[name-defined,no-any-return] # noqa: F821

    with pytest.raises(NameError):
        FunctionExecutor(run).run("1")


def test_a_mistake_in_a_function_of_a_notebook_is_an_exception() -> None:
    names: dict[str, Any] = {}
    exec(compile("def run(code):\n    return {}['missing']", "/tmp/ipykernel_12/1.py", "exec"), names)
    with pytest.raises(KeyError):
        FunctionExecutor(names["run"]).run("1")


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


@pytest.mark.parametrize("given", [{"variables": {"n": 1}}, {"files": {"a.txt": b"1"}}])
def test_inputs_that_a_function_cannot_take_are_refused_before_a_model_is_paid(given: dict[str, Any]) -> None:
    model = ScriptedModel(lambda _: pytest.fail("asked"))
    with (
        create_code_chain(model, executor=lambda code: "") as chain,
        pytest.raises(InputError, match="files or variables"),
    ):
        chain.invoke({"query": "What is n?", **given})


def test_the_outcome_of_another_process_is_one() -> None:
    def run(code: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    executor = FunctionExecutor(run)
    assert executor.run("print(7)").output == "7"
    error = executor.run("1 / 0").error
    assert error is not None
    assert (error.type, error.message) == ("ZeroDivisionError", "division by zero")


def test_what_a_function_says_it_returns_is_refused_before_anything_is_paid() -> None:
    def pair(code: str) -> tuple[str, str]:
        return "", ""

    with pytest.raises(ConfigurationError, match="it returns tuple"):
        create_code_chain(ScriptedModel(lambda messages: "1"), executor=pair)


@pytest.mark.parametrize(
    "outcome",
    [
        {"status": "error", "output": "15"},
        {"status": "failed", "output": "", "stderr": "ValueError: no"},
        Execution("error", stderr="Traceback …\nValueError: no"),
    ],
)
def test_what_an_executor_reports_as_an_error_is_one(outcome: Any) -> None:
    execution = FunctionExecutor(lambda code: outcome).run("1")
    assert (execution.status, execution.error is not None) == ("error", True)
    assert execution.summary != "The program ended with status error."
