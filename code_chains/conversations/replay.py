"""What running a turn again takes: its inputs, the seed of random numbers, and values that may differ."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from code_chains.analysis.determinism import is_repeatable
from code_chains.errors import CodeChainsError
from code_chains.executors.base import Session, discard
from code_chains.executors.guest.serialization import no_object, unpack
from code_chains.executors.sandbox.tables import read_value, write_value
from code_chains.executors.values import pack_value, value_of
from code_chains.state import Artifact, Execution, Turn
from code_chains.storage.foreign import open_file, read_bytes

MAX_TURN_BYTES, MAX_SESSION_BYTES = 32 << 20, 128 << 20
"""Bytes of inputs that are kept of a turn, and of a conversation."""
_MAX_VALUES_CHARS = 1_000_000
_SEED = """
def _seed(seed):
    import hashlib, itertools, os, random, sys
    _numbers = itertools.count()
    def urandom(size):
        return hashlib.shake_256(f"{seed} {next(_numbers)}".encode()).digest(size)
    os.urandom = random._urandom = urandom
    def seed_one(self, a=None, version=2, _seed=random.Random.seed):
        _seed(self, int.from_bytes(urandom(32), "big") if a is None else a, version)
    random.Random.seed = seed_one
    random.seed = random._inst.seed
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
"""
_VALUES = """
def _values(names):
    import datetime, decimal
    _scalars = {type(None), bool, int, float, complex, str, bytes, decimal.Decimal}
    _scalars |= {datetime.date, datetime.time, datetime.datetime, datetime.timedelta}
    _columns = {"bool", "int64", "float64", "object", "str", "datetime64[ns]", "datetime64[us]"}
    def _is_plain(value, depth=0):
        _kind = type(value)
        if _kind in (list, set, frozenset) or _kind is tuple and not depth:
            return len(value) <= 10_000 and depth < 9 and all(_is_plain(item, depth + 1) for item in value)
        if _kind is dict:
            return _is_plain([*value], depth) and _is_plain([*value.values()], depth)
        _name = f"{_kind.__module__.partition('.')[0]}.{_kind.__name__}"
        if _name == "numpy.ndarray":
            return value.size <= 10_000 and value.dtype.kind in "biufM"
        if _name in ("pandas.DataFrame", "pandas.Series"):
            return value.size <= 10_000 and {str(value[part].dtype) for part in value} <= _columns
        if _name in ("pandas.Timestamp", "pandas.Timedelta"):
            return True
        return _kind in _scalars and (_kind not in (str, bytes) or len(value) <= 100_000)
    def _digest(value):
        import hashlib, pickle
        if hasattr(value, "__closure__"):
            value = [value.__defaults__, value.__kwdefaults__, [_cell.cell_contents for _cell in value.__closure__ or ()]]
        try:
            return hashlib.sha256(pickle.dumps(value, 4)).hexdigest()
        except Exception:
            return ""  # As of a module or a connection: nobody can tell whether it is the same.
    _there = {_name: globals()[_name] for _name in names if _name in globals()}
    _plain = {_name: _value for _name, _value in _there.items() if _is_plain(_value)}
    return _plain, {_name: _digest(_value) for _name, _value in _there.items() if _name not in _plain}
"""
_WRITE = """
for _name in _files:
    with open(_name, "wb") as _file: _file.write(_files[_name])
del _files
"""
_RESTORE = """
def _restore(values):
    import sys
    held, names = [], {}
    for name in values:
        before, names[name] = globals().get(name), [name]
        library = type(before).__module__.partition(".")[0]
        if isinstance(before, (list, dict, set, bytearray)) or library in ("numpy", "pandas"):
            names[name] = [each for each, other in globals().items() if other is before]
            held += [name] * (sys.getrefcount(before) - len(names[name]) - 2 > 0)
    for name, value in values.items():
        globals().update(dict.fromkeys(names[name], value))
    return sorted(held)
"""
_DIGEST = "digest"
"""What stands for a value that is no plain one, with its checksum."""


@dataclass
class Inputs:
    """The inputs of a turn.

    Attributes:
        files: The files by name.
        variables: The variables by name.
        values: Packed values that the program left and that may differ when it runs again; checksums of others.
        made: Returns the artifacts that it had.
        seed: The seed of its session; None if that is unknown.
        stdin: What it read from its standard input; None if there was none.
        missing: Names of inputs that were not kept.
    """

    files: dict[str, Any]
    variables: dict[str, Any]
    values: dict[str, Any] = field(default_factory=dict)
    made: Callable[[], Iterable[Artifact]] = tuple
    seed: int | None = None
    stdin: str | None = None
    missing: set[str] = field(default_factory=set)


# -- in a store ----------------------------------------------------------------------------------------------


def describe(
    files: Mapping[str, Path], variables: Mapping[str, Any], kept: Collection[str]
) -> tuple[dict[str, JsonValue], dict[str, bytes]]:
    """Return a record of inputs, and the contents that it names by their hash and size.

    Args:
        files: Files by name.
        variables: Checked variables by name; those that are JSON are part of the turn.
        kept: Names of contents of the conversation, which are not kept twice.
    """
    contents: dict[str, bytes] = {}
    room = min(MAX_TURN_BYTES, MAX_SESSION_BYTES - sum(int(name.rpartition("-")[2]) for name in kept))

    def keep(size: int, read: Callable[[], bytes]) -> dict[str, JsonValue]:
        nonlocal room
        if size > room or len(data := read()) > room:
            return {}
        name = _name_of(data)
        if name not in kept and name not in contents:
            contents[name] = data
            room -= len(data)
        return {"content": name}

    kept_files: dict[str, JsonValue] = {}
    for name, path in files.items():
        status = path.stat()
        mark: list[JsonValue] = [status.st_size, status.st_mtime_ns]
        content = keep(status.st_size, partial(read_bytes, path, MAX_TURN_BYTES))
        kept_files[name] = {"path": str(path.absolute()), "mark": mark, **content}
    kept_variables: dict[str, JsonValue] = {}
    for name, value in variables.items():
        kind, label, data = write_value(name, value)
        kept_variables[name] = {"kind": kind, "label": label, **keep(len(data), partial(bytes, data))}
    return {"files": kept_files, "variables": kept_variables}, contents


def cause_of(turn: Turn, record: Mapping[str, Any]) -> list[JsonValue] | None:
    """Return what a turn did to the state; None if its program may do something else the next time."""
    inputs = {**record.get("files", {}), **record.get("variables", {})}
    if (
        not is_repeatable(turn.code)
        or record.get("values")
        or not all("content" in found for found in inputs.values())
    ):
        return None
    contents: dict[str, JsonValue] = {name: found["content"] for name, found in inputs.items()}
    return [turn.code, turn.variables, contents, record.get("stdin")]


def rebuild(
    turn: Turn,
    record: Mapping[str, Any],
    content: Callable[[str], bytes | None],
    *,
    trusts_paths: bool = False,
) -> Inputs:
    """Return the inputs of a turn.

    Args:
        turn: The turn.
        record: What `describe` returned; empty for a turn of an earlier version, which has paths.
        content: Returns a content by its name; None if it is not there any more.
        trusts_paths: Whether a path counts without what the file was like, as nobody but the user could have written it.
    """
    inputs = Inputs({}, dict(turn.variables), record.get("values", {}))
    inputs.seed, inputs.stdin = record.get("seed"), record.get("stdin")
    files = record.get("files", {name: {"path": path} for name, path in turn.files.items()})
    for name, found in files.items():
        data = _intact(found, content)
        is_own = trusts_paths and "mark" not in found and Path(found["path"]).is_file()
        if data is not None or is_own or _is_unchanged(found):
            inputs.files[name] = Path(found["path"]) if data is None else data
        else:
            inputs.missing.add(name)
    for name, found in record.get("variables", {}).items():
        data = _intact(found, content)
        if data is not None:
            inputs.variables[name] = read_value(found["kind"], found["label"], data)
        else:
            inputs.missing.add(name)
    return inputs


def _intact(found: Mapping[str, Any], content: Callable[[str], bytes | None]) -> bytes | None:
    """Return a content if it was kept and is what its hash says."""
    name = found.get("content")
    data = None if name is None else content(name)
    return data if data is not None and name == _name_of(data) else None


def _name_of(data: bytes) -> str:
    return f"{sha256(data).hexdigest()}-{len(data)}"


def _is_unchanged(found: Mapping[str, Any]) -> bool:
    """Return whether a file that was too large to be kept is what it was; others may have written the path of another."""
    try:
        with open_file(Path(found["path"])) as file:
            status = os.fstat(file.fileno())
    except (OSError, ValueError, TypeError):
        return False
    return bool(found.get("mark") == [status.st_size, status.st_mtime_ns])


# -- in a session --------------------------------------------------------------------------------------------


def seed_session(session: Session, seed: int) -> None:
    """Let the random numbers of all programs of a session follow from a seed, also those of the system."""
    session.run(f"{_SEED}_seed({seed})\ndel _seed")


def changing_values(session: Session, code: str, execution: Execution | None) -> dict[str, JsonValue]:
    """Return packed values of a program that may differ the next time: it reads a clock, say, or calls tools."""
    if is_repeatable(code) and not (execution and execution.tool_calls):
        return {}
    return _values(session, re.findall(r"\b[^\W\d_]\w*", code))


def _values(session: Session, names: Iterable[str]) -> dict[str, JsonValue]:
    if not session.returns_values:
        return {}
    code = f"{_VALUES}_values({sorted({*names})!r})"
    try:
        values, digests = value_of(session.run(code, return_value=True, check=discard))
    except (CodeChainsError, LookupError):
        return {}
    packed = {str(name): pack_value(str(name), value) for name, value in values.items()}
    packed = packed if len(json.dumps(packed)) <= _MAX_VALUES_CHARS else {}
    return {**packed, **{name: {_DIGEST: digest} for name, digest in digests.items()}}


def restore_files(session: Session, inputs: Inputs, execution: Execution) -> bool:
    """Give files that a program made again the content that they had, and return whether that differed.

    Images are left as they are: a figure need not be a file.
    """
    made = {each.name: each.data for each in inputs.made()} if execution.artifacts else {}
    again = {each.name: each.data for each in execution.artifacts if not each.media_type.startswith("image/")}
    changed = {name: made[name] for name in again.keys() & made.keys() if again[name] != made[name]}
    if changed:
        session.run(_WRITE, variables={"_files": changed})
    return bool(changed)


def restore_values(session: Session, inputs: Inputs) -> tuple[list[str], list[str]]:
    """Give variables of a session the values that they had, where they differ.

    Other names of a value are given it, too; what holds it within a list or an object has the one that was computed anew.

    Returns:
        Names of values that others hold as well, and names of objects that differ.
    """
    found = _values(session, inputs.values) if inputs.values else {}
    changed = {name: value for name, value in inputs.values.items() if found.get(name) != value}
    differing = sorted(
        name for name, value in changed.items() if isinstance(value, dict) and _DIGEST in value
    )
    plain = {name: unpack(value, no_object) for name, value in changed.items() if name not in differing}
    if not plain:
        return [], differing
    code = f"{_RESTORE}_restore(_changed)"
    done = session.run(code, variables={"_changed": plain}, return_value=True)
    return (value_of(done) if done.ok else []), differing
