"""Sessions in third-party sandboxes: the contract, what users do in them, and sandboxes that end."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from code_chains import create_code_chain
from code_chains.errors import ConfigurationError, ExecutorError, InputError, OverloadedError, SessionError
from code_chains.executors import BackendExecutor, Limits, Session
from code_chains.executors.remote import server
from code_chains.executors.values import value_of
from code_chains.testing import ScriptedModel, SessionContract, asks_for_code
from tests.conftest import soon
from tests.support.persistent_sandbox import PersistentSandbox, Response

pytestmark = pytest.mark.slow  # Each starts a session in a sandbox of its own.
LIMITS = Limits(
    seconds=20, memory="256M", output="64K", processes=16, disk="8M", files=100, artifacts="1M", open_files=64
)


FOR_EACH_USER = (
    "test_a_cell_that_fails_has_no_effect_and_the_next_one_goes_on",
    "test_a_program_that_destroys_its_session_is_told_from_one_that_fails",
    "test_a_program_can_neither_forge_a_report_nor_a_request",
    "test_the_key_is_nowhere_where_a_program_could_look",
    "test_limits_are_those_of_each_cell",
    "test_closing_leaves_no_process_and_no_folder",
    "test_closing_ends_a_cell_that_runs",
)
"""What depends on the rights of the sandbox's user, which root's sandbox cannot show."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test in a sandbox of root, and in one of another user what differs there."""
    if "backend" in metafunc.fixturenames:
        repeats = metafunc.function.__name__ not in FOR_EACH_USER
        user = pytest.param(1000, id="user", marks=[pytest.mark.soak] if repeats else [])
        metafunc.parametrize("backend", [pytest.param(0, id="root"), user], indirect=True, scope="module")


@pytest.fixture(scope="module")
def backend(request: pytest.FixtureRequest) -> Iterator[PersistentSandbox]:
    with PersistentSandbox(request.param) as backend:
        yield backend


@pytest.fixture
def executor(backend: PersistentSandbox) -> Iterator[BackendExecutor]:
    executor = BackendExecutor(backend, limits=LIMITS)
    yield executor
    executor.close()


@pytest.fixture
def session(executor: BackendExecutor) -> Iterator[Session]:
    with executor.session() as session:
        yield session


def is_clean(backend: PersistentSandbox) -> bool:
    """Return whether nothing of a session is left: no file, and no process but the sandbox's own."""
    return soon(lambda: backend.left() == "/box:\n\n/tmp:\n1\n")


@pytest.mark.slow
class TestContract(SessionContract):
    """The contract of sessions, in a sandbox that knows nothing of it."""


FAILURES = {
    "an exception": ("1 / 0", "error"),
    "its own end": ("import os; os._exit(0)", "killed"),
    "a flood of output": ("while True: print('x' * 1000)", "output_limit"),
    "memory without end": ("hoard = [bytearray(1 << 20) for _ in range(10_000)]", "memory"),
    "too much on disk": ("for i in range(40): open(f'big{i}', 'wb').write(bytes(1 << 20))", "disk_limit"),
    "too many files": (
        "import time\nfor i in range(300): open(f'small{i}', 'w').close()\ntime.sleep(1)",
        "disk_limit",
    ),
    "too many open files": ("files = [open('/dev/null') for _ in range(100)]", "file_limit"),
    "files without a name below a long path": (
        "import os, time\nfor _ in range(20): os.mkdir('d' * 240); os.chdir('d' * 240)\n"
        "held = os.open('f', os.O_RDWR | os.O_CREAT)\nos.unlink('f')\nos.write(held, bytes(12 << 20))\ntime.sleep(9)",
        "disk_limit",
    ),
    "processes that nobody reaps": (
        "import os, time\nfor _ in range(60):\n    if not os.fork(): os._exit(0)\ntime.sleep(9)",
        "process_limit",
    ),
    "too many processes": (
        "import subprocess\nall = [subprocess.Popen(['sleep', '9']) for _ in range(40)]\n[p.wait() for p in all]",
        "process_limit",
    ),
}


@pytest.mark.parametrize(("code", "status"), FAILURES.values(), ids=FAILURES)
def test_a_cell_that_fails_has_no_effect_and_the_next_one_goes_on(
    session: Session, code: str, status: str
) -> None:
    session.run("x = 1; open('kept', 'w').write('one')")
    done = session.run(f"x = 2; open('kept', 'w').write('two'); open('new', 'w').close()\n{code}")
    assert done.status == status
    after = session.run("import os\n(x, open('kept').read(), sorted(os.listdir('.')))")
    assert after.result == "(1, 'one', ['kept'])"


IN_PACKETS = """
import fcntl, json, os, stat, struct, time
pipes = [n for n in range(3, 70) if os.path.exists(f'/proc/self/fd/{n}') and stat.S_ISFIFO(os.fstat(n).st_mode)]
fd = [n for n in pipes if fcntl.fcntl(n, fcntl.F_GETFL) & 3 == 1][-1]
fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)
fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_DIRECT)
def frame(message, data):
    header = json.dumps({**message, 'views': [], 'sizes': [len(part) for part in data]}).encode()
    return struct.pack('!I', len(header)) + header + b''.join(data)
os.write(fd, frame({'status': 'error', 'error': {'type': 'ValueError', 'message': 'x'}, 'result': None}, []))
time.sleep(.3)
for _ in range(100): os.write(fd, b'x')
os.write(fd, frame({'status': 'ok', 'error': None, 'result': True}, [b"'forged'"]))
os.kill(os.getpid(), 9)
"""


def test_what_a_cell_left_in_its_pipe_is_no_report_of_the_next(session: Session) -> None:
    session.run("x = 20")
    assert not session.run(IN_PACKETS).ok
    assert [session.run("x + 1").result for _ in range(2)] == ["21", "21"]


def test_processes_that_ended_as_orphans_count_for_no_limit(session: Session) -> None:
    orphan = "if not os.fork():\n        os.fork()\n        os._exit(0)"
    done = session.run(
        f"import os, time\nfor _ in range(30):\n    {orphan}\n    os.wait()\n    time.sleep(.02)"
    )
    assert done.ok, done.error


@pytest.mark.smoke
def test_a_cell_without_end_has_no_effect_and_the_next_one_goes_on(backend: PersistentSandbox) -> None:
    executor = BackendExecutor(backend, limits=replace(LIMITS, seconds=2))
    with executor.session() as session:
        session.run("x = 1; open('kept', 'w').write('one')")
        assert session.run("x = 2; open('kept', 'w').write('two')\nwhile True: pass").status == "timeout"
        assert session.run("x, open('kept').read()").result == "(1, 'one')"
    executor.close()


def test_a_cell_that_ends_in_time_is_not_held_up_by_what_it_left_running(
    session: Session, backend: PersistentSandbox
) -> None:
    program = (
        "import subprocess, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "process = subprocess.Popen(['python3', '-c', 'import time; time.sleep(60)'], start_new_session=True)\nx = 1"
    )
    assert session.run(program).ok
    done = session.run("import threading\nx, threading.active_count(), process.poll() is None")
    assert (done.result or "").startswith("(1, 1, ")
    session.close()
    assert is_clean(backend)


def test_files_of_the_application_come_later_and_are_no_artifacts(session: Session) -> None:
    session.run("open('own.txt', 'w').write('1')")
    done = session.run(
        "open('sum.txt', 'w').write(open('ü b/in.csv').read() + open('own.txt').read())",
        files={"ü b/in.csv": b"2"},
    )
    assert [(file.name, file.data) for file in done.artifacts] == [("sum.txt", b"21")]
    assert session.run("open('ü b/in.csv').read(), open('sum.txt').read()").result == "('2', '21')"


def test_a_large_file_is_uploaded_whole(session: Session) -> None:
    content = os.urandom(300_000)
    done = session.run("import hashlib\nlen(open('big', 'rb').read())", files={"big": content, "small": b"1"})
    assert done.result == str(len(content))


def test_values_and_large_artifacts_and_long_output_come_back(session: Any) -> None:
    done = session.run(
        "print('x' * 50_000)\nopen('big', 'wb').write(bytes(500_000))\n{'a': [1, 2.5, None], 'b': {3}}",
        return_value=True,
    )
    assert value_of(done) == {"a": [1, 2.5, None], "b": {3}}
    assert (len(done.stdout), [len(file.data) for file in done.artifacts]) == (50_001, [500_000])


def test_a_figure_is_shown_by_the_cell_that_has_it_open(session: Session) -> None:
    module = (
        "import sys, types\nclass Figure:\n    axes = [1]\n"
        "    def savefig(self, target, format): target.write(b'PNG')\n"
        "managers = [types.SimpleNamespace(canvas=types.SimpleNamespace(figure=Figure()))]\n"
        "helpers = types.ModuleType('matplotlib._pylab_helpers')\n"
        "helpers.Gcf = types.SimpleNamespace(get_all_fig_managers=lambda: list(managers))\n"
        "pyplot = types.ModuleType('matplotlib.pyplot')\npyplot.close = lambda which: managers.clear()\n"
        "sys.modules |= {'matplotlib.pyplot': pyplot, 'matplotlib._pylab_helpers': helpers}\n"
        "sys.modules['matplotlib'] = types.ModuleType('matplotlib')"
    )
    first, second = session.run(module), session.run("1")
    assert ([file.name for file in first.artifacts], second.artifacts) == (["figure-1.png"], ())


def test_a_function_is_what_the_last_cell_made_of_it(session: Session) -> None:
    session.run("def f(): return 1\ndef g(): return f()")
    session.run("def f(): return 2")
    assert session.run("g()").result == "2"


def test_text_that_is_no_unicode_is_shown(session: Session) -> None:
    done = session.run("print('ü \\x00')\n'\\ud800'")
    assert (done.stdout, done.result) == ("ü \x00\n", "'\\ud800'")


def test_two_sessions_do_not_see_each_other_and_run_at_the_same_time(executor: BackendExecutor) -> None:
    with executor.session() as one, executor.session() as two, ThreadPoolExecutor(2) as threads:
        for session, number in ((one, 1), (two, 2)):
            session.run(f"x = {number}; open('f', 'w').write('{number}')")
        started = time.monotonic()
        slow = [
            threads.submit(s.run, "import time; time.sleep(2.5); x, open('f').read()") for s in (one, two)
        ]
        assert [done.result().result for done in slow] == ["(1, '1')", "(2, '2')"]
        assert time.monotonic() - started < 4.9


def test_a_second_cell_at_the_same_time_is_refused(session: Session) -> None:
    session.run("x = 1")
    with ThreadPoolExecutor(1) as thread:
        slow = thread.submit(session.run, "import time; time.sleep(1); x = 2")
        time.sleep(0.4)
        with pytest.raises(SessionError, match="busy"):
            session.run("x = 3")
        assert slow.result().ok
    assert session.run("x").result == "2"


def test_a_check_that_refuses_leaves_the_state(session: Session) -> None:
    session.run("x = 1")
    assert session.run("x = 2", check=lambda done: False).status == "error"
    assert session.run("x").result == "1"


def test_what_cannot_be_put_into_the_folder_is_an_input_error_without_effect(session: Session) -> None:
    session.run("import os\nos.mkdir('taken')\nx = 1")
    with pytest.raises(InputError, match="taken"):
        session.run("x = 2", files={"taken": b"1"})
    assert session.run("x").result == "1"


def test_closing_leaves_no_process_and_no_folder(
    executor: BackendExecutor, backend: PersistentSandbox
) -> None:
    session = executor.session()
    session.run("import tempfile; folder = tempfile.mkdtemp(); open('f', 'w').write('x')")
    session.checkpoint()
    session.close()
    assert is_clean(backend)
    with pytest.raises(SessionError, match="closed"):
        session.run("1")


def test_closing_ends_a_cell_that_runs(executor: BackendExecutor, backend: PersistentSandbox) -> None:
    session = executor.session()
    with ThreadPoolExecutor(1) as thread:
        session.run("1")
        slow = thread.submit(session.run, "import time; time.sleep(60)")
        time.sleep(0.5)
        session.close()
        with pytest.raises(SessionError):
            slow.result(10)
    assert is_clean(backend)


def test_closing_the_executor_ends_its_sessions(backend: PersistentSandbox) -> None:
    executor = BackendExecutor(backend, limits=LIMITS)
    session = executor.session()
    session.run("1")
    executor.close()
    assert is_clean(backend)
    assert not session.alive
    with pytest.raises(ExecutorError, match="closed"):
        executor.session()


def test_a_cancelled_cell_ends_the_session_and_leaves_nothing(
    executor: BackendExecutor, backend: PersistentSandbox
) -> None:

    async def cancel() -> None:
        session = executor.session()
        assert (await session.arun("x = 1")).ok
        task = asyncio.create_task(session.arun("import time; time.sleep(60)"))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(SessionError, match="interrupted"):
            await session.arun("x")

    asyncio.run(cancel())
    assert is_clean(backend)


def test_an_idle_session_ends_and_leaves_nothing(backend: PersistentSandbox) -> None:
    executor = BackendExecutor(backend, limits=LIMITS, session_timeout=1)
    session = executor.session()
    session.run("1")
    assert is_clean(backend)
    assert not session.alive
    with pytest.raises(SessionError, match="idle for 1 seconds"):
        session.run("1")
    executor.close()


def test_more_sessions_than_allowed_are_refused(backend: PersistentSandbox) -> None:
    executor = BackendExecutor(backend, limits=LIMITS, max_sessions=1)
    with executor.session(), pytest.raises(OverloadedError, match="1 sessions are open already"):
        executor.session()
    executor.session().close()
    with pytest.raises(ConfigurationError, match="max_sessions"):
        BackendExecutor(backend, max_sessions=-1)
    with pytest.raises(ConfigurationError, match="session_timeout"):
        BackendExecutor(backend, session_timeout=0)


ENDS: dict[str, str] = {
    "its process group": "import os, signal; os.killpg(0, signal.SIGKILL)",
    "its supervisor and the server": (
        "import os, re, signal\nmine = os.getpid()\nwhile mine > 1:\n"
        "    stat = open(f'/proc/{mine}/stat').read()\n    mine = int(stat.rpartition(')')[2].split()[1])\n"
        "    if mine > 1 and b'session_server' in open(f'/proc/{mine}/cmdline', 'rb').read(): os.kill(mine, signal.SIGKILL)"
    ),
    "its folder": "import os, shutil; shutil.rmtree(os.path.dirname(os.path.dirname(os.getcwd())))",
}


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_a_program_that_destroys_its_session_is_told_from_one_that_fails(
    executor: BackendExecutor, backend: PersistentSandbox, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONFINES", False)  # As on a kernel that cannot.
    session = executor.session()
    session.run("x = 1")
    with pytest.raises((SessionError, ExecutorError)):
        [session.run(f"{code}\nimport time; time.sleep(1)") for _ in range(2)]
    session.close()
    assert is_clean(backend)


def test_a_sandbox_that_is_killed_between_cells_is_an_error_of_the_executor() -> None:
    with PersistentSandbox() as backend:
        session = BackendExecutor(backend, limits=LIMITS).session()
        session.run("x = 1")
        backend.kill()
        with pytest.raises(ExecutorError, match="the sandbox is gone"):
            session.run("x")
        with pytest.raises(SessionError, match="has ended"):
            session.run("x")
        session.close()


def test_a_sandbox_that_is_killed_during_a_cell_is_an_error_of_the_executor() -> None:
    with PersistentSandbox() as backend, ThreadPoolExecutor(1) as thread:
        session = BackendExecutor(backend, limits=LIMITS).session()
        session.run("x = 1")
        slow = thread.submit(session.run, "import time; time.sleep(1.5)")
        time.sleep(0.5)
        backend.kill()
        with pytest.raises(ExecutorError, match="the sandbox is gone"):
            slow.result(20)


class Changed:
    """A sandbox that does what a test says instead of what another one does."""

    def __init__(self, inner: PersistentSandbox, **instead: Callable[..., Any]) -> None:
        self.execute = instead.get("execute", inner.execute)
        self.upload_files = instead.get("upload_files", inner.upload_files)
        self.download_files = instead.get("download_files", inner.download_files)


def test_a_sandbox_that_ends_what_commands_leave_is_named(backend: PersistentSandbox) -> None:
    def execute(command: str) -> Response:
        response = backend.execute(command)
        backend.execute("pkill -9 -f 'guest[.]sandbox[.]session_server'; sleep 0.1")
        return response

    session = BackendExecutor(Changed(backend, execute=execute), limits=LIMITS).session()
    with pytest.raises(ConfigurationError, match="processes outlive their command"):
        session.run("1")
    backend.execute("rm -rf /tmp/code_chains-*")


def test_without_sessions_the_turns_of_a_conversation_are_answered_one_by_one(
    backend: PersistentSandbox,
) -> None:
    model = ScriptedModel(
        lambda messages: "```python\nprint(6 * 7)\n```" if asks_for_code(messages) else "42"
    )
    executor = BackendExecutor(backend, limits=LIMITS, max_sessions=0)
    with create_code_chain(model, executor=executor) as chain:
        turns = [chain.invoke({"query": "6 * 7?", "session_id": "ann"}) for _ in range(2)]
    assert [turn["answer"] for turn in turns] == ["42", "42"]


def test_half_an_upload_runs_nothing_and_ends_the_session(backend: PersistentSandbox) -> None:
    share = 1.0

    def upload(files: list[tuple[str, bytes]]) -> list[Any]:
        return backend.upload_files([(path, data[: int(len(data) * share)]) for path, data in files])

    session = BackendExecutor(Changed(backend, upload_files=upload), limits=LIMITS).session()
    session.run("x = 1")
    share = 0.5
    with pytest.raises(ExecutorError, match="not complete"):
        session.run("x = 2", files={"big": os.urandom(300_000)})
    session.close()
    assert is_clean(backend)


@pytest.mark.smoke
def test_a_program_can_neither_forge_a_report_nor_a_request(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "CONFINES", False)  # Otherwise it reaches no socket.
    session.run("x = 1")
    forged = (
        "import json, os, socket\nchannel = socket.socket(socket.AF_UNIX)\n"
        "channel.connect(os.path.join(os.path.dirname(os.path.dirname(os.getcwd())), 'socket'))\n"
        "for number in (3, 4, 99):\n"
        "    text = json.dumps({'op': 'close', 'number': number, 'is_inline': True, 'bundle': ''})\n"
        "channel.sendall(text.encode() + b'\\n' + b'0' * 64 + b'\\n')\nchannel.shutdown(socket.SHUT_WR)\n"
        'os.write(1, b\'{"token": "x", "exit": 0}\\n\')\nx = 2'
    )
    assert session.run(forged).ok
    assert session.run("x").result == "2"


def test_the_key_is_nowhere_where_a_program_could_look(session: Any) -> None:
    look = (
        "import glob\nfrom itertools import chain\ntexts = []\n"
        "for path in chain.from_iterable(map(glob.glob, ('/proc/*/cmdline', '/proc/*/environ', '../../*'))):\n"
        "    try:\n        texts.append(open(path, 'rb').read().decode(errors='replace'))\n"
        "    except OSError: pass\nlen(texts) > 3, any(half in text and other in text for text in texts)"
    )
    halves = {"half": session._link._key[:32], "other": session._link._key[32:]}
    session.run("1")
    assert session.run(look, variables=halves).result == "(True, False)"


@pytest.mark.smoke
def test_a_conversation_goes_on_with_the_variables_of_earlier_turns(backend: PersistentSandbox) -> None:
    def reply(messages: list[Any]) -> str:
        if not asks_for_code(messages):
            return "Here it is."
        if "one more" in str(messages[-1].text):
            return "```python\nprint(total + 1)\n```"
        return "```python\ntotal = 6 * 7\nprint(total)\n```"

    with create_code_chain(ScriptedModel(reply), executor=backend, limits=LIMITS) as chain:
        chain.invoke({"query": "What is 6 times 7?", "session_id": "ann"})
        result = chain.invoke({"query": "And one more?", "session_id": "ann"})
        assert result["output"] == "43"
    assert is_clean(backend)


def test_limits_are_those_of_each_cell(backend: PersistentSandbox) -> None:
    executor = BackendExecutor(backend, limits=replace(LIMITS, seconds=1.5))
    with executor.session() as session:
        for _ in range(3):
            assert session.run("import time; time.sleep(0.8)").ok
    executor.close()


def test_a_large_state_may_be_kept_and_changed_within_the_limit_of_memory(session: Session) -> None:
    assert session.run("x = bytearray(150 << 20); x[::4096] = bytes(len(x[::4096]))").ok
    for _ in range(3):
        assert session.run("x[0] += 1; x[0]").ok
    assert session.run("y = bytearray(200 << 20); y[::4096] = bytes(len(y[::4096]))").status == "memory"
    assert session.run("x[0]").result == "3"


def test_a_cell_that_replaces_its_folder_by_a_link_reveals_nothing(session: Session) -> None:
    done = session.run("import os\nos.rename('../box', '../other')\nos.symlink('/etc', '../box')")
    assert done.artifacts == ()


def test_a_session_that_cannot_go_on_costs_no_sandbox() -> None:
    with PersistentSandbox(1000) as backend, BackendExecutor(backend, limits=LIMITS) as executor:
        session = executor.session()
        with pytest.raises(SessionError):
            [session.run("import os\nos.makedirs('d/e', exist_ok=True)\nos.mkdir('f', 0)") for _ in range(2)]
        assert executor.run("6 * 7").result == "42"
