"""The stored conversations of each client, of which no client sees those of another."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from code_chains.assembly.code_chain import CodeChain
from code_chains.conversations.memory import ConversationMemory
from code_chains.errors import InputError
from code_chains.state import Turn
from code_chains.storage.sqlite import SqliteStore

MAX_STORED_BYTES = 1 << 30
"""Maximum size of the uploaded files of all conversations, open or not."""

_MAX_TURN_BYTES = 2 << 30
"""Maximum size of all stored turns with their artifacts."""


@contextmanager
def open_memory(folder: Path | None) -> Iterator[ConversationMemory]:
    """Open the memory of the page's conversations.

    Strangers may fill it, so it is a file of its own, and the turns unused for longest are deleted beyond a limit.

    Args:
        folder: The folder of the file; None for the memory of this process.
    """
    if folder is None:
        yield ConversationMemory()
        return
    with SqliteStore(folder / "conversations.sqlite", max_bytes=_MAX_TURN_BYTES) as store:
        yield ConversationMemory(store)


@dataclass(frozen=True)
class StoredConversation:
    """A stored conversation of a client.

    Attributes:
        session_id: Its name in the store.
        title: Its first question.
        time: The time of its last turn.
    """

    session_id: str
    title: str
    time: datetime


class ConversationHistory:
    """The stored conversations of all clients. Its methods block.

    Args:
        chain: Whose memory holds the turns. Only a `ConversationMemory` with a store can be listed.
        folder: Where uploaded files are stored.
    """

    def __init__(self, chain: CodeChain, folder: Path) -> None:
        self._chain, self._folder = chain, folder

    @property
    def is_listable(self) -> bool:
        """Whether earlier conversations can be found again."""
        memory = self._chain.memory
        return isinstance(memory, ConversationMemory) and memory.history is None

    def new_id(self, client_id: str) -> str:
        """Return the name of a new conversation of a client."""
        return f"{_prefix(client_id)}{uuid.uuid4().hex}"

    def folder(self, session_id: str) -> Path:
        """Return the folder of the files of a conversation."""
        return self._folder / session_id

    def conversations(self, client_id: str) -> list[StoredConversation]:
        """Return the conversations of a client, the latest one first."""
        memory = self._chain.memory
        if not isinstance(memory, ConversationMemory):
            return []
        names = [name for name in memory.sessions() if name.startswith(_prefix(client_id))]
        stored = [_summarize(name, turns) for name in names if (turns := memory.turns(name))]
        return sorted(stored, key=lambda conversation: conversation.time, reverse=True)

    @staticmethod
    def check_owner(client_id: str, session_id: str) -> None:
        """Raise `InputError` if a conversation is not the client's."""
        name = session_id.removeprefix(_prefix(client_id))
        if name == session_id or not re.fullmatch("[0-9a-f]{32}", name):  # It is the name of a folder, too.
            raise InputError("There is no such conversation in this browser.")

    def turns(self, client_id: str, session_id: str) -> list[Turn]:
        """Return the turns of a conversation of a client, with their artifacts.

        Raises:
            InputError: It is not the client's.
        """
        self.check_owner(client_id, session_id)
        return self._chain.turns(session_id)

    def delete(self, client_id: str, session_id: str) -> None:
        """Delete a conversation of a client with its files.

        Raises:
            InputError: It is not the client's.
        """
        self.check_owner(client_id, session_id)
        self._chain.forget(session_id)
        shutil.rmtree(self.folder(session_id), ignore_errors=True)

    def touch(self, session_id: str) -> None:
        """Mark the files of a conversation as used."""
        with suppress(OSError):  # It may have none.
            os.utime(self.folder(session_id))

    def make_space(self, size: int, is_open: Collection[str]) -> bool:
        """Delete files of the conversations unused for longest, and return whether so many bytes fit then.

        Args:
            size: Number of bytes to store.
            is_open: Names of the conversations whose files stay.
        """
        if not self._folder.is_dir():
            return size <= MAX_STORED_BYTES
        folders = sorted(self._folder.iterdir(), key=_last_used)
        sizes = {folder: _size(folder) for folder in folders}
        total = sum(sizes.values())
        for folder in folders:
            if total + size <= MAX_STORED_BYTES:
                break
            if folder.name not in is_open:
                shutil.rmtree(folder, ignore_errors=True)
                total -= sizes[folder]
        return total + size <= MAX_STORED_BYTES


def _prefix(client_id: str) -> str:
    # Hashed, as the id of a client is the secret that grants access to its conversations.
    return f"page-{hashlib.sha256(client_id.encode()).hexdigest()[:32]}-"


def _last_used(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:  # Another server deleted it meanwhile.
        return 0


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # Another server deleted it meanwhile.
            size += path.stat().st_size if path.is_file() else 0
    return size


def _summarize(session_id: str, turns: list[Turn]) -> StoredConversation:
    seconds = int(turns[-1].id.partition("-")[0]) / 1e9  # A turn's id begins with its time.
    return StoredConversation(
        session_id, " ".join(turns[0].query.split()), datetime.fromtimestamp(seconds, UTC)
    )
