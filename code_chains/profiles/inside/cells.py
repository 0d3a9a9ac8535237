"""Tables whose cells are texts, in documents and in lines: how they are read, and their columns converted."""

from __future__ import annotations

import importlib.util
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from .columns import Column, classify, conversion, key_of, literal, with_conversions
from .delimited import note_omissions
from .dialect import Dialect, Row, is_value
from .encoding import Text
from .frames import Json, describe_frame, plural, row_text, texts_in
from .layout import layout_of
from .source import Source
from .table import Table, add_note, unique_names
from .traps import find_traps

MAX_TABLES, MAX_LINES, MAX_LINE_CHARS, MAX_TITLE_LINES, MAX_CELLS = 8, 50_000, 1000, 12, 200_000
MAX_CLASSIFIED, MAX_HEAD, MIN_SURE_ROWS, MIN_NUMBERS = 5000, 200, 20, 2
FRAME = 'pd.DataFrame(rows[1:], columns=rows[0]).replace(["", "NULL"], None)'


def profile_cells(setup: Sequence[str], call: str, names: dict[str, Any] | None = None) -> Json:
    """Describe the table of texts that a call returns below lines of setup, and convert its columns.

    Args:
        setup: The lines that come first.
        call: The expression of the table.
        names: What the lines of setup have left, if they have been run.
    """
    if names is None:
        names = {}
        exec("\n".join(setup), names)
    frame = eval(call, names)  # noqa: S307
    columns = [_classified(key, series) for key, series in frame.items()]
    keys = list(frame.columns)
    conversions, marks, doubts = dict[str, str](), list[str](), list[str]()
    for key, column in zip(keys, columns, strict=True):
        if keys.count(key) == 1 and (line := _converted(column)):
            conversions[column.key] = line
        if column.missing:
            marks.append(f"{column.key}: {', '.join(column.missing)} is read as missing")
        if column.doubt:
            doubts.append(f"{column.key}: {column.doubt}")
    names["frame"] = frame
    try:
        exec("\n".join(with_conversions("frame", conversions)), names)
    except ValueError:  # Below the rows that were looked at are others.
        conversions, names["df"] = {}, frame
    frame = names["df"]
    return {
        "facts": [plural(len(frame), "row"), plural(len(keys), "column")],
        "read": [*setup, *with_conversions(call, conversions)],
        "columns": describe_frame(frame),
        "column_count": len(keys),
        "first_rows": list(map(row_text, frame.head(3).values.tolist())),
        "notes": [*marks, *doubts, *find_traps(frame)],
    }


def profile_tables(setup: Sequence[str], names: dict[str, Any]) -> list[Json]:
    """Describe the tables of texts that lines of setup have left in `tables`."""
    tables = names.get("tables", [])
    if not tables or importlib.util.find_spec("pandas") is None:
        return []
    exec("import pandas as pd", names)
    parts = []
    for first, last in _groups(tables)[:MAX_TABLES]:
        lines = ["import pandas as pd", f"rows = tables[{first}]"]
        if last > first + 1:
            joined = f"tables[{first}:{'' if last == len(tables) else last}]"
            lines[1:] = [
                f"head = tables[{first}][:1]",
                f"rows = head + [r for t in {joined} for r in t if r not in head]",
            ]
        exec("\n".join(lines), names)
        header = has_header(eval(FRAME, names))  # noqa: S307
        call = FRAME if header is not False else FRAME.replace("rows[1:], columns=rows[0]", "rows")
        name = f"table {first + 1}" if last == first + 1 else f"tables {first + 1} to {last}"
        parts.append(
            profile_cells([*setup, *lines], call, names) | {"name": name, "may_lack_header": not header}
        )
    return parts


def _groups(tables: Sequence[list[list[str | None]]]) -> list[tuple[int, int]]:
    """Return where tables begin and end; one that goes on on the next page is as wide, and has the same header or none."""
    groups: list[tuple[int, int]] = []
    for index, rows in enumerate(tables):
        first = tables[groups[-1][0]] if groups else rows
        is_next = bool(groups) and groups[-1][1] == index and len(rows[0]) == len(first[0])
        if is_next and (rows[0] == first[0] or any(map(is_value, filter(None, rows[0])))):
            groups[-1] = (groups[-1][0], index + 1)
        elif len(rows) > 1 and len(rows[0]) > 1 and len(rows) * len(rows[0]) <= MAX_CELLS:
            groups.append((index, index + 1))
    return groups


def has_header(frame: Any) -> bool | None:
    """Return whether the names of a frame of texts are a header, and no row of values; None if that is not certain."""
    typed = list(filter(_has_type, (_classified(key, series) for key, series in frame.items())))
    return not any(is_value(column.name) for column in typed) if typed else None


def _has_type(column: Column) -> bool:
    return column.kind in ("number", "date")


def _classified(key: Any, series: Any) -> Column:
    texts = texts_in(series.head(MAX_CLASSIFIED).tolist())
    return replace(classify(str(key), texts), key=key_of(key))


def _converted(column: Column) -> str:
    """Return the expression that converts a column; empty if it stays as it is."""
    if column.kind == "date" and column.date and not column.date.is_ambiguous:
        return f'pd.to_datetime(df[{column.key}], format="{column.date.format}", errors="coerce")'
    if column.kind != "number" or column.number is None:
        return ""
    number = conversion(column, column.number.resolved("."))
    return f'{number[:-1]}, errors="coerce")' if column.missing or column.defaults else number


def profile_boxes(source: Source, text: Text) -> Json | None:
    """Describe the tables of Markdown and of database shells, whose columns are divided by bars; None if there are none."""
    if not _is_short(source, text) or not importlib.util.find_spec("pandas"):
        return None
    lines = text.text.splitlines()
    opened = f"{source.opening(text.encoding, text.errors)}.read().splitlines()"
    parts = []
    for first, last in itertools.islice(_boxes(lines), MAX_TABLES):
        row = next(line for line in lines[first:last] if not _is_rule(line))
        split = '.split("|")' if row.strip()[0] != "|" else '.strip().split("|")[1:-1]'
        setup = ["import pandas as pd", f"lines = {opened}[{first}:{last}]"]
        setup.append(
            f'rows = [[cell.strip() for cell in line{split}] for line in lines if set(line) - set("|+-=: ")]'
        )
        part = profile_cells(setup, FRAME)
        parts.append(part | {"name": f"table in line {first + 1}"})
    if not parts:
        return None
    read = [f"text = {source.opening(text.encoding, text.errors)}.read()"]
    if len(parts) > 1:
        return {
            "format": "text with tables",
            "facts": [plural(len(parts), "table")],
            "read": read,
            "parts": parts,
        }
    others = sum(map(bool, map(str.strip, lines[:first] + lines[last:])))
    notes = [f"{plural(others, 'line')} of text left out, before or after the table"] if others else []
    return parts[0] | {"format": "text with a table", "notes": [*notes, *parts[0]["notes"]]}


def _is_short(source: Source, text: Text) -> bool:
    """Return whether lines can be looked at one by one."""
    return source.is_complete and text.text.count("\n") <= MAX_LINES


def _boxes(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Return the first line of each table, and that after its last one."""
    start = 0
    for is_box, group in itertools.groupby(lines, lambda line: "|" in line or _is_rule(line)):
        block = list(group)
        rows = [line.strip().count("|") for line in block if not _is_rule(line)]
        if is_box and len(rows) < len(block) and len(rows) > 1 and len(set(rows)) == 1:
            yield start, start + len(block)
        start += len(block)


def _is_rule(line: str) -> bool:
    """Return whether a line is between the rows of a box."""
    chars = set(line.strip())
    return chars <= set("|+:=- ") and bool(chars & set("=-")) and len(line.strip()) > 2


def _is_underline(line: str) -> bool:
    return set(line) <= set("=- ") and ("--" in line or "==" in line)


def profile_fixed(source: Source, text: Text) -> Json | None:
    """Describe a table whose columns are as wide in each line, or divided by blanks but for the last; None if it is none."""
    if not _is_short(source, text) or "\t" in text.text or importlib.util.find_spec("pandas") is None:
        return None
    lines = list(map(str.rstrip, io.StringIO(text.text, newline=None)))
    if max(map(len, lines), default=0) > MAX_LINE_CHARS:
        return None
    filled = {n: line for n, line in enumerate(lines) if line and not _is_underline(line)}
    for start in itertools.takewhile(MAX_TITLE_LINES.__ge__, filled):
        end = next((index for index in range(start, len(lines)) if not lines[index]), len(lines))
        whole = {n: line for n, line in filled.items() if n >= start}
        rows = max(whole, {n: line for n, line in whole.items() if n < end}, key=_divided)
        if len(rows) <= max(2, start // 2) or _divided(rows)[0] < 2:
            continue
        texts = list(rows.values())
        for spans in (_spans(texts), _named_spans(texts)):
            if len(spans) > 1 and (profile := _profile_spans(source, text, lines, filled, rows, spans)):
                return profile
        if rows == whole and (profile := _profile_words(source, text, start, texts)):
            return profile
    return None


def _divided(rows: dict[int, str]) -> tuple[int, int]:
    """Return how many columns lines have, and how many of these are typed."""
    texts = list(rows.values())
    texts = texts[:MAX_HEAD] + texts[MAX_HEAD:][-MAX_HEAD:]
    spans = _spans(texts) if len(texts) > 2 else []
    below = [text for text in texts[1:] if text != texts[0]]
    columns = [classify("", [text[first:last] for text in below]) for first, last in spans]
    return len(spans), sum(map(_has_type, columns))


def _profile_spans(
    source: Source,
    text: Text,
    lines: list[str],
    filled: dict[int, str],
    rows: dict[int, str],
    spans: list[tuple[int, int]],
) -> Json | None:
    """Describe a table of these columns; None if no column has numbers or dates, or a header is over two of them."""
    fields = {n: [line] for n, line in filled.items()}
    fields |= {n: [row[first:last].strip() for first, last in spans] for n, row in rows.items()}
    records = [Row(fields.get(n, []), n, n, n + 1) for n in range(len(lines))]
    layout = layout_of(records, Dialect(" "), is_complete=True)
    names, title = layout.names or [], layout.titles[-1].fields[0] if layout.titles else ""
    columns = [classify("", layout.column(index)) for index in range(len(spans))]
    is_unnamed = layout.names is None and len(title.split()) >= len(spans)
    has_gaps = any("  " in name for name in names)
    if is_unnamed or has_gaps or not any(map(_has_type, columns)) or not layout.rows:
        return None
    table, last = Table(source, text, layout), layout.rows[-1].line
    arguments = f'{literal(source.name)}, colspecs={spans}, dtype="str", encoding="{text.encoding}"'
    read = {layout.start} if layout.header_rows == 1 else set[int]()
    read.update(map(attrgetter("line"), layout.rows))
    # Invariant: pandas takes page breaks for rows, and above the header no line that follows an empty one for skipped.
    is_kept = "\f" not in text.text
    skipped = [n for n in range(last) if n not in read and (lines[n] or n < layout.start or not is_kept)]
    if len(skipped) > MAX_HEAD:  # The line would be too long to be shown.
        return None
    if skipped:
        arguments += f", skiprows={len(skipped) if skipped == [*range(len(skipped))] else skipped}"
    if layout.header_rows != 1:
        arguments += ", header=None"
    if layout.header_rows != 1 and names:
        arguments += f", names={unique_names(table)}"
    if last + 1 < len(lines):
        arguments += f", skipfooter={len(lines) - last - 1}"
    note_omissions(table)
    if layout.names is None and len(layout.rows) < MIN_SURE_ROWS:
        add_note(
            table, "where its columns begin is not certain: they are divided where each line has a blank"
        )
    return _fixed(text, ["import pandas as pd"], f"pd.read_fwf({arguments})", table.notes, len(layout.rows))


def _profile_words(source: Source, text: Text, start: int, rows: list[str]) -> Json | None:
    """Describe a table whose last column alone has blanks, such as a list of processes; None if it is none."""
    names = rows[0].split()
    most = len(names) - 1
    records = [row.split(None, most) for row in rows]
    if set(map(len, records)) != {len(names)} or len(set(names)) < len(names) or any(map(is_value, names)):
        return None
    kinds = [classify("", column).kind for column in zip(*records[1:], strict=True)]
    if kinds.count("number") < MIN_NUMBERS or kinds[-1] == "number":
        return None
    opened = f"{source.opening(text.encoding, text.errors)}.readlines()[{start}:]"
    setup = [
        "import pandas as pd",
        f"rows = [line.strip().split(None, {most}) for line in {opened} if line.strip()]",
    ]
    notes = [f"{plural(start, 'line')} left out: above the table"] if start else []
    notes.append(f"what is beyond {most} words of a line is its last column")
    return _fixed(text, setup, FRAME, notes, len(rows) - 1)


def _fixed(text: Text, setup: Sequence[str], call: str, notes: Sequence[str], rows: int) -> Json | None:
    part = profile_cells(setup, call)
    if part["facts"][0] != plural(rows, "row"):
        return None
    part["facts"] += [f"encoding {text.encoding}", "columns of fixed width"]
    return part | {"format": "fixed-width text", "notes": [*notes, *part["notes"]]}


def _spans(rows: Sequence[str]) -> list[tuple[int, int]]:
    """Return where columns begin and end: between them each line has a blank."""
    spans = _filled(rows)
    body = [any(row[first:last].strip() for row in rows[1:]) for first, last in spans]
    merged: list[tuple[int, int]] = []
    joins = False
    for index, (first, last) in enumerate(spans):
        before = first - spans[index - 1][1] if index else 0
        after = spans[index + 1][0] - last if index + 1 < len(spans) else first + last
        is_nameless = not rows[0][first:last].strip() and before == 1
        # Invariant: what has a name and no values, or values and no name, is a part of the column beside it.
        if merged and (joins or is_nameless or (not body[index] and before < after)):
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
        joins = not body[index] and not before < after
    return merged


def _named_spans(rows: Sequence[str]) -> list[tuple[int, int]]:
    """Return the columns that begin where their names do, if no word of a line goes on from one to the next."""
    starts = [match.start() for match in re.finditer(r"(?<!\S)\S", rows[0])]
    ends = [*starts[1:], max(map(len, rows))]
    is_divided = not any(row[start - 1 : start + 1].strip()[1:] for row in rows for start in starts[1:])
    return list(zip(starts, ends, strict=True)) if is_divided and starts[:1] == [0] else []


def _filled(rows: Sequence[str]) -> list[tuple[int, int]]:
    """Return the spans of characters that are not blank in all lines."""
    filled = 0
    for row in rows:
        filled |= int("1" + re.sub(r"\S", "1", row).replace(" ", "0")[::-1].rjust(MAX_LINE_CHARS, "0"), 2)
    bits = bin(filled)[3:][::-1]
    return [match.span() for match in re.finditer("1+", bits)]
