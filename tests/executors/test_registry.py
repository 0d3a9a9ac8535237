"""Executors by name: ours, and those that another package registers."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from code_chains import Limits, create_code_chain
from code_chains.errors import ConfigurationError
from code_chains.executors import Executor, registry
from code_chains.executors.registry import NAMES, load, resolve_executor
from code_chains.records import Execution
from code_chains.testing import ScriptedModel


class Theirs(Executor):
    """An executor of another package."""

    def _execute(self, program: Any) -> Execution:
        return Execution("ok", stdout="theirs\n")


def make(limits: Limits | None = None) -> Executor:
    return Theirs(limits=limits)


def broken(limits: Limits | None = None) -> Executor:
    raise ImportError("No module named 'acme_sdk'")


def other(limits: Limits | None = None) -> Any:
    return "a text"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        EntryPoint(name, f"{__name__}:{function}", registry.ENTRY_POINTS)
        for name, function in {
            "theirs": "make",
            "broken": "broken",
            "gone": "no_such_function",
            "other": "other",
            "none": "broken",
        }.items()
    )
    monkeypatch.setattr(metadata, "entry_points", lambda **names: points.select(**names))


def test_an_executor_of_another_package_is_used_by_its_name() -> None:
    with resolve_executor("theirs", Limits(seconds=3)) as executor:
        assert (executor.run("1").stdout, executor.limits.seconds) == ("theirs\n", 3)
    with create_code_chain(ScriptedModel(lambda messages: "print(1)"), executor="theirs") as chain:
        assert isinstance(chain.executor, Theirs)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("broken", "raised ImportError: No module named 'acme_sdk'"),
        ("gone", "raised AttributeError"),
        ("other", "returned str, not an Executor"),
        ("dokcer", 'Pass "docker", or one of "strongest"'),
        ("lxc", '"none" \\(protects nothing\\), "broken", "gone", "none", "other", "theirs", an Executor'),
    ],
)
def test_one_that_cannot_be_used_is_named_with_what_to_do(name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        resolve_executor(name)


def test_no_package_takes_a_name_of_ours() -> None:
    with resolve_executor("none") as executor:
        assert executor.run("print(1)").stdout == "1\n"


@pytest.mark.parametrize("name", NAMES)
def test_each_name_has_a_maker(name: str) -> None:
    try:
        assert callable(load(registry._EXECUTORS[name]))
    except ImportError as error:
        pytest.skip(str(error))
