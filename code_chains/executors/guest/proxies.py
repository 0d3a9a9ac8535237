"""Proxies for objects of the program, which tests hold in their own sandbox.

Invariant: nothing that the program's object returns decides an assertion. An object is never asked how it compares with a
plain value, as it could claim equality with anything, nor whether it is true.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import math
import operator
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

BINARY_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and_", "or_", "xor", "lshift", "rshift"),
)
IN_PLACE_OPERATORS = tuple(f"i{name.strip('_')}" for name in BINARY_OPERATORS)
NUMERIC_OPERATORS = ("abs", "round", "int", "float", "index", "bool", "neg", "pos", "invert", "len")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne", "contains")
REMOTE_ATTRIBUTES = (
    "__name__",
    "__qualname__",
    "__module__",
    "__wrapped__",
    "__annotations__",
    "__dataclass_fields__",
    "__defaults__",
    "__mro__",
)
"""Special attributes that are read from the program's object."""
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in (
            *BINARY_OPERATORS,
            *IN_PLACE_OPERATORS,
            *COMPARISONS,
            "getitem",
            "setitem",
            "delitem",
            "neg",
            "pos",
            "abs",
        )
    },
    **{
        name: getattr(builtins, name)
        for name in ("getattr", "setattr", "len", "iter", "next", "bool", "int", "float", "type")
    },
    **{name: getattr(builtins, name) for name in ("str", "repr", "hash", "round", "isinstance")},
    "index": operator.index,
    "format": format,
    "invert": operator.invert,
}
"""What proxies may request, by name; bound before any program can replace it."""


class Channel(Protocol):
    """The channel to the other sandbox, which `rpc` implements.

    Attributes:
        borrowed: Proxies for the peer's objects, by number.
        truthful: Classes whose objects say whether they are true, as the program defines that.
        truths: What objects have said, by number, until something is done with them.
        is_own_error: Returns whether tests have made an error by themselves.
    """

    is_own_error: Callable[[BaseException], bool]
    borrowed: dict[int, Remote]
    truthful: frozenset[str]
    truths: dict[int, bool]

    def request(self, target: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Make the peer call a function by its number, or an operation by its name, and return what that returns."""

    def pack_error(self, error: BaseException) -> list[Any]:
        """Return an exception as JSON."""


class Remote:
    """A proxy for an object in the other sandbox.

    The truth of an object that a function returned is evaluated only if its class defines what that is: `assert is_even(2)`
    expects a plain value, while `assert not make_stack()` may ask the stack.

    Args:
        channel: The channel to the other sandbox.
        number: The number under which the object is lent.
        kind: The name of its type.
        is_class: Whether it is a class.
        made: Whether the tests created it, by calling a class: such an object may meet plain values, as in
            `Vector(1, 2) * 2`. An object that a function returned never does.
        mixed: Whether it results from that: it does not convert to a plain number, or `abs(f(2) - 4) < 1e-9`
            would hold for a class `f` that lies.
        name: What a function of the tests is called, for a decorator of the program.
        doc: Its docstring.

    Attributes:
        _compares: Of a class, and of objects that the tests make by calling it: whether they may be compared with plain
            values, as in `Money(5) > 4`, and so may what two of them make. Those with the name of a class in the tests do; a
            class in place of a function, `clamp(5, 1, 3) >= 1`, never does.
    """

    def __init__(
        self,
        channel: Channel,
        number: int,
        kind: str,
        is_class: bool,
        *,
        made: bool = False,
        mixed: bool = False,
        name: str = "",
        doc: str | None = None,
    ) -> None:
        own = {
            "_channel": channel,
            "_number": number,
            "_kind": kind,
            "_class": is_class,
            "_made": made,
            "_mixed": mixed,
            "_name": name,
            "_doc": doc,
            "_compares": False,
        }
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the object."""
        borrowed = len(self._channel.borrowed)
        value = self._channel.request(self._number, *args, **kwargs)
        is_new = len(self._channel.borrowed) > borrowed
        return _marked(value, made=True, compares=self._compares) if self._class and is_new else value

    def __getattr__(self, name: str) -> Any:
        self._channel.truths.pop(self._number, None)
        if self._class and name == "__bases__":
            return _bases(self)
        if name == "__signature__":
            return _signature(self)
        if name in ("__name__", "__qualname__") and self._name:
            return self._name
        if name.startswith("__") and name not in REMOTE_ATTRIBUTES:
            raise AttributeError(name)
        try:
            return _marked(self._channel.request("getattr", self, name), made=self._made, mixed=self._mixed)
        except PermissionError:
            raise AttributeError(name) from None

    @property
    def __doc__(self) -> Any:  # type: ignore[override]  # Otherwise it would be that of this class.
        if self._doc is not None:
            return self._doc
        with contextlib.suppress(PermissionError):
            return self._channel.request("getattr", self, "__doc__")
        return None

    def __setattr__(self, name: str, value: Any) -> None:
        self._channel.request("setattr", self, name, value)

    def __iter__(self) -> Iterator[Any]:
        iterator = self._channel.request("iter", self)
        return iterator if isinstance(iterator, Remote) else iter(iterator)

    def __next__(self) -> Any:
        return self._channel.request("next", self)

    def __str__(self) -> str:
        return str(self._channel.request("str", self))

    def __repr__(self) -> str:
        return str(self._channel.request("repr", self))

    def __format__(self, spec: str) -> str:
        return str(self._channel.request("format", self, spec))

    def __hash__(self) -> int:
        return int(self._channel.request("hash", self))

    def __enter__(self) -> Any:
        return self._channel.request("getattr", self, "__enter__")()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        # Invariant: the object is told of an error that the tests made on purpose alone, so that it swallows no assertion.
        if error is None or isinstance(error, AssertionError) or not self._channel.is_own_error(error):
            self._channel.request("getattr", self, "__exit__")(None, None, None)
            return False
        return self._channel.request("leave", self, self._channel.pack_error(error)) is True

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote) and bool(self._channel.request("isinstance", instance, self))


def _signature(value: Remote) -> inspect.Signature:
    """Return the signature of a function of the program; annotations are Python's own types, or else text."""
    parameters = []
    for name, kind, has_default, default, annotation in value._channel.request("inspect", "signature", value):
        options = {"default": default} if has_default else {}
        if annotation:
            options["annotation"] = getattr(builtins, annotation, annotation)
        parameters.append(inspect.Parameter(name, getattr(inspect.Parameter, kind), **options))
    return inspect.Signature(parameters)


def _bases(value: Remote) -> tuple[Any, ...]:
    """Return the bases of a class of the program."""
    found = value._channel.request("inspect", "bases", value)
    return tuple(getattr(builtins, base) if isinstance(base, str) else base for base in found)


def let_compare(value: Remote, *, compares: bool) -> None:
    """Say whether objects of a class, or an object, may be compared with plain values; see `Remote`."""
    object.__setattr__(value, "_compares", compares)


def _marked(value: Any, *, made: bool = False, mixed: bool = False, compares: bool = False) -> Any:
    """Return a proxy that records how it was obtained; plain values are returned unchanged."""
    if not isinstance(value, Remote) or not (made or mixed or compares):
        return value
    made, mixed = made or value._made, mixed or value._mixed
    marked = Remote(value._channel, value._number, value._kind, value._class, made=made, mixed=mixed)
    let_compare(marked, compares=compares)
    value._channel.borrowed[value._number] = marked  # The same object is the same proxy from here on.
    return marked


def _unary(name: str) -> Callable[..., Any]:
    def method(self: Remote, *args: Any) -> Any:
        value = self._channel.request(name, self, *args)
        if self._mixed and name in NUMERIC_OPERATORS and not isinstance(value, Remote):
            raise TypeError(
                f"{self._kind} has met a plain value: what it makes of that is not to be believed"
            )
        return _marked(value, made=self._made, mixed=self._mixed)

    return method


def _binary(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Remote, other: Any) -> Any:
        is_plain = not isinstance(other, Remote)
        if is_plain and not self._made:
            raise TypeError(
                f"{self._kind} is an object of the program: take plain values out of it and calculate with those"
            )
        operands, compares = ((other, self) if reflected else (self, other)), self._compares
        value = self._channel.request(name, *operands)
        if is_plain and not isinstance(value, Remote):
            raise TypeError(
                f"{self._kind} has met a plain value: what it makes of that is not to be believed"
            )
        # Changed in place it is still what the tests made; anything else that a plain value gave is not.
        is_same = isinstance(value, Remote) and value._number == self._number
        is_changed = is_same and compares and name in IN_PLACE_OPERATORS
        mixed = self._mixed or (is_plain and not is_changed)
        if is_same:
            object.__setattr__(self, "_mixed", mixed)
            let_compare(self, compares=compares and not mixed)
            return self
        compares = compares and not is_plain and other._compares
        return _marked(value, made=self._made, mixed=mixed, compares=compares)

    return method


def _truth(self: Remote) -> bool:
    if self._mixed or not (self._made or self._kind in self._channel.truthful):
        raise TypeError(
            f"{self._kind} is an object of the program: whether it is true is its own word. Give True or False"
        )
    truths: dict[int, bool] = self._channel.truths
    if self._number not in truths:  # It says so once, whatever happens elsewhere meanwhile.
        truths[self._number] = bool(self._channel.request("bool", self))
    return truths[self._number]


def condition(value: Any) -> bool:
    """Evaluate the condition of `if` or `while` in the tests, which asserts nothing: `while node: …`."""
    return bool(value._channel.request("bool", value)) if isinstance(value, Remote) else bool(value)


def _comparison(name: str) -> Callable[..., Any]:
    def method(self: Remote, other: Any) -> Any:
        is_plain = not isinstance(other, Remote)
        if is_plain and not self._compares:
            if name in ("eq", "ne"):
                return _has_content(self, other) is (name == "eq")
            raise TypeError(
                f"{self._kind} is an object of the program: take plain values out of it and compare those"
            )
        result = self._channel.request(name, self, other)
        if is_plain:
            _reject_lies(name, self, other, result)
        elif name == "eq" and not isinstance(result, Remote) and result:
            _reject_universal(self, other)
        return result

    return method


def _has_content(value: Remote, other: Any) -> bool:
    """Return whether an object that a function returned consists of a plain value, such as one of a class below `list`."""
    content = value._channel.request("inspect", "plain", value)
    return content is not None and bool(content == other)


def _reject_lies(name: str, value: Remote, other: Any, result: Any) -> None:
    """Raise if what an object says of a plain value cannot be: that it equals or has anything, or is beyond infinity."""
    if type(result) is not bool:
        raise TypeError(f"{value._kind} says neither True nor False beside a plain value")
    if result and name in ("eq", "contains"):
        _reject_universal(value, name=name)
    if (
        result
        and name in _EXTREMES
        and isinstance(other, int | float)
        and _says(value, name, _EXTREMES[name])
    ):
        raise TypeError(f"{value._kind} says to be beyond infinity: it is not to be believed")


_EXTREMES = {"lt": -math.inf, "le": -math.inf, "gt": math.inf, "ge": math.inf}


def _says(value: Remote, name: str, other: Any) -> bool:
    """Return whether an object says that a comparison holds."""
    with contextlib.suppress(Exception):  # It may support values of some types only.
        answer = value._channel.request(name, value, other)
        return not isinstance(answer, Remote) and bool(answer)
    return False


def _reject_universal(*proxies: Remote, name: str = "eq") -> None:
    """Raise if an object equals or contains a random text or number, and thus probably everything."""
    number = int.from_bytes(os.urandom(16))
    for proxy in proxies:
        if any(_says(proxy, name, value) for value in (f"{number:x}", number)):
            what = "equal" if name == "eq" else "contain"
            raise TypeError(
                f"{proxy._kind} is an object of the program that says to {what} anything: it is not to be believed"
            )


for _name in BINARY_OPERATORS:
    setattr(Remote, f"__{_name.strip('_')}__", _binary(_name))
    setattr(Remote, f"__r{_name.strip('_')}__", _binary(_name, reflected=True))
for _name in IN_PLACE_OPERATORS:
    setattr(Remote, f"__{_name}__", _binary(_name))
for _name in COMPARISONS:
    setattr(Remote, f"__{_name}__", _comparison(_name))
for _name in ("getitem", "setitem", "delitem", *NUMERIC_OPERATORS):
    setattr(Remote, f"__{_name}__", _unary(_name))
Remote.__bool__ = _truth  # type: ignore[attr-defined]


class Lent(Remote):
    """A program's proxy for an object that tests have made: what it does is done by its own class, in the tests' process."""

    __doc__ = Remote.__dict__["__doc__"]  # Otherwise it would be that of this class.

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__") and self._name:
            return self._name
        if name.startswith("__") and name not in REMOTE_ATTRIBUTES:
            raise AttributeError(name)
        try:
            return self._channel.request("getattr", self, name)
        except PermissionError:
            raise AttributeError(name) from None

    def __bool__(self) -> bool:
        return bool(self._channel.request("bool", self))

    def __reduce_ex__(self, protocol: object) -> Any:  # It would be a copy of the proxy.
        return self._channel.request("copy", self)


def _passed_on(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Lent, *others: Any) -> Any:
        return self._channel.request(name, *(reversed((self, *others)) if reflected else (self, *others)))

    return method


for _name in (*BINARY_OPERATORS, *COMPARISONS, "getitem", "setitem", "delitem", *NUMERIC_OPERATORS):
    if _name != "bool":
        setattr(Lent, f"__{_name.strip('_')}__", _passed_on(_name))
for _name in BINARY_OPERATORS:
    setattr(Lent, f"__r{_name.strip('_')}__", _passed_on(_name, reflected=True))
for _name in IN_PLACE_OPERATORS:
    setattr(Lent, f"__{_name}__", _passed_on(_name))
Lent.__hash__ = Remote.__hash__  # type: ignore[method-assign]


class Member:
    """A member of the program's enumeration that is a plain value as well, such as of an `IntEnum`.

    Attributes:
        owner: The proxy for the member, which knows its name and its methods.
    """

    owner: Remote

    def __getattr__(self, name: str) -> Any:
        return getattr(self.owner, name)

    def __str__(self) -> str:
        return str(self.owner)

    def __repr__(self) -> str:
        return repr(self.owner)

    def __format__(self, spec: str) -> str:
        return format(self.owner, spec)


class NumberMember(Member, int):
    """A member that is a whole number, or flags."""

    def __contains__(self, flag: object) -> bool:
        return isinstance(flag, Member) and flag.owner in self.owner


class TextMember(Member, str):
    """A member that is a text."""
