"""JSON, JSON Lines, Parquet, images and plain text."""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import struct
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from typing import Any

from .columns import key_of, literal
from .encoding import Text
from .frames import (
    MAX_ROW_CHARS,
    Json,
    describe_frame,
    describe_rows,
    describe_values,
    plural,
    row_text,
    run_lines,
)
from .source import Source
from .traps import find_traps

MAX_ROWS = 50_000
JOINT = r'r"\}\s*\n\s*\{"'
"""What is between two objects of JSON in lines of their own."""
MAX_NAMES = 20
MAX_TEXT_CHARS = 400
MAX_BROKEN, MAX_BROKEN_CHARS = 3, 300
"""Lines of JSON Lines that are no JSON, which the line that reads the others names."""
NAMES_OF_JSON = {
    frozenset({"type", "features"}): "JSON (GeoJSON)",
    frozenset({"nbformat", "cells"}): "JSON (Jupyter notebook)",
}
"""What JSON is whose object has these keys."""


def profile_lines(source: Source, text: Text) -> Json | None:
    """Describe JSON Lines; None if it is something else."""
    lines = list(filter(str.strip, text.text.split("\n")))
    if not source.is_complete:
        lines = lines[:-1]
    opened, broken = source.opening(text.encoding, text.errors), list[str]()
    read = [*_imports(source, "json"), f"rows = [json.loads(line) for line in {opened} if line.strip()]"]
    try:
        rows = list(map(json.loads, lines[:MAX_ROWS]))
    except (ValueError, RecursionError):
        rows = _joined(text.text) if source.is_complete else []
        read = [
            *_imports(source, "json", "re"),
            f'rows = json.loads(re.sub({JOINT}, "}},{{", "[" + {opened}.read() + "]"))',
        ]
        if not rows and (broken := _broken_lines(lines)):
            rows = [json.loads(line) for line in lines if line not in broken]
            condition = f"line.strip() and line.rstrip('\\n') not in {broken!r}"
            read = [
                *_imports(source, "json"),
                f"rows = [json.loads(line) for line in {opened} if {condition}]",
            ]
        lines = list(map(json.dumps, rows))
    if not _are_objects(rows):
        return None
    if importlib.util.find_spec("pandas"):
        read = [read[0], "import pandas as pd", *read[1:], f"df = pd.DataFrame(rows{_as_objects(rows)})"]
    count = len(lines) if source.is_complete else source.count_lines()
    notes = ["rows have different keys"] if len(set(map(frozenset, rows[:1000]))) > 1 else []
    notes += [f"left out, as it is no JSON: {line[:MAX_ROW_CHARS]}" for line in broken]
    return {
        "format": "JSON Lines",
        "facts": [plural(count, "row"), f"encoding {text.encoding}"],
        "read": read,
        "columns": describe_rows(rows),
        "column_count": len(set(itertools.chain.from_iterable(rows))),
        "first_rows": _first(lines),
        "notes": notes,
    }


def _broken_lines(lines: list[str]) -> list[str]:
    """Return the lines of JSON Lines that cannot be read, such as one that was cut off; nothing if they are many or long."""
    broken = list[str]()
    for line in lines:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            broken.append(line)
            if len(broken) > min(MAX_BROKEN, len(lines) // 3) or len(line) > MAX_BROKEN_CHARS:
                return []
    return broken


def _joined(text: str) -> list[Any]:
    """Return the objects of a text that has one below the other; nothing if it is something else."""
    # Invariant: no text of JSON has an end of a line, so that such braces are between two objects.
    try:
        rows: list[Any] = json.loads(re.sub(r"\}\s*\n\s*\{", "},{", f"[{text}]"))
    except (ValueError, RecursionError):
        return []
    return rows


def _first(lines: Iterable[str]) -> list[str]:
    return [line[:MAX_ROW_CHARS] for line in itertools.islice(lines, 3)]


def _as_objects(rows: list[Any]) -> str:
    """Return the argument that keeps numbers which are too long for floats, as which missing values make all others."""
    values = itertools.chain.from_iterable(row.values() for row in rows[:MAX_ROWS])
    return ", dtype=object" if any(type(value) is int and abs(value) > 2**53 for value in values) else ""


def _are_objects(rows: list[Any]) -> bool:
    """Return whether there are rows, and all are objects of JSON."""
    return set(map(type, rows)) == {dict}


def _imports(source: Source, *modules: str) -> list[str]:
    names = [*modules, *filter(None, [source.compression])]
    return [f"import {', '.join(names)}"] if names else []


def profile_json(source: Source, text: Text) -> Json | None:
    """Describe a JSON document; None if it is none."""
    repeated = list[str]()
    try:
        value = json.loads(text.text, object_pairs_hook=partial(_object, repeated))
    except (ValueError, RecursionError):
        return None
    read = [*_imports(source, "json"), f"data = json.load({source.opening(text.encoding, text.errors)})"]
    kind = next(
        (kind for keys, kind in NAMES_OF_JSON.items() if isinstance(value, dict) and keys <= value.keys()),
        "JSON",
    )
    profile = profile_value(kind, value, read, [f"encoding {text.encoding}"])
    if repeated:
        profile["notes"] = [f"of keys that an object has twice, such as {repeated[0]}, the last one is read"]
    return profile


def _object(repeated: list[str], pairs: list[tuple[str, Any]]) -> Json:
    """Return an object of JSON, and keep a key that it has twice."""
    value = dict(pairs)
    if len(value) < len(pairs) and not repeated:
        repeated.append(literal(next(key for key in value if [*map(itemgetter(0), pairs)].count(key) > 1)))
    return value


def profile_value(kind: str, value: Any, read: list[str], facts: list[str]) -> Json:
    """Describe a value of mappings and lists, and the records in it.

    Args:
        kind: The format of the file.
        value: Its value.
        read: The lines that read it as `data`.
        facts: What else is to be said of the file.
    """
    if header := _is_table(value):
        read.insert(1, "import pandas as pd")
        read.append(
            "df = pd.DataFrame(data[1:], columns=data[0])" if header == "names" else "df = pd.DataFrame(data)"
        )
        frame = run_lines(read[-1:], data=value)
        return frame_profile(kind, frame, read[-1], len(frame)) | {"read": read}
    path, rows = _records(value)
    profile: Json = {"format": kind, "facts": facts, "read": read}
    if rows is None:
        return profile | {"structure": _structure(value, 0)[:1200]}
    place = "data" + "".join(map("[{}]".format, map(key_of, path)))
    if importlib.util.find_spec("pandas"):
        read.insert(1, "import pandas as pd")
        has_nested = any(dict in map(type, row.values()) for row in rows[:100])
        read.append(
            f"df = pd.json_normalize({place})"
            if has_nested
            else f"df = pd.DataFrame({place}{_as_objects(rows)})"
        )
        columns = _normalized(rows) if has_nested else describe_rows(rows)
    else:
        columns = describe_rows(rows)
    facts.append(plural(len(rows), "record") + (f" in {place}" if path else ""))
    if path:
        profile["structure"] = _structure(value, 0)[:800]
    shown = map(partial(json.dumps, ensure_ascii=False, default=str), rows)
    return profile | {"columns": columns, "column_count": len(columns), "first_rows": _first(shown)}


def _is_table(value: Any) -> str:
    """Return whether a value is a list of rows that are as long, with `names` in the first or `none`; empty if it is not."""
    if not isinstance(value, list) or len(value) < 2 or not importlib.util.find_spec("pandas"):
        return ""
    rows = [row for row in value if isinstance(row, list)]
    scalars = not any(isinstance(item, list | dict) for row in rows[:1000] for item in row)
    if len(rows) < len(value) or len(set(map(len, rows))) > 1 or len(rows[0]) < 2 or not scalars:
        return ""
    has_names = all(isinstance(name, str) for name in rows[0]) and len(set(rows[0])) == len(rows[0])
    return "names" if has_names and rows[0] not in rows[1:] else "none"


def missing_packages(*names: str) -> list[str]:
    """Return a sentence about what is not installed; nothing if all is."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return [f"{' and '.join(missing)} is not installed, so it was not looked at"] if missing else []


def _normalized(rows: list[Json]) -> list[Json]:
    import pandas as pd

    return describe_frame(pd.json_normalize(rows[:MAX_ROWS]))


def _records(value: Any) -> tuple[list[str], list[Json] | None]:
    """Return the path to the longest list of objects at the top or one or two levels below, and the list."""
    best: tuple[list[str], list[Json] | None] = ([], None)
    pending: list[tuple[list[str], Any]] = [([], value)]
    while pending:
        path, item = pending.pop(0)
        if isinstance(item, list) and _are_objects(item):
            if best[1] is None or len(item) > len(best[1]):
                best = (path, item)
        elif isinstance(item, dict) and len(path) < 2:
            for key in itertools.islice(item, 50):
                pending += [([*path, key], item[key])]
    return best


def _structure(value: Any, depth: int) -> str:
    """Return the shape of a value: its keys with their types."""
    if isinstance(value, dict):
        if depth > 2:
            return f"object of {len(value)} keys"
        shown = itertools.islice(value, MAX_NAMES)
        items = ", ".join(f"{str(key)[:60]}: {_structure(value[key], depth + 1)}" for key in shown)
        more = f", and {len(value) - MAX_NAMES} more keys" if len(value) > MAX_NAMES else ""
        return "{" + items + more + "}"
    if isinstance(value, list):
        inner = _structure(value[0], depth + 1) if value else ""
        return f"[{inner}, …] ({len(value)} items)"
    return describe_values([value])[0] if value is not None else "null"


def profile_parquet(source: Source, *, is_arrow: bool) -> Json:
    """Describe a table of Parquet or Arrow."""
    if importlib.util.find_spec("pyarrow") is None or importlib.util.find_spec("pandas") is None:
        name = "Arrow file" if is_arrow else "Parquet"
        return {"format": name, "facts": [], "read": [], "notes": ["pyarrow or pandas is not installed"]}
    if is_arrow:
        import pandas as pd

        frame = pd.read_feather(source.name)
        line = f"df = pd.read_feather({literal(source.name)})"
        return frame_profile("Arrow file", *_with_index(frame, line), len(frame))
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source.name)
    batch = next(file.iter_batches(batch_size=MAX_ROWS), None)
    frame = file.schema_arrow.empty_table().to_pandas() if batch is None else batch.to_pandas()
    count = file.metadata.num_rows
    line = f"df = pd.read_parquet({literal(source.name)})"
    return frame_profile("Parquet", *_with_index(frame, line), count)


def _with_index(frame: Any, line: str) -> tuple[Any, str]:
    """Return a frame whose index is among its columns, and the line for it: what is only in an index would be missed."""
    names = set(map(str, frame.index.names))
    if type(frame.index).__name__ == "RangeIndex" or not names.isdisjoint(map(str, frame.columns)):
        return frame, line
    return frame.reset_index(), f"{line}.reset_index()"


def frame_profile(format_name: str, frame: Any, line: str, count: int) -> Json:
    """Describe a frame, or the first rows of it."""
    hints = [] if count == len(frame) else [f"types and ranges are those of the first {len(frame):,} rows"]
    return {
        "format": format_name,
        "facts": [plural(count, "row"), plural(len(frame.columns), "column")],
        "read": ["import pandas as pd", line],
        "columns": describe_frame(frame),
        "column_count": len(frame.columns),
        "first_rows": list(map(row_text, frame.head(3).values.tolist())),
        "notes": find_traps(frame),
        "hints": hints,
    }


def profile_image(source: Source) -> Json | None:
    """Describe an image by its header; None if it is none."""
    size = _image_size(source.data)
    if size is None:
        return None
    kind, width, height = size
    read = []
    if importlib.util.find_spec("PIL"):
        read = ["from PIL import Image", f"image = Image.open({literal(source.name)})"]
    return {"format": f"{kind} image", "facts": [f"{width} × {height} pixels (width × height)"], "read": read}


def _image_size(data: bytes) -> tuple[str, int, int] | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return ("PNG", *struct.unpack(">II", data[16:24]))
    if data[:6] in (b"GIF87a", b"GIF89a") and len(data) >= 10:
        return ("GIF", *struct.unpack("<HH", data[6:10]))
    if data.startswith(b"BM") and len(data) >= 26:
        width, height = struct.unpack("<ii", data[18:26])
        return "BMP", width, abs(height)
    if data.startswith(b"\xff\xd8\xff"):
        return _jpeg_size(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    return None


def _jpeg_size(data: bytes) -> tuple[str, int, int] | None:
    position = 2
    while position + 9 < len(data) and data[position] == 0xFF:
        marker, length = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return "JPEG", width, height
        position += 2 + max(length, 2)
    return None


def _webp_size(data: bytes) -> tuple[str, int, int] | None:
    if data[12:16] == b"VP8X" and len(data) >= 30:
        width, height = data[24:27], data[27:30]
        return "WebP", int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
    if data[12:16] == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack("<HH", data[26:30])
        return "WebP", width & 0x3FFF, height & 0x3FFF
    if data[12:16] == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return "WebP", (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def profile_text(source: Source, text: Text) -> Json:
    """Describe plain text by its beginning."""
    lines = text.text.count("\n") + (not text.text.endswith("\n"))
    count = lines if source.is_complete else source.count_lines()
    read = [*_imports(source), f"text = {source.opening(text.encoding, text.errors)}.read()"]
    facts = [plural(count, "line"), f"encoding {text.encoding}"]
    return {
        "format": "text",
        "facts": facts,
        "read": read,
        "first_rows": text.text[:MAX_TEXT_CHARS].splitlines(),
    }
