"""One run in a third-party sandbox: what its program calls here, what calls it, and who watches it meanwhile."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from code_chains.executors.guest.sandbox.talk import MAX_SAID_BYTES
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.remote.protocol_sandbox import fulfil
from code_chains.executors.remote.server import request_bundle
from code_chains.executors.remote.server_link import Channel, Clock, ServerLink
from code_chains.executors.remote.stdio_connection import Request
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.tool_server import ToolServer
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.waiting import Operation, Wait, blocking
from code_chains.records import Execution

CAN_TALK: bool = hasattr(select, "poll")
TESTS_SECONDS = 120.0
"""Seconds that a program and its tests may take to reach each other, besides their own time."""


class RemoteRun:
    """A run of a program.

    Args:
        program: The program.
        limits: Its limits.
        is_harness: Whether it is a test harness.

    Raises:
        InputError: It cannot be passed.

    Attributes:
        program: The program.
        limits: Its limits.
        bundle: The program as it is sent.
        channels: What else it is connected to, besides its tools.
        is_harness: Whether it is a test harness.
        must_talk: Whether it needs answers while it runs.
    """

    def __init__(self, program: Program, limits: Limits, *, is_harness: bool = False) -> None:
        self.program: Program = program
        self.limits: Limits = limits
        self.bundle: bytes = request_bundle(program, limits, is_harness=is_harness)
        self.channels: Sequence[Channel] = ()
        self.is_harness: bool = is_harness
        self.must_talk: bool = program.tool_calls is not None
        self._waiter: Request | None = None

    @property
    def is_watched(self) -> bool:
        """Whether somebody reads what it prints while it runs."""
        return self._waiter is not None

    def operation(
        self, execute: Callable[[RemoteRun], Execution], cancel: Callable[[], object]
    ) -> Operation[Execution]:
        """Return the operation that executes this run in a thread, and yields what is printed meanwhile if it is watched."""
        if self.program.is_watched and CAN_TALK:
            return self._watched(execute, cancel)
        return blocking(partial(execute, self), cancel)

    def _watched(
        self, execute: Callable[[RemoteRun], Execution], cancel: Callable[[], object]
    ) -> Operation[Execution]:
        waiter = self._waiter = Request(output_bytes=self.limits.output_bytes)
        future: Future[Execution] = Future()
        future.add_done_callback(lambda _: waiter.end({}))
        threading.Thread(target=fulfil, args=(future, partial(execute, self)), daemon=True).start()
        try:
            yield Wait(waiter, waiter.is_done, MAX_SECONDS, waiter.take_output)
            return future.result()
        finally:
            waiter.close()
            if not future.done():  # It must not hold up whoever gives up.
                threading.Thread(target=cancel, daemon=True).start()

    def report_of(self, link: ServerLink, request: Mapping[str, Any]) -> dict[str, Any]:
        """Have a server run the program; return the report of its end."""
        if not self.must_talk and not self.is_watched:
            return link.ask(request, self.bundle)
        take_output: Callable[[str], object] = self._waiter.add if self._waiter else len
        with ExitStack() as stack:
            channels, self.channels = [*self.channels], ()  # From here on they are the link's to close.
            extra_seconds = TESTS_SECONDS if channels else 0.0
            others: Callable[[Clock], float] = _waiting
            if calls := self.program.tool_calls:
                extra_seconds += calls.max_busy_seconds
                server = stack.enter_context(ToolServer(calls, self.limits))
                others = (
                    partial(_waiting_and_working, calls) if channels else partial(_working, calls, server)
                )
                channels.insert(0, Channel(*map(os.dup, server.theirs)))
                server.start()
            clock = Clock(self.limits.seconds, min(extra_seconds, MAX_SECONDS), others)
            return link.converse(request, self.bundle, channels, clock, take_output)

    def close(self) -> None:
        """Close what it is connected to, if it did not start."""
        channels, self.channels = self.channels, ()
        for channel in channels:
            for descriptor in channel:
                os.close(descriptor)

    def finish(self, execution: Execution) -> Execution:
        """Return the record of the run with the calls that the program made."""
        if self.program.tool_calls is None:
            return execution
        self.program.tool_calls.close()
        return replace(execution, tool_calls=self.program.tool_calls.records)


def connected_runs(program: Program, tests: str, limits: Limits) -> tuple[RemoteRun, RemoteRun]:
    """Return the runs of a program and of its tests, with a pipe each way between them once `connect` has opened it.

    Raises:
        InputError: They cannot be passed.
    """
    alone = replace(program, code=tests, tool_calls=None, stdin=None)
    tested, harness = RemoteRun(program, limits), RemoteRun(alone, limits, is_harness=True)
    tested.must_talk = harness.must_talk = True
    return tested, harness


def connect(tested: RemoteRun, harness: RemoteRun) -> None:
    """Open the pipes between a program and its tests."""
    (program_in, harness_out), (harness_in, program_out) = os.pipe(), os.pipe()
    tested.channels = (Channel(program_in, program_out),)
    harness.channels = (Channel(harness_in, harness_out),)


def _waiting(clock: Clock) -> float:
    """Return how long a program and its tests have waited for each other."""
    return min(clock.waiting, TESTS_SECONDS)


def _waiting_and_working(calls: ToolCalls[Any], clock: Clock) -> float:
    """Return how long a program that is tested has waited for its tests and for its tools."""
    return _waiting(clock) + calls.busy_seconds


def _working(calls: ToolCalls[Any], server: ToolServer, clock: Clock) -> float:
    """Return how long calls of tools have taken, with the ways there and back of those that were not refused."""
    made = 1 + sum(call.status != "refused" for call in calls.records)  # The one that is being made as well.
    commands = 2 * made + server.bytes_passed // MAX_SAID_BYTES
    return calls.busy_seconds + min(clock.under_way, commands * clock.round_trip)
