"""Sandboxes that are built anew by a supervisor that has had a program before, and forks with libraries or without."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from code_chains.errors import ExecutorError, IsolationError
from code_chains.executors import Limits, ProcessExecutor, SandboxExecutor
from code_chains.executors.guest import wire
from code_chains.executors.guest.sandbox import processes
from code_chains.executors.guest.sandbox.template import PROBE_INTERVAL
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.libraries import count_libraries, imported_libraries
from code_chains.executors.sandbox.provider import PRELOAD, SandboxProvider
from code_chains.executors.sandbox.worker import Worker
from tests.conftest import PatchInside, at_rest, descendants, everything, is_template, soon

LITTER = """
import os, sys, threading, time
for folder in (".", "/tmp", "/dev/shm"):
    open(os.path.join(folder, "left"), "w").write("secret")
os.chdir("/tmp")
if not os.fork():
    time.sleep(60)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
sys.modules["left"] = os
print(os.getpid())
"""
SEARCH = """
import os, sys
found = [folder for folder in (".", "/tmp", "/dev/shm") if os.path.exists(os.path.join(folder, "left"))]
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
print(found, others, "left" in sys.modules, os.getcwd(), len(os.listdir("/proc/self/fd")))
"""


@pytest.fixture(scope="module")
def executor(request: Any) -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=10, processes=8), preload=()) as executor:
        yield executor


@pytest.fixture
def doomed() -> Iterator[SandboxExecutor]:
    """An executor whose processes a test kills, which those of other tests outlive."""
    with SandboxExecutor(preload=()) as executor:
        yield executor


@pytest.fixture
def renewals(monkeypatch: pytest.MonkeyPatch) -> list[Fork]:
    """The forks that were made in the place of another."""
    renewed: list[Fork] = []
    renew = Fork.renew

    def note(fork: Fork, *arguments: Any, **options: Any) -> Fork:
        renewed.append(fork)
        return renew(fork, *arguments, **options)

    monkeypatch.setattr(Fork, "renew", note)
    return renewed


def test_supervisors_serve_one_program_after_another(executor: SandboxExecutor, renewals: list[Fork]) -> None:
    runs = 0
    # A supervisor that is not done with its last program in time is not waited for.
    while len(renewals) < 4 and runs < 30:
        assert executor.run("6 * 7").result == "42"
        runs += 1
    assert len(renewals) == 4


def test_nothing_of_a_program_is_left_for_the_next_ones(
    executor: SandboxExecutor, renewals: list[Fork]
) -> None:
    clean = executor.run(SEARCH).output
    for _ in range(3):
        assert executor.run(LITTER).ok
        assert [executor.run(SEARCH).output for _ in range(3)] == [clean] * 3
    assert renewals


TRACES = {
    "files": "for n in range(9): open(f'{n}', 'w').write('x' * 5000)",
    "many files": "for n in range(300): open(f'/tmp/{n}', 'w')",
    "a deep folder": "import os\nfor n in range(40): os.mkdir('d'); os.chdir('d')",
    "names that are hard to remove": "import os\nfor name in (' ', '\\n', 'é', 'x' * 250, '-rf'): os.mkdir(name)",
    "an unreadable folder": "import os\nos.makedirs('a/b'); open('a/b/c', 'w'); os.chmod('a/b', 0); os.chmod('a', 0)",
    "links": "import os\nos.symlink('/', 'link'); open('x', 'w'); os.link('x', 'y')",
    "special files": "import os, socket\nos.mkfifo('pipe'); socket.socket(socket.AF_UNIX).bind('/tmp/socket')",
    "modes": "import os\nos.chmod('.', 0o700); os.chmod('/tmp', 0o1700); os.chmod('/dev/shm', 0)",
    "times": "import os\nos.utime('.', (1, 1)); os.utime('/tmp', (1, 1))",
    "a file that is gone": "import os\nopen('x', 'w').close(); os.unlink('x')",
    "extended attributes": "import os\ntry: os.setxattr('/tmp', 'user.left', b'secret')\nexcept OSError: pass",
    "default permissions": """
import os, struct
entries = ((1, 7, 2**32 - 1), (2, 7, 12345), (4, 5, 2**32 - 1), (32, 5, 2**32 - 1))
try:
    os.setxattr(".", "system.posix_acl_default", struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries))
except OSError:
    pass
""",
    "attributes of a folder": """
import fcntl, os
try:
    fcntl.ioctl(os.open(".", os.O_RDONLY), 0x40086602, (0x40).to_bytes(8, "little"))
except OSError:
    pass
""",
    "a full disk": "try:\n  for n in range(300): open(f'{n}', 'wb').write(b'x' * (1 << 20))\nexcept OSError: pass",
    "a name of a socket": "import socket\nkeep = socket.socket(socket.AF_UNIX); keep.bind(chr(0) + 'left'); keep.listen()",
}
VIEW = """
import fcntl, os
for folder in (".", "/tmp", "/dev/shm"):
    status = os.stat(folder)
    try:
        flags = fcntl.ioctl(os.open(folder, os.O_RDONLY), 0x80086601, bytes(8))
    except OSError:  # Not all kernels have flags in this file system.
        flags = None
    print(sorted(os.listdir(folder)), oct(status.st_mode), status.st_uid, status.st_gid, status.st_nlink, status.st_size)
    print(os.listxattr(folder), flags, status.st_mtime > 10)
system = os.statvfs(".")
print(system.f_blocks, system.f_bfree, system.f_files, system.f_ffree, os.umask(0o22), os.getcwd(), os.getpriority(0, 0))
print("left" in open("/proc/net/unix").read(), sorted(os.environ), os.getsid(0) == os.getpid())
"""


@pytest.mark.rows(4)
@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())
def test_the_next_program_sees_what_the_first_one_of_a_sandbox_sees(trace: str) -> None:
    with SandboxExecutor(limits=Limits(seconds=10, files=400), preload=()) as executor:
        first = executor.run(VIEW).output
        assert first.count("[]") >= 3
        for _ in range(3):
            assert executor.run(trace).ok
            assert [executor.run(VIEW).output for _ in range(3)] == [first] * 3


def test_files_of_a_program_that_were_collected_are_gone_at_once(executor: SandboxExecutor) -> None:
    for _ in range(3):
        done = executor.run("import os; print(os.listdir('.')); open('kept.txt', 'w').write('x' * 1000)")
        assert done.stdout == "[]\n"
        assert [(one.name, len(one.data)) for one in done.artifacts] == [("kept.txt", 1000)]


def templates() -> set[int]:
    return {pid for pid in everything() if is_template(pid)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["print(1)", "open('x', 'w').write('y')", "import socket; socket.socketpair()"]
)
def test_programs_that_leave_no_trace_share_templates(code: str) -> None:
    at_rest()
    others, seen = templates(), set[int]()
    with SandboxExecutor(preload=()) as executor:
        if executor._provider._make_spec().config["visible"]:
            pytest.skip("Python is installed below /tmp: its folders there are made anew for each program")
        spent = executor._provider.pool._resources.spent
        for _ in range(12):
            assert executor.run(code).ok
            # A supervisor that is not done in time is not waited for, and the next program gets another template.
            assert soon(lambda: any(fork.is_reusable() for fork in [*spent]), 20)
            seen |= templates() - others
    assert 0 < len(seen) <= 4


def test_a_template_cannot_be_found_by_its_programs(executor: SandboxExecutor) -> None:
    look = "import os\nprint(os.getppid(), sorted(int(n) for n in os.listdir('/proc') if n.isdigit()) == [1, os.getpid()])"
    assert executor.run(look).output == "0 True"


def test_what_still_loads_libraries_ends_with_its_executor() -> None:
    """It would make the folder of its cache again."""
    at_rest()
    others = everything()
    with ProcessExecutor(preload=PRELOAD) as executor:
        executor.run("1")
        started, folder = everything() - others, executor._provider.pool._resources.folder
    assert folder is not None
    assert started
    assert soon(lambda: all(processes.parent(pid) is None for pid in started))
    assert not os.path.exists(folder)


def test_templates_end_with_their_executor() -> None:
    at_rest()
    before = everything()
    with SandboxExecutor(preload=()) as executor:
        executor.run("1")
        at_rest()
        assert templates() - before
    assert soon(lambda: not everything() - before)


IN_FLIGHT = """
import array, os, socket
keep, file = [], os.open("/dev/null", os.O_RDONLY)
try:
    for _ in range(40):
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep += ends
        ends[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file] * 250))])
except OSError as error:
    print(error.errno)
"""


def test_descriptors_that_a_program_has_sent_keep_no_other_program_from_starting(
    executor: SandboxExecutor,
) -> None:
    """The kernel counts descriptors in flight for each user, and refuses more than the sender may open."""
    with executor.session() as session:
        assert session.run(IN_FLIGHT).stdout == f"{errno.ETOOMANYREFS}\n"
        worker = executor._provider.pool.worker
        assert [executor.run("6 * 7").result for _ in range(4)] == ["42"] * 4
        assert executor._provider.pool.worker is worker


def test_a_lack_of_processes_chooses_no_weaker_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is over when others have ended, but the choice would stay."""
    monkeypatch.setattr(Worker, "fork", lambda worker, theirs, libraries: report_lack(theirs[0]))
    with SandboxExecutor(preload=(), min_isolation="landlock") as executor:
        launchers = [*executor._provider._launchers]
        with pytest.raises(ExecutorError, match="No more sandboxes can be started now") as raised:
            executor.run("1")
        assert not isinstance(raised.value, IsolationError)
        assert raised.value.is_retryable
        assert executor._provider._launchers == launchers
        monkeypatch.undo()
        done = executor.run("6 * 7")
    assert done.result == "42"
    assert done.isolation is not None
    assert done.isolation.level == "kernel"


def report_lack(channel: int) -> None:
    with socket.socket(fileno=os.dup(channel)) as host:
        wire.send(host, {"failed": os.strerror(errno.EAGAIN), "errno": errno.EAGAIN})


@pytest.mark.slow
def test_what_a_program_leaves_running_ends_even_without_its_template(doomed: SandboxExecutor) -> None:
    at_rest()
    others = templates()
    stays = "import os, time\nif not os.fork():\n  os.setsid()\n  time.sleep(60)\n  os._exit(0)\ntime.sleep(1.5); print(1)"
    doomed.run("1")
    before = at_rest()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(doomed.run, stays)
        time.sleep(0.8)
        for pid in templates() - others:
            os.kill(pid, signal.SIGKILL)
        assert run.result().output == "1"
    assert soon(lambda: len(descendants()) <= before)


@pytest.mark.slow
def test_an_interpreter_below_a_folder_of_the_sandbox_costs_no_probe_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        way = f"{folder}/deep"
        venv.create(f"{way}/venv", symlinks=True, system_site_packages=True)
        changes = (
            f"os.chmod('{way}', 0)",
            f"open('{way}/left', 'w').close(); os.utime('{way}', (1, 1))",
            f"open('{way}/left', 'w').close(); os.unlink('{way}/left')",
            f"os.rename('{way}', '{folder}/other')",
            "open('/tmp/left', 'w').close()",
        )
        look = "import os; print([(f, oct(os.stat(f).st_mode), d, n) for f, d, n in os.walk('/tmp') if 'venv' not in f])"
        with SandboxExecutor(preload=(), python=f"{way}/venv/bin/python") as executor:
            first = executor.run(look).output
            for change in changes:
                assert executor.run(f"import os; {change}").ok
                assert {executor.run(look).output for _ in range(3)} == {first}
            proofs = Counter(id(executor.run("1").isolation) for _ in range(PROBE_INTERVAL))
            assert max(proofs.values()) > 1


@pytest.mark.slow
def test_programs_that_share_nothing_with_their_template_are_counted_whole(loaded: SandboxExecutor) -> None:
    """Each of them would be granted the memory of the libraries as well."""
    many = """
import pandas, matplotlib.pyplot, os, sys, time
hog = "import time\\nx = bytearray(48 << 20)\\nfor i in range(0, len(x), 4096): x[i] = 1\\ntime.sleep(9)"
for _ in range(20):
    if not os.fork():
        os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", hog])
time.sleep(9)
"""
    assert loaded.run(many).status == "memory"


@pytest.mark.slow
def test_without_its_template_nobody_knows_how_a_program_ended(doomed: SandboxExecutor) -> None:
    at_rest()
    others = templates()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(doomed.run, "import os, time\nopen('started', 'w'); time.sleep(2); os._exit(3)")
        time.sleep(1)
        for pid in templates() - others:
            with contextlib.suppress(ProcessLookupError):  # One that was not used may have ended by itself.
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(ExecutorError):
            run.result()
    assert doomed.run("6 * 7").result == "42"


@pytest.mark.slow
def test_orphans_that_have_ended_leave_room_for_others(executor: SandboxExecutor) -> None:
    orphans = """
import os, time
for n in range(120):
    if not os.fork():
        if not os.fork():
            os._exit(0)
        os._exit(0)
    os.wait()
    time.sleep(0.005)
print("all")
"""
    assert executor.run(orphans).output == "all"


def test_a_program_that_ends_at_once_is_reported(executor: SandboxExecutor) -> None:
    """Its process may be reaped before its supervisor waits for it."""
    for code in ("import os; os._exit(3)", "1 / 0") * 20:
        assert executor.run(code).status in ("killed", "error")


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What each program's process has found open or closed; None where it inherits what another one has proven."""
    found: list[object] = []
    judge = SandboxProvider._judge

    def note(provider: SandboxProvider, fork: Fork) -> Any:
        found.append(fork.pipes.probe or None)
        return judge(provider, fork)

    monkeypatch.setattr(SandboxProvider, "_judge", note)
    return found


def test_each_of_them_is_proven_and_at_most_twenty_by_one_probe(executor: SandboxExecutor) -> None:
    proofs = [executor.run("1").isolation for _ in range(3 * PROBE_INTERVAL)]
    assert all(proof is not None and proof.level == "kernel" and not proof.open for proof in proofs)
    assert 1 < max(Counter(map(id, proofs)).values()) <= PROBE_INTERVAL


def test_without_any_probe_nothing_runs(patch_inside: PatchInside) -> None:
    patch_inside(
        "template", "return self.started % PROBE_INTERVAL > 0 and bool(self.confinement)", "return True"
    )
    with SandboxExecutor(preload=()) as executor, pytest.raises(ExecutorError, match="report is malformed"):
        executor.run("1")


def test_a_process_that_is_not_confined_like_the_first_one_gets_no_program(
    patch_inside: PatchInside, probes: list[object], renewals: list[Fork]
) -> None:
    """Another supervisor takes its place, whose first program probes again."""
    patch_inside("processes", ", *namespaces)", ", *namespaces, pid)")
    with SandboxExecutor(preload=()) as executor:
        assert [executor.run("6 * 7").result for _ in range(4)] == ["42"] * 4
    assert renewals
    assert None not in probes


def test_where_the_kernel_does_not_tell_namespaces_each_process_probes(patch_inside: PatchInside) -> None:
    patch_inside(
        "processes", "        namespaces = [", "        raise PermissionError\n        namespaces = ["
    )
    with SandboxExecutor(preload=()) as executor:
        proofs = [executor.run("1").isolation for _ in range(3)]
    assert len({*map(id, proofs)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["import os; os._exit(3)", "while True: pass", "x = 'x' * (4 << 30)"])
def test_after_a_program_that_was_cut_off_its_supervisor_ends(ending: str, renewals: list[Fork]) -> None:
    with SandboxExecutor(limits=Limits(seconds=1), preload=()) as executor:
        executor.run("1")
        assert not executor.run(ending).ok
        assert executor.run("6 * 7").result == "42"
        assert len(executor._provider.pool._resources.spent) <= 2


def named(name: str) -> set[int]:
    """Return the descendants that have named themselves so."""
    found = set()
    for pid in everything():
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.add(pid)
    return found


@pytest.mark.slow
def test_a_program_that_does_not_exit_after_its_result_is_killed() -> None:
    call_itself = "import ctypes; ctypes.CDLL(None).prctl(15, b'it-stays')"
    stays = f"{call_itself}\nimport os, time\nos._exit = lambda code: time.sleep(60)\nprint(1)"
    with SandboxExecutor(limits=Limits(seconds=60), preload=()) as executor, ThreadPoolExecutor(1) as pool:
        usual = pool.submit(executor.run, f"{call_itself}; import time; time.sleep(1)")
        assert soon(lambda: len(named("it-stays")) == 1)
        assert usual.result().ok
        began = time.monotonic()
        assert executor.run(stays).output == "1"
        assert soon(lambda: not named("it-stays"), 30)
        assert time.monotonic() - began < 30


@pytest.mark.slow
def test_supervisors_end_that_no_program_needs_for_a_while() -> None:
    with SandboxExecutor(limits=Limits(seconds=10), preload=()) as executor, ThreadPoolExecutor(8) as pool:
        done = list(pool.map(executor.run, ["import time; time.sleep(0.1); 1"] * 24))
        assert all(one.ok for one in done)
        spent = executor._provider.pool._resources.spent
        assert 2 <= len(spent) <= 16
        assert soon(lambda: all(fork.is_reusable() is False for fork in spent), 8)
        assert executor.run("6 * 7").result == "42"
        executor.run("1")
        assert soon(lambda: len(spent) <= 3)


LIBRARIES = {
    "numpy": ("import numpy", 1),
    "pandas": ("import pandas as pd, math", 2),
    "pandas, in an f-string": ("print(f'{pandas.Series([1])}')", 2),
    "a frame that draws": ("import pandas as pd\npd.Series([1]).plot()", 3),
    "matplotlib": ("from matplotlib import pyplot", 3),
    "a library that may be made of others": ("from seaborn import lineplot", 3),
    "an import in a function": ("def f():\n    import scipy.stats", 3),
    "an import by name": ("import importlib\nimportlib.import_module(name)", 3),
    "an import by its name": ("os = __import__('os')", 0),
    "code that is made": ("exec(text)", 0),
    "code that is spelled out": ("exec('import math\\nimport seaborn')", 3),
    "a large module of the standard library": ("import asyncio", 1),
    "the standard library": ("import math, json\nfrom collections import Counter", 0),
    "nothing": ("print(2 + 2)", 0),
    "no Python": ("print(", 0),
}


@pytest.mark.parametrize(("code", "expected"), LIBRARIES.values(), ids=LIBRARIES)
def test_the_imports_of_a_program_say_which_libraries_it_needs(code: str, expected: int) -> None:
    assert count_libraries(imported_libraries(code), PRELOAD) == expected
    assert count_libraries(imported_libraries(code), ()) == 0


@pytest.fixture(scope="module")
def loaded() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=20)) as executor:
        yield executor


LEVELS = ("", "import numpy\n", "import pandas\n", "import matplotlib\n")


@pytest.mark.slow
def test_libraries_are_loaded_only_for_programs_that_use_them(loaded: SandboxExecutor) -> None:
    seen = "import sys; print([name for name in ('num' + 'py', 'pan' + 'das', 'mat' + 'plotlib') if name in sys.modules])"
    loaded.run("import matplotlib.pyplot")
    for _ in range(4):  # At first a sandbox that stands ready may have more.
        seen_by = [loaded.run(f"{imported}{seen}").output for imported in LEVELS]
    assert seen_by == ["[]", "['numpy']", "['numpy', 'pandas']", "['numpy', 'pandas', 'matplotlib']"]


def test_a_wrong_guess_costs_an_import_and_no_result(loaded: SandboxExecutor) -> None:
    hidden = "m = __builtins__['__im' + 'port__']('pan' + 'das')\nprint(m.Series([1, 2]).sum())"
    assert imported_libraries(hidden) == set()
    assert loaded.run(hidden).output == "3"


@pytest.mark.slow
def test_a_session_keeps_its_state_whichever_kind_it_began_with(loaded: SandboxExecutor) -> None:
    for first in ("x = 20", "import pandas; x = 20"):
        with loaded.session() as session:
            session.run(first)
            session.run("x += 1")
            assert session.run("import pandas; print(pandas.Series([x, x]).sum())").output == "42"
            session.rollback()
            assert session.run("x").result == "21"


@pytest.mark.slow
def test_without_the_process_that_has_the_libraries_the_worker_is_replaced(loaded: SandboxExecutor) -> None:
    loaded.run("import pandas")
    worker = loaded._provider.pool.worker
    assert worker is not None
    spawner = max(descendants(), key=resident)
    os.kill(spawner, signal.SIGKILL)
    assert soon(lambda: worker.is_worn)
    assert loaded.run("import pandas; print(pandas.Series([1, 2]).sum())").output == "3"


def resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[2])
    except OSError:
        return 0


@pytest.mark.rows(1)
@pytest.mark.parametrize("imports", ["", "import numpy\n", "import pandas\n"])
def test_a_program_has_its_whole_memory_beside_that_of_its_libraries(imports: str) -> None:
    with SandboxExecutor(limits=Limits(seconds=20, memory="128M"), preload=("pandas",)) as executor:
        assert executor.run(f"{imports}x = b'x' * (110 << 20); 1").ok
        assert executor.run(f"{imports}x = b'x' * (150 << 20); 1").status == "memory"


def test_names_of_sockets_that_are_left_are_gone(executor: SandboxExecutor, renewals: list[Fork]) -> None:
    """Sockets that hold each other are collected by the kernel some time after the end of their process."""
    cycle = """
import array, socket
ends = [socket.socketpair() for _ in range(8)]
for n in range(8):
    s = socket.socket(socket.AF_UNIX); s.bind(chr(0) + f"secret{n}"); s.listen()
    for a, b in ends:
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [s.fileno(), b.fileno()]))])
"""
    for _ in range(6):
        executor.run(cycle)
        assert "secret" not in executor.run("print(open('/proc/net/unix').read())").output
    assert len(renewals) >= 6


def test_files_of_a_program_are_not_kept_for_the_next_one(executor: SandboxExecutor) -> None:
    assert executor.run("open('/tmp/large', 'wb').write(b'x' * (40 << 20)); 1").ok
    assert {fork.root for fork in executor._provider.pool._resources.spent} == {None}


def test_the_choice_takes_no_long_time_for_any_program() -> None:
    began = time.process_time()
    for code in (
        'a=1\nx=f"' + "{a}" * 200_000 + '"',
        "import " * 100_000,
        "from x" * 100_000,
        "import a," * 100_000,
    ):
        imported_libraries(code)
    assert time.process_time() - began < 2


@pytest.mark.slow
def test_the_end_of_a_program_with_libraries_is_told(loaded: SandboxExecutor) -> None:
    error = loaded.run("import pandas, os; os._exit(3)").error
    assert error is not None
    assert "exit code 3" in error.message
    assert loaded.run("import pandas\nx = ['y' * (1 << 28) for _ in range(40)]").status == "memory"


def test_a_fork_that_fails_is_reported_and_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from code_chains.executors.guest.sandbox import worker  # Not on Windows.

    def no_fork() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", no_fork)
    monkeypatch.setattr(signal, "signal", lambda *handler: None)
    host, worker_side = wire.pair()
    channels = [wire.pair() for _ in range(2)]
    for _, theirs in channels:
        wire.send(host, {"libraries": 0}, [theirs.fileno()])
        theirs.close()
    host.shutdown(socket.SHUT_WR)
    worker.serve(worker_side, {}, -1, worker.Spawners())  # type: ignore[typeddict-item]  # It needs none.
    for ours, _ in channels:
        assert wire.receive(ours) == ({"failed": os.strerror(errno.EAGAIN), "errno": errno.EAGAIN}, [])
        ours.close()
    worker_side.close()
    host.close()


@pytest.mark.slow
def test_where_no_more_processes_are_allowed_a_run_may_be_repeated_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(channel: socket.socket, message: Any, descriptors: Sequence[int] = ()) -> None:
        if not descriptors:
            wire.send(channel, message)
            return
        with socket.socket(fileno=os.dup(descriptors[0])) as supervisor:
            wire.send(supervisor, {"failed": "Resource temporarily unavailable"})

    with SandboxExecutor(preload=(), min_idle=0) as executor, ThreadPoolExecutor() as threads:
        running = threads.submit(executor.run, "import time; time.sleep(3); print('went on')")
        time.sleep(1)
        with monkeypatch.context() as patch:
            patch.setattr(Worker.__module__ + ".wire", SimpleNamespace(send=refuse, pair=wire.pair))
            with pytest.raises(ExecutorError, match="Resource temporarily unavailable") as raised:
                executor.run("2")
        assert raised.value.is_retryable
        assert not isinstance(raised.value, IsolationError)
        assert executor.run("3").result == "3"
        assert running.result().output == "went on"
