"""One piece of source, run as a notebook would, and what came of it as JSON."""

from __future__ import annotations

import ast
import asyncio
import atexit
import contextlib
import errno
import inspect
import linecache
import os
import reprlib
import resource
import sys
import threading
import traceback
import types
from collections.abc import Iterable
from typing import Any

from . import display, hints
from .wire import Json

REASONABLE_REPR = 100_000
SOURCE, FILE = "<code>", "main.py"
"""What tracebacks call a program, and what it takes its own file to be."""
LIMITS = {
    errno.ENOSPC: "disk_limit",
    errno.EFBIG: "disk_limit",
    errno.EDQUOT: "disk_limit",
    errno.EMFILE: "file_limit",
}


def fresh() -> Json:
    """The names of a new `__main__`."""
    module = types.ModuleType("__main__")
    module.__file__ = os.path.abspath(FILE)
    sys.modules["__main__"] = module
    return module.__dict__


def own_modules() -> list[str]:
    """Names of these modules, for `hide`; looking for them touches every name there is, and with it its memory."""
    return [name for name in sys.modules if name.partition(".")[0] == "inside"]


def hide(names: Iterable[str]) -> None:
    """Take these modules out of what a program sees of Python's."""
    for name in names:
        del sys.modules[name]


def run(
    code: str, names: Json, *, source: str = SOURCE, ends: bool = True, room: int = 0, may_exit: bool = True
) -> Json:
    """Run source and tell how it ended, with the value a notebook would show.

    Args:
        code: The source.
        names: The names it starts with and leaves its own in.
        source: What tracebacks call it.
        ends: Whether this is the end of the process, where exit handlers are called.
        room: Bytes that figures and rich views of the value may take.
        may_exit: Whether `sys.exit()` is a good end.
    """
    lines = [line + "\n" for line in code.split("\n")]
    linecache.cache[source] = (len(code), None, lines, source)
    named = names.get("result")
    ending: Json = {"status": "ok", "result": None, "error": None}
    try:
        value = execute(code, names, source)
        finish_threads()
        if value is None and names.get("result") is not named:
            value = names["result"]
        ending["result"] = None if value is None else show(value)
        ending |= display.views(value, room)
    except SystemExit as error:
        if error.code not in (None, 0) or not may_exit:
            ending |= {"status": "error", "error": describe(error)}
    except MemoryError as error:
        ending |= {"status": "memory", "error": describe(error)}
    except BaseException as error:
        ending |= {"status": limit_behind(error), "error": describe(error)}
    if ends:
        call_exit_handlers()
    flush()
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return {**ending, "peak": max(usage.ru_maxrss for usage in used) * 1024}


def limit_behind(error: BaseException) -> str:
    """The status of a program that an exception ended: that of the limit it ran into, or `error`."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, BlockingIOError) or (
        type(error) is RuntimeError and error.args == ("can't start new thread",)
    ):
        return "process_limit" if crowded() else "error"
    return LIMITS.get(number or 0, "error")


def crowded() -> bool:
    try:
        processes = sum(name.isdigit() for name in os.listdir("/proc"))
        return max(processes, len(os.listdir("/proc/self/task"))) > 8
    except OSError:
        return False


def execute(code: str, names: Json, source: str) -> Any:
    """Run all statements; the value of the last one if it is an expression."""
    tree = ast.parse(code, source)
    last = tree.body[-1] if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    tree.body = tree.body[:-1] if last else tree.body
    value = step(compile(tree, source, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
    if isinstance(last, ast.Expr):
        value = step(compile(ast.Expression(last.value), source, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
    return value


def step(compiled: types.CodeType, names: Json) -> Any:
    value = eval(compiled, names)  # noqa: S307 - this is what the box is for
    if compiled.co_flags & inspect.CO_COROUTINE:

        async def wait() -> Any:
            return await value

        value = asyncio.run(wait())
    return value


def show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= REASONABLE_REPR else text[:REASONABLE_REPR] + "…"


def finish_threads() -> None:
    """What an ordinary script does at its end: wait for its threads."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def call_exit_handlers() -> None:
    with contextlib.suppress(BaseException):
        atexit._run_exitfuncs()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]  # Whatever the program made of it.


def describe(error: BaseException) -> Json:
    """An exception as JSON: frames of the program alone, and the names of the frame that failed."""
    frames: list[types.TracebackType] = []
    trace = error.__traceback__
    while trace:
        frames.append(trace)
        trace = trace.tb_next
    own = [number for number, frame in enumerate(frames) if frame.tb_frame.f_code.co_filename.startswith("<code")]
    shown = error.with_traceback(frames[own[0]] if own else None)
    line = frames[own[-1]].tb_lineno if own else getattr(error, "lineno", None)
    names = frames[own[-1]].tb_frame.f_locals if own else {}
    with contextlib.suppress(Exception):
        text = "".join(traceback.format_exception(type(shown), shown, shown.__traceback__, limit=-8))
        everything = {**frames[own[-1]].tb_frame.f_globals, **names} if own else {}
        return pack(error, line, text, names) | {"hint": hints.hint(error, everything)[:1000]}
    return {"type": type(error).__name__, "message": "", "line": line, "traceback": "", "locals": {}, "hint": ""}


def pack(error: BaseException, line: int | None, text: str, names: Json) -> Json:
    message = "\n".join(str(error).splitlines()[:20])[:2000]
    text = text if len(text) <= 6000 else text[:2000] + "\n…\n" + text[-4000:]
    return {
        "type": type(error).__name__,
        "message": message,
        "line": line if isinstance(line, int) else None,
        "traceback": text,
        "locals": short_locals(names),
    }


def short_locals(names: Json) -> dict[str, str]:
    plain = types.ModuleType | types.FunctionType | types.BuiltinFunctionType | type
    brief = reprlib.Repr()
    brief.maxstring = brief.maxother = 100
    found: dict[str, str] = {}
    for name, value in list(names.items()):
        if not name.startswith("_") and not isinstance(value, plain) and len(found) < 12:
            with contextlib.suppress(Exception):
                found[name] = " ".join(brief.repr(value).split())[:200]
    return found
