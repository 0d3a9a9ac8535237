"""The program: describes files one by one, each within its own processor time, and prints a line of JSON for each."""

from __future__ import annotations

import contextlib
import csv
import importlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from .archive import profile_archive
from .cells import profile_boxes, profile_fixed
from .database import profile_database
from .delimited import profile_delimited
from .dialect import COMMENT_MARKS, MIN_SCORE, SURE, Dialect, find_dialect, has_spaced_columns
from .documents import (
    profile_image,
    profile_json,
    profile_lines,
    profile_parquet,
    profile_text,
)
from .encoding import Text, decode
from .frames import Json
from .kinds import profile_kind
from .source import Source, load
from .trees import profile_html, profile_settings, profile_xml
from .workbook import profile_workbook

TABLES = {".csv", ".tsv", ".tab", ".psv"}
"""Suffixes of tables; other text is one if a delimiter divides it well."""
OLE2 = b"\xd0\xcf\x11\xe0"
UNREADABLE = (ValueError, LookupError, ArithmeticError, SyntaxError, OSError, csv.Error)
"""What readers raise about a file; all else is a fault of theirs, which the profile names."""
MAX_PROFILE_CHARS, MAX_FIELD_CHARS = 30_000, 1_000_000
LOADING_SECONDS = 8
"""Processor time for loading pandas, which counts for no file: where nothing is compiled that takes seconds."""
COLUMNS, MAX_NOTES = (30, 10, 3), 10
"""Columns of each table, and notes, to which a profile that is too long is shortened."""


def main(names: Sequence[str], seconds: int) -> None:
    """Print a line of JSON for each file: what it is, or that this took too long."""
    csv.field_size_limit(MAX_FIELD_CHARS)
    if len(names) > 1:  # Each process would load it anew.
        with contextlib.suppress(ImportError):
            importlib.import_module("pandas")
    for name in names:
        if not _is_profiled_apart(name, seconds):
            _report(name, _profile(name))


def _is_profiled_apart(name: str, seconds: int) -> bool:
    """Profile a file in a process of its own, which the kernel ends in time; return whether there can be one.

    A signal would wait until the code of a library returns to Python.
    """
    try:
        import resource

        sys.stdout.flush()
        child = os.fork()
    except (ImportError, AttributeError, OSError):
        return False
    if child == 0:
        try:
            seconds += 0 if "pandas" in sys.modules else LOADING_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            _report(name, _profile(name))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        _report(name, {"notes": ["it was not looked at, as this takes too long or too much memory"]})
    return True


def _report(name: str, profile: Json | None) -> None:
    # Invariant: a process that was ended may have left half a line.
    sys.stdout.write("\n" + json.dumps({"name": name, "profile": profile}) + "\n")
    sys.stdout.flush()


def _profile(name: str) -> Json | None:
    try:
        profile = profile_file(name)
    except Exception as error:  # Whatever a file does to a reader, it is described otherwise.
        return {"notes": [f"it was not looked at: {type(error).__name__}"]}
    return None if profile is None else _within_budget(profile)


def _within_budget(profile: Json) -> Json:
    """Shorten a profile that is too long: rows first, then columns of each table, then tables; and say what is left out."""
    for columns in (None, *COLUMNS):
        if _fits(profile):
            return profile
        parts = [_shortened(part, columns) for part in profile.get("parts", [])]
        profile = {**_shortened(profile, columns), "parts": parts}
    parts = profile["parts"]
    while parts and not _fits(profile):
        kept = len(parts) // 2
        notes = [f"of its tables the first {kept} are described, and no others"]
        profile = {
            **profile,
            "parts": (parts := parts[:kept]),
            "notes": [*notes, *profile.get("notes", [])[:MAX_NOTES]],
        }
    return profile if _fits(profile) else {"notes": ["it was not described, as that is too long"]}


def _fits(profile: Json) -> bool:
    return len(json.dumps(profile)) <= MAX_PROFILE_CHARS


def _shortened(table: Json, columns: int | None) -> Json:
    """Return a table with its first row alone, and with its first columns if there is a limit; the others are counted."""
    short = {name: value for name, value in table.items() if name not in ("all_rows", "structure")}
    short["first_rows"] = table.get("first_rows", [])[:1]
    found = table.get("columns", [])
    if columns is not None and len(found) > columns:
        short |= {"columns": found[:columns], "column_count": max(len(found), table.get("column_count") or 0)}
    return short


def profile_file(name: str, *, is_member: bool = False) -> Json | None:
    """Describe a file; None if there is nothing to say of it.

    Args:
        name: Its name.
        is_member: Whether it is of an archive, so that one within it is not opened.
    """
    source = load(name)
    if not source.data:
        return {"format": "empty file", "facts": [], "read": []}
    if (profile := _profile_binary(source, is_member=is_member)) is not None:
        return profile
    text = decode(source.data, is_complete=source.is_complete)
    if (profile := profile_kind(source, text.encoding if text else "")) is not None:
        return profile
    if text is None:
        return {"format": "binary", "facts": [], "read": []}
    profile = _profile_text(source, text)
    return profile | {"notes": [*text.notes, *profile.get("notes", [])]}


def _profile_binary(source: Source, *, is_member: bool) -> Json | None:
    data = source.data
    if data.startswith(b"SQLite format 3\0"):
        return profile_database(source)
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")) or data[257:262] == b"ustar":
        if workbook := profile_workbook(source):
            return workbook
        # Invariant: an archive within an archive is not opened.
        return None if is_member else profile_archive(source, partial(profile_file, is_member=True))
    if data.startswith(OLE2) and (workbook := profile_workbook(source)):
        return workbook
    if data.startswith((b"PAR1", b"ARROW1")):
        return profile_parquet(source, is_arrow=data.startswith(b"ARROW1"))
    return profile_image(source)


def _profile_text(source: Source, text: Text) -> Json:
    """Describe text by the first reader that makes something of it."""
    for profiler in TEXTS:
        # What looks like something and cannot be read as that is something else.
        with contextlib.suppress(*UNREADABLE):
            if (profile := profiler(source, text)) is not None:
                return profile
    return profile_text(source, text)


def _profile_json(source: Source, text: Text) -> Json | None:
    if source.suffix not in (".jsonl", ".ndjson") and text.text.lstrip()[:1] not in ("{", "["):
        return None
    profile = profile_json(source, text) if source.is_complete else None
    return profile or profile_lines(source, text)


def _profile_table(source: Source, text: Text) -> Json | None:
    """Describe delimited text; None if it is none, or cannot be read as one."""
    dialect, score = find_dialect(text.text)
    is_spaced = score <= MIN_SCORE and has_spaced_columns(text.text)
    if is_spaced:
        words = "\n".join(map(_with_tabs, text.text.splitlines()))
        dialect, text = Dialect("\t"), replace(text, text=f"{words}\n")
    elif source.suffix not in TABLES and score < SURE:
        return None
    # Invariant: what cannot be read with quotes, as one of them has no end, is read without.
    for candidate in (dialect, replace(dialect, quote="")):
        with contextlib.suppress(*UNREADABLE):
            return profile_delimited(source, text, candidate, is_spaced=is_spaced)
    return None


def _with_tabs(line: str) -> str:
    """Return a line with tabs between its words, or a comment as it is."""
    return line if line[:1] in {*COMMENT_MARKS} else "\t".join(line.split())


TEXTS = (
    *(_profile_json, profile_html, profile_xml, profile_settings, profile_boxes),
    *(_profile_table, profile_fixed),
)
"""What reads text, in the order in which it is tried."""
