"""Programs in third-party sandboxes that call tools, are tested, or are watched: all by commands."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from code_chains.errors import ConfigurationError, ExecutorError, SessionError
from code_chains.executors import BackendExecutor, Limits
from code_chains.executors.guest.reports import MAX_REPORT_BYTES
from code_chains.executors.guest.sandbox.talk import MAX_SAID_BYTES, Talk
from code_chains.executors.guest.wire import Json
from code_chains.executors.remote import protocol_sandbox, server, server_link
from code_chains.executors.remote.protocol_sandbox import ProtocolSandbox
from code_chains.executors.remote.server_link import Clock
from code_chains.testing import ExecutorContract
from tests.support.persistent_sandbox import PersistentSandbox

pytestmark = pytest.mark.slow  # Each runs servers in a sandbox of their own.
LIMITS = Limits(
    seconds=6, memory="256M", output="64K", processes=16, disk="8M", files=100, artifacts="1M", open_files=64
)


@pytest.fixture(scope="module")
def backend() -> Iterator[PersistentSandbox]:
    with PersistentSandbox() as backend:
        yield backend


@pytest.fixture(scope="module")
def tests_backend() -> Iterator[PersistentSandbox]:
    with PersistentSandbox() as backend:
        yield backend


@pytest.fixture
def executor(backend: PersistentSandbox, tests_backend: PersistentSandbox) -> Iterator[BackendExecutor]:
    with BackendExecutor(backend, limits=LIMITS, tests_backend=tests_backend) as executor:
        yield executor


class TestContract(ExecutorContract):
    """The contract of executors with tools and hidden tests."""

    @pytest.fixture
    def executor(self, backend: PersistentSandbox, tests_backend: PersistentSandbox) -> BackendExecutor:
        return BackendExecutor(backend, limits=LIMITS, tests_backend=tests_backend)


def lookup(sku: str) -> dict[str, float]:
    """Return the price of an article."""
    return {"price": float(len(sku))}


async def slowly(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"


def test_a_program_calls_tools_many_times_and_each_call_is_recorded(executor: BackendExecutor) -> None:
    program = "sum(lookup('x' * n)['price'] for n in range(1, 11))"
    done = executor.run(program, tools=[lookup])
    assert (done.output, len(done.tool_calls)) == ("55.0", 10)


def test_a_large_argument_and_a_large_result_arrive_whole(executor: BackendExecutor) -> None:
    def double(text: str) -> str:
        """Return a text twice."""
        return text * 2

    done = executor.run("t = double('äb' * 100_000)\nlen(t), t[:4]", tools=[double])
    assert done.result == "(400000, 'äbäb')"


def test_time_that_a_tool_takes_is_not_the_programs(executor: BackendExecutor) -> None:
    def wait() -> str:
        """Wait for longer than a program may run."""
        time.sleep(LIMITS.seconds + 1)
        return "waited"

    done = executor.run("wait()", tools=[wait])
    assert done.result == "'waited'", done.error


def test_a_program_that_computes_after_a_call_still_has_a_limit(executor: BackendExecutor) -> None:
    done = executor.run("lookup('a')\nwhile True: pass", tools=[lookup])
    assert done.status == "timeout"


def test_asynchronous_tools_run_on_the_callers_loop(executor: BackendExecutor) -> None:
    done = asyncio.run(executor.arun("slowly(0.1)", tools=[slowly]))
    assert done.result == "'waited'"


def test_a_session_keeps_what_tools_returned(executor: BackendExecutor) -> None:
    with executor.session() as session:
        assert session.run("found = lookup('abc')", tools=[lookup]).ok
        assert session.run("found['price']").output == "3.0"


def test_output_comes_while_a_program_runs(executor: BackendExecutor) -> None:
    program = "import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(1)"
    began, times = time.monotonic(), list[float]()
    for part in executor.stream(program):
        if isinstance(part, str):
            times.append(time.monotonic() - began)
        else:
            done, end = part, time.monotonic() - began
    assert done.stdout == "0\n1\n2\n"
    assert times[0] < end - 1.5


def test_parts_add_up_to_the_output_of_a_run(executor: BackendExecutor) -> None:
    program = "for n in range(2000): print('ä', n)"
    *parts, done = executor.stream(program)
    whole = executor.run(program)
    assert not isinstance(done, str)
    assert whole.stdout == done.stdout
    assert done.stdout.startswith("".join(map(str, parts)))


def test_a_stream_that_is_given_up_ends_its_program(
    executor: BackendExecutor, backend: PersistentSandbox
) -> None:
    stream = executor.stream("import time\nprint('begun', flush=True)\ntime.sleep(60)")
    assert next(stream) == "begun\n"
    stream.close()
    deadline = time.monotonic() + 10
    while "code_chains-" in (left := backend.execute("ls /tmp").output) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "code_chains-" not in left


def test_hidden_tests_run_in_the_other_sandbox(executor: BackendExecutor, backend: PersistentSandbox) -> None:
    program = (
        "import os, glob\n"
        "def looks_around():\n"
        "    found = []\n"
        "    for path in glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/tmp/**', recursive=True):\n"
        "        try:\n"
        "            found.append(open(path, 'rb').read())\n"
        "        except OSError:\n"
        "            pass\n"
        "    return any(b'a secret of the tests' in data for data in found)"
    )
    tests = "expected = 'a secret of the tests' == ''\nassert looks_around() == expected"
    program_run, tests_run = executor.run_tests(program, tests)
    assert (program_run.status, tests_run.status) == ("ok", "ok"), tests_run.error


def test_wrong_programs_fail_their_tests(executor: BackendExecutor) -> None:
    _, tests_run = executor.run_tests("def double(x):\n    return x * 3", "assert double(2) == 4")
    assert tests_run.status == "error"


def test_a_tested_function_may_call_a_tool(executor: BackendExecutor) -> None:
    program = "def price(sku):\n    return lookup(sku)['price']"
    program_run, tests_run = executor.run_tests(program, "assert price('abcd') == 4.0", tools=[lookup])
    assert tests_run.ok, tests_run.error
    assert len(program_run.tool_calls) == 1


KEYS = """
import re, sys
found, frame = set(), sys._getframe()
while frame:
    found |= set(re.findall(r"[0-9a-f]{64}", str(frame.f_locals)))
    frame = frame.f_back
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
    for line in maps:
        places, rights = line.split()[:2]
        start, end = (int(place, 16) for place in places.split("-"))
        if rights[0] == "r" and "[v" not in line:
            memory.seek(start)
            found |= {key.decode() for key in re.findall(rb"[0-9a-f]{64}", memory.read(end - start))}
print(*found)
"""


@pytest.mark.parametrize("tools", [(), (lookup,)])
def test_no_program_finds_the_key_of_its_server(
    executor: BackendExecutor, monkeypatch: pytest.MonkeyPatch, tools: tuple[object, ...]
) -> None:
    keys = list[str]()

    def token(size: int) -> str:
        keys.append(os.urandom(size).hex())
        return keys[-1]

    monkeypatch.setattr("secrets.token_hex", token)
    done = executor.run(KEYS, tools=tools)
    assert done.ok, done.error
    assert not {key for key in keys if len(key) == 64} & {*done.stdout.split()}


OTHERS = """
import os, signal
pid = os.getppid()
servers = [pid, int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])]
"""


@pytest.fixture
def unconfined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONFINES", False)


FORBIDDEN = {
    "its supervisor's end": f"{OTHERS}os.kill(servers[0], signal.SIGKILL)",
    "its supervisor's stop": f"{OTHERS}os.kill(servers[0], signal.SIGSTOP)",
    "its supervisor's limits": f"{OTHERS}import resource\nresource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))",
    "its supervisor's memory": f"{OTHERS}open(f'/proc/{{pid}}/mem', 'rb').read(1)",
    "what a shell reads": "open(__import__('os').path.expanduser('~/.profile'), 'w')",
    "an interpreter for others": "import os; os.makedirs(os.path.expanduser('~/.local/bin'))",
    "a file for others": "open('/tmp/file', 'w')",
    "attributes of files of others": "import os; os.setxattr('/tmp', 'user.a', b'1')",
    "sockets with a path": "import socket; socket.socket(socket.AF_UNIX)",
    "memory that nobody counts": "open('/dev/zero', 'rb')",
    "descriptors under way": "import socket; a, b = socket.socketpair(); socket.send_fds(a, [b'a'], [0])",
    "memory for others": "import ctypes; assert ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0",
}


@pytest.mark.parametrize("program", FORBIDDEN.values(), ids=FORBIDDEN)
def test_the_kernel_of_a_sandbox_keeps_programs_from_each_other(
    executor: BackendExecutor, program: str
) -> None:
    assert executor.run(program).status == "error"
    execution = executor.run("open('own.txt', 'w').write('1')\n6 * 7")
    assert execution.isolation is not None
    assert (execution.result, execution.isolation.layers) == ("42", ("landlock", "seccomp"))


@pytest.mark.usefixtures("unconfined")
@pytest.mark.parametrize(
    "program",
    [
        f"{OTHERS}for server in servers: os.kill(server, signal.SIGKILL)\nwhile True: pass",
        f"{OTHERS}os.kill(servers[0], signal.SIGSTOP)\nwhile True: pass",
    ],
    ids=["killed", "stopped"],
)
def test_a_sandbox_in_which_a_program_may_linger_is_used_no_more(
    backend: PersistentSandbox, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(server_link, "RUN_GRACE_S", 3.0)
    with BackendExecutor(backend, limits=replace(LIMITS, seconds=1)) as executor:
        assert executor.run(program, tools=[lookup]).status == "killed"
        with pytest.raises(ExecutorError, match="Replace the sandbox"):
            executor.run("1")


@pytest.mark.usefixtures("unconfined")
def test_a_sandbox_in_which_a_session_was_killed_is_used_no_more(executor: BackendExecutor) -> None:
    with pytest.raises(SessionError):
        executor.session().run(
            f"{OTHERS}for server in servers: os.kill(server, signal.SIGKILL)\nwhile True: pass"
        )
    with pytest.raises(ExecutorError, match="Replace the sandbox"):
        executor.run("1")


@pytest.mark.usefixtures("unconfined")
def test_a_sandbox_whose_shell_was_changed_is_used_no_more(backend: PersistentSandbox) -> None:
    write = "import os\nwith open(os.path.expanduser('~/.profile'), {!r}) as file: file.write('')"
    with BackendExecutor(backend, limits=LIMITS) as executor, executor.session() as session:
        session.run("1")
        assert session.run(write.format("a")).ok
        with pytest.raises(ExecutorError, match="Replace the sandbox"):
            session.run("1")
    with BackendExecutor(backend, limits=LIMITS) as executor:
        assert executor.run("1").ok


def test_what_a_program_does_to_commands_gains_it_no_time() -> None:
    clock = Clock(10.0, 30_000.0, lambda clock: clock.transferring)
    clock.start(0.1)
    for _ in range(20):
        clock.note_said(5.0)
        clock.note_told(5.0)
    assert 10.0 < clock.left <= 10.11  # No moment counts twice.


PIPE = """
import os, time
lookup('a')
links = {n: os.readlink(f'/proc/self/fd/{n}') for n in range(3, 200) if os.path.islink(f'/proc/self/fd/{n}')}
flags = {n: open(f'/proc/self/fdinfo/{n}').read().split('flags:')[1].split()[0] for n in links}
fd = next(n for n in links if links[n].startswith('pipe') and int(flags[n], 8) & 3 == 1)
started = time.monotonic()
while time.monotonic() - started < 20:
    os.write(fd, b'\\0\\0\\0\\1x')
    now = time.monotonic()
    while time.monotonic() - now < .2: pass
"""


def test_messages_that_are_no_calls_gain_no_time(backend: PersistentSandbox) -> None:
    with BackendExecutor(backend, limits=replace(LIMITS, seconds=1)) as executor:
        began = time.monotonic()
        done = executor.run(PIPE, tools=[lookup])
    assert not done.ok
    assert time.monotonic() - began < 10


GARBLED = """
import os
for n in range(3, 100):
    try: os.write(n, b'\\xff' * 100)
    except OSError: pass
while True: pass
"""


def test_a_garbled_report_ends_a_run_with_tools_at_once_and_costs_no_sandbox(
    backend: PersistentSandbox,
) -> None:
    with BackendExecutor(backend, limits=LIMITS) as executor:
        began = time.monotonic()
        assert not executor.run(GARBLED, tools=[lookup]).ok
        assert time.monotonic() - began < 5
        assert executor.run("1").result == "1"


def test_what_nobody_answers_counts_as_no_transfer() -> None:
    clock = Clock(10.0, 30_000.0, lambda clock: clock.transferring)
    clock.start(0.1)
    for took in (5.0, 0.05, float("nan")):
        for _ in range(20):
            clock.note_said(took)
    assert 9.9 < clock.left <= 10.01


def test_refused_calls_gain_no_time(backend: PersistentSandbox) -> None:
    program = """
import threading, time
def flood():
    while True:
        try: lookup(wrong=1)
        except Exception: pass
threading.Thread(target=flood, daemon=True).start()
started = time.monotonic()
while time.monotonic() - started < 20: pass
"""
    with BackendExecutor(backend, limits=replace(LIMITS, seconds=1)) as executor:
        began = time.monotonic()
        assert not executor.run(program, tools=[lookup]).ok
    assert time.monotonic() - began < 10


def test_no_answer_during_a_run_needs_a_file() -> None:
    answers = list[Json]()
    talk = Talk(1, 0, 0.0)
    talk._said = (0, b"x" * MAX_SAID_BYTES)
    talk.listen(answers.append, 0.0)
    talk.step("\U0001f600" * 5000)
    assert answers[0]["printed"]
    assert len(json.dumps(answers[0])) < MAX_REPORT_BYTES


def test_a_command_that_prints_without_end_is_an_error_at_once(backend: PersistentSandbox) -> None:
    sandbox = ProtocolSandbox(backend, ())
    with pytest.raises(ExecutorError, match="printed more"):
        sandbox.execute("yes | head -c 1000000", 10)


def test_tests_in_the_sandbox_of_programs_are_refused(backend: PersistentSandbox) -> None:
    with pytest.raises(ConfigurationError, match="another sandbox"):
        BackendExecutor(backend, tests_backend=backend)


def test_without_a_second_sandbox_there_are_no_tests(backend: PersistentSandbox) -> None:
    with pytest.raises(ConfigurationError):
        BackendExecutor(backend).run_tests("x = 1", "assert x == 1")


STARVING = (
    OTHERS
    + """
import resource, time
if os.fork() == 0:
    os.setsid()
    time.sleep(30)
    os._exit(0)
for server in servers:
    resource.prlimit(server, resource.RLIMIT_NOFILE, (5, 5))
"""
)


@pytest.mark.usefixtures("unconfined")
def test_a_run_that_leaves_a_process_is_not_believed(backend: PersistentSandbox) -> None:
    with BackendExecutor(backend, limits=replace(LIMITS, seconds=2)) as executor:
        assert executor.run(STARVING).status == "killed"
        with pytest.raises(ExecutorError, match="Replace the sandbox"):
            executor.run("1")


async def cancelled(executor: BackendExecutor, program: str, seconds: float = 2.0) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(executor.arun(program, tools=[lookup]), seconds)


def test_a_sandbox_is_used_on_after_a_run_was_cancelled(executor: BackendExecutor) -> None:
    asyncio.run(cancelled(executor, "import time\ntime.sleep(30)"))
    assert executor.run("6 * 7").result == "42"


def test_a_run_that_is_cancelled_before_it_began_costs_no_sandbox(
    backend: PersistentSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BackendExecutor(backend, limits=LIMITS) as executor:
        upload = backend.upload_files

        def slow_upload(files: list[tuple[str, bytes]]) -> list[object]:
            time.sleep(3)
            return upload(files)

        monkeypatch.setattr(backend, "upload_files", slow_upload)
        asyncio.run(cancelled(executor, "1"))
        monkeypatch.setattr(backend, "upload_files", upload)
        assert executor.run("6 * 7").result == "42"


@pytest.mark.usefixtures("unconfined")
def test_a_run_waits_until_nothing_of_a_cancelled_one_is_left(
    backend: PersistentSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol_sandbox, "SETTLE_S", 1.0)
    with BackendExecutor(backend, limits=replace(LIMITS, seconds=30)) as executor:
        stop = f"{OTHERS}for server in servers: os.kill(server, signal.SIGSTOP)\nwhile True: pass"
        asyncio.run(cancelled(executor, stop, 6.0))  # On a busy machine it takes some time to begin.
        with pytest.raises(ExecutorError, match="Replace the sandbox"):
            executor.run("1")


@pytest.mark.usefixtures("unconfined")
def test_an_interpreter_that_a_program_has_put_first_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with PersistentSandbox() as backend, BackendExecutor(backend, limits=LIMITS) as executor:
        execute = backend.execute
        monkeypatch.setattr(backend, "execute", lambda command: execute(f"PATH=/box/bin:$PATH; {command}"))
        fake = "import os\nos.mkdir('/box/bin')\nfor name in ('python3', 'sh', 'rm'):\n"
        fake += "    open(f'/box/bin/{name}', 'w').write('exit 3')\n    os.chmod(f'/box/bin/{name}', 0o755)"
        assert executor.run(fake).ok
        assert executor.run("6 * 7").result == "42"


@pytest.mark.usefixtures("unconfined")
def test_a_link_in_place_of_a_list_of_fonts_is_not_followed() -> None:
    with PersistentSandbox() as backend, BackendExecutor(backend, limits=LIMITS) as executor:
        link = "import os\nplace = os.path.expanduser('~/.cache/matplotlib')\nos.makedirs(place)\n"
        assert executor.run(f"{link}os.symlink('/proc/self/cwd/key', place + '/fontlist-a.json')").ok
        look = "import glob, os; len(glob.glob(os.environ['MPLCONFIGDIR'] + '/*'))"
        assert executor.run(look).result == "0"
