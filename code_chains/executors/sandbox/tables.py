"""Write arrays and frames for programs: NumPy's own format and Arrow, never pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, BinaryIO

from code_chains.errors import InputError
from code_chains.executors.guest.tables import JSON_COLUMNS, SERIES_COLUMN
from code_chains.executors.values import pack_value
from code_chains.inputs.variables import columns_for_json, plain_value


def write_table(kind: str, value: Any, target: BinaryIO) -> None:
    """Write an array, frame or series to a file.

    Args:
        kind: Its kind; see `inputs.table_kind`.
        value: The table.
        target: The file.

    Raises:
        InputError: It cannot be passed to a program.
    """
    _WRITERS[kind](value, target)


def _write_array(value: Any, target: BinaryIO) -> None:
    import numpy

    try:
        numpy.save(target, value, allow_pickle=False)
    except ValueError as error:
        raise InputError(
            f"An array of Python objects cannot be passed as a variable: {error}. Convert it to numbers or text."
        ) from error


def _write_frame(value: Any, target: BinaryIO) -> None:
    try:
        import pyarrow
    except ImportError:
        raise InputError("Frames are passed as Arrow, which is not installed: pip install pyarrow.") from None
    try:
        table = _arrow_table(value)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise InputError(
            f"A table cannot be passed as a variable: {error}. Give each column a name of its own and values of one type."
        ) from error
    with pyarrow.ipc.new_stream(target, table.schema) as stream:
        stream.write_table(table)


def _arrow_table(value: Any) -> Any:
    import pyarrow

    if isinstance(value, pyarrow.Table):
        return value
    return value.to_arrow() if hasattr(type(value), "to_arrow") else _pandas_table(value)


def _pandas_table(frame: Any) -> Any:
    """Return a frame as Arrow, with columns of several types as JSON text; the schema says which these are."""
    import pyarrow

    if positions := columns_for_json(frame):
        frame = frame.copy(deep=False)
    for position in positions:
        frame.isetitem(position, [_cell(cell) for cell in frame.iloc[:, position]])
    table = pyarrow.Table.from_pandas(frame)
    return table.replace_schema_metadata(
        {**(table.schema.metadata or {}), JSON_COLUMNS: json.dumps(positions)}
    )


def _cell(value: Any) -> str:
    """Return a cell as JSON text."""
    return json.dumps(pack_value(plain_value(value)))


def _write_series(value: Any, target: BinaryIO) -> None:
    """Write a series as a frame of one column, whose name a series need not have."""
    column = value.rename(SERIES_COLUMN)
    _write_frame(column.to_frame(), target)


def label_of(kind: str, value: Any) -> str | int | None:
    """Return the name of a series, which JSON must have; None for another kind of table.

    Invariant: `name` of a frame is a column, and so is any attribute that the class of a frame lacks.
    """
    label: Any = value.name if kind.endswith("_series") else None
    label = label.item() if hasattr(label, "item") else label
    if label is None or isinstance(label, str | int):
        return label
    raise InputError(
        f"A series is called {label!r}; name it with text or a number, e.g. with .rename('values')."
    )


_WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    "numpy": _write_array,
    "pandas": _write_frame,
    "pandas_series": _write_series,
    "polars": _write_frame,
    "polars_series": _write_series,
    "pyarrow": _write_frame,
}
