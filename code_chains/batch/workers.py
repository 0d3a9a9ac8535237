"""Answer questions on a Dask cluster.

Each worker builds the chain once and proves its isolation before it takes work.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from code_chains.batch.questions import Question
from code_chains.batch.records import Answer, BudgetTracker, answer_question
from code_chains.callbacks.redaction import describe_error
from code_chains.code_chain import CodeChain
from code_chains.errors import CodeChainsError, ExecutorError, IsolationError, needs
from code_chains.specification import build_chain
from code_chains.state import as_json

with needs("cluster", "cluster", "dask"):
    from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, as_completed

_POLL_INTERVAL_S = 0.02
_CHECK_INTERVAL_S = 1.0
"""Seconds for which workers that were seen are assumed to be alive."""
_CONNECT_TIMEOUT_S, _WORKER_TIMEOUT_S = 20.0, 120.0
"""Timeout of the connection to the scheduler, and how long a cluster may have no workers."""
_CLUSTER_LOST = (
    "The cluster is gone, or has no workers. Answers so far are in the results file: resume the run with it."
)
_chains: dict[str, CodeChain] = {}
_lock = threading.Lock()


def run_on_cluster(
    spec: str, questions: Iterator[Question], cluster: Any, *, tracker: BudgetTracker, allowed_failures: int
) -> Iterator[Answer]:
    """Answer questions on a cluster, in any order; see `map_questions`."""
    try:
        with _connect(cluster, allowed_failures) as client:
            _prepare(client, spec)
            yield from _collect_answers(client, spec, questions, tracker)
    except (
        OSError,
        TimeoutError,
    ) as error:  # Of the connection to the scheduler; those of a results file are StoreErrors.
        raise ExecutorError(
            f"{_CLUSTER_LOST} ({' '.join(str(error).split())[:200]})", is_retryable=True
        ) from error


@contextmanager
def _connect(cluster: Any, allowed_failures: int) -> Iterator[Client]:
    """Return the given client, or one that is closed at the end."""
    if isinstance(cluster, Client):
        yield cluster
        return
    with ExitStack() as stack:
        if isinstance(cluster, int):
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=cluster, threads_per_worker=2, host="127.0.0.1", dashboard_address=None
                )
            )
        try:
            client = stack.enter_context(Client(cluster, timeout=_CONNECT_TIMEOUT_S))
        except OSError as error:
            raise ExecutorError(
                f"The cluster {cluster} cannot be reached: {error}", is_retryable=True
            ) from error
        client.run_on_scheduler(_set_allowed_failures, allowed_failures)
        yield client


def _set_allowed_failures(allowed_failures: int, dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = allowed_failures


def _prepare(client: Client, spec: str) -> None:
    """Have all workers, including those that join later, build the chain and prove its isolation before they take work.

    Raises:
        IsolationError: A present worker cannot isolate programs.
        ExecutorError: A present worker cannot build the chain.
    """
    client.wait_for_workers(1, timeout=_WORKER_TIMEOUT_S)
    client.register_plugin(_ChainPlugin(spec), name=f"code_chains-{hash(spec)}")


class _ChainPlugin(WorkerPlugin):
    """Builds the chain when a worker starts, and closes it when the worker ends."""

    def __init__(self, spec: str) -> None:
        self._spec = spec

    def setup(self, worker: Any) -> None:
        try:
            _prove_isolation(_get_chain(self._spec))
        except IsolationError as error:
            raise IsolationError(f"{worker.address}: {error}") from error
        except Exception as error:
            raise ExecutorError(f"{worker.address}: {describe_error(error)}") from error

    def teardown(self, worker: Any) -> None:
        with _lock:
            if chain := _chains.pop(self._spec, None):
                chain.close()


def _get_chain(spec: str) -> CodeChain:
    with _lock:
        if spec not in _chains:
            _chains[spec] = build_chain(spec)
        return _chains[spec]


def _prove_isolation(chain: CodeChain) -> None:
    """Run a trivial program, which raises if programs cannot be isolated as required."""
    programs = {"python": "1", "sql": "SELECT 1"}
    if chain.executor is not None and chain.executor.language in programs:
        chain.executor.run(programs[chain.executor.language])


def _answer_on_worker(spec: str, job: str) -> str:
    """Answer a question on a worker; both are JSON."""
    question = json.loads(job)
    if paths := question["paths"]:
        files = question["inputs"].get("files") or {}
        question["inputs"]["files"] = files | {name: Path(path) for name, path in paths.items()}
    return json.dumps(
        answer_question(_get_chain(spec), Question(question["id"], question["inputs"])).to_dict()
    )


def _split_inputs(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return inputs as JSON, with the paths apart: on the worker as well text is no path."""
    files = inputs.get("files") or {}
    if not isinstance(files, Mapping):
        files = {Path(file).name: file for file in files}
    paths = {name: os.fspath(file) for name, file in files.items() if isinstance(file, os.PathLike)}
    others = {name: file for name, file in files.items() if name not in paths}
    return {"inputs": as_json({**inputs, "files": others}), "paths": paths}


def _collect_answers(
    client: Client, spec: str, questions: Iterator[Question], tracker: BudgetTracker
) -> Iterator[Answer]:
    """Keep twice as many questions submitted as there are threads, and yield their answers."""
    submitted: dict[Any, Question] = {}
    completed, run = as_completed(), f"code_chains-{time.time_ns():x}"

    def submit() -> None:
        free_slots = max(0, 2 * sum(client.nthreads().values()) - len(submitted))
        for question in itertools.islice(questions, 0 if tracker.is_exhausted else free_slots):
            job = json.dumps({"id": question.id, **_split_inputs(question.inputs)})
            future = client.submit(_answer_on_worker, spec, job, key=f"{run}-{question.id}", pure=False)
            submitted[future.key] = question
            completed.add(future)

    submit()
    last_seen = time.monotonic()
    while submitted:
        done = completed.next_batch(block=False)
        for future in done:
            answer = _read_answer(future, submitted[future.key])
            if answer is None:
                completed.add(future)
                continue
            del submitted[future.key]
            tracker.add(answer)
            future.release()
            yield answer
        if done:
            submit()
        last_seen = _check_alive(client, last_seen)
        time.sleep(0 if done else _POLL_INTERVAL_S)


def _check_alive(client: Client, last_seen: float) -> float:
    """Return when the cluster last had a worker.

    Raises:
        ExecutorError: That is too long ago, or the scheduler is gone.
    """
    now = time.monotonic()
    if client.status not in ("running", "connecting") or now - last_seen > _WORKER_TIMEOUT_S:
        raise ExecutorError(_CLUSTER_LOST, is_retryable=True)
    if now - last_seen < _CHECK_INTERVAL_S or not client.nthreads():
        return last_seen
    return now


def _read_answer(future: Any, question: Question) -> Answer | None:
    """Return the answer, or None if its worker died with it after it was reported: Dask computes it again."""
    status = future.status  # Read once: it may change at any time.
    if status == "cancelled":
        raise ExecutorError(_CLUSTER_LOST, is_retryable=True)
    if status not in ("finished", "error"):
        return None
    if status == "finished":
        with suppress(KilledWorker):  # Now its worker has died as well, and was one too many.
            return Answer.from_dict(question, json.loads(future.result()))
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Answer(
            question, error="The question was abandoned, as its workers died repeatedly.", is_lost=True
        )
    if isinstance(error, CodeChainsError):
        raise error
    return Answer(question, error=describe_error(error))
