"""The sandbox as one of Inspect's, for evaluations of agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason='pip install -e ".[inspect]"')

from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, TaskState, solver
from inspect_ai.util import OutputLimitExceededError, sandbox

from code_chains.executors.inspect_ai import KernelSandbox


@pytest.fixture
async def box() -> AsyncIterator[Any]:
    environments = await KernelSandbox.sample_init("task", None, {})
    yield environments["default"]
    await KernelSandbox.sample_cleanup("task", None, environments, False)


async def test_a_command_has_input_variables_a_folder_and_both_outputs(box: Any) -> None:
    code = "import os, sys; print(os.getcwd(), os.environ['A'], input()); print('e', file=sys.stderr)"
    done = await box.exec(["python3", "-c", code], input="in", cwd="/tmp", env={"A": "b c"})
    assert (done.success, done.stdout, done.stderr) == (True, "/tmp b c in\n", "e\n")
    failed = await box.exec(["sh", "-c", "exit 3"])
    assert (failed.success, failed.returncode) == (False, 3)
    assert "not found" in (await box.exec(["no_such_program"])).stderr


async def test_files_stay_and_errors_are_those_that_inspect_expects(box: Any) -> None:
    await box.write_file("d/a.bin", b"\0\r\n")
    assert await box.read_file("d/a.bin", text=False) == b"\0\r\n"
    assert (await box.exec(["ls", "d"])).stdout == "a.bin\n"
    for name, error in (("none", FileNotFoundError), ("d", IsADirectoryError), ("/etc/shadow", OSError)):
        with pytest.raises(error):
            await box.read_file(name)
    with pytest.raises(TimeoutError):
        await box.exec(["sleep", "30"], timeout=1)
    with pytest.raises(OutputLimitExceededError):
        await box.exec(["sh", "-c", "yes | head -c 20000000"])


@pytest.mark.filterwarnings("ignore")  # Of streams that Inspect leaves open.
async def test_an_evaluation_runs_in_it_by_its_name(tmp_path: Any) -> None:
    @solver  # type: ignore[untyped-decorator,unused-ignore]
    def read() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.output.completion = (await sandbox().exec(["cat", "a.txt"])).stdout
            return state

        return solve

    sample = Sample(input="?", target="42", files={"a.txt": "42"})
    task = Task(dataset=[sample], solver=read(), scorer=match(), sandbox="code_chains")
    (log,) = await eval_async(task, model="mockllm/model", log_dir=str(tmp_path))
    assert log.results is not None
    assert (log.status, log.results.scores[0].metrics["accuracy"].value) == ("success", 1.0)
