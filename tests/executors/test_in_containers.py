"""Promises kept in real containers: what a chain runs in, what it withstands, and that nothing is left.

They need an engine (`docker`, at `DOCKER_HOST`) and an image with Python, the dependencies of this library and of its extras
`data` and `wasm`, pytest, hypothesis and pytest-httpserver; no network:

    CODE_CHAINS_TEST_IMAGE=answers-tests pytest -m containers -n 0 tests/executors/test_in_containers.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import ExecutorError
from code_chains.executors import EngineExecutor
from tests.conftest import ROOT, soon

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]
IMAGE = os.environ.get("CODE_CHAINS_TEST_IMAGE", "")
UNCONFINED = ("--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined")
USER = ("--user=12345:12345",)
RESTRICTED = (
    *USER,
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--tmpfs=/tmp:size=256m,mode=1777",
)
NO_LANDLOCK = {
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [
        {
            "names": ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": 38,
        }
    ],
}
"""A kernel without Landlock: its calls are unknown."""
NEITHER = {
    **NO_LANDLOCK,
    "syscalls": [
        *NO_LANDLOCK["syscalls"],
        {"names": ["unshare", "setns", "mount", "pivot_root"], "action": "SCMP_ACT_ERRNO"},
    ],
}
"""Nor does it let namespaces be made."""


@dataclass(frozen=True)
class Environment:
    """Options of `docker run`, the level of isolation that a chain gets with them, and how many ordinary programs run."""

    options: tuple[str, ...]
    level: str
    ordinary: int


ENVIRONMENTS = {
    "default": Environment((), "landlock", 140),
    "restricted": Environment(RESTRICTED, "landlock", 140),
    "little shared memory": Environment(("--shm-size=64k",), "landlock", 140),
    "restricted without Landlock": Environment(
        (*RESTRICTED, "--security-opt=seccomp=neither.json"), "wasm", 80
    ),
    "unconfined": Environment(UNCONFINED, "kernel", 145),
    "unconfined user": Environment((*UNCONFINED, *USER), "kernel", 145),
    "unconfined restricted": Environment((*RESTRICTED, *UNCONFINED), "kernel", 145),
    "unconfined little shared memory": Environment((*UNCONFINED, "--shm-size=64k"), "kernel", 145),
    "without Landlock": Environment(
        (UNCONFINED[1], "--security-opt=seccomp=no-landlock.json"), "kernel", 145
    ),
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that each container reads: Python, compiled once as in an image, and what programs print elsewhere."""
    if (
        not shutil.which("docker")
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no container engine runs: start one and name it in DOCKER_HOST")
    if not IMAGE:
        pytest.skip("no image is named in CODE_CHAINS_TEST_IMAGE")
    folder = tmp_path_factory.mktemp("shared")
    folder.chmod(0o755)
    (folder / "no-landlock.json").write_text(json.dumps(NO_LANDLOCK))
    (folder / "neither.json").write_text(json.dumps(NEITHER))
    run(folder, ("-v", f"{folder}:/shared"), "-m", "code_chains", "doctor")
    (folder / "outside.json").write_text(json.dumps(report(folder, (), "outside")))
    return folder


@pytest.fixture(scope="module", params=ENVIRONMENTS)
def reported(request: pytest.FixtureRequest, shared: Path) -> tuple[Environment, dict[str, Any]]:
    environment = ENVIRONMENTS[request.param]
    told = report(shared, environment.options, "/shared/outside.json")
    if folder := os.environ.get("CODE_CHAINS_TEST_REPORTS"):
        Path(folder, f"{request.param}.json").write_text(json.dumps(told, indent=1))
    return environment, told


def run(shared: Path, options: tuple[str, ...], *arguments: str) -> str:
    """Run Python in a container with this source and the folder that all share, and return what it prints."""
    mounts = [
        "-v",
        f"{ROOT}:/src:ro",
        *([] if f"{shared}:/shared" in options else ["-v", f"{shared}:/shared:ro"]),
    ]
    variables = ["-e", "PYTHONPATH=/src", "-e", "XDG_CACHE_HOME=/shared", "-e", "CODE_CHAINS_LOG=0"]
    command = [
        "docker",
        "run",
        "--rm",
        "--network=none",
        "--workdir=/tmp",
        "--entrypoint=python",
        *mounts,
        *variables,
    ]
    done = subprocess.run(
        [*command, *options, IMAGE, *arguments], cwd=shared, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def report(shared: Path, options: tuple[str, ...], argument: str) -> Any:
    return json.loads(run(shared, options, "/src/tests/support/inside_container.py", argument))


Reported = tuple[Environment, dict[str, Any]]


def test_the_first_question_is_answered_with_the_strongest_isolation(reported: Reported) -> None:
    environment, told = reported
    first = told["first question"]
    assert (first.get("answer"), first.get("level")) == ("42", environment.level), first


def test_no_known_technique_escapes(reported: Reported) -> None:
    assert reported[1]["open"] != {}
    assert {name: reason for name, reason in reported[1]["open"].items() if reason} == {}


def test_ordinary_programs_print_the_same_as_outside(reported: Reported) -> None:
    environment, told = reported
    passed = [name for name, reason in told["failed"].items() if not reason]
    assert len(passed) >= environment.ordinary, told["failed"]


def test_there_are_sessions_tools_tests_and_figures(reported: Reported) -> None:
    environment, told = reported
    expected = [*(["figure"] if environment.level != "wasm" else []), "session", "tool", "tests"]
    assert told.get("features", []) == expected


def test_nothing_is_left(reported: Reported) -> None:
    assert reported[1]["left"] == []


def test_a_level_that_is_asked_for_is_what_programs_get_or_an_error_that_says_what_to_do(
    reported: Reported,
) -> None:
    for level in ("kernel", "landlock"):
        answer = reported[1][level]
        assert answer in ("kernel", "landlock") or "executor='wasm'" in answer


def test_one_container_of_an_engine_serves_sessions_tools_and_tests_and_leaves_nothing(shared: Path) -> None:
    def pay(amount: int) -> str:
        """Pay an amount."""
        return f"paid {amount}"

    options = ["-v", f"{ROOT}:/src:ro", "-e", "PYTHONPATH=/src", "--entrypoint=", "--workdir=/tmp"]
    before = engine("ps", "-aq")
    with EngineExecutor("docker", image=IMAGE, options=options) as executor, executor.session() as session:
        session.run("import pandas as pd; total = 41")
        assert session.run("print(pay(total + 1))", tools=[pay]).output == "paid 42"
        assert executor.run_tests("def f(x): return x", "assert f(1) == 1")[1].ok
        assert executor.run("1").isolation.level == "landlock"  # type: ignore[union-attr]
        (container,) = set(engine("ps", "-q")) - set(before)
        engine("kill", container)
        with pytest.raises(ExecutorError):
            executor.run("1")
        assert executor.run("2").result == "2"
    assert soon(lambda: engine("ps", "-aq") == before)


def engine(*arguments: str) -> list[str]:
    """Return the words that the engine prints."""
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False).stdout.split()
