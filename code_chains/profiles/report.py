"""A profile from the sandbox, which is untrusted JSON -> text of limited length for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from code_chains.profiles.description import are_names
from code_chains.records.printable import strip_control_chars

__all__ = ["MAX_FILE_CHARS", "MAX_TOTAL_CHARS", "notes_of", "render_profile"]

MAX_FILE_CHARS, MAX_TOTAL_CHARS = 2500, 10_000
"""Characters of one profile, and about of all together."""
MIN_FILE_CHARS = 500
MAX_LINE_CHARS, MAX_READ_CHARS = 1200, 1800
MAX_NAME_CHARS, MAX_DETAIL_CHARS, MAX_FACT_CHARS, MAX_ROW_CHARS = 60, 160, 600, 200
MAX_ITEMS, MAX_NOTE_CHARS = 60, 200

KEYED = ("JSON", "YAML", "TOML", "INI", "XML")
"""Formats whose keys may be values."""

Json = Mapping[str, Any]


def render_profile(
    title: str, profile: object, *, schema_only: bool, max_chars: int, trusts_names: bool = False
) -> str | None:
    """Return the text about a file; None if the profile has nothing or not the right form.

    Args:
        title: What it is about, such as the name and the size of a file.
        profile: What the program in the sandbox reported.
        schema_only: Whether to leave out rows, values, ranges and counts of missing values.
        max_chars: The limit of the text.
        trusts_names: Whether names of columns are certainly that, and no values of a row.
    """
    if not isinstance(profile, Mapping) or not _text(profile, "format", 60):
        return None
    kind, facts = _text(profile, "format", 60), _texts(profile, "facts", MAX_FACT_CHARS)
    if schema_only and kind.startswith(KEYED):
        facts = [fact for fact in facts if "[" not in fact]
    head = f"{title}: {', '.join([kind, *facts])}"
    has_names = not schema_only or trusts_names or _has_names(profile)
    parts = _items(profile, "parts", Mapping)
    room = max_chars - len(head)
    lines = [head, *_section(profile, has_names=has_names, schema_only=schema_only, max_chars=room)]
    for index, part in enumerate(parts):
        left = (max_chars - len("\n".join(lines))) // (len(parts) - index)
        name = f"  `{_text(part, 'name', MAX_NAME_CHARS)}`: {', '.join(_texts(part, 'facts', 100))}"
        if left < len(name):
            lines.append(f"  and {len(parts) - index} more")
            break
        has_names, room = not schema_only or _has_names(part), left - len(name)
        lines.append(name)
        lines += _section(part, has_names=has_names, schema_only=schema_only, max_chars=room, indent="    ")
    return "\n".join(lines)


def notes_of(name: str, profile: object) -> list[str]:
    """Return what people are told of a file: which rows are left out, what is read otherwise, and what is not certain."""
    if not isinstance(profile, Mapping):
        return []
    tables = [(name, profile)]
    parts = _items(profile, "parts", Mapping)
    tables += ((f"{name}, {_text(part, 'name', MAX_NAME_CHARS)}", part) for part in parts)
    return [f"{title}: {note}" for title, each in tables for note in _texts(each, "notes", MAX_NOTE_CHARS)]


def _has_names(profile: Json) -> bool:
    # Invariant: keys may be values, and so may be the first row of a table of texts.
    if _text(profile, "format", 60).startswith(KEYED) or profile.get("may_lack_header"):
        return False
    return are_names(_text(column, "name", 200) for column in _items(profile, "columns", Mapping))


def _section(
    profile: Json, *, has_names: bool, schema_only: bool, max_chars: int, indent: str = "  "
) -> list[str]:
    """Return the lines about a table: how to read it first, as that matters most, then columns, notes and rows."""
    columns = _items(profile, "columns", Mapping)
    # Invariant: what may be a row instead of a header is not sent where only the schema may be.
    lines = _read_lines(profile, indent) if has_names else []
    budget = max_chars - sum(map(len, lines))
    if columns and has_names:
        described = [_column(column, schema_only=schema_only) for column in columns]
        lines.append(indent + _column_line(described, profile, budget * 3 // 5))
    elif columns:
        lines.append(f"{indent}{_count(profile, columns)} columns")
    extra: list[str] = []
    if not schema_only:
        notes = (*_texts(profile, "notes", MAX_NOTE_CHARS), *_texts(profile, "hints", MAX_NOTE_CHARS))
        extra += map("note: {}".format, notes)
        if structure := _text(profile, "structure", 1200):
            extra.append(f"structure: {structure}")
        extra += _all_rows(profile, budget - sum(map(len, extra))) or _first_rows(profile)
    for line in extra:
        if sum(map(len, lines)) + len(line) > max_chars:
            break
        lines.append(indent + line)
    return lines


def _read_lines(profile: Json, indent: str) -> list[str]:
    """Return how to read a file; nothing if it is too long, as a part of it would be wrong."""
    read = _items(profile, "read", object)
    if not read or not all(map(_is_line, read)) or sum(map(len, read)) > MAX_READ_CHARS:
        return []
    return [f"{indent}read it with:", *(f"{indent}  {line}" for line in read)]


def _is_line(item: Any) -> bool:
    """Return whether an item is a line of a program, with nothing in it that is not shown."""
    return (
        isinstance(item, str)
        and len(item) <= MAX_LINE_CHARS
        and item == strip_control_chars(item.replace("\n", ""))
    )


def _column(column: Json, *, schema_only: bool) -> str:
    kind, name = _text(column, "type", 40), _name(column)
    parts = [kind] if kind else []
    if not schema_only:
        detail = _text(column, "detail", MAX_DETAIL_CHARS)
        separator = "" if detail.startswith(":") else ", "
        if detail:
            parts = [separator.join([*parts, detail])]
        missing = column.get("missing")
        if isinstance(missing, int) and missing > 0:
            parts.append(f"{missing:,} missing")
    return f"`{name}` ({', '.join(parts)})" if parts else f"`{name}`"


def _name(column: Json) -> str:
    """Return the name of a column as a program spells it: a line break in it is one to write as well."""
    name = column.get("name")
    spelled = (
        name.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") if isinstance(name, str) else ""
    )
    return _shortened(spelled, MAX_NAME_CHARS)


def _column_line(described: Sequence[str], profile: Json, max_chars: int) -> str:
    """Return the columns that fit; the others are counted."""
    shown, length = list[str](), 0
    for column in described:
        length += len(column) + 2
        if length > max(max_chars, 200):
            break
        shown.append(column)
    more = _count(profile, described) - len(shown)
    return f"columns: {', '.join(shown)}" + (f" and {more:,} more" if more > 0 else "")


def _count(profile: Json, columns: Sequence[Any]) -> int:
    count = profile.get("column_count")
    return count if isinstance(count, int) and count > len(columns) else len(columns)


def _all_rows(profile: Json, room: int) -> list[str]:
    """Return the lines of a small file, if there is room for all of them; nothing otherwise."""
    rows = _items(profile, "all_rows", str)
    shown = list(map("  {}".format, _texts(profile, "all_rows", MAX_ROW_CHARS)))
    is_whole = all(len(row) <= MAX_ROW_CHARS for row in rows) and len(rows) < MAX_ITEMS
    return ["in full:", *shown] if rows and is_whole and sum(map(len, shown)) <= room else []


def _first_rows(profile: Json) -> list[str]:
    rows = _texts(profile, "first_rows", MAX_ROW_CHARS)[:12]
    return ["begins with:", *map("  {}".format, rows)] if rows else []


def _items(profile: Json, key: str, kind: type) -> list[Any]:
    items = profile.get(key)
    if not isinstance(items, list):
        return []
    return [item for item in items[:MAX_ITEMS] if isinstance(item, kind)]


def _texts(profile: Json, key: str, limit: int) -> list[str]:
    return [_shortened(text, limit) for text in _items(profile, key, str)]


def _text(profile: Json, key: str, limit: int) -> str:
    value = profile.get(key)
    return _shortened(value, limit) if isinstance(value, str) else ""


def _shortened(text: str, limit: int) -> str:
    """Return text on one line, without control characters."""
    line = strip_control_chars(text[: limit + 1].replace("\n", " ").replace("\r", " "))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
