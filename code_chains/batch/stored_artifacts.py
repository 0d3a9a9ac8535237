"""Artifacts of answers as files beside a results file."""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from code_chains.records.filenames import file_stem, numbered_names
from code_chains.storage.files import atomic_write


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
    data = base64.b64decode(artifact["data"])
    path = parent / folder
    path.mkdir(parents=True, exist_ok=True)
    taken = set(os.listdir(path))
    name = next(name for name in numbered_names(file_stem(artifact["name"])) if name not in taken)
    atomic_write(path / name, data)
    kept = {key: artifact[key] for key in ("name", "media_type")}
    return {**kept, "file": f"{folder}/{name}", "bytes": len(data)}


def with_artifacts(computed: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what was computed with the data of artifacts; those whose files are gone are empty."""
    execution = computed.get("execution") or {}
    artifacts = [_with_data(artifact, folder) for artifact in execution.get("artifacts") or ()]
    return {**computed, "execution": {**execution, "artifacts": artifacts}} if artifacts else dict(computed)


def _with_data(artifact: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    data, parts = b"", str(artifact.get("file", "")).split("/")
    if len(parts) == 2 and not {"", ".", ".."}.intersection(parts):
        with contextlib.suppress(OSError):
            data = folder.joinpath(*parts).read_bytes()
    return {**{key: artifact[key] for key in ("name", "media_type")}, "data": base64.b64encode(data).decode()}


def _without_data(attempt: Any) -> Any:
    """Return an attempt whose artifacts have no data."""
    if not isinstance(attempt, dict) or not (attempt.get("execution") or {}).get("artifacts"):
        return attempt
    execution = attempt["execution"]
    return {
        **attempt,
        "execution": {**execution, "artifacts": [{**each, "data": ""} for each in execution["artifacts"]]},
    }


def folder_of(record: Mapping[str, Any]) -> str:
    """Return the name of the folder of an answer's artifacts; empty if there are none."""
    artifacts = (record["computed"].get("execution") or {}).get("artifacts") or [{}]
    return str(artifacts[0].get("file", "")).rpartition("/")[0]
