"""Run one piece of source as a notebook cell, and report the outcome as JSON."""

from __future__ import annotations

import ast
import atexit
import builtins
import contextlib
import errno
import inspect
import io
import itertools
import linecache
import os
import re
import reprlib
import sys
import threading
import traceback
import types
from collections.abc import Iterable
from typing import Any

from . import display, suggestions, tools
from .wire import Json

resource: Any
try:
    import resource
except ImportError:  # In WebAssembly.
    resource = None

MAX_REPR_CHARS = 100_000
MAX_NAME_CHARS = 200
MAX_VALUE_CHARS, MAX_PART_CHARS, MAX_LOCALS = 200, 100, 12
MAX_ROWS, MAX_TABLE_LINES = 3, 12
MAX_MESSAGE_LINES, MAX_MESSAGE_CHARS = 20, 2000
MAX_TRACEBACK_CHARS, TRACEBACK_HEAD_CHARS, TRACEBACK_TAIL_CHARS = 6000, 2000, 4000
MAX_TRACEBACK_FRAMES = 8
MAX_HINT_CHARS = 1000
CROWDED_PROCESSES = 8
"""With more processes or threads than this, a fork that fails is due to the limit."""
SOURCE_NAME, FILE_NAME = "<code>", "main.py"
"""The name of a program in tracebacks, and its `__file__`."""
INPUT: dict[str, Any] = {}
"""The standard input that was given."""
STATUS_BY_ERRNO = {
    errno.ENOSPC: "disk_limit",
    errno.EFBIG: "disk_limit",
    errno.EDQUOT: "disk_limit",
    errno.EMFILE: "file_limit",
}


WRITING = ("write", "write_bytes", "write_text", "writerow", "seek", "truncate")
"""Methods of files that are called for their effect: how many characters they wrote is no result."""


def new_main() -> Json:
    """Return the namespace of a new `__main__`."""
    module = types.ModuleType("__main__")
    builtins.display = display.display  # type: ignore[attr-defined]  # As in notebooks.
    module.__file__ = os.path.abspath(FILE_NAME)
    sys.modules["__main__"] = module
    return module.__dict__


def own_modules() -> list[str]:
    """Return the names of this package's modules, for `hide`; called early, as the scan touches all of their memory."""
    return [name for name in sys.modules if name.partition(".")[0] == "guest"]


def hide(names: Iterable[str]) -> None:
    """Remove modules from what a program sees."""
    for name in names:
        del sys.modules[name]


def prefer_fork(code: str) -> None:
    """Let processes of a program be forks, as before Python 3.14: what it defines cannot be imported."""
    if sys.hexversion < 0x030E0000 or not re.search("multiprocessing|ProcessPoolExecutor", code):
        return
    with contextlib.suppress(ImportError, AttributeError):
        import multiprocessing.context

        context: Any = multiprocessing.context
        # Invariant: a program may still call `set_start_method`, which is allowed once.
        context._default_context._default_context = context._concrete_contexts["fork"]


def run(
    code: str,
    names: Json,
    *,
    source: str = SOURCE_NAME,
    ends: bool = True,
    max_view_bytes: int = 0,
    may_exit: bool = True,
    return_value: bool = False,
) -> Json:
    """Run source and return its outcome, with the value that a notebook would display.

    Args:
        code: The source.
        names: The namespace that it runs in.
        source: Its name in tracebacks.
        ends: Whether the process ends with it, so that exit handlers are called.
        max_view_bytes: Bytes of figures and rich views of the value.
        may_exit: Whether `sys.exit()` counts as success.
        return_value: Whether the outcome also has the value itself, with its type.
    """
    lines = [line + "\n" for line in code.split("\n")]
    linecache.cache[source] = (len(code), None, lines, source)
    previous = names.get("result")
    outcome: Json = {"status": "ok", "result": None, "error": None}
    prefer_fork(code)
    with contextlib.suppress(Exception):  # A program may have put anything in the place of pyplot.
        display.follow_libraries()
    try:
        value = execute(code, names, source)
        join_threads()
        if value is None and names.get("result") is not previous:
            value = names["result"]
        outcome["result"] = None if value is None else show(value)
        outcome |= display.views(value, names, max_view_bytes, return_value=return_value)
    except SystemExit as error:
        if error.code not in (None, 0) or not may_exit:
            outcome |= {"status": "error", "error": describe(error)}
    except MemoryError as error:
        outcome |= {"status": "memory", "error": describe(error)}
    except BaseException as error:
        outcome |= {"status": error_status(error), "error": describe(error)}
    if ends:
        call_exit_handlers()
    flush()
    return {**outcome, "peak": peak_memory()}


def peak_memory() -> int:
    """Return the most bytes that this process or one of its children had resident; 0 where that is unknown."""
    if resource is None:
        return 0
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return max(int(usage.ru_maxrss) for usage in usages) * 1024


def error_status(error: BaseException) -> str:
    """Return the status for an exception: that of the limit which caused it, or `error`."""
    number = error.errno if isinstance(error, OSError) else None
    is_thread_error = type(error) is RuntimeError and error.args == ("can't start new thread",)
    if isinstance(error, BlockingIOError) or is_thread_error:
        return "process_limit" if is_crowded() else "error"
    return STATUS_BY_ERRNO.get(number or 0, "error")


def is_crowded() -> bool:
    try:
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
        return max(processes, len(os.listdir("/proc/self/task"))) > CROWDED_PROCESSES
    except OSError:
        return False


def execute(code: str, names: Json, source: str) -> Any:
    """Run all statements; return the value of the last one if it is an expression."""
    tree = tools.rewrite(ast.parse(code, source), names)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if last:
        tree.body.pop()
    value = evaluate(compile(tree, source, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
    if last:
        expression = ast.Expression(last.value)
        value = evaluate(compile(expression, source, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
        if isinstance(value, int) and called_name(last.value) in WRITING:
            return None
    return value


def called_name(node: ast.expr) -> str:
    """Return the name of the method that an expression calls; empty for all else."""
    call = node.value if isinstance(node, ast.Await) else node
    return call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""


def evaluate(compiled: types.CodeType, names: Json) -> Any:
    value = eval(compiled, names)  # noqa: S307 - this is what the sandbox is for
    if compiled.co_flags & inspect.CO_COROUTINE:
        import asyncio  # Not before: it doubles the memory that each fork copies the tables of.

        async def wait() -> Any:
            return await value

        value = asyncio.run(wait())
    return value


def show(value: object) -> str:
    try:
        text = display.text_of(value)
    # An integer of more than 4,300 digits has no text, and is a value all the same.
    except ValueError as error:
        text = f"<{type(value).__name__}: {error}>"
    return text if len(text) <= MAX_REPR_CHARS else text[:MAX_REPR_CHARS] + "…"


def join_threads() -> None:
    """Wait for threads, as the interpreter does at its exit: those of pools are told to end before."""
    pools = [getattr(thread, "_args", ())[:1] for thread in threading.enumerate()]
    for end in reversed(getattr(threading, "_threading_atexits", ())):
        with contextlib.suppress(Exception):
            end()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    reopen_pools(pools)


def reopen_pools(threads: Iterable[tuple[Any, ...]]) -> None:
    """Let later cells use pools: those of threads start new ones, those of processes say that they have ended.

    Args:
        threads: The first argument of each thread that ran, which is a reference to its pool.
    """
    for name, flag in (("thread", "_shutdown"), ("process", "_global_shutdown")):
        if module := sys.modules.get(f"concurrent.futures.{name}"):
            setattr(module, flag, False)
    for reference in itertools.chain.from_iterable(threads):
        with contextlib.suppress(Exception):
            pool = reference()
            pool._threads.clear()
            pool._idle_semaphore, pool._shutdown = threading.Semaphore(0), False


def set_input(text: str | None) -> None:
    """Let a program read text from its standard input, which is empty otherwise, whatever the last cell read."""
    if text is None and "stream" not in INPUT:
        return
    text = text or ""
    try:
        import tempfile

        with tempfile.TemporaryFile() as file:
            file.write(text.encode())
            file.seek(0)
            os.dup2(file.fileno(), 0)
        stream: Any = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    except (OSError, AttributeError):  # In WebAssembly.
        stream = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    sys.stdin = sys.__stdin__ = INPUT["stream"] = stream  # type: ignore[misc]


def set_streams() -> None:
    """Open the standard streams of output anew: others stand at their descriptors, and each line is written at once."""
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        errors = "strict" if descriptor == 1 else "backslashreplace"
        stream = open(descriptor, "w", buffering=1, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def call_exit_handlers() -> None:
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]  # The program may have replaced it by anything.


def describe(error: BaseException) -> Json:
    """Return an exception as JSON: the program's own frames, and the variables of the frame that failed."""
    entries: list[types.TracebackType] = []
    trace = error.__traceback__
    while trace:
        entries.append(trace)
        trace = trace.tb_next
    own = [entry for entry in entries if entry.tb_frame.f_code.co_filename.startswith("<code")]
    error = error.with_traceback(own[0] if own else None)
    line = own[-1].tb_lineno if own else getattr(error, "lineno", None)
    frame = own[-1].tb_frame if own else None
    with contextlib.suppress(Exception):
        trace_text = "".join(
            traceback.format_exception(type(error), error, error.__traceback__, limit=-MAX_TRACEBACK_FRAMES)
        )
        variables = frame.f_locals if frame else {}
        visible = {**frame.f_globals, **variables} if frame else {}
        expression = source = ""
        with contextlib.suppress(Exception):
            expression, source = failing_source(own[-1]) if own else ("", "")
        report = build_report(error, line, trace_text, mentioned_first(variables, source))
        return report | {"hint": suggestions.hint(error, visible, expression)[:MAX_HINT_CHARS]}
    name = type(error).__name__[:MAX_NAME_CHARS]
    return {"type": name, "message": "", "line": line, "traceback": "", "locals": {}, "hint": ""}


def failing_source(entry: types.TracebackType) -> tuple[str, str]:
    """Return the source of the expression that failed, and that of its lines."""
    code, position = entry.tb_frame.f_code, entry.tb_lasti // 2
    first, last, start, end = next(itertools.islice(code.co_positions(), position, None))
    lines = linecache.getlines(code.co_filename)
    if first is None or last is None or start is None or end is None or last > len(lines):
        return "", ""
    text = "".join(lines[first - 1 : last]).encode()
    # Columns count bytes of their line.
    end += sum(len(line.encode()) for line in lines[first - 1 : last - 1])
    return text[start:end].decode(), text.decode()


def mentioned_first(variables: Json, source: str) -> Json:
    """Return variables so that those that occur in the source come first."""
    words = set(re.findall(r"\w+", source))
    return dict(sorted(variables.items(), key=lambda item: item[0] not in words))


def build_report(error: BaseException, line: int | None, trace_text: str, variables: Json) -> Json:
    message = "\n".join(str(error).splitlines()[:MAX_MESSAGE_LINES])[:MAX_MESSAGE_CHARS]
    if len(trace_text) > MAX_TRACEBACK_CHARS:
        trace_text = trace_text[:TRACEBACK_HEAD_CHARS] + "\n…\n" + trace_text[-TRACEBACK_TAIL_CHARS:]
    return {
        "type": type(error).__name__[:MAX_NAME_CHARS],
        "message": message,
        "line": line if isinstance(line, int) else None,
        "traceback": trace_text,
        "locals": short_locals(variables),
    }


def short_locals(variables: Json) -> dict[str, str]:
    ignored = types.ModuleType | types.FunctionType | types.BuiltinFunctionType | type
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = MAX_PART_CHARS
    texts: dict[str, str] = {}
    for name, value in list(variables.items()):
        if not name.startswith("_") and not isinstance(value, ignored) and len(texts) < MAX_LOCALS:
            with contextlib.suppress(Exception):
                texts[name[:MAX_NAME_CHARS]] = short_repr(value, brief)
    return texts


def short_repr(value: Any, brief: reprlib.Repr) -> str:
    """Return a short repr on one line; of a table its first rows, each on a line below its size."""
    if hasattr(type(value), "columns") and hasattr(type(value), "head"):
        rows = "\n".join(
            line[:MAX_VALUE_CHARS] for line in str(value.head(MAX_ROWS)).splitlines()[:MAX_TABLE_LINES]
        )
        return f"table of shape {value.shape}\n{rows}"
    return " ".join(brief.repr(value).split())[:MAX_VALUE_CHARS]
