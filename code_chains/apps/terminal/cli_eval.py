"""The command that evaluates a chain on questions with known answers."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from code_chains.apps.chain_options import chain_options, parse_budget
from code_chains.apps.terminal.cli_batch import QuestionsPath, batch_arguments, batch_options, chain_for
from code_chains.apps.terminal.cli_options import echo, file_option, files_by_name, handle_errors
from code_chains.apps.terminal.named_files import check_named_files_of
from code_chains.records.printable import strip_control_chars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from code_chains.chains.judge import JudgeChain
    from code_chains.evaluation import Case, Evaluation


@click.command("eval")
@click.argument("cases", type=QuestionsPath(exists=True, dir_okay=False))
@click.option(
    "--results",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Where answers are written; those in it are not asked again.",
)
@click.option(
    "--report", metavar="FILE.html", type=click.Path(dir_okay=False), help="Write a report as a page."
)
@click.option(
    "--json",
    "saved",
    metavar="FILE.json",
    type=click.Path(dir_okay=False),
    help="Save the evaluation, e.g. for --compare.",
)
@click.option(
    "--compare",
    "other",
    metavar="FILE.json",
    type=click.Path(exists=True, dir_okay=False),
    help="Compare with an evaluation that was saved.",
)
@click.option(
    "--min-accuracy",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Exit with 1 if a smaller share of the answers is right.",
)
@batch_options
@click.option(
    "--scorer",
    metavar="NAME",
    help="Decides on expected values: tolerance=0.01, set, or module:function.",
)
@click.option(
    "--judge-model",
    metavar="MODEL",
    help="Judges the cases that ask for it, not of --base-url. [default: the model of the chain]",
)
@file_option("A file for all questions; repeatable.")
@chain_options
@handle_errors
def evaluate_command(
    cases: str,
    results: str | None,
    report: str | None,
    saved: str | None,
    other: str | None,
    min_accuracy: float,
    judge_model: str | None,
    scorer: str | None,
    files: tuple[str, ...],
    **options: Any,
) -> None:
    """Evaluate the answers to CASES, questions with known answers.

    The file is one of questions, as for `run`, that also says what is expected: expected (a value),
    expected_pattern (a regular expression), or judge (true). Datasets that LangSmith exported are read, too. The
    exit code is 0 if each case came to an end, right or wrong, and the accuracy is at least --min-accuracy.

    Example: code-chains eval cases.jsonl --results answers.jsonl --report report.html
    """
    from code_chains.evaluation import Evaluation, read_cases
    from code_chains.evaluation.comparison import check_comparable, compare

    _check_outputs(cases, {"--report": (report, ".html"), "--json": (saved, ".json")})
    common = files_by_name(files)
    all_cases = read_cases(cases, files=common)
    check_named_files_of(case.question for case in all_cases)
    baseline = None if other is None else Evaluation.load(other)
    if baseline is not None:
        check_comparable(all_cases, baseline)
    judge = _judge_for(all_cases, judge_model, options)
    evaluation = _evaluate(all_cases, results, judge=judge, scorer=scorer, options=options)
    click.echo(str(evaluation))
    _write(evaluation, saved, report, title=f"Evaluation of {Path(cases).name}")
    if baseline is not None and not evaluation.missing:
        click.echo(
            strip_control_chars(f"\ncompared with {other}, the first\n{compare(baseline, evaluation)}")
        )
    sys.exit(0 if evaluation.is_complete and evaluation.accuracy.value >= min_accuracy else 1)


def _check_outputs(cases: str, outputs: dict[str, tuple[str | None, str]]) -> None:
    """Raise if a file could not be written in the end."""
    for option, (path, suffix) in outputs.items():
        if path is None:
            continue
        if Path(path).suffix.lower() != suffix:
            raise click.BadParameter(f"must end with {suffix}", param_hint=option)
        if os.path.exists(path) and os.path.exists(cases) and os.path.samefile(path, cases):
            raise click.BadParameter("would replace the cases", param_hint=option)
        if not Path(path).parent.is_dir():
            raise click.BadParameter(f"the folder {Path(path).parent} does not exist", param_hint=option)


def _judge_for(cases: Sequence[Case], name: str | None, options: dict[str, Any]) -> JudgeChain | None:
    """Return the judge, if a case asks for one."""
    if all(case.expectation.by != "judge" for case in cases):
        return None
    from code_chains.chains.judge import JudgeChain
    from code_chains.models import default_model, resolve_model

    base_url = None if name else options["base_url"]
    return JudgeChain(model=resolve_model(name or options["model"] or default_model(), base_url=base_url))


def _evaluate(
    cases: list[Case],
    results: str | None,
    *,
    judge: JudgeChain | None,
    scorer: str | None,
    options: dict[str, Any],
) -> Evaluation:
    """Evaluate, and show progress."""
    from code_chains.apps.terminal.batch_progress import Counts, watch_batch
    from code_chains.batch.results_file import ResultsFile
    from code_chains.evaluation import evaluate
    from code_chains.evaluation.scorers import scorer_named

    names = ("concurrency", "cluster", "retries", "rates", "max_errors", "again")
    limits, arguments = (
        parse_budget(options.pop("budget")),
        batch_arguments(**{name: options.pop(name) for name in names}),
    )
    anew, counts = options.pop("anew"), Counts(len(cases))
    with contextlib.ExitStack() as stack:
        results_file = None
        if results:
            results_file = stack.enter_context(ResultsFile(results, resume=not anew, anew=anew))
            counts.done = sum(results_file.has(case.question) for case in cases)
            counts.changed = sum(results_file.is_changed(case.question) for case in cases)
        chain = stack.enter_context(chain_for(results_file, arguments["cluster"], options))
        evaluation = evaluate(
            chain,
            cases,
            results_file=results_file,
            budget=limits,
            judge=judge,
            scorer=None if scorer is None else scorer_named(scorer),
            watch=lambda answers: watch_batch(answers, counts),
            **arguments,
        )
    echo(f"{counts}; {counts.cost}", err=True)
    return evaluation


def _write(evaluation: Evaluation, saved: str | None, report: str | None, *, title: str) -> None:
    from code_chains.apps.terminal.evaluation_report import write_report

    if saved is not None:
        evaluation.save(saved)
    if report is not None:
        write_report(evaluation, report, title=title)
