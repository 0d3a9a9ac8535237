"""Files that a question names and programs would not see."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from code_chains.batch.questions import Question

_BETWEEN_NAMES = re.compile(r"[\s'\"`()\[\]{}<>,;:?!，。：；？！（）「」《》]+")
_MAX_NAME_BYTES = 255
_DATA_SUFFIXES = (
    ".csv",
    ".tsv",
    ".xlsx",
    ".xls",
    ".json",
    ".jsonl",
    ".parquet",
    ".sqlite",
    ".db",
    ".txt",
    ".xml",
)


def check_named_files(question: str, files: Mapping[str, Any]) -> None:
    """Raise if a question names a file of the current folder that programs would not see.

    Raises:
        InputError: It does; the message says how to pass the file.
    """
    from code_chains.errors import InputError

    for name in _names_of_files(question):
        if os.path.isfile(name) and Path(name).name not in files:
            raise InputError(f"Programs cannot see {name}, which the question names. Pass it with -f {name}.")


def missing_files(question: str, files: Mapping[str, Any]) -> list[str]:
    """Return the names of data that a question holds and no file has; programs may write some of them."""
    names = [name for name in _names_of_files(question) if Path(name).suffix.lower() in _DATA_SUFFIXES]
    passed = {Path(file).name for file in files}
    return [name for name in names if Path(name).name not in passed]


def _names_of_files(question: str) -> list[str]:
    """Return the words of a question that may name files."""
    words = {word.rstrip(".") for word in _BETWEEN_NAMES.split(question)}
    return sorted(
        word for word in words if "." in word and len(word.encode(errors="replace")) <= _MAX_NAME_BYTES
    )


def check_named_files_of(questions: Iterable[Question]) -> None:
    """Raise if one of many questions names a file of the current folder that programs would not see.

    Raises:
        InputError: It does; the message says which one.
    """
    from code_chains.errors import InputError

    for question in questions:
        try:
            check_named_files(question.query, question.inputs.get("files") or {})
        except InputError as error:
            raise InputError(f"{question.origin}: {error}") from None
