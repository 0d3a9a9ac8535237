"""The names of a session's checkpoints, which all sessions limit alike."""

from __future__ import annotations

from code_chains.errors import SessionError

MAX_CHECKPOINTS = 8


class CheckpointNames:
    """The names under which states are held, the oldest first."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def check_room(self, name: str) -> None:
        """Raise `SessionError` if no state can be saved under a name, as there are too many."""
        if name not in self._names and len(self._names) >= MAX_CHECKPOINTS:
            raise SessionError(
                f"A session holds at most {MAX_CHECKPOINTS} checkpoints. Use one of these names again: {self._names}."
            )

    def add(self, name: str) -> str:
        """Remember that a state was saved under a name, and return that."""
        self._names = [*(other for other in self._names if other != name), name]
        return name

    def check(self, name: str) -> None:
        """Raise `SessionError` if there is no state of this name."""
        if name not in self._names:
            raise SessionError(f"There is no checkpoint {name!r}; there are {self._names}.")
