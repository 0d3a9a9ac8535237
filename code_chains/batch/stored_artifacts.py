"""Artifacts of answers as files beside a results file."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_chains.errors import InputError
from code_chains.records.filenames import file_stem, numbered_names
from code_chains.storage.files import atomic_write
from code_chains.storage.foreign import is_child, make_child, read_bytes

_MAX_BYTES = 256 << 20
"""Of the artifacts of an answer that are read: a line may name one any number of times."""


def store_artifacts(computed: Mapping[str, Any], parent: Path, folder: str) -> dict[str, Any]:
    """Write the artifacts of an answer as files, and return it with their names in place of their data.

    Args:
        computed: What was computed, as JSON values.
        parent: The folder of all artifacts.
        folder: The name of the folder of this answer.
    """
    computed, execution = dict(computed), computed.get("execution") or {}
    for name in ("attempts", "steps"):
        # The last one is that of the answer; of the others it is not kept.
        if isinstance(computed.get(name), list):
            computed[name] = list(map(_without_data, computed[name]))
    if execution.get("artifacts"):
        artifacts = [_with_file(parent, folder, artifact) for artifact in execution["artifacts"]]
        computed["execution"] = {**execution, "artifacts": artifacts}
    return computed


def _with_file(parent: Path, folder: str, artifact: Mapping[str, Any]) -> dict[str, Any]:
    data = base64.b64decode(artifact["base64"])
    path = make_child(parent, folder)
    taken = set(os.listdir(path))
    name = next(name for name in numbered_names(file_stem(artifact["name"])) if name not in taken)
    atomic_write(path / name, data)
    kept = {key: artifact[key] for key in ("name", "media_type")}
    return {**kept, "file": f"{folder}/{name}", "bytes": len(data)}


def with_artifacts(computed: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what was computed with the data of artifacts; those whose files are gone are empty."""
    execution = computed.get("execution") or {}
    artifacts, room = [], _MAX_BYTES
    for artifact in execution.get("artifacts") or ():
        data = _data_of(artifact, folder, room)
        room -= len(data)
        kept = {key: artifact[key] for key in ("name", "media_type")}
        artifacts.append({**kept, "base64": base64.b64encode(data).decode()})
    return {**computed, "execution": {**execution, "artifacts": artifacts}} if artifacts else dict(computed)


def _data_of(artifact: Mapping[str, Any], folder: Path, max_bytes: int) -> bytes:
    parent, _, name = artifact["file"].partition("/")
    if "/" not in name and is_child(folder, parent):
        with contextlib.suppress(InputError):
            return read_bytes(folder / parent / name, max_bytes, below=folder)
    return b""


def _without_data(attempt: Any) -> Any:
    """Return an attempt whose artifacts have no data."""
    if not isinstance(attempt, dict) or not (attempt.get("execution") or {}).get("artifacts"):
        return attempt
    execution = attempt["execution"]
    return {
        **attempt,
        "execution": {**execution, "artifacts": [{**each, "base64": ""} for each in execution["artifacts"]]},
    }


def folder_of(record: Mapping[str, Any]) -> str:
    """Return the name of the folder of an answer's artifacts, as the record has it; empty if there are none."""
    artifacts = (record["computed"].get("execution") or {}).get("artifacts") or [{"file": ""}]
    return str(artifacts[0]["file"]).rpartition("/")[0]
