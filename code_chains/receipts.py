"""Receipts: what an answer was computed from, so that anybody can compute it again without a model."""

from __future__ import annotations

import ast
import codecs
import hashlib
import itertools
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from code_chains._version import __version__
from code_chains.analysis.determinism import is_repeatable
from code_chains.analysis.parsing import parse
from code_chains.analysis.references import read
from code_chains.analysis.well_known_imports import distribution_of
from code_chains.errors import InputError, StoreError
from code_chains.executors.base import Executor
from code_chains.executors.guest.serialization import size_of
from code_chains.executors.limits import Limits
from code_chains.executors.values import (
    check_json_variables,
    describe_variables,
    pack_value,
    unpack_untrusted,
)
from code_chains.inputs import files_on_disk
from code_chains.inputs.pasted import find_data
from code_chains.records import Artifact, Record
from code_chains.state import Execution
from code_chains.storage.files import atomic_write, sha256_file
from code_chains.verification.grounding import places_of_numbers
from code_chains.verification.provenance import may_reach, names_from_elsewhere

FORMAT = "code-chains receipt 2"
_MAX_OUTPUT_CHARS = 20_000
_MAX_VALUES = 50
_MAX_PACKED_ITEMS, _MAX_PACKED_CHARS = 10_000, 100_000
"""Larger values of types that JSON lacks are in a receipt by their checksum only."""
_TIMED = (".pdf", ".xlsx", ".docx", ".pptx", ".zip", ".gz", ".svg", ".ps", ".eps", ".ods", ".parquet")
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
        return _sha256(json.dumps(content, sort_keys=True, ensure_ascii=False))


def save_receipt(receipt: Mapping[str, Any], path: Path) -> None:
    """Save a receipt as JSON.

    Raises:
        StoreError: It cannot be written; nothing is left then.
    """
    try:
        atomic_write(path, f"{json.dumps(receipt, ensure_ascii=False, indent=2)}\n".encode())
    except OSError as error:
        raise StoreError(f"The receipt cannot be saved: {error}") from error


@dataclass(frozen=True)
class Comparison:
    """What came of running a program again.

    Attributes:
        status: `same` or `different` output, or `unknown`: it could not be run as it was.
        reason: Why, as a sentence.
    """

    status: Literal["same", "different", "unknown"]
    reason: str


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
    code, output = _valid(str(outcome.get("code") or "")), execution.output
    plain, packed, others = _variables(given.get("variables") or {})
    answer = _valid(str(outcome.get("answer") or ""))
    places = places_of_numbers(answer or output, output[:_MAX_OUTPUT_CHARS], _MAX_VALUES)
    receipt = {
        "question": _valid(str(given.get("query") or "")),
        "program": code,
        "language": language,
        "files": {name: _file(path) for name, path in (given.get("files") or {}).items()},
        "variables": plain,
        "packed_variables": packed,
        "other_variables": others,
        "stdin": _valid(str(given.get("stdin") or "")),
        "in_session": given.get("session") is not None,
        "output": _valid(output[:_MAX_OUTPUT_CHARS]),
        "output_sha256": _sha256(output),
        "failure": "" if execution.ok else _valid(execution.summary),
        "artifacts": _checksums(execution.artifacts),
        "limits": {"seconds": limits.seconds, "memory": limits.memory_bytes} if limits else {},
        "answer": answer,
        "values": tuple(itertools.starmap(StatedValue, places.items())),
        "lines": tuple(_showing_lines(code)) if language == "python" else (),
        "verdict": outcome["verdict"].to_dict(),
        "isolation": execution.isolation.to_dict() if execution.isolation else None,
        "notes": tuple(outcome.get("notes") or ()),
        "versions": _versions(code),
    }
    unsigned = Receipt(**receipt)
    return replace(unsigned, sha256=unsigned.checksum())


def read_receipt(source: str | os.PathLike[str] | Mapping[str, Any]) -> Receipt:
    """Return a receipt from its JSON.

    Args:
        source: The JSON as text or as `result["receipt"]` has it, or the `pathlib.Path` of a file that contains it.

    Raises:
        InputError: It is no receipt, of another version, or was changed; or the file cannot be read.
    """
    try:
        data = (
            dict(source)
            if isinstance(source, Mapping)
            else json.loads(_text_of(source), parse_constant=_refused)
        )
        if not isinstance(data, dict):
            raise InputError("This is no receipt of an answer: it must be a JSON object.")
        if data.get("format", FORMAT) != FORMAT:
            raise InputError(f"This receipt has the form {data['format']!r}; this version reads {FORMAT!r}.")
        receipt = Receipt.from_dict(data)
    except InputError:
        raise
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"This is no receipt of an answer: {place}: {first['msg']}.") from error
    except (ValueError, TypeError, RecursionError) as error:
        remedy = "Pass the JSON of one, result['receipt'], or pathlib.Path(…) for a file."
        raise InputError(f"This is no receipt of an answer: {str(error).rstrip('.')}. {remedy}") from error
    if receipt.checksum() != receipt.sha256:
        raise InputError("The receipt was changed after it was written: its checksum is another one.")
    return receipt


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _text_of(source: str | os.PathLike[str]) -> str:
    if isinstance(source, str):
        return source
    try:
        return decoded(Path(source).read_bytes())
    except OSError as error:
        raise InputError(f"The receipt cannot be read: {error}") from error


def decoded(data: bytes) -> str:
    """Return the text of a receipt or a results file, as editors and shells save it: in UTF-8, or UTF-16 with its mark.

    Raises:
        InputError: It is in another encoding, or no text.
    """
    encoding = "utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError("The receipt is no text in UTF-8. Save it again in this encoding.") from error


def run_again(
    receipt: Receipt | Mapping[str, Any],
    executor: Executor,
    *,
    files: Mapping[str, Any] | Sequence[Any] | None = None,
) -> Comparison:
    """Run the program of a receipt again, without a model, and compare what it shows.

    Args:
        receipt: The receipt, or its JSON as `result["receipt"]` has it.
        executor: Where the program runs.
        files: The files that it was given, in any form that a question takes: paths, bytes or open files by name, or a
            list of paths.

    Raises:
        InputError: This is no receipt, or a file cannot be read.
    """
    receipt = receipt if isinstance(receipt, Receipt) else read_receipt(receipt)
    with files_on_disk(files) as given, files_on_disk(_pasted(receipt, given)) as pasted:
        paths = {**pasted, **given}
        if obstacle := _obstacle(receipt, executor, paths):
            return Comparison("unknown", obstacle)
        variables = {**receipt.variables, **_unpacked(receipt.packed_variables)}
        # A turn of a conversation may read files of earlier ones.
        names = paths if receipt.in_session else receipt.files
        inputs: dict[str, Any] = {"files": {name: paths[name] for name in names}}
        inputs |= {"variables": variables, "stdin": receipt.stdin}
        again = executor.run(receipt.program, **{key: value for key, value in inputs.items() if value})
    return _compared(receipt, again)


def _pasted(receipt: Receipt, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the files that were made of data in the question, as far as they are not given."""
    missing = receipt.files.keys() - given.keys()
    if not missing:
        return {}
    taken = dict.fromkeys([*(receipt.files.keys() - missing), *receipt.variables])
    session = "receipt" if receipt.in_session else None
    paste = None
    with suppress(InputError):  # Anybody may have written the question.
        paste = find_data({"query": receipt.question, "variables": taken, "session": session})
    return {name: content for name, content in paste.files.items() if name in missing} if paste else {}


def _compared(receipt: Receipt, again: Execution) -> Comparison:
    shows_same = _valid(again.output[:_MAX_OUTPUT_CHARS]) == receipt.output
    ends_same = receipt.failure == ("" if again.ok else _valid(again.summary))
    if ends_same and shows_same and _sha256(again.output) == receipt.output_sha256:
        return _compared_artifacts(receipt, again)
    if receipt.in_session and (not again.ok or may_reach(receipt.program, "")):
        names = sorted(set(names_from_elsewhere(receipt.program)) - receipt.variables.keys())
        others = f"that set {', '.join(names)}" if names else "that may have left what it reads"
        return Comparison("unknown", f"The program ran in a conversation, after others {others}.")
    if again.error is not None and again.error.type == "NameError":
        return Comparison(
            "unknown", f"The program uses what no receipt has, such as a tool: {again.error.message}."
        )
    if not again.ok:
        return Comparison(
            "different", f"The program fails now: {again.summary}{_limits_then(receipt, again)}"
        )
    if receipt.failure:
        return Comparison("different", f"The program runs to its end now. It failed then: {receipt.failure}")
    shown = again.output.strip()[:200]
    if not is_repeatable(receipt.program):
        return Comparison("different", f"The program depends on time or chance. It shows now: {shown}")
    return Comparison("different", f"The program shows now: {shown}{_because(receipt)}")


def _compared_artifacts(receipt: Receipt, again: Execution) -> Comparison:
    made = _checksums(again.artifacts)
    if not (receipt.output or receipt.artifacts or receipt.failure):
        return Comparison("unknown", "The program shows nothing, and what checked it is not in the receipt.")
    if missing := sorted(receipt.artifacts.keys() - made.keys()):
        return Comparison("different", f"The program does not make these files now: {', '.join(missing)}.")
    others = [name for name, checksum in receipt.artifacts.items() if made[name] != checksum]
    if not others:
        return Comparison("same", "The program shows the same again.")
    reason = f"These files have another content now: {', '.join(others)}."
    chance = "" if is_repeatable(receipt.program) else " The program depends on time or chance."
    return Comparison("different", f"{reason}{chance or _because(receipt)}")


def _because(receipt: Receipt) -> str:
    changed = _changed_versions(receipt)
    return f" These versions differ: {', '.join(changed)}." if changed else ""


def _limits_then(receipt: Receipt, again: Execution) -> str:
    """Return what a program had of what it ran out of."""
    if again.status == "timeout" and "seconds" in receipt.limits:
        return f" It had {receipt.limits['seconds']:g} seconds then."
    if again.status == "memory" and "memory" in receipt.limits:
        return f" It had {receipt.limits['memory'] / 2**20:g} MB then."
    return ""


def _checksums(artifacts: Iterable[Artifact]) -> dict[str, str]:
    """Return the checksums of files by their names; empty for formats in which the time stands."""
    made = {artifact.name: hashlib.sha256(artifact.data).hexdigest() for artifact in artifacts}
    return made | dict.fromkeys((name for name in made if name.casefold().endswith(_TIMED)), "")


def _obstacle(receipt: Receipt, executor: Executor, files: Mapping[str, Any]) -> str:
    """Return why a program cannot be run as it was; empty if it can."""
    if not receipt.program.strip():
        return "There is no program: nothing was computed."
    if receipt.language != executor.language:
        return f"The program is in {receipt.language}; the executor runs {executor.language}."
    if receipt.other_variables:
        why = "too large for a receipt, or of a type that it cannot have"
        return f"These variables are {why}: {', '.join(receipt.other_variables)}."
    if missing := [name for name in receipt.files if name not in files]:
        return f"These files are missing: {', '.join(missing)}."
    for name, given in receipt.files.items():
        if _file(files[name]) != given:
            return f"The file {name} has another content than the one of the answer."
    return ""


def _valid(text: str) -> str:
    """Return text that JSON can have: what is broken of it is shown as a question mark."""
    return text.encode("utf-8", "replace").decode()


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _file(path: Any) -> GivenFile:
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
                others[name] = _sha256(described)
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


def _unpacked(packed: Mapping[str, str]) -> dict[str, Any]:
    """Return packed variables.

    Raises:
        InputError: One is no packed value: anybody may have written the receipt.
    """
    try:
        return {name: unpack_untrusted(text.encode()) for name, text in packed.items()}
    except LookupError as error:
        raise InputError(f"A variable of the receipt cannot be read: {error}") from error


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


def _versions(code: str) -> dict[str, str]:
    versions = {"code-chains": __version__, "python": platform.python_version()}
    reading = read(code)
    modules = {imported.name.partition(".")[0] for imported in reading.imports} if reading else set()
    for module in sorted(modules - sys.stdlib_module_names):
        package = distribution_of(module)
        if version := _installed_version(package):
            versions[package] = version
    return versions


@cache
def _installed_version(package: str) -> str:
    """Return the version of a package, which stays as it is in a process that has loaded it; empty if there is none."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return ""


def _changed_versions(receipt: Receipt) -> list[str]:
    now = _versions(receipt.program)
    return [
        f"{name} {version}, now {now.get(name, 'missing')}"
        for name, version in receipt.versions.items()
        if now.get(name) != version
    ]
