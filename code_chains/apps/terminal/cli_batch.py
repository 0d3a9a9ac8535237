"""The command that answers many questions, and the options that it shares with the one that evaluates."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from code_chains.apps.chain_options import chain_options, chain_spec, create_chain, parse_budget
from code_chains.apps.terminal.cli_options import echo, file_option, files_by_name, handle_errors
from code_chains.apps.terminal.named_files import check_named_files_of
from code_chains.batch.warm_up import warm_up

_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--concurrency",
        type=click.IntRange(1),
        help="How many questions run at once, on a cluster in each worker. [default: two per core, one per thread]",
    ),
    click.option(
        "--cluster", metavar="ADDRESS|N", help="A Dask scheduler (tcp://…), or N processes on this machine."
    ),
    click.option(
        "--retries",
        type=click.IntRange(0),
        default=5,
        show_default=True,
        help="How often a question is asked again after a rate limit or an outage.",
    ),
    click.option("--timeout", type=click.FloatRange(1), help="Seconds that a request to the model may take."),
    click.option(
        "--rate",
        "rates",
        multiple=True,
        metavar="N",
        help='"60 requests" or "90000 tokens" a minute; repeatable.',
    ),
    click.option(
        "--max-errors",
        metavar="N|SHARE",
        type=click.FloatRange(0),
        help="End the run if more questions fail: a number, or a share such as 0.1.",
    ),
    click.option(
        "--again",
        multiple=True,
        type=click.Choice(["abandoned", "limits", "files"]),
        help="Ask again what was abandoned, has no answer as a program met a limit, or has lost its files; repeatable.",
    ),
    click.option(
        "--anew", is_flag=True, help="Keep an existing results file under another name, and ask everything."
    ),
)


class QuestionsPath(click.Path):
    """The path of a file of questions, or `langsmith:NAME` for a dataset of LangSmith."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path that exists, or the name of a dataset as it is."""
        return value if str(value).startswith("langsmith:") else super().convert(value, param, ctx)


def batch_options(command: _Command) -> _Command:
    """Add the options of commands that ask many questions."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def batch_arguments(
    *, cluster: str | None, concurrency: int | None, retries: int, rates: tuple[str, ...], max_errors: float | None,
    again: tuple[str, ...],
) -> dict[str, Any]:  # fmt: skip
    """Return the arguments of `map_questions` that the options describe."""
    from code_chains.batch.pace import Rate

    return {
        "cluster": _cluster(cluster),
        "concurrency": concurrency,
        "retries": retries,
        "rate": Rate.parse(*rates),
        "max_errors": max_errors,
        "again": again,
    }


def _cluster(text: str | None) -> int | str | None:
    if text is None or ":" in text:
        return text
    if not text.isdigit() or int(text) < 1:
        raise click.BadParameter(
            "must be an address such as tcp://127.0.0.1:8786, or a number of processes",
            param_hint="--cluster",
        )
    return int(text)


@contextlib.contextmanager
def chain_for(results_file: Any, cluster: str | None, options: dict[str, Any]) -> Any:
    """Return the chain of the options, or for a cluster its specification, and say in the results file what answers."""
    from code_chains.batch.runner import run_of

    spec = chain_spec(**options)
    if results_file is not None:
        results_file.bind(run_of(spec))
    if cluster:
        yield spec
        return
    with create_chain(budget=(), **options) as chain:
        yield chain


@click.command()
@click.argument("questions", type=QuestionsPath(exists=True, dir_okay=False))
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False),
    help="The results file, with one line per answer.",
)
@click.option("--resume", is_flag=True, help="Continue the results file; questions in it are skipped.")
@batch_options
@file_option("A file for all questions; repeatable.")
@click.option(
    "--export",
    "table",
    metavar="FILE",
    help="Write the answers as a table, too: FILE.csv, .xlsx, .parquet or .jsonl.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what came of it as JSON.")
@chain_options
@handle_errors
def run(
    questions: str,
    out: str,
    files: tuple[str, ...],
    table: str | None,
    resume: bool,
    anew: bool,
    cluster: str | None,
    budget: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Answer all QUESTIONS in a file.

    The file is .jsonl, .json with an array, .csv, .xlsx or .parquet with a column query (and files, paths separated by
    semicolons), or text with one question per line; other columns stay beside the answers. In place of a file,
    langsmith:NAME is a dataset of LangSmith. Each answer is written as soon as it is complete, exactly once; OUT.failed
    holds the failures, OUT.files the files that programs made. Resume an interrupted run with --resume: what has changed
    is asked again. The exit code is 0 if each question has a line.

    Example: code-chains run questions.csv --out answers.jsonl --export answers.xlsx
    """
    if isinstance(_cluster(cluster), int):
        warm_up()
    from code_chains.apps.terminal.batch_progress import Counts, show_batch
    from code_chains.batch.export import check_table, export_table
    from code_chains.batch.questions import read_questions
    from code_chains.batch.results_file import ResultsFile
    from code_chains.batch.runner import map_questions

    names = ("concurrency", "retries", "rates", "max_errors", "again")
    arguments = batch_arguments(cluster=cluster, **{name: options.pop(name) for name in names})
    if table:
        check_table(Path(table), may_exist=resume or anew)
    common = files_by_name(files)
    all_questions = list(read_questions(questions, files=common))
    check_named_files_of(all_questions)
    with contextlib.ExitStack() as stack:
        results_file = stack.enter_context(ResultsFile(out, resume=resume, anew=anew))
        chain = stack.enter_context(chain_for(results_file, cluster, options))
        counts = Counts(
            len(all_questions),
            done=sum(map(results_file.has, all_questions)),
            unanswered=sum(map(results_file.is_unanswered, all_questions)),
            changed=sum(map(results_file.is_changed, all_questions)),
        )
        if results_file.damaged:
            echo(
                f"{out}: {len(results_file.damaged)} lines are damaged; their questions are asked again.",
                err=True,
            )
        if lost := len(results_file.without_files) * ("files" not in arguments["again"]):
            echo(f"{out}.files: the files of {lost} answers are gone; --again files asks for them.", err=True)
        answers = map_questions(
            chain, all_questions, results_file=results_file, budget=parse_budget(budget), **arguments
        )
        stack.callback(answers.close)
        try:
            show_batch(answers, counts)
        finally:
            echo(f"{out}: {counts}; {counts.cost}", err=True)
            if as_json:
                click.echo(json.dumps(counts.to_dict()))
        if table:
            count = export_table(Path(out), Path(table), order=[question.id for question in all_questions])
            echo(f"{table}: {count} rows", err=True)
    sys.exit(0 if counts.all_done else 1)
