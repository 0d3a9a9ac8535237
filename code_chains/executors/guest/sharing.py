"""Lists, dicts and sets that tests and a program share, as a function and its caller do in one process.

So `copy(x) is x` says what it should, `[[0] * n] * n` is one row n times, and a list of an object grows when a test appends
to it. Each side has a copy under a number that both know, and each message says what has changed since the last one.

Invariant: only what was passed is shared, and either side names what is new by numbers of its own.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from .serialization import is_flat
from .wire import Json, encode

KINDS: dict[str, type] = {"list": list, "dict": dict, "set": set}
MAX_CONTAINERS, MAX_ITEMS = 500, 20_000
"""What is shared at a time; all else is copied."""
Convert = Callable[[Any], Any]


def _count(values: dict[int, Any], number: int) -> int:
    return sys.getrefcount(values[number])


_UNUSED = _count({0: []}, 0)
"""References to a container that nothing but the table of numbers holds."""


class SharedContainers:
    """The containers of one side.

    Attributes:
        is_of_tests: Whether it is that of the tests.
    """

    is_of_tests: bool

    def __init__(self) -> None:
        self.is_of_tests = False
        self._values = dict[int, Any]()
        self._numbers = dict[int, int]()
        self._told, self._sizes = dict[int, str](), dict[int, int]()
        self._made = self._items = 0

    def reference(self, value: Any) -> Json | None:
        """Return what a message has in place of a container; None for one that is copied."""
        number = self._numbers.get(id(value))
        if number is None:
            if len(self._values) >= MAX_CONTAINERS or len(value) + self._items > MAX_ITEMS:
                return None
            number = 2 * self._made + self.is_of_tests
            self._made += 1
            self._add(number, value)
        return {"shared": number}

    def referred(self, packed: Json) -> Any:
        """Return the container that a message refers to."""
        return self._values[packed["shared"]]

    def changes(self, pack: Convert, *, drops: bool = False) -> Json:
        """Return what a message says of containers: those that are new or have changed, and those that are used no more.

        Args:
            pack: Packs an item.
            drops: Whether to forget those that are used no more; not while the other side writes a message about them.

        Raises:
            TypeError: An item must not be passed.
        """
        rows, done = list[Any](), set[int]()
        known = list(self._told)
        # Packing an item may add the container that it is.
        while left := [number for number in self._values if number not in done]:
            for number in left:
                done.add(number)
                value = self._values[number]
                try:
                    content = _content(value, pack)
                    told = encode(content)
                except BaseException:
                    self._forget(number)
                    self._forget_new()
                    raise
                if self._told.get(number) != told:
                    rows.append([number, type(value).__name__, content])
        for number, _, content in rows:
            self._told[number] = encode(content)
        # What was changed is said before it is forgotten: `stack.items.append(1)`.
        dropped = self._unused(known) if drops else []
        return {"shared": rows, "dropped": dropped} if rows or dropped else {}

    def take(self, message: Json, unpack: Convert, pack: Convert) -> None:
        """Take over what the other side says of containers.

        Raises:
            ValueError: It names what it does not have.
        """
        rows = message.pop("shared", ())
        for number, kind, _ in rows:
            if number not in self._values:
                if type(number) is not int or number % 2 == self.is_of_tests:
                    raise ValueError("a message names a container that was never passed")
                self._add(number, KINDS[kind]())
        for number, kind, content in rows:
            value = self._values[number]
            if type(value) is KINDS[kind]:
                _fill(value, [unpack(item) for item in content])
                self._told[number] = encode(_content(value, pack))
        for number in message.pop("dropped", ()):
            self._forget(number)

    def _add(self, number: int, value: Any) -> None:
        # Invariant: it lives as long as its number, so that its id is not reused.
        self._values[number], self._numbers[id(value)] = value, number
        self._sizes[number] = len(value)
        self._items += len(value)

    def _forget(self, number: int) -> None:
        value = self._values.pop(number, None)
        self._numbers.pop(id(value), None)
        self._told.pop(number, None)
        self._items -= self._sizes.pop(number, 0)

    def _forget_new(self) -> None:
        for number in [number for number in self._values if number not in self._told]:
            self._forget(number)

    def _unused(self, known: list[int]) -> list[int]:
        unused = [number for number in known if _count(self._values, number) <= _UNUSED]
        for number in unused:
            self._forget(number)
        return unused


def _content(value: Any, pack: Convert) -> list[Any]:
    items = [*itertools.chain.from_iterable(value.items())] if type(value) is dict else list(value)
    return items if is_flat(items) else [pack(item) for item in items]


def _fill(value: Any, items: list[Any]) -> None:
    """Give a container new items, unless it has them: a loop over it goes on."""
    if type(value) is list:
        value[:] = items
        return
    pairs = iter(items)
    new: Any = dict(zip(pairs, pairs, strict=True)) if type(value) is dict else set(items)
    for gone in [key for key in value if key not in new]:
        value.pop(gone) if type(value) is dict else value.discard(gone)
    value.update(new)
