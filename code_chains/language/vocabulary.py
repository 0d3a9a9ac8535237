"""Words by which rules tell what a text is about, in each language in which they are known, from `data/vocabulary.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any


def read_data(name: str) -> Any:
    """Return what a file of JSON in `data/` holds."""
    return json.loads(files("code_chains.data").joinpath(name).read_text(encoding="utf-8"))


@cache
def _sections() -> dict[str, dict[str, Any]]:
    held: dict[str, dict[str, Any]] = read_data("vocabulary.json")
    return held


def vocabulary(section: str) -> dict[str, Any]:
    """Return the words of a rule by what they mean: texts, lists of alternatives as expressions, or tables of these."""
    return _sections()[section]


def either(alternatives: Iterable[str]) -> str:
    """Return an expression that matches each of some alternatives."""
    return "|".join(alternatives)


def pattern(alternatives: Iterable[str], flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """Return a compiled expression that matches each of some alternatives."""
    return re.compile(either(alternatives), flags)
