"""What the benchmarks ask, run and expect: a JSON object in each line of the files in `data`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["read_corpus"]

_FOLDER = Path(__file__).with_name("data")


def read_corpus(name: str) -> list[dict[str, Any]]:
    """Read a corpus by its name."""
    lines = (_FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return [json.loads(line) for line in lines]
