"""The process around Pythons in WebAssembly, one after another. It trusts nothing that comes out of them.

    python -I worker.py OPTIONS

It takes messages on its standard input: to make a Python (`guest`), to run a program in it (`run`), an answer to what the
program asked (`reply`). What a program sends and how it ended are messages on a pipe of its own; what it prints is for the
host to read on the standard streams. A program can end this process by deep recursion, which is why it is one, and the host
can, at any time: it ends when nobody holds its standard input any more.
With `{"compile": …}` it compiles Python instead, with the modules that run programs loaded.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

Json = dict[str, Any]
CHECK_INTERVAL_S = 0.01
PYTHON_MEMORY = 32 << 20
"""Memory that Python takes itself."""
MAX_MEMORY = (1 << 32) - (1 << 16)
"""What 32 bits can address."""
OWN_MEMORY = 64 << 20
"""What this process may take besides the memory and the files of a program, which are both limited."""
MAX_MESSAGE_BYTES = 64 << 20
MAX_REPORT_BYTES = 4 << 20
"""Bytes of a program's reports besides its files and views."""
IMPORTS = (
    "argparse asyncio base64 bisect calendar cmath collections contextlib copy csv dataclasses datetime"
    " decimal difflib enum fractions functools glob hashlib heapq html io itertools json logging math"
    " operator os pathlib pickle pprint random re shutil sqlite3 statistics string struct sys tempfile"
    " textwrap time typing unicodedata unittest uuid zoneinfo"
).split()
"""Modules that programs find loaded."""
SET_UP = "import guest.webassembly\n__guest__ = guest.webassembly.Guest()\ndel guest"


def main() -> None:
    """Compile, or serve programs, as the options say."""
    options: Json = json.loads(sys.argv[1])
    if "compile" in options:
        import eryx  # Only Python 3.12 and newer have it.

        modules = options["modules"]
        factory = eryx.SandboxFactory(site_packages=modules, imports=IMPORTS, setup_code=SET_UP)
        factory.save(options["compile"])
        return
    sys.path.insert(0, options["modules"])
    Worker(options).serve()


class Worker:
    """Serves the host.

    Args:
        options: Paths of the compiled Python, of the modules, of the folder that programs read, and of time zones.
    """

    def __init__(self, options: Json) -> None:
        import eryx
        from guest.wire import frame, read_frame  # The option `modules` says where it is.

        self._frame, self._read_frame = frame, read_frame
        self.options: Json = options
        self.folder: Path = Path(options["folder"])
        self.eryx: Any = eryx
        self.factory: Any = eryx.SandboxFactory.load(options["python"])
        self.lock: threading.Lock = threading.Lock()
        self.requests, self.reports = sys.stdin.buffer, opened(options["reports"])
        self.jobs: queue.SimpleQueue[tuple[Json, bytes]] = queue.SimpleQueue()
        self.inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.drained: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.session: Any = None
        self.max_rss, self.room = sys.maxsize, 0

    def serve(self) -> None:
        """Do what the host asks for, until it is gone."""
        no_core_dump()
        for work in (self.listen, self.relay, self.watch):
            threading.Thread(target=work, daemon=True).start()
        self.send({"ready": True})
        while True:
            message, data = self.jobs.get()
            getattr(self, f"do_{message['op']}")(message, data)

    # -- what the host asks for ------------------------------------------------------------------------------

    def do_guest(self, message: Json, data: bytes) -> None:
        """Make a Python, in place of the one that was there."""
        self.session, self.max_rss = None, sys.maxsize
        self.wanted.put(False)
        self.replies.put(None)
        for path in self.folder.glob("reply-*"):
            path.unlink()
        self.wanted, self.replies = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.feed, args=(self.wanted, self.replies), daemon=True).start()
        limits = self.eryx.ResourceLimits(
            execution_timeout_ms=None,
            callback_timeout_ms=None,
            max_callback_invocations=0,
            max_memory_bytes=min(message["memory"] + PYTHON_MEMORY, MAX_MEMORY),
            max_vfs_bytes=message["disk"],
        )
        self.session = self.factory.create_session(
            resource_limits=limits,
            vfs_mount_path="/tmp",  # noqa: S108 - the guest's own
            volumes=[(str(self.folder), "/host", True), (self.options["zones"], "/zones", True)],
            on_stderr=self.inbox.put,
        )
        self.max_rss = (rss() or 0) + message["memory"] + PYTHON_MEMORY + message["disk"] + OWN_MEMORY
        trap, _ = self.execute(f"__guest__.start({message['seed']!r})")
        self.send({"failed": trap} if trap else {"made": True})

    def do_probe(self, message: Json, data: bytes) -> None:
        """Run our own source, which prints what it found, in the Python that is there."""
        trap, peak = self.execute(f"__guest__.probe({data.decode()!r})")
        self.end(message["mark"], trap, peak)

    def do_run(self, message: Json, data: bytes) -> None:
        """Run a program in the Python that is there."""
        path = self.folder / f"request-{message['number']}"
        path.write_bytes(data)
        self.room = message["room"] + MAX_REPORT_BYTES
        started = time.monotonic()
        trap, peak = self.execute(f"__guest__.run({message['number']})")
        path.unlink()
        self.end(message["mark"], trap, peak, time.monotonic() - started)

    def execute(self, code: str) -> tuple[str, int]:
        """Run source to its end; return why it was stopped, if it was, and how much memory it had."""
        try:
            return "", self.session.execute(code).peak_memory_bytes or 0  # What it asked for, even in vain.
        except self.eryx.EryxError as error:
            return str(error)[:1000] or type(error).__name__, 0

    def end(self, mark: str, trap: str, peak: int, seconds: float = 0.0) -> None:
        """Report an end, after all that the program had printed and sent before."""
        self.inbox.put(None)
        self.drained.get()
        for descriptor in (1, 2):
            os.write(descriptor, mark.encode())
        self.send({"end": {"trap": trap, "peak": peak, "seconds": seconds}})

    # -- threads ---------------------------------------------------------------------------------------------

    def listen(self) -> None:
        """Take messages of the host."""
        while (received := self._read_frame(self.requests)) is not None:
            message, data = received
            if message["op"] == "reply":
                self.replies.put(data)
            else:
                self.jobs.put((message, data))
        os._exit(1)

    def relay(self) -> None:
        """Pass on what programs send, and hand them replies."""
        while True:
            data = self.inbox.get()
            if data is None:
                self.drained.put(None)
            elif data[:1] == b"n":
                self.wanted.put(True)
            else:
                self.count(data)
                self.send({"from": chr(data[0])}, data[1:])

    def feed(self, wanted: queue.SimpleQueue[bool], replies: queue.SimpleQueue[bytes | None]) -> None:
        """Write replies where one Python looks for them, each when it asks for the next."""
        for number in itertools.count(1):
            if not wanted.get() or (reply := replies.get()) is None:
                return
            with contextlib.suppress(OSError):
                (self.folder / f"reply-{number - 1}").unlink()
            (self.folder / "next").write_bytes(reply)
            (self.folder / "next").replace(self.folder / f"reply-{number}")

    def count(self, data: bytes) -> None:
        """End this process if a program sends too much at once, or too much of what the host keeps."""
        self.room -= len(data) if data[:1] in (b"f", b"o") else 0
        if self.room < 0 or len(data) > MAX_MESSAGE_BYTES:
            self.give_up("report")

    def watch(self) -> None:
        """End this process if a program lets it grow: what it makes eryx remember is in no limit of eryx."""
        while True:
            time.sleep(CHECK_INTERVAL_S)
            if (rss() or 0) > self.max_rss:
                self.give_up("memory")

    def give_up(self, reason: str) -> None:
        """Say why, and end."""
        self.send({"limit": reason})
        os._exit(1)

    def send(self, message: Json, data: bytes = b"") -> None:
        """Send a message to the host."""
        with self.lock:
            self.reports.write(self._frame(message, [data]))
            self.reports.flush()


def opened(number: int) -> BinaryIO:
    """Open a pipe that this process inherited, by its descriptor or, on Windows, its handle."""
    if sys.platform == "win32":
        import msvcrt

        number = msvcrt.open_osfhandle(number, os.O_WRONLY)
    return os.fdopen(number, "wb")


def no_core_dump() -> None:
    """Leave no file if a program ends this process by deep recursion."""
    with contextlib.suppress(ImportError):  # On Windows.
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def rss() -> int | None:
    """Return the memory of this process; its peak on macOS, None on Windows."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
