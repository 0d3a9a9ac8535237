"""Why a value cannot be passed: the type of the part that is in the way, and its place."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from typing import Any

MAX_PLACE_CHARS = 200


class UnpackableError(TypeError):
    """A value cannot be passed.

    Args:
        part: The part of it that is in the way.
        reason: What is wrong with that, if it is not its type.
    """

    def __init__(self, part: Any, reason: str = "") -> None:
        super().__init__(reason or f"is {article(type_name(part))}")
        self.part, self.place = part, ""

    def about(self, name: str) -> str:
        """Return a clause that names the place: `x['a'][0] is a _thread.lock`."""
        place = f"{name}{self.place}"
        if len(place) > MAX_PLACE_CHARS:
            place = f"{place[:MAX_PLACE_CHARS]}…"
        return f"{place} {self.args[0]}"


def type_name(value: Any) -> str:
    """Return the name of a type with its library."""
    cls = type(value)
    library = str(getattr(cls, "__module__", "")).partition(".")[0]
    return cls.__qualname__ if library in ("builtins", "__main__") else f"{library}.{cls.__qualname__}"


def article(name: str) -> str:
    """Return a name with the article that it takes."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


@contextlib.contextmanager
def at_place(place: str) -> Iterator[None]:
    """Say of what cannot be passed that it is at this place."""
    try:
        yield
    except UnpackableError as error:
        error.place = place + error.place
        raise


def place_in(whole: Any, part: Any) -> str:
    """Return where a part is in a container, as Python writes it; empty where that has no word."""
    if isinstance(whole, dict):
        for key, value in whole.items():
            if value is part:
                return f"[{key!r}]"
        return f".keys(){place_in(list(whole), part)}"
    if isinstance(whole, list | tuple | set | frozenset | collections.deque):
        for number, value in enumerate(whole):
            if value is part:
                return f"[{number}]"
    return ""
