"""The sandbox and the chain for whatever speaks the Model Context Protocol: tools, and what programs made as resources.

`run_python` and `answer_with_code` share their sessions: one goes on with what the other has left.
"""

from __future__ import annotations

import base64
import itertools
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from langchain_core.callbacks import AsyncCallbackHandler
from pydantic import BaseModel, Field

from code_chains.code_chain import CodeChain
from code_chains.errors import CodeChainsError, ConfigurationError, InputError
from code_chains.inputs import check_name
from code_chains.progress import DOING
from code_chains.state import Artifact, Execution, Verdict

try:
    from mcp.server import MCPServer
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.types import CallToolResult, ContentBlock, ImageContent, Resource, ResourceLink, TextContent
except ImportError as error:
    raise ConfigurationError(
        "command", "mcp", "it after installing its package: pip install 'code-chains[mcp]'"
    ) from error

__all__ = ["Answered", "Kept", "Ran", "create_server"]

MOST_KEPT = 64 << 20
"""Bytes of artifacts that are kept as resources; the oldest make room for new ones."""
MOST_GIVEN = 64 << 20
"""Bytes of files that a client may give, all together."""
LARGEST_SHOWN = 1 << 20
"""Bytes of an image up to which it is shown with the result, besides being a resource."""
_SHOWN = ("image/png", "image/jpeg", "image/gif", "image/webp")

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
        self._numbers = itertools.count(1)

    def keep(self, artifacts: tuple[Artifact, ...]) -> list[Kept]:
        """Make resources of artifacts."""
        number = next(self._numbers)
        for artifact in artifacts:
            self._kept[f"artifact://{number}/{quote(artifact.name)}"] = artifact
        while sum(len(one.data) for one in self._kept.values()) > MOST_KEPT:
            self._kept.popitem(last=False)
        return [_described(uri, one) for uri, one in self._kept.items() if uri.startswith(f"artifact://{number}/")]

    def get(self, uri: str) -> Artifact:
        """What a program made."""
        if uri not in self._kept:
            raise ResourceNotFoundError(f"There is no {uri}; only what was made lately is kept.")
        return self._kept[uri]

    async def list_resources(self) -> list[Resource]:
        """What programs made, the latest first."""
        return [
            Resource(uri=uri, name=one.name, mime_type=one.media_type, size=len(one.data))
            for uri, one in reversed(self._kept.items())
        ]

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        """The content of one of them."""
        artifact = self.get(str(uri))
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
    """Files that a client gave, for as long as the server runs: a session that is rebuilt needs them again."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers, self._size = folder, itertools.count(1), 0

    def write(self, files: Mapping[str, str] | None) -> dict[str, Path]:
        """Write files and say where they are, by their names."""
        paths: dict[str, Path] = {}
        for name, text in (files or {}).items():
            self._size += len(text.encode())
            if self._size > MOST_GIVEN:
                raise InputError(f"At most {MOST_GIVEN >> 20} MB of files can be given to one server.")
            path = self._folder / str(next(self._numbers)) / check_name(name)
            path.parent.mkdir(parents=True)
            path.write_text(text, encoding="utf-8")
            paths[name] = path
        return paths


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
        try:
            outcome = await chain.aexecute(code, session_id, files=given.write(files))
        except CodeChainsError as error:
            raise ToolError(str(error)) from error
        execution: Execution = outcome["execution"]
        kept = server.keep(execution.artifacts)
        ran = Ran(
            status=execution.status,
            output=outcome["output"],
            error=None if execution.ok else execution.summary,
            artifacts=kept,
            duration=execution.duration,
            isolation=execution.isolation.level if execution.isolation else None,
        )
        return _result(ran, ran.output if execution.ok else f"{ran.output}\n{ran.error}".strip(), execution, kept)

    async def answer_with_code(
        query: Annotated[str, Field(description="The question or task, in any language.")],
        context: Context[Any, Any],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, Answered]:
        """Have a model write a program for a question, run and judge it, mend it where it fails, and tell the answer."""
        try:
            asked = {"query": query, "session_id": session_id, "files": given.write(files)}
            outcome = await chain.ainvoke(asked, {"callbacks": [_Stages(context)]})
        except CodeChainsError as error:
            raise ToolError(str(error)) from error
        execution, verdict = outcome["execution"], outcome["verdict"]
        kept = server.keep(execution.artifacts)
        return _result(_answered(outcome, verdict, kept), outcome["answer"], execution, kept)

    server.tool(title="Run Python")(run_python)
    if answers:
        server.tool(title="Answer with code")(answer_with_code)
    return server


def _answered(outcome: Mapping[str, Any], verdict: Verdict, kept: list[Kept]) -> Answered:
    return Answered(
        answer=outcome["answer"],
        code=outcome["code"],
        output=outcome["output"],
        verdict=verdict.status,
        reason=verdict.reason,
        stop_reason=outcome["stop_reason"],
        attempts=len(outcome["attempts"]),
        artifacts=kept,
    )


def _described(uri: str, artifact: Artifact) -> Kept:
    return Kept(name=artifact.name, media_type=artifact.media_type, size=len(artifact.data), uri=uri)


def _result(structured: BaseModel, text: str, execution: Execution, kept: list[Kept]) -> CallToolResult:
    """A result for clients that read structures, and for models that read text and look at pictures."""
    content: list[ContentBlock] = [TextContent(type="text", text=text)]
    for artifact in execution.artifacts:
        if artifact.media_type in _SHOWN and len(artifact.data) <= LARGEST_SHOWN:
            data = base64.b64encode(artifact.data).decode()
            content.append(ImageContent(type="image", data=data, mime_type=artifact.media_type))
    content += [
        ResourceLink(type="resource_link", uri=one.uri, name=one.name, mime_type=one.media_type, size=one.size)
        for one in kept
    ]
    return CallToolResult(content=content, structured_content=structured.model_dump())


def serve(chain: CodeChain, *, answers: bool = True) -> None:
    """Serve standard input and output until the client leaves."""
    with tempfile.TemporaryDirectory(prefix="code_chains-mcp-") as folder:
        create_server(chain, Path(folder), answers=answers).run()
