"""The program's end of the pipes over which it calls tools of the application: functions like any other."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import os
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from . import serialization, tables
from .arguments import argument
from .untrusted import count_items
from .wire import FRAME_HEADER, Json, Read, Write, decode, encode

START_NAME, AWAITABLE_NAME = "__start_tool__", "__awaitable__"
"""What `tool(…)` is rewritten to where a coroutine is expected, and what makes other values awaitable there."""
STARTERS = {
    "gather",
    "create_task",
    "ensure_future",
    "wait_for",
    "shield",
    "run_until_complete",
    "as_completed",
    "wait",
}
"""What takes coroutines: functions of `asyncio`, and methods of task groups and loops."""
COLLECTORS = {"as_completed", "wait"}
"""Those that take a list of them."""
MODULE_NAME = "tools"
"""The module of what a program finds but has not made itself."""
BYTES_PER_ITEM = 32
"""Bytes of the limit of a call for each item of its arguments: 130,000 items for 4 MB."""
MAX_READ_BYTES = 1 << 20
ONLY_NAMES = ({"tool_input"}, {"__arg1"})
"""What LangChain calls the argument of a tool that takes one, besides its own name."""


class ToolError(Exception):
    """A call of a tool failed, or was refused."""

    __module__ = MODULE_NAME


class Connection:
    """The connection to the host, which lives as long as a run: functions that a session keeps use the next one."""

    def __init__(self) -> None:
        self._incoming = self._outgoing = -1
        self._pid = self._count = self._max_bytes = 0
        self._begin()
        self._read: Read = os.read
        self._write: Write = os.write

    def _begin(self) -> None:
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._replies: dict[int, tuple[Json, bytes]] = {}
        self._is_reading = self._is_broken = False

    def open(self, incoming: int, outgoing: int, max_bytes: int, read: Read, write: Write) -> None:
        """Use these descriptors, by these functions."""
        self._read, self._write = read, write
        self._incoming, self._outgoing, self._max_bytes = incoming, outgoing, max_bytes
        self._pid = os.getpid()
        self._begin()

    def close(self) -> None:
        """Close the descriptors; calls fail from here on."""
        for descriptor in (self._incoming, self._outgoing):
            if descriptor >= 0:
                try:
                    os.close(descriptor)
                except OSError:  # The program has closed it.
                    continue
        self._incoming = self._outgoing = -1

    def call(self, name: str, arguments: Json) -> Any:
        """Call a tool and return its result.

        Raises:
            ToolError: It failed, or was refused.
        """
        if self._incoming < 0:
            raise ToolError("Tools can be called only while the program runs.")
        if os.getpid() != self._pid:
            raise ToolError("Tools cannot be called from another process; call them before it is started.")
        number = self._send(name, arguments)
        reply, data = self._await(number)
        if "error" in reply:
            raise ToolError(reply["error"])
        if "kind" in reply:
            return tables.read_table(reply, io.BytesIO(data))
        return serialization.unpack(reply["value"], serialization.no_object)

    def _send(self, name: str, arguments: Json) -> int:
        with self._writing:
            self._count += 1
            number = self._count
            data = encode({"id": number, "name": name, "arguments": arguments}).encode()
            if len(data) > self._max_bytes:
                raise ToolError(f"The arguments take {len(data):,} bytes; {self._max_bytes:,} are allowed.")
            max_items = self._max_bytes // BYTES_PER_ITEM
            if count_items(data, max_items) > max_items:
                raise ToolError(f"The arguments hold more than {max_items:,} items, which are allowed.")
            data = FRAME_HEADER.pack(len(data)) + data
            try:
                while data:
                    data = data[self._write(self._outgoing, data) :]
            except OSError:
                self._fail()
        return number

    def _await(self, number: int) -> tuple[Json, bytes]:
        """Return a reply. Of the threads that wait, one reads for all."""
        with self._changed:
            while number not in self._replies:
                if self._is_broken:
                    self._fail()
                if self._is_reading:
                    self._changed.wait()
                else:
                    self._read_one()
            return self._replies.pop(number)

    def _read_one(self) -> None:
        """Read one reply without holding the lock, and tell the others."""
        self._is_reading = True
        self._changed.release()
        reply = None
        try:
            reply = self._receive()
        except (OSError, ValueError):
            self._is_broken = True
        finally:
            self._changed.acquire()
            self._is_reading = False
            if reply is not None:
                self._replies[reply[0]["id"]] = reply
            self._changed.notify_all()

    def _receive(self) -> tuple[Json, bytes]:
        (size,) = FRAME_HEADER.unpack(self._read_exactly(FRAME_HEADER.size))
        message: Json = decode(self._read_exactly(size).decode())
        return message, self._read_exactly(sum(message["sizes"]))

    def _read_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._read(self._incoming, min(size - len(data), MAX_READ_BYTES))
            if not chunk:
                raise OSError("closed")
            data += chunk
        return bytes(data)

    def _fail(self) -> NoReturn:
        raise ToolError("The connection to the tools is closed.")


_connection = Connection()


# Invariant: what reads and writes is bound before any program can replace it.
def connect(tools: Json | None, read: Read = os.read, write: Write = os.write) -> Json:
    """Return the names of a program that calls tools: its functions, and their exception.

    Args:
        tools: Their signatures, limits and descriptors; None if there are none.
        read: Reads from a descriptor.
        write: Writes to one.
    """
    if not tools:
        return {}
    incoming, outgoing = tools["descriptors"]
    _connection.open(incoming, outgoing, tools["max_bytes"], read, write)
    functions = {each["name"]: make_function(each) for each in tools["signatures"]}
    return functions | {"ToolError": ToolError, START_NAME: start_tool, AWAITABLE_NAME: awaitable}


def disconnect() -> None:
    """End the connection, as the program has ended."""
    _connection.close()


class Annotation:
    """A type in the notation of Python, as `help` shows it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def make_function(description: Json) -> Callable[..., Any]:
    """Return the function that calls a tool."""
    name = description["name"]
    signature = signature_of(description)
    kinds = {parameter[0]: parameter[1] for parameter in description["parameters"]}

    def tool(*args: Any, **kwargs: Any) -> Any:
        bound = bind(name, signature, args, kwargs)
        return _connection.call(
            name, {each: argument(name, each, value, kinds[each]) for each, value in bound.items()}
        )

    tool.__name__ = tool.__qualname__ = name
    tool.__module__, tool.__doc__ = MODULE_NAME, description["description"]
    vars(tool)["__signature__"] = signature
    vars(tool)["is_tool"] = True
    return tool


def signature_of(description: Json) -> inspect.Signature:
    parameters = []
    for name, kind, is_required, default in description["parameters"]:
        value = inspect.Parameter.empty if is_required else default
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value, annotation=Annotation(kind)
            )
        )
    return inspect.Signature(parameters, return_annotation=Annotation(description["returns"]))


def bind(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Json) -> Json:
    """Return arguments by name; those that were left out are not among them.

    Raises:
        TypeError: They do not fit the signature.
    """
    if len(signature.parameters) == 1 and not args and set(kwargs) in ONLY_NAMES:
        args, kwargs = tuple(kwargs.values()), {}
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise TypeError(f"{name}{signature}: {error}") from None


# -- await -------------------------------------------------------------------------------------------------------------


def rewrite(tree: ast.Module, names: Json) -> ast.Module:
    """Let a program await tools as if they were coroutines, where `await` or `asyncio` expects one.

    Elsewhere, also in a coroutine, a call returns its result at once; awaiting that result later gives it again.
    """
    tools = {name for name, value in names.items() if getattr(value, "is_tool", False) is True}
    if not tools:
        return tree
    rewritten: ast.Module = Rewriter(tools).visit(tree)
    return ast.fix_missing_locations(rewritten)


class Rewriter(ast.NodeTransformer):
    """Rewrites calls of tools that are awaited, or handed to `asyncio`."""

    def __init__(self, tools: set[str]) -> None:
        self._tools = tools

    def visit_Await(self, node: ast.Await) -> ast.AST:
        """Rewrite `await tool(…)`."""
        self.generic_visit(node)
        node.value = self._started(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite what is handed to `asyncio.gather` and its like."""
        self.generic_visit(node)
        name = starter_name(node)
        if name in COLLECTORS:
            for call in calls_in(node.args[:1]):
                self._start_in_place(call)
        elif name == "gather":
            node.args = [self._started(argument) for argument in node.args]
        elif name:
            node.args[:1] = [self._started(argument) for argument in node.args[:1]]
        return node

    def _started(self, argument: ast.expr) -> ast.expr:
        """Return an expression for something to await."""
        if isinstance(argument, ast.Starred):
            for call in calls_in([argument.value]):
                self._start_in_place(call)
            function = ast.Name(AWAITABLE_NAME, ast.Load())
            mapped = ast.Call(ast.Name("map", ast.Load()), [function, argument.value], [])
            return ast.copy_location(ast.Starred(mapped, ast.Load()), argument)
        if isinstance(argument, ast.Call) and self._is_tool(argument):
            self._start_in_place(argument)
            return argument
        return ast.copy_location(ast.Call(ast.Name(AWAITABLE_NAME, ast.Load()), [argument], []), argument)

    def _start_in_place(self, call: ast.Call) -> None:
        if self._is_tool(call):
            function = ast.copy_location(ast.Name(START_NAME, ast.Load()), call.func)
            call.func, call.args = function, [call.func, *call.args]

    def _is_tool(self, node: ast.Call) -> bool:
        return isinstance(node.func, ast.Name) and node.func.id in self._tools


def calls_in(arguments: list[ast.expr]) -> list[ast.Call]:
    """Return the calls that arguments consist of: themselves, or the elements of a list or comprehension."""
    nodes, calls = [*arguments], []
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Call):
            calls.append(node)
        elif isinstance(node, ast.Starred):
            nodes.append(node.value)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            nodes += node.elts
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            nodes.append(node.elt)
    return calls


def starter_name(node: ast.Call) -> str:
    """Return the name of the function of `asyncio` that is called; empty for any other."""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id if function.id in STARTERS - {"wait"} else ""
    if not isinstance(function, ast.Attribute):
        return ""
    is_module = isinstance(function.value, ast.Name) and function.value.id == "asyncio"
    known = STARTERS | {"run"} if is_module else {"create_task", "run_until_complete"}
    return function.attr if function.attr in known else ""


def start_tool(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return a coroutine that calls a tool in a thread; what has replaced the tool is called as it is."""

    async def call() -> Any:
        outcome = functools.partial(function, *args, **kwargs)
        import asyncio  # Not before: it is large, and few programs need it.

        return await asyncio.get_running_loop().run_in_executor(None, outcome)

    is_tool = getattr(function, "is_tool", False) is True
    return call() if is_tool else awaitable(function(*args, **kwargs))


def awaitable(value: Any) -> Any:
    """Return what can be awaited as it is; anything else as a coroutine with that result."""

    async def give() -> Any:
        return value

    return value if inspect.isawaitable(value) else give()
