"""The columns that a profile shows of files and variables."""

from __future__ import annotations

import re

_COLUMNS = re.compile(r"^\s*columns:(.*)$", re.MULTILINE)
_NAME = re.compile(r"`([^`\n]{1,100})`")


def columns_of(profile: str) -> list[str]:
    r"""Return the names of the columns in what a model was shown, with their line breaks.

    Example:
        >>> columns_of("  columns: `day` (date), `rain\\n(mm)` (float)")
        ['day', 'rain\n(mm)']
    """
    shown = [name for listed in _COLUMNS.findall(profile) for name in _NAME.findall(listed)]
    return [name.replace("\\n", "\n") for name in shown]
