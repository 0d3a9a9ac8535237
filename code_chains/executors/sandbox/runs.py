"""Runs: each in a sandbox of its own, from the request to the record."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, suppress
from dataclasses import replace

from code_chains.errors import ExecutorError
from code_chains.executors.limits import Limits
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.fork import Fork
from code_chains.executors.sandbox.provider import SandboxProvider
from code_chains.executors.sandbox.request import Request
from code_chains.executors.sandbox.results import build_execution
from code_chains.executors.waiting import Operation, Wait
from code_chains.records import Execution

GRACE_S = 20.0
"""Seconds that a run may take besides its program."""
HEAD_START_S = 0.02
"""Seconds that a program has the processors for itself before the next sandbox is started."""
UNTESTED_S = 2.0
"""Seconds that a program may go on after its tests have ended."""
CLOCK_INTERVAL_S = 0.05
"""Pause between two looks at the clock of a program whose time is spent except for what tools took."""


def run_request(provider: SandboxProvider, request: Request) -> Operation[Execution]:
    """Run what was requested; the request is closed.

    Args:
        provider: Provides the sandbox.
        request: What runs.
    """
    limits = provider.settings.limits
    with request:
        libraries = provider.count_libraries(request)
        fork = yield from provider.acquire(libraries=libraries)
        try:
            started = time.monotonic()
            request.send(fork, {"op": "run"})
            with suppress(ExecutorError):  # The next run reports it.
                provider.pool.prepare()
            yield Wait(fork, fork.is_finished, request.seconds_left(HEAD_START_S))
            with suppress(ExecutorError):
                provider.pool.warm_up(libraries)
            yield from await_program(fork, request, request.seconds)
            execution = yield from _finish(fork, limits, started, request.files)
            execution = request.finish(execution)
        except BaseException:
            fork.close()
            raise
        provider.pool.give_back(fork)
        return execution


def _finish(
    fork: Fork, limits: Limits, started: float, inputs: Iterable[str]
) -> Generator[Wait, None, Execution]:
    """Collect what a program made, once nothing of it runs any more."""
    from code_chains.executors.sandbox.artifacts import ArtifactCollector, has_artifacts

    seconds = time.monotonic() - started
    fork.drain()
    collector = ArtifactCollector(limits.artifacts_bytes)
    if fork.root is not None and has_artifacts(fork.root, set(inputs)):
        with suppress(ExecutorError):  # It has just ended by itself.
            fork.stop_program()
        fork.leave(is_collected=False)  # Files are collected once nothing changes them.
        yield Wait(fork, fork.has_replied, GRACE_S)
        collector.collect_files(fork.root, inputs=set(inputs))
    collector.collect_views(fork.pipes.result)
    return build_execution(fork, limits, seconds, collector)


def await_program(fork: Fork, request: Request, seconds: float) -> Operation[None]:
    """Wait until a program has ended, and cut it off at its deadline.

    The supervisor ends a program at its limit of time. Only the host knows how long it has worked on calls of the
    program, which does not count, so it measures the time of those that call tools.

    Args:
        fork: Where the program runs.
        request: What runs.
        seconds: The limit of time.
    """
    started, is_watched = time.monotonic(), request.has_tools or request.peer is not None
    if not is_watched:
        yield Wait(fork, fork.is_finished, request.seconds_left(seconds + GRACE_S), fork.pipes.take_stdout)
    while is_watched and not fork.is_finished() and not request.is_expired:
        left = seconds + request.busy_seconds - (time.monotonic() - started)
        if request.peer is not None and request.peer.is_closed:  # It has nothing left to do but to end.
            yield Wait(fork, fork.is_finished, request.seconds_left(UNTESTED_S), fork.pipes.take_stdout)
            left = 0
        if fork.is_finished():
            break
        if left <= 0:
            fork.expire("timeout")
        else:
            pause = CLOCK_INTERVAL_S if request.peer is not None else max(left, CLOCK_INTERVAL_S)
            wait = request.seconds_left(pause)
            yield Wait(fork, fork.is_finished, wait, fork.pipes.take_stdout)
    if request.is_expired:
        fork.expire()


def connected_requests(program: Program, tests: str, limits: Limits) -> tuple[Request, Request]:
    """Return the requests of a program and of its tests, with a pipe each way between them."""
    with ExitStack() as undo:
        tested = undo.enter_context(Request(program, limits, is_tested=True))
        tests_alone = replace(program, code=tests, tool_calls=None, stdin=None)
        harness = undo.enter_context(Request(tests_alone, limits, is_harness=True))
        undo.pop_all()
    (program_in, harness_out), (harness_in, program_out) = os.pipe(), os.pipe()
    tested.peer = harness
    tested.connect(program_in, program_out)
    harness.connect(harness_in, harness_out)
    return tested, harness
