"""A Model Context Protocol server: the sandbox and the chain as tools, and artifacts as resources.

`run_python` and `answer_with_code` share their sessions: each continues with the state that the other left.
"""

from __future__ import annotations

import base64
import itertools
import os
import signal
import sys
import tempfile
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from langchain_core.callbacks import AsyncCallbackHandler
from pydantic import BaseModel, Field

from code_chains._version import __version__
from code_chains.analysis.extraction import as_program
from code_chains.apps.mcp_files import InputFiles, SharedFiles
from code_chains.apps.progress import STAGE_LABELS
from code_chains.apps.shutdown import TERMINATED_EXIT_CODE, drain_then
from code_chains.callbacks.redaction import describe_error
from code_chains.chains.tools import MAX_CHARS, describe_failure, format_execution
from code_chains.code_chain import CodeChain
from code_chains.errors import needs
from code_chains.inputs import shortened
from code_chains.state import Artifact, Execution, Verdict, as_json

with needs("mcp", "command", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import (
        CallToolResult,
        ContentBlock,
        ImageContent,
        Resource,
        ResourceLink,
        TextContent,
        ToolAnnotations,
    )

__all__ = ["AnswerResult", "ArtifactResource", "RunResult", "create_server"]

MAX_RESOURCE_BYTES = 64 << 20
"""Maximum size of the artifacts available as resources; the oldest are evicted."""
MAX_IMAGE_BYTES = 1 << 20
"""Maximum size of the images that a result contains, besides being resources."""
_MAX_ITEMS = 1000
_IMAGE_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""Media types of images by their first bytes; names are not trusted."""

_INSTRUCTIONS = (
    "Runs Python in a sandbox without network and without files of this machine but those that are shared. Results say"
    " what happened. Use session_id to go on with variables, imports and files of earlier calls."
)
_RUN_DESCRIPTION = (
    "Runs a Python program in a sandbox. Print what you need to see; the value of a last expression is shown as well."
    " Without session_id each program starts from nothing; with one, variables, imports and files stay for the next call,"
    " and a program that fails changes none of them."
)
_ANSWER_DESCRIPTION = (
    "Answers a question by code: another model writes a Python program, which is run in a sandbox, evaluated, and repaired"
    " if it fails. Use it for anything that should be computed rather than estimated."
)

Files = Annotated[
    dict[str, str] | None,
    Field(
        description="Files for the program: name in its working directory -> text of the file, or for binary files a"
        " data URI (data:;base64,...)."
    ),
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
    error: str | None = Field(
        description="Why it failed: the error, the line, the values at that moment, what exists instead; or why nothing ran."
    )
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
    value: Any = Field(None, description="The value, if the chain has an answer type.")
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


def create_server(
    chain: CodeChain, folder: Path, *, answers: bool = True, shared: SharedFiles | None = None
) -> MCPServer[Any]:
    """Create a Model Context Protocol server.

    Args:
        chain: What runs programs and answers; its limits, checks and budget apply to all clients together.
        folder: An empty folder for the server's exclusive use, for files of clients.
        answers: Whether to offer `answer_with_code`, which uses the chain's model.
        shared: Files of this machine that all programs may read.

    Returns:
        The server; its `run()` serves standard input and output.
    """
    shared = shared or SharedFiles()
    input_files = InputFiles(folder, shared)

    async def run_python(
        code: Annotated[
            str, Field(description="The program. Print what is of interest; a last expression is shown.")
        ],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, RunResult]:
        with _tool_errors():
            async with input_files.write(files, session_id) as paths:
                outcome = await chain.aexecute(code, session_id, files=paths)
        execution: Execution = outcome["execution"]
        resources = server.publish(execution.artifacts)
        program = as_program(code)
        text = format_execution(execution, program, outcome["problems"])
        result = RunResult(
            status=execution.status,
            output=shortened(outcome["output"], MAX_CHARS),
            error=None if execution.ok else describe_failure(execution, program, outcome["problems"]),
            artifacts=resources,
            duration=execution.duration,
            isolation=execution.isolation.level if execution.isolation else None,
        )
        return _tool_result(result, text, execution, resources, is_error=not execution.ok)

    async def answer_with_code(
        query: Annotated[str, Field(description="The question or task, in any language.")],
        context: Context[Any, Any],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, AnswerResult]:
        with _tool_errors():
            async with input_files.write(files, session_id) as paths:
                state = {"query": query, "session_id": session_id, "files": paths}
                outcome = await chain.ainvoke(state, {"callbacks": [_ProgressReporter(context)]})
        execution, verdict = outcome["execution"], outcome["verdict"]
        resources = server.publish(execution.artifacts)
        result = _answer_result(outcome, verdict, resources)
        text = f"{result.answer}\n\nVerdict: {verdict.status}. {verdict.reason}"
        return _tool_result(result, text, execution, resources, is_error=not verdict.ok)

    available = shared.describe()
    guidance = f"{chain.executor.guidance if chain.executor else ''} {available}".strip()
    tools = [_tool(run_python, "Run Python", f"{_RUN_DESCRIPTION} {guidance}")]
    if answers:
        description = f"{_ANSWER_DESCRIPTION} {available}".strip()
        tools.append(_tool(answer_with_code, "Answer with code", description))
    server = _Server(
        name="code_chains",
        version=__version__,
        instructions=_INSTRUCTIONS,
        log_level="WARNING",
        tools=tools,
    )
    return server


def _tool(function: Callable[..., Any], title: str, description: str) -> Tool:
    # It changes nothing outside its sandbox; with a session it is not idempotent.
    hints = ToolAnnotations(read_only_hint=True, idempotent_hint=False, open_world_hint=False)
    tool = Tool.from_function(function, title=title, description=description, annotations=hints)
    arguments = tool.fn_metadata.arg_model
    # Unknown arguments are refused: a model that misspells one must learn of it.
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


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
        value=as_json({"value": outcome.get("value")})["value"],
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
    structured: BaseModel,
    text: str,
    execution: Execution,
    resources: list[ArtifactResource],
    *,
    is_error: bool,
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
    return CallToolResult(content=content, structured_content=structured.model_dump(), is_error=is_error)


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


def serve(chain: CodeChain, *, answers: bool = True, shared: SharedFiles | None = None) -> None:
    """Serve standard input and output until the client disconnects, or until running calls have finished after SIGTERM."""
    is_terminating = False

    def terminate(*_: object) -> None:
        nonlocal is_terminating
        if not is_terminating:
            is_terminating = True
            drain_then(chain, close_input)

    with tempfile.TemporaryDirectory(prefix="code_chains-mcp-") as folder, _closable_stdin() as close_input:
        signal.signal(signal.SIGTERM, terminate)
        create_server(chain, Path(folder), answers=answers, shared=shared).run()
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
