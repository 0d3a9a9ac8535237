"""The host's end of typed values: pack variables; have what a program reports checked by `packed`, and unpack it."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from pydantic import JsonValue

from code_chains.errors import InputError
from code_chains.executors.guest.display import VALUE_TYPE
from code_chains.executors.guest.labelled import as_list, pack_frame, pack_series
from code_chains.executors.guest.refusals import UnpackableError
from code_chains.executors.guest.serialization import REFUSED, SCALARS, Packer, no_object, unpack
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.inputs import VARIABLES_REMEDY, table_kind
from code_chains.records import Execution
from code_chains.records.printable import printable

__all__ = ["VALUE_TYPE", "check_variables", "pack_value", "pack_variables", "printed_value", "value_of"]

MAX_VARIABLE_ITEMS = 2_000_000
"""Items of lists, dicts and the like in one variable; arrays and tables may be larger."""
_TAKEN = (
    "Pass numbers, text, dates, bytes, lists, dicts, sets, dataclasses, NumPy arrays, pandas or polars frames and series,"
    " or a file, and no other objects."
)
_UNREADABLE = (
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    ImportError,
    RecursionError,
    LookupError,
    MemoryError,
)
_MAX_REASON_CHARS = 500


def value_of(execution: Execution) -> Any:
    """Return the value of the last expression, of the type that it had; see "Values" in the documentation.

    The run must have been asked for it, as packing costs time: `executor.run(code, return_value=True)`.

    Raises:
        LookupError: There is none, it cannot be passed, or the program forged it; the message says why. `result` has
            its text.
    """
    for data in execution.display_data:
        if data.media_type == VALUE_TYPE:
            return unpack_untrusted(data.data.encode(errors="replace"))
    raise LookupError("The program ended with no value, or with one that takes more bytes than views may.")


def unpack_untrusted(data: bytes) -> Any:
    """Return a value that a program, or anybody, packed.

    Raises:
        LookupError: It said why it cannot, or what it said is no value.
    """
    from code_chains.executors.packed import check_packed

    try:
        packed = parse(data)
        if isinstance(packed, dict) and REFUSED in packed:
            raise LookupError(printable(str(packed[REFUSED]), _MAX_REASON_CHARS))
        check_packed(packed)
        return unpack(packed, no_object)
    except _UNREADABLE as error:
        if type(error) is LookupError:
            raise
        raise LookupError(f"The value of the program cannot be read: {error}") from error


def check_variables(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return variables as programs will see them, which have the names of variables and values that can be passed.

    Raises:
        InputError: One is invalid; the message names it, and the place and type of what is in the way.
    """
    if not isinstance(variables or {}, Mapping):
        raise InputError(VARIABLES_REMEDY)
    return {_check_variable(name): _check_value(name, value) for name, value in (variables or {}).items()}


def _check_variable(name: object) -> str:
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or keyword.iskeyword(name)
        or name.startswith("__")
    ):
        raise InputError(f"A variable cannot be called {name!r}: give it the name of a Python variable.")
    if name == "print":
        raise InputError("A variable cannot be called 'print': programs show their answers by it. Rename it.")
    return name


def _check_value(name: str, value: Any) -> Any:
    if kind := transfer_kind(value):
        _check_table(name, value, kind)
        return value
    packer = Packer(max_items=MAX_VARIABLE_ITEMS)
    packed = _packed(name, value, packer)
    return unpack(packed, no_object) if packer.has_converted else value


def _check_table(name: str, table: Any, kind: str) -> None:
    """Raise unless a table can be passed as Arrow, before a model is paid."""
    if kind == "numpy":
        _check_width(name, table.dtype)
        return
    if find_spec("pyarrow") is None:
        raise InputError(
            f"The variable {name!r} is a table, which is passed as Arrow. Install it: pip install pyarrow"
        )
    if kind.startswith("pandas"):
        try:
            (pack_frame if kind == "pandas" else pack_series)(table, Packer(), _check_cells)
        except UnpackableError as error:
            raise InputError(_about_cells(name, error, is_frame=kind == "pandas")) from error
    elif kind == "pyarrow" and len(set(table.column_names)) < len(table.column_names):
        remedy = f"Rename them, e.g. with {name}.rename_columns([…])."
        raise InputError(f"The variable {name!r} cannot be passed: it has two columns of one name. {remedy}")
    elif kind.startswith("polars"):
        for column in table.get_columns() if kind == "polars" else [table]:
            if str(column.dtype) == "Object":
                remedy = f"Convert it, e.g. with {name}[{column.name!r}].to_list()."
                raise InputError(f"The column {column.name!r} of {name!r} holds Python objects. {remedy}")


def _check_width(name: str, dtype: Any) -> None:
    """Raise for numbers that are longer than those of Python."""
    if dtype.kind in "fc" and dtype.itemsize > {"f": 8, "c": 16}[dtype.kind]:
        raise InputError(f"The variable {name!r} cannot be passed: it is of {dtype}. Convert it to float64.")


def _about_cells(name: str, error: UnpackableError, *, is_frame: bool) -> str:
    """Return which column of a table cannot be passed, and what helps."""
    column = re.fullmatch(r"\[(.{1,100}?)\](\.categories)?(\[\d+\].*)?", error.place)
    if not column or not is_frame:
        return f"The variable {name!r} cannot be passed: {error.about(name)}. {_TAKEN}"
    remedy = f"Convert it, e.g. with {name}[{column[1]}].astype(str)."
    return f"The column {column[1]} of {name!r} cannot be passed: {error.about(name)}. {remedy}"


def _check_cells(cells: Any) -> None:
    """Raise unless the cells of an array can be passed: objects one by one, anything else in any case."""
    if str(cells.dtype) == "object" and not SCALARS.issuperset(map(type, cells)):
        Packer()(cells.tolist())


def _packed(name: str, value: Any, pack: Callable[[Any], Any]) -> Any:
    """Return a packed variable."""
    try:
        return pack(value)
    except UnpackableError as error:
        raise InputError(f"The variable {name!r} cannot be passed: {error.about(name)}. {_TAKEN}") from error
    except (TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
        raise InputError(f"The variable {name!r} cannot be passed ({error}). {_TAKEN}") from error


def transfer_kind(value: Any) -> str | None:
    """Return the kind of a table that is passed as binary data; see `inputs.table_kind`. Other values give None."""
    kind = table_kind(value)
    return None if kind == "numpy" and value.dtype.hasobject else kind


def pack_value(name: str, value: Any) -> JsonValue:
    """Return the value of a variable as JSON, with its exact type.

    Raises:
        InputError: It cannot be passed.
    """
    packed: JsonValue = _packed(_check_variable(name), value, Packer(max_items=MAX_VARIABLE_ITEMS))
    return packed


def pack_variables(variables: Mapping[str, Any] | None) -> dict[str, JsonValue]:
    """Return variables for an executor that takes no tables.

    Raises:
        InputError: One is invalid, or a table.
    """
    if not isinstance(variables or {}, Mapping):
        raise InputError(VARIABLES_REMEDY)
    for name, value in (variables or {}).items():
        if table_kind(value):
            remedy = "Pass numbers, text, dates, lists, dicts, sets or a file, or use SandboxExecutor."
            raise InputError(f"The variable {name!r} is a table, and this executor takes none. {remedy}")
    return {name: pack_value(name, value) for name, value in (variables or {}).items()}


def check_json_variables(variables: Mapping[str, Any] | None, *, tuples: bool = False) -> dict[str, Any]:
    """Return variables for what takes JSON values alone.

    Args:
        variables: The variables.
        tuples: Whether they may hold tuples, which are no JSON.

    Raises:
        InputError: One is invalid, or no JSON value.
    """
    checked = check_variables(variables)
    for name, value in checked.items():
        if table_kind(value) or not _is_json(value, list | tuple if tuples else list):
            raise InputError(
                f"The variable {name!r} is not a JSON value, and this executor takes nothing else. Pass numbers, text,"
                " lists and dicts with text as keys, or use SandboxExecutor."
            )
    return checked


def _is_json(value: Any, lists: Any) -> bool:
    if isinstance(value, lists):
        return SCALARS.issuperset(map(type, value)) or all(_is_json(item, lists) for item in value)
    if type(value) is dict:
        return {str}.issuperset(map(type, value)) and all(_is_json(item, lists) for item in value.values())
    return type(value) in SCALARS


def describe_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of variables for a fingerprint, which is the same only for values that programs see as the same.

    Raises:
        InputError: One cannot be passed.
    """
    return {name: _description(name, value) for name, value in variables.items()}


def _description(name: str, value: Any) -> Any:
    kind = transfer_kind(value) or ""
    if kind == "pandas" or kind == "pandas_series":
        return [kind, (pack_frame if kind == "pandas" else pack_series)(value, Packer(), _digest)]
    if kind == "polars_series":
        return [kind, value.to_frame()]
    return value if kind else pack_value(name, value)


def _digest(cells: Any) -> Any:
    """Return a checksum of numbers; other cells as JSON."""
    if getattr(cells, "_hasna", None) is None and not cells.dtype.hasobject:
        return hashlib.sha256(cells.tobytes()).hexdigest()
    return as_list(Packer())(cells)


def printed_value(execution: Execution) -> Any:
    """Return what standard output says, which is one JSON document.

    Raises:
        ValueError, RecursionError: It is anything else, or holds too many items.
    """
    return parse(execution.stdout.encode(errors="replace"))
