"""The strongest isolation that a machine offers is chosen by itself, and nothing weaker than what SECURITY.md promises."""

from __future__ import annotations

import errno
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from code_chains import create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, IsolationError
from code_chains.executors import EngineExecutor, Executor, SandboxExecutor, WasmExecutor, strongest
from code_chains.executors.remote import engine
from code_chains.executors.sandbox import launchers, provider
from code_chains.executors.sandbox.launchers import may_make_namespaces
from code_chains.executors.strongest import strongest_executor
from code_chains.executors.wasm import runtime
from code_chains.language import detect
from code_chains.testing import ScriptedModel
from tests.conftest import PatchInside
from tests.support.other_user import for_landlock


@pytest.fixture
def without_namespaces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A system that lets nobody make namespaces, as most containers."""
    monkeypatch.setattr(strongest, "may_make_namespaces", lambda: False)
    monkeypatch.setattr(engine, "ready_engine", lambda: None)
    caches = (strongest._say_once, strongest.landlock_objection)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def without_landlock(without_namespaces: None, patch_inside: PatchInside) -> None:
    """A kernel whose Landlock claims to be in force and protects nothing."""
    patch_inside("landlock", "files = _file_rights(supported)", "files = ACCESS_FS_MAKE_BLOCK")


@pytest.fixture
def readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that other users can read."""
    python = for_landlock()
    if python is not None:
        monkeypatch.setattr(strongest, "SandboxExecutor", partial(SandboxExecutor, python=python))


def test_where_namespaces_can_be_made_it_is_the_kernel_sandbox() -> None:
    if not may_make_namespaces():
        pytest.skip("this system does not let namespaces be made")
    with create_code_chain(ScriptedModel(lambda _: "```python\nprint(1)\n```"), interpret=False) as chain:
        isolation = chain.invoke({"query": "one"})["execution"].isolation
    assert isolation is not None
    assert isolation.level == "kernel"


@pytest.mark.kernel_sandbox
@pytest.mark.usefixtures("without_namespaces", "readable")
def test_elsewhere_it_is_landlock_with_sessions_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with strongest_executor() as executor, strongest_executor(), executor.session() as session:
        session.run("kept = 41")
        done = session.run("kept + 1")
    assert (done.output, done.isolation and done.isolation.level) == ("42", "landlock")
    assert ["Landlock" in record.message for record in caplog.records] == [True]


@pytest.mark.kernel_sandbox
@pytest.mark.usefixtures("without_landlock", "readable")
def test_without_landlock_it_is_webassembly_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("eryx")
    with caplog.at_level(logging.WARNING), strongest_executor() as executor, strongest_executor():
        assert isinstance(executor, WasmExecutor)
    [record] = caplog.records
    assert "WebAssembly" in record.message
    assert "the probe found a way out (filesystem" in record.message


@pytest.mark.kernel_sandbox
@pytest.mark.usefixtures("without_landlock", "readable")
def test_an_engine_that_has_the_image_comes_before_webassembly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(engine, "ready_engine", lambda: "podman")
    with caplog.at_level(logging.WARNING), strongest_executor() as executor:
        assert isinstance(executor, EngineExecutor)
        assert executor.engine == "podman"
    assert "inside a container" in caplog.text


@pytest.mark.kernel_sandbox
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="programs run as this user")
@pytest.mark.usefixtures("without_namespaces")
def test_root_whose_python_others_cannot_read_is_told_so(patch_inside: PatchInside) -> None:
    patch_inside("filesystem", "is_usable = all(", "is_usable = False and all(")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        assert type(strongest_executor()) is SandboxExecutor
    assert "who cannot read this Python" in str(strongest.landlock_objection())


@pytest.mark.usefixtures("without_landlock", "readable")
def test_without_webassembly_it_is_the_error_of_the_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with strongest_executor() as executor:
        assert isinstance(executor, SandboxExecutor)
        assert executor.launcher != "landlock"


@pytest.mark.kernel_sandbox
def test_what_a_launcher_leaves_open_does_not_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    if not may_make_namespaces():
        pytest.skip("this system does not let namespaces be made")
    monkeypatch.setattr(provider, "candidates", lambda level: ["none", "namespaces"])
    with SandboxExecutor(preload=()) as executor:
        isolation = executor.run("1").isolation
    assert (isolation and isolation.launcher) == "namespaces"


@pytest.mark.skipif(sys.platform != "linux", reason="pidfds are of Linux")
def test_a_kernel_without_pidfds_as_that_of_gvisor_offers_no_level_of_the_sandbox(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    caches = (may_make_namespaces, strongest.landlock_objection, strongest._say_once)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setattr(os, "pidfd_open", lacking)
    monkeypatch.setattr(engine, "ready_engine", lambda: None)
    try:
        assert strongest.strongest_level() == "wasm"
        assert "no pidfd_open" in str(strongest.landlock_objection())
    finally:
        for cached in caches:
            cached.cache_clear()


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_other_systems_have_webassembly_or_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    may_make_namespaces.cache_clear()
    has_webassembly = importlib.util.find_spec("eryx") is not None
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(engine, "ready_engine", lambda: None)  # Searching programs needs the real platform.
    try:
        with monkeypatch.context() as patch:
            patch.setattr("importlib.util.find_spec", lambda name: None)
            with pytest.raises(IsolationError, match="executor='wasm'"):
                strongest_executor()
        if has_webassembly:
            assert type(strongest_executor()) is WasmExecutor
    finally:
        may_make_namespaces.cache_clear()


@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_an_old_python_is_told_that_webassembly_needs_a_newer_one(
    monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 11, 9, "final", 0))
    message = "WebAssembly needs Python 3.12 or newer, and this is 3.11"
    with pytest.raises(ConfigurationError, match=message) as raised:
        WasmExecutor()
    assert "'sandbox' on Linux" in str(raised.value)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(strongest, "strongest_level", lambda: "wasm")
    if system == "linux":
        assert type(strongest_executor()) is SandboxExecutor
        return
    with pytest.raises(IsolationError, match=message):
        strongest_executor()


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are of Linux")
@pytest.mark.parametrize(
    "attempt",
    [
        "import time; time.sleep(60)",
        "import os; os._exit(1)",
        "raise MemoryError",
        "import os; os.kill(os.getpid(), 9)",
    ],
)
def test_a_check_that_fails_is_an_error_and_lowers_no_level(
    monkeypatch: pytest.MonkeyPatch, attempt: str
) -> None:
    may_make_namespaces.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(launchers, "CHECK_TIMEOUT_S", 0.2)
        patch.setattr(launchers, "TRY_NAMESPACES", attempt)
        patch.setattr("shutil.which", lambda name: None)
        with pytest.raises(ExecutorError, match="try again") as raised:
            strongest_executor()
        assert raised.value.is_retryable
        patch.setattr(launchers, "CHECK_TIMEOUT_S", 30.0)
        patch.setattr(launchers, "TRY_NAMESPACES", "raise SystemExit(77)")
        assert not may_make_namespaces()
    may_make_namespaces.cache_clear()


@pytest.mark.parametrize("make", [SandboxExecutor, pytest.param(WasmExecutor, marks=pytest.mark.slow)])
def test_without_a_temporary_folder_the_first_question_ends_with_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], Executor]
) -> None:
    if make is WasmExecutor:
        pytest.importorskip("eryx")
        runtime.runtime()

    def no_folder() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", no_folder)
    detect._identifier.cache_clear()
    model = ScriptedModel(lambda _: "```python\nprint(1)\n```")
    with (
        make() as executor,
        create_code_chain(model, executor=executor, interpret=False) as chain,
        pytest.raises(ExecutorError, match=r"temporary folder writable.*TMPDIR"),
    ):
        chain.invoke({"query": "six times seven"})
