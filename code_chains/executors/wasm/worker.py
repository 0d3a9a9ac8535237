"""The process that runs one program in WebAssembly. It trusts nothing that comes out of it.

    python -I worker.py OPTIONS

It starts Python in wasmtime and says in one line of JSON what the probe found. Then it reads a line with a request, passes
the program on, enforces time, output and disk, and says in another line how the run ended. It ends as soon as nobody holds
its standard input any more. With `{"compile": …}` it compiles Python instead, and the modules that run a program.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

from wasmtime import (
    Config,
    Engine,
    ExitTrap,
    Instance,
    Linker,
    Module,
    Store,
    Trap,
    WasiConfig,
    WasmtimeError,
)

Json = dict[str, Any]
LIB, WORKDIR, TEMPORARY, REPORT = "/code_chains", "/work", "/tmp", "/report"  # noqa: S108 - the guest's own
CHECK_INTERVAL_S = 0.01
OWN_FILES = 4
"""The folders, and the file of the report."""
OWN_DESCRIPTORS = 48
"""What this process and wasmtime have open besides the guest's files."""
MAX_REPORT_BYTES = 2 << 20
"""Bytes of a program's frame besides its views, and more than these, so that a frame that is too long is seen as such."""
PYTHON_MEMORY = 16 << 20
"""Memory that Python takes itself."""
MAX_MEMORY = (1 << 32) - (1 << 16)
"""What 32 bits can address."""
STACK_BYTES, THREAD_STACK_BYTES = 2 << 20, 16 << 20
COMPILE_MODULES = (
    "import compileall, py_compile\n"
    "mode = py_compile.PycInvalidationMode.UNCHECKED_HASH\n"
    f"assert compileall.compile_dir({LIB!r}, quiet=2, invalidation_mode=mode)"
)


def main() -> None:
    """Compile, or serve one program, as the options say."""
    options: Json = json.loads(sys.argv[1])
    if "compile" in options:
        compile_python(Path(options["compile"]), Path(options["folder"]))
        return
    sys.path.insert(0, options["modules"])
    worker = Worker(options)
    threading.stack_size(THREAD_STACK_BYTES)
    thread = threading.Thread(target=worker.run)
    thread.start()
    thread.join()


def compile_python(source: Path, folder: Path) -> None:
    """Compile Python to machine code, and the modules in a folder with it."""
    engine = new_engine()
    module = Module.from_file(engine, str(source))
    store = Store(engine)
    wasi = WasiConfig()
    wasi.argv = ["python", "-I", "-c", COMPILE_MODULES]
    wasi.inherit_stderr()
    wasi.preopen_dir(str(folder / "lib"), LIB)
    store.set_wasi(wasi)
    if call_start(store, new_instance(store, engine, module)) != (0, ""):
        sys.exit("its modules cannot be compiled")
    (folder / "python.cwasm").write_bytes(module.serialize())


def new_engine() -> Engine:
    """Return an engine; compiled code fits those with the same settings alone."""
    config = Config()
    config.max_wasm_stack = STACK_BYTES
    return Engine(config)


def load(engine: Engine, path: Path) -> Module:
    """Load a compiled module; read it where its file system does not let code be mapped from it."""
    try:
        return Module.deserialize_file(engine, str(path))
    except WasmtimeError:
        return Module.deserialize(engine, path.read_bytes())


def new_instance(store: Store, engine: Engine, module: Module) -> Instance:
    """Return a module with what it imports: WASI, and nothing else."""
    linker = Linker(engine)
    linker.define_wasi()
    return linker.instantiate(store, module)


def call_start(store: Store, instance: Instance) -> tuple[int | None, str]:
    """Run a module to its end; return its exit code, or None and why it was stopped."""
    start: Any = instance.exports(store)["_start"]
    try:
        start(store)
    except ExitTrap as end:
        return end.code, ""
    except (Trap, WasmtimeError) as error:
        return None, str(getattr(error, "message", error)).rpartition("wasm trap: ")[2].strip()
    return 0, ""


class Worker:
    """Runs one program and reports how it ended.

    Args:
        options: Paths of the compiled module, of its modules, of this run's folders, the probe, and limits.
    """

    disk_bytes: int
    limits: Json
    options: Json
    peak: int
    program: int
    reports: BinaryIO
    requests: BinaryIO

    def __init__(self, options: Json) -> None:
        self.options, self.limits = options, options["limits"]
        self.requests, self.reports = private_streams()
        # Invariant: the report is read from the file that is made here, whatever the guest puts in its place.
        path = os.path.join(options["folders"][2], "outcome")
        self.outcome: int = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0))
        read, self.program = os.pipe()
        os.dup2(read, 0)  # The guest reads standard input, of which only this process writes.
        self.output: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self.started: float | None = None
        self.disk_bytes = self.peak = 0
        self.lock: threading.Lock = threading.Lock()

    def run(self) -> None:
        """Run Python until its program has ended."""
        limit_files(self.limits["disk"], self.limits["open_files"])
        engine = new_engine()
        module = load(engine, Path(self.options["module"]))
        store = Store(engine)
        store.set_limits(memory_size=min(self.limits["memory"] + PYTHON_MEMORY, MAX_MEMORY))
        store.set_wasi(self.wasi())
        threading.Thread(target=self.serve, daemon=True).start()
        instance = new_instance(store, engine, module)
        code, trap = call_start(store, instance)
        memory: Any = instance.exports(store)["memory"]
        self.peak = memory.data_len(store)
        if self.started is None:
            self.send({"error": trap or bytes(self.output["stderr"]).decode(errors="replace")})
            os._exit(1)
        self.finish(self.exceeded_disk(), code, trap)

    def wasi(self) -> WasiConfig:
        """Return what the guest can reach: its own folders, and these streams."""
        folders = self.options["folders"]
        wasi = WasiConfig()
        report = f"{REPORT}/outcome"
        wasi.argv = ["python", "-I", f"{LIB}/main.py", self.options["probe"], WORKDIR, report]
        wasi.env = [("HOME", WORKDIR), ("PWD", WORKDIR), ("TMPDIR", TEMPORARY), ("PYTHONUTF8", "1")]
        wasi.inherit_stdin()
        wasi.stdout_custom = lambda data: self.take("stdout", data)
        wasi.stderr_custom = lambda data: self.take("stderr", data)
        wasi.preopen_dir(self.options["lib"], LIB, False)
        for guest, host in zip((WORKDIR, TEMPORARY, REPORT), folders, strict=True):
            wasi.preopen_dir(host, guest)
        return wasi

    def take(self, name: str, data: bytes) -> int:
        """Keep what the guest prints, up to the limit; its first line is the probe's."""
        buffer = self.output[name]
        buffer += data[: self.limits["output"] - len(buffer)]
        if self.started is None and b"\n" in buffer and name == "stdout":
            self.send({"probe": buffer.decode(errors="replace")})
            buffer.clear()
        elif len(buffer) >= self.limits["output"]:
            self.finish("output")
        return len(data)

    def serve(self) -> None:
        """Pass on the request, and watch its program; end when nobody waits for it any more."""
        line = self.requests.readline()
        if line:
            request = json.loads(line)
            self.disk_bytes = self.limits["disk"] + request["input_bytes"]
            self.started = time.monotonic()
            threading.Thread(
                target=self.watch, args=(self.started + request["seconds"],), daemon=True
            ).start()
            with os.fdopen(self.program, "wb") as program:
                program.write(json.dumps(request["program"]).encode() + b"\n")
            self.requests.read()
        os._exit(1)

    def watch(self, deadline: float) -> None:
        """End the program when it exceeds a limit."""
        while (now := time.monotonic()) < deadline:
            if reason := self.exceeded_disk():
                self.finish(reason)
            # Many files take long to count: looking must not take all of the time.
            taken = time.monotonic() - now
            time.sleep(max(0.0, min(max(CHECK_INTERVAL_S, taken), deadline - time.monotonic())))
        self.finish("timeout")

    def exceeded_disk(self) -> str | None:
        """Return the limit of disk that is exceeded, if any."""
        from guest.collection import disk_usage  # The option `modules` says where it is.

        *places, report = self.options["folders"]
        size, count = disk_usage(places)
        report_size, report_count = disk_usage([report])
        if count + report_count > self.limits["files"] + OWN_FILES:
            return "files"
        is_full = size + unlinked_bytes() > self.disk_bytes or report_size > self.max_report_bytes()
        return "disk" if is_full else None

    def max_report_bytes(self) -> int:
        """Return the size up to which the guest's report is read."""
        return MAX_REPORT_BYTES + int(self.limits["artifacts"])

    def finish(self, reason: str | None, code: int | None = None, trap: str = "") -> None:
        """Report how the program ended, once, and end this process and with it the guest."""
        with self.lock:
            assert self.started is not None
            streams = {name: bytes(text).decode(errors="replace") for name, text in self.output.items()}
            seconds = time.monotonic() - self.started
            end = {
                "reason": reason,
                "exit": 1 if code is None else code,
                "trap": trap,
                "seconds": seconds,
                "peak": self.peak,
            }
            self.send({**end, **streams, "result": "" if reason else self.result()})
            os._exit(0)

    def result(self) -> str:
        """Return what the guest reported, in Base64."""
        os.lseek(self.outcome, 0, os.SEEK_SET)
        with os.fdopen(self.outcome, "rb") as file:
            return base64.b64encode(file.read(self.max_report_bytes())).decode()

    def send(self, message: Json) -> None:
        """Write a line to whoever started this process."""
        self.reports.write(json.dumps(message).encode() + b"\n")
        self.reports.flush()


def private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output of this process, which nothing else may use."""
    requests, reports = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
    return requests, reports


def unlinked_bytes() -> int:
    """Return the bytes of open files that have no name any more."""
    from guest.collection import space  # The option `modules` says where it is.

    size = 0
    for descriptor in range(os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else 0):
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            size += 0 if status.st_nlink or not stat.S_ISREG(status.st_mode) else space(status)
    return size


def limit_files(max_bytes: int, open_files: int) -> None:
    """Limit the size of one file and how many are open, where the system can, and leave no core dump."""
    try:
        import resource
    except ImportError:  # On Windows.
        return
    for kind, value in (
        (resource.RLIMIT_FSIZE, max_bytes + MAX_REPORT_BYTES),
        (resource.RLIMIT_NOFILE, open_files + OWN_DESCRIPTORS),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main()
