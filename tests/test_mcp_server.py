"""The Model Context Protocol server, used by the protocol's own client: over standard input, and in memory."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.server import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import BlobResourceContents, CallToolResult, ImageContent, ResourceLink, TextContent

from code_chains import Limits, SandboxExecutor, create_code_chain
from code_chains.apps import mcp_server as module
from code_chains.apps.mcp_server import create_server
from code_chains.testing import ScriptedModel, asks_for_code

from .conftest import HOSTILE, QUESTION, SUM_ANSWER, OpenAI

Server = MCPServer[Any] | StdioServerParameters
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('line.png')"


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=5), preload=("matplotlib",)) as sandbox:
        yield sandbox


@pytest.fixture
def server(shared_sandbox: SandboxExecutor, tmp_path: Path) -> Iterator[MCPServer[Any]]:
    def script(messages: list[Any]) -> str:
        return "print(kept + 1)" if asks_for_code(messages) else "It is one more."

    with create_code_chain(ScriptedModel(script), executor=shared_sandbox, max_attempts=1) as chain:
        yield create_server(chain, tmp_path)


async def call(server: Server, tool: str, **arguments: Any) -> CallToolResult:
    async with Client(server) as client:
        return await client.call_tool(tool, arguments)


async def run(server: Server, code: str, **arguments: Any) -> dict[str, Any]:
    result = await call(server, "run_python", code=code, **arguments)
    assert result.structured_content is not None
    return dict(result.structured_content)


async def test_the_result_contains_the_output(server: Server) -> None:
    result = await run(server, "print('six'); 6 * 7")
    assert (result["status"], result["output"], result["isolation"]) == ("ok", "six\n42", "kernel")


async def test_a_failure_is_a_value_with_its_traceback(server: Server) -> None:
    result = await call(server, "run_python", code="1 / 0")
    assert not result.is_error
    assert isinstance(result.content[0], TextContent)
    assert "ZeroDivisionError" in result.content[0].text


async def test_a_limit_is_a_value(server: Server) -> None:
    assert (await run(server, "while True: pass"))["status"] == "timeout"


async def test_calls_share_nothing_without_a_session(server: Server) -> None:
    await run(server, "x = 1")
    assert (await run(server, "print(globals().get('x'))"))["output"] == "None"


async def test_a_session_preserves_variables_except_after_a_failure(server: Server) -> None:
    await run(server, "x = [1]", session_id="ann")
    await run(server, "x.append(2); 1 / 0", session_id="ann")
    assert (await run(server, "x", session_id="ann"))["output"] == "[1]"


async def test_a_question_continues_the_session_of_a_program(server: Server) -> None:
    await run(server, "kept = 41", session_id="ann")
    answer = await call(server, "answer_with_code", query="one more?", session_id="ann")
    assert answer.structured_content is not None
    assert answer.structured_content["output"] == "42"
    assert answer.structured_content["verdict"] == "unverified"


async def test_stages_are_reported_as_progress(server: Server) -> None:
    messages: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    await run(server, "kept = 41", session_id="ann")
    async with Client(server) as client:
        arguments = {"query": "one more?", "session_id": "ann"}
        await client.call_tool("answer_with_code", arguments, progress_callback=progress)
    assert "Writing a program" in messages


async def test_files_are_passed_as_text(server: Server) -> None:
    result = await run(server, "print(open('data/a.csv').read())", files={"data/a.csv": "n\n1"})
    assert result["output"] == "n\n1"


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", ""])
async def test_a_file_cannot_be_outside_the_folder(server: Server, name: str) -> None:
    result = await call(server, "run_python", code="1", files={name: "x"})
    assert result.is_error


async def test_files_are_limited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INPUT_BYTES", 100)
    assert (await call(server, "run_python", code="1", files={"a": "x" * 101})).is_error
    assert not (await call(server, "run_python", code="1", files={"a": "x" * 99})).is_error
    assert not (await call(server, "run_python", code="1", files={"a": "x" * 99})).is_error


async def test_files_of_a_call_are_deleted_and_those_of_a_session_kept(
    server: Server, tmp_path: Path
) -> None:
    await run(server, "1", files={"a": "x"})
    assert os.listdir(tmp_path) == []
    await run(server, "1", files={"a": "x"}, session_id="ann")
    assert len(os.listdir(tmp_path)) == 1


async def test_floods_are_shortened(server: Server) -> None:
    image = "b'\\x89PNG\\r\\n\\x1a\\n' + bytes(200_000)"
    code = f"for n in range(60): open(f'{{n}}.png', 'wb').write({image})\nprint('x' * 900_000)"
    result = await call(server, "run_python", code=code)
    assert len(result.model_dump_json()) < 2_000_000


async def test_an_image_is_recognized_by_its_content(server: Server) -> None:
    result = await call(server, "run_python", code="open('fake.png', 'w').write('no')")
    assert [type(block) for block in result.content] == [TextContent, ResourceLink]


async def test_the_error_of_a_model_is_reported(shared_sandbox: SandboxExecutor, tmp_path: Path) -> None:
    def script(_: Any) -> str:
        raise RuntimeError("401 wrong key")

    with create_code_chain(ScriptedModel(script), executor=shared_sandbox) as chain:
        result = await call(create_server(chain, tmp_path), "answer_with_code", query="x")
    assert "401 wrong key" in str(result.content)


async def test_an_error_of_a_provider_cannot_control_the_terminal_or_reveal_a_key(
    openai_server: OpenAI, tmp_path: Path
) -> None:
    openai_server.faults = [HOSTILE]
    arguments = ["-m", "code_chains", "mcp", "--model", "test", "--base-url", openai_server.base_url]
    parameters = StdioServerParameters(command=sys.executable, args=arguments)
    with (tmp_path / "stderr").open("w") as stderr:
        async with Client(stdio_client(parameters, errlog=stderr)) as client:
            result = await client.call_tool("answer_with_code", {"query": QUESTION})
    output = f"{result.content[0].text}{(tmp_path / 'stderr').read_text()}"  # type: ignore[union-attr]
    assert (result.is_error, "owned" in output) == (True, True)
    assert [part for part in ("\x1b", "\x07", "\x9b", "\u202e", "1234567890abcdef") if part in output] == []


async def test_a_figure_is_an_image_and_a_resource(server: Server) -> None:
    result = await call(server, "run_python", code=PLOT)
    (image,) = [block for block in result.content if isinstance(block, ImageContent)]
    (link,) = [block for block in result.content if isinstance(block, ResourceLink)]
    async with Client(server) as client:
        read = (await client.read_resource(link.uri)).contents[0]
    assert isinstance(read, BlobResourceContents)
    assert read.mime_type == "image/png"
    assert base64.b64decode(read.blob) == base64.b64decode(image.data)


async def test_resources_are_listed_with_their_types(server: Server) -> None:
    await run(server, "open('a b.txt', 'w').write('hi')")
    async with Client(server) as client:
        (listed,) = (await client.list_resources()).resources
    assert (listed.name, listed.mime_type, listed.size) == ("a b.txt", "text/plain", 2)


async def test_the_oldest_resources_are_evicted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RESOURCE_BYTES", 5)
    for _ in range(3):
        result = await run(server, "open('a.txt', 'w').write('123')")
    async with Client(server) as client:
        assert [resource.uri for resource in (await client.list_resources()).resources] == [
            result["artifacts"][0]["uri"]
        ]


async def test_an_evicted_resource_is_an_error(server: Server) -> None:
    async with Client(server) as client:
        with pytest.raises(MCPError, match="most recent"):
            await client.read_resource("artifact://99/a.txt")


async def test_invalid_arguments_are_reported(server: Server) -> None:
    result = await call(server, "run_python", code="  ")
    assert result.is_error
    assert "program is empty" in str(result.content)


async def test_calls_run_concurrently(server: Server) -> None:
    outputs = await asyncio.gather(
        *(run(server, f"import time; time.sleep(0.5); print({n})") for n in range(4))
    )
    assert [result["output"] for result in outputs] == ["0", "1", "2", "3"]


def server_parameters(*options: str, env: dict[str, str] | None = None) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "code_chains", "mcp", *options], env=env)


async def test_over_standard_input_it_answers_with_a_model(openai_server: OpenAI) -> None:
    options = (
        "--model",
        "test",
        "--base-url",
        openai_server.base_url,
        "--seconds",
        "3",
        "--budget",
        "model_calls=3",
    )
    async with Client(server_parameters(*options)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("answer_with_code", {"query": QUESTION})
    assert set(tools) == {"run_python", "answer_with_code"}
    assert set(tools["run_python"].input_schema["properties"]) == {"code", "session_id", "files"}
    assert answer.structured_content is not None
    assert answer.structured_content["answer"] == SUM_ANSWER


async def test_without_a_model_programs_still_run() -> None:
    async with Client(server_parameters("--seconds", "2")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run_python"]
    assert (await run(server_parameters("--seconds", "2"), "while True: pass"))["status"] == "timeout"


async def test_a_program_cannot_forge_protocol_messages() -> None:
    forged = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
    result = await run(server_parameters(), f"import os; os.write(1, {forged!r}.encode())")
    assert forged in result["output"]
