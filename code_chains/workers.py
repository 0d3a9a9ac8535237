"""Questions on the workers of a Dask cluster: each builds the chain once, and proves its sandbox before it takes any."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from code_chains.answers import Answer, Tally, answered, make_chain
from code_chains.code_chain import CodeChain
from code_chains.errors import CodeChainsError, ExecutorError, IsolationError, needs
from code_chains.progress import explained
from code_chains.questions import Question
from code_chains.state import as_json

with needs("cluster", "cluster", "it"):
    from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, as_completed

__all__ = ["answers_of_workers"]

_PAUSE = 0.02
_CONNECT, _PATIENCE = 20.0, 120.0
"""Seconds in which a scheduler must answer, and without any worker after which a cluster is given up."""
_GONE = "The cluster is gone, or has no workers. What was answered is in the ledger: run again with it."
_chains: dict[str, CodeChain] = {}
_lock = threading.Lock()


def answers_of_workers(
    spec: str, questions: Iterator[Question], cluster: Any, *, tally: Tally, losses: int
) -> Iterator[Answer]:
    """Answer questions on a cluster, in any order; see `cluster.map_questions`."""
    try:
        with _connected(cluster, losses) as client:
            _prepare(client, spec)
            yield from _collected(client, spec, questions, tally)
    except (OSError, TimeoutError) as error:  # Of the connection to the scheduler; a ledger's are our own.
        raise ExecutorError(f"{_GONE} ({' '.join(str(error).split())[:200]})", is_retryable=True) from error


@contextmanager
def _connected(cluster: Any, losses: int) -> Iterator[Client]:
    """A client of a cluster, which was given or is made for this."""
    if isinstance(cluster, Client):
        yield cluster
        return
    with ExitStack() as stack:
        if isinstance(cluster, int):
            cluster = stack.enter_context(
                LocalCluster(n_workers=cluster, threads_per_worker=2, host="127.0.0.1", dashboard_address=None)
            )
        try:
            client = stack.enter_context(Client(cluster, timeout=_CONNECT))
        except OSError as error:
            raise ExecutorError(f"The cluster {cluster} cannot be reached: {error}", is_retryable=True) from error
        client.run_on_scheduler(_allow, losses)
        yield client


def _allow(losses: int, dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = losses


def _prepare(client: Client, spec: str) -> None:
    """Have every worker, and each that comes later, build the chain and prove its sandbox; one that cannot takes no work.

    Raises:
        IsolationError: One of those that are there cannot isolate.
        ExecutorError: One of them cannot build the chain.
    """
    client.wait_for_workers(1, timeout=_PATIENCE)
    client.register_plugin(_Ready(spec), name=f"code_chains-{hash(spec)}")


class _Ready(WorkerPlugin):
    """Builds the chain when a worker starts, and closes it when it ends."""

    def __init__(self, spec: str) -> None:
        self._spec = spec

    def setup(self, worker: Any) -> None:
        try:
            _prove(_chain(self._spec))
        except IsolationError as error:
            raise IsolationError(f"{worker.address}: {error}") from error
        except Exception as error:
            raise ExecutorError(f"{worker.address}: {explained(error)}") from error

    def teardown(self, worker: Any) -> None:
        with _lock:
            if chain := _chains.pop(self._spec, None):
                chain.close()


def _chain(spec: str) -> CodeChain:
    with _lock:
        if spec not in _chains:
            _chains[spec] = make_chain(spec)
        return _chains[spec]


def _prove(chain: CodeChain) -> None:
    """Run something, which raises where programs cannot be isolated as they must be."""
    proof = {"python": "1", "sql": "SELECT 1"}
    if chain.place is not None and chain.place.language in proof:
        chain.place.run(proof[chain.place.language])


def _worked(spec: str, job: str) -> str:
    """What a worker does: a question as JSON in, its answer as JSON out."""
    given = json.loads(job)
    return json.dumps(answered(_chain(spec), Question(given["id"], given["inputs"])).to_dict())


def _collected(client: Client, spec: str, questions: Iterator[Question], tally: Tally) -> Iterator[Answer]:
    """Keep twice as many questions under way as there are threads, and collect what comes of them."""
    under_way: dict[Any, Question] = {}
    coming, run = as_completed(), f"code_chains-{time.time_ns():x}"

    def feed() -> None:
        room = 0 if tally.is_full else max(0, 2 * sum(client.nthreads().values()) - len(under_way))
        for question in itertools.islice(questions, room):
            job = json.dumps({"id": question.id, "inputs": as_json(question.inputs)})
            future = client.submit(_worked, spec, job, key=f"{run}-{question.id}", pure=False)
            under_way[future.key] = question
            coming.add(future)

    feed()
    seen = time.monotonic()
    while under_way:
        done = coming.next_batch(block=False)
        for future in done:
            answer = _taken(future, under_way.pop(future.key))
            tally.add(answer)
            future.release()
            yield answer
        if done:
            feed()
        seen = _alive(client, seen)
        time.sleep(0 if done else _PAUSE)


def _alive(client: Client, seen: float) -> float:
    """When a worker was there for the last time.

    Raises:
        ExecutorError: That is too long ago, or the scheduler is gone.
    """
    now = time.monotonic()
    if client.status not in ("running", "connecting") or now - seen > _PATIENCE:
        raise ExecutorError(_GONE, is_retryable=True)
    return now if now - seen < 1 or client.nthreads() else seen


def _taken(future: Any, question: Question) -> Answer:
    if future.status == "finished":
        return Answer.from_dict(question, json.loads(future.result()))
    if future.status == "cancelled":
        raise ExecutorError(_GONE, is_retryable=True)
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Answer(question, error="Its workers died, one after the other; it is set aside.", is_lost=True)
    if isinstance(error, CodeChainsError):
        raise error
    return Answer(question, error=explained(error))
