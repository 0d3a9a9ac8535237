"""Whatever breaks on the way of a question: it ends in a value or a typed error, and the next question works."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import string
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.stores import InMemoryByteStore
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from code_chains import CodeChain, ConversationMemory, Repair, SqliteStore, create_code_chain
from code_chains.executors import Limits, SandboxExecutor
from code_chains.executors.guest.sandbox.processes import pid_of
from code_chains.executors.waiting import Operation
from code_chains.retrieval.store import SnippetStore
from code_chains.state import Execution
from tests.conftest import SUM_ANSWER, OpenAI, descendants, soon

SLOW = "import time; time.sleep(1.5); print(15)"


class Unreachable(InMemoryByteStore):
    """A store on another machine, while the network is up."""

    down = False

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        self._ask()
        return super().mget(keys)

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        self._ask()
        super().mset(key_value_pairs)

    def yield_keys(self, prefix: str | None = None) -> Iterator[str]:
        self._ask()
        yield from super().yield_keys(prefix=prefix)

    def _ask(self) -> None:
        if self.down:
            raise ConnectionError("The store does not answer.")


class World:
    """A chain of real parts, each of which can be broken: a model over HTTP, a sandbox, a memory and a cache."""

    def __init__(self, server: OpenAI, folder: Path, stack: ExitStack) -> None:
        self.server, self.folder = server, folder
        self.executor = stack.enter_context(SandboxExecutor(limits=Limits(seconds=5), preload=()))
        self.turns = stack.enter_context(SqliteStore(folder / "turns.sqlite", timeout=0.1))
        self.answers = stack.enter_context(SqliteStore(folder / "answers.sqlite", timeout=0.1))
        self.model = ChatOpenAI(
            base_url=server.base_url, api_key=SecretStr("none"), model="test", max_retries=1, timeout=0.5
        )
        self.stack, self.options = stack, dict[str, Any]()
        self.chain: CodeChain | None = self.made()

    def made(self) -> CodeChain:
        parts: dict[str, Any] = {
            "memory": ConversationMemory(self.turns),
            "cache": self.answers,
            **self.options,
        }
        return self.stack.enter_context(
            create_code_chain(self.model, executor=self.executor, solve=Repair(2), **parts)
        )

    def ask(self, **given: object) -> str:
        """What comes of a question: `answered`, the verdict, or an error's name. A chain is made if there is none."""
        try:
            self.chain = self.chain or self.made()
            result = self.chain.invoke({"query": f"What is the sum of 1 to 5, dear {_name()}?", **given})
        except Exception as error:
            return type(error).__name__
        return "answered" if result["answer"] == SUM_ANSWER else str(result["verdict"].status)


def _name() -> str:
    """A word that makes a question new, and that no program needs."""
    return "".join(random.choices(string.ascii_lowercase, k=12))


Fault = Callable[[World], AbstractContextManager[object]]


def model(*faults: str) -> Fault:
    """The model's next replies are broken."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        world.server.faults[:] = faults
        yield
        world.server.faults.clear()

    return inject


def killed(which: Callable[[World], int], *, during: bool) -> Fault:
    """A process of the sandbox is killed, before a run or while it is under way."""

    def kill(world: World) -> None:
        pid = which(world)
        os.kill(pid, signal.SIGKILL)
        assert soon(lambda: pid not in descendants())

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        world.executor.run("1")
        if not during:
            kill(world)
            yield
            return
        script, written = world.server.script, threading.Event()

        def write(messages: Any) -> str:
            written.set()
            return f"```python\n{SLOW}\n```"

        def kill_the_run() -> None:
            written.wait()
            time.sleep(0.8)
            kill(world)

        world.server.script = write
        killer = threading.Thread(target=kill_the_run)
        killer.start()
        yield
        world.server.script = script
        killer.join()

    return inject


def below(levels: int) -> Callable[[World], int]:
    """The sandbox's oldest process so many levels below this one: 1 builds the box, 3 is the worker."""

    def there(world: World) -> set[int]:
        parents = {pid: parent(pid) for pid in descendants()}
        level = {builder(world)}
        for _level in range(levels - 1):
            level = {pid for pid, above in parents.items() if above in level}
        return level

    def find(world: World) -> int:
        found: set[int] = set()

        def look() -> bool:
            first = there(world)
            time.sleep(0.05)  # Those of the run before are gone by then.
            found.update(first & there(world))
            return bool(found)

        assert soon(look)  # What waits for a program is made while others run.
        return min(found)

    return find


def watcher(kind: Literal["idle", "spent", "running"]) -> Callable[[World], int]:
    """The supervisor of a sandbox that waits for a program, has had one, or runs one."""

    def pidfds(world: World) -> list[int]:
        pool = world.executor._provider.pool._resources
        resting = {"idle": pool.idle, "spent": pool.spent}
        running = [fork for fork in pool.forks if fork not in (*pool.idle, *pool.spent)]
        forks = resting.get(kind, running)
        for fork in pool.idle:
            fork.poll()
        return [fork.supervisor.pidfd for fork in forks if fork.supervisor.pidfd is not None]

    def find(world: World) -> int:
        assert soon(lambda: bool(pidfds(world)))
        return pid_of(pidfds(world)[0])

    return find


def builder(world: World) -> int:
    """The process that this one has started for the world's sandbox, beside those of other tests."""
    worker = world.executor._provider.pool.worker
    return worker._process.pid if worker else 0


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # It has ended meanwhile.
        return 0


def settle() -> None:
    """Wait until the server, which is in this process, has closed the connections of its last replies."""
    counts = [-1]
    while len(counts) < 9 or len(set(counts[-8:])) > 1:
        counts.append(len(os.listdir("/proc/self/fd")))
        time.sleep(0.05)


def descriptors(more: int) -> Fault:
    """This process may open so many files and no more once the model has written a program."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        import resource  # Not on Windows.

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        run = world.executor._run

        def starved(*given: Any) -> Operation[Execution]:
            settle()
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
            held = list[int]()
            with suppress(OSError):
                while True:
                    held.append(os.dup(0))
            for _ in range(more):
                os.close(held.pop())
            try:
                return (yield from run(*given))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for one in held:
                    os.close(one)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world.executor, "_run", starved)
            yield

    return inject


@contextmanager
def no_temporary_files(world: World) -> Iterator[None]:
    """The folder for temporary files is gone, and so is what is warm."""
    world.executor.close()
    world.executor.__init__(limits=Limits(seconds=5), preload=())  # type: ignore[misc]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(world.folder / "gone"))
        yield


def full(name: str) -> Fault:
    """A store's file may not grow any more: SQLite says that the disk is full."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        store: SqliteStore = getattr(world, name)
        open_connection = store._writer._open_connection

        def small() -> sqlite3.Connection:
            connection = open_connection()
            connection.execute("PRAGMA max_page_count = 1")
            return connection

        store.close()
        store._writer._open_connection = small
        yield
        store.close()
        store._writer._open_connection = open_connection

    return inject


def locked(name: str) -> Fault:
    """Another process keeps a store's file locked."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        with closing(sqlite3.connect(getattr(world, name).path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.rollback()

    return inject


def damaged(name: str) -> Fault:
    """A store's file is overwritten with nonsense, and put right afterwards."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        store: SqliteStore = getattr(world, name)
        store.close()
        sound = store.path.read_bytes()
        store.path.write_bytes(b"nonsense" * 1000)
        yield
        store.close()
        for ending in ("-wal", "-shm"):
            store.path.with_name(store.path.name + ending).unlink(missing_ok=True)
        store.path.write_bytes(sound)

    return inject


def clock(seconds: float) -> Fault:
    """The clock is set, with answers and turns from before."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        world.ask(session_id="ann")
        real = time.time
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda: real() + seconds)
            yield

    return inject


@contextmanager
def unreachable(world: World) -> Iterator[None]:
    """The conversations are on another machine, which does not answer."""
    store = Unreachable()
    world.options = {"memory": ConversationMemory(store)}
    world.chain = world.made()
    store.down = True
    yield
    store.down = False


def small_disk(world: World) -> Path:
    """A disk of one megabyte, which is there until the test has ended."""
    disk = world.folder / "disk"
    disk.mkdir()
    command = ["sh", "-c", 'mount -t tmpfs -o size=1m tmpfs "$0"', str(disk)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    world.stack.callback(lambda: subprocess.run(["umount", "--lazy", disk], check=True))
    return disk


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Nothing more fits on a disk."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert os.statvfs(disk).f_bavail == 0
    yield
    filler.unlink()


def on_a_full_disk(name: str) -> Fault:
    """The disk with a store is full."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        disk = small_disk(world)
        setattr(world, name, world.stack.enter_context(SqliteStore(disk / "store.sqlite")))
        world.chain = world.made()
        with filled(disk):
            yield

    return inject


@contextmanager
def full_temporary_disk(world: World) -> Iterator[None]:
    """The disk with the temporary files is full, and what was warm is gone."""
    disk = small_disk(world)
    world.executor.close()
    world.executor.__init__(limits=Limits(seconds=5), preload=())  # type: ignore[misc]
    with filled(disk), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(disk))
        yield


def damaged_snippets(pattern: str, *, in_use: bool = False) -> Fault:
    """Some files of an index of snippets are overwritten with nonsense, and put right afterwards."""

    @contextmanager
    def inject(world: World) -> Iterator[None]:
        folder = world.folder / "snippets"
        SnippetStore.from_texts(["print(sum([1, 2]))"]).save(folder)
        world.options = {"snippets": folder}
        world.chain = world.made() if in_use else None
        sound = {path: path.read_bytes() for path in folder.glob(pattern)}
        assert sound
        for path in sound:
            path.write_bytes(b"nonsense" * 1000)
        yield
        for path, data in sound.items():
            path.write_bytes(data)

    return inject


FAULTS: dict[str, tuple[Fault, str]] = {
    "model: 429 once": (model("429"), "answered"),
    "model: 429 again and again": (model("429", "429"), "OpenAIRateLimitError"),
    "model: 500 once": (model("500"), "answered"),
    "model: 500 again and again": (model("500", "500"), "OpenAIAPIError"),
    "model: hangs": (model("hang", "hang"), "OpenAITimeoutError"),
    "model: reply cut off": (model("cut"), "answered"),
    "model: reply too long": (model("length"), "answered"),
    "sandbox: builder killed": (killed(below(1), during=False), "answered"),
    "sandbox: worker killed": (killed(below(3), during=False), "answered"),
    "sandbox: a waiting box killed": (killed(watcher("idle"), during=False), "answered"),
    "sandbox: a watcher killed that has had a program": (killed(watcher("spent"), during=False), "answered"),
    "sandbox: worker killed during a run": (killed(below(3), during=True), "ExecutorError"),
    "sandbox: watcher killed during a run": (killed(watcher("running"), during=True), "ExecutorError"),
    "sandbox: no descriptors": (descriptors(0), "ExecutorError"),
    "sandbox: one descriptor": (descriptors(1), "ExecutorError or answered"),  # A box may stand ready.
    "sandbox: a few descriptors": (descriptors(6), "answered"),
    "sandbox: no temporary files": (no_temporary_files, "ExecutorError"),
    "sandbox: temporary files on a full disk": (full_temporary_disk, "ExecutorError"),
    "memory: disk full": (full("turns"), "answered"),
    "memory: on a full disk": (on_a_full_disk("turns"), "answered"),
    "memory: locked": (locked("turns"), "answered"),
    "memory: damaged": (damaged("turns"), "StoreError"),
    "memory: unreachable": (unreachable, "StoreError"),
    "cache: disk full": (full("answers"), "answered"),
    "cache: on a full disk": (on_a_full_disk("answers"), "answered"),
    "cache: locked": (locked("answers"), "answered"),
    "cache: damaged": (damaged("answers"), "answered"),
    "snippets: damaged": (damaged_snippets("*.sqlite"), "StoreError"),
    "snippets: damaged while in use": (damaged_snippets("*.*", in_use=True), "answered"),
    "clock: a year back": (clock(-365 * 86_400), "answered"),
    "clock: a year forward": (clock(365 * 86_400), "answered"),
}


@pytest.fixture
def world(openai_server: OpenAI, tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        yield World(openai_server, tmp_path, stack)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_in_its_outcome_and_the_next_question_works(world: World, fault: str) -> None:
    inject, outcome = FAULTS[fault]
    with inject(world):
        assert world.ask(
            session_id="ann" if fault.startswith(("memory", "clock")) else None
        ) in outcome.split(" or ")
    assert world.ask(session_id="ann") == "answered"
