"""A byte store in RAM that holds the latest turns."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence

from langchain_core.stores import InMemoryByteStore

MAX_BYTES = 64 << 20
ARTIFACTS_PREFIX, CONTENTS_PREFIX = "artifacts/", "contents/"


class RecentStore(InMemoryByteStore):
    """A `ByteStore` in RAM with a limit.

    Beyond the limit, the oldest entries of the largest session are evicted, artifacts and contents of inputs first.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set entries, and evict others beyond the limit."""
        with self._lock:
            for key, value in key_value_pairs:
                self._remove(key)
                self.store[key] = value
                self._sizes[_session_of(key)] += len(value)
            while self._sizes.total() > self._max_bytes and len(self.store) > len(key_value_pairs):
                self._remove(self._eviction_candidate())

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete entries."""
        with self._lock:
            for key in keys:
                self._remove(key)

    def yield_keys(self, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys with a prefix."""
        with self._lock:
            yield from [key for key in self.store if key.startswith(prefix or "")]

    def _remove(self, key: str) -> None:
        if (value := self.store.pop(key, None)) is not None:
            session = _session_of(key)
            self._sizes[session] -= len(value)
            if not self._sizes[session]:
                del self._sizes[session]

    def _eviction_candidate(self) -> str:
        """Return the oldest entry of the largest session, so that no session evicts the entries of another."""
        largest = self._sizes.most_common(1)[0][0]
        own = [key for key in self.store if _session_of(key) == largest]
        earlier = own[:-1] or own
        return next(
            (key for key in earlier if key.startswith((ARTIFACTS_PREFIX, CONTENTS_PREFIX))), earlier[0]
        )


def _session_of(key: str) -> str:
    return key.split("/")[1] if "/" in key else ""
