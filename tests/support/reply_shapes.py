"""Replies of language models in many plausible forms, each with the output of the program it holds.

Every file below `data/replies` is one reply, written out by hand, byte for byte what follows its head. The head has the name
of the case, and as JSON what a plain Python prints (stripped) when it runs the program in the reply; `null` where the reply
holds no Python program and nothing may be run.

Those with `_` in their names were written after the others and before any of them had been tried: the extraction as it had
been made for the others found 164 of these 172 right; what it missed was mended afterwards.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "replies"


@dataclass(frozen=True)
class Shape:
    """One reply of a model, and the (stripped) standard output of the program in it; None if it holds none."""

    name: str
    reply: str
    expected: str | None


def _read(path: Path) -> Shape:
    head, _, reply = path.read_bytes().decode().removeprefix("---\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.split("\n"))
    return Shape(fields["name"], reply, json.loads(fields["expects"]))


SHAPES: tuple[Shape, ...] = tuple(_read(path) for path in sorted(FOLDER.glob("*/*.md")))
