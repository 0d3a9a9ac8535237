"""What is risky in a program without isolation: tables of names, and a few patterns."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Literal

from code_chains.analysis.parsing import child_statements
from code_chains.analysis.references import Reading, Use, argument, arguments_of, match, words
from code_chains.records import Problem


def _names(module: str, names: str) -> list[str]:
    return list(map(f"{module}.{{}}".format, names.split()))


_REMOVES = [*_names("os", "remove unlink rmdir removedirs"), "shutil.rmtree"]
_PROCESSES = [
    *_names("os", "system popen fork forkpty kill killpg posix_spawn posix_spawnp startfile"),
    *_names("os", "execl execle execlp execlpe execv execve execvp execvpe"),
    *_names("os", "spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe"),
    *_names("asyncio", "create_subprocess_exec create_subprocess_shell"),
    *("subprocess", "pty", "posixsubprocess"),
]
_DYNAMIC = [
    *_names("builtins", "eval exec compile"),
    *("code", "codeop", "runpy", "marshal", "ctypes", "cffi", "imp", "dill", "cloudpickle"),
    *_names("pickle", "load loads Unpickler"),
    *_names(
        "importlib", "reload machinery import_module(?) util.spec_from_file_location util.module_from_spec"
    ),
    *_names("types", "CodeType FunctionType"),
]
_NETWORK = [
    *"socket urllib.request urllib3 http.client requests httpx aiohttp websockets paramiko".split(),
    *("ftplib", "smtplib", "telnetlib", "poplib", "imaplib", "nntplib", "xmlrpc.client"),
    *_names("asyncio", "open_connection start_server"),
]
_RULES = {
    **dict.fromkeys(_REMOVES, "removes files; leave them, the folder is cleared after the run"),
    **dict.fromkeys(_PROCESSES, "starts or stops processes; compute it in Python instead"),
    **dict.fromkeys(_DYNAMIC, "makes code from data; write the code out instead"),
    **dict.fromkeys(_NETWORK, "needs a network; there is none, unless you were told so: use what is given"),
}
_INTERNALS = words(
    "__subclasses__ __globals__ __mro__ __bases__ __base__ __code__ __closure__ __builtins__ __self__ __reduce__ "
    "__reduce_ex__ __loader__ func_globals mro f_globals f_locals f_builtins f_back f_code gi_frame gi_code cr_frame "
    "cr_code ag_frame ag_code tb_frame"
)
_FIELD = re.compile(r"\{[^{}]*+\}")
_DUNDER = re.compile(r"__\w+?__")
_HARMLESS_DUNDERS = {"__name__", "__qualname__", "__doc__", "__module__", "__version__"}
_FORBIDDEN = re.compile(r"(file://)?(/|(\.\./)+)(etc|proc|root|home)(/|$)")
_WRITABLE = re.compile(r"/(tmp|dev)(/|$)")
_OPENERS = {"builtins.open", "io.open", "codecs.open"}
_PATHS = {"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "os.path.join"}
_READERS = {
    *_OPENERS,
    *_PATHS,
    *_names("os", "open listdir scandir walk stat readlink chdir"),
    *_names("glob", "glob iglob"),
}
_COPIERS = {
    *_names("shutil", "copy copy2 copyfile copytree move"),
    *_names("os", "rename replace link symlink"),
}
_MAKERS = {*_names("os", "mkdir makedirs")}
_EXITS = {*_names("builtins", "exit quit"), *_names("os", "_exit abort"), "sys.exit"}


def find_risks(reading: Reading) -> Iterator[Problem]:
    """Find what is risky in a program, each thing once a line, in order."""
    kinds: list[Callable[[Reading], Iterator[Problem]]] = [_risky_names, _internals, _formats, _paths, _loops]
    problems = dict.fromkeys(chain.from_iterable(kind(reading) for kind in kinds))
    yield from sorted(problems, key=lambda problem: problem.line or 0)


def _problem(line: int, message: str, severity: Literal["error", "advice"] = "error") -> Problem:
    return Problem("security", message, line, severity)


def _risky_names(reading: Reading) -> Iterator[Problem]:
    for use in reading.uses:
        if rule := match(use.name, _RULES):
            advice = _RULES[rule]
            severity: Literal["error", "advice"] = "advice" if rule in _NETWORK else "error"
            yield _problem(use.line, f"`{rule.removeprefix('builtins.')}` {advice}", severity)
        elif use.call and use.last in ("unlink", "rmdir") and use.name != use.last:
            yield _problem(
                use.line, f"`.{use.last}()` removes files; leave them, the folder is cleared after the run"
            )


def _internals(reading: Reading) -> Iterator[Problem]:
    for use in reading.uses:
        if (use.last in _INTERNALS and "." in use.name) or use.name == "builtins":
            attribute = "__builtins__" if use.name == "builtins" else use.last
            yield _problem(use.line, f"`{attribute}` reaches into Python's insides; use the object itself")


def _formats(reading: Reading) -> Iterator[Problem]:
    for use in reading.uses:
        if (
            use.call
            and use.last in ("format", "format_map", "vformat")
            and isinstance(use.call.func, ast.Attribute)
        ):
            texts = filter(None, map(reading.text, (use.call.func.value, *use.call.args[:1])))
            fields = chain.from_iterable(map(_FIELD.findall, texts))
            if any(map(_reaches_internals, fields)):
                yield _problem(
                    use.line, "A format field reaches into Python's insides; format the value itself"
                )


def _reaches_internals(field: str) -> bool:
    """Return whether a format field goes through dunder attributes to more than a name."""
    through = _DUNDER.findall(field)
    return bool(through) and not (
        through[-1] in _HARMLESS_DUNDERS and set(through) <= _HARMLESS_DUNDERS | {"__class__"}
    )


def _paths(reading: Reading) -> Iterator[Problem]:
    for use in reading.uses:
        if use.call:
            paths = map(_clean, map(reading.text, arguments_of(use.call) if _is_reader(use) else ()))
            for path in filter(_FORBIDDEN.match, paths):
                yield _problem(use.line, f"`{path}` belongs to the system; read the files you were given")
            path = _clean(reading.text(_written(use, use.call, reading)))
            if path.startswith("/") and not _WRITABLE.match(path):
                yield _problem(
                    use.line, f"`{path}` cannot be written; write to the working folder, by a relative path"
                )


def _clean(path: str | None) -> str:
    return posixpath.normpath(path) if path else ""


def _is_reader(use: Use) -> bool:
    return use.name in _READERS | _COPIERS or use.last.startswith(
        ("read_", "open", "load", "imread", "fromfile")
    )


def _written(use: Use, call: ast.Call, reading: Reading) -> ast.expr | None:
    """Return what a call writes to; None if it does not write, as far as the source tells."""
    if use.name in _OPENERS:
        return argument(call, 0, "file") if _is_writing(argument(call, 1, "mode"), reading) else None
    if use.name in _COPIERS:
        return argument(call, 1, "dst")
    if use.name in _MAKERS or use.last.startswith(("to_", "save", "imsave")):
        return argument(call, 0)
    if use.last in ("write_text", "write_bytes", "mkdir", "touch"):
        return _path_of(call, reading)
    if use.last == "open" and _is_writing(argument(call, 0, "mode"), reading):
        return _path_of(call, reading)
    return None


def _is_writing(mode: ast.expr | None, reading: Reading) -> bool:
    return bool(set(reading.text(mode) or "") & set("wax+"))


def _path_of(call: ast.Call, reading: Reading) -> ast.expr | None:
    """Return the string in `Path("text").method()`."""
    path = call.func.value if isinstance(call.func, ast.Attribute) else None
    return argument(path, 0) if isinstance(path, ast.Call) and reading.names(path.func) & _PATHS else None


def _loops(reading: Reading) -> Iterator[Problem]:
    ends = set[int]()
    for use in reading.uses:
        if use.name.startswith(("threading", "multiprocessing", "queue", "asyncio")):
            return  # Something else may end a loop.
        if use.name in _EXITS:
            ends.add(id(use.call))
    for node, is_free in _while_loops(reading.tree):
        if is_free and _is_true(node.test) and not any(_exits(part, ends) for part in _own_nodes(node)):
            yield _problem(node.lineno, "This loop has no end; give it a condition, or `break`")


def _while_loops(tree: ast.Module) -> Iterator[tuple[ast.While, bool]]:
    """Yield loops, each with whether no handled exception around it may end it."""
    stack: list[tuple[ast.AST, bool]] = [(tree, True)]
    while stack:
        node, is_free = stack.pop()
        if isinstance(node, ast.While):
            yield node, is_free
        guarded = set[int]()
        if isinstance(node, ast.With) or (isinstance(node, ast.Try | ast.TryStar) and node.handlers):
            guarded = set(map(id, node.body))
        stack.extend((child, is_free and id(child) not in guarded) for child in child_statements(node))


def _is_true(test: ast.expr) -> bool:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, ast.Constant) and not test.operand.value
    return isinstance(test, ast.Constant) and bool(test.value)


def _own_nodes(loop: ast.While) -> Iterator[ast.AST]:
    """Yield the nodes of a loop, except functions defined in it and `break` of inner loops."""
    stack: list[tuple[ast.AST, bool]] = list(zip(loop.body, repeat(False), strict=False))
    while stack:
        node, nested = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if not (nested and isinstance(node, ast.Break)):
            yield node
        deeper = nested or isinstance(node, ast.While | ast.For | ast.AsyncFor)
        stack.extend(zip(ast.iter_child_nodes(node), repeat(deeper), strict=False))


def _exits(node: ast.AST, ends: set[int]) -> bool:
    leaving = ast.Break | ast.Return | ast.Raise | ast.Yield | ast.YieldFrom | ast.Await | ast.Assert
    return isinstance(node, leaving) or id(node) in ends
