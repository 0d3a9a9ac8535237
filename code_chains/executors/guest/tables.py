"""Read arrays and frames that are passed to a program: NumPy's own format and Arrow, never pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, BinaryIO

from . import labelled, serialization
from .wire import Json


def read(tables: dict[str, Json]) -> Json:
    """Return values by name; each table has a `kind`, and the `descriptor` of its bytes."""
    return {name: read_descriptor(table) for name, table in tables.items()}


def read_descriptor(table: Json) -> Any:
    with os.fdopen(table["descriptor"], "rb") as file:
        file.seek(0)
        return read_table(table, file)


def read_table(table: Json, file: BinaryIO) -> Any:
    """Return an array, a frame, or a series, which came as the only column of a frame."""
    value = READERS[table["kind"]](file)
    return value[SERIES_COLUMN].rename(table["label"]) if table["kind"] == "polars_series" else value


def array(file: BinaryIO) -> Any:
    import numpy

    return numpy.load(file, allow_pickle=False)


def arrow(file: BinaryIO) -> Any:
    import pyarrow.ipc

    return pyarrow.ipc.open_stream(file.read()).read_all()


def frame(file: BinaryIO) -> Any:
    return pandas(file, labelled.frame_of)


def series(file: BinaryIO) -> Any:
    return pandas(file, labelled.series_of)


def pandas(file: BinaryIO, build: Callable[[Any, Any, Any], Any]) -> Any:
    table = arrow(file)

    def leaf(cells: Any) -> Any:
        if isinstance(cells, list):
            return serialization.unpack(cells, serialization.no_object)
        column = table.column(next(iter(cells.values())))
        return column.to_numpy() if ARRAY in cells else column

    header = json.loads(table.schema.metadata[HEADER])
    return build(header, lambda part: serialization.unpack(part, serialization.no_object), leaf)


def polars(file: BinaryIO) -> Any:
    import polars

    return polars.from_arrow(arrow(file))


SERIES_COLUMN, HEADER = "values", b"code_chains.header"
ARRAY, COLUMN = "array", "column"
"""What refers to a column of Arrow: one to be made an array of NumPy, and one that pandas reads itself."""
READERS = {
    "numpy": array,
    "pyarrow": arrow,
    "pandas": frame,
    "pandas_series": series,
    "polars": polars,
    "polars_series": polars,
}
