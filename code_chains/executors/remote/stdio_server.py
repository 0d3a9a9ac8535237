"""The kernel sandbox, served over standard streams to an application elsewhere: what `StdioExecutor` starts.

Frames come on standard input, and go to standard output; the end of the one ends the other. Whatever else is printed goes to
standard error.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from langchain_core.tools import StructuredTool

from code_chains.errors import CodeChainsError, ExecutorError
from code_chains.executors.base import Session, discard
from code_chains.executors.limits import Limits
from code_chains.executors.remote.stdio_frames import HEADER, Json, frame, unpack_values
from code_chains.executors.runner import RUN_DEADLINE, Runner
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.strongest import strongest_kernel_sandbox
from code_chains.state import Execution
from code_chains.toolbox import ToolCallError

_LIMIT = 1 << 20


class Server:
    """Serves the runs of one application.

    Args:
        output: Where frames go.
    """

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._replies: dict[tuple[int, int], asyncio.Future[Json]] = {}
        self._sessions: dict[int, Session] = {}
        self._executor: SandboxExecutor
        self._operations: dict[str, Callable[[Json], Awaitable[Any]]] = {
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
        settings = await _receive(reader)
        if settings is None:
            return
        try:
            self._executor = strongest_kernel_sandbox(limits=Limits(**settings["limits"]))
            with self._executor:
                self._send({"id": 0, "done": {"guidance": self._executor.guidance}})
                while (message := await _receive(reader)) is not None:
                    self._take(message)
                for task in self._tasks.values():
                    task.cancel()
                await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        except CodeChainsError as error:
            self._send({"id": 0, **_failure(error)})

    def _take(self, message: Json) -> None:
        number = message["id"]
        if message["op"] == "cancel":
            if task := self._tasks.get(number):
                task.cancel()
        elif message["op"] == "reply":
            if reply := self._replies.pop((number, message["call"]), None):
                reply.set_result(message)
        else:
            task = self._tasks[number] = asyncio.create_task(self._answer(message))
            task.add_done_callback(lambda _: self._tasks.pop(number, None))

    async def _answer(self, message: Json) -> None:
        try:
            outcome: Json = {"done": await self._operations[message["op"]](message)}
        except CodeChainsError as error:
            outcome = _failure(error)
        except asyncio.CancelledError:
            outcome = _failure(ExecutorError("The run was cancelled."))
        except Exception as error:  # What is lacking here must not end the runs of others.
            outcome = _failure(ExecutorError(f"{type(error).__name__}: {error}"))
        self._send({"id": message["id"], **outcome})

    def _send(self, message: Json) -> None:
        with suppress(BrokenPipeError):
            self._output.write(frame(message))
            self._output.flush()

    # -- operations ------------------------------------------------------------------------------------------

    async def _run(self, message: Json) -> Json:
        runner: Runner = self._session(message) if message["session"] else self._executor
        RUN_DEADLINE.set(time.monotonic() + message["seconds"])
        tools = [self._tool(message["id"], tool) for tool in message["tools"]]
        check = discard if message["discards"] else None
        options = {"tools": tools or None, "return_value": message["return_value"], "check": check}
        async for part in runner.astream(message["code"], **_inputs(message), **options):
            if isinstance(part, Execution):
                return part.to_dict()
            self._send({"id": message["id"], "part": part})
        raise ExecutorError("The run ended without an outcome.")

    async def _test(self, message: Json) -> list[Json]:
        RUN_DEADLINE.set(time.monotonic() + message["seconds"])
        tools = [self._tool(message["id"], tool) for tool in message["tools"]]
        runs = await self._executor.arun_tests(
            message["code"], message["tests"], **_inputs(message), tools=tools or None
        )
        return [run.to_dict() for run in runs]

    async def _open(self, message: Json) -> None:
        self._sessions[message["session"]] = self._executor.session()

    async def _change(self, message: Json) -> Json:
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

    async def _has_module(self, message: Json) -> bool | None:
        return self._executor.has_module(message["name"])

    def _session(self, message: Json) -> Session:
        return self._sessions[message["session"]]

    def _tool(self, number: int, tool: Json) -> StructuredTool:
        call = partial(self._call, number, tool["name"])
        return StructuredTool(
            name=tool["name"],
            description=tool["description"],
            args_schema=tool["schema"],
            coroutine=call,
            metadata={tool["effect"]: True},
        )

    async def _call(self, number: int, name: str, /, **given_by_program: Any) -> Any:
        """Have the application call its tool."""
        call = max([0, *(other for owner, other in self._replies if owner == number)]) + 1
        reply = self._replies[number, call] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "call": call, "name": name, "arguments": given_by_program})
        answer = await reply
        if "error" in answer:
            raise ToolCallError(answer["error"])
        return unpack_values(answer["value"])["value"]


def _inputs(message: Json) -> dict[str, Any]:
    files = {name: base64.b64decode(data) for name, data in message["files"].items()}
    return {"files": files, "variables": unpack_values(message["variables"]), "stdin": message["stdin"]}


def _failure(error: CodeChainsError) -> Json:
    return {"failed": type(error).__name__, "message": str(error)}


async def _receive(reader: asyncio.StreamReader) -> Json | None:
    """Return the next message; None at the end of the stream."""
    try:
        (size,) = HEADER.unpack(await reader.readexactly(HEADER.size))
        message: Json = json.loads(await reader.readexactly(size))
    except asyncio.IncompleteReadError:
        return None
    return message


def main() -> None:
    """Serve standard streams."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asyncio.run(Server(output).serve())


if __name__ == "__main__":
    main()
