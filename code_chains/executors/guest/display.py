"""What a notebook would display: figures that are open at the end, and rich views of the last value."""

from __future__ import annotations

import contextlib
import html
import itertools
import re
import sys
from collections.abc import Iterator
from typing import Any

from . import charts, figures, serialization
from .wire import Json

View = tuple[str, str, bytes]
"""Name, media type and data."""

VALUE_TYPE = "application/vnd.code-chains.value+json"
"""The media type of a value itself, as `serialization` packs it."""
METHODS = (
    ("_repr_html_", "text/html", "html"),
    ("_repr_markdown_", "text/markdown", "md"),
    ("_repr_svg_", "image/svg+xml", "svg"),
    ("_repr_png_", "image/png", "png"),
    ("_repr_jpeg_", "image/jpeg", "jpg"),
    ("_repr_latex_", "text/x-latex", "tex"),
)
NOTEBOOK = "IPython.core.display_functions"
WITHOUT_TEXT = re.compile(r"<[\w.]+ (object|[^<>\n]* at 0x\w+)>")
BREAKS, MARKUP = r"(?i)<(br|/p|/div|/li|/tr|/h\d)\b[^>]*>", r"(?is)<(style|script)\b.*?</\1>|<[^>]*>"
MAX_VIEWS, MAX_PARTS = 300, 100
MAX_CSV_ROWS = 1_000
"""Rows of a frame as CSV beside its view, which leaves out most of a long one; one row more says that there are others."""
DISPLAYED: list[Any] = []
"""What the program displayed."""


def views(value: object, names: Json, max_bytes: int, *, return_value: bool = False) -> Json:
    """Return the figures and views that fit into `max_bytes`, and whether some were left out.

    Args:
        value: What a notebook would display.
        names: The variables of the program, some of which may be figures.
        max_bytes: Bytes of all views.
        return_value: Whether the value itself is among them.

    Raises:
        Exception: A figure cannot be drawn.
    """
    included: list[View] = []
    truncated = False
    # Invariant: the value comes first, as a request for it counts more than how it is displayed.
    requested = packed_value(value, max_bytes) if return_value else ()
    drawn = figures.all_drawn([value, *parts(value)], list(names.values()))
    images = [
        (f"figure-{number}.{suffix}", media_type, data)
        for number, forms in enumerate(drawn, 1)
        for suffix, media_type, data in forms
    ]
    shown = DISPLAYED.pop() if value is None and DISPLAYED else value
    images += [view for displayed in DISPLAYED for view in rich_views(displayed, "image/")]
    DISPLAYED.clear()
    for name, media_type, data in [*requested, *images, *rich_views(shown)]:
        if len(data) > max_bytes or len(included) >= MAX_VIEWS:
            truncated = True
            continue
        max_bytes -= len(data)
        included.append((name, media_type, data))
    return {"views": included, "truncated": truncated}


def packed_value(value: object, max_bytes: int) -> Iterator[View]:
    """Yield a value as JSON with its exact types, or why it cannot be passed."""
    if value is not None:
        data = serialization.returned(value)
        if len(data) > max_bytes:
            data = serialization.refused(
                f"the value takes {len(data):,} bytes, and {max_bytes:,} are left for it"
            )
        yield "value", VALUE_TYPE, data


DRAWN = {
    ("matplotlib", "Artist"),
    ("matplotlib", "Container"),
    ("matplotlib", "PieContainer"),
    ("seaborn", "_BaseGrid"),
    ("bokeh", "Model"),
    *charts.FORMS,
}
"""By library and base class, the parts of a figure."""


def display(*objects: Any, **_: Any) -> None:
    """Show objects as a notebook does: images as such, all else as text; the last one also by its rich views."""
    for value in objects:
        if figures.is_figure(value) or charts.is_chart(value):
            figures.SHOWN.draw(value)
            continue
        if text := value if isinstance(value, str) else text_of(value):
            sys.stdout.write(f"{text}\n")
        DISPLAYED[MAX_VIEWS:] = [value]


def follow_libraries() -> None:
    """Display what libraries show, instead of opening a window for it."""
    figures.on_import(figures.PYPLOT, figures.follow)
    figures.on_import(NOTEBOOK, follow)
    for module in charts.SHOWING:
        figures.on_import(module, lambda module: charts.follow(module, display))


def follow(notebook: Any) -> None:
    """Let IPython display without its shell what a notebook would."""

    def show(*objects: Any, display_id: Any = None, **_: Any) -> Any:
        display(*objects)
        return notebook.DisplayHandle() if display_id else None

    notebook.display, notebook.clear_output = show, lambda wait=False: None


def text_of(value: Any) -> str:
    """Return the text of a value: that of its markup if it has no other, and none of an image or a chart."""
    if is_drawn(value):
        return ""
    others = [one for one in parts(value) if not is_drawn(one)]
    if len(others) < len(
        parts(value)
    ):  # Beside what a figure shows, such as its bins, other values are the result.
        return "\n".join(
            text_of(one) for one in others if type(one).__name__ != "ndarray" and one not in ([], ())
        )
    text = repr(value)
    views = [] if not WITHOUT_TEXT.fullmatch(text) else list(rich_views(value))
    for _, media_type, data in views:
        if media_type == "text/html":
            lines = re.sub(MARKUP, " ", re.sub(BREAKS, "\n", data.decode())).split("\n")
            return html.unescape("\n".join(" ".join(line.split()) for line in lines)).strip()
        if media_type.startswith("text/"):
            return data.decode()
    if type(value).__module__.startswith("IPython.") and not views:
        return str(getattr(value, "data", text))
    return "" if views else text


def parts(value: Any) -> list[Any]:
    """Return the first items of a collection; none of anything else."""
    if type(value).__name__ == "ndarray" and value.dtype == object:
        return list(value.flat[:MAX_PARTS])
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return list(itertools.islice(items, MAX_PARTS))


def is_drawn(value: Any, depth: int = 2) -> bool:
    """Return whether a value is a chart, a part of a figure, or a collection of these, which the figure shows."""
    if charts.find_base(value, DRAWN) is not None:
        return True
    items = parts(value) if depth else []
    return bool(items) and all(is_drawn(item, depth - 1) for item in items)


def rich_views(value: object, kind: str = "") -> Iterator[View]:
    """Yield the rich views that a value offers, of media types of a kind."""
    if value is None or isinstance(value, type) or is_drawn(value):
        return
    library = type(value).__module__.partition(".")[0]
    has_image = False
    for method, media_type, suffix in [each for each in METHODS if each[1].startswith(kind)]:
        is_image = media_type.startswith("image/")
        if is_image and has_image:  # The same once more.
            continue
        with contextlib.suppress(Exception):
            view = getattr(value, method)()
            if isinstance(view, tuple):  # Data with its metadata.
                view = view[0]
            if isinstance(view, str | bytes) and view:
                has_image = has_image or is_image
                yield f"result.{suffix}", media_type, view.encode() if isinstance(view, str) else view
    if not kind:
        yield from table_view(value, library)


def table_view(value: Any, library: str) -> Iterator[View]:
    """Yield the first rows of a frame or series as CSV, with the index if that says anything."""
    with contextlib.suppress(Exception):
        if library == "polars":
            yield "result.csv", "text/csv", value.head(MAX_CSV_ROWS + 1).write_csv().encode()
        elif library == "pandas":
            has_index = type(value.index).__name__ != "RangeIndex"
            yield "result.csv", "text/csv", value.head(MAX_CSV_ROWS + 1).to_csv(index=has_index).encode()
