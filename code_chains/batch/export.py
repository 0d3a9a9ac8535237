"""Answers as a table for people: CSV, a spreadsheet, Parquet or JSON lines."""

from __future__ import annotations

import csv
import html
import itertools
import json
import os
import re
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from code_chains.batch.results_file import read_failures, read_record, read_records
from code_chains.errors import InputError, needs
from code_chains.storage.foreign import MAX_BYTES, open_file, parse_json

COLUMNS = tuple(
    "answer verdict reason output value sources notes artifacts attempts model_calls tokens usd seconds error".split()
)
"""What was computed."""
_MAX_CELL_CHARS = 32_700
"""A cell of a spreadsheet holds 32,767 characters."""
_ROWS_AT_ONCE = 1_000
_MAX_COLUMNS, _MAX_INTEGER = 1_000, 2**53
_MAX_HEAD_BYTES = 1 << 20
"""What is read of a table to see whether it is ours."""
_NOT_IN_CELLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_NO_NUMBER = r"(?!(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?%?(?:[;\r\n]|\Z))"
_FORMULA = re.compile(
    rf"^(?=[\t\r\n]|\s*+(?:[=@＝＠]|[+\-＋－]{_NO_NUMBER}))"
    # Invariant: a run of blanks and quotes is read once, from its first sign.
    rf"|(?!^)(?<![;\s\"'])(?:[^\S\r\n\t]|[\"'])*+[;\r\n\t][;\s\"']*+(?=[=@＝＠]|[+\-＋－](?!\s){_NO_NUMBER})"
)
"""Before what spreadsheets take for a formula when they open a CSV file, also where semicolons divide it, and lines."""
Row = list[Any]


class Table(NamedTuple):
    """A table: names of columns, rows, and the types that values of answers have."""

    names: Sequence[str]
    rows: Iterable[Row]
    value_types: Set[type]


def check_table(path: Path, *, may_exist: bool = False) -> None:
    """Raise if no table could be written to a path.

    Args:
        path: The table.
        may_exist: Whether an existing file may be replaced, if it is such a table.

    Raises:
        InputError: The suffix is none of a table, the file exists, or its folder does not.
        ConfigurationError: A library is missing.
    """
    if os.path.lexists(path) and not (may_exist and _is_export(path)):
        raise InputError(f"{str(path)!r} exists. Remove it, or choose another name.")
    if path.suffix.lower() not in _WRITERS:
        raise InputError(f"{str(path)!r} must end with {', '.join(_WRITERS)}.")
    if not path.parent.is_dir():
        raise InputError(f"The folder {str(path.parent)!r} does not exist. Create it, or choose another.")
    with needs("data", "export", path.name):
        if path.suffix.lower() == ".xlsx":
            import openpyxl  # noqa: F401
        elif path.suffix.lower() == ".parquet":
            import pyarrow.parquet  # noqa: F401


def _is_export(path: Path) -> bool:
    """Return whether a file is a table that was exported before."""
    try:
        with open_file(path) as file:
            names = {name.partition(" (")[0] for name in _READERS[path.suffix.lower()](file)}
    except Exception:  # Whatever it is, it is not a table of ours.
        return False
    return {"id", "query", *COLUMNS} <= names


def _names_of_csv(file: IO[bytes]) -> Sequence[str]:
    head = file.read(_MAX_HEAD_BYTES).decode("utf-8-sig", "replace")
    return next(csv.reader(head.splitlines(keepends=True)))


def _names_of_spreadsheet(file: IO[bytes]) -> Sequence[str]:
    with zipfile.ZipFile(file) as archive, archive.open("xl/worksheets/sheet1.xml") as sheet:
        first, _, _ = sheet.read(_MAX_HEAD_BYTES).partition(b"</row>")
    return list(map(html.unescape, re.findall("<t[^<>]*+>([^<]*+)</t>", first.decode())))


def _names_of_parquet(file: IO[bytes]) -> Sequence[str]:
    import pyarrow.parquet

    return list(pyarrow.parquet.read_schema(file).names)


def _names_of_lines(file: IO[bytes]) -> Sequence[str]:
    return list(parse_json(file.readline(MAX_BYTES)))


def export_table(results: Path, path: Path, *, order: Sequence[str] = ()) -> int:
    """Write the answers of a results file, and the failures beside it, as a table; return the number of rows.

    A row has the id, the question, the user's own columns and what was computed. Text is text: what a spreadsheet would
    take for a formula is not one, and what it cannot hold is cut with a mark. Answers are read one after another.

    Args:
        results: The results file.
        path: The table, `.csv`, `.xlsx`, `.parquet` or `.jsonl`; an existing one is replaced.
        order: Ids of questions, in the order of the rows: others are left out. None given: all, as they are in the file.

    Raises:
        InputError: The table cannot be written.
    """
    places, own, value_types = _places(results)
    wanted = (
        [places[question_id] for question_id in order if question_id in places]
        if order
        else list(places.values())
    )
    table = Table(_names(own), _rows(wanted, own), value_types)
    temporary = path.with_name(f".{uuid.uuid4().hex}{path.suffix.lower()}")
    try:
        _WRITERS[path.suffix.lower()](temporary, table)
        temporary.replace(path)
    except (OSError, ValueError, TypeError, OverflowError) as error:  # What a column cannot hold.
        raise InputError(f"{str(path)!r} cannot be written: {error}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return len(wanted)


def _places(results: Path) -> tuple[dict[str, tuple[Path, int]], list[str], set[type]]:
    """Return the file and the start of each answer, by id, the names of the user's own columns, and the types of values."""
    places: dict[str, tuple[Path, int]] = {}
    own: dict[str, None] = {}
    value_types = set[type]()
    found = zip(itertools.repeat(results), read_records(results))
    failed = zip(itertools.repeat(Path(f"{results}.failed")), read_failures(results))
    for file, (record, start) in itertools.chain(found, failed):
        places.setdefault(str(record["id"]), (file, start))  # An answer counts, and no failure before it.
        own.update(dict.fromkeys(record["given"]["own"]))
        value = record["computed"].get("value")
        # A larger integer is text, as in JSON of other languages.
        value_types.add(str if type(value) is int and abs(value) >= _MAX_INTEGER else type(value))
        if len(own) > _MAX_COLUMNS:
            raise InputError(f"{str(results)!r} has more than {_MAX_COLUMNS:,} columns of its own.")
    return places, list(own), value_types - {type(None)}


def _names(own: Sequence[str]) -> list[str]:
    """Return the names of all columns; one of ours that the user has as well says whose it is."""
    taken = {"id", "query"}
    theirs = [f"{name} (given)" if name in taken else name for name in own]
    ours = [f"{name} (code_chains)" if name in own else name for name in COLUMNS]
    return list(map(_text, ["id", "query", *theirs, *ours]))


def _rows(places: Iterable[tuple[Path, int]], own: Sequence[str]) -> Iterator[Row]:
    files = dict[Path, IO[bytes]]()
    with ExitStack() as stack:
        for path, start in places:
            if path not in files:
                files[path] = stack.enter_context(open_file(path))
            files[path].seek(start)
            record = read_record(files[path].readline(MAX_BYTES))
            given = record["given"]
            yield [record["id"], given["query"], *map(given["own"].get, own), *_computed(record["computed"])]


def _computed(computed: Mapping[str, Any]) -> Row:
    verdict, usage = computed.get("verdict") or {}, computed.get("usage") or {}
    artifacts = (computed.get("execution") or {}).get("artifacts") or ()
    values = {
        **{name: computed.get(name) for name in ("answer", "output", "value", "seconds", "error")},
        "verdict": verdict.get("status"),
        "reason": verdict.get("reason"),
        "notes": "\n".join(computed.get("notes") or ()),
        "sources": "\n".join(source["name"] for source in computed.get("sources") or ()),
        "artifacts": "\n".join(artifact["file"] for artifact in artifacts),
        "attempts": len(computed.get("attempts") or ()),
        "model_calls": usage.get("model_calls"),
        "tokens": usage.get("input_tokens", 0) + usage.get("output_tokens", 0),
        "usd": usage.get("usd"),
    }
    return [values[name] for name in COLUMNS]


def without_formula(cell: Any) -> Any:
    """Return the content of a cell of a CSV file: what a spreadsheet would take for a formula begins with an apostrophe."""
    return _FORMULA.sub(r"\g<0>'", cell) if isinstance(cell, str) else cell


def _scalar(cell: Any) -> Any:
    """Return a cell that is no list and no object: those become JSON."""
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | dict) else cell


def _text(cell: Any) -> Any:
    cell = _scalar(cell)
    return _NOT_IN_CELLS.sub("\N{REPLACEMENT CHARACTER}", cell) if isinstance(cell, str) else cell


def _write_csv(path: Path, table: Table) -> None:
    # With the mark by which spreadsheets know UTF-8.
    with path.open("x", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(without_formula, table.names))
        for row in table.rows:
            writer.writerow(map(without_formula, map(_text, row)))
        _sync(file)


def _write_lines(path: Path, table: Table) -> None:
    with path.open("x", encoding="utf-8") as file:
        for row in table.rows:
            file.write(json.dumps(dict(zip(table.names, row, strict=True)), ensure_ascii=True) + "\n")
        _sync(file)


def _write_parquet(path: Path, table: Table) -> None:
    import pyarrow
    import pyarrow.parquet

    numbers = {"attempts": pyarrow.int64(), "model_calls": pyarrow.int64(), "tokens": pyarrow.int64()}
    numbers |= {"usd": pyarrow.float64(), "seconds": pyarrow.float64()}
    # A column has one type: values of several stay text, as JSON writes them.
    if table.value_types and table.value_types <= {int, float}:
        numbers["value"] = pyarrow.float64() if float in table.value_types else pyarrow.int64()
    elif table.value_types == {bool}:
        numbers["value"] = pyarrow.bool_()
    names = table.names
    kinds = [
        numbers.get(name.removesuffix(" (code_chains)"), pyarrow.string()) for name in names[-len(COLUMNS) :]
    ]
    schema = pyarrow.schema(
        zip(names, [*[pyarrow.string()] * (len(names) - len(kinds)), *kinds], strict=True)
    )
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _batches(table.rows):
            columns = [
                [_typed(cell, kind) for cell in column]
                for column, kind in zip(zip(*batch, strict=True), schema.types, strict=True)
            ]
            writer.write_table(pyarrow.table(dict(zip(names, columns, strict=True)), schema=schema))


def _typed(cell: Any, kind: Any) -> Any:
    if cell is None or str(kind) != "string":
        return cell
    return _text(cell) if isinstance(cell, str | list | dict) else json.dumps(cell)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch = list[Row]()
    for row in rows:
        batch.append(row)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _write_spreadsheet(path: Path, table: Table) -> None:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Answers")
    for row in itertools.chain([table.names], table.rows):
        cells = [WriteOnlyCell(sheet, _fitting(_text(value))) for value in row]
        for cell in cells:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # Never a formula.
        sheet.append(cells)
    book.save(path)


def _fitting(cell: Any) -> Any:
    """Return a cell that a spreadsheet can hold; text that is cut says so."""
    if isinstance(cell, str) and len(cell) > _MAX_CELL_CHARS:
        return f"{cell[:_MAX_CELL_CHARS]} … [cut, {len(cell):,} characters]"
    return cell


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


_WRITERS: dict[str, Callable[[Path, Table], None]] = {
    ".csv": _write_csv,
    ".xlsx": _write_spreadsheet,
    ".parquet": _write_parquet,
    ".jsonl": _write_lines,
}
_READERS: dict[str, Callable[[IO[bytes]], Sequence[str]]] = {
    ".csv": _names_of_csv,
    ".xlsx": _names_of_spreadsheet,
    ".parquet": _names_of_parquet,
    ".jsonl": _names_of_lines,
}
