"""Receipts: what an answer was computed from, made of what a chain was given and returned."""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from code_chains._version import __version__
from code_chains.analysis.parsing import parse
from code_chains.analysis.references import read
from code_chains.errors import InputError, StoreError
from code_chains.executors.distributions import distribution_of
from code_chains.executors.guest.serialization import size_of
from code_chains.executors.limits import Limits
from code_chains.executors.values import (
    check_json_variables,
    describe_variables,
    pack_value,
)
from code_chains.records import Artifact, Record
from code_chains.state import Execution
from code_chains.verification.grounding import (
    places_of_numbers,
)

FORMAT = "code-chains receipt 2"
MAX_OUTPUT_CHARS = 20_000
MAX_VALUES = 50
_MAX_PACKED_ITEMS, _MAX_PACKED_CHARS = 10_000, 100_000
"""Larger values of types that JSON lacks are in a receipt by their checksum only."""
TIMED = (".pdf", ".xlsx", ".docx", ".pptx", ".zip", ".gz", ".svg", ".ps", ".eps", ".ods", ".parquet")
"""Formats in which the time or an identifier stands, so that the same program makes another file each time."""
_SHOWING = ("print", "pprint", "display")


@dataclass(frozen=True)
class GivenFile(Record):
    """A file that a program was given.

    Attributes:
        sha256: The checksum of its content, in hexadecimal digits.
        bytes: Its size.
    """

    sha256: str
    bytes: int


@dataclass(frozen=True)
class StatedValue(Record):
    """A number of an answer, and where it comes from.

    Attributes:
        text: The number, as the answer writes it.
        output_line: The first line of the output that has it, from 1; None if none has.
    """

    text: str
    output_line: int | None


@dataclass(frozen=True)
class Receipt(Record):
    """What an answer was computed from: the question, the program and its output, but no content of files.

    Data that is pasted into the question is part of it. The same question with the same outcome has the same receipt.

    Attributes:
        question: The question.
        program: The program.
        language: The language that it is in: `python` or `sql`.
        files: What it was given, by name.
        variables: Its variables that are JSON.
        packed_variables: Those of other types, such as dates, sets and small tables, each as the text of JSON that names the
            types.
        other_variables: Checksums of all others, by name.
        stdin: What it could read from its standard input.
        in_session: Whether it ran in a conversation, where earlier programs may have set what it uses.
        output: What it showed, at most 20,000 characters.
        output_sha256: The checksum of the whole.
        artifacts: Checksums of the files and figures that it made, by name; empty for formats that hold the time.
        limits: How many seconds and bytes of memory it had.
        answer: The answer in words; empty if no model phrased it.
        values: The numbers of the answer, or without one of the output.
        lines: The lines of the program that show something, from 1.
        verdict: Status, reason and who decided.
        isolation: How the program was isolated; None if it was not.
        notes: What reading the files left out.
        versions: Of this package, Python, and the packages that the program imports.
        failure: Why the program failed; empty if it ran to its end.
        format: The version of this form.
        sha256: The checksum of all else: it tells slips, not forgeries, as anybody can compute it.
    """

    question: str
    program: str
    language: str
    files: dict[str, GivenFile]
    variables: dict[str, Any]
    packed_variables: dict[str, str]
    other_variables: dict[str, str]
    stdin: str
    in_session: bool
    output: str
    output_sha256: str
    artifacts: dict[str, str]
    limits: dict[str, float]
    answer: str
    values: tuple[StatedValue, ...]
    lines: tuple[int, ...]
    verdict: dict[str, Any]
    isolation: dict[str, Any] | None
    notes: tuple[str, ...]
    versions: dict[str, str]
    failure: str = ""
    format: str = FORMAT
    sha256: str = field(default="")

    def checksum(self) -> str:
        """Return the checksum of everything but the checksum itself."""
        content = {key: value for key, value in self.to_dict().items() if key != "sha256"}
        return sha256_of(json.dumps(content, sort_keys=True, ensure_ascii=False))


def save_receipt(receipt: Mapping[str, Any], path: Path) -> None:
    """Save a receipt as JSON.

    Raises:
        StoreError: It cannot be written; nothing is left then.
    """
    from code_chains.storage.files import atomic_write

    try:
        atomic_write(path, f"{json.dumps(receipt, ensure_ascii=False, indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(f"The receipt cannot be saved: {error}") from error


def create_receipt(
    given: Mapping[str, Any],
    outcome: Mapping[str, Any],
    *,
    language: str = "python",
    limits: Limits | None = None,
) -> Receipt:
    """Return the receipt of an answer.

    Args:
        given: The question with its `files` (paths), `variables` and `stdin`, and the `session` if there was one.
        outcome: What the chain added: `code`, `execution`, `verdict`, and if present `answer` and `notes`.
        language: The language of the program.
        limits: What the program was allowed, if that is known.
    """
    execution: Execution = outcome["execution"]
    code, output = valid_text(str(outcome.get("code") or "")), execution.output
    plain, packed, others = _variables(given.get("variables") or {})
    answer = valid_text(str(outcome.get("answer") or ""))
    places = places_of_numbers(answer or output, output[:MAX_OUTPUT_CHARS], MAX_VALUES)
    receipt = {
        "question": valid_text(str(given.get("query") or "")),
        "program": code,
        "language": language,
        "files": {name: given_file(path) for name, path in (given.get("files") or {}).items()},
        "variables": plain,
        "packed_variables": packed,
        "other_variables": others,
        "stdin": valid_text(str(given.get("stdin") or "")),
        "in_session": given.get("session") is not None,
        "output": valid_text(output[:MAX_OUTPUT_CHARS]),
        "output_sha256": sha256_of(output),
        "failure": "" if execution.ok else valid_text(execution.summary),
        "artifacts": checksums(execution.artifacts),
        "limits": {"seconds": limits.seconds, "memory": limits.memory_bytes} if limits else {},
        "answer": answer,
        "values": tuple(itertools.starmap(StatedValue, places.items())),
        "lines": tuple(_showing_lines(code)) if language == "python" else (),
        "verdict": outcome["verdict"].to_dict(),
        "isolation": execution.isolation.to_dict() if execution.isolation else None,
        "notes": tuple(outcome.get("notes") or ()),
        "versions": versions_of(code),
    }
    unsigned = Receipt(**receipt)
    return replace(unsigned, sha256=unsigned.checksum())


def checksums(artifacts: Iterable[Artifact]) -> dict[str, str]:
    """Return the checksums of files by their names; empty for formats in which the time stands."""
    made = {artifact.name: hashlib.sha256(artifact.data).hexdigest() for artifact in artifacts}
    return made | dict.fromkeys((name for name in made if name.casefold().endswith(TIMED)), "")


def valid_text(text: str) -> str:
    """Return text that JSON can have: what is broken of it is shown as a question mark."""
    return text.encode("utf-8", "replace").decode()


def sha256_of(text: str) -> str:
    """Return the checksum of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def given_file(path: Any) -> GivenFile:
    """Return the record of a file."""
    from code_chains.storage.files import sha256_file

    return GivenFile(sha256_file(Path(path)), os.stat(path).st_size)


def _variables(variables: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """Return the variables that are JSON, those that JSON describes with their types, and checksums of the others."""
    plain: dict[str, Any] = {}
    packed: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, value in variables.items():
        try:
            checked = check_json_variables({name: value})
            _check_text(checked)
            plain |= checked
        except (InputError, ValueError):
            if (content := _packed(name, value)) is not None:
                packed[name] = content
            else:
                described = json.dumps(describe_variables({name: value}), sort_keys=True, default=str)
                others[name] = sha256_of(described)
    return plain, packed, others


def _check_text(value: Any) -> None:
    """Raise `ValueError` for what JSON has no word for: broken text, the longest integers, and infinity."""
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _packed(name: str, value: Any) -> str | None:
    """Return a value as the text of JSON that names its types; None if it is too large or cannot be so."""
    with suppress(InputError, ValueError):
        if size_of(value) <= _MAX_PACKED_ITEMS:
            text = json.dumps(pack_value(name, value), ensure_ascii=False)
            text.encode()
            return text if len(text) <= _MAX_PACKED_CHARS else None
    return None


def _showing_lines(code: str) -> Iterator[int]:
    """Yield the lines of a program that show something: calls of print and the like, and its last expression."""
    tree = parse(code)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in _SHOWING:
            yield node.lineno
    if tree.body and isinstance(last := tree.body[-1], ast.Expr) and not isinstance(last.value, ast.Call):
        yield last.lineno


def versions_of(code: str) -> dict[str, str]:
    """Return the versions of what a program ran with."""
    versions = {"code-chains": __version__, "python": platform.python_version()}
    reading = read(code)
    modules = {imported.name.partition(".")[0] for imported in reading.imports} if reading else set()
    for module in sorted(modules - sys.stdlib_module_names):
        package = distribution_of(module)
        if version := installed_version(package):
            versions[package] = version
    return versions


@cache
def installed_version(package: str) -> str:
    """Return the version of a package, which stays as it is in a process that has loaded it; empty if there is none."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return ""
