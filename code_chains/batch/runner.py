"""Answer many questions: in threads of this process, or on a Dask cluster.

What travels to the workers of a cluster is JSON: the specification of the chain, from which each worker builds it once,
and questions and answers. API keys come from the environment of the workers.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, Self

from code_chains._version import __version__
from code_chains.assembly.code_chain import CodeChain
from code_chains.assembly.specification import ChainSpec, build_chain, serialize_spec
from code_chains.batch.pace import ANY_RATE, CAREFUL, Pace, Rate
from code_chains.batch.questions import Question, with_ids
from code_chains.batch.records import Answer, BudgetTracker, answer_question
from code_chains.batch.results_file import ResultsFile
from code_chains.callbacks.budget import Budget
from code_chains.errors import CodeChainsError, ConfigurationError, StoreError
from code_chains.executors.limiter import available_processors
from code_chains.state import Usage
from code_chains.storage.fingerprint import fingerprint, settings_of

_TICK_S = 0.5
"""How often a run looks at what it waits for."""
RETRIES = 6
"""How often a question is asked again after a failure that passes, such as an outage."""


_CONNECTION = {"base_url", "timeout", "memory", "budget"}
"""Arguments of a chain that do not change its answers: how its model is reached, and what is kept or spent."""


@dataclass
class Job:
    """Questions that are answered one after another by one worker: one, or the turns of a session.

    Attributes:
        questions: The questions.
        tries: How often it failed for a reason that passes.
        may_retry: Whether it is started again if it does so once more.
        started: When it started last.
        is_alone: Whether nothing else may run meanwhile, as workers that had it have died.
        is_sent: Whether its files travel with it, as a worker of a cluster could not read them.
        spent: What tries that failed have cost.
    """

    questions: list[Question]
    tries: int = 0
    may_retry: bool = True
    started: float = 0.0
    is_alone: bool = False
    is_sent: bool = False
    spent: Usage = field(default_factory=Usage)


class Workers(Protocol):
    """What answers questions."""

    def slots(self) -> int:
        """Return how many jobs may run at once now."""

    def start(self, job: Job) -> None:
        """Start a job."""

    def wait(self, seconds: float) -> list[tuple[Job, list[Answer] | None]]:
        """Return the jobs that have ended meanwhile with their answers, or None for one that must be started again."""

    def close(self) -> None:
        """End what still runs."""


class TooManyErrorsError(CodeChainsError):
    """So many questions failed that a run of many was ended."""


class Answers(Iterator[Answer]):
    """The answers to many questions as they complete; `map_questions` returns it.

    Attributes:
        running: Questions that are being answered, with the time at which each started.
    """

    def __init__(self, answers: Iterator[Answer], state: RunState) -> None:
        self._answers, self._state = answers, state

    def __next__(self) -> Answer:
        return next(self._answers)

    def __iter__(self) -> Self:
        return self

    @property
    def running(self) -> dict[str, float]:
        """Seconds for which questions have been running, by their ids, the longest first."""
        now = time.monotonic()
        jobs = sorted([*self._state.running], key=lambda job: job.started)
        return {question.id: now - job.started for job in jobs for question in job.questions}

    @property
    def cooling(self) -> float:
        """Seconds for which all wait for a provider that asked for it, or could not answer."""
        return self._state.pace.cooling

    def stop(self) -> None:
        """Start no further question; those that are being answered are finished."""
        self._state.stopping.set()

    def close(self) -> None:
        """End the run at once."""
        close = getattr(self._answers, "close", None)
        if close is not None:
            close()


@dataclass
class RunState:
    """What others may see of a run, and ask of it."""

    pace: Pace
    running: list[Job] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


def map_questions(
    chain: CodeChain | ChainSpec,
    questions: Iterable[str | Mapping[str, Any] | Question],
    *,
    cluster: Any = None,
    concurrency: int | None = None,
    results_file: ResultsFile | None = None,
    budget: Budget | None = None,
    retries: int = RETRIES,
    rate: Rate = ANY_RATE,
    max_errors: float | None = None,
    again: Sequence[str] = (),
    allowed_failures: int = 3,
) -> Answers:
    """Answer many questions and yield the answers as they complete, in any order.

    Questions may be a generator of any length, which is consumed lazily: at most twice as many as can run. An
    answer is in the results file before it is yielded, and questions that are in the file are skipped, unless they or
    their files have changed: an interrupted run can be resumed. A question whose worker dies is retried elsewhere, so
    its program may run more than once, but its answer is written and yielded exactly once. Turns of one `session_id`
    are answered in order by one worker, all of them again if one is missing; in a generator they follow each other.

    Args:
        chain: A `CodeChain` (only without a cluster), arguments of `create_code_chain` as JSON, or
            `"module:function"`.
        questions: Strings, or mappings with `query` and optionally `id`, `files` and others, or a frame of pandas.
            Workers of a cluster that do not see a file are sent it, up to 20 MB.
        cluster: None for this process, a number of processes on this machine, the address of a Dask scheduler
            (`"tcp://…:8786"`), or a Dask cluster or `Client`.
        concurrency: How many questions run at once, in this process or in each worker; two per core by default, on a
            cluster one per thread.
        results_file: Where answers are written; the caller opens and closes it.
        budget: Limits for all questions of this call together, however often they are asked again; a run that is resumed
            begins anew. In this process tokens and dollars are exceeded by at most one reply, and the others never; on a
            cluster each question keeps to what was left when it started, and none starts once a limit is reached.
        retries: How often a question is asked again after a failure that passes: a rate limit, an outage, a time-out.
            All wait meanwhile, as long as the provider says or twice as long each time.
        rate: How much is asked a minute.
        max_errors: The number of questions that may fail, or below 1 their share. Whatever it is, a run ends after a few
            failures that no question would be spared, such as a wrong key.
        again: `"abandoned"` asks questions again that were abandoned, `"limits"` those that have no answer as a program
            met a limit, such as that of time, and `"files"` those whose artifacts are gone.
        allowed_failures: How many dead workers a question survives, as in Dask: one more, and it runs alone; if that
            fails as well, it is abandoned. It applies to the whole scheduler; a `Client` keeps the setting of its own.

    Yields:
        An answer for each question that was not in the results file.

    Raises:
        IsolationError: No worker can isolate programs as the chain requires; no question was answered.
        ExecutorError: The cluster is gone. Answers so far are in the results file.
        StoreError: The results file has the answers of another run, or cannot be written.
        TooManyErrorsError: The run was hopeless.
    """
    if isinstance(questions, str | bytes | Path | Mapping) or not isinstance(questions, Iterable):
        remedy = 'a list, e.g. ["What is 2 + 2?"]; for a file, batch.questions.read_questions(path)'
        raise ConfigurationError("questions", questions, remedy)
    if cluster is not None and isinstance(chain, CodeChain):
        raise ConfigurationError(
            "chain", chain, "JSON from which workers build it: arguments of create_code_chain"
        )
    if budget is not None and budget.per == "question":
        raise ConfigurationError(
            "budget.per", budget.per, "a budget per question to the chain, as its budget"
        )
    state, tracker = RunState(Pace(rate, max_errors)), BudgetTracker(budget)
    spec = "" if isinstance(chain, CodeChain) else serialize_spec(chain)
    if results_file is not None:
        if not results_file.is_bound:
            results_file.bind(run_of(chain))
        results_file.forget_failures(again)
    jobs = _jobs(questions, results_file)

    def answers() -> Iterator[Answer]:
        with ExitStack() as stack:
            if cluster is None:
                workers: Workers = _Threads(chain, concurrency, budget, state.pace)
            else:
                from code_chains.batch.workers import ClusterWorkers

                workers = ClusterWorkers(spec, cluster, concurrency, allowed_failures, tracker)
            stack.callback(workers.close)
            yield from _run(workers, jobs, state, tracker, retries)

    return Answers(_written(answers(), results_file), state)


def run_of(chain: CodeChain | ChainSpec) -> dict[str, Any]:
    """Return what answers questions, for the head of a results file: the version, and the chain as far as it is known."""
    if not isinstance(chain, CodeChain):
        spec = (
            chain if isinstance(chain, str) else {key: chain[key] for key in chain if key not in _CONNECTION}
        )
        return {"version": __version__, "chain": spec}
    return {"version": __version__, "chain": repr(chain), "settings": fingerprint(settings_of(chain))}


def _written(answers: Iterator[Answer], results_file: ResultsFile | None) -> Iterator[Answer]:
    """Yield answers once they are in the results file, and write the failures at the end."""
    if results_file is None:
        yield from answers
        return
    try:
        for answer in answers:
            (results_file.fail if answer.error else results_file.add)(answer.to_dict())
            yield answer
    except BaseException:  # Even if the run is interrupted: abandoned questions must not run again.
        with suppress(StoreError):  # What ended the run is the cause.
            results_file.write_failures()
        raise
    results_file.write_failures()


def _jobs(
    questions: Iterable[str | Mapping[str, Any] | Question], results_file: ResultsFile | None
) -> Iterator[Job]:
    """Yield the questions that are neither answered nor abandoned; the turns of a session together."""
    abandoned = results_file.abandoned if results_file is not None else set()
    ordered = with_ids(questions)
    if isinstance(questions, Sequence) or hasattr(questions, "iterrows"):
        ordered = iter(_grouped(list(ordered)))
    for _, group in itertools.groupby(ordered, _session_or_id):
        turns = list(group)
        is_done = results_file is not None and all(map(results_file.has, turns))
        if not is_done and abandoned.isdisjoint(question.id for question in turns):
            yield Job(turns)


def _session_or_id(question: Question) -> tuple[str, str]:
    session = question.inputs.get("session_id")
    return ("id", question.id) if session is None else ("session", str(session))


def _grouped(questions: list[Question]) -> list[Question]:
    """Return questions with the turns of each session at the place of its first one."""
    places: dict[tuple[str, str], int] = {}
    for place, question in enumerate(questions):
        places.setdefault(_session_or_id(question), place)
    return sorted(questions, key=lambda question: places[_session_or_id(question)])


def _run(
    workers: Workers, jobs: Iterator[Job], state: RunState, tracker: BudgetTracker, retries: int
) -> Iterator[Answer]:
    """Start jobs as workers are free, and yield their answers."""
    pace, again, suspects = state.pace, deque[Job](), deque[Job]()
    failure: Answer | None = None
    while True:
        may_start = not (state.stopping.is_set() or tracker.is_exhausted)
        for job in _next_jobs(workers, state, again, suspects, jobs) if may_start else ():
            job.started, job.may_retry = time.monotonic(), job.tries < retries
            pace.start()
            state.running.append(job)
            workers.start(job)
        is_waiting = may_start and _is_left(state, again, suspects, jobs)
        if not state.running and not is_waiting:
            return
        pause = max(0.02, min(pace.wait, _TICK_S)) if is_waiting and not state.running else _TICK_S
        for job, answers in workers.wait(pause):
            state.running.remove(job)
            for answer in answers or ():
                tracker.add(answer)
                pace.spend(answer)
            if answers is None or _is_tried_again(job, answers, pace):
                (suspects if job.is_alone else again).append(job)
                continue
            for answer in [*answers[:-1], answers[-1].with_earlier(job.spent)]:
                pace.add(answer)
                failure = answer if answer.error else failure
                yield answer
            if pace.is_hopeless and failure is not None:
                raise TooManyErrorsError(_hopeless(failure))


def _is_tried_again(job: Job, answers: list[Answer], pace: Pace) -> bool:
    """Return whether a job failed for a reason that passes, and may be tried once more; then all wait for that."""
    passing = next((answer for answer in answers if answer.failure == "passing"), None)
    if passing is None or not job.may_retry:
        return False
    job.tries += 1
    job.spent = sum(map(attrgetter("usage"), answers), job.spent)
    pace.cool(passing, job.started)
    return True


def _is_left(state: RunState, again: deque[Job], suspects: deque[Job], jobs: Iterator[Job]) -> bool:
    """Return whether there is anything to wait for; if nothing runs, the next question is looked at."""
    if not (state.running or again or suspects):
        again.extend(itertools.islice(jobs, 1))
    return bool(again or suspects)


def _next_jobs(
    workers: Workers, state: RunState, again: deque[Job], suspects: deque[Job], jobs: Iterator[Job]
) -> Iterator[Job]:
    """Yield the jobs that may start now: those that failed first, and what killed workers last and alone."""
    slots = min(workers.slots(), CAREFUL) if state.pace.is_careful else workers.slots()
    while len(state.running) < slots and not state.pace.wait:
        if any(job.is_alone for job in state.running):
            return
        job = again.popleft() if again else next(jobs, None)
        if job is None:
            if suspects and not state.running:
                yield suspects.popleft()
            return
        yield job


def _hopeless(answer: Answer) -> str:
    resume = "Once this is mended, go on with resume=True, or --resume."
    return (
        f"The run was ended, as too many questions fail. The last one: {answer.error.rstrip('.')}. {resume}"
    )


class _Threads:
    """Threads of this process."""

    def __init__(
        self, chain: CodeChain | ChainSpec, concurrency: int | None, budget: Budget | None, pace: Pace
    ) -> None:
        self._stack, self._concurrency = ExitStack(), concurrency or 2 * available_processors()
        self._config = {"callbacks": [pace, budget] if budget else [pace]}
        if not isinstance(chain, CodeChain):
            chain = self._stack.enter_context(build_chain(serialize_spec(chain)))
        self._chain = chain
        self._waiting = queue.SimpleQueue[Job | None]()
        self._ended = queue.SimpleQueue[tuple[Job, list[Answer] | BaseException]]()
        self._running = 0
        # Invariant: nothing waits for a thread whose request hangs, neither `close` nor the end of the process.
        self._threads = [
            threading.Thread(target=self._answer, daemon=True, name="code_chains-question")
            for _ in range(self._concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def _answer(self) -> None:
        while (job := self._waiting.get()) is not None:
            try:
                answers = answer_all(self._chain, job.questions, self._config, may_retry=job.may_retry)
                self._ended.put((job, answers))
            except BaseException as error:
                self._ended.put((job, error))

    def slots(self) -> int:
        return self._concurrency

    def start(self, job: Job) -> None:
        self._running += 1
        self._waiting.put(job)

    def wait(self, seconds: float) -> list[tuple[Job, list[Answer] | None]]:
        ended, end = list[tuple[Job, list[Answer] | None]](), time.monotonic() + seconds
        while not ended or not self._ended.empty():
            try:
                job, answers = self._ended.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            self._running -= 1
            if isinstance(answers, BaseException):
                raise answers
            ended.append((job, answers))
        return ended

    def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        if not self._running:
            for thread in self._threads:
                thread.join()
        self._stack.close()


def answer_all(
    chain: CodeChain, questions: Sequence[Question], config: Any = None, *, may_retry: bool = False
) -> list[Answer]:
    """Answer questions in their order.

    Args:
        chain: The chain.
        questions: One question, or the turns of a session.
        config: The config of the chain.
        may_retry: Whether all of them will be asked again after a failure that passes, which ends it therefore; turns
            of a session are undone.
    """
    answers = list[Answer]()
    for question in questions:
        answers.append(answer_question(chain, question, config))
        if may_retry and answers[-1].failure == "passing":
            for answer in answers:
                if not answer.error and question.inputs.get("session_id") is not None:
                    chain.undo(question.inputs["session_id"])
            break
    return answers
