"""Archives: what is in them, and how the tables among that are read."""

from __future__ import annotations

import itertools
import os
import re
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from .columns import literal
from .frames import Json, plural
from .kinds import profile_kind
from .source import COMPRESSIONS, Source

MAX_NAMES, MAX_MEMBERS, MAX_EXPANDED_BYTES = 20, 2000, 100 << 20
MAX_PARTS, PART_BYTES, PART_SECONDS = 5, 20 << 20, 0.8
"""Tables that are described, their size, and the processor time after which no further one is."""
SUFFIXES = {suffix for _, _, suffix in COMPRESSIONS}
Profiler = Callable[[str], Json | None]
Opener = Callable[[str], Any]


def profile_archive(source: Source, profile_member: Profiler) -> Json:
    """Describe an archive by the tables and the names in it, or the document that is one.

    Args:
        source: The archive.
        profile_member: What describes a file of it.
    """
    if source.data[257:262] == b"ustar":
        with tarfile.open(source.name) as archive:
            files = filter(tarfile.TarInfo.isfile, itertools.islice(archive, MAX_MEMBERS))
            sizes = {entry.name: entry.size for entry in files}
            return _profile(
                source, "tarfile.open({}).extractfile", sizes, archive.extractfile, profile_member
            )
    with zipfile.ZipFile(source.name) as archive_of_zip:
        entries = list(itertools.filterfalse(zipfile.ZipInfo.is_dir, archive_of_zip.infolist()))
        sizes = {entry.filename: entry.file_size for entry in entries}
        is_locked = any(entry.flag_bits & 1 for entry in entries)
        if not is_locked and sum(sizes.values()) <= MAX_EXPANDED_BYTES:
            head = "\n".join(["PK", *sizes]).encode(errors="replace")
            if profile := profile_kind(source, "utf-8", head):
                return profile
        opened = archive_of_zip.open
        return _profile(
            source, "zipfile.ZipFile({}).open", sizes, opened, None if is_locked else profile_member
        )


def _profile(
    source: Source, template: str, sizes: dict[str, int], opened: Opener, profile_member: Profiler | None
) -> Json:
    """Describe an archive; one that has a password, without what describes a file of it."""
    name, parts, end = literal(source.name), list[Json](), time.process_time() + PART_SECONDS
    for member in itertools.islice(sizes, MAX_NAMES):
        is_hidden = "__MACOSX" in member or os.path.basename(member).startswith(".")
        is_in_time = len(parts) < MAX_PARTS and time.process_time() < end
        if profile_member and is_in_time and not is_hidden and 0 < sizes[member] <= PART_BYTES:
            parts += _tables(member, opened, f"{template.format(name)}({literal(member)})", profile_member)
    module = template.partition(".")[0]
    kind, facts = f"{module[:3].upper()} archive", [plural(len(sizes), "file")]
    if len(sizes) == len(parts) == 1:
        call = f"pd.read_csv({template.format(name)}({literal(member)})"
        lines = parts[0]["read"]
        if source.name.lower().endswith(".zip") and "compression=" not in lines[-1] and call in lines[-1]:
            parts[0]["read"] = [line.replace(call, f"pd.read_csv({name}") for line in lines[1:]]
        return parts[0] | {
            "format": f"{parts[0]['format']} in a {kind}",
            "facts": [*facts, *parts[0]["facts"]],
        }
    shown = [f"{member[:80]} ({size:,} bytes)" for member, size in itertools.islice(sizes.items(), MAX_NAMES)]
    more = [f"and {len(sizes) - MAX_NAMES:,} more"] if len(sizes) > MAX_NAMES else []
    return {
        "format": kind,
        "facts": facts,
        "read": [f"import {module}", f"archive = {template.format(name).rpartition('.')[0]}"],
        "parts": parts,
        "structure": ", ".join([*shown, *more]),
        "notes": [] if profile_member else ["it has a password, so its files were not looked at"],
    }


def _tables(member: str, opened: Opener, expression: str, profile_member: Profiler) -> Iterator[Json]:
    """Profile a copy of a file, and have the lines read the file in the archive instead."""
    with tempfile.TemporaryDirectory() as folder:
        suffix = os.path.splitext(member)[1].lower()
        # Invariant: what is compressed has no suffix here, so that the line names the compression.
        copy = os.path.join(folder, f"member{suffix if suffix not in SUFFIXES else ''}")
        with opened(member) as file, open(copy, "wb") as target:
            target.write(file.read(PART_BYTES))
        profile = profile_member(copy) or {}
    for table in profile.get("parts") or [profile]:
        lines = _lines(table.get("read", []), copy, expression)
        if table.get("columns") and lines:
            inner = f": {table['name']}" if "name" in table else ""
            yield {"format": profile["format"], **table, "name": f"{member}{inner}", "read": lines}


def _lines(lines: list[str], copy: str, expression: str) -> list[str]:
    """Return lines that read a file in an archive instead of its copy; nothing if they need a file of their own."""
    as_text = re.compile(rf"(?<![\w.])open\({re.escape(literal(copy))}")
    replaced = [as_text.sub(lambda _: f"io.TextIOWrapper({expression}", line) for line in lines]
    replaced = [line.replace(literal(copy), expression) for line in replaced]
    if any(copy in line or "sqlite3" in line for line in replaced):
        return []
    return [f"import io, {expression.partition('.')[0]}", *replaced]
