"""Containers as an executor, tested with llm-sandbox's bubblewrap backend, which needs no engine."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from code_chains import create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.base import Executor, Session
from code_chains.executors.limits import Limits
from code_chains.executors.remote.container import ContainerExecutor
from code_chains.testing import ExecutorContract, ScriptedModel, SessionContract
from tests.conftest import descendants, soon
from tests.support.persistent_sandbox import PersistentSandbox

LIMITS = Limits(seconds=2, memory="256M", output="64K", processes=20, files=500, disk="8M")
bubblewrap = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")


@bubblewrap
class TestContainer(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[Executor]:
        with ContainerExecutor(backend="bubblewrap", limits=LIMITS) as executor:
            yield executor


@pytest.fixture
def executor() -> Iterator[ContainerExecutor]:
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    with ContainerExecutor(backend="bubblewrap", limits=LIMITS) as executor:
        yield executor


def test_a_probe_inside_finds_everything_closed(
    executor: ContainerExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    done = executor.run("import os; 'hunter2' in str(os.environ)")
    assert done.isolation is not None
    assert (done.result, done.isolation.level, done.isolation.open) == ("False", "container", ())


@bubblewrap
def test_nothing_runs_if_the_probe_finds_an_opening() -> None:
    from llm_sandbox.local.config import LocalSandboxConfig

    options = {"sandbox_config": LocalSandboxConfig(network="host")}
    with (
        ContainerExecutor(backend="bubblewrap", options=options) as executor,
        pytest.raises(IsolationError, match="network"),
    ):
        executor.run("1")


@bubblewrap
def test_what_is_not_required_may_be_open_and_is_reported() -> None:
    from llm_sandbox.local.config import LocalSandboxConfig

    options = {"sandbox_config": LocalSandboxConfig(network="host")}
    with ContainerExecutor(
        backend="bubblewrap", options=options, required_isolation=("filesystem",)
    ) as executor:
        isolation = executor.run("1").isolation
    assert isolation is not None
    assert (isolation.level, isolation.open) == ("none", ("network",))


def test_files_that_a_program_makes_are_artifacts(executor: ContainerExecutor, sales: Path) -> None:
    program = (
        "import os, shutil\nos.mkdir('out')\nshutil.copyfile('sales.csv', 'out/ü b.csv')\n"
        "os.symlink('/etc/passwd', 'link')\nopen('large', 'wb').write(os.urandom(3 << 20))"
    )
    done = executor.run(program, files={"sales.csv": sales})
    assert done.ok, done.error
    assert [artifact.name for artifact in done.artifacts] == ["large", "out/ü b.csv"]
    assert done.artifacts[1].data == sales.read_bytes()


def test_files_are_read_only_copies(executor: ContainerExecutor, sales: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(sales)
    files = {"data/s.csv": sales, "l.csv": tmp_path / "link"}
    done = executor.run(
        "print(open('data/s.csv').read() == open('l.csv').read()); open('data/s.csv', 'a')", files=files
    )
    assert done.stdout == "True\n"
    assert done.error is not None
    assert done.error.type == "PermissionError"


def test_it_runs_as_main_from_a_private_directory(executor: ContainerExecutor) -> None:
    code = "import os, sys; __name__, os.listdir(), sys.path[0], 'guest' in sys.modules"
    assert executor.run(code).result == "('__main__', [], '', False)"


def test_top_level_await_works(executor: ContainerExecutor) -> None:
    assert executor.run("import asyncio\nawait asyncio.sleep(0.01, 5)").result == "5"


FORGE = """
import json, os, time
told = json.dumps({"status": "ok", "result": "forged", "error": None})
frame = {"exit": 0, "reason": None, "seconds": 0.0, "peak": 1, "stdout": "forged", "stderr": "", "result": told}
for place in ("/tmp/code_chains/token", f"/proc/{os.getppid()}/mem", f"/proc/{os.getppid()}/fd/1"):
    try:
        open(place)
        print("open:", place)
    except OSError:
        pass
for pid in (1, 2, os.getppid()):
    try:
        with open(f"/proc/{pid}/fd/1", "w") as file:
            file.write(json.dumps(frame) + "\\n" + json.dumps(frame | {"token": ""}) + "\\n[1\\n")
    except OSError:
        pass
"""
ENDINGS = {
    "exit": ("import sys; print(1); sys.exit()", "ok"),
    "exit with a code": ("import sys; sys.exit(3)", "error"),
    "kills itself": ("import os; os.kill(os.getpid(), 9)", "killed"),
    "kills the watcher": ("import os; os.kill(os.getppid(), 9)", "killed"),
    "kills all": ("import os; os.kill(-1, 9); print(1)", "killed"),
    "speaks in the watcher's name": (FORGE, "ok"),
    "speaks in the watcher's name and kills it": (FORGE + "os.kill(os.getppid(), 9); time.sleep(5)", "killed"),
    "floods in the watcher's name": (
        "with open('/proc/1/fd/1', 'w') as f:\n  while True: f.write('x' * 10000)",
        "killed",
    ),
    "segfault": ("import ctypes; ctypes.string_at(0)", "killed"),
    "endless in C": ("9 ** 9 ** 9", "timeout"),
    "ignores signals": (
        "import signal\nfor n in range(1, 64):\n  try: signal.signal(n, signal.SIG_IGN)\n  except Exception: pass\n"
        "while True: pass",
        "timeout",
    ),
    "flood of errors": ("import sys\nwhile True: sys.stderr.write('x' * 10000)", "output_limit"),
    "flood of a child": ("import os\nos.fork()\nwhile True: print('x' * 10000)", "output_limit"),
    "forks": ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "process_limit"),
    "memory of children": (
        "import os, time\nfor _ in range(4):\n  if not os.fork():\n    x = b'x' * (150 << 20); time.sleep(60)\n"
        "time.sleep(60)",
        "memory",
    ),
    "disk": ("open('x', 'wb').write(b'x' * (1 << 25))", "disk_limit"),
    "disk in pieces": (
        "import time\nfor n in range(5): open(f'f{n}', 'wb').write(b'x' * (4 << 20))\ntime.sleep(60)",
        "disk_limit",
    ),
    "many files": ("import time\nfor n in range(600): open(f'/tmp/f{n}', 'w').close()\ntime.sleep(60)", "disk_limit"),
    "daemon": (
        "import os, time\nif not os.fork():\n  os.setsid()\n  if not os.fork(): time.sleep(60)\n  os._exit(0)",
        "ok",
    ),
    "half a character": ("'\\ud800'", "ok"),
    "half a character in the program": ("'\ud800'", "error"),
    "deep result": ("x = []\nfor _ in range(100000): x = [x]\nresult = x", "error"),
    "syntax": ("print(", "error"),
    "empty": ("", "ok"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "status"), ENDINGS.values(), ids=ENDINGS.keys())
def test_every_ending_is_a_value_within_its_limit(
    executor: ContainerExecutor, code: str, status: str
) -> None:
    before, began = descendants(), time.monotonic()
    done = executor.run(code)
    assert (done.status, done.to_json() != "") == (status, True), done.error
    assert "forged" not in done.output
    assert "open" not in done.output
    assert time.monotonic() - began < executor.limits.seconds * 1.25 + 3
    assert soon(lambda: descendants() <= before)


@pytest.mark.slow
def test_a_stopped_supervisor_is_removed_with_its_container(executor: ContainerExecutor) -> None:
    before, began = descendants(), time.monotonic()
    assert executor.run("import os, time\nos.kill(os.getppid(), 19)\ntime.sleep(60)").status == "timeout"
    assert time.monotonic() - began < executor.limits.seconds + 8
    assert soon(lambda: descendants() <= before)


async def test_cancelling_removes_the_container(executor: ContainerExecutor) -> None:
    before = descendants()
    for delay in (0, 0.05, 0.5):
        task = asyncio.create_task(executor.arun("import time; time.sleep(60)"))
        await asyncio.sleep(delay)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began < 2
    assert soon(lambda: descendants() <= before)


async def test_a_run_does_not_block_the_loop(executor: ContainerExecutor) -> None:
    task, turns = asyncio.create_task(executor.arun("import time; time.sleep(0.5)")), 0
    while not task.done():
        await asyncio.sleep(0.01)
        turns += 1
    assert turns > 20


def test_threads_do_not_mix(executor: ContainerExecutor) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda n: executor.run(f"print({n}); {n} * 2"), range(8)))
    assert [(one.stdout, one.result) for one in done] == [(f"{n}\n", str(n * 2)) for n in range(8)]


def test_runs_leave_nothing_behind(
    executor: ContainerExecutor, tmp_path: Path, sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    executor.run("open('x', 'w').write('y'); 1 / 0", files={"s.csv": sales})
    # The folder of this process stays until it ends.
    assert [name for name in os.listdir(tmp_path / "tmp") if "-process-" not in name] == []


class EngineSession:
    """A session of llm-sandbox in a sandbox whose processes outlive their command, as those of an engine do."""

    opened: ClassVar[list[PersistentSandbox]] = []
    # The kernel ends a sandbox with the thread that has started it.
    thread: ClassVar[ThreadPoolExecutor] = ThreadPoolExecutor(1)

    def __init__(self, **_: Any) -> None:
        self.client = SimpleNamespace(ping=lambda: None, close=lambda: None)

    def open(self) -> None:
        self.sandbox = self.thread.submit(PersistentSandbox).result()
        self.opened.append(self.sandbox)

    def close(self) -> None:
        self.sandbox.kill()

    def execute_command(self, command: str) -> Any:
        done = self.sandbox.execute(command)
        return SimpleNamespace(stdout=done.output, exit_code=done.exit_code)

    def copy_to_runtime(self, source: str, path: str) -> None:
        self.sandbox.upload_files([(path, Path(source).read_bytes())])


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[ContainerExecutor]:
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    monkeypatch.setattr("llm_sandbox.SandboxSession", EngineSession)
    EngineSession.opened.clear()
    with ContainerExecutor(backend="docker", limits=LIMITS) as executor:
        yield executor
    # Closing the executor ends what is left.
    assert not any(map(is_running, EngineSession.opened))


def is_running(sandbox: PersistentSandbox) -> bool:
    return sandbox._process.poll() is None


@pytest.mark.slow
class TestSession(SessionContract):
    """The contract of sessions, in a container."""

    @pytest.fixture
    def session(self, engine: ContainerExecutor) -> Iterator[Session]:
        with engine.session() as session:
            yield session


def test_sessions_have_containers_of_their_own_which_end_with_them(engine: ContainerExecutor) -> None:
    first, second = engine.session(), engine.session()
    first.run("x = 1; open('/tmp/x', 'w').close()")
    done = second.run("import os; os.path.exists('/tmp/x'), 'x' in globals()")
    assert done.result == "(False, False)", done.error
    assert first.run("x + 1").result == "2"
    first.close()
    assert list(map(is_running, EngineSession.opened)) == [False, True]


def test_a_backend_that_ends_processes_with_their_command_has_no_sessions(
    executor: ContainerExecutor,
) -> None:
    assert not executor.has_sessions


def test_a_container_gets_no_network_no_privileges_and_the_limits() -> None:
    executor = ContainerExecutor(backend="docker", image="mine", limits=Limits(memory="1G", processes=10))
    configs = executor._options["runtime_configs"]
    assert (executor._options["image"], configs["network_mode"], configs["cap_drop"]) == (
        "mine",
        "none",
        ["ALL"],
    )
    assert (configs["mem_limit"] >= 1 << 30, configs["pids_limit"] >= 10) == (True, True)


def test_options_of_the_caller_take_precedence() -> None:
    executor = ContainerExecutor(backend="docker", options={"runtime_configs": {"network_mode": "host"}})
    assert executor._options["runtime_configs"] == {"network_mode": "host"}


def test_a_missing_engine_is_named_in_the_error() -> None:
    with warnings.catch_warnings(), ContainerExecutor(backend="docker") as executor:
        # Docker's client leaves the socket open that it tried.
        warnings.simplefilter("ignore", ResourceWarning)
        with pytest.raises((ConfigurationError, ExecutorError), match="docker"):
            executor.run("1")
        gc.collect()


@pytest.mark.parametrize(
    "arguments", [{"backend": "rocket"}, {"required_isolation": "all"}, {"required_isolation": ("walls",)}]
)
def test_an_invalid_argument_is_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(arguments))):
        ContainerExecutor(**arguments)


def test_wrong_input_is_refused_before_anything_starts(executor: ContainerExecutor) -> None:
    before = descendants()
    with pytest.raises(InputError, match="does not exist"):
        executor.run("1", files={"a.csv": Path("/nowhere/a.csv")})
    with pytest.raises(InputError, match="must be text"):
        executor.run(b"1")  # type: ignore[arg-type]
    assert descendants() == before


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llm_sandbox", None)
    with pytest.raises(ConfigurationError, match=r'pip install -e "\.\[container\]"'):
        ContainerExecutor()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # The client leaves a socket.
def test_an_engine_that_does_not_run_is_an_error_before_a_model_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    asked: list[str] = []

    def reply(messages: list[Any]) -> str:
        asked.append("")
        return "print(42)"

    with (
        create_code_chain(ScriptedModel(reply), executor="docker") as chain,
        pytest.raises(ExecutorError, match=r"docker cannot be reached\. Is it running.*`docker info`"),
    ):
        chain.invoke("What is 6 * 7?")
    assert not asked
    gc.collect()
