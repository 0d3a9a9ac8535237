"""Delimited text with pandas: the line that reads it, corrected and run until its columns are what they seem."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from .columns import WORDS, Column, classify, conversion, key_of, literal, mapping, with_conversions
from .frames import Json, describe_frame, plural, run_lines
from .header import are_long
from .table import (
    Table,
    add_hint,
    add_note,
    dialect_arguments,
    is_read_as_number,
    quoted,
    separators,
    unique_names,
)
from .traps import find_traps

PROFILED_ROWS = 200_000
"""Rows that are read; of longer files these are the sample."""
PROFILED_CELLS = 4_000_000
MAX_SPECIAL_COLUMNS = 15
"""Columns that the line treats one by one."""
MAX_PASSES = 5
MAX_DISTINCT = 5_000
MAX_EXAMPLES, MAX_LATER_COLUMNS = 3, 60
MAX_LATER_ROWS, MAX_LATER_TEXTS = 40_000, 200
ODD_NUMBER = re.compile(r"^\s*[+-]?0[0-9]|[^\d.,\s-]")
LATE_DAY = re.compile(r"^(?:1[3-9]|[23]\d)\D|^\d{1,2}\D(?:1[3-9]|[23]\d)\D")
"""What tells whether numbers are codes or have units, and whether the day or the month comes first."""
MAX_DAY_CHARS, DIGITS = 6, str.maketrans("123456789", "9" * 9)
"""How much of a date that takes, and what numbers of one shape differ in."""
MAX_PADDED_CHARS = 2_000_000
"""Of longer text blanks around separators are kept, as separators of several characters are read slowly."""
MAX_LINE_CHARS = 1150
"""A longer line would not be shown."""
STRIP = "df.columns = df.columns.str.strip()"
WINDOWS = '{n: bytes([n]).decode("cp1252", "ignore") for n in range(128, 160)}'
DROP_BLANK = '.dropna(how="all")'
LABELS = '.reset_index(names="Unnamed: 0")'


def profile_with_pandas(table: Table) -> Json:
    """Return a profile of what the line of pandas returns; the line is corrected until columns are what they seem."""
    table.arguments = _frame_arguments(table)
    keys = _keys(table)
    sampled = max(100, min(PROFILED_ROWS, PROFILED_CELLS // max(len(keys), 1)))
    for index, key in enumerate(keys[: max(table.layout.width, 1)]):
        table.columns.append(_classified(key, str(key), table.layout.column(index)))
    if table.layout.footer:
        every_row = _run(table, table.arguments | {"dtype": "str"}, {}, drops_blank=False)
        table.arguments["nrows"] = str(max(0, len(every_row) - len(table.layout.footer)))
    structure = dict(table.arguments)
    if not table.layout.is_complete:
        _classify_later_rows(table, structure, min(sampled, MAX_LATER_ROWS))
    notes, hints = [*table.notes], [*table.hints]
    for _ in range(MAX_PASSES):
        table.arguments, table.conversions = {**structure}, {}
        table.notes, table.hints = [*notes], [*hints]  # Those of an earlier pass may not be true any more.
        _add_types(table)
        frame = _read(table, structure, sampled + 1)
        if frame is not None and not _corrected(table, frame):
            break
    if frame is None or max(map(len, _lines(table))) > MAX_LINE_CHARS:
        as_texts = {"dtype": "str", "keep_default_na": "False", "na_values": '[""]'}
        table.arguments, table.conversions = structure | as_texts, {}
        table.columns = [Column(column.name, "text", key=column.key) for column in table.columns]
        add_note(table, "all columns are read as text, as their types would make the line too long")
        frame = _run(table, table.arguments | _limit(structure, sampled + 1), {})
    return _profile(table, frame, sampled)


def _classify_later_rows(table: Table, structure: Mapping[str, str], nrows: int) -> None:
    """Classify columns again with texts from further on that are unlike those of numbers and dates."""
    texts = {"dtype": "str", "keep_default_na": "False"}
    frame = _run(table, {**structure} | _limit(structure, nrows) | texts, {})
    for index, column in enumerate(table.columns[: min(MAX_LATER_COLUMNS, len(frame.columns))]):
        texts = frame.iloc[:, index].dropna().drop_duplicates().tolist()
        if examples := _telling_texts(column.kind, texts)[:MAX_LATER_TEXTS]:
            again = classify(column.name, [*table.layout.column(index), *examples])
            again.key, table.columns[index] = column.key, again


def _telling_texts(kind: str, texts: list[str]) -> list[str]:
    """Return the texts that are unlike numbers or dates, one of each shape; of others the words that may mean missing."""
    if kind == "number":
        shapes = dict(zip(map(str.translate, texts, itertools.repeat(DIGITS)), texts, strict=True))
        odd = {re.sub(r"\d+", "9", shape): shapes[shape] for shape in filter(ODD_NUMBER.search, shapes)}
        return list(odd.values())
    if kind == "date":
        days = {text[:MAX_DAY_CHARS]: text for text in texts}
        return [days[day] for day in filter(LATE_DAY.search, days)]
    return list(filter(WORDS.__contains__, texts))


def _limit(structure: Mapping[str, str], nrows: int) -> dict[str, str]:
    return {"nrows": str(min(nrows, int(structure.get("nrows", nrows))))}


def _keys(table: Table) -> list[Any]:
    """Return the names of the columns that are read, below as many lines as are above them."""
    layout, by_records = table.layout, _names_read(table, {})
    if layout.first_line == layout.start or not table.arguments.get("skiprows", "").isdigit():
        return by_records
    # Invariant: of records that take several lines, pandas skips some as one and others line by line.
    by_lines = _names_read(table, {"skiprows": str(layout.first_line)})
    names = {*(layout.names or ())}
    if len(names.intersection(map(str, by_lines))) <= len(names.intersection(map(str, by_records))):
        return by_records
    table.arguments["skiprows"] = str(layout.first_line)
    return by_lines


def _names_read(table: Table, arguments: dict[str, str]) -> list[Any]:
    return list(_run(table, table.arguments | arguments | {"nrows": "0"}, {}).columns)


def _classified(key: Any, name: str, texts: Sequence[str]) -> Column:
    return replace(classify(name, texts), key=key_of(key))


def _profile(table: Table, frame: Any, sampled: int) -> Json:
    is_sample = len(frame) > sampled or not table.source.is_complete
    frame = frame.iloc[:sampled]
    if _has_padded_names(table):  # The line leaves out the blanks, so that programs find none.
        frame = frame.rename(columns=str.strip)
    rows = plural(len(frame), "row")
    if is_sample and (total := table.source.count_lines()) > len(frame):
        rows = f"about {total - table.layout.start - table.layout.header_rows:,} rows"
        add_hint(table, f"types and ranges are those of the first {len(frame):,} rows")
    elif table.layout.is_counted and (lost := table.layout.count_rows() - len(frame)) > 0:
        add_note(table, f"{plural(lost, 'row')} of {table.layout.count_rows():,} left out by this line")
    _note_values(table, frame)
    for trap in find_traps(frame):
        add_note(table, trap)
    return {
        "format": "tab-separated text" if table.layout.dialect.delimiter == "\t" else "CSV",
        "facts": [rows, plural(len(frame.columns), "column")],
        "read": ["import io", "import pandas as pd", *_lines(table)][not table.text.is_mended :],
        "columns": _described(table, frame),
        "column_count": len(frame.columns),
    }


def _described(table: Table, frame: Any) -> list[Json]:
    described = describe_frame(frame)
    for each, column in zip(described, table.columns, strict=False):
        if column.errors:
            each["type"] = "text, mostly numbers"
    return described


def _note_values(table: Table, frame: Any) -> None:
    """Note which texts are read as missing, and which keep a column from being one of numbers."""
    for index, column in enumerate(table.columns[: len(frame.columns)]):
        marks = (*column.missing, *column.defaults)
        if column.doubt:
            add_note(table, f"{column.key}: {column.doubt}")
        if not (column.errors or column.words or marks):
            continue
        values = frame.iloc[:, index]
        if column.errors:
            count = int(values.astype(str).str.strip().isin(column.errors).sum())
            add_note(
                table,
                f"{column.key} stays text: {count:,} of {len(values):,} are no numbers, such as {_some(column.errors)}",
            )
        elif column.words:
            add_note(
                table,
                f"{_some(column.words)} in {column.key} stays a text, though it may stand for a missing value",
            )
        if marks:
            missing = int(values.isna().sum())
            add_note(table, f"{missing:,} of {len(values):,} missing in {column.key}, such as {_some(marks)}")


def _some(texts: Sequence[str]) -> str:
    return ", ".join(map(quoted, texts[:MAX_EXAMPLES]))


# -- where the table is --------------------------------------------------------------------------------------------------


def _frame_arguments(table: Table) -> dict[str, str]:
    """Return the arguments that say where the table is; those about columns come later."""
    arguments = {"sep": r'r"\s+"'}
    if not table.is_spaced:
        arguments = dialect_arguments(table.layout.dialect, delimiter="sep", no_quotes="3")
    if table.source.pandas_compression:
        arguments["compression"] = quoted(table.source.pandas_compression)
    if table.text.encoding not in ("utf-8", "utf-8-sig") and not table.text.is_mended:
        arguments["encoding"] = quoted(table.text.encoding)
    if table.text.errors != "strict":
        arguments["encoding_errors"] = quoted(table.text.errors)
    return arguments | _name_arguments(table, arguments) | _row_arguments(table)


def _name_arguments(table: Table, arguments: dict[str, str]) -> dict[str, str]:
    """Return the arguments for the names of columns."""
    layout = table.layout
    if layout.names is None:
        is_ragged = layout.rows and layout.rows[0].width < layout.full_width
        return {"header": "None"} | ({"names": f"range({layout.full_width})"} if is_ragged else {})
    if layout.surplus == "values" and are_long(unique_names(table)):
        header = _call(table, arguments | {"skiprows": str(layout.start), "nrows": "0"}, drops_blank=False)
        others = f'*map("Unnamed: {{}}".format, range({len(layout.names)}, {layout.full_width}))'
        return {"header": "None", "names": f"[*{header}, {others}]"}
    if layout.header_rows != 1 or layout.surplus == "values":
        return {"header": "None", "names": f"[{', '.join(map(literal, unique_names(table)))}]"}
    if layout.surplus in ("cut", "empty"):
        return {"usecols": f"range({len(layout.names)})"}
    if len(layout.names) > 1 and all(name.startswith(" ") for name in layout.names[1:]):
        return _padding_arguments(table)
    return {}


def _padding_arguments(table: Table) -> dict[str, str]:
    """Return the arguments that leave out the blanks around separators; of texts in quotes only those before them."""
    separator, names = table.layout.dialect.delimiter, table.layout.names or ()
    is_after = any(name.endswith(" ") for name in names[:-1]) and not separator.isspace()
    # Invariant: no quote follows further on, and pandas reads the file fast enough without its own reader of CSV.
    is_seen = table.source.is_complete and len(table.text.text) <= MAX_PADDED_CHARS
    if not is_after or not is_seen or table.layout.dialect.quote in table.text.text:
        return {"skipinitialspace": "True"}
    return {"sep": f'r" *{re.escape(separator)} *"', "engine": '"python"'}


def _row_arguments(table: Table) -> dict[str, str]:
    """Return the arguments for the rows that are none of the table."""
    layout, arguments = table.layout, dict[str, str]()
    first = layout.start
    if (layout.names is not None and layout.header_rows != 1) or layout.surplus == "values":
        first += layout.header_rows
    skipped = layout.skipped_rows
    comments = layout.skipped.get("comments", [])
    marks = table.text.text.count("\n#") + table.text.text.startswith("#")
    if comments and marks == table.text.text.count("#"):
        arguments["comment"] = '"#"'
        skipped = [row for row in skipped if row not in comments]
    if skipped:
        arguments["skiprows"] = repr([*range(first), *map(attrgetter("index"), skipped)])
    elif first:
        arguments["skiprows"] = str(first)
    return arguments


# -- running the lines ---------------------------------------------------------------------------------------------------


def _lines(table: Table) -> list[str]:
    lines = with_conversions(_call(table, table.arguments), table.conversions)
    if _has_padded_names(table):
        lines[-1:] = [f"{lines[-1]}.rename(columns=str.strip)"] if len(lines) == 1 else [lines[-1], STRIP]
    return lines


def _has_padded_names(table: Table) -> bool:
    names = list(map(attrgetter("name"), table.columns))
    stripped = list(map(str.strip, names))
    return names != stripped and len(set(stripped)) == len(names)


def _call(table: Table, arguments: Mapping[str, str], *, drops_blank: bool = True) -> str:
    shown = map("=".join, arguments.items())
    call = f"pd.read_csv({', '.join([_file(table), *shown])})"
    if table.layout.surplus == "labels":
        call += LABELS
    return call + (DROP_BLANK if drops_blank and table.layout.blank_rows else "")


def _file(table: Table) -> str:
    if not table.text.is_mended:
        return literal(table.source.name)
    opened = table.source.opening(table.text.encoding, table.text.errors, keeps_lines=True)
    return f"io.StringIO({opened}.read().translate({WINDOWS}))"


def _run(
    table: Table, arguments: Mapping[str, str], conversions: Mapping[str, str], *, drops_blank: bool = True
) -> Any:
    """Run the lines with other arguments."""
    lines = with_conversions(_call(table, arguments, drops_blank=drops_blank), conversions)
    return run_lines(lines, io=io)


def _read(table: Table, structure: Mapping[str, str], nrows: int) -> Any:
    """Run the lines for some rows; None if columns cannot be converted as they seemed, which they do no more then."""
    is_short = table.layout.is_counted and table.layout.widths.total() < nrows
    limit = {} if is_short else _limit(structure, nrows)  # Without it pandas is faster.
    try:
        return _run(table, table.arguments | limit, table.conversions)
    except ValueError:
        if not table.conversions:
            raise
    frame = _run(table, {**structure} | limit | {"dtype": "str"}, {})
    for index, column in enumerate(table.columns):
        if column.key in table.conversions:
            _correct(table, index, frame.iloc[:, index])
    return None


def _corrected(table: Table, frame: Any) -> bool:
    """Classify columns again that are not read as what they seemed; return whether there are any."""
    found, types = False, list(map(str, frame.dtypes))
    for index, column in enumerate(table.columns):
        if (
            index < len(types)
            and column.kind in ("number", "date")
            and types[index] in ("object", "str", "string")
        ):
            found |= _correct(table, index, frame.iloc[:, index])
    return found


def _correct(table: Table, index: int, series: Any) -> bool:
    """Classify a column by the texts that were read; one that stays what it seemed is text from now on."""
    column, texts = table.columns[index], list(map(str, series.dropna().unique()))
    if not texts:
        return False
    again = classify(column.name, _telling(texts, column))
    again.key, again.may_be_numbers, column.may_be_numbers = column.key, True, True
    if again == column:
        again = Column(column.name, "text", key=column.key, may_be_numbers=True)
    table.columns[index] = again
    return True


def _telling(texts: list[str], column: Column) -> list[str]:
    """Return some of a column's texts, among them those that are not what the others are."""
    if len(texts) <= MAX_DISTINCT:
        return texts
    odd = [text for text in texts if classify(column.name, [text]).kind != column.kind]
    return [*texts[:MAX_DISTINCT], *odd[:MAX_DISTINCT]]


# -- what the columns are ------------------------------------------------------------------------------------------------


def _add_types(table: Table) -> None:
    """Set the arguments about columns, and the lines that convert what no argument can."""
    table.decimal, table.thousands = separators(table)
    if table.decimal != ".":
        table.arguments["decimal"] = quoted(table.decimal)
    if table.decimal == table.layout.dialect.delimiter:
        add_note(table, "commas in numbers are read as decimal separators")
    if table.thousands:
        table.arguments["thousands"] = quoted(table.thousands)
    texts = [column for column in table.columns if _is_read_as_text(table, column)]
    if texts:
        table.arguments["dtype"] = _type_argument(table, texts)
    _add_dates(table)
    _add_missing(table)
    for column in table.columns:
        if units := " and ".join(column.mixed_units):
            add_note(table, f"{column.key} has values in {units}, so it stays text: convert them to one unit")
        if column.kind == "number" and column.number and not is_read_as_number(table, column):
            table.conversions[column.key] = conversion(column, column.number.resolved(table.decimal))
            if column.number.units:
                add_hint(table, f"{column.key} is in {' or '.join(column.number.units)}")
    table.conversions = dict(itertools.islice(table.conversions.items(), MAX_SPECIAL_COLUMNS))


def _type_argument(table: Table, texts: list[Column]) -> str:
    """Return the types of columns that stay text; of all if that is shorter, which is right if all are."""
    if len(texts) == len(table.columns) and len(texts) > 1:
        return "str"
    return mapping(dict.fromkeys(map(attrgetter("key"), texts[: 2 * MAX_SPECIAL_COLUMNS]), "str"))


def _is_read_as_text(table: Table, column: Column) -> bool:
    if column.kind == "number":
        return not is_read_as_number(table, column)
    if column.kind == "date":
        return column.date is not None and column.date.has_zones
    return column.kind == "identifier" or column.may_be_numbers


def _add_dates(table: Table) -> None:
    dates = [(column.key, column.date) for column in table.columns if column.date]
    first_fields = {date.format[:2] for _, date in dates if not date.is_ambiguous}
    is_month_first = "%m" in first_fields or not ("%d" in first_fields or table.decimal == ",")
    formats = {}
    for key, date in dates[:MAX_SPECIAL_COLUMNS]:
        if date.is_ambiguous:
            date = date.with_month_first() if is_month_first else date
            order = "day first" if date.format.startswith("%d") else "month first"
            add_note(table, f"dates of {key} are read {order}, which they do not prove")
        if "%y" in date.format:
            add_note(
                table, f"years of two digits in {key} are read from 1969 to 2068, in the order {date.format}"
            )
        if date.has_zones:
            table.conversions[key] = f"pd.to_datetime(df[{key}], utc=True)"
        else:
            formats[key] = quoted(date.format)
    if formats:
        table.arguments["parse_dates"] = f"[{', '.join(formats)}]"
        distinct = set(formats.values())
        value = distinct.pop() if len(distinct) == 1 else mapping(formats)
        if value != '"ISO8601"':
            table.arguments["date_format"] = value


def _add_missing(table: Table) -> None:
    """Say what stands for missing values: in numbers and dates any mark, in texts no word that may be meant."""
    texts = table.columns_of("text", "identifier")
    marks = {column.key: column.missing for column in table.columns if column.missing}
    words = set[str]().union(*map(attrgetter("words"), texts))
    if not words and marks:
        every = _list(sorted(set[str]().union(*marks.values())))
        table.arguments["na_values"] = _each(marks) if texts else every
    if not words:
        return
    table.arguments["keep_default_na"] = "False"
    wanted = {column.key: ("", *column.missing, *column.defaults) for column in table.columns}
    every_mark = set[str]().union(*wanted.values())
    if len(wanted) <= MAX_SPECIAL_COLUMNS and (marks or every_mark & words):
        table.arguments["na_values"] = _each(wanted)
    else:
        table.arguments["na_values"] = _list(sorted(every_mark - words))


def _each(marks: Mapping[str, Iterable[str]]) -> str:
    shown = itertools.islice(marks.items(), MAX_SPECIAL_COLUMNS)
    return mapping({key: _list(sorted(texts)) for key, texts in shown})


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, texts))}]"
