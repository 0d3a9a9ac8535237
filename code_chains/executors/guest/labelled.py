"""Take tables, indexes and arrays of pandas apart into lists of cells, and put them together with the types they had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .refusals import UnpackableError, at_place

Pack = Callable[[Any], Any]
"""Packs or unpacks a part of a value, such as a name."""
Leaf = Callable[[Any], Any]
"""Packs an array of cells, or returns it again: as a list, or as a column of Arrow."""
RANGE, LEVELS = "RangeIndex", "MultiIndex"
WITH_FREQUENCY = ("DatetimeIndex", "TimedeltaIndex")


def placed(place: str, pack: Callable[..., Any], *part: Any) -> Any:
    """Return a packed part of a table that is at this place."""
    with at_place(place):
        return pack(*part)


def pack_frame(frame: Any, pack: Pack, leaf: Leaf) -> list[Any]:
    """Return the index, the labels of the columns, the columns, and the attributes and the flag of a frame."""
    index = placed(".index", pack_index, frame.index, pack, leaf)
    labels = placed(".columns", pack_index, frame.columns, pack)
    arrays = [(f"[{label!r}]", column.array) for label, column in frame.items()]
    columns = [placed(place, pack_array, array, leaf) for place, array in arrays]
    return [index, labels, columns, placed(".attrs", pack, frame.attrs), frame.flags.allows_duplicate_labels]


def pack_series(series: Any, pack: Pack, leaf: Leaf) -> list[Any]:
    """Return the index, the name, the cells, and the attributes and the flag of a series."""
    index = placed(".index", pack_index, series.index, pack, leaf)
    name, cells = placed(".name", pack, series.name), pack_array(series.array, leaf)
    return [index, name, cells, placed(".attrs", pack, series.attrs), series.flags.allows_duplicate_labels]


def pack_index(index: Any, pack: Pack, leaf: Leaf | None = None) -> list[Any]:
    """Return the kind, the cells, the name and the frequency of an index; its cells as a list without `leaf`."""
    kind, leaf = type(index).__name__, leaf or as_list(pack)
    if kind == LEVELS:
        levels = [pack_array(index.get_level_values(number).array, leaf) for number in range(index.nlevels)]
        return [kind, levels, placed(".names", pack, list(index.names))]
    name = placed(".name", pack, index.name)
    if kind == RANGE:
        return [kind, [index.start, index.stop, index.step], name]
    return [kind, pack_array(index.array, leaf), name, frequency_of(index, kind)]


def frequency_of(index: Any, kind: str) -> str | None:
    """Return the name of the frequency of an index, if pandas finds the frequency by it: one with holidays has none."""
    if kind not in WITH_FREQUENCY or index.freq is None:
        return None
    import pandas

    try:
        if pandas.tseries.frequencies.to_offset(index.freqstr) == index.freq:
            return str(index.freqstr)
    except ValueError:
        pass
    raise UnpackableError(index, f"has the frequency {index.freq!r}, which has no name")


def pack_array(array: Any, leaf: Leaf) -> list[Any]:
    """Return the name of the type of an array, and its cells: as numbers where it consists of numbers."""
    dtype = array.dtype
    kind, name = type(dtype).__name__, str(dtype)
    if kind == "CategoricalDtype":
        categories = placed(".categories", pack_array, array.categories.array, leaf)
        return [name, leaf(array.codes), categories, bool(array.ordered)]
    if kind == "IntervalDtype":
        left, right = pack_array(array.left.array, leaf), pack_array(array.right.array, leaf)
        return ["interval", left, right, array.closed]
    if kind == "ArrowDtype":
        return [f"arrow:{known_to_arrow(array)}", leaf(array)]
    if kind in ("DatetimeTZDtype", "PeriodDtype") or dtype.kind in "mM":
        return [known(array, name), leaf(array.asi8)]
    if kind == "StringDtype":
        return [name if name == "str" else f"string[{dtype.storage}]", leaf(array)]
    if hasattr(array, "_mask"):
        return [name, leaf(array)]
    if dtype.kind not in "biufcO" or kind == "SparseDtype":
        raise UnpackableError(array, f"holds cells of the type {name}")
    return [name, leaf(array.to_numpy())]


def known(array: Any, name: str) -> str:
    """Return the name of the type of an array, if pandas finds the type by it; not that of every time zone is one."""
    import pandas

    try:
        if pandas.api.types.pandas_dtype(name) == array.dtype:
            return name
    except (TypeError, ValueError):
        pass
    raise UnpackableError(array, f"holds cells of the type {name}")


def known_to_arrow(array: Any) -> str:
    import pyarrow

    name = str(array.dtype.pyarrow_dtype)
    try:
        if pyarrow.type_for_alias(name) == array.dtype.pyarrow_dtype:
            return name
    except ValueError:
        pass
    raise UnpackableError(array, f"holds cells of the type {array.dtype}")


def as_list(pack: Pack) -> Leaf:
    """Return what packs cells as a list, with None for those that are missing where the type has a word for that."""

    def leaf(cells: Any) -> Any:
        is_nullable = hasattr(cells, "_hasna")
        return pack((cells.to_numpy(object, na_value=None) if is_nullable else cells).tolist())

    return leaf


def frame_of(content: Any, unpack: Pack, leaf: Leaf) -> Any:
    """Return the frame that `pack_frame` took apart."""
    import pandas

    index, labels, columns, *notes = content
    rows = index_of(index, unpack, leaf)
    arrays = {
        position: pandas.Series(array, index=rows, dtype=array.dtype)
        for position, array in enumerate(array_of(column, leaf) for column in columns)
    }
    frame = pandas.DataFrame(arrays, index=rows)
    frame.columns = index_of(labels, unpack, unpack)
    return with_notes(frame, notes, unpack)


def series_of(content: Any, unpack: Pack, leaf: Leaf) -> Any:
    """Return the series that `pack_series` took apart."""
    import pandas

    index, name, column, *notes = content
    array = array_of(column, leaf)
    series = pandas.Series(array, index_of(index, unpack, leaf), array.dtype, unpack(name))
    return with_notes(series, notes, unpack)


def with_notes(table: Any, notes: list[Any], unpack: Pack) -> Any:
    """Return a table with its attributes and its flag."""
    table.attrs = unpack(notes[0])
    return table if all(notes[1:]) else table.set_flags(allows_duplicate_labels=False)


def index_of(content: Any, unpack: Pack, leaf: Leaf) -> Any:
    """Return the index that `pack_index` took apart."""
    import pandas

    kind, cells, name, *frequency = content
    if kind == RANGE:
        return pandas.RangeIndex(range(*cells), name=unpack(name))
    if kind == LEVELS:
        return pandas.MultiIndex.from_arrays([array_of(level, leaf) for level in cells], names=unpack(name))
    array = array_of(cells, leaf)
    if frequency[0]:
        return getattr(pandas, kind)(array, freq=frequency[0], name=unpack(name))
    return pandas.Index(array, array.dtype, name=unpack(name), tupleize_cols=False)


def array_of(content: Any, leaf: Leaf) -> Any:
    """Return the array that `pack_array` took apart."""
    import numpy
    import pandas

    name, cells, *more = content
    if name == "interval":
        return pandas.arrays.IntervalArray.from_arrays(
            array_of(cells, leaf), array_of(more[0], leaf), more[1]
        )
    cells = leaf(cells)
    if name == "category":
        categories = array_of(more[0], leaf)
        labels = pandas.Index(categories, categories.dtype, tupleize_cols=False)
        return pandas.Categorical.from_codes(cells, labels, ordered=more[1])
    if name == "object":
        return numpy.fromiter(cells, object, len(cells))
    if name.startswith("arrow:"):
        import pyarrow

        arrow: Any = pandas.ArrowDtype(pyarrow.type_for_alias(name.partition(":")[2]))
        return arrow.__from_arrow__(cells) if hasattr(cells, "chunks") else pandas.array(cells, arrow)
    dtype: Any = pandas.api.types.pandas_dtype(name)
    if isinstance(dtype, pandas.PeriodDtype):
        return pandas.arrays.PeriodArray(numpy.array(cells, "i8"), dtype=dtype)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        moments = pandas.DatetimeIndex(numpy.array(cells, "i8").view(f"M8[{dtype.unit}]"))
        return moments.tz_localize("UTC").tz_convert(dtype.tz).array
    if dtype.kind in "mM":
        return numpy.array(cells, "i8").view(dtype)
    if hasattr(cells, "chunks"):
        return dtype.__from_arrow__(cells)
    return numpy.array(cells, dtype) if isinstance(dtype, numpy.dtype) else nullable(cells, dtype)


def nullable(cells: list[Any], dtype: Any) -> Any:
    """Return an array of pandas that has NA, which NaN is not."""
    import numpy
    import pandas

    if dtype.kind != "f":
        return pandas.array(cells, dtype)
    is_missing = numpy.array([cell is None for cell in cells], bool)
    return dtype.construct_array_type()(numpy.array(cells, dtype.type), is_missing)


def extension_of(content: Any, leaf: Leaf) -> Any:
    """Return an array as an array of pandas, which that of a column of numbers is not."""
    import pandas

    array = array_of(content, leaf)
    return pandas.array(array, array.dtype)
