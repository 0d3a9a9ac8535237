"""Answer many questions with a chain, on this machine or on the workers of a Dask cluster (extra `cluster`).

Only JSON is sent to other machines: the specification of the chain, from which each worker builds it once,
and questions and answers. API keys come from the environment of the workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from code_chains.batch.questions import Question, with_ids
from code_chains.batch.records import Answer, BudgetTracker, answer_question
from code_chains.batch.results_file import ResultsFile
from code_chains.callbacks.budget import Budget
from code_chains.code_chain import CodeChain
from code_chains.errors import ConfigurationError, StoreError
from code_chains.executors.limiter import available_processors
from code_chains.specification import ChainSpec, build_chain, serialize_spec


def map_questions(
    chain: CodeChain | ChainSpec,
    questions: Iterable[str | Mapping[str, Any] | Question],
    *,
    cluster: Any = None,
    concurrency: int | None = None,
    results_file: ResultsFile | None = None,
    budget: Budget | None = None,
    allowed_failures: int = 3,
) -> Iterator[Answer]:
    """Answer many questions and yield the answers as they complete, in any order.

    Questions may be a generator of any length, which is consumed lazily: at most twice as many as can run. An
    answer is in the results file before it is yielded, and questions that are in the file are skipped: an
    interrupted run can be resumed. A question whose worker dies is retried elsewhere, so its program may run
    more than once, but its answer is written and yielded exactly once. A question that more than
    `allowed_failures` workers did not survive is abandoned.

    Args:
        chain: A `CodeChain` (only without a cluster), arguments of `create_code_chain` as JSON, or
            `"module:function"`.
        questions: Strings, or mappings with `query` and optionally `id`, `files` and others. Files must exist
            at the same path on all workers.
        cluster: None for this process, a number of processes on this machine, the address of a Dask scheduler
            (`"tcp://…:8786"`), or a Dask `Client`.
        concurrency: How many questions run at once in this process; two per core by default.
        results_file: Where answers are written; the caller opens and closes it.
        budget: Limits for all questions together. In this process tokens and dollars are exceeded by at most
            one reply, and the others never; on a cluster no question starts once a limit is reached, and
            running ones are finished.
        allowed_failures: How many dead workers a question survives, as in Dask: one more, and it is abandoned. It
            applies to the whole scheduler; a `Client` keeps the setting of its own.

    Yields:
        An answer for each question that was not in the results file.

    Raises:
        IsolationError: A worker cannot isolate programs as the chain requires; no question was answered.
        ExecutorError: The cluster is gone. Answers so far are in the results file.
    """
    if isinstance(questions, str | Path) or not isinstance(questions, Iterable):
        remedy = 'a list, e.g. ["What is 2 + 2?"]; for a file, batch.questions.read_questions(path)'
        raise ConfigurationError("questions", questions, remedy)
    open_questions = _open_questions(questions, results_file)
    if cluster is None:
        answers = _run_locally(chain, open_questions, concurrency or 2 * available_processors(), budget)
    elif isinstance(chain, CodeChain):
        raise ConfigurationError(
            "chain", chain, "JSON from which workers build it: arguments of create_code_chain"
        )
    else:
        from code_chains.batch.workers import run_on_cluster

        spec, tracker = serialize_spec(chain), BudgetTracker(budget)
        answers = run_on_cluster(
            spec, open_questions, cluster, tracker=tracker, allowed_failures=allowed_failures
        )
    try:
        for answer in answers:
            if results_file is not None:
                (results_file.fail if answer.error else results_file.add)(answer.to_dict())
            yield answer
    except BaseException:  # Even if the run is interrupted: abandoned questions must not run again.
        with suppress(StoreError):  # What ended the run is the cause.
            _write_failures(results_file)
        raise
    _write_failures(results_file)


def _write_failures(results_file: ResultsFile | None) -> None:
    if results_file is not None:
        results_file.write_failures()


def _open_questions(
    questions: Iterable[str | Mapping[str, Any] | Question], results_file: ResultsFile | None
) -> Iterator[Question]:
    """Yield the questions that are neither answered nor abandoned."""
    failures = results_file.failures if results_file is not None else {}
    abandoned = {question_id for question_id, record in failures.items() if record.get("is_lost")}
    for question in with_ids(questions):
        is_done = results_file is not None and question.id in results_file.done
        if not is_done and question.id not in abandoned:
            yield question


def _run_locally(
    chain: CodeChain | ChainSpec, questions: Iterator[Question], concurrency: int, budget: Budget | None
) -> Iterator[Answer]:
    """Answer in threads of this process."""
    tracker, config = BudgetTracker(budget), {"callbacks": [budget]} if budget else {}
    with ExitStack() as stack:
        if not isinstance(chain, CodeChain):
            chain = stack.enter_context(build_chain(serialize_spec(chain)))
        pool = stack.enter_context(ThreadPoolExecutor(concurrency, thread_name_prefix="code_chains-question"))
        running: set[Future[Answer]] = set()
        stack.callback(lambda: [future.cancel() for future in running])
        while True:
            free_slots = 0 if tracker.is_exhausted else concurrency - len(running)
            for question in itertools.islice(questions, free_slots):
                running.add(pool.submit(answer_question, chain, question, config))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                answer = future.result()
                tracker.add(answer)
                yield answer
