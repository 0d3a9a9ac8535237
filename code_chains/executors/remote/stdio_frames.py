"""Messages between an application and the kernel sandbox elsewhere, over standard streams: JSON with a length before it."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from code_chains.executors.sandbox.tables import read_value, write_value

Json = dict[str, Any]
HEADER = struct.Struct("!I")
MAX_FRAME_BYTES = (1 << 32) - 1


def frame(message: Json) -> bytes:
    """Return a message for the stream.

    Raises:
        ValueError: It is too long.
    """
    data = json.dumps(message).encode()
    if len(data) > MAX_FRAME_BYTES:
        raise ValueError("the files and variables of a run may take 4 GB together")
    return HEADER.pack(len(data)) + data


def pack_values(values: Mapping[str, Any] | None) -> Json:
    """Return variables, or the result of a tool, as JSON with their exact types.

    Raises:
        InputError: One cannot be passed.
    """
    return {name: _packed(*write_value(name, value)) for name, value in (values or {}).items()}


def unpack_values(packed: Json) -> dict[str, Any]:
    """Return the values that `pack_values` packed."""
    return dict(_unpacked(packed))


def _packed(kind: str, label: str | None, data: bytes) -> Json:
    return {"kind": kind, "label": label, "data": encode(data)}


def _unpacked(packed: Json) -> Iterator[tuple[str, Any]]:
    for name, value in packed.items():
        yield name, read_value(value["kind"], value["label"], base64.b64decode(value["data"]))


def encode(data: bytes) -> str:
    """Return bytes as text for JSON."""
    return base64.b64encode(data).decode()
