"""`code-chains verify`: run the program of a receipt again, without a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from code_chains.apps.terminal.cli_options import echo, file_option, files_by_name, handle_errors
from code_chains.errors import InputError


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
    from code_chains.receipts import read_receipt, run_again

    text = receipt.read_text(encoding="utf-8")
    given = read_receipt(text if answer_id is None else _receipt_of(text, answer_id))
    # Invariant: a receipt names no file outside of its own folder.
    beside = {name: receipt.parent / name for name in given.files if Path(name).name == name}
    beside = {name: path for name, path in beside.items() if path.is_file()}
    with resolve_executor(given.language if given.language == "sql" else "strongest") as executor:
        comparison = run_again(given, executor, files={**beside, **files_by_name(files)})
    echo(f"Question: {given.question}")
    echo(f"Answer: {given.answer or given.output.strip()}")
    echo(f"Verdict then: {given.verdict['status']}: {given.verdict['reason']}")
    click.echo(f"{comparison.status}: {comparison.reason}")
    sys.exit(0 if comparison.status == "same" else 1)


def _receipt_of(results: str, answer_id: str) -> str:
    """Return the receipt of one answer of a results file, as JSON."""
    for line in filter(str.strip, results.splitlines()):
        try:
            record = json.loads(line)
        except ValueError:  # A damaged line costs itself alone.
            continue
        if isinstance(record, dict) and str(record.get("id")) == answer_id and "computed" in record:
            return json.dumps(record["computed"].get("receipt"))
    raise InputError(f"The file has no answer with the id {answer_id!r}.")
