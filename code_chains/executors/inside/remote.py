"""Objects of one box as stand-ins in another: how tests call a program that can neither read nor patch them.

The program's box `answer`s, the tests' box `ask`s. Only data crosses, as JSON, and is rebuilt of exact types, so that
what the tests compare is their own. An object that is no plain data stays where it is: the tests hold a `Remote` of it.
Such an object is never asked how it compares with a plain value: it could say yes to anything.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import inspect
import io
import operator
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import cell, parcels
from .wire import Json, decode, encode

CHANGING = (list, dict, set)
"""What a program may change for whoever gave it."""
KEPT = 10_000
"""Pieces of what is printed in a call that the tests get to see."""
HEAD = struct.Struct("!I")
OPERATORS = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
)
ASKED_FOR = ("__name__", "__qualname__", "__module__", "__wrapped__", "__annotations__", "__dataclass_fields__")
NUMBERS = ("abs", "round", "int", "float", "index", "bool", "neg", "pos", "invert", "len")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "contains")
ASKED: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in (*OPERATORS, *COMPARISONS, "getitem", "setitem", "delitem", "neg", "pos", "abs")
    },
    **{name: getattr(builtins, name) for name in ("getattr", "setattr", "len", "iter", "next", "bool", "int", "float")},
    **{name: getattr(builtins, name) for name in ("str", "repr", "hash", "round", "isinstance")},
    "index": operator.index,
    "format": format,
    "invert": operator.invert,
}


class ProgramEndedError(Exception):
    """The program ended while it was being tested."""

    def __str__(self) -> str:
        return "The program ended while it was being tested."


class Line:
    """Both directions of what two boxes say to each other, with the objects that each lent to the other."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming, self.outgoing = incoming, outgoing
        self.lent: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.borrowed: dict[int, Remote] = {}
        self.alone = threading.RLock()
        self.read, self.write = os.read, os.write  # Before any program can replace them.

    # -- frames -------------------------------------------------------------------------------------------------------

    def send(self, message: Json) -> None:
        """Say something."""
        data = encode(message).encode()
        data = HEAD.pack(len(data)) + data
        try:
            while data:
                data = data[self.write(self.outgoing, data) :]
        except OSError:
            raise ProgramEndedError from None

    def receive(self) -> Json:
        """What the other box says next."""
        (size,) = HEAD.unpack(self.take(HEAD.size))
        message = decode(self.take(size).decode())
        if not isinstance(message, dict):
            raise ProgramEndedError
        return message

    def take(self, size: int) -> bytes:
        """So many bytes."""
        data = bytearray()
        while len(data) < size:
            more = self.read(self.incoming, min(size - len(data), 1 << 20))
            if not more:
                raise ProgramEndedError
            data += more
        return bytes(data)

    # -- values -------------------------------------------------------------------------------------------------------

    def pack(self, value: Any) -> Any:
        """A value as JSON, or the number under which it is lent."""
        return parcels.pack(value, self._lend)

    def unpack(self, packed: Any) -> Any:
        """The value again, or a stand-in for it."""
        return parcels.unpack(packed, self._borrow)

    def _lend(self, value: Any) -> Json:
        if isinstance(value, Remote):
            return {"yours": value._number}
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.lent)
            self.lent.append(value)  # It lives as long as its number.
        return {"mine": self.numbers[id(value)], "type": type(value).__name__, "class": isinstance(value, type)}

    def _borrow(self, packed: Json) -> Any:
        if "yours" in packed:
            return self.lent[packed["yours"]]
        number = packed["mine"]
        if number not in self.borrowed:
            self.borrowed[number] = Remote(self, number, packed["type"], packed["class"])
        return self.borrowed[number]

    # -- calls --------------------------------------------------------------------------------------------------------

    def ask(self, target: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Have the other box call `target`, a name of `ASKED` or an object of its own."""
        asked = {
            "args": [self.pack(arg) for arg in args],
            "kwargs": {key: self.pack(arg) for key, arg in kwargs.items()},
        }
        with self.alone:  # The program may call what it was given from threads of its own.
            self.send({"call": target, **asked})
            while "call" in (message := self.receive()):
                self.reply(message)
        sys.stdout.write(message.get("printed", ""))
        for mine, theirs in zip([*args, *kwargs.values()], message.get("args", ()), strict=False):
            refill(mine, self.unpack(theirs))
        if "error" in message:
            error = self.same_error(*message["error"])
            if (
                isinstance(error, StopIteration) and target != "next"
            ):  # Or it would end whatever loop the tests call it in.
                raise RuntimeError("The program raised StopIteration.")
            raise error
        value = self.unpack(message["value"])
        return ready(value) if message.get("awaited") else value

    def reply(self, message: Json, names: Json | None = None) -> None:
        """Do what the other box asks for, and say what came of it."""
        printed = Printed(sys.stdout)
        try:
            with contextlib.redirect_stdout(printed):
                answer = self.answer(message, names)
            encode(answer)
        except BaseException as error:
            answer = {"error": self.told(error)}
        self.send(answer | ({"printed": "".join(printed.parts)} if printed.parts and names is not None else {}))

    def answer(self, message: Json, names: Json | None) -> Json:
        """The value of a call, with the arguments it changed."""
        args = [self.unpack(arg) for arg in message["args"]]
        kwargs = {key: self.unpack(value) for key, value in message["kwargs"].items()}
        given = [*args, *kwargs.values()]
        before = [encode(self.pack(arg)) if type(arg) in CHANGING else None for arg in given]
        value = self.call(message["call"], args, kwargs, names)
        awaited = inspect.iscoroutine(value)
        answer: Json = {"value": self.pack(asyncio.run(value) if awaited else value), "awaited": awaited}
        after = [self.pack(arg) if old is not None else None for arg, old in zip(given, before, strict=True)]
        if any(old is not None and encode(new) != old for old, new in zip(before, after, strict=True)):
            answer["args"] = after
        return answer

    def told(self, error: BaseException) -> list[Any]:
        """An exception as JSON: its type with its ancestors, what it keeps, where it was raised, and its words."""
        kinds = [[kind.__module__, kind.__name__] for kind in type(error).__mro__]
        kept: Any = None
        with contextlib.suppress(Exception):
            kept = self.pack((tuple(error.args), {key: value for key, value in vars(error).items() if key[:1] != "_"}))
            encode(kept)
        words = ""
        with contextlib.suppress(Exception):
            words = str(error)[:1000]
        return [kinds, kept or self.pack(((), {})), where(error), words]

    def same_error(self, kinds: list[list[str]], kept: Any, note: str, words: str) -> Exception:
        """What the program raised, to be raised here, with a note of where."""
        kind = error_type(tuple(map(tuple, kinds)))
        args, attributes = self.unpack(kept)
        try:
            error = kind(*args)
        except Exception:  # It wants other arguments than it keeps.
            error = kind.__new__(kind)
            error.args = args
        if isinstance(error, TheirError):
            vars(error).update(attributes, _words=words)
        if note:
            error.add_note(note)
        return error

    def call(self, target: Any, args: list[Any], kwargs: Json, names: Json | None) -> Any:
        """Do one thing. Only tests, who are given the program's `names`, may ask for more than a call of what was lent."""
        if isinstance(target, int):
            return self.lent[target](*args, **kwargs)
        if names is None:
            if target not in ("iter", "next", "len") or not any(one is arg for arg in args[:1] for one in self.lent):
                raise PermissionError("What tests give to a program can be called or gone through, and nothing else.")
        elif target == "names":
            return [name for name in names if not name.startswith("__")]
        elif target == "name":
            return names[args[0]]
        return ASKED[target](*args, **kwargs)


class Remote:
    """A stand-in for an object of the other box.

    `_made` says that the tests made it, by calling a class: such an object may meet plain values, as in `Vector(1, 2) * 2`.
    What comes of that is `_mixed`: it gives no plain number for itself, or `abs(f(2) - 4) < 1e-9` would hold for a class `f`
    that lies. What a function merely gave never meets plain values.
    """

    def __init__(
        self, line: Line, number: int, kind: str, is_class: bool, *, made: bool = False, mixed: bool = False
    ) -> None:
        own = {"_line": line, "_number": number, "_kind": kind, "_class": is_class, "_made": made, "_mixed": mixed}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call it there."""
        known = len(self._line.borrowed)
        value = self._line.ask(self._number, *args, **kwargs)
        return _marked(value, made=True) if self._class and len(self._line.borrowed) > known else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ASKED_FOR:
            raise AttributeError(name)
        try:
            return _marked(self._line.ask("getattr", self, name), made=self._made, mixed=self._mixed)
        except PermissionError:
            raise AttributeError(name) from None

    @property
    def __doc__(self) -> Any:  # type: ignore[override]  # Else it would be that of this class.
        with contextlib.suppress(PermissionError):
            return self._line.ask("getattr", self, "__doc__")
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        self._line.ask("setattr", self, name, value)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._line.ask("iter", self)
        return iterator if isinstance(iterator, Remote) else iter(iterator)

    def __next__(self) -> Any:
        return self._line.ask("next", self)

    def __str__(self) -> str:
        return str(self._line.ask("str", self))

    def __repr__(self) -> str:
        return str(self._line.ask("repr", self))

    def __format__(self, spec: str) -> str:
        return str(self._line.ask("format", self, spec))

    def __hash__(self) -> int:
        return int(self._line.ask("hash", self))

    def __enter__(self) -> Any:
        return self._line.ask("getattr", self, "__enter__")()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._line.ask("getattr", self, "__exit__")(None, None, None)  # Whatever it says: no assertion is swallowed.

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote) and bool(self._line.ask("isinstance", instance, self))


def _marked(value: Any, *, made: bool = False, mixed: bool = False) -> Any:
    """A stand-in that knows how it came about; plain values are as they are."""
    if not isinstance(value, Remote) or not (made or mixed):
        return value
    marks = {"made": made or value._made, "mixed": mixed or value._mixed}
    marked = Remote(value._line, value._number, value._kind, value._class, **marks)
    value._line.borrowed[value._number] = marked  # From here on it is the same one.
    return marked


def _unary(name: str) -> Callable[..., Any]:
    def ask(self: Remote, *args: Any) -> Any:
        value = self._line.ask(name, self, *args)
        if self._mixed and name in NUMBERS and not isinstance(value, Remote):
            raise TypeError(f"{self._kind} has met a plain value: what it makes of that is not to be believed")
        return _marked(value, made=self._made, mixed=self._mixed)

    return ask


def _binary(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def ask(self: Remote, other: Any) -> Any:
        among_themselves = isinstance(other, Remote)
        if not among_themselves and not self._made:
            raise TypeError(
                f"{self._kind} is an object of the program: take plain values out of it and calculate with those"
            )
        value = self._line.ask(name, *((other, self) if reflected else (self, other)))
        if not among_themselves and not isinstance(value, Remote):
            raise TypeError(f"{self._kind} has met a plain value: what it makes of that is not to be believed")
        return _marked(value, made=self._made, mixed=self._mixed or not among_themselves)

    return ask


def _comparison(name: str) -> Callable[..., Any]:
    def ask(self: Remote, other: Any) -> Any:
        if isinstance(other, Remote):
            return self._line.ask(name, self, other)
        if name in ("eq", "ne"):
            return name == "ne"
        raise TypeError(f"{self._kind} is an object of the program: take plain values out of it and compare those")

    return ask


for _name in OPERATORS:
    setattr(Remote, f"__{_name.strip('_')}__", _binary(_name))
    setattr(Remote, f"__r{_name.strip('_')}__", _binary(_name, reflected=True))
for _name in COMPARISONS:
    setattr(Remote, f"__{_name}__", _comparison(_name))
for _name in ("getitem", "setitem", "delitem", *NUMBERS):
    setattr(Remote, f"__{_name}__", _unary(_name))


async def ready(value: Any) -> Any:
    """What a coroutine of the program came to, for whoever awaits it."""
    return value


class Printed(io.TextIOBase):
    """Writes to a stream, and keeps some of it for the tests, which may look at what is printed."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.parts = stream, list[str]()

    def write(self, text: str) -> int:
        """Write and keep."""
        if len(self.parts) < KEPT:
            self.parts.append(text)
        return int(self.stream.write(text))

    def flush(self) -> None:
        """Let it through."""
        self.stream.flush()


def refill(mine: Any, theirs: Any) -> None:
    """What the program changed in a list, dict or set that it was given, is changed in the tests' own, too."""
    if type(mine) is not type(theirs) or mine == theirs:
        return
    if isinstance(mine, list):
        mine[:] = theirs
    elif isinstance(mine, dict | set):
        mine.clear()
        mine.update(theirs)


class TheirError(Exception):
    """What an exception class of the program's own is here."""

    def __str__(self) -> str:
        return str(vars(self).get("_words") or super().__str__())


_errors: dict[tuple[Any, ...], type[Exception]] = {}


def error_type(kinds: tuple[Any, ...]) -> type[Exception]:
    """An exception of this name: that of a library that is loaded here, else a class with the same ancestors.

    Nothing is imported because a program says so, and no exception that ends or skips tests is believed.
    """
    module, name = kinds[0]
    if module.partition(".")[0] in sys.stdlib_module_names and module.partition(".")[0] != "unittest":
        known = vars(sys.modules.get(module, builtins)).get(name)
        if isinstance(known, type) and issubclass(known, Exception):
            return known
    if kinds not in _errors:  # Also for SystemExit, which must not end the tests as if all were well.
        base = error_type(kinds[1:]) if kinds[1][1] not in ("BaseException", "object") else Exception
        _errors[kinds] = type(name, (TheirError,) if base is Exception else (TheirError, base), {})
    return _errors[kinds]


def where(error: BaseException) -> str:
    """The line of the program that failed, with the values of that moment."""
    told = cell.describe(error)
    values = ", ".join(f"{name} = {value}" for name, value in told["locals"].items())
    return f"in line {told['line']} of the program" + (f", with {values}" if values else "") if told["line"] else ""


class Names(dict[str, Any]):
    """The tests' names; those of the program are looked up in its box."""

    def __init__(self, names: Json, line: Line) -> None:
        super().__init__(names)
        self._line = line
        self._there: set[str] | None = None
        self["_program"] = self.of_the_program

    def __missing__(self, name: str) -> Any:
        if name in vars(builtins):  # Or a program could give `abs` and `all` a meaning under which all holds.
            raise KeyError(name)
        return self.of_the_program(name)

    def of_the_program(self, name: str) -> Any:
        """What has this name in the program."""
        if self._there is None:
            self._there = set(self._line.ask("names"))
        if name not in self._there:
            raise KeyError(name)
        value = self._line.ask("name", name)
        if isinstance(value, Remote) and value._class and (error := self._as_error(value)):
            value = error
        return value

    def _as_error(self, value: Remote) -> type[Exception] | None:
        """An exception class of the program as one that can be caught here."""
        kinds = tuple(
            (str(self._line.ask("getattr", kind, "__module__")), str(self._line.ask("getattr", kind, "__name__")))
            for kind in self._line.ask("getattr", value, "__mro__")
        )
        return error_type(kinds) if ("builtins", "Exception") in kinds else None


def answer(line: Line, names: Json) -> None:
    """Do what the tests ask for until they end."""
    while True:
        try:
            message = line.receive()
            line.reply(message, names)
        except ProgramEndedError:
            return
