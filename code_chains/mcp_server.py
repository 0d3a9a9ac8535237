"""The sandbox and the chain for whatever speaks the Model Context Protocol: tools, and what programs made as resources.

`run_python` and `answer_with_code` share their sessions: one goes on with what the other has left.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import signal
import sys
import tempfile
import threading
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from langchain_core.callbacks import AsyncCallbackHandler
from pydantic import BaseModel, Field

from code_chains.code_chain import CodeChain
from code_chains.draining import TERMINATED, drain_then
from code_chains.errors import InputError, needs
from code_chains.inputs import check_name, shortened
from code_chains.progress import DOING, explained
from code_chains.state import Artifact, Execution, Verdict
from code_chains.tools import LONGEST, told_of_run

with needs("mcp", "command", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.types import CallToolResult, ContentBlock, ImageContent, Resource, ResourceLink, TextContent

__all__ = ["Answered", "Kept", "Ran", "create_server"]

MOST_KEPT = 64 << 20
"""Bytes of artifacts that are kept as resources; the oldest make room for new ones."""
MOST_GIVEN = 64 << 20
"""Bytes of files that a client may give in one call, and of those that sessions need again."""
MOST_SHOWN = 1 << 20
"""Bytes of images that are shown with a result, besides being resources."""
_MANY = 1000
_SHOWN = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""Images by how their bytes begin, whatever they are called."""

Files = Annotated[
    dict[str, str] | None,
    Field(description="Files for the program: name in its working directory -> text of the file."),
]
SessionId = Annotated[
    str | None,
    Field(description="Names a session: variables, imports and files stay for the next call with this name."),
]


class Kept(BaseModel):
    """A file or figure that a program made, kept as a resource."""

    name: str
    media_type: str
    size: int = Field(description="In bytes.")
    uri: str = Field(description="Read it as a resource.")


class Ran(BaseModel):
    """What came of a program."""

    status: str = Field(description="ok, error, refused, or the limit it ran into: timeout, memory, output_limit …")
    output: str = Field(description="What was printed, and the value of the last expression.")
    error: str | None = Field(description="The traceback, or why nothing ran.")
    artifacts: list[Kept]
    duration: float = Field(description="In seconds.")
    isolation: str | None = Field(description="What enclosed the program: kernel, landlock, container …")


class Answered(BaseModel):
    """What came of a question."""

    answer: str
    code: str
    output: str
    verdict: str = Field(description="verified, plausible, unverified or failed.")
    reason: str = Field(description="Why the verdict is what it is.")
    stop_reason: str
    attempts: int
    artifacts: list[Kept]


class _Server(MCPServer[Any]):
    """A server whose resources are what programs made lately."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._kept: OrderedDict[str, Artifact] = OrderedDict()

    def keep(self, artifacts: tuple[Artifact, ...]) -> list[Kept]:
        """Make resources of artifacts."""
        run = f"artifact://{uuid.uuid4().hex}"
        made = {f"{run}/{quote(artifact.name)}": artifact for artifact in artifacts}
        self._kept |= made
        while sum(len(one.data) for one in self._kept.values()) > MOST_KEPT or len(self._kept) > _MANY:
            self._kept.popitem(last=False)
        return [
            Kept(name=one.name, media_type=one.media_type, size=len(one.data), uri=uri)
            for uri, one in made.items()
            if uri in self._kept
        ]

    async def list_resources(self) -> list[Resource]:
        """What programs made, the latest first."""
        return [
            Resource(uri=uri, name=one.name, mime_type=one.media_type, size=len(one.data))
            for uri, one in reversed(self._kept.items())
        ]

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        """The content of one of them."""
        artifact = self._kept.get(str(uri))
        if artifact is None:
            raise ResourceNotFoundError(f"There is no {uri}; only what was made lately is kept.")
        return [ReadResourceContents(content=artifact.data, mime_type=artifact.media_type)]


class _Stages(AsyncCallbackHandler):
    """Tells a client which stage is under way."""

    def __init__(self, context: Context[Any, Any]) -> None:
        super().__init__()
        self._context, self._count = context, itertools.count(1)

    async def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        if kwargs.get("name") in DOING:
            await self._context.report_progress(next(self._count), message=DOING[kwargs["name"]])


class _Given:
    """Files that a client gave. Those of a session stay as long as the server runs: if it is rebuilt, it needs them.

    Args:
        folder: Where they are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._kept = folder, 0

    @asynccontextmanager
    async def files(self, given: Mapping[str, str] | None, session_id: str | None) -> AsyncIterator[dict[str, Path]]:
        """Have files written, by their names.

        Raises:
            InputError: A name leads elsewhere, a text is none, or it is too much.
        """
        written = {check_name(name): _bytes(name, text) for name, text in (given or {}).items()}
        size = sum(map(len, written.values()))
        if size > MOST_GIVEN or len(written) > _MANY:
            raise InputError(f"At most {_MANY} files with {MOST_GIVEN >> 20} MB together can be given.")
        if session_id is not None and self._kept + size > MOST_GIVEN:
            raise InputError(
                f"The files of all sessions may have {MOST_GIVEN >> 20} MB together; give none, or no session."
            )
        folder = await asyncio.to_thread(_write, self._folder, written)
        try:
            yield {name: folder / name for name in written}
        finally:
            if session_id is None or not written:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            else:
                self._kept += size


def _bytes(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The file {name!r} is no text (broken UTF-8).") from error


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    place = folder / uuid.uuid4().hex
    place.mkdir()
    for name, content in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return place


def create_server(chain: CodeChain, folder: Path, *, answers: bool = True) -> MCPServer[Any]:
    """Make a server of the Model Context Protocol.

    Args:
        chain: What runs and answers; its limits, checks and budget hold for all clients together.
        folder: An empty folder of the server's own, for files that clients give.
        answers: Whether there is `answer_with_code`, which asks the chain's model.

    Returns:
        The server; its `run()` serves standard input and output.
    """
    server = _Server(
        name="code_chains",
        instructions="Runs Python in a sandbox without network and without files of this machine. Results say what happened."
        " Use session_id to go on with variables, imports and files of earlier calls.",
    )
    given = _Given(folder)

    async def run_python(
        code: Annotated[str, Field(description="The program. Print what is of interest; a last expression is shown.")],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, Ran]:
        """Run a Python program in a sandbox and see what it prints, makes, or fails with. A failure changes no session."""
        with _told():
            async with given.files(files, session_id) as paths:
                outcome = await chain.aexecute(code, session_id, files=paths)
        execution: Execution = outcome["execution"]
        kept = server.keep(execution.artifacts)
        ran = Ran(
            status=execution.status,
            output=shortened(outcome["output"], LONGEST),
            error=None if execution.ok else execution.summary,
            artifacts=kept,
            duration=execution.duration,
            isolation=execution.isolation.level if execution.isolation else None,
        )
        return _result(ran, told_of_run(execution), execution, kept)

    async def answer_with_code(
        query: Annotated[str, Field(description="The question or task, in any language.")],
        context: Context[Any, Any],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, Answered]:
        """Have a model write a program for a question, run and judge it, mend it where it fails, and tell the answer."""
        with _told():
            async with given.files(files, session_id) as paths:
                asked = {"query": query, "session_id": session_id, "files": paths}
                outcome = await chain.ainvoke(asked, {"callbacks": [_Stages(context)]})
        execution, verdict = outcome["execution"], outcome["verdict"]
        kept = server.keep(execution.artifacts)
        return _result(_answered(outcome, verdict, kept), shortened(outcome["answer"], LONGEST), execution, kept)

    server.tool(title="Run Python")(run_python)
    if answers:
        server.tool(title="Answer with code")(answer_with_code)
    return server


def _answered(outcome: Mapping[str, Any], verdict: Verdict, kept: list[Kept]) -> Answered:
    return Answered(
        answer=shortened(outcome["answer"], LONGEST),
        code=outcome["code"],
        output=shortened(outcome["output"], LONGEST),
        verdict=verdict.status,
        reason=verdict.reason,
        stop_reason=outcome["stop_reason"],
        attempts=len(outcome["attempts"]),
        artifacts=kept,
    )


@contextmanager
def _told() -> Iterator[None]:
    """Tell the client why a call broke."""
    try:
        yield
    except Exception as error:
        raise ToolError(explained(error)) from error


def _result(structured: BaseModel, text: str, execution: Execution, kept: list[Kept]) -> CallToolResult:
    """A result for clients that read structures, and for models that read text and look at pictures."""
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    room = MOST_SHOWN
    for artifact in execution.artifacts:
        kind = next((kind for begin, kind in _SHOWN.items() if artifact.data.startswith(begin)), None)
        if kind and len(artifact.data) <= room:
            room -= len(artifact.data)
            data = base64.b64encode(artifact.data).decode()
            content.append(ImageContent(type="image", data=data, mime_type=kind))
    content += [
        ResourceLink(type="resource_link", uri=one.uri, name=one.name, mime_type=one.media_type, size=one.size)
        for one in kept
    ]
    return CallToolResult(content=content, structured_content=structured.model_dump())


def serve(chain: CodeChain, *, answers: bool = True) -> None:
    """Serve standard input and output until the client leaves, or SIGTERM comes and what is under way has ended."""
    terminated = False

    def leave(*_: object) -> None:
        nonlocal terminated
        if not terminated:
            terminated = True
            drain_then(chain, end)

    with tempfile.TemporaryDirectory(prefix="code_chains-mcp-") as folder, _input() as end:
        signal.signal(signal.SIGTERM, leave)
        create_server(chain, Path(folder), answers=answers).run()
    if terminated:
        sys.exit(TERMINATED)


@contextmanager
def _input() -> Iterator[Callable[[], None]]:
    """Pass standard input on until it ends, or is ended from here: nothing else wakes a thread that reads it."""
    real, (reading, writing) = os.dup(0), os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    passed = open(writing, "wb", buffering=0)  # noqa: SIM115 - closed by whoever ends it

    def pass_on() -> None:
        with suppress(OSError, ValueError):  # It was ended.
            while data := os.read(real, 1 << 16):
                passed.write(data)
            passed.close()

    threading.Thread(target=pass_on, daemon=True).start()
    try:
        yield passed.close
    finally:
        passed.close()
        os.dup2(real, 0)
