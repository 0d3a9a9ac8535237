from __future__ import annotations

import asyncio
import os
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.stores import BaseStore
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests

from benchmarks.durability import SUBJECTS, Outcome, run
from code_chains.errors import ConfigurationError, InputError, StoreError
from code_chains.storage.sqlite import SqliteStore, StoreStats
from tests.conftest import ROOT, soon

THREE = (b"foo", b"\x00\xff", b"")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "on the way" / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(path) as store:
        yield store


def python(code: str, *words: object, count: int = 1) -> list[str]:
    """What processes print that all run the same program at once."""
    command = [
        sys.executable,
        "-c",
        f"import sys; from code_chains.storage.sqlite import *\n{code}",
        *map(str, words),
    ]
    running = [
        subprocess.Popen(
            [*command, str(number)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(count)
    ]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0] * count, outputs
    return [output for output, _ in outputs]


def size(store: SqliteStore) -> int:
    """Bytes of all values, counted by somebody else."""
    with closing(sqlite3.connect(store.path)) as connection:
        return int(connection.execute("SELECT coalesce(sum(length(value)), 0) FROM entries").fetchone()[0])


# -- what LangChain promises of a store -----------------------------------------------------------------------------------


class TestSync(BaseStoreSyncTests[bytes]):
    @pytest.fixture
    def kv_store(self, store: SqliteStore) -> BaseStore[str, bytes]:
        return store

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return THREE


class TestAsync(BaseStoreAsyncTests[bytes]):
    @pytest.fixture
    async def kv_store(self, store: SqliteStore) -> BaseStore[str, bytes]:
        return store

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return THREE


def test_langchains_redis_store_is_interchangeable(redis_store: BaseStore[str, bytes]) -> None:
    redis_store.mset([("a", b"\x00\xff"), ("b", b"2")])
    redis_store.mdelete(["b", "c"])
    assert (redis_store.mget(["a", "b"]), list(redis_store.yield_keys())) == ([b"\x00\xff", None], ["a"])


# -- keys -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prefix", ["", "a", "%", "_", "*", "a%", "[", "\\", "ä", "\0", "\U0010ffff", "'", "none"]
)
def test_a_prefix_is_taken_as_it_is(store: SqliteStore, prefix: str) -> None:
    keys = [
        start + end
        for start in ("a", "%", "_", "*", "a%", "[", "\\", "ä", "\0", "\U0010ffff", "'")
        for end in "xy"
    ]
    store.mset([(key, b"") for key in keys])
    assert list(store.yield_keys(prefix=prefix)) == sorted(key for key in keys if key.startswith(prefix))
    assert store.clear(prefix) == sum(key.startswith(prefix) for key in keys)
    assert list(store.yield_keys()) == sorted(key for key in keys if not key.startswith(prefix))


@settings(deadline=None)
@given(pairs=st.dictionaries(st.text(max_size=3), st.binary(max_size=3)), prefix=st.text(max_size=2))
def test_any_text_is_a_key_and_any_bytes_a_value(
    tmp_path_factory: pytest.TempPathFactory, pairs: dict[str, bytes], prefix: str
) -> None:
    with SqliteStore(tmp_path_factory.getbasetemp() / "any.db") as store:
        store.clear()
        store.mset(list(pairs.items()))
        assert dict(zip(pairs, store.mget(list(pairs)), strict=True)) == pairs
        assert list(store.yield_keys(prefix=prefix)) == sorted(key for key in pairs if key.startswith(prefix))


async def test_many_keys_come_in_pages_while_others_write(store: SqliteStore) -> None:
    store.mset([(f"{number:05}", b"") for number in range(2500)])
    found = []
    async for key in store.ayield_keys():
        found.append(key)
        if key == "00000":
            store.mdelete(["00001", "02400"])  # One is in this page already.
    assert (len(found), list(store.yield_keys())[-1]) == (2499, "02499")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda store: store.mset([("good", b""), ("a", "text")]), "The value of 'a' must be bytes, not str"),
        (lambda store: store.mset([("good", b""), (1, b"")]), "A key must be a str, not int"),
        (lambda store: store.mset([("good", b""), ("\ud800", b"")]), "surrogates"),
        (lambda store: store.mget("good"), r"Pass \['good'\]"),
    ],
)
def test_wrong_types_are_refused_before_anything_is_written(store: SqliteStore, call: Any, said: str) -> None:
    with pytest.raises((InputError, ConfigurationError), match=said):
        call(store)
    assert store.stats() == StoreStats(0, 0, 0)


# -- how long and how much ------------------------------------------------------------------------------------------------


def test_an_entry_whose_time_is_over_is_missing_and_goes_with_the_next_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(path, ttl=60) as store, SqliteStore(path) as lasting:
        store.mset([("a", b"1")])
        lasting.mset([("b", b"2")])
        assert store.mget(["a", "b"]) == [b"1", b"2"]
        later = time.time() + 60
        monkeypatch.setattr("time.time", lambda: later)
        assert (store.mget(["a", "b"]), list(store.yield_keys())) == ([None, b"2"], ["b"])
        assert store.stats() == StoreStats(1, 1, 1)
        lasting.mset([("c", b"3")])
        assert store.stats() == StoreStats(2, 2, 0)


def test_the_bound_holds_after_each_write(path: Path) -> None:
    with SqliteStore(path, max_bytes=100) as store:
        for number in range(60):
            store.mset(
                [(str(number % 7), b"x" * (number * 37 % 101)), (str(number), b"x" * (number * 53 % 40))]
            )
            assert size(store) <= 100
            assert store.stats().bytes == size(store)


@pytest.mark.slow
def test_what_was_not_used_for_longest_goes_first(path: Path) -> None:
    with SqliteStore(path, max_bytes=3) as store:
        store.mset([("a", b"1"), ("b", b"2"), ("c", b"3")])
        time.sleep(1.1)  # Uses within a second of each other are not noted.
        store.mget(["a"])
        store.mset([("d", b"4")])
        assert list(store.yield_keys()) == ["a", "c", "d"]
        store.mset([("c", b"5"), ("e", b"66")])
        assert list(store.yield_keys()) == ["c", "e"]


def test_a_clock_that_is_set_back_does_not_mix_up_their_order(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SqliteStore(path, max_bytes=2) as store:
        for key, now in (("a", 3e9), ("b", 2e9), ("c", 1e9)):
            monkeypatch.setattr("time.time", lambda now=now: now)
            store.mset([(key, b"1")])
        assert list(store.yield_keys()) == ["b", "c"]


def test_a_value_that_is_too_large_by_itself_is_not_stored_and_pushes_nothing_out(path: Path) -> None:
    with SqliteStore(path, max_bytes=3) as store:
        store.mset([("a", b"1"), ("b", b"2"), ("a", b"too large")])
        assert store.mget(["a", "b"]) == [None, b"2"]


def test_a_read_waits_for_no_writer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.storage.sqlite.USE_INTERVAL_S", 0)
    with (
        SqliteStore(path, max_bytes=9) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        store.mset([("a", b"1")])
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert (store.mget(["a"]), time.monotonic() - began < 5) == ([b"1"], True)


def test_clearing_gives_room_back_to_the_disk(path: Path) -> None:
    with SqliteStore(path) as store:
        store.mset([("a", bytes(1_000_000)), ("b", b"")])
    assert path.stat().st_size > 1_000_000
    with SqliteStore(path) as store:
        assert (store.clear("a"), list(store.yield_keys())) == (1, ["b"])
    assert path.stat().st_size < 100_000


# -- many at once ---------------------------------------------------------------------------------------------------------

FILL = "store = SqliteStore(sys.argv[1])\nfor n in range(200): store.mset([(f'{sys.argv[2]}-{n}', b'x'), ('same', b'y')])"


@pytest.mark.slow
def test_threads_and_processes_that_write_at_once_lose_nothing(store: SqliteStore) -> None:
    with ThreadPoolExecutor(9) as pool:
        others = pool.submit(python, FILL, store.path, count=4)
        ours = [pool.submit(store.mset, [(f"{thread}+{n}", b"x")]) for thread in range(8) for n in range(200)]
        for future in ours:
            future.result()
        others.result()
    assert store.stats() == StoreStats(4 * 200 + 8 * 200 + 1, 4 * 200 + 8 * 200 + 1, 0)


OPEN = """
import os
os.mkdir(f"{sys.argv[2]}/{sys.argv[3]}")
while len(os.listdir(sys.argv[2])) < 8: pass
SqliteStore(sys.argv[1]).mset([(sys.argv[3], b"")])
"""


@pytest.mark.slow
def test_processes_that_open_a_new_file_at_once_all_can(
    path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    python(OPEN, path, tmp_path_factory.mktemp("ready"), count=8)
    with SqliteStore(path) as store:
        assert len(list(store.yield_keys())) == 8
    assert files_beside_locks(path.parent) == {"store.db"}


def files_beside_locks(folder: Path) -> set[str]:
    """Names of files but those that lock a folder, as Windows has no other locks for folders."""
    locks = {".code_chains.lock"} if sys.platform == "win32" else set()
    return {*os.listdir(folder)} - locks


def test_a_write_is_whole_or_not_at_all(store: SqliteStore) -> None:
    keys = [str(number) for number in range(100)]

    def write() -> None:
        for number in range(100):
            store.mset([(key, str(number).encode()) for key in keys])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen = [set(store.mget(keys))]
        while not writing.done():
            seen.append(set(store.mget(keys)))
    assert (max(map(len, seen)), len(seen) > 10) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.soak)])
@pytest.mark.parametrize("subject", SUBJECTS)
def test_writers_that_are_killed_have_lost_nothing_that_was_acknowledged(subject: str, rounds: int) -> None:
    came = run(subject, rounds=rounds, writes=300)
    assert (came.acknowledged > 0, came.lost, came.corrupt) == (True, 0, 0), came
    assert isinstance(came, Outcome)


async def test_the_event_loop_goes_on_while_a_write_waits(store: SqliteStore) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.amset([("a", b"1")]))
        ticks = 0
        while ticks < 20:
            await asyncio.sleep(0.01)
            ticks += 1
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
    assert await store.amget(["a"]) == [b"1"]


def test_a_lock_timeout_is_retryable(path: Path) -> None:
    with (
        SqliteStore(path, timeout=0.1) as store,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreError, match=r"store\.db cannot be used: database is locked.*try again"
        ) as raised:
            store.mset([("a", b"1")])
        other.execute("COMMIT")
        store.mset([("a", b"2")])
        assert (raised.value.is_retryable, store.mget(["a"])) == (True, [b"2"])


# -- forks ----------------------------------------------------------------------------------------------------------------

FORK = """
import os, threading
store = SqliteStore(sys.argv[1])
store.mset([("first", b"1")])
going = True
def use():
    while going: store.mset([("busy", b"")]), store.mget(["busy"])
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads: thread.start()
children = []
for number in range(10):
    child = os.fork()
    if not child:
        open_files = [os.path.realpath(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")]
        inherited = any(sys.argv[1] in name for name in open_files)
        for n in range(20): store.mset([(f"{number}-{n}", b"")])
        keys = [f"{number}-{n}" for n in range(20)]
        os._exit(inherited or store.mget(["first", *keys]) != [b"1", *[b""] * 20])
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
going = False
for thread in threads: thread.join()
print(codes, len(list(store.yield_keys())), sqlite3.connect(sys.argv[1]).execute("PRAGMA integrity_check").fetchone()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_child_of_a_fork_writes_on_connections_of_its_own_while_its_parent_goes_on(path: Path) -> None:
    assert python(FORK, path) == [f"{[0] * 10} 202 ok\n"]


OUTLIVED = """
import os
store = SqliteStore(sys.argv[1])
store.mset([("before", b"")]), store.mget(["before"])
from_child, to_parent = os.pipe()
from_parent, to_child = os.pipe()
if not os.fork():
    store.mset([("first", b"")])
    os.write(to_parent, b"!"), os.read(from_parent, 1)
    for n in range(9): store.mset([(str(n), b"")])
    os._exit(0)
os.read(from_child, 1)
store.close()
os.write(to_child, b"!"), os.wait()
print(len(list(store.yield_keys())))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_child_loses_nothing_when_its_parent_closes_the_store(path: Path) -> None:
    assert python(OUTLIVED, path) == ["11\n"]


LOCK = """
import os
store = SqliteStore(sys.argv[1], timeout=0.1)
from_child, to_parent = os.pipe()
from_parent, to_child = os.pipe()
if not os.fork():
    with store._writing():
        os.write(to_parent, b"!"), os.read(from_parent, 1)
    os._exit(0)
os.read(from_child, 1)
try: store.mset([("b", b"")])
except Exception as error: print(type(error).__name__)
os.write(to_child, b"!"), os.wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_parent_and_child_know_of_each_others_locks(path: Path) -> None:
    assert python(LOCK, path) == ["StoreError\n"]


def test_it_can_be_used_again_after_it_was_closed(store: SqliteStore) -> None:
    store.mset([("a", b"1")])
    store.close()
    assert files_beside_locks(store.path.parent) == {"store.db"}
    assert store.mget(["a"]) == [b"1"]


# -- files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists instead of modes")
def test_files_are_accessible_to_their_owner_alone(store: SqliteStore) -> None:
    store.mset([("a", b"1")])
    modes = [
        path.stat().st_mode & 0o777 for path in (store.path.parent.parent, store.path.parent, store.path)
    ]
    assert modes == [0o700, 0o700, 0o600]
    assert {path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()} == {0o600}


def test_the_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with SqliteStore("~/store.db") as store:
        assert store.path == tmp_path / "store.db"


def _somebody_elses(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE notes (text)")


def _newer(path: Path) -> None:
    with SqliteStore(path) as store, closing(sqlite3.connect(path)) as connection:
        store.mset([("a", b"1")])
        connection.execute("PRAGMA user_version = 2")


def _damaged(path: Path) -> None:
    SqliteStore(path).close()
    path.write_bytes(b"?" * 50 + path.read_bytes()[50:])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda path: path.write_text("dear diary\n" * 100),
            "file is not a database. Choose another path, or move",
        ),
        (
            lambda path: path.write_bytes(b"SQLite format 3\0"),
            "file is not a database. Choose another path, or move",
        ),
        (_damaged, "file is not a database. Choose another path, or move"),
        (_somebody_elses, "is another kind of database. Choose another path, or move"),
        (_newer, "has format 2; this version of code_chains knows format 1. Upgrade"),
    ],
    ids=["text", "header", "damaged", "foreign", "newer"],
)
def test_another_kind_of_file_is_refused_and_left_unchanged(tmp_path: Path, make: Any, said: str) -> None:
    path = tmp_path / "file"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"{path}.*{said}"):
        SqliteStore(path)
    assert path.read_bytes() == before


def tampered(path: Path, sql: str) -> Path:
    """A store with an entry, changed by somebody else."""
    with SqliteStore(path) as store:
        store.mset([("a", b"1")])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(sql)
    return path


TAMPERING = {
    "view": "DROP TABLE entries; CREATE VIEW entries AS SELECT 1 AS id, 'a' AS key, zeroblob(900000000) AS value",
    "another trigger": "CREATE TRIGGER more AFTER INSERT ON total BEGIN DELETE FROM entries; END",
    "generated column": "ALTER TABLE entries ADD COLUMN more AS (zeroblob(900000000))",
    "another table": "CREATE TABLE more (x)",
    "index on an expression": "CREATE INDEX more ON entries (abs(size))",
    "missing trigger": "DROP TRIGGER added",
    "missing table": "DROP TABLE total",
    "virtual table": "DROP TABLE total; CREATE VIRTUAL TABLE total USING fts5(bytes)",
}


@pytest.mark.parametrize("sql", TAMPERING.values(), ids=TAMPERING)
def test_a_store_whose_schema_was_changed_is_refused(path: Path, sql: str) -> None:
    tampered(path, sql)
    with pytest.raises(StoreError, match="were changed by something else"):
        SqliteStore(path)


def test_a_file_that_is_exchanged_later_is_refused(path: Path, tmp_path: Path) -> None:
    with SqliteStore(path) as store:
        store.mset([("a", b"1")])
        store.close()
        tampered(tmp_path / "other.db", TAMPERING["view"]).replace(path)
        with pytest.raises(StoreError, match="were changed by something else"):
            store.mget(["a"])


def test_a_foreign_database_with_a_journal_is_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "file"
    code = """
import os, sqlite3
notes = sqlite3.connect(sys.argv[1], isolation_level=None)
notes.execute("PRAGMA journal_mode = WAL"); notes.execute("CREATE TABLE notes (text)")
os._exit(0)
"""
    python(code, path)
    before = {file: file.read_bytes() for file in (path, tmp_path / "file-wal")}
    with pytest.raises(StoreError, match="another kind"):
        SqliteStore(path)
    assert {file: file.read_bytes() for file in before} == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o644)
    with SqliteStore(tmp_path / "file") as store:
        store.mset([("a", b"1")])
        assert (store.path.stat().st_mode & 0o777, store.mget(["a"])) == (0o600, [b"1"])


def test_leftovers_of_a_deleted_file_are_not_applied(path: Path) -> None:
    python("import os; store = SqliteStore(sys.argv[1]); store.mset([('old', b'1')]); os._exit(0)", path)
    assert path.with_name("store.db-wal").stat().st_size > 0
    path.unlink()
    with SqliteStore(path) as store:
        assert list(store.yield_keys()) == []


def test_a_folder_that_cannot_be_created_is_named() -> None:
    with pytest.raises(
        StoreError, match=r"/proc/store/a\.db cannot be created: .* Make the file and its folder writable"
    ):
        SqliteStore("/proc/store/a.db")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"{tmp_path} cannot be created: it is a folder"):
        SqliteStore(tmp_path)


@pytest.mark.slow
def test_a_full_disk_is_an_error_and_loses_nothing(path: Path) -> None:
    code = """
import resource
store = SqliteStore(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
for n in range(1000):
    try: store.mset([(str(n), bytes(1000))])
    except Exception as error: print(n, type(error).__name__, error); break
"""
    [said] = python(code, path)
    written, name = said.split()[:2]
    with SqliteStore(path) as store:
        assert (len(list(store.yield_keys())), name) == (int(written), "StoreError"), said


@pytest.mark.parametrize(
    "options",
    [
        *[{"path": path} for path in (":memory:", "", 3)],
        *[{"ttl": ttl} for ttl in (0, "1")],
        *[{"max_bytes": most} for most in (0, 1.5, True)],
        *[{"timeout": timeout} for timeout in (-1, float("nan"))],
    ],
    ids=str,
)
def test_arguments_that_do_not_work_are_named(path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))}="):
        SqliteStore(**{"path": path, **options})


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed by Linux")
def test_open_files_are_few_however_many_threads_there_are(store: SqliteStore) -> None:
    with ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda n: store.mset([(str(n), b"")]), range(40)))
        list(pool.map(lambda n: store.mget([str(n)]), range(400)))
    files = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    # Two connections, and what SQLite keeps open of a third, as closing it would end the locks of the others.
    assert 2 <= files.count(str(store.path)) <= 3


def test_a_read_waits_for_no_thread_that_waits_to_write(store: SqliteStore) -> None:
    store.mset([("a", b"1")])
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other, ThreadPoolExecutor(1) as pool:
        other.execute("BEGIN IMMEDIATE")
        writing = pool.submit(store.mset, [("a", b"2")])
        assert soon(store._writer.lock.locked)
        assert (store.mget(["a"]), writing.done()) == ([b"1"], False)
        other.rollback()
        writing.result()
    assert store.mget(["a"]) == [b"2"]


def hot_journal(store: Path, victim: Path) -> bytes:
    """A journal that SQLite would play back, and then delete the file that it names as the journal above it."""
    magic, name = bytes.fromhex("d9d505f920a163d7"), str(victim).encode()
    head = magic + struct.pack(">IIIII", 0, 0, store.stat().st_size // 4096, 512, 4096)
    tail = struct.pack(">I", (1 << 30) // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    return head.ljust(512, b"\0") + tail


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_journal_beside_a_store_deletes_no_file(tmp_path: Path, when: str) -> None:
    victim, path = tmp_path / "victim", tmp_path / "store.db"
    victim.write_text("precious")
    with closing(SqliteStore(path)) as first:
        first.mset([("a", b"1")])
    journal = tmp_path / "store.db-journal"
    if when == "before":
        journal.write_bytes(hot_journal(path, victim))
        with pytest.raises(StoreError):
            SqliteStore(path)
    else:
        store = SqliteStore(path)
        journal.write_bytes(hot_journal(path, victim))
        with pytest.raises(StoreError):
            store.mset([("a", b"2")])
        assert store.mget(["a"]) == [b"1"]
    assert victim.read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no FIFOs")
def test_what_is_no_file_is_never_replaced_by_a_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in ("fifo", "/dev/null"):
        with pytest.raises(StoreError, match="not a regular file"):
            SqliteStore(tmp_path / name)
    assert (tmp_path / "fifo").is_fifo()
