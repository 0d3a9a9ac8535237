"""A program for WebAssembly with its inputs, the answers to what it asks for, and the record of its run."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import ExecutorError
from code_chains.executors.blocking_tools import wait_for
from code_chains.executors.guest.wire import FRAME_HEADER, frame
from code_chains.executors.inputs import check_code
from code_chains.executors.limits import Limits
from code_chains.executors.remote.supervised import execution_of
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.tool_server import Reply, begin_call, encode_reply, read_request
from code_chains.executors.tool_calls import ToolCallError, ToolCalls
from code_chains.executors.tools import open_tool_calls
from code_chains.executors.values import pack_variables, transfer_kind
from code_chains.executors.wasm.instance import Answers, Instance
from code_chains.records import ErrorReport, Execution, Isolation

TOOL, PEER = "t", "p"
"""Kinds of what programs say: to tools, and to their tests or the program that these test."""
_NUMBER = re.compile(r"\d[\d_.,:]*(e[-+]?\d+)?")
REPLAY_FACTOR, REPLAY_EXTRA_S = 3.0, 5.0
"""How much longer a program may take that is run again, as others may run at the same time."""


class WasmRequest:
    """A program that is checked and ready to be sent.

    Args:
        program: The program.
        files: Its files by name.
        limits: The limits of the executor.
        is_tested: Whether it is a program with tests, or such tests.
        is_harness: Whether it is such tests.
        is_session: Whether its state is kept.

    Raises:
        InputError: An input cannot be passed.
    """

    def __init__(
        self,
        program: Program,
        files: Mapping[str, Path],
        limits: Limits,
        *,
        is_tested: bool = False,
        is_harness: bool = False,
        is_session: bool = False,
    ) -> None:
        self.files: Mapping[str, Path] = files
        self._limits, self._deadline = program.within(limits), program.deadline
        self._calls: ToolCalls[Reply] | None = program.tool_calls
        self._log = list[tuple[bytes, bytes]]()
        self.shown: tuple[Any, ...] = ()
        self._body = {
            "code": check_code(program.code),
            "variables": pack_variables(program.variables),
            "tools": self._described_tools(program.variables or {}),
            "stdin": program.stdin or "",
            "return_value": program.return_value and not is_harness,
            "is_harness": is_harness,
            "is_tested": is_tested,
            "is_session": is_session,
        }
        self.size: int = sum(path.stat().st_size for path in files.values())

    def _described_tools(self, variables: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._calls is None:
            return None
        self._calls.toolbox.check_variables(variables)
        signatures = [signature.to_dict() for signature in self._calls.toolbox.signatures.values()]
        return {"signatures": signatures, "max_bytes": self._limits.tool_message_bytes}

    def make_python(self, instance: Instance, seed: str) -> None:
        """Make a Python with room for this program."""
        instance.make_python(self._limits.memory_bytes, self._limits.disk_bytes + self.size, seed)

    def run(self, instance: Instance, found: Isolation, peer: Instance | None = None) -> Execution:
        """Run the program in the Python that was made there.

        Args:
            instance: Where.
            found: What a probe found there.
            peer: Where its tests run, or what they test; None if there are none.

        Raises:
            ExecutorError: The process has ended before.
        """
        started, calls = time.monotonic(), self._calls

        def left() -> float:
            now, busy = time.monotonic(), calls.busy_seconds if calls else 0.0
            return min(started + self._limits.seconds + busy, self._deadline) - now

        answers: dict[str, Callable[[bytes], object]] = {}
        if calls is not None:
            answers[TOOL] = partial(self._answer, calls, instance)
        if peer is not None:
            answers[PEER] = peer.reply
        try:
            execution = self._run(instance, found, left, answers)
        finally:
            if peer is not None:
                peer.reply(b"")  # The connection is closed.
        if calls is None:
            return execution
        calls.close()
        return replace(execution, tool_calls=calls.records)

    def replay(self, instance: Instance, found: Isolation) -> bool:
        """Run the program again with the answers that it got before; return whether it showed the same."""
        until = time.monotonic() + REPLAY_FACTOR * self._limits.seconds + REPLAY_EXTRA_S
        log = iter(self._log)

        def answer(data: bytes) -> None:
            asked, reply = next(log, (b"", b""))
            instance.reply(reply if data == asked else b"")

        execution = self._run(instance, found, lambda: until - time.monotonic(), {TOOL: answer})
        return _shown(execution) == self.shown

    def _run(
        self,
        instance: Instance,
        found: Isolation,
        left: Callable[[], float],
        answers: Answers,
    ) -> Execution:
        limits = self._limits
        report = instance.run(self._body, self.files, limits, left, answers)
        execution = _execution(instance, report, limits, found)
        self.shown = self.shown or _shown(execution)
        return execution

    def _answer(self, calls: ToolCalls[Reply], instance: Instance, data: bytes) -> None:
        """Make a call of a tool."""
        reply = b""  # A connection that is closed, after what is no request.
        try:
            number, name, arguments = read_request(data[FRAME_HEADER.size :], self._limits.tool_message_bytes)
            try:
                message, table = wait_for(calls, begin_call(calls, name, arguments, data))
            except ToolCallError as error:
                message, table = {"error": str(error)}, b""
            reply = frame({**message, "id": number}, [table])
        except (ValueError, TypeError, KeyError, RecursionError):
            calls.close()
        self._log.append((data, reply))
        instance.reply(reply)


def open_wasm_calls(
    tools: Any, limits: Limits, loop: asyncio.AbstractEventLoop | None
) -> ToolCalls[Reply] | None:
    """Return the calls of one run; see `open_tool_calls`."""
    return open_tool_calls(tools, limits, partial(encode_result, max_bytes=limits.tool_message_bytes), loop)


def encode_result(value: Any, max_bytes: int) -> Reply:
    """Encode what a tool returned, without tables: there is no library that could read them.

    Raises:
        InputError, TypeError: It cannot be passed.
        ValueError: It is too large.
    """
    if kind := transfer_kind(value):
        raise TypeError(f"WebAssembly has no library for {kind} tables; return a list of rows")
    return encode_reply(value, max_bytes)


def _shown(execution: Execution) -> tuple[Any, ...]:
    """Return what a run showed, but for numbers: those of a clock are other ones, and all others are the same."""
    texts = (execution.stdout, execution.stderr, execution.result or "")
    names = [artifact.name for artifact in execution.artifacts]
    return execution.status, *(_NUMBER.sub("0", text) for text in texts), names


def _execution(instance: Instance, report: Mapping[str, Any], limits: Limits, found: Isolation) -> Execution:
    """Build the record of a run.

    Raises:
        ExecutorError: The report is malformed.
    """
    end = report.get("end") or {"trap": "", "peak": 0, "seconds": limits.seconds}
    reason = "timeout" if instance.has_timed_out else report["reason"]
    stopped = None
    if reason == "report":
        reason, stopped = None, ErrorReport("Garbled", "The program sent more than it can have to say.")
    elif end["trap"] or ("end" not in report and not reason):
        trap = end["trap"].partition("wasm trap: ")[2].partition("\n")[0] or "its process ended"
        stopped = ErrorReport("Trap", f"WebAssembly stopped the program, as deep recursion may: {trap}.")
    peak = min(int(end["peak"]), limits.memory_bytes)
    told = {**report, "reason": reason, "exit": 1 if stopped else 0, "seconds": end["seconds"], "peak": peak}
    try:
        execution = execution_of(told, limits, found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ExecutorError(f"Eryx returned a malformed report: {type(error).__name__}.") from error
    return replace(execution, status="killed", error=stopped, result=None) if stopped else execution
