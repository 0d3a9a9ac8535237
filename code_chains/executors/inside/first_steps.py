"""What a library does at its first use and never again, such as looking for fonts."""

from __future__ import annotations

import contextlib
import io
import sys


def take(name: str) -> None:
    """Use a loaded library once, the way programs do."""
    with contextlib.suppress(Exception):  # It is the program's business if it does not work.
        if name == "pandas":
            group()
        elif name == "matplotlib.pyplot":
            draw()


def group() -> None:
    frame = sys.modules["pandas"].DataFrame({"kind": ["x", "y"], "value": [1, 2]})
    frame.groupby("kind").value.sum()


def draw() -> None:
    pyplot = sys.modules["matplotlib.pyplot"]
    pyplot.plot([1, 2])
    pyplot.savefig(io.BytesIO())
    pyplot.close("all")
