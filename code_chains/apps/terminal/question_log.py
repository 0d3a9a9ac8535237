"""The log of questions that were asked at the terminal: each a conversation that can be continued."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import InputError
from code_chains.inputs import shortened
from code_chains.state import Turn
from code_chains.storage.files import atomic_write
from code_chains.storage.sqlite import SqliteStore

_MAX_LOG_BYTES = 256 << 20
"""Beyond it the oldest questions are evicted."""
_MAX_DATA_BYTES = 1 << 30


def data_folder() -> Path:
    """Return the folder of conversations."""
    from platformdirs import user_data_path

    return user_data_path("code_chains")


@dataclass(frozen=True)
class LoggedConversation:
    """A conversation with its turns.

    Attributes:
        name: Its name.
        turns: Its turns, the first one first.
    """

    name: str
    turns: list[Turn]

    @property
    def time(self) -> datetime:
        """When its last turn ended."""
        return datetime.fromtimestamp(int(self.turns[-1].id.partition("-")[0]) / 1e9).astimezone()

    def __str__(self) -> str:
        """Return a line for lists: when, how many turns, and the first question."""
        question = shortened(" ".join(self.turns[0].query.split()), 100)
        turns = f"{len(self.turns)} turn{'s' if len(self.turns) > 1 else ''}"
        return f"{self.time:%Y-%m-%d %H:%M}  {turns:<9} {question}"


def list_conversations(memory: ConversationMemory) -> list[LoggedConversation]:
    """Return all conversations of a store, the latest last."""
    conversations = (LoggedConversation(name, memory.turns(name)) for name in memory.sessions())
    return [conversation for conversation in conversations if conversation.turns]


class QuestionLog:
    """Past questions with their answers, in a file that only its user can read. A context manager.

    Args:
        folder: The folder of the file; by default that of conversations.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or data_folder()
        self._store = SqliteStore(self._folder / "questions.sqlite", max_bytes=_MAX_LOG_BYTES)
        self.memory: ConversationMemory = ConversationMemory(self._store, trusts_paths=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._store.close()

    def add(self, inputs: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Record a question with its answer as a new conversation."""
        name = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        self.memory.remember({**inputs, "session_id": name}, result)

    def conversations(self) -> list[LoggedConversation]:
        """Return all conversations, the latest last."""
        return list_conversations(self.memory)

    def last(self) -> str:
        """Return the name of the latest conversation.

        Raises:
            InputError: There is none.
        """
        names = self.memory.sessions()
        if not names:
            raise InputError("There is no question to continue. Ask one first, without --continue.")
        return names[-1]

    def keep_data(self, name: str, data: bytes) -> Path:
        """Keep data that came without a file, so that the question can be continued, and return its path."""
        folder = self._folder / "stdin"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{hashlib.sha256(data).hexdigest()[:32]}{Path(name).suffix}"
        atomic_write(path, data, mode=0o600)
        self._limit_data(folder)
        return path

    @staticmethod
    def _limit_data(folder: Path) -> None:
        """Delete the oldest data beyond the limit."""
        used = 0
        kept = [
            path for path in folder.iterdir() if not path.name.startswith(".")
        ]  # Others are being written.
        for path in sorted(kept, key=_modified, reverse=True):
            with suppress(OSError):  # Another process deleted it meanwhile.
                used += path.stat().st_size
                if used > _MAX_DATA_BYTES:
                    path.unlink()

    def clear(self) -> int:
        """Delete all questions and their data; return how many there were."""
        count = len(self.memory.sessions())
        self.memory.clear()
        folder = self._folder / "stdin"
        for path in folder.iterdir() if folder.is_dir() else ():
            path.unlink(missing_ok=True)
        return count


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
