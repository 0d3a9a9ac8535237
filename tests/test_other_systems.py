"""macOS and Windows as far as they can be imitated: their name, and modules and functions that they lack."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMITATE = """
import builtins, os, select, signal, socket, sys
import asyncio, multiprocessing, selectors, shutil, subprocess, tempfile
import click, code_chains.factory, langchain_openai, wasmtime, filelock, platformdirs, rich.console  # Load what others need.

for name in [name for name in sys.modules if name.partition(".")[0] == "code_chains"]:
    del sys.modules[name]
sys.platform = sys.argv[1]
for name in ("sched_getaffinity", "memfd_create", "pidfd_open", "setresuid", "setns", "unshare"):
    if hasattr(os, name):
        delattr(os, name)
if sys.platform == "win32":
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name in ("fcntl", "resource", "pwd", "grp", "termios"):
                raise ModuleNotFoundError(name)
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Absent())
    gone = {
        os: "fork O_DIRECTORY geteuid getuid getegid getgid setsid killpg register_at_fork"
        " sysconf chown mkfifo getpgid setuid openpty uname",
        signal: "SIGSTOP SIGCONT SIGHUP SIGALRM SIGCHLD setitimer pthread_sigmask",
        socket: "AF_UNIX SOCK_SEQPACKET recv_fds send_fds SCM_RIGHTS CMSG_SPACE CMSG_LEN",
        select: "poll epoll",
    }
    for module, names in gone.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
"""
ANSWER = """
import code_chains, code_chains.apps.cli, code_chains.batch.runner, code_chains.evaluation
from code_chains import create_code_chain
from code_chains.testing import ScriptedModel

model = ScriptedModel(lambda _: "```python\\nprint(6 * 7)\\n```")
with create_code_chain(model, interpret=False, cache=sys.argv[2]) as chain:
    result = chain.invoke({"query": "six times seven", "session_id": "one"})
    print(result["output"], result["execution"].isolation.level)
    print(chain.invoke({"query": "six times seven, again", "files": [sys.argv[3]]})["output"])
"""
EXECUTORS = """
from code_chains.errors import CodeChainsError
from code_chains.executors import SandboxExecutor

for make in (SandboxExecutor, lambda: SandboxExecutor(min_isolation="landlock")):
    try:
        make()
    except CodeChainsError as error:
        print(type(error).__name__, "executor='wasm'" in str(error))
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMITATE + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_a_chain_answers_in_webassembly(system: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.importorskip("wasmtime")
    folder = tmp_path_factory.mktemp("data")
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    assert run(ANSWER, system, str(folder / "answers.sqlite"), str(folder / "rows.csv")) == "42 wasm\n42\n"


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_what_needs_linux_says_so(system: str) -> None:
    assert run(EXECUTORS, system) == "IsolationError True\nIsolationError True\n"
