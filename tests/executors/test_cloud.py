"""Executors by the name of a service: real clients against doubles on loopback, and a service that misbehaves."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import format_exception
from typing import Any, ClassVar

import pytest

from code_chains import create_code_chain
from code_chains.deepagents import SandboxBackend
from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors import CloudExecutor, Limits, Session
from code_chains.executors.remote import cloud as cloud_executor
from code_chains.executors.remote import server
from code_chains.executors.remote.cloud_service import HostedSandbox, Service
from code_chains.executors.remote.protocol_sandbox import SandboxProtocol
from code_chains.testing import ExecutorContract, ScriptedModel, SessionContract, asks_for_code
from tests.conftest import ROOT
from tests.support.cloud_servers import KEY, serving
from tests.support.cloud_servers import Service as Double
from tests.support.daytona_server import Daytona
from tests.support.e2b_server import E2B
from tests.support.persistent_sandbox import PersistentSandbox

LIMITS = Limits(seconds=3, memory="256M", output="64K", processes=16, disk="8M", artifacts="1M")
SERVICES = ["e2b", "daytona"]
KEYS = {
    "e2b": ["E2B_API_KEY"],
    "daytona": ["DAYTONA_API_KEY"],
    "modal": ["MODAL_TOKEN_ID", "MODAL_TOKEN_SECRET"],
}


@pytest.fixture(autouse=True)
def _no_accounts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the accounts of the user, so that no test uses a paid service."""
    for name in [name for name in os.environ if name.startswith(("E2B_", "DAYTONA_", "MODAL_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MODAL_CONFIG_PATH", str(tmp_path / "modal.toml"))


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    limits = Limits(seconds=60, memory="1G", processes=128, disk="256M", output="8M")
    with SandboxBackend(limits=limits) as backend:
        yield backend


def needs_client(name: str) -> None:
    """Skip a test whose client is not installed; the three do not go with all that developers need."""
    pytest.importorskip(f"langchain_{name}", reason=f'pip install -e ".[{name}]"')


def point(monkeypatch: pytest.MonkeyPatch, name: str, url: str, key: str = KEY) -> None:
    """Let the client of a service use a double."""
    variables = {
        "e2b": {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_HTTP_VERSION": "1.1"},
        "daytona": {"DAYTONA_API_URL": url},
    }[name]
    for variable, value in {**variables, **dict.fromkeys(KEYS[name], key)}.items():
        monkeypatch.setenv(variable, value)


@pytest.fixture
def service(
    request: pytest.FixtureRequest, backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Double]:
    """The double of a service, named by the test, which its real client uses."""
    with serving_double(
        getattr(request, "param", None) or request.cls.service, backend, monkeypatch
    ) as double:
        yield double


@contextmanager
def serving_double(name: str, backend: SandboxProtocol, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    needs_client(name)
    double = E2B(backend) if name == "e2b" else Daytona(backend)
    with serving(double):
        point(monkeypatch, name, double.url)
        yield double


@pytest.fixture(scope="module")
def persistent() -> Iterator[PersistentSandbox]:
    with PersistentSandbox() as backend:
        yield backend


@pytest.fixture
def lasting(
    request: pytest.FixtureRequest, persistent: PersistentSandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Double]:
    """The double of a service whose processes outlive their command, as those of the services do."""
    name = getattr(request, "param", None) or request.cls.service
    with serving_double(name, persistent, monkeypatch) as double:
        yield double


both = pytest.mark.parametrize(("service", "name"), [(name, name) for name in SERVICES], indirect=["service"])


class CloudContract(ExecutorContract):
    """The contract of executors, through the client of a service."""

    service: str

    @pytest.fixture
    def executor(self, request: pytest.FixtureRequest, service: Double) -> Iterator[CloudExecutor]:
        # The double ends what a command leaves running; sessions have a contract of their own below.
        with CloudExecutor(request.cls.service, limits=LIMITS, max_sessions=0) as executor:
            yield executor


class TestE2B(CloudContract):
    service = "e2b"


class TestDaytona(CloudContract):
    service = "daytona"


class CloudSessionContract(SessionContract):
    """The contract of sessions, through the client of a service."""

    service: str

    @pytest.fixture
    def session(self, request: pytest.FixtureRequest, lasting: Double) -> Iterator[Session]:
        with CloudExecutor(request.cls.service, limits=LIMITS) as executor, executor.session() as session:
            yield session


class TestE2BSessions(CloudSessionContract):
    service = "e2b"


class TestDaytonaSessions(CloudSessionContract):
    service = "daytona"


stateful = pytest.mark.parametrize(
    ("lasting", "name"), [(name, name) for name in SERVICES], indirect=["lasting"]
)


@stateful
def test_a_cell_that_fails_or_does_not_end_has_no_effect_on_the_session(lasting: Double, name: str) -> None:
    with CloudExecutor(name, limits=LIMITS) as executor, executor.session() as session:
        session.run("x = 1")
        failures = [
            session.run(f"x = 2\n{code}").status
            for code in ("1 / 0", "while True: pass", "import os; os._exit(0)")
        ]
        assert (failures, session.run("x").result) == (["error", "timeout", "killed"], "1")


@stateful
def test_a_session_ends_with_its_sandbox_and_the_next_one_gets_another(lasting: Double, name: str) -> None:
    with CloudExecutor(name, limits=LIMITS) as executor:
        session = executor.session()
        session.run("x = 1")
        lasting.live.clear()
        with pytest.raises(ExecutorError):
            session.run("x")
        assert not session.alive
        with executor.session() as another:
            assert another.run("6 * 7").result == "42"
    assert (len(lasting.created), lasting.live) == (2, set())
    lasting.backend.execute("rm -rf /tmp/code_chains-*")


@stateful
def test_a_conversation_at_a_service_keeps_its_variables(
    lasting: Double, name: Any, persistent: PersistentSandbox
) -> None:
    def reply(messages: list[Any]) -> str:
        if not asks_for_code(messages):
            return "Here it is."
        if "one more" in str(messages[-1].text):
            return "```python\nprint(total + 1)\n```"
        return "```python\ntotal = 6 * 7\nprint(total)\n```"

    with create_code_chain(ScriptedModel(reply), executor=name, limits=LIMITS) as chain:
        chain.invoke({"query": "What is 6 times 7?", "session_id": "ann"})
        assert chain.invoke({"query": "And one more?", "session_id": "ann"})["output"] == "43"
    assert lasting.live == set()


def counting_model(calls: list[str]) -> ScriptedModel:
    """Return a model that answers one question, and counts how often it is asked."""

    def reply(messages: list[Any]) -> str:
        calls.append("")
        return "```python\nprint(6 * 7)\n```" if asks_for_code(messages) else "It is 42."

    return ScriptedModel(reply)


@both
def test_a_chain_creates_a_sandbox_when_it_is_asked_and_deletes_it_when_it_is_closed(
    service: Double, name: Any
) -> None:
    with create_code_chain(counting_model([]), executor=name, limits=LIMITS) as chain:
        assert service.live == set()
        assert chain.invoke({"query": "What is 6 times 7?"})["answer"] == "It is 42."
        assert len(service.live) == 1
    assert (service.live, len(service.created)) == (set(), 1)


@both
def test_the_network_is_asked_to_be_blocked_unless_it_is_wanted(service: Double, name: str) -> None:
    for network in (False, True):
        with CloudExecutor(name, limits=LIMITS, network=network) as executor:
            executor.warm_up()
    key, blocked = {"e2b": ("allow_internet_access", False), "daytona": ("networkBlockAll", True)}[name]
    assert [body[key] for body in service.created] == [blocked, not blocked]


@both
def test_large_files_and_names_with_spaces_and_umlauts_come_in_and_go_out(service: Double, name: str) -> None:
    content = os.urandom(300_000)
    with CloudExecutor(name, limits=LIMITS) as executor:
        done = executor.run(
            "open('ü b.bin', 'wb').write(open('my däta.bin', 'rb').read())", files={"my däta.bin": content}
        )
    assert [(file.name, file.data) for file in done.artifacts] == [("ü b.bin", content)]
    assert "code_chains-" not in service.backend.execute("ls /tmp").output


@both
def test_a_refused_key_is_an_error_before_a_model_is_paid(
    service: Double, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    point(monkeypatch, name, service.url, "secret-but-wrong")
    with (
        create_code_chain(counting_model(calls), executor=name) as chain,
        pytest.raises(ConfigurationError, match=f"executor='{name}'.*has refused this one") as caught,
    ):
        chain.invoke({"query": "What is 6 times 7?"})
    assert (calls, "secret" in "".join(format_exception(caught.value))) == ([], False)


@pytest.mark.parametrize("name", SERVICES)
def test_an_unreachable_service_is_an_error_in_bounded_time_before_a_model_is_paid(
    name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_client(name)
    monkeypatch.setattr("code_chains.executors.remote.protocol_sandbox.ANSWER_TIMEOUT_S", 1.0)
    monkeypatch.setattr(cloud_executor, "CREATE_S", 4.0)
    point(monkeypatch, name, "http://127.0.0.1:9")
    calls: list[str] = []
    started = time.monotonic()
    with (
        create_code_chain(counting_model(calls), executor=name) as chain,
        pytest.raises(ExecutorError, match=r"create failed|did not answer in time \(create\)"),
    ):
        chain.invoke({"query": "What is 6 times 7?"})
    assert (calls, time.monotonic() - started < 20) == ([], True)


MODAL = """
import time
from code_chains.errors import CodeChainsError
from code_chains.executors import CloudExecutor
from code_chains.executors.remote import protocol_sandbox
from code_chains.executors.remote import cloud as executor
protocol_sandbox.ANSWER_TIMEOUT_S, executor.CREATE_S = 1, 9
try:
    CloudExecutor("modal").run("1")
except CodeChainsError as error:
    print(type(error).__name__, error)
"""


def test_modal_that_refuses_a_key_or_cannot_be_reached_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    needs_client("modal")
    monkeypatch.setenv("MODAL_TOKEN_ID", "ak-secret")
    monkeypatch.setenv("MODAL_TOKEN_SECRET", "as-secret")
    monkeypatch.setenv("MODAL_SERVER_URL", "http://127.0.0.1:9")
    program = [sys.executable, "-c", MODAL]
    double = [sys.executable, "-m", "tests.support.modal_server"]
    refused, unreachable = (
        subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=True).stdout
        for command in ([*double, *program], program)
    )
    assert "ConfigurationError Invalid executor='modal'" in refused
    assert "has refused this one" in refused
    assert unreachable.startswith("ExecutorError Modal")
    assert "secret" not in refused + unreachable


@both
def test_a_sandbox_that_the_service_has_ended_is_replaced_by_the_next_run(service: Double, name: str) -> None:
    with CloudExecutor(name, limits=LIMITS) as executor:
        executor.run("1")
        service.live.clear()
        with pytest.raises(ExecutorError):
            executor.run("1")
        assert executor.run("6 * 7").result == "42"
    assert (len(service.created), service.live) == (2, set())


@both
def test_nothing_is_left_behind_by_an_application_that_ends_without_closing(
    service: Double, name: str
) -> None:
    program = (
        f"from code_chains.executors import CloudExecutor\nexecutor = CloudExecutor({name!r})\n"
        "executor.warm_up()\nraise SystemExit(3)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert (done.returncode, len(service.created), service.live) == (3, 1, set())


@pytest.mark.parametrize("name", KEYS)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"langchain_{name}", None)
    with pytest.raises(ConfigurationError, match=rf'executor=\'{name}\'.*pip install -e "\.\[{name}\]"'):
        create_code_chain(counting_model([]), executor=name)


@pytest.mark.parametrize("key", ["", "secret\nX-Injected: 1", "secrét"])
@pytest.mark.parametrize("name", KEYS)
def test_a_missing_or_malformed_key_is_an_error_that_names_the_variable_alone(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_client(name)
    for variable in KEYS[name] if key else ():
        monkeypatch.setenv(variable, key)
    with pytest.raises(ConfigurationError, match=KEYS[name][0]) as caught:
        create_code_chain(counting_model([]), executor=name)
    assert "secr" not in str(caught.value)


# -- a service that misbehaves -------------------------------------------------------------------------------------------


class RefusedError(Exception):
    """What the service raises for a wrong key."""


class Unreliable(Service):
    """A service whose calls do what a test says."""

    name, title, key_variables = "unreliable", "Unreliable", ("UNRELIABLE_KEY",)
    backend: SandboxBackend
    live: ClassVar[list[int]]
    creates: Callable[[], object] = staticmethod(lambda: None)
    deletes: Callable[[], object] = staticmethod(lambda: None)
    extends: Callable[[], object] = staticmethod(lambda: None)

    def _load(self) -> None:
        pass

    def is_wrong_key(self, error: Exception) -> bool:
        return isinstance(error, RefusedError)

    def create(self, seconds: int, *, network: bool) -> HostedSandbox:
        type(self).creates()
        name = id(object())
        self.live.append(name)

        def delete() -> None:
            self.live.remove(name)
            type(self).deletes()

        return HostedSandbox(self.backend, delete, lambda: type(self).extends())


@pytest.fixture
def unreliable(backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch) -> type[Unreliable]:
    class Fresh(Unreliable):
        live: ClassVar[list[int]] = []

    Fresh.backend = backend
    monkeypatch.setattr(cloud_executor, "HOSTED", {"unreliable": ""})
    monkeypatch.setattr(cloud_executor, "load", lambda target: Fresh)
    monkeypatch.setenv("UNRELIABLE_KEY", "secret-key")
    return Fresh


def raises(error: Exception) -> Callable[[], object]:
    def call() -> object:
        raise error

    return staticmethod(call)


def test_a_key_in_the_message_of_a_service_is_not_shown(unreliable: type[Unreliable]) -> None:
    unreliable.creates = raises(ValueError("no quota for secret-key"))
    with (
        CloudExecutor("unreliable") as executor,
        pytest.raises(
            ExecutorError, match=r"Unreliable\.create failed: ValueError: no quota for …"
        ) as caught,
    ):
        executor.run("1")
    assert "secret-key" not in "".join(format_exception(caught.value))


def test_what_failed_before_a_model_was_asked_is_tried_again_for_the_next_question(
    unreliable: type[Unreliable],
) -> None:
    unreliable.creates = raises(OSError("no route"))
    calls: list[str] = []
    with CloudExecutor("unreliable", limits=LIMITS) as executor:
        chain = create_code_chain(counting_model(calls), executor=executor)
        with pytest.raises(ExecutorError, match="no route"):
            chain.invoke({"query": "What is 6 times 7?"})
        assert calls == []
        unreliable.creates = staticmethod(lambda: None)
        assert chain.invoke({"query": "What is 6 times 7?"})["answer"] == "It is 42."
    assert unreliable.live == []


@pytest.mark.slow
def test_runs_at_the_same_time_share_one_sandbox(unreliable: type[Unreliable]) -> None:
    created: list[int] = []

    def create() -> None:
        created.append(1)
        time.sleep(0.3)

    unreliable.creates = staticmethod(create)
    with CloudExecutor("unreliable", limits=LIMITS) as executor:
        threads = [threading.Thread(target=executor.run, args=("1",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(created), unreliable.live) == (1, [])


def test_a_sandbox_that_is_created_while_the_executor_is_closed_is_deleted(
    unreliable: type[Unreliable],
) -> None:
    executor = CloudExecutor("unreliable", limits=LIMITS)
    unreliable.creates = staticmethod(executor.close)
    with pytest.raises(ExecutorError, match="closed during the operation"):
        executor.run("1")
    assert unreliable.live == []


def test_a_service_that_never_answers_is_not_waited_for(
    unreliable: type[Unreliable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("code_chains.executors.remote.protocol_sandbox.ANSWER_TIMEOUT_S", 0.1)
    monkeypatch.setattr(cloud_executor, "CREATE_S", 0.1)
    unreliable.creates = staticmethod(lambda: time.sleep(6))
    started = time.monotonic()
    with (
        CloudExecutor("unreliable") as executor,
        pytest.raises(ExecutorError, match=r"Unreliable did not answer in time \(create\)"),
    ):
        executor.run("1")
    assert time.monotonic() - started < 5


def test_a_sandbox_in_use_is_kept_and_one_that_cannot_be_is_replaced(
    unreliable: type[Unreliable], monkeypatch: pytest.MonkeyPatch
) -> None:
    extended: list[int] = []
    unreliable.extends = staticmethod(lambda: extended.append(1))
    monkeypatch.setattr("code_chains.executors.remote.cloud_sandbox.EXTEND_S", 0.0)
    with CloudExecutor("unreliable", limits=LIMITS) as executor:
        executor.warm_up()
        executor.warm_up()
        first = [*unreliable.live]
        unreliable.extends = raises(OSError("it is gone"))
        executor.warm_up()
        assert (len(extended), len(unreliable.live), unreliable.live == first) == (1, 1, False)


def test_closing_never_fails(unreliable: type[Unreliable]) -> None:
    unreliable.deletes = raises(OSError("no route"))
    with CloudExecutor("unreliable", limits=LIMITS) as executor:
        executor.warm_up()


def test_an_unknown_service_and_a_missing_key_are_named(
    unreliable: type[Unreliable], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"service='fly'.*'unreliable'"):
        CloudExecutor("fly")
    monkeypatch.delenv("UNRELIABLE_KEY")
    with pytest.raises(ConfigurationError, match="UNRELIABLE_KEY must be set"):
        CloudExecutor("unreliable")


@pytest.mark.slow
@pytest.mark.parametrize(("lasting", "name"), [(name, name) for name in SERVICES], indirect=["lasting"])
def test_programs_call_tools_are_watched_and_tested_through_the_client(lasting: Double, name: str) -> None:
    def price(sku: str) -> int:
        """Return the price of an article."""
        return len(sku)

    with CloudExecutor(name, limits=LIMITS) as executor:
        assert executor.run("price('abc')", tools=[price]).result == "3"
        *parts, done = executor.stream("import time\nprint(1, flush=True)\ntime.sleep(1)\nprint(2)")
        assert not isinstance(done, str)
        assert (done.stdout, parts[0]) == ("1\n2\n", "1\n")
        runs = executor.run_tests("def double(x):\n    return 2 * x", "assert double(4) == 8")
        assert [run.status for run in runs] == ["ok", "ok"], runs[1].error


@pytest.mark.slow
@pytest.mark.parametrize(("lasting", "name"), [("e2b", "e2b")], indirect=["lasting"])
def test_a_sandbox_whose_supervisor_was_killed_is_not_used_again(
    lasting: Double, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONFINES", False)  # What is confined cannot kill it.
    kill = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time; time.sleep(5)"
    with CloudExecutor(name, limits=LIMITS) as executor:
        assert executor.run("1 + 1").result == "2"
        created = len(lasting.created)
        assert executor.run(kill).status == "killed"
        assert executor.run("1 + 2").result == "3"
        assert len(lasting.created) == created + 1
