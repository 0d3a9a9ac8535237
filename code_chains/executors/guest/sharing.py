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

from .capabilities import is_namespace
from .serialization import CONTAINERS, is_flat
from .wire import Json, encode

KINDS: dict[str, type] = {kind.__name__: kind for kind in CONTAINERS}
MAX_CONTAINERS, MAX_ITEMS, MAX_CHARS = 100, 5000, 50_000
"""What is shared at a time, with the items within items; all else is copied. Each message looks at all of it."""
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
        self._is_taking = False

    def reference(self, value: Any) -> Json | None:
        """Return what a message has in place of a container; None for one that is copied."""
        number = self._numbers.get(id(value))
        if number is None:
            if self.is_of_tests and is_namespace(value):
                raise TypeError("Tests must not hand on the names of a module: a program could change them.")
            size = _size(value, MAX_ITEMS - self._items)
            if len(self._values) >= MAX_CONTAINERS or size + self._items > MAX_ITEMS:
                return None
            number = 2 * self._made + self.is_of_tests
            self._made += 1
            self._add(number, value, size)
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
        if self._is_taking:  # Some are not filled yet.
            return {}
        rows, told = list[Any](), dict[int, str]()
        known = list(self._told)
        # Packing an item may add the container that it is.
        while left := [number for number in self._values if number not in told]:
            for number in left:
                value = self._values[number]
                try:
                    content = _content(value, pack)
                    told[number] = encode(content)
                except BaseException:
                    self._forget(number)
                    self._forget_new()
                    raise
                if self._told.get(number) != told[number]:
                    rows.append([number, type(value).__name__, content])
        self._told.update(told)
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
                self._add(number, KINDS[kind](), 0)
        before, self._is_taking = self._is_taking, True  # A key of the other side is asked for its hash.
        try:
            for number, kind, content in rows:
                if type(self._values[number]) is KINDS[kind]:
                    _fill(self._values[number], _renewed(self._values[number], content, unpack, pack))
        finally:
            self._is_taking = before
        for number, _, _ in rows:
            self._told[number] = encode(_content(self._values[number], pack))
        for number in message.pop("dropped", ()):
            self._forget(number)

    def _add(self, number: int, value: Any, size: int) -> None:
        # Invariant: it lives as long as its number, so that its id is not reused.
        self._values[number], self._numbers[id(value)] = value, number
        self._sizes[number] = size
        self._items += size

    def _forget(self, number: int) -> None:
        value = self._values.pop(number, None)
        self._numbers.pop(id(value), None)
        self._told.pop(number, None)
        self._items -= self._sizes.pop(number, 0)

    def _forget_new(self) -> None:
        for number in [number for number in self._values if number not in self._told]:
            self._forget(number)

    def _unused(self, known: list[int]) -> list[int]:
        unused = [
            number
            for number in known
            if _count(self._values, number) <= _UNUSED or len(self._told[number]) > MAX_CHARS
        ]
        for number in unused:
            self._forget(number)
        return unused


def _flat(value: Any) -> list[Any]:
    """Return the items of a container; of a dict its keys and values by turns."""
    return [*itertools.chain.from_iterable(value.items())] if type(value) is dict else list(value)


def _renewed(value: Any, content: list[Any], unpack: Convert, pack: Convert) -> list[Any]:
    """Return what a container is to hold: its own objects as far as they are as they were, which others may hold as well."""
    own, packed = _flat(value), _content(value, pack)
    kept = {
        place
        for place, (old, new) in enumerate(zip(packed, content, strict=False))
        if isinstance(new, dict | list) and encode(old) == encode(new)
    }
    return [own[place] if place in kept else unpack(part) for place, part in enumerate(content)]


def _content(value: Any, pack: Convert) -> list[Any]:
    items = _flat(value)
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
    if type(value) is dict and list(value) != list(new):
        value.clear()
        value.update(new)


def _size(value: Any, limit: int) -> int:
    """Return how many items a container has, with those within that are no container of their own; few more than a limit."""
    left, count = _flat(value) if len(value) <= limit else [], len(value)
    while left and count <= limit:
        part = left.pop()
        if isinstance(part, str | bytes):
            count += len(part) // 50
        elif isinstance(part, tuple | frozenset):
            count += len(part)
            left += part
    return count
