"""The kernel sandbox, served over standard streams to an application elsewhere: what `StdioExecutor` starts.

Frames come on standard input, and go to standard output; the end of the one ends the other. Whatever else is printed goes to
standard error.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO

from code_chains.errors import CodeChainsError, ExecutorError
from code_chains.executors.approval import ApproveTools, ToolRequest
from code_chains.executors.base import Session, discard
from code_chains.executors.guest.wire import encode
from code_chains.executors.limits import Limits
from code_chains.executors.remote.stdio_frames import HEADER, Blobs, Json, Writer, divide, unpack_values
from code_chains.executors.remote.supervised import report_of
from code_chains.executors.runner import RUN_DEADLINE, Runner
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.signatures import Signature
from code_chains.executors.strongest import strongest_kernel_sandbox
from code_chains.executors.tool_calls import ToolCallError
from code_chains.records import Execution

_LIMIT = 1 << 20
BEAT_S = 3.0
"""Seconds between signs of life."""


class Server:
    """Serves the runs of one application.

    Args:
        output: Where frames go.
    """

    def __init__(self, output: BinaryIO) -> None:
        self._writer = Writer(output, lambda reason: os._exit(1))
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._replies: dict[tuple[int, int], asyncio.Future[tuple[Json, Blobs]]] = {}
        self._sessions: dict[int, Session] = {}
        self._executor: SandboxExecutor
        self._operations: dict[str, Callable[[Json, Blobs, Blobs], Awaitable[Any]]] = {
            "run": self._run,
            "tests": self._test,
            "open": self._open,
            "change": self._change,
            "has_module": self._has_module,
        }

    async def serve(self) -> None:
        """Serve until the input ends."""
        reader = asyncio.StreamReader(_LIMIT)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        received = await _receive(reader)
        if received is None:
            return
        beats = asyncio.create_task(self._beat())
        try:
            self._executor = strongest_kernel_sandbox(limits=Limits(**received[0]["limits"]))
            with self._executor:
                self._send({"id": 0, "done": {"guidance": self._executor.guidance}})
                while (received := await _receive(reader)) is not None:
                    self._take(*received)
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        except CodeChainsError as error:
            self._send({"id": 0, **_failure(error)})
        finally:
            beats.cancel()
            self._writer.end(BEAT_S)

    async def _beat(self) -> None:
        """Give signs of life, by which a paused server is told from one that computes."""
        while True:
            await asyncio.sleep(BEAT_S)
            self._send({"id": 0, "beat": True})

    def _take(self, message: Json, blobs: Blobs) -> None:
        number = message["id"]
        if message["op"] == "cancel":
            if task := self._tasks.get(number):
                task.cancel()
        elif message["op"] == "reply":
            if reply := self._replies.pop((number, message["call"]), None):
                reply.set_result((message, blobs))
        else:
            task = self._tasks[number] = asyncio.create_task(self._answer(message, blobs))
            task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, message: Json, blobs: Blobs) -> None:
        answer = Blobs()
        try:
            outcome: Json = {"done": await self._operations[message["op"]](message, blobs, answer)}
        except CodeChainsError as error:
            outcome = _failure(error)
        except asyncio.CancelledError:
            outcome = _failure(ExecutorError("The run was cancelled."))
        except Exception as error:  # What is lacking here must not end the runs of others.
            outcome = _failure(ExecutorError(f"{type(error).__name__}: {error}"))
        self._send({"id": message["id"], **outcome}, answer)

    def _send(self, message: Json, blobs: Blobs | None = None) -> None:
        # Invariant: reading never waits for writing, or both sides could wait for each other.
        self._writer.put(message, blobs or ())

    # -- operations ------------------------------------------------------------------------------------------

    async def _run(self, message: Json, blobs: Blobs, answer: Blobs) -> list[Json]:
        runner: Runner = self._session(message) if message["session"] else self._executor
        RUN_DEADLINE.set(time.monotonic() + message["seconds"])
        tools = self._tools(message)
        check = discard if message["discards"] else None
        options = {"tools": tools, "return_value": message["return_value"], "check": check}
        async for part in runner.astream(message["code"], **_inputs(message, blobs), **options):
            if isinstance(part, Execution):
                return [report_of(part, answer)]
            printed = Blobs()
            self._send({"id": message["id"], "part": printed.add_text(part)}, printed)
        raise ExecutorError("The run ended without an outcome.")

    async def _test(self, message: Json, blobs: Blobs, answer: Blobs) -> list[Json]:
        RUN_DEADLINE.set(time.monotonic() + message["seconds"])
        tools = self._tools(message)
        runs = await self._executor.arun_tests(
            message["code"], message["tests"], **_inputs(message, blobs), tools=tools
        )
        return [report_of(run, answer) for run in runs]

    async def _open(self, message: Json, *_: Blobs) -> None:
        self._sessions[message["session"]] = self._executor.session()

    async def _change(self, message: Json, *_: Blobs) -> Json:
        """Call a method of a session that takes a name, or nothing."""
        session, words = self._session(message), message["words"]
        methods: dict[str, Callable[..., object]] = {
            "rollback": session.rollback,
            "checkpoint": session.checkpoint,
            "restore": session.restore,
            "close": session.close,
            "poll": lambda: None,
        }
        await asyncio.to_thread(methods[message["method"]], *words)
        if message["method"] == "close":
            del self._sessions[message["session"]]
        return {"alive": session.alive, "has_lost_threads": session.has_lost_threads}

    async def _has_module(self, message: Json, *_: Blobs) -> bool | None:
        return self._executor.has_module(message["name"])

    def _session(self, message: Json) -> Session:
        return self._sessions[message["session"]]

    def _tools(self, message: Json) -> ForwardedTools | None:
        """Return the tools that the application offers to a run; None without any."""
        call = partial(self._call, message["id"])
        return ForwardedTools(message["tools"], call) if message["tools"] else None

    async def _call(self, number: int, name: str, arguments: Json) -> Any:
        """Have the application call its tool."""
        call = max([0, *(other for owner, other in self._replies if owner == number)]) + 1
        reply = self._replies[number, call] = asyncio.get_running_loop().create_future()
        data = Blobs()
        message = {"id": number, "call": call, "name": name, "arguments": data.add_text(encode(arguments))}
        self._send(message, data)
        answer, blobs = await reply
        if "error" in answer:
            raise ToolCallError(answer["error"])
        return unpack_values(answer["value"], blobs)["value"]


class ForwardedTools:
    """Tools of the application, which checks, approves and makes their calls.

    Args:
        definitions: Their signatures and effects.
        call: Has the application call one of them.
    """

    approve: ApproveTools | None = None
    deadline: float = math.inf

    def __init__(self, definitions: Sequence[Json], call: Callable[[str, Json], Awaitable[Any]]) -> None:
        self._call = call
        self.signatures: Mapping[str, Signature] = {
            one["name"]: Signature.from_dict(one, one["effect"]) for one in definitions
        }

    def check_variables(self, variables: Iterable[str]) -> None:
        """Accept them, as the application has checked them."""

    def guard(self) -> ForwardedTools:
        """Return what accepts every call, as the application checks it."""
        return self

    def check(self, request: ToolRequest) -> None:
        """Accept a call."""

    def is_async(self, name: str) -> bool:
        """Return that each call is awaited."""
        return True

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, where there is no event loop."""
        return asyncio.run(self.acall(name, arguments))

    async def acall(self, name: str, arguments: dict[str, Any]) -> Any:
        """Have the application call its tool."""
        return await self._call(name, arguments)

    def explain(self, error: BaseException) -> str:
        """Return nothing, as the application says what was wrong."""
        return ""


def _inputs(message: Json, blobs: Blobs) -> dict[str, Any]:
    files = {name: blobs[number] for name, number in message["files"].items()}
    variables = unpack_values(message["variables"], blobs)
    return {"files": files, "variables": variables, "stdin": message["stdin"]}


def _failure(error: CodeChainsError) -> Json:
    return {"failed": type(error).__name__, "message": str(error)}


async def _receive(reader: asyncio.StreamReader) -> tuple[Json, Blobs] | None:
    """Return the next message with its data; None at the end of the stream."""
    try:
        _, size, data_size = HEADER.unpack(await reader.readexactly(HEADER.size))
        message: Json = json.loads(await reader.readexactly(size))
        return message, divide(message, await reader.readexactly(data_size))
    except asyncio.IncompleteReadError:
        return None


def main() -> None:
    """Serve standard streams."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asyncio.run(Server(output).serve())


if __name__ == "__main__":
    main()
