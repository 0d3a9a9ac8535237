"""One chain, many questions: on this machine or on the workers of a cluster, each answer known by its question's id.

What crosses to other machines is JSON: a description of the chain, which the factory builds there once for each worker, and
questions and answers as text. Keys come from the environment of the workers. The engine is Dask (extra `cluster`).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import Any

from code_chains.answers import Answer, ChainSpec, Tally, answered, describe, make_chain
from code_chains.budget import Budget
from code_chains.code_chain import CodeChain
from code_chains.errors import ConfigurationError
from code_chains.ledger import Ledger
from code_chains.questions import Question, identified

__all__ = ["map_questions"]


def map_questions(
    chain: CodeChain | ChainSpec,
    questions: Iterable[str | Mapping[str, Any] | Question],
    *,
    cluster: Any = None,
    concurrency: int | None = None,
    ledger: Ledger | None = None,
    budget: Budget | None = None,
    losses: int = 3,
) -> Iterator[Answer]:
    """Answer many questions and yield each answer as it comes, in any order.

    Questions may be a generator of any length: only as many are taken from it as are worked on, twice over. An answer is
    in the ledger before it is yielded. What is in the ledger is not asked again: a run that was broken off goes on where it
    was. A question whose worker is lost is asked again elsewhere, so a program may run more than once; what is yielded and
    written down comes once. One that has cost `losses` workers is set aside as lost.

    Args:
        chain: A `CodeChain` (only without a cluster), arguments of `create_code_chain` as JSON, or `"module:function"`.
        questions: Texts, or mappings with `query` and optionally `id`, `files` and others. Files must be there under the
            same path for all workers.
        cluster: None for this process, a number for so many processes of this machine, the address of a Dask scheduler
            (`"tcp://…:8786"`), or a Dask `Client`.
        concurrency: How many questions at once in this process; as a default twice as many as there are cores.
        ledger: Where answers are kept, entered by the caller.
        budget: Limits for all questions together. In this process nothing goes beyond it; on a cluster no question is begun
            after a limit is reached, and those under way are finished.
        losses: How many lost workers a question may cost.

    Yields:
        An answer for each question that was not in the ledger.

    Raises:
        IsolationError: A worker cannot isolate programs as the chain asks; nothing was asked.
        ExecutorError: The cluster is gone. What was answered is in the ledger.
    """
    asked = (one for one in identified(questions) if ledger is None or one.id not in ledger.done)
    lost = {name for name, record in ledger.failures.items() if record.get("is_lost")} if ledger else set()
    fresh = (one for one in asked if one.id not in lost)
    if cluster is None:
        answers = _here(chain, fresh, concurrency or 2 * len(os.sched_getaffinity(0)), budget)
    elif isinstance(chain, CodeChain):
        raise ConfigurationError("chain", chain, "it as JSON, for others to build it: arguments of create_code_chain")
    else:
        from code_chains.workers import answers_of_workers

        answers = answers_of_workers(describe(chain), fresh, cluster, tally=Tally(budget), losses=losses)
    try:
        for answer in answers:
            if ledger is not None:
                (ledger.fail if answer.error else ledger.add)(answer.to_dict())
            yield answer
    finally:  # Also where the run is broken off: what was set aside must not be asked again.
        if ledger is not None:
            ledger.settle()


# -- here ----------------------------------------------------------------------------------------------------------------


def _here(
    chain: CodeChain | ChainSpec, questions: Iterator[Question], concurrency: int, budget: Budget | None
) -> Iterator[Answer]:
    """Answer in threads of this process."""
    tally = Tally(budget)
    with ExitStack() as stack:
        made = chain if isinstance(chain, CodeChain) else stack.enter_context(make_chain(describe(chain)))
        pool = stack.enter_context(ThreadPoolExecutor(concurrency, thread_name_prefix="code_chains-question"))
        under_way: set[Future[Answer]] = set()
        stack.callback(lambda: [future.cancel() for future in under_way])
        while True:
            room = 0 if tally.is_full else concurrency - len(under_way)
            for question in itertools.islice(questions, room):
                under_way.add(pool.submit(answered, made, question, {"callbacks": [budget]} if budget else {}))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                answer = future.result()
                tally.add(answer)
                yield answer
