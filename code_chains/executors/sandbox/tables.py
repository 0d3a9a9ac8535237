"""Write arrays and frames for programs: NumPy's own format and Arrow, never pickle."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any, BinaryIO

from code_chains.errors import InputError
from code_chains.executors.guest.labelled import as_list, pack_frame, pack_series
from code_chains.executors.guest.refusals import UnpackableError
from code_chains.executors.guest.serialization import Packer, no_object, unpack
from code_chains.executors.guest.tables import ARRAY, COLUMN, HEADER, SERIES_COLUMN, read_table
from code_chains.executors.values import pack_value, transfer_kind


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


def write_value(name: str, value: Any) -> tuple[str, str | None, bytes]:
    """Return the kind of a variable's value, the name of a series, and its bytes, for `read_value`.

    Raises:
        InputError: It cannot be passed to a program.
    """
    kind = transfer_kind(value)
    if not kind:
        return "value", None, json.dumps(pack_value(name, value)).encode()
    target = BytesIO()
    write_table(kind, value, target)
    return kind, label_of(kind, value), target.getvalue()


def read_value(kind: str, label: str | None, data: bytes) -> Any:
    """Return the value that `write_value` wrote."""
    if kind == "value":
        return unpack(json.loads(data), no_object)
    return read_table({"kind": kind, "label": label}, BytesIO(data))


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
    except UnpackableError as error:
        raise InputError(
            f"A table cannot be passed: {error.about('it')}. Convert that to numbers or text."
        ) from error
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


def _pandas_table(table: Any) -> Any:
    """Return a frame or series as the columns that Arrow can hold, with all else as JSON in the schema."""
    import pyarrow

    columns: list[Any] = []
    pack = Packer()
    as_json = as_list(pack)

    def leaf(cells: Any) -> Any:
        column = _arrow_column(cells) if len(cells) == len(table) else None
        if column is None:
            return as_json(cells)
        columns.append(column)
        return {COLUMN if hasattr(cells, "_hasna") else ARRAY: len(columns) - 1}

    header = (pack_series if table.ndim == 1 else pack_frame)(table, pack, leaf)
    names = list(map(str, range(len(columns))))
    return pyarrow.table(columns, names, metadata={HEADER: json.dumps(header)})


def _arrow_column(cells: Any) -> Any:
    """Return cells as a column of Arrow; None if that could change them."""
    import pyarrow

    if str(cells.dtype) == "object" and not {str, type(None)}.issuperset(map(type, cells)):
        return None
    # NaN, which pandas reads as NA.
    if hasattr(cells, "_mask") and (cells._data != cells._data)[~cells._mask].any():
        return None
    try:
        return pyarrow.array(cells)
    except (pyarrow.ArrowException, ValueError, TypeError):
        return None


def _write_polars_series(value: Any, target: BinaryIO) -> None:
    """Write a series as a frame of one column, whose name a series need not have."""
    _write_frame(value.rename(SERIES_COLUMN).to_frame(), target)


def label_of(kind: str, value: Any) -> str:
    """Return the name of a series of polars; empty for another kind of table.

    Invariant: `name` of a frame is a column, and so is any attribute that the class of a frame lacks.
    """
    return str(value.name) if kind == "polars_series" else ""


_WRITERS: dict[str, Callable[[Any, BinaryIO], None]] = {
    "numpy": _write_array,
    "pandas": _write_frame,
    "pandas_series": _write_frame,
    "polars": _write_frame,
    "polars_series": _write_polars_series,
    "pyarrow": _write_frame,
}
