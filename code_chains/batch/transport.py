"""Questions on their way to a worker of a cluster: JSON, with variables by the codec of values, and files by content."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_chains.batch.questions import Question, digest_of
from code_chains.errors import InputError
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.sandbox.tables import read_value, write_value
from code_chains.executors.values import check_variables
from code_chains.state import as_json
from code_chains.storage.foreign import read_bytes

MAX_SENT_BYTES = 20 << 20
"""A file that a worker does not see is sent if it is not larger."""


def pack_question(question: Question, *, sent: bool = False) -> dict[str, Any]:
    """Return a question as JSON values.

    Args:
        question: The question.
        sent: Whether its files are sent, too.

    Raises:
        InputError: It has a variable or a file that cannot be sent.
    """
    inputs = {key: value for key, value in question.inputs.items() if key not in ("files", "variables")}
    given = question.inputs.get("files")
    named = given if isinstance(given, Mapping) else {}
    of_paths = {name for name, file in named.items() if isinstance(file, Path)}
    with files_on_disk(given) as paths:
        files = {name: _packed_file(path, sent=sent or name not in of_paths) for name, path in paths.items()}
    variables = {
        name: _packed(name, value)
        for name, value in check_variables(question.inputs.get("variables")).items()
    }
    return {"id": question.id, "inputs": as_json(inputs), "files": files, "variables": variables}


def _packed_file(path: Path, *, sent: bool) -> dict[str, Any]:
    file: dict[str, Any] = {"path": str(path.absolute()), "digest": digest_of(path), "data": None}
    if sent:
        if path.stat().st_size > MAX_SENT_BYTES:
            where = "Put it where all workers can read it."
            raise InputError(
                f"{path} is larger than {MAX_SENT_BYTES:,} bytes, so it is not sent to workers. {where}"
            )
        file["data"] = base64.b64encode(read_bytes(path, MAX_SENT_BYTES)).decode()
    return file


def _packed(name: str, value: Any) -> dict[str, Any]:
    kind, label, data = write_value(name, value)
    return {"kind": kind, "label": label, "data": base64.b64encode(data).decode()}


def unpack_question(packed: Mapping[str, Any]) -> tuple[Question, list[str]]:
    """Return a question, and the paths of its files that are not here, or have another content than there."""
    files, missing = dict[str, Any](), list[str]()
    for name, file in packed["files"].items():
        if file["data"] is not None:
            files[name] = base64.b64decode(file["data"])
        elif _is_here(file):
            files[name] = Path(file["path"])
        else:
            missing.append(file["path"])
    variables = {name: _unpacked(value) for name, value in packed["variables"].items()}
    inputs = dict(packed["inputs"])
    inputs |= {name: value for name, value in (("files", files), ("variables", variables)) if value}
    return Question(packed["id"], inputs), missing


def _is_here(file: Mapping[str, Any]) -> bool:
    try:
        return digest_of(Path(file["path"])) == str(file["digest"])
    except OSError:
        return False


def _unpacked(packed: Mapping[str, Any]) -> Any:
    return read_value(packed["kind"], packed["label"], base64.b64decode(packed["data"]))
