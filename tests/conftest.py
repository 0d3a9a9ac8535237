"""Fixtures for all tests: no API keys, a sandbox, and a server with OpenAI's protocol."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.guest.sandbox.processes import pid_of
from code_chains.executors.sandbox import launchers
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.pool import _pools
from tests.support import other_systems

if TYPE_CHECKING:
    from langchain_core.stores import BaseStore

    from code_chains.testing import ScriptedModel
    from tests.attacks import test_escapes

ROOT = Path(__file__).parent.parent
collect_ignore = ["attacks", "data"]
# How long an example takes says nothing on a machine that others use as well.
settings.register_profile(
    "tests", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", settings.get_profile("tests"), max_examples=500)
settings.load_profile("tests")
HOSTILE = "\x1b]0;owned\x07 \x9b2J \u202e sk-proj-1234567890abcdef"
"""A hostile message of a provider: control sequences, a change of text direction, and an API key."""
SUM_CODE = "print('Sum:', sum(range(1, 6)))"
SUM_ANSWER = "The sum is 15."
QUESTION = "What is the sum of the numbers from 1 to 5?"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--platform",
        choices=other_systems.PLATFORMS,
        help="imitate another system; see tests/support/other_systems.py",
    )
    parser.addoption(
        "--notes",
        type=Path,
        metavar="FOLDER",
        help="write to files there which tests were skipped, and which took more than a second without a marker that"
        " says so, the slowest first",
    )
    parser.addoption(
        "--flakes",
        type=Path,
        metavar="FILE",
        help="add the tests that pass, as they failed before beside others",
    )
    parser.addoption(
        "--slower-than",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="what `--notes` calls more than a second",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run a test that is named by its id, whatever its layer is."""
    is_chosen = any(argument.startswith("-m") for argument in config.invocation_params.args)
    if is_named(config) and not is_chosen:
        config.option.markexpr = ""


def is_named(config: pytest.Config) -> bool:
    return any("::" in argument for argument in config.args)


def row_numbers(item: pytest.Item) -> list[int]:
    """Return which rows of its parameters a test has, whatever the order of the tests is."""
    parameters: Any = getattr(item, "callspec", None)
    return [*parameters.indices.values()] if parameters else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of contracts, the first attack of each group, and the rows of a table beyond those of every run."""
    met, rows = set(), Counter[str]()
    for item in sorted(items, key=row_numbers):
        bases = item.cls.__mro__ if isinstance(item, pytest.Function) and item.cls else ()
        if any(base.__module__.startswith(("code_chains.testing", "langchain_tests.")) for base in bases):
            item.add_marker("contract")
        test = item.nodeid.partition("[")[0]
        rows[test] += 1
        if table := item.get_closest_marker("rows"):
            item.add_marker("smoke" if rows[test] <= table.args[0] else "slow")
            continue
        group = item.nodeid.rpartition(": ")[0] or item.nodeid.partition("-")[0]
        is_attack = item.get_closest_marker("attack") and not item.get_closest_marker("soak")
        if is_attack and group not in met:
            met.add(group)
            item.add_marker("smoke")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among what is imported and collected, since that stays: it takes half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


LAYERS = {"attack", "contract", "host", "local_model", "rows", "slow", "soak"}
"""The markers of tests that may take more than a second."""


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    reports: dict[str, list[pytest.TestReport]] = terminalreporter.stats
    if flakes := config.getoption("flakes"):
        known = flakes.read_text(encoding="utf-8").splitlines() if flakes.exists() else []
        passed = [report.nodeid for report in reports.get("passed", []) if report.when == "call"]
        lines = sorted({*known, *passed})
        flakes.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        terminalreporter.write_line(f"{len(lines) - len(known)} new tests pass alone only: see {flakes}")
    if folder := config.getoption("notes"):
        folder.mkdir(exist_ok=True)
        skipped = {report.nodeid for report in reports.get("skipped", []) if "::" in report.nodeid}
        calls = [report for report in reports.get("passed", []) if report.when == "call"]
        unmarked = [call for call in calls if not LAYERS & set(call.keywords)]
        unmarked = [call for call in unmarked if call.duration > config.getoption("slower_than")]
        slow = [call.nodeid for call in sorted(unmarked, key=lambda call: call.duration, reverse=True)]
        for name, tests in (("skipped", sorted(skipped)), ("slow", slow)):
            (folder / name).write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if other_systems.imitated and item.get_closest_marker("kernel_sandbox"):
        pytest.skip("needs the kernel sandbox of Linux")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """On an imitated system, skip what needs the kernel of Linux; nothing else may fail."""
    report = yield
    if other_systems.imitated and call.excinfo and report.failed:
        text = "\n".join([report.longreprtext, report.capstdout, report.capstderr, report.caplog])
        if reason := other_systems.unavailable(call.excinfo.value, text):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """On an imitated system, skip modules of tests that need the kernel of Linux."""
    report = yield
    call: Any = getattr(report, "call", None)
    if other_systems.imitated and report.failed and call is not None:
        reason = other_systems.unavailable(call.excinfo.value, report.longreprtext)
        if reason:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: {reason}")
    return report


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three workers for two cores, since some tests wait; none for a test that is named."""
    if is_named(config):
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(2, min(cores * 3 // 2, 8))


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove API keys and settings of the user, so that no test uses a paid service."""
    for name in list(os.environ):
        if (
            name.startswith(("OPENAI_", "LANGSMITH_", "LANGCHAIN_", "CODE_CHAINS_MODEL"))
            and name != "CODE_CHAINS_MODELS"
        ):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _small_model() -> Iterator[None]:
    """Whatever memory and disk allow, `local` is the small model, also in programs that the tests start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODE_CHAINS_LOCAL", "0.5b")
        yield


@pytest.fixture(autouse=True)
def _no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions of the tests are not among those of the user."""
    monkeypatch.setenv("CODE_CHAINS_LOG", "0")


@pytest.fixture(autouse=True)
def _no_libraries_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of one test alone loads no libraries ahead unless the test names them; programs import what they need."""
    monkeypatch.setitem(SandboxExecutor.__init__.__kwdefaults__ or {}, "preload", ())


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=10), preload=()) as executor:
        yield executor


PatchInside = Callable[[str, str, str], None]


@pytest.fixture
def patch_inside(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> PatchInside:
    """Patch what runs inside the sandbox: a module, a text in it, and its replacement."""
    copy = tmp_path_factory.mktemp("changed") / "executors"
    shutil.copytree(launchers.PACKAGE_FOLDER, copy)
    for folder in (copy, *copy.parents[:2]):
        folder.chmod(0o755)
    monkeypatch.setattr(launchers, "PACKAGE_FOLDER", copy)

    def replace(module: str, old: str, new: str) -> None:
        [path] = (copy / "guest").rglob(f"{module}.py")
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))

    return replace


@contextlib.contextmanager
def room(size: int) -> Iterator[None]:
    """No file may be larger: what exceeds it is written in part, and then not at all, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


KERNEL_LAUNCHERS = ["bubblewrap", "namespaces"]


@pytest.fixture(params=KERNEL_LAUNCHERS)
def launcher(request: pytest.FixtureRequest) -> str:
    return available(request.param)


def available(launcher: str) -> str:
    if launcher == "bubblewrap" and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    return launcher


@pytest.fixture
def model() -> ScriptedModel:
    """A model with one program and one answer."""
    from code_chains.testing import ScriptedModel, asks_for_code

    return ScriptedModel(
        lambda messages: f"```python\n{SUM_CODE}\n```" if asks_for_code(messages) else SUM_ANSWER
    )


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text("region,amount\nnorth,10\nsouth,32\n")
    return path


def descendants() -> set[int]:
    """Return the living descendants of this process, but for supervisors that wait for another program, and templates."""
    return {pid for pid in everything() - waiting_supervisors() if not is_template(pid)}


def everything() -> set[int]:
    """Return all living descendants of this process."""
    parents: dict[int, tuple[int, str]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                state, parent = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            parents[int(name)] = (int(parent), state)
    pids: set[int] = set()
    generation = {os.getpid()}
    while generation:
        children = {pid for pid, (parent, state) in parents.items() if parent in generation and state != "Z"}
        generation = children - pids
        pids |= generation
    return pids


def is_template(pid: int) -> bool:
    """Return whether a process has no capabilities, and its children alone are in another pid namespace."""
    try:
        own, of_children = (os.readlink(f"/proc/{pid}/ns/{name}") for name in ("pid", "pid_for_children"))
        return own != of_children and "CapEff:\t0000000000000000" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def waiting_supervisors() -> set[int]:
    pidfds = [fork.supervisor.pidfd for pool in [*_pools] for fork in [*pool._resources.spent]]
    found = set()
    for pidfd in pidfds:
        with contextlib.suppress(OSError):
            found.add(pid_of(pidfd) if pidfd is not None else 0)
    return found


def at_rest() -> int:
    """Return the number of descendants once it is stable, and the sandboxes that stand ready have been built."""
    soon(lambda: all(is_built(fork) for pool in [*_pools] for fork in [*pool._resources.idle]), 20)
    counts = [-1]
    while len(counts) < 8 or len(set(counts[-6:])) > 1:  # Long enough for a fork on a busy machine.
        counts.append(len(descendants()))
        time.sleep(0.03)
    return counts[-1]


def is_built(fork: Fork) -> bool:
    for descriptor in fork.descriptors:
        fork.read(descriptor)
    return fork.is_started()


def soon(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Return whether a condition becomes true within a timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@dataclass
class OpenAI:
    """A server with OpenAI's protocol on loopback. A script replies, unless a fault is due.

    Attributes:
        server: The HTTP server.
        path: The path below which the protocol is served.
        script: `messages -> reply`.
        faults: Faults for the next requests, one each: a status such as `429`, `hang`, `cut`, `json`,
            `length`; any other text is the message of a refusal.
        requests: Bodies of all requests so far.
    """

    server: HTTPServer
    script: Callable[[list[dict[str, Any]]], str]
    path: str = "/v1"
    faults: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def base_url(self) -> str:
        return self.server.url_for(self.path)

    def answer(self, request: Request) -> Response:
        body = json.loads(request.get_data())
        self.requests.append(body)
        fault = self.faults.pop(0) if self.faults else ""
        if fault.isdigit():
            error = {"error": {"message": f"fault {fault}", "type": "fault", "code": fault}}
            return Response(
                json.dumps(error), int(fault), {"retry-after-ms": "10"}, content_type="application/json"
            )
        if fault and fault not in ("hang", "cut", "json", "length"):
            return Response(json.dumps({"error": {"message": fault}}), 400, content_type="application/json")
        if fault == "hang":
            time.sleep(4)
        if fault == "json":
            return Response("{not json", content_type="application/json")
        text = self.script(body["messages"])
        return self._stream(text, fault) if body.get("stream") else self._whole(text, fault)

    def _whole(self, text: str, fault: str) -> Response:
        reason = {"cut": None, "length": "length"}.get(fault, "stop")
        text = text[: len(text) // 2] if fault in ("cut", "length") else text
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "test",
            "choices": [choice],
            "usage": usage,
        }
        return Response(json.dumps(body), content_type="application/json")

    def _stream(self, text: str, fault: str) -> Response:
        def chunks() -> Iterator[str]:
            words = text.replace(" ", " \0").split("\0")
            for word in words[: len(words) // 2] if fault == "cut" else words:
                yield _event(
                    {"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}
                )
            if fault != "cut":
                reason = "length" if fault == "length" else "stop"
                yield _event({"index": 0, "delta": {}, "finish_reason": reason})
                yield _event(None, {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
                yield "data: [DONE]\n\n"

        return Response(chunks(), content_type="text/event-stream")


def _event(choice: dict[str, Any] | None, usage: dict[str, int] | None = None) -> str:
    body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "test", "usage": usage}
    return f"data: {json.dumps({**body, 'choices': [choice] if choice else []})}\n\n"


@pytest.fixture(scope="session")
def http_server() -> Iterator[HTTPServer]:
    """One server for all tests: stopping one takes half a second."""
    with HTTPServer(host="127.0.0.1", threaded=True) as server:
        yield server


@pytest.fixture
def openai_server(http_server: HTTPServer) -> Iterator[OpenAI]:
    def script(messages: list[dict[str, Any]]) -> str:
        has_output = "Output of the program:" in str(messages[-1]["content"])
        return SUM_ANSWER if has_output else f"```python\n{SUM_CODE}\n```"

    # A path of its own, so that no late request of an earlier test is counted.
    openai = OpenAI(http_server, script, path=f"/{secrets.token_hex(8)}/v1")
    http_server.expect_request(f"{openai.path}/chat/completions").respond_with_handler(openai.answer)
    yield openai
    http_server.clear()


@pytest.fixture
def redis_store(tmp_path: Path) -> Iterator[BaseStore[str, bytes]]:
    """LangChain's store with a real Redis server."""
    from langchain_community.storage import RedisStore
    from redis import Redis

    program = shutil.which("redis-server")
    if not program:
        pytest.skip("redis-server is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    settings = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
        "--dir",
        str(tmp_path),
    ]
    with subprocess.Popen([program, *settings], stdout=subprocess.DEVNULL) as server:
        try:
            assert soon(lambda: _listens(port))
            with Redis.from_url(f"redis://127.0.0.1:{port}") as client:
                yield RedisStore(client=client, namespace="code_chains", ttl=60)
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, for the tests of the page."""
    from tests.support.page_browser import running_browser  # Heavy, and other tests need none.

    with running_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def profile(browser: Any) -> Iterator[Any]:
    """A context of the browser that shares scripts between tests: its first page keeps alive who has compiled them."""
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        context.new_page()
        yield context


@pytest.fixture
def host() -> Iterator[test_escapes.Host]:
    """Canaries that no program may reach."""
    from tests.attacks import test_escapes

    host = test_escapes.Host()
    yield host
    host.close()
