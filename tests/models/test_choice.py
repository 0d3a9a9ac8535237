"""Which embedded model `local` is, by readings of memory and disk; nothing is downloaded or loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from code_chains.apps.terminal.cli import cli
from code_chains.assembly.parts import Parts
from code_chains.chains import ValidateChain
from code_chains.errors import ConfigurationError, WeightsError
from code_chains.models import choice as module
from code_chains.models import resolve_model
from code_chains.models.choice import install_local, local_choice
from code_chains.models.weights import CATALOGUE, Weights
from code_chains.testing import ScriptedExecutor

SMALL, BETTER = CATALOGUE["local:0.5b"], CATALOGUE["local:1.5b"]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets what is available and begins a new process."""
    monkeypatch.delenv("CODE_CHAINS_LOCAL")
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path))

    def begin(memory: int | None = 8 * 10**9, disk: int | None = 50 * 10**9) -> None:
        monkeypatch.setattr(module, "available_memory", lambda: memory)
        monkeypatch.setattr(module, "free_disk", lambda: disk)
        monkeypatch.setattr(module, "_process", module._Process())

    begin()
    return begin


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what is installed, instead of doing it."""
    names: list[str] = []

    def install(weights: Weights, *, quiet: bool = False) -> Path:
        names.append(weights.name)
        return weights.path

    monkeypatch.setattr(Weights, "install", install)
    return names


def pretend(weights: Weights) -> None:
    """Put a sparse file of the right size where the weights belong."""
    with weights.path.open("wb") as file:
        file.truncate(weights.size)


CASES: dict[str, tuple[dict[str, int | None], bool, str, str]] = {
    "room for all": ({}, False, "local:1.5b", "8 GB of memory available; local:0.5b is faster"),
    "little memory": (
        {"memory": 29 * 10**8},
        False,
        "local:0.5b",
        "2.9 GB of memory available, local:1.5b needs 3 GB",
    ),
    "little memory, though installed": ({"memory": 10**9}, True, "local:0.5b", "local:1.5b needs 3 GB"),
    "unknown memory": ({"memory": None}, True, "local:0.5b", "is unknown"),
    "a full disk": ({"disk": 2 * 10**9}, False, "local:0.5b", "the download of local:1.5b needs 2.2 GB"),
    "an unknown disk": ({"disk": None}, False, "local:0.5b", "unknown free disk space"),
    "a full disk, but installed": ({"disk": 0}, True, "local:1.5b", "8 GB of memory available"),
}


@pytest.mark.parametrize(("readings", "installed", "name", "reason"), CASES.values(), ids=CASES)
def test_memory_and_disk_decide(
    machine: Any, readings: dict[str, int | None], installed: bool, name: str, reason: str
) -> None:
    machine(**readings)
    if installed:
        pretend(BETTER)
    assert (local_choice().weights.name, reason in local_choice().reason) == (name, True)


@pytest.mark.parametrize("size", ["0.5b", "1.5b"])
def test_the_variable_overrides_memory_and_disk(
    machine: Any, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(memory=None)
    monkeypatch.setenv("CODE_CHAINS_LOCAL", size)
    assert local_choice().weights.name == f"local:{size}"


def test_a_wrong_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_CHAINS_LOCAL", "7b")
    with pytest.raises(ConfigurationError, match=r"CODE_CHAINS_LOCAL='7b'. Pass 0.5b or 1.5b"):
        local_choice()


def test_a_process_does_not_change_its_mind(installs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    first = install_local()
    monkeypatch.setattr(module, "available_memory", lambda: 0)
    monkeypatch.setenv("CODE_CHAINS_LOCAL", "0.5b")
    assert (first, install_local(), local_choice().weights) == (BETTER, BETTER, BETTER)


def test_the_choice_is_said_once_with_its_reason(
    installs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    install_local()
    install_local()
    said = "local: Qwen2.5-Coder 1.5B (8 GB of memory available; local:0.5b is faster)\n"
    assert capsys.readouterr().err == said


def test_nothing_is_said_when_quiet(installs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    install_local(quiet=True)
    assert capsys.readouterr().err == ""


def test_nothing_is_said_of_an_explicit_choice(
    installs: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODE_CHAINS_LOCAL", "1.5b")
    assert (install_local(), capsys.readouterr().err) == (BETTER, "")


def fail_for_the_better(weights: Weights, *, quiet: bool = False) -> Path:
    if weights is BETTER:
        raise WeightsError("there is no network")
    return weights.path


def test_without_a_network_the_installed_small_model_serves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Weights, "install", fail_for_the_better)
    pretend(SMALL)
    assert (install_local(), local_choice().weights) == (SMALL, SMALL)
    assert "local: Qwen2.5-Coder 0.5B (local:1.5b cannot be downloaded now)" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["", "1.5b"])
def test_a_failed_download_is_an_error_if_no_model_serves_in_its_place(
    size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Weights, "install", fail_for_the_better)
    monkeypatch.setenv("CODE_CHAINS_LOCAL", size)
    if size:  # An explicit choice is never replaced.
        pretend(SMALL)
    with pytest.raises(WeightsError, match="no network"):
        install_local()


def test_the_model_records_and_fingerprints_name_the_real_one(installs: list[str]) -> None:
    pytest.importorskip("xllamacpp")
    model: Any = resolve_model("local", start=False)
    names = {model.model_name, model.fingerprint["weights"], model._get_ls_params()["ls_model_name"]}
    assert names | {Parts("local", ScriptedExecutor(str), ValidateChain()).name_model("local", model)} == {
        "local:1.5b"
    }


@pytest.mark.slow
def test_the_command_line_says_which_one_local_is() -> None:
    for arguments in (["models", "list"], ["doctor"]):
        assert "local: Qwen2.5-Coder 1.5B (8 GB of memory" in CliRunner().invoke(cli, arguments).stdout


def test_pull_fetches_what_local_will_be(installs: list[str]) -> None:
    result = CliRunner().invoke(cli, ["models", "pull"])
    assert (installs, "local: Qwen2.5-Coder 1.5B" in result.stderr) == (["local:1.5b"], True)
