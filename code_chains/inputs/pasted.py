"""Data that is pasted into a question, offered to programs as files and variables. Ambiguous text is left in place."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from code_chains.errors import InputError
from code_chains.executors.inputs import VARIABLES_REMEDY, pairs_of_files
from code_chains.inputs.text import check_query
from code_chains.language.vocabulary import pattern, vocabulary
from code_chains.records import PastedData

_MIN_ROWS = 3
"""Lines of a table, its header included; of text that is split at commas by chance there are fewer."""
_MIN_NUMBERS = 8
_MAX_BLOCKS = 20
_MAX_AROUND_CHARS = 100
_MIN_JSON_CHARS, _MIN_JSON_ITEMS = 12, 5
_MAX_JSON_TRIES = 200
_MAX_FIELD_WORDS = 6
_DELIMITERS = {"\t": "tsv", ";": "csv", "|": "markdown", ",": "csv"}
_FENCE = re.compile(r"^[ \t]*+```[ \t]*+[\w+-]*+[ \t]*+\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t]*+```[ \t]*+$", re.MULTILINE)
_RULE = re.compile(r"[\s|:+-]+")
_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_AND = re.compile(r"(?<![ \t])(?:[ \t]*+,)?[ \t]++(?:and|und|et|y|e|ve|и)[ \t]+")
_NUMBERS = re.compile(
    rf"(?<![\w.,;/:-]){_NUMBER}(?:(?:[ \t]*+[,;][ \t]*+\n?|\s++){_NUMBER}){{6,}}"
    rf"(?:(?:[ \t]*+[,;][ \t]*+\n?|\s++|{_AND.pattern}){_NUMBER})(?![\w/:%]|[.,]\d)"
)
_ELLIPSIS = re.compile(r"\s*,?\s*(?:\.\.|…)")
_ELLIPSIS_BEFORE = re.compile(r"(?:\.\.|…)\s*,?\s*$")
_SENTENCE_ENDS = (".", "!", "?", "。", "？")
_WORDS = vocabulary("pasted")
_CONJUNCTION = pattern(_WORDS["conjunction"])
"""How the last part of an enumeration in a sentence begins."""
_TEMPLATE = re.compile(
    r"\b(?:return|reply|answer|output|respond|format|print|produce)\b[^.?!\n]{0,60}$", re.IGNORECASE
)
"""What stands before JSON that shows what an answer should look like."""
_OTHER = "other"
"""The kind of a block to skip."""
_CODE_LINE = re.compile(
    r"^[ \t]*(?:>>> |(?:async )?def \w++ ?\(|class \w++.*:[ \t]*$|import \w+|from [\w.]++ import |for \w.* in .+:[ \t]*$)",
    re.MULTILINE,
)
_ARGUMENT = re.compile(r"\w\((?:[^()\n]*, *)?$")
"""What stands before an argument of a call."""
_RESULT = re.compile(r"[^\n\w]{0,5}(?:=>|->|➞|==|→|➡)")
"""What follows on the arguments of an example."""
_REFERENCE = re.compile(r"\(data: [^()\n]*\)")
"""What `_reference` returns."""
_LEADING_ZERO, _GROUP = re.compile(r"[-+]?0\d"), re.compile(r"\d{3}")
_DECIMAL_COMMAS = re.compile(r"\d,\d")
_VALUE = re.compile(r"[-+$€£]?\s?[.,'’]*+\d[\d.,'’:/-]*+\s?[%€$£]?")


@dataclass(frozen=True)
class Paste:
    """A question with what was found in it.

    Attributes:
        task: The question, with data replaced by the names of files and variables.
        found: What was found, in order.
        files: The contents of files by name.
        variables: Values by name.
    """

    task: str
    found: tuple[PastedData, ...]
    files: dict[str, bytes]
    variables: dict[str, Any]


def find_data(values: Mapping[str, Any]) -> Paste | None:
    """Find data in the question of a state. In a session names must differ from those of its earlier questions."""
    query = check_query(values["query"])
    variables = values.get("variables")
    if not isinstance(variables, Mapping | None):
        raise InputError(VARIABLES_REMEDY)
    taken = [*dict(pairs_of_files(values.get("files"))), *(variables or ())]
    in_session = values.get("session") is not None or values.get("session_id") is not None
    digest = hashlib.sha256(query.encode()).hexdigest()[:6]
    return find_pasted(query, taken, suffix=f"_{digest}" if in_session else "")


def files_with(values: Mapping[str, Any], paste: Paste | None) -> Mapping[str, Any] | None:
    """Return the files of a state, with those that were found in its question."""
    files: Mapping[str, Any] | None = values.get("files")
    return files if paste is None else {**dict(pairs_of_files(files)), **paste.files}


@dataclass(frozen=True)
class _Block:
    """A part of a question that is data: its place, its kind, its rows, and its content as a file or a value."""

    start: int
    end: int
    kind: str
    rows: int
    content: str | list[float]


def find_pasted(query: str, taken: Collection[str] = (), *, suffix: str = "") -> Paste | None:
    r"""Find data in a question: tables in CSV, TSV or Markdown, JSON, JSON Lines, and lists of numbers.

    Code is no data, nor is anything in it, and examples of a function are not either: shown a file of them, models copied
    it where they should complete or correct the code.

    Args:
        query: The question.
        taken: Names of files and variables that exist already.
        suffix: Added to the names of files and variables.

    Returns:
        What was found, or None if there is nothing.

    Example:
        >>> paste = find_pasted("Sum the prices:\nitem;price\nbolt;1,5\nnut;2,5")
        >>> paste.task, paste.files
        ('Sum the prices:\n(data: file `pasted.csv`)', {'pasted.csv': b'item;price\nbolt;1,5\nnut;2,5\n'})
    """
    blocks = _blocks(query)
    if not blocks:
        return None
    names = _Names(taken)
    found, files, variables, parts, position = [], {}, {}, [], 0
    for block in blocks:
        if isinstance(block.content, str):
            name = names.free(f"pasted{suffix}", f".{_SUFFIXES[block.kind]}")
            files[name] = block.content.encode()
        else:
            name = names.free(f"numbers{suffix}", "")
            variables[name] = block.content
        found.append(PastedData(name, block.kind, block.start, block.end, block.rows))  # type: ignore[arg-type]
        parts += [query[position : block.start], _reference(block, name)]
        position = block.end
    return Paste("".join([*parts, query[position:]]), tuple(found), files, variables)


_SUFFIXES = {"csv": "csv", "tsv": "tsv", "markdown": "csv", "json": "json", "jsonl": "jsonl"}


def _reference(block: _Block, name: str) -> str:
    """Return what stands for a block."""
    if block.kind == "numbers":
        return f"(data: list `{name}`)"
    return f"(data: file `{name}`)"


def without_references(task: str) -> str:
    """Return the task of a `Paste` without what stands for its data, which a program may have inline."""
    return _REFERENCE.sub("", task)


class _Names:
    """Names that are not taken."""

    def __init__(self, taken: Collection[str]) -> None:
        self._taken = set(taken)

    def free(self, stem: str, suffix: str) -> str:
        name, number = f"{stem}{suffix}", 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}{suffix}"
        self._taken.add(name)
        return name


def _blocks(query: str) -> list[_Block]:
    """Return the blocks of a question in order; none overlaps another."""
    finders: tuple[Callable[[str], Iterator[_Block]], ...] = (_fences, _json_lines, _json, _tables, _numbers)
    blocks: list[_Block] = []
    text = query
    for find in finders:
        if find is not _fences and _CODE_LINE.search(text):
            break
        for block in itertools.islice(find(text), _MAX_BLOCKS - len(blocks)):
            blocks.append(block)
            blank = re.sub(r"[^\n]", " ", text[block.start : block.end])
            text = text[: block.start] + blank + text[block.end :]  # Invariant: later finders do not see it.
    data = (block for block in blocks if block.kind != _OTHER)
    return sorted(data, key=lambda block: block.start)


# -- kinds of data -------------------------------------------------------------------------------------------


def _fences(text: str) -> Iterator[_Block]:
    end = 0
    # Invariant: it takes linear time, as a fence without an end has none after it that ends.
    while (opening := _FENCE.search(text, end)) and (closing := _FENCE_END.search(text, opening.end())):
        start, end, content = opening.start(), closing.end(), text[opening.end() : closing.start()]
        inside = next(itertools.chain(_json_lines(content), _json(content), _tables(content)), None)
        is_all = inside is not None and not (content[: inside.start] + content[inside.end :]).strip()
        if inside is not None and is_all:
            yield _Block(start, end, inside.kind, inside.rows, inside.content)
        else:
            yield _Block(start, end, _OTHER, content.count("\n"), content)


def _json_lines(text: str) -> Iterator[_Block]:
    """Yield runs of lines of which each is a JSON object."""
    for is_run, lines in itertools.groupby(_lines(text), key=lambda line: _is_object(line[1])):
        run = list(lines)
        if is_run and len(run) > 1:
            (start, _), (last, end_line) = run[0], run[-1]
            content = "\n".join(line.strip() for _, line in run) + "\n"
            yield _Block(start, last + len(end_line), "jsonl", len(run), content)


def _is_object(line: str) -> bool:
    stripped = line.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return False
    try:
        return isinstance(json.loads(stripped), dict)
    except (ValueError, RecursionError):
        return False


def _json(text: str) -> Iterator[_Block]:
    position, decoder = 0, json.JSONDecoder()
    for _ in range(_MAX_JSON_TRIES):
        opening = re.compile(r"[\[{]").search(text, position)
        if opening is None:
            return
        try:
            value, position = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            position = opening.end()
            continue
        is_template = _TEMPLATE.search(text, max(0, opening.start() - 80), opening.start())
        is_example = _is_example(text, opening.start(), position)
        if (
            position - opening.start() >= _MIN_JSON_CHARS
            and _is_data(value)
            and not is_template
            and not is_example
        ):
            content = text[opening.start() : position]
            yield _Block(opening.start(), position, "json", len(value), content)


def _is_example(text: str, start: int, end: int) -> bool:
    """Return whether a part of a text is an argument of a call, or stands before an arrow to its result."""
    return bool(_ARGUMENT.search(text, max(0, start - 80), start) or _RESULT.match(text, end))


def _is_data(value: Any) -> bool:
    """Return whether a JSON value is data rather than, say, a short list in a sentence."""
    items, least = (value.values(), 2) if isinstance(value, dict) else (value, _MIN_JSON_ITEMS)
    return len(items) >= least or not {dict, list}.isdisjoint(map(type, items))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their places, without their ends."""
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _tables(text: str) -> Iterator[_Block]:
    lines = list(_lines(text))
    index = 0
    while index < len(lines):
        block, count = _table_at(lines, index)
        if block is not None:
            yield block
        index += count


def _table_at(lines: list[tuple[int, str]], index: int) -> tuple[_Block | None, int]:
    """Return the table that begins at a line, if one does, and the number of lines to go on by."""
    seen = 1
    if lines[index][1].rstrip().endswith(":"):
        return None, seen
    for delimiter, kind in _DELIMITERS.items():
        run = _run(lines, index, delimiter)
        length = len(run)
        while len(run) > 1 and run[-1][1].rstrip().endswith(_SENTENCE_ENDS):
            run.pop()
        rows = [_fields(_unquoted(line), delimiter) for _, line in run if not _RULE.fullmatch(line)]
        if run and _is_table(rows, delimiter, has_rule=len(rows) < len(run)):
            start, (last, end_line) = run[0][0], run[-1]
            content = _as_csv(rows, "," if delimiter == "|" else delimiter)
            return _Block(start, last + len(end_line), kind, len(rows), content), len(run)
        seen = max(seen, length)  # Invariant: no line is read again and again.
    return None, seen


def _unquoted(line: str) -> str:
    """Return a line without the mark of a quotation in a mail."""
    return re.sub(r"^\s*>\s?", "", line)


def _run(lines: list[tuple[int, str]], index: int, delimiter: str) -> list[tuple[int, str]]:
    """Return the lines from an index on that have as many fields as the first, if those are several."""
    width = _width(lines[index][1], delimiter)
    if width < 2:
        return []
    ahead = itertools.islice(lines, index, None)
    return list(itertools.takewhile(lambda line: _width(line[1], delimiter) == width, ahead))


def _width(line: str, delimiter: str) -> int:
    if delimiter == "|" and _RULE.fullmatch(line):
        line = line.strip().strip("|").replace("+", "|")
        return line.count("|") + 1 if "-" in line else 0
    return len(_fields(line, delimiter)) if delimiter in line else 0


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == "|":
        line = line.strip().removeprefix("|").removesuffix("|")
    try:
        fields = next(csv.reader([line.rstrip("\r")], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return []
    return list(map(str.strip, fields))


def _is_table(rows: list[list[str]], delimiter: str, *, has_rule: bool) -> bool:
    width = len(rows[0]) if rows else 0
    if len(rows) < (2 if has_rule or (delimiter != "," and width > 2) else _MIN_ROWS):
        return False
    if any(len(field.split()) > _MAX_FIELD_WORDS for field in itertools.chain.from_iterable(rows)):
        return False
    # Invariant: sentences with as many commas each are not a table.
    if any(_CONJUNCTION.match(row[-1]) for row in rows):
        return False
    columns = zip(*rows, strict=False)  # Rows that were quoted in a mail may differ in width.
    has_values = any(all(map(_VALUE.fullmatch, column[1:])) for column in columns)
    return has_values or has_rule or delimiter == "\t" or (width > 2 and len(rows) >= _MIN_ROWS)


def _as_csv(rows: list[list[str]], delimiter: str) -> str:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _numbers(text: str) -> Iterator[_Block]:
    text = text.replace("\N{MINUS SIGN}", "-")
    for match in _NUMBERS.finditer(text):
        before = text[max(0, match.start() - _MAX_AROUND_CHARS) : match.start()]
        after = text[match.end() : match.end() + _MAX_AROUND_CHARS]
        is_part = _ELLIPSIS.match(after) or _ELLIPSIS_BEFORE.search(before) or "/" in before.split(" ")[-1]
        numbers = [] if is_part else _as_numbers(_AND.sub(", ", match[0]))
        if len(numbers) >= _MIN_NUMBERS:
            yield _Block(match.start(), match.end(), "numbers", len(numbers), numbers)


def _as_numbers(text: str) -> list[float]:
    """Return the numbers of a list; none if commas may separate decimals or thousands as well as numbers."""
    items = re.split(r"[,;\s]+", text)
    if all(map(_GROUP.fullmatch, items[1:])) or any(map(_LEADING_ZERO.match, items)):
        return []
    if _DECIMAL_COMMAS.search(text) and re.search(r"[;\s]", text):
        return []
    return list(map(_number, items))


def _number(text: str) -> float:
    return float(text) if set(text) & set(".eE") else int(text)
