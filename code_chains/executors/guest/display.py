"""What a notebook would display: figures that are open at the end, and rich views of the last value."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from . import serialization
from .wire import Json

View = tuple[str, str, bytes]
"""Name, media type and data."""

VALUE_TYPE = "application/vnd.code-chains.value+json"
"""The media type of a value itself, as `serialization` packs it."""
MAX_VALUE_CELLS, MAX_OBJECT_DEPTH = 200_000, 20
CONVERTERS: tuple[Callable[[Any], Any], ...] = (
    lambda value: {name: getattr(value, name) for name in value.__dataclass_fields__},
    lambda value: value.model_dump(),  # pydantic
    lambda value: value.to_dicts(),  # polars
    lambda value: value.to_pylist(),  # Arrow
    lambda value: value.tolist(),  # Indexes of pandas, and arrays of objects
    lambda value: value.to_pytimedelta(),
    lambda value: value._value_,  # Members of an enumeration
)
METHODS = (
    ("_repr_html_", "text/html", "html"),
    ("_repr_markdown_", "text/markdown", "md"),
    ("_repr_svg_", "image/svg+xml", "svg"),
    ("_repr_png_", "image/png", "png"),
    ("_repr_jpeg_", "image/jpeg", "jpg"),
    ("_repr_latex_", "text/x-latex", "tex"),
)
MAX_VIEWS = 300
MAX_CSV_ROWS = 1_000
"""Rows of a frame as CSV beside its view, which leaves out most of a long one; one row more says that there are others."""
CHARTS = {"plotly": "application/vnd.plotly.v1+json", "altair": "application/vnd.vegalite.v5+json"}


def views(value: object, max_bytes: int, *, return_value: bool = False) -> Json:
    """Return the figures and views that fit into `max_bytes`, and whether some were left out."""
    included: list[View] = []
    truncated = False
    # Invariant: the value comes first, as a request for it counts more than how it is displayed.
    requested = packed_value(value) if return_value else ()
    for name, media_type, data in [*requested, *figures(), *rich_views(value)]:
        if len(data) > max_bytes or len(included) >= MAX_VIEWS:
            truncated = True
            continue
        max_bytes -= len(data)
        included.append((name, media_type, data))
    return {"views": included, "truncated": truncated}


def packed_value(value: object) -> Iterator[View]:
    """Yield a value as JSON with its exact types, unless it is too large or holds objects of other types."""
    with contextlib.suppress(Exception):
        value = list(itertools.islice(value, MAX_VALUE_CELLS + 1)) if isinstance(value, Iterator) else value
        if value is None or size_of(value) > MAX_VALUE_CELLS:
            return
        yield "value", VALUE_TYPE, json.dumps(serialization.pack(value, pack_object)).encode()


def size_of(value: Any) -> int:
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas"):  # Elsewhere `size` may be anything.
        return int(getattr(value, "size", 0))
    return len(value) if isinstance(value, str | bytes | list | dict | tuple | set | frozenset) else 0


def pack_object(value: Any, depth: int = 0) -> Any:
    """Pack an object of another type as the plain data that it consists of: a record as a dict, a table as its rows."""
    if depth < MAX_OBJECT_DEPTH:
        for convert in CONVERTERS:
            with contextlib.suppress(AttributeError):
                plain = convert(value)
                return serialization.pack(plain, lambda part: pack_object(part, depth + 1))
    raise TypeError(f"{type(value).__name__} is no value")


def figures() -> Iterator[View]:
    """Yield open matplotlib figures as PNG, and close them, so that a session shows each once."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        with contextlib.suppress(Exception):
            target = io.BytesIO()
            pyplot.figure(number).savefig(target, format="png")
            yield f"figure-{number}.png", "image/png", target.getvalue()
            pyplot.close(number)


def rich_views(value: object) -> Iterator[View]:
    """Yield the rich views that a value offers."""
    if value is None or isinstance(value, type):
        return
    library = type(value).__module__.partition(".")[0]
    if library in CHARTS and hasattr(value, "to_json"):
        with contextlib.suppress(Exception):
            yield "result.json", CHARTS[library], value.to_json().encode()
    for method, media_type, suffix in METHODS:
        with contextlib.suppress(Exception):
            view = getattr(value, method)()
            if isinstance(view, tuple):  # Data with its metadata.
                view = view[0]
            if isinstance(view, str | bytes) and view:
                yield f"result.{suffix}", media_type, view.encode() if isinstance(view, str) else view
    yield from table_view(value, library)


def table_view(value: Any, library: str) -> Iterator[View]:
    """Yield the first rows of a frame or series as CSV, with the index if that says anything."""
    with contextlib.suppress(Exception):
        if library == "polars":
            yield "result.csv", "text/csv", value.head(MAX_CSV_ROWS + 1).write_csv().encode()
        elif library == "pandas":
            has_index = type(value.index).__name__ != "RangeIndex"
            yield "result.csv", "text/csv", value.head(MAX_CSV_ROWS + 1).to_csv(index=has_index).encode()
