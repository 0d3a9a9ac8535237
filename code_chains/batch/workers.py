"""Answer questions on a Dask cluster.

A worker is checked by each task that it takes: whether it has this version of the package, can build the chain, and can
isolate programs. One that cannot takes no further task.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import logging
import os
import pkgutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from code_chains._version import __version__
from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.specification import build_chain
from code_chains.batch.questions import Question
from code_chains.batch.records import Answer, BudgetTracker, failed
from code_chains.batch.runner import Job, answer_all
from code_chains.batch.transport import pack_question, unpack_question
from code_chains.batch.warm_up import warm_up
from code_chains.callbacks.budget import Budget
from code_chains.callbacks.redaction import describe_error
from code_chains.errors import CodeChainsError, ConfigurationError, ExecutorError, IsolationError, needs
from code_chains.state import Usage

with needs("cluster", "cluster", "dask"):
    import dask
    import distributed
    from distributed import Client, KilledWorker, LocalCluster, as_completed, get_worker, secede
    from distributed.comm.core import connect

_POLL_INTERVAL_S = 0.005
_CHECK_INTERVAL_S = 1.0
"""Seconds for which workers that were seen are assumed to be alive."""
_CONNECT_TIMEOUT_S, _WORKER_TIMEOUT_S = 20.0, 120.0
"""Timeout of the connection to the scheduler, and how long a cluster may have no workers."""
_CLUSTER_LOST = (
    "The cluster is gone, or has no workers. Answers so far are in the results file: resume the run with it."
)
_log = logging.getLogger(__name__)
_chains: dict[str, CodeChain] = {}
_lock = threading.Lock()


class ClusterWorkers:
    """The workers of a cluster.

    Args:
        spec: The specification of the chain.
        cluster: A number of processes, an address, a cluster of Dask, or a client.
        concurrency: Questions at once in each worker; None for one per thread.
        allowed_failures: How many dead workers a question survives.
        tracker: What is left of the budget.

    Raises:
        ExecutorError: The cluster cannot be reached.
    """

    def __init__(
        self,
        spec: str,
        cluster: Any,
        concurrency: int | None,
        allowed_failures: int,
        tracker: BudgetTracker,
    ) -> None:
        self._spec, self._concurrency, self._tracker = spec, concurrency, tracker
        self._stack, self._run = ExitStack(), f"code_chains-{time.time_ns():x}"
        try:
            self._client = self._connect(cluster, allowed_failures)
        except BaseException:
            self._stack.close()
            raise
        # The workers are those that may run it, if not all may.
        self._running: dict[Any, tuple[Any, Job, list[str]]] = {}
        self._completed = as_completed(with_results=True, raise_errors=False, loop=self._client.loop)
        self._ended: list[tuple[Job, list[Answer] | None]] = []
        self._unfit: dict[str, str] = {}
        self._number, self._last_seen = 0, time.monotonic()
        self._workers: dict[str, int] = {}
        self._checks: dict[str, Any] = {}
        self._scout: Any = None
        self._looked = 0.0

    def _connect(self, cluster: Any, allowed_failures: int) -> Any:
        if isinstance(cluster, Client):
            return cluster
        if isinstance(cluster, int):
            if cluster < 1:
                raise ConfigurationError(
                    "cluster", cluster, "a number of processes, at least 1, or an address"
                )
            distributed.utils._forkserver_preload_set = True  # What it imports itself is not needed.
            with dask.config.set({"distributed.worker.multiprocessing-method": warm_up()}):
                local = LocalCluster(
                    n_workers=cluster,
                    threads_per_worker=self._concurrency or 2,
                    host="127.0.0.1",
                    # Any free port: two batches may run at the same time.
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    env=dict(os.environ),
                )
            cluster = self._stack.enter_context(local)
        try:
            if isinstance(cluster, str):
                with ThreadPoolExecutor(1) as pool:  # The caller may have an event loop.
                    pool.submit(asyncio.run, _greet(cluster)).result()
            client = self._stack.enter_context(Client(cluster, timeout=_CONNECT_TIMEOUT_S))
        except (OSError, TypeError, ValueError) as error:
            tls = " For tls:// set distributed.comm.tls in Dask's configuration." * ("tls" in str(cluster))
            said = str(error) or "what answers there is no scheduler of Dask"
            message = f"The cluster {cluster} cannot be reached: {said}.{tls}"
            raise ExecutorError(message, is_retryable=True) from error
        client.run_on_scheduler(_set_allowed_failures, allowed_failures)
        return client

    # -- the interface of workers ----------------------------------------------------------------------------

    def slots(self) -> int:
        """Return how many jobs may run at once: twice as many as fit workers have threads, or what was asked for."""
        fit = self._fit()
        while not fit and not self._running:
            time.sleep(_POLL_INTERVAL_S)
            fit = self._fit()
        return (self._concurrency * len(fit)) if self._concurrency else 2 * sum(fit.values())

    def start(self, job: Job) -> None:
        """Submit a job."""
        try:
            packed = [pack_question(question, sent=job.is_sent) for question in job.questions]
        except (CodeChainsError, OSError) as error:
            self._ended.append((job, [failed(question, error) for question in job.questions]))
            return
        request = {
            "spec": self._spec,
            "questions": packed,
            "version": version(),
            "may_retry": job.may_retry,
            "budget": self._tracker.request(),
        }
        self._number += 1
        fit = list(self._fit())
        placed = fit if len(fit) < len(self._workers) else []
        future = self._client.submit(
            answer_on_worker,
            json.dumps(request),
            secedes=self._concurrency is not None,
            key=f"{self._run}-{self._number}-{job.questions[0].id}",
            pure=False,
            workers=placed or None,
        )
        self._running[future.key] = (future, job, placed)
        self._completed.add(future)

    def wait(self, seconds: float) -> list[tuple[Job, list[Answer] | None]]:
        """Return the jobs that have ended meanwhile."""
        end = time.monotonic() + seconds
        while not self._ended and time.monotonic() < end:
            for future, result in self._completed.next_batch(block=False):
                if future.key not in self._running:  # It was an orphan.
                    continue
                if not isinstance(result, str) and future.status not in ("error", "cancelled"):
                    self._completed.add(future)  # Its worker died with the answer, which Dask computes again.
                    continue
                job = self._running.pop(future.key)[1]
                self._ended.append((job, self._answers(future, job, result)))
                future.release()
            self._free_orphans()
            time.sleep(0 if self._ended else _POLL_INTERVAL_S)
        ended, self._ended = self._ended, []
        return ended

    def _free_orphans(self) -> None:
        """Start jobs again that wait for workers that have died.

        Raises:
            ExecutorError: There are no workers any more.
        """
        self._look()
        for key, (future, job, placed) in list(self._running.items()):
            is_orphan = placed and self._workers and self._workers.keys().isdisjoint(placed)
            if is_orphan and future.status == "pending":
                del self._running[key]
                self._ended.append((job, None))
                self._client.cancel([future])

    def close(self) -> None:
        """Cancel what still runs, and close the chains of the workers."""
        with suppress(Exception):
            if self._running:
                self._client.cancel([future for future, _, _ in self._running.values()])
            fit = list(self._fit())
            if fit and self._client.status == "running":
                self._client.run(_close_chain, self._spec, workers=fit, wait=False)
        self._stack.close()

    # -- what came back --------------------------------------------------------------------------------------

    def _answers(self, future: Any, job: Job, result: Any) -> list[Answer] | None:
        """Return the answers of a job, or None if it must be started again."""
        if isinstance(result, str):
            return self._read(job, json.loads(result))
        if future.status != "error":
            raise ExecutorError(_CLUSTER_LOST, is_retryable=True)
        error = future.exception()
        if not isinstance(error, KilledWorker):
            return [failed(question, error) for question in job.questions]
        job.spent += Usage(estimated_calls=1)  # What the workers spent died with them.
        if job.is_alone:
            lost = "The question was abandoned, as its workers died repeatedly, also when it ran alone."
            return [
                Answer(question, error=lost, is_lost=True, failure="question") for question in job.questions
            ]
        job.is_alone = True  # Others that ran beside it are not to blame.
        return None

    def _read(self, job: Job, reply: dict[str, Any]) -> list[Answer] | None:
        if "unfit" in reply:
            self._exclude(reply["worker"], reply["unfit"], is_isolation=reply["is_isolation"])
            return None
        if "missing" in reply:
            if job.is_sent:
                missing = ", ".join(reply["missing"])
                error = ExecutorError(f"The worker {reply['worker']} cannot read {missing}.")
                return [failed(question, error) for question in job.questions]
            job.is_sent = True
            return None
        pairs = zip(job.questions, reply["answers"], strict=False)
        return [Answer.from_computed(question, computed) for question, computed in pairs]

    # -- which workers there are -----------------------------------------------------------------------------

    def _fit(self) -> dict[str, int]:
        """Return the threads of the workers that have the package, and have not failed, by their addresses.

        Raises:
            IsolationError, ExecutorError: There is none, and the others say why, or there has been none for too long.
        """
        self._look()
        for address, check in list(self._checks.items()):
            if check.status == "error" and address not in self._unfit:
                self._exclude(address, f"code_chains cannot be imported there ({check.exception()})")
        return {
            address: threads
            for address, threads in self._workers.items()
            if address not in self._unfit and self._checks[address].status == "finished"
        }

    def _look(self) -> None:
        """Look which workers there are, and check the new ones."""
        now = time.monotonic()
        if self._workers and now - self._looked < _CHECK_INTERVAL_S:
            return
        self._looked = now
        is_there = self._client.status in ("running", "connecting")
        self._workers = dict(self._client.nthreads()) if is_there else {}
        for address in self._workers.keys() - self._checks.keys():
            self._checks[address] = self._check([address])
        if not self._workers and self._scout is None:
            # A cluster that adapts starts workers only if there is something to do.
            self._scout = self._check(None)
        if self._workers.keys() - self._unfit.keys():
            self._last_seen, self._scout = now, None
        if not is_there or now - self._last_seen > _WORKER_TIMEOUT_S:
            raise ExecutorError(_CLUSTER_LOST, is_retryable=True)

    def _check(self, workers: list[str] | None) -> Any:
        """Ask a worker for the version of the package, by a function that it has: one that it lacks would end it."""
        self._number += 1
        return self._client.submit(
            pkgutil.resolve_name,
            "code_chains._version:__version__",
            key=f"{self._run}-check-{self._number}",
            pure=False,
            workers=workers,
        )

    def _exclude(self, address: str, reason: str, *, is_isolation: bool = False) -> None:
        """Give a worker no further question.

        Raises:
            IsolationError, ExecutorError: No other is left.
        """
        if address not in self._unfit:
            self._unfit[address] = reason
            _log.warning("The worker %s takes no questions: %s", address, reason)
        self._workers = dict(self._client.nthreads())
        if not self._workers.keys() - self._unfit.keys():
            reasons = "; ".join(f"{address}: {reason}" for address, reason in self._unfit.items())
            kind = IsolationError if is_isolation else ExecutorError
            raise kind(f"No worker can answer questions. {reasons}")


async def _greet(address: str) -> None:
    """Check that a scheduler answers at an address: a client would wait for anything else without an end.

    Raises:
        OSError: None does.
    """
    async with asyncio.timeout(_CONNECT_TIMEOUT_S):
        certificates = distributed.security.Security().get_connection_args("client")
        greeted = await connect(address, timeout=_CONNECT_TIMEOUT_S, **certificates)
        await greeted.close()


def _set_allowed_failures(allowed_failures: int, dask_scheduler: Any) -> None:
    dask_scheduler.allowed_failures = allowed_failures


@functools.lru_cache(maxsize=1)
def version() -> str:
    """Return the version of this package, with a checksum of its source: workers must have the same."""
    digest = hashlib.sha256()
    folder = Path(__file__).resolve().parents[1]
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return f"{__version__}-{digest.hexdigest()[:12]}"


# -- what runs on workers ------------------------------------------------------------------------------------------------


def answer_on_worker(request: str, *, secedes: bool = False) -> str:
    """Answer questions on a worker; both are JSON. What keeps the worker from that is the reply."""
    if secedes:  # Waiting for a model needs no thread of the worker's pool.
        secede()
    given, address = json.loads(request), get_worker().address
    if given["version"] != version():
        reason = f"it has code_chains {version()}, not {given['version']}; install the same version"
        return json.dumps({"unfit": reason, "worker": address, "is_isolation": False})
    try:
        chain = _get_chain(given["spec"])
    except Exception as error:
        is_isolation = isinstance(error, IsolationError)
        return json.dumps({"unfit": describe_error(error), "worker": address, "is_isolation": is_isolation})
    questions, missing = list[Question](), list[str]()
    for packed in given["questions"]:
        question, lacking = unpack_question(packed)
        questions.append(question)
        missing += lacking
    if missing:
        return json.dumps({"missing": missing, "worker": address})
    config = {"callbacks": [Budget(**given["budget"])]} if given["budget"] else None
    answers = answer_all(chain, questions, config, may_retry=given["may_retry"])
    return json.dumps({"answers": [answer.computed() for answer in answers]})


def _get_chain(spec: str) -> CodeChain:
    """Return the chain, which is built once, and has proved that it isolates programs."""
    with _lock:
        if spec not in _chains:
            chain = build_chain(spec)
            try:
                _prove_isolation(chain)
            except BaseException:
                chain.close()
                raise
            _chains[spec] = chain
        return _chains[spec]


def _prove_isolation(chain: CodeChain) -> None:
    """Run a trivial program, which raises if programs cannot be isolated as required."""
    programs = {"python": "1", "sql": "SELECT 1"}
    if chain.executor is not None and chain.executor.language in programs:
        chain.executor.run(programs[chain.executor.language])


async def _close_chain(spec: str) -> None:
    """Close a chain in a thread, so that nobody waits for it."""
    threading.Thread(target=_close, args=(spec,), daemon=True).start()


def _close(spec: str) -> None:
    with _lock:
        if chain := _chains.pop(spec, None):
            chain.close()
