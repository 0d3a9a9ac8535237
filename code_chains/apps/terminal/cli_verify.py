"""`code-chains verify`: run the program of a receipt again, without a model."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from code_chains.apps.terminal.cli_options import echo, file_option, files_by_name, handle_errors
from code_chains.errors import InputError
from code_chains.records.printable import strip_control_chars
from code_chains.storage.foreign import find_below, parse_json, read_lines

if TYPE_CHECKING:
    from code_chains.executors import Executor
    from code_chains.receipts import Receipt

_MAX_SECONDS, _MAX_MEMORY, _MAX_LISTED = 600.0, 4 << 30, 10
_MARK, _MIN_COLUMNS, _MAX_LINES, _MAX_REASON_CHARS = "  | ", 20, 40, 68
_VERDICT = re.compile(r"(?i)\b(?:same|different|unknown)\s*:")
_REASONS = {
    "different": "The program shows something else now.",
    "unknown": "It could not be compared.",
    "same": "The program shows the same again; the answer's words are claims.",
}
"""The last line, where a reason is long or holds what could be taken for one: each is ours."""


@click.command()
@click.argument("receipt", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--id", "answer_id", metavar="ID", help="The answer of a results file whose receipt is meant.")
@file_option("A file that the program was given; repeatable.")
@handle_errors
def verify(receipt: Path, answer_id: str | None, files: tuple[str, ...]) -> None:
    """Run the program of a RECEIPT again.

    No model is asked. What was compared is listed, and what the receipt only claims; the last line says whether the program
    shows the same. Files that the program was given are passed
    with --file; one of the same name beside the receipt is found. Each line of a results file of `code-chains run` has a
    receipt, too: pass the file, and --id.

    Example: code-chains verify receipt.json --file sales.csv
    """
    from code_chains.executors.registry import resolve_executor
    from code_chains.receipts import read_receipt, run_again

    answers = _receipts_in(receipt)
    is_results = answer_id is not None or bool(answers)
    given = read_receipt(_receipt_of(answers, answer_id) if is_results else receipt)
    found = {**_beside(given, receipt.parent), **_by_name_in(given, files)}
    language = given.language if given.language == "sql" else "strongest"
    with resolve_executor(language) as executor, _with_limits(executor, given) as limited:
        comparison = run_again(given, limited, files=found)
    _say("Compared", "\n".join(comparison.compared))
    _say("Claimed by the receipt, question", given.question)
    _say("Claimed by the receipt, answer", given.answer)
    _say("Claimed by the receipt, verdict", f"{given.verdict.get('status')}: {given.verdict.get('reason')}")
    reason = " ".join(strip_control_chars(comparison.reason).split())
    if len(reason) > _MAX_REASON_CHARS or _VERDICT.search(reason):
        _say("Why", reason)
        reason = _REASONS[comparison.status]
    echo(f"{comparison.status}: {reason}")
    sys.exit(0 if comparison.status == "same" else 1)


def _say(title: str, text: str) -> None:
    """Print what others wrote, so that none of its lines can look like one of ours, however wide the terminal is."""
    from rich.cells import chop_cells

    width = max(_MIN_COLUMNS, shutil.get_terminal_size().columns - len(_MARK) - 1)
    lines = strip_control_chars(text).expandtabs().splitlines()
    parts = list(chain.from_iterable(chop_cells(line, width) for line in lines if line.strip()))
    cut = [f"… and {len(parts) - _MAX_LINES} more lines"] if len(parts) > _MAX_LINES else []
    echo("\n".join([f"{title}:", *(f"{_MARK}{part}" for part in [*parts[:_MAX_LINES], *cut])]))


def _beside(receipt: Receipt, folder: Path) -> dict[str, Path]:
    """Return the files of a receipt that lie beside it, also in folders there."""
    found = dict[str, Path]()
    for name in receipt.files:
        with suppress(OSError):
            found[name] = find_below(folder, name)
    return found


def _by_name_in(receipt: Receipt, files: tuple[str, ...]) -> dict[str, Path]:
    """Return files by their names in a receipt: these may be the end of a path, or a path may be the end of one."""
    rest, found = list[str](), dict[str, Path]()
    for file in files:
        path = f"/{Path(file).as_posix()}"
        names = (name for name in receipt.files if path.endswith(f"/{name}"))
        if name := max(names, key=len, default=""):
            found[name] = Path(file)
        else:
            rest.append(file)
    others = {Path(name).name: name for name in receipt.files.keys() - found.keys()}
    return {others.get(name, name): path for name, path in files_by_name(tuple(rest)).items()} | found


def _with_limits(executor: Executor, receipt: Receipt) -> Executor:
    """Return an executor with the limits that the program had, up to ten minutes and 4 GB."""
    now = executor.limits
    seconds = max(now.seconds, min(receipt.limits.get("seconds", 0), _MAX_SECONDS))
    memory = max(now.memory_bytes, int(min(receipt.limits.get("memory", 0), _MAX_MEMORY)))
    if (seconds, memory) == (now.seconds, now.memory_bytes):
        return executor
    return executor.with_limits(replace(now, seconds=seconds, memory=memory))


def _receipts_in(results: Path) -> dict[str, object]:
    """Return the receipts of a results file by the ids of their answers; empty if it is none."""
    receipts = dict[str, object]()
    for _, line in read_lines(results):
        with suppress(ValueError):  # A damaged line costs itself alone.
            record = parse_json(line) if line.strip() else None
            if isinstance(record, dict) and isinstance(record.get("computed"), dict):
                receipts.setdefault(str(record.get("id")), record["computed"].get("receipt"))
    return receipts


def _receipt_of(receipts: Mapping[str, object], answer_id: str | None) -> str:
    """Return the receipt of one answer, as JSON."""
    if answer_id is not None and answer_id in receipts:
        return json.dumps(receipts[answer_id])
    known = (
        ", ".join(" ".join(name.split())[:_MAX_REASON_CHARS] for name in [*receipts][:_MAX_LISTED]) or "none"
    )
    asked = "is a results file" if answer_id is None else f"has no answer with the id {answer_id!r}"
    raise InputError(f"The file {asked}. Pass --id with one of these: {known}.")
