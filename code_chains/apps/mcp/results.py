"""What the tools of a Model Context Protocol server return: structured content, text, images, artifacts as resources."""

from __future__ import annotations

import base64
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, Field

from code_chains.apps.remedies import remedy
from code_chains.apps.run_view import file_notes
from code_chains.chains.tools import MAX_CHARS, describe_failure, format_execution
from code_chains.errors import needs
from code_chains.inputs import shortened
from code_chains.state import Artifact, Execution, Verdict, as_json

with needs("mcp", "command", "mcp"):
    from mcp.types import CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent

MAX_RESOURCE_BYTES = 64 << 20
"""Maximum size of the artifacts available as resources; the oldest are evicted."""
MAX_IMAGE_BYTES = 1 << 20
"""Maximum size of the images that a result contains, besides being resources."""
_MAX_ITEMS = 1000
_IMAGE_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""Media types of images by their first bytes; names are not trusted."""


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
    notes: list[str] = Field(description="What reading the files left out or changed.")
    value: Any = Field(None, description="The value, if the chain has an answer type.")
    artifacts: list[ArtifactResource]


class ArtifactStore:
    """The most recent artifacts of all clients; each finds its own."""

    def __init__(self) -> None:
        self._artifacts: OrderedDict[str, tuple[str, Artifact]] = OrderedDict()

    def publish(self, owner: str, artifacts: tuple[Artifact, ...]) -> list[ArtifactResource]:
        """Make artifacts available to the client with the id `owner`."""
        prefix = f"artifact://{uuid.uuid4().hex}"
        new = {f"{prefix}/{quote(artifact.name)}": artifact for artifact in artifacts}
        self._artifacts |= {uri: (owner, artifact) for uri, artifact in new.items()}
        while self._size > MAX_RESOURCE_BYTES or len(self._artifacts) > _MAX_ITEMS:
            self._artifacts.popitem(last=False)
        return [_resource(uri, artifact) for uri, artifact in new.items() if uri in self._artifacts]

    def list(self, owner: str) -> list[ArtifactResource]:
        """Return the artifacts of a client, the latest first."""
        found = reversed(self._artifacts.items())
        return [_resource(uri, artifact) for uri, (whose, artifact) in found if whose == owner]

    def find(self, owner: str, uri: str) -> Artifact | None:
        """Return an artifact of a client; None if it has none with this URI."""
        whose, artifact = self._artifacts.get(uri, ("", None))
        return artifact if whose == owner else None

    def forget(self, owner: str) -> None:
        """Discard the artifacts of a client."""
        for uri in [uri for uri, (whose, _) in self._artifacts.items() if whose == owner]:
            self._artifacts.pop(uri, None)

    @property
    def _size(self) -> int:
        return sum(len(artifact.data) for _, artifact in self._artifacts.values())


def run_result(outcome: Mapping[str, Any], program: str, resources: list[ArtifactResource]) -> CallToolResult:
    """Return the result of a program.

    Args:
        outcome: What `CodeChain.execute` returned.
        program: The program.
        resources: Its artifacts.
    """
    execution: Execution = outcome["execution"]
    problems = outcome["problems"]
    result = RunResult(
        status=execution.status,
        output=shortened(outcome["output"], MAX_CHARS),
        error=None if execution.ok else describe_failure(execution, program, problems),
        artifacts=resources,
        duration=execution.duration,
        isolation=execution.isolation.level if execution.isolation else None,
    )
    advice = remedy({**outcome, "verdict": Verdict("failed", "none", "")}, "mcp") if not execution.ok else ""
    text = f"{format_execution(execution, program, problems)}\n{advice}".rstrip("\n")
    return _tool_result(result, text, execution, resources, is_error=not execution.ok)


def answer_result(outcome: Mapping[str, Any], resources: list[ArtifactResource]) -> CallToolResult:
    """Return the result of a question.

    Args:
        outcome: What the chain returned.
        resources: The artifacts of its program.
    """
    verdict: Verdict = outcome["verdict"]
    result = AnswerResult(
        answer=shortened(outcome["answer"], MAX_CHARS),
        code=outcome["code"],
        output=shortened(outcome["output"], MAX_CHARS),
        verdict=verdict.status,
        reason=verdict.reason,
        stop_reason=outcome["stop_reason"],
        attempts=len(outcome["attempts"]),
        notes=outcome["notes"],
        value=as_json({"value": outcome.get("value")})["value"],
        artifacts=resources,
    )
    verdict_line = f"Verdict: {verdict.status}. {verdict.reason} {remedy(outcome, 'mcp')}".rstrip()
    text = "\n\n".join([result.answer, *file_notes(outcome), verdict_line])
    return _tool_result(result, text, outcome["execution"], resources, is_error=not verdict.ok)


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


def _resource(uri: str, artifact: Artifact) -> ArtifactResource:
    size = len(artifact.data)
    return ArtifactResource(name=artifact.name, media_type=artifact.media_type, size=size, uri=uri)


def _resource_link(resource: ArtifactResource) -> ResourceLink:
    return ResourceLink(
        type="resource_link",
        uri=resource.uri,
        name=resource.name,
        mime_type=resource.media_type,
        size=resource.size,
    )
