"""A Model Context Protocol server: the sandbox and the chain as tools, and artifacts as resources.

`run_python` and `answer_with_code` share their sessions: each continues with the state that the other left.
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

from code_chains.apps.progress import STAGE_LABELS
from code_chains.apps.shutdown import TERMINATED_EXIT_CODE, drain_then
from code_chains.callbacks.redaction import describe_error
from code_chains.chains.tools import MAX_CHARS, format_execution
from code_chains.code_chain import CodeChain
from code_chains.errors import InputError, needs
from code_chains.inputs import check_name, shortened
from code_chains.state import Artifact, Execution, Verdict

with needs("mcp", "command", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.types import CallToolResult, ContentBlock, ImageContent, Resource, ResourceLink, TextContent

__all__ = ["AnswerResult", "ArtifactResource", "RunResult", "create_server"]

MAX_RESOURCE_BYTES = 64 << 20
"""Maximum size of the artifacts available as resources; the oldest are evicted."""
MAX_INPUT_BYTES = 64 << 20
"""Maximum size of the files of a call, and of the files of all sessions."""
MAX_IMAGE_BYTES = 1 << 20
"""Maximum size of the images that a result contains, besides being resources."""
_MAX_ITEMS = 1000
_IMAGE_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""Media types of images by their first bytes; names are not trusted."""

Files = Annotated[
    dict[str, str] | None,
    Field(description="Files for the program: name in its working directory -> text of the file."),
]
SessionId = Annotated[
    str | None,
    Field(description="Names a session: variables, imports and files stay for the next call with this name."),
]


class ArtifactResource(BaseModel):
    """A file or figure of a program, available as a resource."""

    name: str
    media_type: str
    size: int = Field(description="In bytes.")
    uri: str = Field(description="Read it as a resource.")


class RunResult(BaseModel):
    """The outcome of a program."""

    status: str = Field(
        description="ok, error, refused, or the limit it ran into: timeout, memory, output_limit …"
    )
    output: str = Field(description="What was printed, and the value of the last expression.")
    error: str | None = Field(description="The traceback, or why nothing ran.")
    artifacts: list[ArtifactResource]
    duration: float = Field(description="In seconds.")
    isolation: str | None = Field(description="What enclosed the program: kernel, landlock, container …")


class AnswerResult(BaseModel):
    """The outcome of a question."""

    answer: str
    code: str
    output: str
    verdict: str = Field(description="verified, plausible, unverified or failed.")
    reason: str = Field(description="Why the verdict is what it is.")
    stop_reason: str
    attempts: int
    artifacts: list[ArtifactResource]


class _Server(MCPServer[Any]):
    """A server whose resources are the most recent artifacts."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._artifacts: OrderedDict[str, Artifact] = OrderedDict()

    def publish(self, artifacts: tuple[Artifact, ...]) -> list[ArtifactResource]:
        """Make artifacts available as resources."""
        prefix = f"artifact://{uuid.uuid4().hex}"
        new = {f"{prefix}/{quote(artifact.name)}": artifact for artifact in artifacts}
        self._artifacts |= new
        while self._size > MAX_RESOURCE_BYTES or len(self._artifacts) > _MAX_ITEMS:
            self._artifacts.popitem(last=False)
        resources = []
        for uri, artifact in new.items():
            if uri in self._artifacts:
                size, media_type = len(artifact.data), artifact.media_type
                resources.append(
                    ArtifactResource(name=artifact.name, media_type=media_type, size=size, uri=uri)
                )
        return resources

    @property
    def _size(self) -> int:
        return sum(len(artifact.data) for artifact in self._artifacts.values())

    async def list_resources(self) -> list[Resource]:
        """List the artifacts, the latest first."""
        return [
            Resource(uri=uri, name=artifact.name, mime_type=artifact.media_type, size=len(artifact.data))
            for uri, artifact in reversed(self._artifacts.items())
        ]

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        """Return the content of an artifact."""
        artifact = self._artifacts.get(str(uri))
        if artifact is None:
            raise ResourceNotFoundError(f"There is no {uri}; only the most recent artifacts are available.")
        return [ReadResourceContents(content=artifact.data, mime_type=artifact.media_type)]


class _ProgressReporter(AsyncCallbackHandler):
    """Reports the current stage to a client."""

    def __init__(self, context: Context[Any, Any]) -> None:
        super().__init__()
        self._context, self._count = context, itertools.count(1)

    async def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        if kwargs.get("name") in STAGE_LABELS:
            await self._context.report_progress(next(self._count), message=STAGE_LABELS[kwargs["name"]])


class _InputFiles:
    """Files that clients pass. Those of a session are kept until the server ends, as rebuilding its state needs them.

    Args:
        folder: Where they are stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._session_bytes = folder, 0

    @asynccontextmanager
    async def write(
        self, files: Mapping[str, str] | None, session_id: str | None
    ) -> AsyncIterator[dict[str, Path]]:
        """Write files, and yield their paths by name.

        Raises:
            InputError: A name or text is invalid, or the files are too large.
        """
        contents = {check_name(name): _encode(name, text) for name, text in (files or {}).items()}
        size = sum(map(len, contents.values()))
        if size > MAX_INPUT_BYTES or len(contents) > _MAX_ITEMS:
            limit = f"{_MAX_ITEMS} files with {MAX_INPUT_BYTES >> 20} MB together"
            raise InputError(f"{len(contents)} files with {size} bytes are too many: pass at most {limit}.")
        if session_id is not None and self._session_bytes + size > MAX_INPUT_BYTES:
            limit = f"{MAX_INPUT_BYTES >> 20} MB together"
            raise InputError(f"The files of all sessions may have {limit}: pass no files, or no session_id.")
        folder = await asyncio.to_thread(_write, self._folder, contents)
        try:
            yield {name: folder / name for name in contents}
        finally:
            if session_id is None or not contents:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            else:
                self._session_bytes += size


def _encode(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The file {name!r} is not valid text (broken UTF-8).") from error


def _write(folder: Path, files: Mapping[str, bytes]) -> Path:
    target = folder / uuid.uuid4().hex
    target.mkdir()
    for name, content in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return target


def create_server(chain: CodeChain, folder: Path, *, answers: bool = True) -> MCPServer[Any]:
    """Create a Model Context Protocol server.

    Args:
        chain: What runs programs and answers; its limits, checks and budget apply to all clients together.
        folder: An empty folder for the server's exclusive use, for files of clients.
        answers: Whether to offer `answer_with_code`, which uses the chain's model.

    Returns:
        The server; its `run()` serves standard input and output.
    """
    server = _Server(
        name="code_chains",
        instructions="Runs Python in a sandbox without network and without files of this machine. Results say what happened."
        " Use session_id to go on with variables, imports and files of earlier calls.",
    )
    input_files = _InputFiles(folder)

    async def run_python(
        code: Annotated[
            str, Field(description="The program. Print what is of interest; a last expression is shown.")
        ],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, RunResult]:
        """Run a Python program in a sandbox and see what it prints, makes, or fails with.

        A failure changes no session.
        """
        with _tool_errors():
            async with input_files.write(files, session_id) as paths:
                outcome = await chain.aexecute(code, session_id, files=paths)
        execution: Execution = outcome["execution"]
        resources = server.publish(execution.artifacts)
        result = RunResult(
            status=execution.status,
            output=shortened(outcome["output"], MAX_CHARS),
            error=None if execution.ok else execution.summary,
            artifacts=resources,
            duration=execution.duration,
            isolation=execution.isolation.level if execution.isolation else None,
        )
        return _tool_result(
            result, format_execution(execution, code, outcome["problems"]), execution, resources
        )

    async def answer_with_code(
        query: Annotated[str, Field(description="The question or task, in any language.")],
        context: Context[Any, Any],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, AnswerResult]:
        """Have a model write a program for a question, run and evaluate it, repair it if it fails, and phrase the answer."""
        with _tool_errors():
            async with input_files.write(files, session_id) as paths:
                state = {"query": query, "session_id": session_id, "files": paths}
                outcome = await chain.ainvoke(state, {"callbacks": [_ProgressReporter(context)]})
        execution, verdict = outcome["execution"], outcome["verdict"]
        resources = server.publish(execution.artifacts)
        result = _answer_result(outcome, verdict, resources)
        return _tool_result(result, shortened(outcome["answer"], MAX_CHARS), execution, resources)

    server.tool(title="Run Python")(run_python)
    if answers:
        server.tool(title="Answer with code")(answer_with_code)
    return server


def _answer_result(
    outcome: Mapping[str, Any], verdict: Verdict, resources: list[ArtifactResource]
) -> AnswerResult:
    return AnswerResult(
        answer=shortened(outcome["answer"], MAX_CHARS),
        code=outcome["code"],
        output=shortened(outcome["output"], MAX_CHARS),
        verdict=verdict.status,
        reason=verdict.reason,
        stop_reason=outcome["stop_reason"],
        attempts=len(outcome["attempts"]),
        artifacts=resources,
    )


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Turn exceptions into tool errors, whose messages clients receive."""
    try:
        yield
    except Exception as error:
        raise ToolError(describe_error(error)) from error


def _tool_result(
    structured: BaseModel, text: str, execution: Execution, resources: list[ArtifactResource]
) -> CallToolResult:
    """Return a result with structured content for clients, and with text and images for models."""
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    bytes_left = MAX_IMAGE_BYTES
    for artifact in execution.artifacts:
        media_type = _image_type(artifact.data)
        if media_type and len(artifact.data) <= bytes_left:
            bytes_left -= len(artifact.data)
            data = base64.b64encode(artifact.data).decode()
            content.append(ImageContent(type="image", data=data, mime_type=media_type))
    content += map(_resource_link, resources)
    return CallToolResult(content=content, structured_content=structured.model_dump())


def _image_type(data: bytes) -> str | None:
    return next((kind for signature, kind in _IMAGE_SIGNATURES.items() if data.startswith(signature)), None)


def _resource_link(resource: ArtifactResource) -> ResourceLink:
    return ResourceLink(
        type="resource_link",
        uri=resource.uri,
        name=resource.name,
        mime_type=resource.media_type,
        size=resource.size,
    )


def serve(chain: CodeChain, *, answers: bool = True) -> None:
    """Serve standard input and output until the client disconnects, or until running calls have finished after SIGTERM."""
    is_terminating = False

    def terminate(*_: object) -> None:
        nonlocal is_terminating
        if not is_terminating:
            is_terminating = True
            drain_then(chain, close_input)

    with tempfile.TemporaryDirectory(prefix="code_chains-mcp-") as folder, _closable_stdin() as close_input:
        signal.signal(signal.SIGTERM, terminate)
        create_server(chain, Path(folder), answers=answers).run()
    if is_terminating:
        sys.exit(TERMINATED_EXIT_CODE)


@contextmanager
def _closable_stdin() -> Iterator[Callable[[], None]]:
    """Replace standard input by a pipe, and yield a function that closes it: nothing else wakes a thread that reads it."""
    stdin, (read_end, write_end) = os.dup(0), os.pipe()
    os.dup2(read_end, 0)
    os.close(read_end)
    pipe = open(write_end, "wb", buffering=0)  # noqa: SIM115 - closed by the caller

    def forward() -> None:
        with suppress(OSError, ValueError):  # The pipe was closed.
            while data := os.read(stdin, 1 << 16):
                pipe.write(data)
            pipe.close()

    threading.Thread(target=forward, daemon=True).start()
    try:
        yield pipe.close
    finally:
        pipe.close()
        os.dup2(stdin, 0)
