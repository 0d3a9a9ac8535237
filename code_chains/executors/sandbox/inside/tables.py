"""Read arrays and frames that are passed to a program: NumPy's own format and Arrow, never pickle."""

from __future__ import annotations

import json
import os
from typing import Any

from . import values
from .wire import Json


def read(tables: dict[str, Json]) -> Json:
    """Return values by name; each table has a `kind` and the `descriptor` of its bytes."""
    return {name: read_table(table) for name, table in tables.items()}


def read_table(table: Json) -> Any:
    """Return an array, a frame, or a series, which came as the only column of a frame."""
    kind, _, series = table["kind"].partition("_")
    value = READERS[kind](table["descriptor"])
    if not series:
        return value
    return value[SERIES_COLUMN].rename(table["label"] if kind == "pandas" else table["label"] or "")


def array(descriptor: int) -> Any:
    import numpy

    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return numpy.load(file, allow_pickle=False)


def arrow(descriptor: int) -> Any:
    import pyarrow.ipc

    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return pyarrow.ipc.open_stream(file.read()).read_all()


def pandas(descriptor: int) -> Any:
    table = arrow(descriptor)
    frame = table.to_pandas(use_threads=False)
    for position in json.loads(table.schema.metadata[JSON_COLUMNS]):
        cells = [values.decode(json.loads(cell)) for cell in frame.iloc[:, position]]
        frame.isetitem(position, type(frame.iloc[:, position])(cells, index=frame.index, dtype=object))
    return frame


def polars(descriptor: int) -> Any:
    import polars

    return polars.from_arrow(arrow(descriptor))


SERIES_COLUMN, JSON_COLUMNS = "values", b"code_chains.json_columns"
READERS = {"numpy": array, "pyarrow": arrow, "pandas": pandas, "polars": polars}
