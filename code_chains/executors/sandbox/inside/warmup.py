"""What a library does only at its first use, such as looking for fonts."""

from __future__ import annotations

import contextlib
import io
import sys


def warm_up(module: str) -> None:
    """Use a loaded library once, the way programs do."""
    with contextlib.suppress(Exception):  # A broken library is reported to the program that uses it.
        if module == "numpy":
            sys.modules[
                "numpy"
            ].random.seed()  # It is imported at its first use, and each program's process seeds it.
        elif module == "pandas":
            group()
        elif module == "matplotlib.pyplot":
            draw()


def group() -> None:
    frame = sys.modules["pandas"].DataFrame({"kind": ["x", "y"], "value": [1, 2]})
    frame.groupby("kind").value.sum()


def draw() -> None:
    pyplot = sys.modules["matplotlib.pyplot"]
    pyplot.plot([1, 2])
    pyplot.savefig(io.BytesIO())
    pyplot.close("all")
