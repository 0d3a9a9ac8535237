"""Killing the processes of a run kills all of them, whatever they do meanwhile."""

import shutil
import signal
import subprocess
import sys

import pytest

from code_chains.executors.guest.sandbox import processes
from tests.conftest import soon

# While the list of processes is read, `first` leaves a child that is in no list, and ends before anybody looks at it.
HEIR = """
import os, signal, sys, time
from code_chains.executors.guest.sandbox import processes
from code_chains.executors.guest.kernel.syscalls import PR_SET_CHILD_SUBREAPER, prctl

prctl(PR_SET_CHILD_SUBREAPER, 1)
kept = os.fork() if sys.argv[1] == "kept" else 0
if not kept and sys.argv[1] == "kept":
    time.sleep(60)
go, told = os.pipe(), os.pipe()
first = os.fork()
if not first:
    os.read(go[0], 1)
    heir = os.fork()
    if heir:
        os.write(told[1], str(heir).encode())
        os._exit(0)
    time.sleep(60)
read, heirs = os.listdir, []

def listdir(path):
    listed = read(path)
    if not heirs:
        os.write(go[1], b".")
        heirs.append(int(os.read(told[0], 20)))
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    return listed

os.listdir = listdir
print(processes.kill_all([kept] if kept else []), processes.parent(heirs[0]), bool(kept and processes.parent(kept)))
os.listdir = read
processes.kill_all()
"""


@pytest.mark.slow
@pytest.mark.kernel_sandbox
@pytest.mark.parametrize(("but", "living"), [("kept", True), ("none", False)])
def test_a_child_forked_while_processes_are_listed_is_killed_too(but: str, living: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEIR, but], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["True", "None", str(living)]


# While the first process of a namespace reads the list, what it spares is resumed, forks, and stops again.
RESUMED = """
import os, signal, time
from code_chains.executors.guest.sandbox import processes

kept = os.fork()
while not kept:
    os.kill(os.getpid(), signal.SIGSTOP)
    if not os.fork():
        time.sleep(60)
while not processes.is_stopped(kept):
    time.sleep(0.01)
read, heirs = os.listdir, []

def listdir(path):
    listed = read(path)
    if path == "/proc" and not heirs:
        os.kill(kept, signal.SIGCONT)
        while not heirs:
            heirs.extend(int(name) for name in set(read(path)) - set(listed) if name.isdigit())
        while not processes.is_stopped(kept):
            time.sleep(0.01)
    return listed

os.listdir = listdir
print(os.getpid(), processes.kill_all([kept]), processes.parent(heirs[0]), processes.parent(kept))
os.listdir = read
processes.kill_all()
"""


@pytest.mark.slow
@pytest.mark.kernel_sandbox
@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare")
def test_a_child_forked_by_a_spared_process_that_was_resumed_is_killed_too() -> None:
    own_namespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    done = subprocess.run(
        [*own_namespace, sys.executable, "-c", RESUMED],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["1", "True", "None", "1"]


# A death may resume what was stopped, so that a listing that follows it is not the last one.
AFTER_A_DEATH = """
import os, signal, time
from code_chains.executors.guest.sandbox import processes
from code_chains.executors.guest.kernel.syscalls import PR_SET_CHILD_SUBREAPER, prctl

prctl(PR_SET_CHILD_SUBREAPER, 1)
kept = os.fork() or os.kill(os.getpid(), signal.SIGSTOP) or os._exit(0)
other = os.fork() or time.sleep(60) or os._exit(0)
tree, listings = processes.tree, []
processes.tree = lambda **options: listings.append(tree(**options)) or listings[-1]
print(processes.kill_all([kept]), [other in listing for listing in listings[-3:]])
os.kill(kept, signal.SIGKILL)
"""


@pytest.mark.kernel_sandbox
def test_without_namespaces_nobody_is_left_only_if_two_listings_say_so() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AFTER_A_DEATH], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "True [True, False, False]"


FIRST_THREAD_ENDS = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print(flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


@pytest.mark.kernel_sandbox
def test_a_process_whose_last_thread_has_given_back_its_memory_is_ending() -> None:
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        assert soon(lambda: not processes.has_memory(f"/proc/{process.pid}/statm"))
        assert not processes.is_ending(process.pid)
        process.kill()
        assert soon(lambda: processes.is_ending(process.pid))


@pytest.mark.kernel_sandbox
def test_a_process_that_is_named_like_a_field_of_its_status_hides_no_memory() -> None:
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'RssAnon:\\t1 kB'); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as named:
        assert named.stdout
        named.stdout.readline()
        assert processes.resident(named.pid) > 1 << 20
        named.communicate(b"\n")


@pytest.mark.kernel_sandbox
def test_a_process_is_stopped_once_all_of_its_threads_are() -> None:
    code = "import threading; threading.Thread(target=input).start(); print(flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.readline()
        assert not processes.is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        assert soon(lambda: processes.is_stopped(process.pid))
        process.send_signal(signal.SIGCONT)
        process.communicate(b"\n")


@pytest.mark.kernel_sandbox
def test_the_kernel_tells_a_process_that_is_confined_more_from_one_like_this() -> None:
    confine = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)"  # Without new privileges.
    found = []
    for code in ("", confine):
        waits = [sys.executable, "-c", f"{code}\nprint(flush=True); input()"]
        with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()
            found.append(processes.confinement(process.pid) == processes.confinement("self"))
            process.communicate(b"\n")
    assert found == [True, False]


def test_the_name_of_a_file_hides_no_mapping_that_is_unlinked() -> None:
    maps = b"7f0-7f1 rw-s 00000000 00:2a 77 /box/a\rb (deleted)\n7f2-7f3 r--p 00000000 00:2a 78 /box/c\n"
    assert processes.unlinked_mappings(maps, "/box") == ["77"]
