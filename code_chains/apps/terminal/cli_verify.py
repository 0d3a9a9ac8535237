"""`code-chains verify`: run the program of a receipt again, without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from code_chains.apps.terminal.cli_options import echo, file_option, files_by_name, handle_errors
from code_chains.errors import InputError

if TYPE_CHECKING:
    from code_chains.executors import Executor
    from code_chains.receipts import Receipt

_MAX_SECONDS, _MAX_MEMORY, _MAX_LISTED = 600.0, 4 << 30, 10


@click.command()
@click.argument("receipt", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--id", "answer_id", metavar="ID", help="The answer of a results file whose receipt is meant.")
@file_option("A file that the program was given; repeatable.")
@handle_errors
def verify(receipt: Path, answer_id: str | None, files: tuple[str, ...]) -> None:
    """Run the program of a RECEIPT again.

    No model is asked; the last line says whether the program shows the same. Files that the program was given are passed
    with --file; one of the same name beside the receipt is found. Each line of a results file of `code-chains run` has a
    receipt, too: pass the file, and --id.

    Example: code-chains verify receipt.json --file sales.csv
    """
    from code_chains.arguments import resolve_executor
    from code_chains.receipts import decoded, read_receipt, run_again

    text = decoded(receipt.read_bytes())
    answers = _receipts_in(text)
    if answer_id is not None or answers:
        text = _receipt_of(answers, answer_id)
    given = read_receipt(text)
    found = {**_beside(given, receipt.parent), **_by_name_in(given, files)}
    language = given.language if given.language == "sql" else "strongest"
    with resolve_executor(language) as executor, _with_limits(executor, given) as limited:
        comparison = run_again(given, limited, files=found)
    echo(f"Question: {given.question}")
    echo(f"Answer: {given.answer or given.output.strip()}")
    echo(f"Verdict then: {given.verdict.get('status', 'none')}: {given.verdict.get('reason', '')}")
    click.echo(f"{comparison.status}: {comparison.reason}")
    sys.exit(0 if comparison.status == "same" else 1)


def _beside(receipt: Receipt, folder: Path) -> dict[str, Path]:
    """Return the files of a receipt that lie beside it, also in folders there."""
    paths = {name: folder / name for name in receipt.files}
    # Invariant: a receipt names no file outside of its own folder, and no link leads out of it.
    root = folder.resolve()
    return {
        name: path for name, path in paths.items() if path.is_file() and path.resolve().is_relative_to(root)
    }


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


def _receipts_in(results: str) -> dict[str, object]:
    """Return the receipts of a results file by the ids of their answers; empty if it is none."""
    receipts = dict[str, object]()
    for line in filter(str.strip, results.splitlines()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):  # A damaged line costs itself alone.
            continue
        if isinstance(record, dict) and isinstance(record.get("computed"), dict):
            receipts.setdefault(str(record.get("id")), record["computed"].get("receipt"))
    return receipts


def _receipt_of(receipts: Mapping[str, object], answer_id: str | None) -> str:
    """Return the receipt of one answer, as JSON."""
    if answer_id is not None and answer_id in receipts:
        return json.dumps(receipts[answer_id])
    known = ", ".join(list(receipts)[:_MAX_LISTED]) or "none"
    asked = "is a results file" if answer_id is None else f"has no answer with the id {answer_id!r}"
    raise InputError(f"The file {asked}. Pass --id with one of these: {known}.")
