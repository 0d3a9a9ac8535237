"""Evaluated beginnings of prompts on disk, so that a new process need not evaluate the same rules and examples again.

A chain's prompts begin alike: the system message and its examples. llama.cpp saves what it has computed of them, and
restores it in milliseconds (https://github.com/ggml-org/llama.cpp, `tools/server`: saving a slot). Questions are not saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from code_chains.errors import WeightsError
from code_chains.models.downloads import make_private, models_directory
from code_chains.storage.files import is_private

_MIN_CHARS = 600
"""Shorter beginnings are evaluated in a moment."""
_MAX_STATE_BYTES, _MAX_FOLDER_BYTES = 256 << 20, 512 << 20
_TIMEOUT_S = 600.0
Message = dict[str, Any]


class SavedPrompts:
    """The beginnings of prompts that one server has evaluated, and those that are on disk.

    Nothing depends on them: whatever fails, such as a full disk, costs the time of an evaluation.

    Args:
        client: The HTTP client for requests of the server.
        weights: The file of the weights.
        settings: What else a saved state depends on: the version of llama.cpp and its settings.

    Attributes:
        folder: Where they are; None if it cannot be used.
    """

    def __init__(self, client: Any, weights: Path, settings: Sequence[object]) -> None:
        self._client, self._weights, self._settings = client, weights, settings
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.folder = _usable_folder()

    def prepare(self, address: str, api_key: str, messages: Sequence[Message]) -> None:
        """Let a server have evaluated the beginning of a prompt, which is saved or restored once in a process.

        Args:
            address: The server.
            api_key: Its key.
            messages: The prompt; its beginning is what comes before the last message of the user.
        """
        beginning = _beginning(messages)
        text = json.dumps(beginning, default=str)
        with self._lock:
            if self.folder is None or text in self._seen or len(text) < _MIN_CHARS:
                return
            self._seen.add(text)
            with contextlib.suppress(Exception):
                name = f"{hashlib.sha256(f'{self._identity()}{text}'.encode()).hexdigest()}.prompt"
                self._load_or_save(_Slot(self._client, address, api_key), name, beginning)

    def _identity(self) -> list[object]:
        status = self._weights.stat()
        return [str(self._weights), status.st_size, status.st_mtime_ns, *self._settings]

    def _load_or_save(self, slot: _Slot, name: str, beginning: list[Message]) -> None:
        assert self.folder is not None
        path = self.folder / name
        if path.is_file():
            slot.act("restore", name)
            os.utime(path)
            return
        slot.evaluate(beginning)
        temporary = path.with_suffix(f".{os.getpid()}")
        try:
            saved = slot.act("save", temporary.name)
            # Invariant: only a whole state gets the name under which it is restored.
            if temporary.stat().st_size == saved["n_written"] <= _MAX_STATE_BYTES:
                temporary.chmod(0o600)
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _make_room(self.folder)


class _Slot:
    """The one slot of a server: what it has evaluated last."""

    def __init__(self, client: Any, address: str, api_key: str) -> None:
        self._client, self._address = client, address
        self._headers = {"Authorization": f"Bearer {api_key}"}

    def evaluate(self, messages: list[Message]) -> None:
        body = {"messages": [*messages, {"role": "user", "content": ""}], "max_tokens": 1}
        self._post("/v1/chat/completions", body)

    def act(self, action: str, name: str) -> dict[str, Any]:
        return self._post(f"/slots/0?action={action}", {"filename": name})

    def _post(self, path: str, body: Message) -> dict[str, Any]:
        response = self._client.post(
            self._address + path, json=body, headers=self._headers, timeout=_TIMEOUT_S
        )
        reply: dict[str, Any] = response.raise_for_status().json()
        return reply


def _beginning(messages: Sequence[Message]) -> list[Message]:
    """Return the messages before the last one of the user, which is the question."""
    last = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=0)
    return [*messages[:last]]


def _usable_folder() -> Path | None:
    folder = models_directory() / "prompts"
    try:
        make_private(folder)
        # Invariant: nobody else can place a state there, which llama.cpp would read.
        return folder if is_private(folder) else None
    except (WeightsError, OSError):
        return None


def _make_room(folder: Path) -> None:
    """Remove the states that were used longest ago, as far as all take too much space."""
    states = sorted(folder.glob("*.prompt"), key=lambda path: path.stat().st_mtime, reverse=True)
    size = 0
    for path in states:
        size += path.stat().st_size
        if size > _MAX_FOLDER_BYTES:
            path.unlink(missing_ok=True)
