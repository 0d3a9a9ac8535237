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


OTHER_SCRIPTS = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Source Han Sans", "Droid Sans Fallback", "WenQuanYi Zen Hei"),
    *(
        "WenQuanYi Micro Hei",
        "IPAGothic",
        "Noto Sans",
        "Noto Sans Arabic",
        "Noto Sans Devanagari",
        "Noto Sans Thai",
    ),
)
"""Fonts with the characters that matplotlib's own lacks."""


def draw() -> None:
    pyplot = sys.modules["matplotlib.pyplot"]
    installed = {font.name for font in sys.modules["matplotlib.font_manager"].fontManager.ttflist}
    pyplot.rcParams["font.family"] = ["sans-serif", *filter(installed.__contains__, OTHER_SCRIPTS)]
    pyplot.plot([1, 2])
    pyplot.savefig(io.BytesIO())
    pyplot.close("all")
