"""The warm sandbox: what goes in, what comes out, how it stays warm and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import site
import socket
import struct
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from code_chains.errors import ConfigurationError, ExecutorError, InputError, MissingExtraError
from code_chains.executors import Limits, ProcessExecutor, SandboxExecutor
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.interpreter import this
from code_chains.executors.sandbox.provider import PRELOAD
from code_chains.records import DisplayData
from tests.conftest import ROOT, PatchInside, at_rest, descendants, soon


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    """A sandbox with everything loaded."""
    with SandboxExecutor(limits=Limits(seconds=10, artifacts="1M")) as executor:
        yield executor


# -- inputs --------------------------------------------------------------------------------------------------------------


def test_arrays_and_frames_arrive_as_they_are(executor: SandboxExecutor) -> None:
    frame = pd.DataFrame(
        {"day": pd.to_datetime(["2024-01-01", "2024-02-01"]), "sold": [1, 2], "who": ["a", None]}
    )
    given = {
        "frame": frame,
        "grid": np.arange(6.0).reshape(2, 3),
        "pole": pl.DataFrame({"x": [1]}),
        "t": pa.table({"y": [2]}),
    }
    code = "frame.dtypes.astype(str).to_dict(), frame.sold.sum(), grid.sum(), grid.shape, pole['x'].sum(), t.num_rows"
    expected = f"({frame.dtypes.astype(str).to_dict()}, np.int64(3), np.float64(15.0), (2, 3), 1, 1)"
    assert executor.run(code, variables=given).result == expected


def test_arrays_of_objects_are_refused(executor: SandboxExecutor) -> None:
    with pytest.raises(InputError, match="objects"):
        executor.run("x", variables={"x": np.array([object()])})


def test_a_change_inside_does_not_reach_what_was_given(executor: SandboxExecutor) -> None:
    array = np.zeros(3)
    assert executor.run("x[0] = 1; x.sum()", variables={"x": array}).result == "np.float64(1.0)"
    assert array.sum() == 0


def test_hundreds_of_files_can_be_given(executor: SandboxExecutor, tmp_path: Path) -> None:
    files = {f"d{n % 7}/f{n}.txt": tmp_path / f"{n}" for n in range(300)}
    for number, path in enumerate(files.values()):
        path.write_text(str(number))
    code = "from pathlib import Path\nsum(int(p.read_text()) for p in Path('.').rglob('*.txt'))"
    assert executor.run(code, files=files).result == str(sum(range(300)))


# -- artifacts -----------------------------------------------------------------------------------------------------------


def names(done: Any) -> list[tuple[str, str]]:
    return [(artifact.name, artifact.media_type) for artifact in done.artifacts]


def test_files_that_a_program_made_come_out(executor: SandboxExecutor, sales: Path) -> None:
    done = executor.run(
        "import os; os.mkdir('out'); open('out/a.json', 'w').write('[1]'); 1 / 0", files={"s.csv": sales}
    )
    assert names(done) == [("out/a.json", "application/json")]
    assert done.artifacts[0].data == b"[1]"


def test_a_given_file_that_was_replaced_comes_out(executor: SandboxExecutor, sales: Path) -> None:
    done = executor.run(
        "import os; os.remove('s.csv'); open('s.csv', 'w').write('new')", files={"s.csv": sales}
    )
    assert [artifact.data for artifact in done.artifacts] == [b"new"]


@pytest.mark.slow
def test_a_figure_comes_out_without_being_saved(executor: SandboxExecutor) -> None:
    done = executor.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()")
    assert names(done) == [("figure-1.png", "image/png")]
    assert (done.artifacts[0].data[:4], done.stderr) == (b"\x89PNG", "")


def test_a_figure_that_was_saved_comes_out_once(executor: SandboxExecutor) -> None:
    done = executor.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig('mine.png')")
    assert names(done) == [("mine.png", "image/png")]


def test_files_of_equal_content_both_come_out(executor: SandboxExecutor) -> None:
    done = executor.run(
        "for name in ('north.csv', 'south.csv', 'empty'): open(name, 'w').write('a'[: len(name) - 5])"
    )
    assert sorted(artifact.name for artifact in done.artifacts) == ["empty", "north.csv", "south.csv"]


def test_a_frame_shows_itself_as_html(executor: SandboxExecutor) -> None:
    done = executor.run("import pandas as pd; pd.DataFrame({'a': [1]})")
    assert done.display_data[0].media_type == "text/html"
    assert ("<table" in done.display_data[0].data, done.artifacts) == (True, ())


def test_a_value_shows_itself_as_markdown(executor: SandboxExecutor) -> None:
    done = executor.run("class Note:\n    def _repr_markdown_(self): return '# Hi'\nNote()")
    assert done.display_data == (DisplayData("text/markdown", "# Hi"),)


def test_a_view_that_fails_harms_nothing(executor: SandboxExecutor) -> None:
    done = executor.run(
        "class Bad:\n    def _repr_html_(self): raise SystemExit\n    def __repr__(self): return 'bad'\nBad()"
    )
    assert (done.status, done.result, done.artifacts) == ("ok", "bad", ())


def test_what_is_too_large_stays_behind_and_that_is_said(executor: SandboxExecutor) -> None:
    done = executor.run("open('big', 'wb').write(bytes(2 << 20)); open('small', 'w').write('s')")
    assert (names(done), done.truncated) == ([("small", "application/octet-stream")], True)


# -- packages, interpreters, repetition ----------------------------------------------------------------------------------


def test_a_missing_package_is_named_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"pip install no-such-thing"):
        SandboxExecutor(packages=("numpy", "no_such_thing"))


STATISTICS = """
import numpy as np, seaborn as sns
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
x, y = np.arange(20.0).reshape(-1, 1), [0] * 10 + [1] * 10
sns.histplot(x, kde=True)
print(stats.ttest_ind(x[:10], x[10:]).pvalue[0] < 0.01, RandomForestClassifier(n_jobs=-1).fit(x, y).score(x, y))
"""


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_programs_have_statistics_models_and_figures() -> None:
    with SandboxExecutor(limits=Limits(seconds=60)) as executor:
        execution = executor.run(STATISTICS)
    assert (execution.output, len(execution.artifacts)) == ("True 1.0", 1)


def test_the_model_is_told_what_can_be_imported() -> None:
    with SandboxExecutor(packages=("numpy", "pandas"), preload=()) as executor:
        assert "numpy, pandas; nothing else" in executor.guidance


def test_an_environment_of_its_own_can_be_given(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    packages = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    (packages / "only_here.py").write_text("answer = 42")
    with SandboxExecutor(python=str(tmp_path / "venv/bin/python"), packages=("only_here",)) as executor:
        assert executor.run("import only_here; only_here.answer").result == "42"


RUN_ONE = """
from code_chains.executors import SandboxExecutor
with SandboxExecutor(launcher=LAUNCHER, preload=()) as executor:
    print(executor.run("import only_here; print(only_here.answer)").output)
"""


@pytest.mark.slow
@pytest.mark.kernel_sandbox
@pytest.mark.parametrize("folder", ["v", "with space, ünï☃", "x" * 200])
@pytest.mark.parametrize("python", ["../{}/bin/python", "../link/bin/python", "python", "elsewhere"])
def test_this_python_runs_programs_however_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, launcher: Any, folder: str, python: str
) -> None:
    venv.create(tmp_path / folder, symlinks=True)
    packages = next((tmp_path / folder / "lib").glob("python*/site-packages"))
    (packages / "only_here.py").write_text("answer = 42")
    (packages / "more.pth").write_text("\n".join([str(ROOT), *site.getsitepackages()]))
    (tmp_path / "link").symlink_to(tmp_path / folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", f"../{folder}/bin", prepend=os.pathsep)
    code = RUN_ONE.replace("LAUNCHER", repr(launcher))
    if python == "elsewhere":
        python, code = "python", f"import os; os.chdir('/'){code}"
    done = subprocess.run([python.format(folder), "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_what_is_no_python_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="Python 3"):
        SandboxExecutor(python="/bin/true")


@pytest.mark.slow
def test_a_run_with_a_seed_can_be_repeated_bit_for_bit() -> None:
    code = (
        "import datetime, os, random, secrets, time, uuid, numpy\n"
        "random.random(), numpy.random.rand(), numpy.random.default_rng().random(), uuid.uuid4(), secrets.token_hex(),"
        " os.urandom(4), time.time(), time.perf_counter(), datetime.datetime.now(), {'a', 'b', 'c'}, hash('x')"
    )
    outcomes = []
    for _ in range(2):
        with SandboxExecutor(seed=7, preload=("numpy",)) as executor:
            outcomes += [executor.run(code).result for _ in range(2)]
    assert len(set(outcomes)) == 1
    assert "2026, 1, 1" in str(outcomes[0])


def test_without_a_seed_runs_differ(executor: SandboxExecutor) -> None:
    code = "import random, numpy, secrets; random.random(), numpy.random.rand(), secrets.token_hex()"
    runs = [str(executor.run(code).result).split(",") for _ in range(4)]
    assert [len(set(column)) for column in zip(*runs, strict=True)] == [4, 4, 4]


# -- network -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def servers() -> Iterator[list[int]]:
    """Ports of two servers on loopback."""

    class Hello(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: Any) -> None:
            pass

    running = [ThreadingHTTPServer(("127.0.0.1", 0), Hello) for _ in range(2)]
    for server in running:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield [server.server_port for server in running]
    for server in running:
        server.shutdown()
        server.server_close()


def test_only_the_addresses_that_were_given_can_be_reached(servers: list[int], launcher: Any) -> None:
    allowed, other = servers
    code = (
        "import socket, urllib.request\ndef get(url):\n  try: return urllib.request.urlopen(url, timeout=3).read()\n"
        "  except OSError as error: return type(error).__name__\n"
        f"get('http://localhost:{allowed}'), get('http://localhost:{other}'), get('http://example.org'), "
        "get('http://1.1.1.1')"
    )
    with SandboxExecutor(network=[f"localhost:{allowed}"], preload=(), launcher=launcher) as executor:
        assert [executor.run(code).result for _ in range(2)] == [
            "(b'hello', 'URLError', 'URLError', 'URLError')"
        ] * 2


def test_the_probe_still_finds_the_network_closed(servers: list[int]) -> None:
    with SandboxExecutor(network=[f"localhost:{servers[0]}"], preload=()) as executor:
        isolation = executor.run("1").isolation
    assert isolation is not None
    assert isolation.network


@pytest.mark.parametrize(
    "network", [True, "api.example.org:443", ["no port"], ["*:443"], ["[::1]:80"], ["a:0"], ["-x:1"]]
)
def test_what_is_no_address_is_refused(network: Any) -> None:
    with pytest.raises(ConfigurationError, match="network"):
        SandboxExecutor(network=network)


def test_a_seed_without_its_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.executors.sandbox.executor.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"seed=7 needs the extra 'repeatable'"):
        SandboxExecutor(seed=7)


def test_without_namespaces_no_address_can_be_opened() -> None:
    with pytest.raises(ConfigurationError, match="namespaces"):
        SandboxExecutor(network=["a:1"], min_isolation="landlock")


# -- staying warm --------------------------------------------------------------------------------------------------------


def worker_of(executor: SandboxExecutor) -> int:
    worker = executor._provider.pool.worker
    assert worker is not None
    return worker._process.pid


def test_all_runs_come_from_one_worker(executor: SandboxExecutor) -> None:
    first = (executor.run("1").ok, worker_of(executor))
    assert (executor.run("1").ok, worker_of(executor)) == first


def test_a_worker_that_was_killed_is_replaced_unnoticed(executor: SandboxExecutor) -> None:
    executor.run("1")
    before = worker_of(executor)
    os.kill(before, signal.SIGKILL)
    assert soon(lambda: not Path(f"/proc/{before}/cwd").exists())
    assert [executor.run("6 * 7").result for _ in range(3)] == ["42"] * 3
    assert worker_of(executor) != before


@pytest.mark.slow
def test_a_worker_that_is_killed_under_a_run_is_a_retryable_error(executor: SandboxExecutor) -> None:
    executor.run("1")
    timer = threading.Timer(1.0, executor.restart)
    timer.start()
    with pytest.raises(ExecutorError) as caught:
        executor.run("import time; time.sleep(8); print('never')")
    timer.join()
    assert caught.value.is_retryable
    assert executor.run("6 * 7").result == "42"


def test_a_box_whose_program_is_killed_before_it_is_ready_is_given_up_at_once() -> None:
    with SandboxExecutor(preload=()) as executor:
        fork = Fork(executor._provider.pool._current_worker(), 100, 100)
        watcher, *pipes = (os.dup(descriptor) for descriptor in fork._theirs)
        fork._close_theirs()
        for pipe in pipes:  # The watcher lives and has nothing to say yet.
            os.close(pipe)
        for descriptor in fork.descriptors:
            fork.read(descriptor)
        assert (fork.is_started(), fork.failure) == (True, "its first process ended before it was ready")
        fork.close()
        os.close(watcher)


@pytest.mark.slow
def test_an_old_worker_is_replaced_without_harm_to_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.executors.sandbox.worker.MAX_FORKS", 3)
    with SandboxExecutor(preload=()) as executor, ThreadPoolExecutor(4) as pool:
        slow = "import time; time.sleep(0.3); 6 * 7"
        results = [done.result for done in pool.map(executor.run, [slow] * 12)]
        assert results == ["42"] * 12


def test_threads_share_an_executor_without_mixing(executor: SandboxExecutor) -> None:
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: executor.run(f"print({n}); {n} * 2"), range(32)))
    assert [(run.stdout, run.result) for run in done] == [(f"{n}\n", str(2 * n)) for n in range(32)]


async def test_tasks_share_an_executor_without_a_thread_for_each(executor: SandboxExecutor) -> None:
    await executor.arun("1")
    before = threading.active_count()
    runs = asyncio.gather(*(executor.arun(f"import time; time.sleep(0.2); {n}") for n in range(10)))
    await asyncio.sleep(0.1)
    during = threading.active_count()
    assert [run.result for run in await runs] == [str(n) for n in range(10)]
    assert during == before


@pytest.mark.slow
def test_memory_of_this_process_stays_flat_under_a_flood() -> None:
    code = (
        f"import resource, sys; sys.path.insert(0, {str(ROOT)!r})\nfrom code_chains.executors import *\n"
        "box = SandboxExecutor(preload=(), limits=Limits(seconds=9)); box.run('1')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "done = box.run('import sys\\nfor _ in range(200): sys.stdout.write(\"x\" * (1 << 20))')\n"
        "print(done.status, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024); box.close()"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "output_limit True\n"


def test_after_a_fork_both_processes_go_on(executor: SandboxExecutor) -> None:
    executor.run("1")
    child = os.fork()
    if child == 0:
        try:
            done = executor.run("6 * 7").result == "42"
            executor.close()
            os._exit(0 if done else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert executor.run("6 * 7").result == "42"


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_an_executor_that_was_forgotten_ends_with_its_process() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom code_chains.executors import SandboxExecutor\n"
        "box = SandboxExecutor(preload=()); box.run('1'); box.session().run('1')\n"
        "print(box._provider.pool.worker._process.pid)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert soon(lambda: not Path(f"/proc/{done.stdout.strip()}").exists())


def test_a_library_that_runs_threads_is_not_loaded_ahead(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    packages = next((tmp_path / "venv/lib").glob("python*/site-packages"))
    (packages / "busy.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()"
    )
    with (
        SandboxExecutor(python=str(tmp_path / "venv/bin/python"), preload=("busy",)) as executor,
        pytest.raises(ConfigurationError, match="threads"),
    ):
        executor.run("import busy")


def test_warming_does_not_wait(executor: SandboxExecutor) -> None:
    with SandboxExecutor(preload=PRELOAD) as fresh:
        began = time.monotonic()
        fresh.warm_up()
        warming = time.monotonic() - began
        assert fresh.run("import pandas").ok
        assert warming < (time.monotonic() - began) / 2


def test_a_plain_process_is_warm_and_clean_as_well() -> None:
    with ProcessExecutor(preload=()) as executor:
        executor.run("import os; open('left', 'w'); os.environ['LEFT'] = '1'")
        before = at_rest()
        assert executor.run("import os; os.listdir(), 'LEFT' in os.environ").result == "([], False)"
        assert soon(lambda: len(descendants()) <= before)


@pytest.mark.slow
def test_what_is_open_is_still_found_open_after_hundreds_of_runs() -> None:
    with ProcessExecutor(preload=()) as executor:
        found = [executor.run("1").isolation for _ in range(200)]
    assert all(isolation is not None and "network" in isolation.open for isolation in found)


def test_exactly_the_limit_of_output_is_no_flood() -> None:
    with SandboxExecutor(limits=Limits(output=10), preload=()) as executor:
        assert [executor.run(f"print('x' * {n})").status for n in (9, 10)] == ["ok", "output_limit"]


COUNT_FILES = """
files = []
try:
    while True: files.append(open('/dev/null'))
except OSError:
    print(len(files))
"""


def test_a_program_may_open_more_files_than_this_process() -> None:
    import resource  # Not on Windows.

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    many = min(3000, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        with SandboxExecutor(preload=(), limits=Limits(open_files=many)) as executor:
            assert many - 20 < int(executor.run(COUNT_FILES).stdout) <= many
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_open_files_than_the_system_allows_are_refused_at_once() -> None:
    import resource  # Not on Windows.

    if (hard := resource.getrlimit(resource.RLIMIT_NOFILE)[1]) >= 1_000_000 or hard < 0:
        pytest.skip("the system allows as many as the limit may say")
    with pytest.raises(ConfigurationError, match=f"at most {hard}"):
        SandboxExecutor(limits=Limits(open_files=1_000_000))


def test_closing_ends_a_run_that_is_under_way() -> None:
    executor = SandboxExecutor(preload=())
    executor.run("1")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(executor.run, "import time; time.sleep(8)")
        time.sleep(0.3)
        executor.close()
        with pytest.raises(ExecutorError):
            running.result(5)


def test_too_many_tables_are_refused(executor: SandboxExecutor) -> None:
    with pytest.raises(InputError, match="At most"):
        executor.run("1", variables={f"x{n}": np.zeros(1) for n in range(120)})


def test_a_program_that_keeps_connections_does_not_take_them_from_the_next(servers: list[int]) -> None:
    code = f"import socket\nkeep = [socket.create_connection(('localhost', {servers[0]})) for _ in range(70)]"
    ask = f"import urllib.request; urllib.request.urlopen('http://localhost:{servers[0]}', timeout=3).read()"
    with SandboxExecutor(network=[f"localhost:{servers[0]}"], preload=()) as executor:
        assert executor.run(code).ok
        assert executor.run(ask).result == "b'hello'"


def answering(reply: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that does something with each connection."""
    with socket.create_server(("127.0.0.1", 0), backlog=200) as executor:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    reply(executor.accept()[0])

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield executor.getsockname()[1]
        executor.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def _reset(connection: socket.socket) -> None:
    connection.sendall(b"x")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@contextlib.contextmanager
def silent() -> Iterator[int]:
    held: list[socket.socket] = []
    yield from answering(held.append)
    for connection in held:
        connection.close()


def test_a_connection_that_the_other_side_breaks_ends_for_the_program() -> None:
    code = "import socket\nplace = socket.create_connection(('localhost', {}))\nwhile place.recv(10): pass\nprint('over')"
    limits, serving = Limits(seconds=5), contextlib.contextmanager(answering)(_reset)
    with (
        serving as port,
        SandboxExecutor(network=[f"localhost:{port}"], preload=(), limits=limits) as executor,
    ):
        assert executor.run(code.format(port)).status != "timeout"


def test_connections_that_a_program_breaks_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.executors.sandbox.network.HALF_OPEN_TIMEOUT_S", 0.2)
    code = (
        "import socket, struct\nfor n in range(100):\n  one = socket.create_connection(('localhost', {port}), timeout=8)\n"
        "  {linger}\n  one.close()\nprint('done')"
    )
    reset = "one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))"
    with silent() as port, SandboxExecutor(network=[f"localhost:{port}"], preload=()) as executor:
        for linger in (reset, "pass"):
            done = executor.run(code.format(port=port, linger=linger))
            assert done.stdout == "done\n", done


@pytest.mark.slow
def test_one_broken_launcher_weakens_the_box_by_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with SandboxExecutor(min_isolation="none", preload=()) as executor, ThreadPoolExecutor(8) as pool:
        found = {run.isolation.launcher for run in pool.map(executor.run, ["1"] * 8) if run.isolation}
    assert found == {"namespaces"}


def test_a_reported_result_stands_however_long_the_process_takes_to_exit(patch_inside: PatchInside) -> None:
    """On a machine that is busy a process may be killed before it has exited; its files are collected once it is gone."""
    patch_inside("running", "EXIT_TIMEOUT_S = 0.1", "EXIT_TIMEOUT_S = -1")
    with SandboxExecutor(preload=()) as executor:
        done = executor.run("open('made.txt', 'w').write('made'); 5")
    assert (done.status, done.result, [artifact.name for artifact in done.artifacts]) == (
        "ok",
        "5",
        ["made.txt"],
    )


def test_folders_of_packages_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    python = this()
    assert (python.has("numpy"), python.has("no_such_module")) == (True, False)
    monkeypatch.setattr(os, "listdir", lambda path: pytest.fail(f"{path} is listed again"))
    assert not any(python.has(f"module_{number}") for number in range(1_000))


def test_of_files_beyond_those_that_are_kept_nothing_is_read(sandbox: SandboxExecutor) -> None:
    program = (
        "for i in range(100): open(f'a{i:03}', 'w').close()\n"
        "for i in range(500): open(f'b{i}', 'wb').truncate(8_000_000)"
    )
    began = time.thread_time()
    execution = sandbox.run(program)
    assert (execution.ok, len(execution.artifacts), execution.truncated) == (True, 100, True)
    assert time.thread_time() - began < 1
