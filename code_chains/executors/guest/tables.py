"""Read arrays and frames that are passed to a program: NumPy's own format and Arrow, never pickle."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO

from . import serialization
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
    kind, _, series = table["kind"].partition("_")
    value = READERS[kind](file)
    if not series:
        return value
    return value[SERIES_COLUMN].rename(table["label"] if kind == "pandas" else table["label"] or "")


def array(file: BinaryIO) -> Any:
    import numpy

    return numpy.load(file, allow_pickle=False)


def arrow(file: BinaryIO) -> Any:
    import pyarrow.ipc

    return pyarrow.ipc.open_stream(file.read()).read_all()


def pandas(file: BinaryIO) -> Any:
    table = arrow(file)
    frame = table.to_pandas(use_threads=False)
    for position in json.loads(table.schema.metadata[JSON_COLUMNS]):
        cells = [
            serialization.unpack(json.loads(cell), serialization.no_object)
            for cell in frame.iloc[:, position]
        ]
        frame.isetitem(position, type(frame.iloc[:, position])(cells, index=frame.index, dtype=object))
    return frame


def polars(file: BinaryIO) -> Any:
    import polars

    return polars.from_arrow(arrow(file))


SERIES_COLUMN, JSON_COLUMNS = "values", b"code_chains.json_columns"
READERS = {"numpy": array, "pyarrow": arrow, "pandas": pandas, "polars": polars}
