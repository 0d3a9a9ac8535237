"""What people might ask for, and the curated snippet that would help: written from their names, before any search.

They are in `data/queries.jsonl`: each query is its language, its text and the right snippet's path, or several where more
than one would do. No snippet helps with those of `data/unrelated.jsonl`.
"""

from __future__ import annotations

from typing import Any

from benchmarks.corpora import read_corpus

__all__ = ["QUERIES", "UNRELATED"]

Query = tuple[str, str, str | tuple[str, ...]]


def _query(entry: dict[str, Any]) -> Query:
    right = entry["right"]
    return entry["language"], entry["query"], right if isinstance(right, str) else tuple(right)


QUERIES: tuple[Query, ...] = tuple(map(_query, read_corpus("queries")))
UNRELATED: tuple[tuple[str, str], ...] = tuple(
    (entry["language"], entry["query"]) for entry in read_corpus("unrelated")
)
