"""A Model Context Protocol server: the sandbox and the chain as tools, and artifacts as resources.

`run_python` and `answer_with_code` share their sessions: each continues with the state that the other left.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from langchain_core.callbacks import AsyncCallbackHandler
from pydantic import Field

from code_chains._version import __version__
from code_chains.analysis.replies.extraction import as_program
from code_chains.apps.mcp.clients import (
    MAX_BODY_BYTES,
    MAX_SESSIONS,
    Client,
    ClientRegistry,
    ConnectionWatch,
    run_while_connected,
)
from code_chains.apps.mcp.files import InputFiles, SharedFiles
from code_chains.apps.mcp.results import AnswerResult, ArtifactStore, RunResult, answer_result, run_result
from code_chains.apps.mcp.tokens import token_options
from code_chains.apps.run_view import STAGE_LABELS
from code_chains.apps.shutdown import TERMINATED_EXIT_CODE, drain_then
from code_chains.assembly.code_chain import CodeChain
from code_chains.callbacks.redaction import describe_error
from code_chains.chains import ExecuteChain
from code_chains.errors import CodeChainsError, InputError, needs
from code_chains.temporary import process_folder

with needs("mcp", "command", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp.types import CallToolResult, Resource, ToolAnnotations
    from starlette.applications import Starlette

_INSTRUCTIONS = (
    "Runs Python in a sandbox without network and without files of this machine but those that are shared. Results say"
    " what happened."
)
_EFFECTS = (
    "Runs Python. Programs can act outside of their sandbox: use a network, change this machine, or call tools with"
    " effects. Results say what happened."
)
_SESSIONS = "Use session_id to go on with variables, imports and files of earlier calls."
_RUN_DESCRIPTION = (
    "Runs a Python program. Print what you need to see; the value of a last expression is shown as well."
)
_STATE = (
    "Without session_id each program starts from nothing; with one, variables, imports and files stay for the next call,"
    " and a program that fails changes none of them."
)
_NO_STATE = "Each program starts from nothing; session_id cannot be used here."
_ANSWER_DESCRIPTION = (
    "Answers a question by code: another model writes a Python program, which is run, evaluated, and repaired"
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


class CodeServer(MCPServer[Any]):
    """A server whose resources are the most recent artifacts of the client that asks."""

    clients: ClientRegistry

    def __init__(self, artifacts: ArtifactStore, clients: ClientRegistry, **options: Any) -> None:
        super().__init__(middleware=[clients], **options)
        self._artifacts, self.clients = artifacts, clients

    async def list_resources(self) -> list[Resource]:
        """List the artifacts, the latest first."""
        return [
            Resource(uri=found.uri, name=found.name, mime_type=found.media_type, size=found.size)
            for found in self._artifacts.list(self.clients.current.id)
        ]

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        """Return the content of an artifact."""
        artifact = self._artifacts.find(self.clients.current.id, str(uri))
        if artifact is None:
            raise ResourceNotFoundError(f"There is no {uri}; only the most recent artifacts are available.")
        return [ReadResourceContents(content=artifact.data, mime_type=artifact.media_type)]

    def streamable_http_app(self, **options: Any) -> Starlette:
        """Return the application for HTTP, which notices when clients disconnect."""
        app = super().streamable_http_app(**{"max_request_body_size": MAX_BODY_BYTES, **options})
        app.add_middleware(ConnectionWatch, clients=self.clients)
        return app


class _ProgressReporter(AsyncCallbackHandler):
    """Reports the current stage to a client."""

    def __init__(self, context: Context[Any, Any]) -> None:
        super().__init__()
        self._context, self._count = context, itertools.count(1)

    async def on_chain_start(self, serialized: dict[str, Any], inputs: dict[str, Any], **kwargs: Any) -> None:
        if kwargs.get("name") in STAGE_LABELS:
            await self._context.report_progress(next(self._count), message=STAGE_LABELS[kwargs["name"]])


def create_server(
    chain: CodeChain,
    folder: Path,
    *,
    answers: bool = True,
    shared: SharedFiles | None = None,
    tokens: Sequence[str] = (),
) -> CodeServer:
    """Create a Model Context Protocol server.

    Clients have sessions and artifacts of their own.

    Args:
        chain: What runs programs and answers; its limits, checks and budget apply to all clients together.
        folder: An empty folder for the server's exclusive use, for files of clients.
        answers: Whether to offer `answer_with_code`, which uses the chain's model.
        shared: Files of this machine that all programs may read.
        tokens: Bearer tokens over HTTP, one for each client; without any, everybody who reaches the server may use it.

    Returns:
        The server; its `run()` serves standard input and output, and its `streamable_http_app()` is an ASGI application.

    Raises:
        ConfigurationError: A token is too short, or has other characters than such headers may have.
    """
    shared = shared or SharedFiles()
    input_files, artifacts = InputFiles(folder, shared), ArtifactStore()

    def release(client: Client) -> None:
        artifacts.forget(client.id)
        for session in client.sessions:
            with suppress(CodeChainsError):  # A run that was cancelled may still be ending.
                chain.forget(session)
            input_files.forget(session)

    share = max(1, MAX_SESSIONS // max(1, len(tokens)))
    clients, keeps_state = (
        ClientRegistry(release, share=share),
        bool(chain.executor and chain.executor.has_sessions),
    )

    async def run_python(
        code: Annotated[
            str, Field(description="The program. Print what is of interest; a last expression is shown.")
        ],
        context: Context[Any, Any],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, RunResult]:
        with _tool_errors():
            clients.take_turns()
            if session_id is not None and not keeps_state:
                raise InputError(_NO_STATE)
            session = clients.current.session_name(session_id)
            async with input_files.write(files, session) as paths:
                work = chain.aexecute(code, session, files=paths)
                outcome = await run_while_connected(context.request_context.request, work)
        resources = artifacts.publish(clients.current.id, outcome["execution"].artifacts)
        return run_result(outcome, as_program(code), resources)

    async def answer_with_code(
        query: Annotated[str, Field(description="The question or task, in any language.")],
        context: Context[Any, Any],
        session_id: SessionId = None,
        files: Files = None,
    ) -> Annotated[CallToolResult, AnswerResult]:
        with _tool_errors():
            clients.take_turns()
            session = clients.current.session_name(session_id)
            async with input_files.write(files, session) as paths:
                state = {"query": query, "session_id": session, "files": paths}
                work = chain.ainvoke(state, {"callbacks": [_ProgressReporter(context)]})
                outcome = await run_while_connected(context.request_context.request, work)
        resources = artifacts.publish(clients.current.id, outcome["execution"].artifacts)
        return answer_result(outcome, resources)

    available = shared.describe()
    guidance = f"{chain.executor.guidance if chain.executor else ''} {available}".strip()
    description = f"{_RUN_DESCRIPTION} {_STATE if keeps_state else _NO_STATE} {guidance}"
    has_effects = _has_effects(chain)
    instructions = _EFFECTS if has_effects else _INSTRUCTIONS
    tool = partial(_tool, has_effects=has_effects)
    tools = [tool(run_python, "Run Python", description)]
    if answers:
        description = f"{_ANSWER_DESCRIPTION} {available}".strip()
        tools.append(tool(answer_with_code, "Answer with code", description))
    return CodeServer(
        artifacts,
        clients,
        name="code_chains",
        version=__version__,
        instructions=f"{instructions} {_SESSIONS}" if keeps_state else instructions,
        log_level="WARNING",
        tools=tools,
        **token_options(tokens),
    )


def _has_effects(chain: CodeChain) -> bool:
    """Return whether programs can change anything outside their sandbox."""
    toolboxes = [stage.tools for stage in chain.user_code_chains if isinstance(stage, ExecuteChain)]
    calls_effects = any(tools is not None and not tools.is_read_only for tools in toolboxes)
    return calls_effects or (chain.executor is not None and chain.executor.reaches_outside)


def _tool(function: Callable[..., Any], title: str, description: str, *, has_effects: bool) -> Tool:
    # Clients may call read-only tools without asking. With a session, a tool is not idempotent.
    hints = ToolAnnotations(
        read_only_hint=not has_effects, idempotent_hint=False, open_world_hint=has_effects
    )
    tool = Tool.from_function(function, title=title, description=description, annotations=hints)
    arguments = tool.fn_metadata.arg_model
    # Unknown arguments are refused: a model that misspells one must learn of it.
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    tool.parameters = arguments.model_json_schema(by_alias=True)
    return tool


@contextmanager
def _tool_errors() -> Iterator[None]:
    """Turn exceptions into tool errors, whose messages clients receive."""
    try:
        yield
    except Exception as error:
        raise ToolError(describe_error(error)) from error


def serve(chain: CodeChain, *, answers: bool = True, shared: SharedFiles | None = None) -> None:
    """Serve standard input and output until the client disconnects, or until running calls have finished after SIGTERM."""
    is_terminating = False

    def terminate(*_: object) -> None:
        nonlocal is_terminating
        if not is_terminating:
            is_terminating = True
            drain_then(chain, close_input)

    with (
        tempfile.TemporaryDirectory(prefix="mcp-", dir=process_folder()) as folder,
        _closable_stdin() as close_input,
    ):
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
