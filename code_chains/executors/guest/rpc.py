"""Remote calls between two sandboxes, so that tests can call a program which can neither read nor patch them.

The program's sandbox serves calls with `serve`; the tests' makes them with `RpcChannel.request`. Only data
crosses, as JSON, and is rebuilt with exact types, so that the tests compare values of their own. Objects of
other types stay where they are: they are lent, and the peer holds a `Remote`.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import importlib
import inspect
import io
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from . import cell, inspection, serialization
from .capabilities import is_forbidden, is_namespace, is_own_object, may_use
from .plain_data import plain
from .proxies import OPERATIONS, Lent, Member, NumberMember, Remote, TextMember, let_compare
from .sharing import SharedContainers
from .surroundings import OfProgram, OfTests
from .wire import FRAME_HEADER, WALL_FACTOR, Json, Read, Write, decode, encode

MUTABLE_TYPES = {
    *(("builtins", name) for name in ("list", "dict", "set")),
    *(("collections", name) for name in ("deque", "Counter", "OrderedDict")),
    *(("numpy", "ndarray"), ("pandas", "DataFrame"), ("pandas", "Series")),
}
"""Types of arguments, by package and name, whose changes by the callee are sent back."""
_TYPES = (int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset, range)
_ERRORS = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, Exception)]
PLAIN_TYPES: dict[str, type] = {kind.__name__: kind for kind in (*_TYPES, *_ERRORS)}
"""Types that are the same on both sides."""
_setitimer = getattr(signal, "setitimer", None)  # WebAssembly has none.
_OPERATIONS = OPERATIONS | {"inspect": inspection.of_program, "module": importlib.import_module}
MAX_PRINTED_PARTS = 10_000
"""Parts of a call's output that the tests receive."""
MAX_MESSAGE_CHARS, MAX_CAUSES, MAX_LENT_ERRORS = 1000, 3, 10_000
MAX_READ_BYTES = 1 << 20
ASKED = "\x00asked\x00"
"""What tests write to their standard error once they need the program; what they import before takes its time."""


class ProgramEndedError(BaseException):
    """The program ended while it was being tested; no test catches that as an exception of the program."""

    def __str__(self) -> str:
        return "The program ended while it was being tested."


class WaitedError(BaseException):
    """A test met its limit of wall time."""


class RpcChannel:
    """Both directions of a connection between two sandboxes, with the objects that each has lent to the other.

    Args:
        incoming: Descriptor to read from.
        outgoing: Descriptor to write to.
        read: Reads from a descriptor.
        write: Writes to one.

    Attributes:
        lent: Objects that were lent to the peer, by number.
        borrowed: Proxies for the peer's objects, by number.
        printed: What the peer printed during calls.
        truthful: Classes whose objects say whether they are true, as the program defines that.
        truths: What objects have said, by number, until something is done with them.
        is_own_error: Returns whether tests have made an error by themselves.
        raises_exits: Whether tests expect that the program exits.
        around: What tests have put around their calls.
        shared: Lists, dicts and sets that were passed.
        calls: How often the peer was asked to call something.
        refused: What a program must not do with an object of the tests, if it tried; empty otherwise.
        seconds: Processor time that the program may take for each test; 0 without a limit.
        has_answered: Whether the peer has answered a request.
    """

    incoming: int
    outgoing: int

    # Invariant: both are bound before any program can replace them.
    def __init__(self, incoming: int, outgoing: int, read: Read = os.read, write: Write = os.write) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        self.lent: list[Any] = []
        self.borrowed: dict[int, Remote] = {}
        self.printed: list[str] = []
        self.truthful = frozenset[str]()
        self.around = OfTests(self.request, self.pack)
        self._served = OfProgram()
        self._failure: AssertionError | None = None
        self.truths: dict[int, bool] = {}
        self.is_own_error: Callable[[BaseException], bool] = lambda error: False
        self.raises_exits = False
        self.calls, self.refused = 0, ""
        self.seconds, self.has_answered = 0.0, False
        self._has_asked = False
        self.shared = SharedContainers()
        self._depth = 0
        self._numbers: dict[int, int] = {}
        self._members: dict[int, NumberMember | TextMember] = {}
        self._lock = threading.RLock()
        self._read, self._write = read, write

    @property
    def is_guarded(self) -> bool:
        """Whether objects are checked before they are lent; those of tests are, as the program could forge their outcome."""
        return self.shared.is_of_tests

    def begin(self) -> None:
        """Begin a test, which has its own limits of time: of processor time in the program, of wall time here."""
        if self.seconds and _setitimer is not None:
            signal.signal(signal.SIGALRM, _end_waiting)
            _setitimer(signal.ITIMER_REAL, WALL_FACTOR * self.seconds)
            self.request("begin")

    # -- messages --------------------------------------------------------------------------------------------

    def send(self, message: Json) -> None:
        """Send a message."""
        data = encode(message).encode()
        data = FRAME_HEADER.pack(len(data)) + data
        try:
            while data:
                data = data[self._write(self.outgoing, data) :]
        except OSError:
            raise ProgramEndedError from None

    def receive(self) -> Json:
        """Return the peer's next message."""
        (size,) = FRAME_HEADER.unpack(self._read_exactly(FRAME_HEADER.size))
        message = decode(self._read_exactly(size).decode())
        if not isinstance(message, dict):
            raise ProgramEndedError
        self.shared.take(message, self.unpack, self.pack)
        return message

    def _read_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._read(self.incoming, min(size - len(data), MAX_READ_BYTES))
            if not chunk:
                raise ProgramEndedError
            data += chunk
        return bytes(data)

    # -- values ----------------------------------------------------------------------------------------------

    def pack(self, value: Any) -> Any:
        """Return a value as JSON, or the number under which it is lent."""
        return serialization.Packer(self._lend, share=self.shared.reference)(value)

    def unpack(self, packed: Any) -> Any:
        """Return a packed value, or a proxy for it."""
        return serialization.unpack(packed, self._borrow)

    def _lend(self, value: Any) -> Json:
        if isinstance(value, Remote):
            return {"returned": value._number}
        name = value.__name__ if isinstance(value, type) else ""
        if name and PLAIN_TYPES.get(name) is value:
            return {"plain": name}
        if isinstance(value, Member):
            return {"returned": value.owner._number}
        if isinstance(value, enum.Enum) and isinstance(value, int | str):
            number = self.pack(plain(value))
            return number if self.is_guarded else {"member": number, "of": self._lend_object(value)}
        if self.is_guarded and is_forbidden(value):
            raise TypeError(f"Tests must not hand on {value!r}: a program could forge its outcome with it.")
        return self._lend_object(value)

    def _lend_object(self, value: Any) -> Json:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self.lent)
            # Invariant: it lives as long as its number, so that its id is not reused.
            self.lent.append(value)
        return {
            "lent": self._numbers[id(value)],
            "type": type(value).__name__,
            "class": isinstance(value, type),
            "name": value.__name__ if isinstance(value, FunctionType) else "",
            "doc": value.__doc__ if self.is_guarded and isinstance(value, FunctionType) else None,
        }

    def _borrow(self, packed: Json) -> Any:
        if "shared" in packed:
            return self.shared.referred(packed)
        if "plain" in packed:
            return PLAIN_TYPES[packed["plain"]]
        if "returned" in packed:
            return self.lent[packed["returned"]]
        if "member" in packed:
            return self._member(self._borrow(packed["of"]), self.unpack(packed["member"]))
        number = packed["lent"]
        if number not in self.borrowed:
            name, doc = str(packed.get("name", "")), packed.get("doc")
            proxy = Remote if self.is_guarded else Lent
            self.borrowed[number] = proxy(self, number, packed["type"], packed["class"], name=name, doc=doc)
        else:  # What a function returns is compared with nothing, and be it an object that the tests have made.
            let_compare(self.borrowed[number], compares=False)
        return self.borrowed[number]

    def _member(self, owner: Remote, value: Any) -> Any:
        """Return the same value for the same member of an enumeration."""
        kind = {int: NumberMember, str: TextMember}.get(type(value))
        if kind is not None and owner._number not in self._members:
            self._members[owner._number] = kind(value)
            self._members[owner._number].owner = owner
        return self._members.get(owner._number, owner)

    # -- calls -----------------------------------------------------------------------------------------------

    def request(self, target: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Have the peer call `target`, the name of an operation or the number of an object of its own."""
        arguments = [*args, *kwargs.values()]
        try:
            reply = self._reply_to(target, args, kwargs)
            return self._outcome_of(arguments, reply)
        except StopIteration as error:  # It would end whatever loop of the tests called it.
            if target != "next":
                raise RuntimeError("The program raised StopIteration.") from error
            raise
        finally:
            self.check_callbacks()

    def _reply_to(self, target: Any, args: tuple[Any, ...], kwargs: Json) -> Json:
        arguments = [*args, *kwargs.values()]
        self.calls += isinstance(target, int)
        if self.is_guarded and not self._has_asked:
            self._has_asked = True
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, ASKED.encode())
        if self.is_guarded and any(map(is_namespace, arguments)):
            raise TypeError("Tests must not hand on the names of a module: a program could change them.")
        packed_kwargs = {key: self.pack(value) for key, value in kwargs.items()}
        message: Json = {
            "call": target,
            "args": [self.pack(value) for value in args],
            "kwargs": packed_kwargs,
        }
        if self.is_guarded and (around := self.around.sent(arguments)):
            message["around"] = around
        with self._lock:  # The program may call the tests' functions from threads of its own.
            message |= self.shared.changes(self.pack, drops=self.is_guarded and not self._depth)
            self._depth += 1
            try:
                self.send(message)
                while "call" in (reply := self.receive()):
                    self.respond(reply)
                self.has_answered = True
            finally:
                self._depth -= 1
        return reply

    def _outcome_of(self, arguments: list[Any], reply: Json) -> Any:
        """Return what a reply says that a call returned, or raise what it raised."""
        self._repeat(reply)
        self.around.received(reply.get("around"), arguments)
        for argument, changed in zip(arguments, reply.get("args", ()), strict=False):
            update_in_place(argument, self.unpack(changed))
        if "error" in reply:
            raise self._unpack_error(*reply["error"])
        value = self.unpack(reply["value"])
        return completed(value) if reply.get("is_coroutine") else value

    def check_callbacks(self) -> None:
        """Raise the failed assertion of a callback. Invariant: none is swallowed by who calls it, whatever it replies."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _repeat(self, reply: Json) -> None:
        """Write what the peer printed during a call to the streams of this side."""
        if printed := reply.get("printed", ""):
            sys.stdout.write(printed)
            if len(self.printed) < MAX_PRINTED_PARTS:
                self.printed.append(printed)
        if isinstance(sys.stderr, OutputRecorder):  # A test looks at it.
            sys.stderr.write(reply.get("warned", ""))

    def respond(self, message: Json, names: Json | None = None) -> None:
        """Make a call that the peer requested, and send its outcome.

        Args:
            message: The request.
            names: The program's namespace, where the peer is a test; None otherwise.
        """
        output, warned = OutputRecorder(sys.stdout), OutputRecorder(sys.stderr)
        changed = dict[str, Any]()
        try:
            with (
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(warned),
                self._served.around(message.get("around", {}), self.unpack, changed),
            ):
                reply = self._outcome(message, names)
            encode(reply)
            reply |= self.shared.changes(self.pack)
        except BaseException as error:
            if self.is_guarded and isinstance(error, AssertionError):
                self._failure, error = self._failure or error, AssertionError()
            reply = self._error_reply(error)
        reply |= changed
        if output.parts and names is not None:
            reply["printed"] = "".join(output.parts)
        if warned.parts and names is not None:
            reply["warned"] = "".join(warned.parts)
        self.send(reply)

    def refuse(self, error: Exception) -> None:
        """Reply to a request that cannot be read."""
        self.send(self._error_reply(error))

    def _error_reply(self, error: BaseException) -> Json:
        """Return the reply to a request that failed, whatever else cannot be passed."""
        reply: Json = {"error": self.pack_error(error)}
        with contextlib.suppress(Exception):
            reply |= self.shared.changes(self.pack)
        return reply

    def _outcome(self, message: Json, names: Json | None) -> Json:
        """Return the value of a call, with the arguments that it changed."""
        args = [self.unpack(value) for value in message["args"]]
        kwargs = {key: self.unpack(value) for key, value in message["kwargs"].items()}
        arguments = [*args, *kwargs.values()]
        before = [encode(self.pack(value)) if is_mutable(value) else None for value in arguments]
        value = self._call(message["call"], args, kwargs, names)
        is_coroutine = inspect.iscoroutine(value)
        if is_coroutine:
            import asyncio  # Not before: it is large, and few programs need it.

            value = asyncio.run(value)
        reply: Json = {"value": self.pack(value), "is_coroutine": is_coroutine}
        after = [
            self.pack(value) if old is not None else None
            for value, old in zip(arguments, before, strict=True)
        ]
        if any(old is not None and encode(new) != old for old, new in zip(before, after, strict=True)):
            reply["args"] = after
        return reply

    def _call(self, target: Any, args: list[Any], kwargs: Json, names: Json | None) -> Any:
        """Make one call.

        Only tests, whose calls come with the program's `names`, may do more than call lent objects.
        """
        if isinstance(target, int):
            return self.lent[target](*args, **kwargs)
        if names is None:
            self._check_use(target, args)
        elif target == "names":
            return [name for name in names if not name.startswith("__")]
        elif target == "name":
            return names[args[0]]
        elif target == "begin":
            limit_processor_time(self.seconds)
            return None
        elif target == "bind":
            bind(names, *args)
            return None
        elif target in ("seed", "share_files", "replace"):
            return getattr(self._served, target)(*args, **kwargs)
        elif target == "leave":
            error = self._unpack_error(*args[1])
            return bool(type(args[0]).__exit__(args[0], type(error), error, None))
        return _OPERATIONS[target](*args, **kwargs)

    def _check_use(self, target: str, args: list[Any]) -> None:
        """Raise if a program must not do something with what tests lend: a function can be called or gone through only."""
        is_lent = any(value is lent for value in args[:1] for lent in self.lent)
        is_own = is_lent and is_own_object(args[0])
        if is_lent and (
            target in ("iter", "next", "len") or (is_own and may_use(args[0], target, *args[1:]))
        ):
            return
        if is_own:
            what = repr(args[1]) if target in ("getattr", "setattr") else f"by {target!r}"
            self.refused = (
                f"{type(args[0]).__name__}, an object of the tests, cannot be used {what} by a program"
            )
        raise PermissionError("What tests give to a program can be called or gone through, and nothing else.")

    # -- exceptions ------------------------------------------------------------------------------------------

    def pack_error(self, error: BaseException, depth: int = 0) -> list[Any]:
        """Return an exception as JSON: its type with its bases, its attributes, where it was raised, its text, its cause."""
        types = [[cls.__module__, cls.__name__] for cls in type(error).__mro__]
        content: Any = None
        with contextlib.suppress(Exception):
            attributes = {key: value for key, value in vars(error).items() if key[:1] != "_"}
            content = self.pack((tuple(error.args), attributes))
            encode(content)
        text = ""
        with contextlib.suppress(Exception):
            text = str(error)[:MAX_MESSAGE_CHARS]
        # Invariant: a program learns nothing of the places and variables of tests.
        where = "" if self.is_guarded else location(error)
        is_own = not self.is_guarded and types[0][0] == "__main__" and len(self.lent) < MAX_LENT_ERRORS
        owner = self._lend(error) if is_own else None
        cause = (
            self.pack_error(error.__cause__, depth + 1) if error.__cause__ and depth < MAX_CAUSES else None
        )
        return [types, content or self.pack(((), {})), where, text, cause, owner]

    def _unpack_error(
        self, types: list[list[str]], content: Any, note: str, text: str, cause: Any, owner: Any
    ) -> BaseException:
        """Return an exception of the peer, with a note that says where it was raised."""
        cls: type[BaseException] = error_type(tuple(map(tuple, types)))
        if self.raises_exits and types[0] == ["builtins", "SystemExit"]:
            cls = SystemExit
        args, attributes = self.unpack(content)
        try:
            error = cls(*args)
        except Exception:  # Its constructor takes other arguments than `args`.
            error = cls.__new__(cls)
            error.args = args
        if isinstance(error, RemoteError):
            vars(error).update(attributes, _text=text, _owner=self.unpack(owner))
        vars(error)["_said"] = (
            text  # What it holds may be objects of the program, whose text is theirs to refuse.
        )
        if note:
            error.add_note(note)
        if cause:
            error.__cause__ = self._unpack_error(*cause)
        return error


async def completed(value: Any) -> Any:
    """Return the outcome of the program's coroutine, for tests that await it."""
    return value


class OutputRecorder(io.TextIOBase):
    """Writes to a stream, and records some of it for tests that check what is printed."""

    parts: list[str]
    stream: Any

    def __init__(self, stream: Any) -> None:
        self.stream, self.parts = stream, list[str]()

    def write(self, text: str) -> int:
        """Write and record."""
        if len(self.parts) < MAX_PRINTED_PARTS:
            self.parts.append(text)
        return int(self.stream.write(text))

    def taken(self) -> str:
        """Return the text that was written since the last call of this."""
        text = "".join(self.parts)
        self.parts.clear()
        return text

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()


def _end_waiting(*_: object) -> None:
    raise WaitedError


def limit_processor_time(seconds: float) -> None:
    """Have the kernel end this process once it has taken so much processor time from here on."""
    if seconds and _setitimer is not None:
        _setitimer(signal.ITIMER_PROF, seconds)


def bind(names: Json, name: str, *value: Any) -> None:
    """Bind a name of the program, or remove it where there is no value."""
    names.pop(name, None)
    if value:
        names[name] = value[0]


def is_mutable(value: Any) -> bool:
    """Return whether changes of an argument are sent back."""
    return (type(value).__module__.partition(".")[0], type(value).__name__) in MUTABLE_TYPES


def update_in_place(argument: Any, changed: Any) -> None:
    """Apply what the program changed in an argument to the tests' own object."""
    if type(argument) is not type(changed):
        return
    if isinstance(argument, list):
        argument[:] = changed
    elif isinstance(argument, dict | set):
        argument.clear()
        argument.update(changed)
    elif isinstance(argument, deque):
        argument.clear()
        argument.extend(changed)
    elif hasattr(argument, "_update_inplace"):
        # Of frames and series; pandas' own methods with inplace=True end here.
        argument._update_inplace(changed)
    elif getattr(argument, "shape", None) == changed.shape:
        argument[...] = changed


class RemoteError(Exception):
    """Represents exception classes that the program defines; methods and properties are those of its exception."""

    def __getattr__(self, name: str) -> Any:
        owner = vars(self).get("_owner")
        if owner is None or name.startswith("__"):
            raise AttributeError(name)
        return getattr(owner, name)

    def __str__(self) -> str:
        return str(vars(self).get("_text") or super().__str__())


_error_types: dict[tuple[Any, ...], type[Exception]] = {}


def error_type(types: tuple[Any, ...]) -> type[Exception]:
    """Return an exception class of this name: that of a loaded module of Python, else a class with the same bases.

    Invariant: nothing is imported because a program names it, and no exception that ends or skips tests is
        accepted.

    Args:
        types: `(module, name)` of the class and of its bases, in method resolution order.
    """
    module, name = types[0]
    package = module.partition(".")[0]
    if package in sys.stdlib_module_names and package != "unittest":
        loaded = vars(sys.modules.get(module, builtins)).get(name)
        if isinstance(loaded, type) and issubclass(loaded, Exception):
            return loaded
    if types not in _error_types:  # Also for SystemExit, which would end the tests as if they had passed.
        base = error_type(types[1:]) if types[1][1] not in ("BaseException", "object") else Exception
        bases = (base,) if issubclass(base, RemoteError) else (RemoteError, base)
        _error_types[types] = type(name, bases, {})
    return _error_types[types]


def location(error: BaseException) -> str:
    """Return the line of the program that failed, with its variables at that time."""
    report = cell.describe(error)
    if not report["line"]:
        return ""
    values = ", ".join(f"{name} = {value}" for name, value in report["locals"].items())
    return f"in line {report['line']} of the program" + (f", with {values}" if values else "")


def serve(channel: RpcChannel, names: Json) -> None:
    """Respond to the tests' requests until they end."""
    while True:
        try:
            message = channel.receive()
        except ProgramEndedError:
            return
        except Exception as error:  # Something in it cannot be unpacked here.
            channel.refuse(error)
        else:
            channel.respond(message, names)
