"""The kernel sandbox as a backend of Deep Agents: LangChain's own suite, escapes through its shell, and what it promises."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import pytest
from deepagents.backends.protocol import GlobResult, WriteResult
from langchain_tests.integration_tests import SandboxIntegrationTests

from code_chains.deepagents import SandboxBackend
from code_chains.errors import ConfigurationError, ExecutorError, InputError, SessionError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.state import Execution
from tests.attacks import test_escapes
from tests.conftest import KERNEL_LAUNCHERS, at_rest, available, descendants, soon
from tests.support.other_user import OtherUser

LIMITS = Limits(seconds=3, memory="512M", output="64K", processes=64, disk="16M", files=500)
HAS_CHANGED = tuple(map(int, version("deepagents").split(".")[:2])) >= (0, 7)
"""Since 0.7 backends overwrite files, and find files alone with absolute paths; langchain-tests 1.1.9 expects neither."""


class BackendBefore07(SandboxBackend):
    """Writes and finds files as backends did before Deep Agents 0.7."""

    def write(self, file_path: str, content: str) -> WriteResult:
        """Refuse to overwrite a file."""
        if self.execute(f"test -e {shlex.quote(file_path)}").exit_code == 0:
            return WriteResult(error=f"The file {file_path} already exists.")
        return super().write(file_path, content)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Return paths relative to the folder, folders among them."""
        found = super().glob(pattern, path)
        if pattern == "*" and path is not None:
            found = GlobResult(matches=self.ls(path).entries)
        for match in found.matches or []:
            match["path"] = match["path"].removeprefix(f"{path}/")
        return found


@pytest.mark.filterwarnings("ignore:Class-scoped fixture")
@pytest.mark.slow
class TestStandard(SandboxIntegrationTests):
    """The contract of LangChain's sandboxes."""

    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[SandboxBackend]:
        """Yield a backend."""
        with BackendBefore07() if HAS_CHANGED else SandboxBackend() as backend:
            yield backend


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    with SandboxBackend(limits=LIMITS) as backend:
        yield backend


@pytest.mark.attack
@pytest.mark.parametrize("program", test_escapes.held_beside_commands())
def test_no_known_technique_escapes_through_the_shell(
    backend: SandboxBackend, host: test_escapes.Host, program: str
) -> None:
    told = f"import json\nhost = json.loads({json.dumps(host.told())!r})\n"
    backend.upload_files([("/box/program.py", (told + test_escapes.PRELUDE + program).encode())])
    output = backend.execute("python3 program.py", timeout=2).output
    assert [line for line in output.splitlines() if "GRANTED" in line] == []
    assert host.harm(Execution("ok", stdout=output)) == []


def test_a_command_reports_its_output_in_order_and_its_exit_code(backend: SandboxBackend) -> None:
    response = backend.execute("echo one; echo two >&2; echo three; exit 3")
    assert (response.output, response.exit_code, response.truncated) == ("one\ntwo\nthree\n", 3, False)


def test_files_stay_and_processes_do_not(backend: SandboxBackend) -> None:
    backend.execute("echo kept > file.txt; cd /tmp; sleep 60 & export X=1")
    response = backend.execute("cat file.txt; pwd; echo -$X-; pgrep sleep")
    assert (response.output, response.exit_code) == ("kept\n/box\n--\n", 1)


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended_and_keeps_its_output(backend: SandboxBackend) -> None:
    started = time.monotonic()
    for timeout in (1, None, 10**9):
        response = backend.execute("echo begun; touch made; sleep 60", timeout=timeout)
        assert response.exit_code == 124
        assert response.output.startswith("begun\nThe command was ended after")
    assert time.monotonic() - started < 4 * LIMITS.seconds
    assert backend.execute("ls made").exit_code == 0


def test_long_output_is_cut_and_says_so(backend: SandboxBackend) -> None:
    response = backend.execute("yes x | head -c 100000")
    assert (len(response.output), response.exit_code, response.truncated) == (64 << 10, 0, True)


@pytest.mark.parametrize(
    "command",
    ["yes | head -c 100M > big", "python3 -c \"x = b'x' * (900 << 20)\"", ":(){ :|:& };:; false"],
    ids=["disk", "memory", "processes"],
)
def test_a_command_beyond_a_limit_neither_harms_nor_ends_the_backend(
    backend: SandboxBackend, command: str
) -> None:
    backend.execute("echo 1 > before")
    assert backend.execute(command).exit_code != 0
    assert backend.execute("cat before; rm -f big").output == "1\n"


def test_setuid_programs_give_no_rights(backend: SandboxBackend) -> None:
    response = backend.execute(
        "grep NoNewPrivs /proc/self/status; su -c 'id -u'; mount -t tmpfs none /tmp; id -u"
    )
    assert "NoNewPrivs:\t1" in response.output
    assert response.output.splitlines()[-1] == "1000"


def test_a_rollback_undoes_the_last_command(backend: SandboxBackend) -> None:
    backend.execute("echo 1 > state")
    backend.execute("echo 2 > state")
    backend.rollback()
    assert backend.execute("cat state").output == "1\n"


def test_files_of_any_content_come_back_and_errors_are_values(backend: SandboxBackend) -> None:
    content = bytes(range(256)) * 100
    names = ["/tmp/a b", "/box/ünï/文件.bin", "/usr/x", "/dev/null/x", "/tmp", "relative", "/tmp/\0"]
    errors = [response.error for response in backend.upload_files([(name, content) for name in names])]
    assert errors == [
        None,
        None,
        "permission_denied",
        "invalid_path",
        "is_directory",
        "invalid_path",
        "invalid_path",
    ]
    found = backend.download_files([*names[:2], "/tmp/none", "/tmp", "relative"])
    assert [(one.content == content, one.error) for one in found] == [
        (True, None),
        (True, None),
        (False, "file_not_found"),
        (False, "is_directory"),
        (False, "invalid_path"),
    ]


def test_threads_and_tasks_share_a_backend(backend: SandboxBackend) -> None:
    def number(one: int) -> str:
        return backend.execute(f"echo {one} >> numbers; echo {one}").output

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(number, range(8))) == [f"{one}\n" for one in range(8)]

    async def ask() -> list[Any]:
        return await asyncio.gather(*(backend.aexecute(f"echo {one}") for one in range(4)))

    assert [response.output for response in asyncio.run(ask())] == [f"{one}\n" for one in range(4)]
    assert backend.execute("wc -l < numbers").output.strip() == "8"


def test_a_lost_session_is_an_error_ever_after() -> None:
    with SandboxExecutor(limits=LIMITS, preload=(), commands=True) as executor:
        backend = SandboxBackend(executor)
        backend.execute("touch file")
        session: Any = backend._shell._session
        session.close()
        for ask in (
            lambda: backend.execute("ls"),
            lambda: backend.ls("/box"),
            lambda: backend.download_files(["/x"]),
        ):
            with pytest.raises(SessionError, match="has ended"):
                ask()
        backend.close()
        assert executor.run("1 + 1").result == "2"  # Who made it closes it.


@pytest.mark.slow
def test_closing_ends_what_is_running_and_a_closed_backend_says_so() -> None:
    backend = SandboxBackend(limits=Limits(seconds=30))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(backend.execute, "sleep 20")
        time.sleep(1)
        started = time.monotonic()
        backend.close()
        assert isinstance(running.exception(), ExecutorError)
    assert time.monotonic() - started < 5
    for ask in (lambda: backend.execute("ls"), lambda: backend.upload_files([("/x", b"")]), backend.rollback):
        with pytest.raises(SessionError, match="closed"):
            ask()


def test_a_long_command_is_run_as_well(backend: SandboxBackend) -> None:
    response = backend.execute(f"echo {'a' * 300_000} | wc -c; exit 7")
    assert (response.output, response.exit_code) == ("300001\n", 7)


def test_large_files_pass_and_larger_ones_are_errors_of_their_own() -> None:
    content = bytes(range(256)) * 4096
    limits = Limits(seconds=20, disk="64M", artifacts="4M", memory="1G")
    with SandboxBackend(limits=limits) as backend:
        files = [("/tmp/a", content), ("/tmp/b", content * 3), ("/tmp/c", b""), ("/tmp/d", content * 70)]
        assert [one.error for one in backend.upload_files(files)][:3] == [None] * 3
        found = backend.download_files(["/tmp/a", "/tmp/b", "/tmp/c"])
        assert [one.content == data for one, (_, data) in zip(found, files, strict=False)] == [
            True,
            False,
            True,
        ]
        assert "larger than" in str(found[1].error)
        assert "larger than" in str(backend.upload_files(files[3:])[0].error)
        # What a command leaves in the working directory takes no room of what it returns.
        backend.execute("head -c 3M /dev/urandom > big")
        assert len(backend.execute("seq 100000").output) > 500_000


def test_a_pipe_is_no_file_and_holds_nobody_up(backend: SandboxBackend) -> None:
    backend.execute("mkfifo /tmp/pipe")
    assert backend.download_files(["/tmp/pipe"])[0].error == "invalid_path"


def test_killed_commands_have_the_exit_codes_of_a_shell(backend: SandboxBackend) -> None:
    assert [backend.execute(f"kill -{number} $$").exit_code for number in (9, 15)] == [137, 143]


@pytest.mark.parametrize(
    "ask",
    [
        lambda backend: backend.execute(None),
        lambda backend: backend.execute("echo \0"),
        lambda backend: backend.execute("ls", timeout=-1),
        lambda backend: backend.execute("ls", timeout="3"),
        lambda backend: backend.upload_files([("/tmp/x", "text")]),
        lambda backend: backend.upload_files([(None, b"")]),
        lambda backend: backend.download_files("/tmp/x"),
    ],
)
def test_wrong_arguments_are_named(backend: SandboxBackend, ask: Any) -> None:
    with pytest.raises(InputError):
        ask(backend)


def test_a_closed_backend_leaves_nothing() -> None:
    at_rest()  # Other sessions fork in advance.
    before = descendants()
    with SandboxBackend(limits=LIMITS) as backend:
        backend.execute("sleep 60 &")
    assert soon(lambda: descendants() <= before)


def test_an_executor_without_commands_and_limits_given_twice_are_refused() -> None:
    with SandboxExecutor(preload=()) as executor:
        for wrong in (executor, "sandbox"):
            with pytest.raises(ConfigurationError, match="commands=True"):
                SandboxBackend(wrong)  # type: ignore[arg-type]
    with (
        SandboxExecutor(preload=(), commands=True) as executor,
        pytest.raises(ConfigurationError, match="limits"),
    ):
        SandboxBackend(executor, limits=LIMITS)


def test_an_agent_uses_files_and_shell(backend: SandboxBackend) -> None:
    from deepagents import create_deep_agent
    from langchain_core.messages import AIMessage

    from code_chains.testing import ScriptedModel

    calls = [
        ("write_file", {"file_path": "/box/sum.py", "content": "print(sum(range(1, 6)))"}),
        ("execute", {"command": "python3 /box/sum.py"}),
    ]

    def reply(messages: list[Any]) -> AIMessage:
        done = sum(message.type == "tool" for message in messages)
        if done < len(calls):
            name, arguments = calls[done]
            return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": str(done)}])
        return AIMessage(f"It is {messages[-1].text.split()[0]}.")

    class AgentModel(ScriptedModel):
        """A model that accepts tools."""

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            """Ignore them."""
            return self

    agent: Any = create_deep_agent(model=AgentModel(script=reply), backend=backend)
    answer = agent.invoke({"messages": [("user", "What is the sum of 1 to 5?")]})["messages"][-1]
    assert answer.text == "It is 15."


OPEN_PIPES = r"""
import os, subprocess, sys
OPEN = '''
import os
parent = os.getppid()
try:
    numbers = os.listdir(f"/proc/{parent}/fd")
except OSError:
    numbers = range(256)
for number in numbers:
    try:
        os.open(f"/proc/{parent}/fd/{number}", os.O_WRONLY)
    except OSError:
        continue
    print("opened", number)
'''
subprocess.run(["python3", "-c", OPEN])
print("done")
"""


@pytest.mark.attack
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
@pytest.mark.parametrize("name", KERNEL_LAUNCHERS)
def test_a_command_cannot_write_to_the_pipe_of_results(name: Any) -> None:
    available(name)
    options = {"launcher": name, "commands": True, "preload": ()}
    with SandboxExecutor(launcher=name, commands=True, preload=()) as executor:
        assert executor.run(OPEN_PIPES).stdout == "done\n"
    with OtherUser(options) as user, user.session() as session:
        for _ in range(2):
            assert session.run(OPEN_PIPES).stdout == "done\n"
