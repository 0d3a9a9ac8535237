"""Read JSON that a program may have written, on the host: counted before anything is built of it, in linear time.

Each value costs the host some hundred times the two bytes that it takes as text, so that a limit of bytes bounds nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

MAX_ITEMS = 1_000_000
"""Items of a value: room for a table of 200,000 cells of any type with its index."""
_MARKS = (b",", b"[", b"{")
"""What comes before an item of a list or dict, but for the quotes of a text."""
_TEXT = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_TEXTS_OF_PART = 1000
# Invariant: nothing backtracks, and a text that does not end is one, so that a search takes linear time.
_ONE_TEXT = re.compile(_TEXT, re.DOTALL)
_PART = re.compile(rb'(?:[^"]*+%b){1,%d}+|[^"]++' % (_TEXT, _TEXTS_OF_PART), re.DOTALL)


def count_items(data: bytes, stop: int) -> int:
    """Return how many items JSON holds at most, whether it is valid or not; beyond `stop` some number above it."""
    count = _count_marks(data)
    if count <= stop:
        return count
    # Too many, unless they stand in texts: those are removed part by part, as each piece costs memory.
    count = texts = 0
    for part in _PART.finditer(data):
        count += _count_marks(_ONE_TEXT.sub(b"", part[0]))
        texts += _TEXTS_OF_PART
        # An item has two texts at most: a key and a value.
        if count > stop or texts > 2 * (stop + _TEXTS_OF_PART):
            return max(count, stop + 1)
    return count


def _count_marks(data: bytes) -> int:
    return sum(map(data.count, _MARKS))


def parse(data: bytes, max_items: int = MAX_ITEMS, read_float: Callable[[str], float] | None = None) -> Any:
    """Parse JSON that a program may have written.

    Args:
        data: The JSON, in UTF-8; anything else in it becomes "�".
        max_items: How many items it may hold.
        read_float: Reads numbers that are not integers, and NaN and infinity; None for `float`.

    Raises:
        ValueError: It is not JSON, or holds too many items.
        RecursionError: It is nested too deeply.
    """
    if count_items(data, max_items) > max_items:
        raise ValueError(f"more than {max_items:,} items")
    return json.loads(data.decode("utf-8", "replace"), parse_float=read_float, parse_constant=read_float)
