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

from code_chains import Limits, Repair, SandboxExecutor, create_code_chain
from code_chains._version import __version__
from code_chains.apps.mcp import files as mcp_files
from code_chains.apps.mcp import results as mcp_results
from code_chains.apps.mcp.files import InputFiles, SharedFiles
from code_chains.apps.mcp.server import create_server
from code_chains.errors import ConfigurationError, InputError
from code_chains.testing import ScriptedModel, asks_for_code
from tests.conftest import HOSTILE, QUESTION, SUM_ANSWER, OpenAI

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

    with create_code_chain(ScriptedModel(script), executor=shared_sandbox, solve=Repair(1)) as chain:
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


async def test_a_failure_is_an_error_with_line_values_and_what_exists(server: Server) -> None:
    code = "rows = [{'price': 1}]\nfor row in rows:\n    print(row['prize'])"
    result = await call(server, "run_python", code=code)
    assert result.is_error
    assert isinstance(result.content[0], TextContent)
    for text in (result.content[0].text, (result.structured_content or {})["error"]):
        assert all(part in text for part in (">   3 |", "row = {'price': 1}", "The keys are 'price'"))


async def test_a_program_in_a_fence_runs(server: Server) -> None:
    assert (await run(server, "Here it is:\n```python\nprint(6 * 7)\n```"))["output"] == "42"


async def test_an_unknown_argument_is_refused(server: Server) -> None:
    result = await call(server, "run_python", code="1", sesion_id="ann")
    assert (result.is_error, "sesion_id" in str(result.content)) == (True, True)


async def test_the_verdict_is_part_of_the_text(server: Server) -> None:
    await run(server, "kept = 41", session_id="ann")
    answer = await call(server, "answer_with_code", query="one more?", session_id="ann")
    assert "Verdict: unverified. The program ran" in answer.content[0].text  # type: ignore[union-attr]
    failed = await call(server, "answer_with_code", query="one more?")
    assert failed.is_error


async def test_a_typed_value_is_part_of_the_structured_content(
    shared_sandbox: SandboxExecutor, tmp_path: Path
) -> None:
    script = ScriptedModel(lambda messages: "(1, 2.5)[:] + ()" if asks_for_code(messages) else "1 and 2.5.")
    with create_code_chain(script, executor=shared_sandbox, answer_type=list[float]) as chain:
        answer = await call(create_server(chain, tmp_path), "answer_with_code", query="which?")
    assert (answer.structured_content or {})["value"] == [1.0, 2.5]


async def test_the_server_and_its_tools_describe_themselves(server: Server) -> None:
    async with Client(server) as client:
        (run_python, _) = (await client.list_tools()).tools
        assert (client.server_info and client.server_info.version) == __version__
    assert run_python.annotations is not None
    assert (run_python.annotations.read_only_hint, run_python.annotations.open_world_hint) == (True, False)
    assert "no network" in (run_python.description or "")
    assert all("description" in field for field in run_python.input_schema["properties"].values())


async def test_what_can_act_outside_is_not_called_read_only(tmp_path: Path) -> None:
    script = ScriptedModel(lambda messages: "1")
    for options in ({"executor": "none"}, {"tools": [delete_order]}):
        with create_code_chain(script, **options) as chain:
            async with Client(create_server(chain, tmp_path)) as client:
                tools = (await client.list_tools()).tools
        hints = [(tool.annotations.read_only_hint, tool.annotations.open_world_hint) for tool in tools]  # type: ignore[union-attr]
        assert hints == [(False, True), (False, True)]


def delete_order(number: int) -> None:
    """Delete an order."""


PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n\xff").decode()


async def test_a_binary_file_is_passed_as_a_data_uri(server: Server) -> None:
    files = {"a.png": f"data:image/png;base64,{PIXEL}", "b.txt": "data: text"}
    code = "print(open('a.png', 'rb').read()[-1], open('b.txt').read())"
    assert (await run(server, code, files=files))["output"] == "255 data: text"
    assert (await call(server, "run_python", code="1", files={"a": "data:;base64,?"})).is_error


# -- files of the owner --------------------------------------------------------------------------------------


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """A folder with files, a hidden one, and a link to a secret outside."""
    folder = tmp_path / "reports"
    (folder / "old").mkdir(parents=True)
    (folder / "a b.csv").write_bytes(b"n\n\xff")
    (folder / "old" / "é.txt").write_text("old")
    (folder / ".env").write_text("secret")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to(tmp_path)
    return folder


@pytest.fixture
def sharing(shared_sandbox: SandboxExecutor, tmp_path: Path, owned: Path) -> Iterator[MCPServer[Any]]:
    (tmp_path / "sales.csv").write_text("amount\n42\n")
    (tmp_path / "clients").mkdir()
    shared = SharedFiles([str(tmp_path / "sales.csv")], [str(owned)])
    with create_code_chain(ScriptedModel(lambda messages: ""), executor=shared_sandbox) as chain:
        yield create_server(chain, tmp_path / "clients", shared=shared)


LISTS = "import glob\nprint(sorted(glob.glob('**', recursive=True, include_hidden=True)))"


async def test_files_of_the_owner_are_there_without_hidden_ones_and_links(sharing: Server) -> None:
    files = ["reports", "reports/a b.csv", "reports/old", "reports/old/é.txt", "sales.csv"]
    assert (await run(sharing, LISTS))["output"] == str(files)


async def test_files_of_the_owner_are_described(sharing: Server) -> None:
    async with Client(sharing) as client:
        (run_python, _) = (await client.list_tools()).tools
    assert "Programs can read sales.csv, reports/a b.csv" in (run_python.description or "")


async def test_a_program_cannot_change_the_owners_file(sharing: Server, owned: Path) -> None:
    code = "import os\nos.chmod('reports/a b.csv', 0o666)\nopen('reports/a b.csv', 'w').write('x')"
    await run(sharing, code)
    assert (owned / "a b.csv").read_bytes() == b"n\n\xff"


async def test_a_file_that_appears_in_the_folder_can_be_read_in_a_session(
    sharing: Server, owned: Path
) -> None:
    await run(sharing, "x = 1", session_id="ann")
    (owned / "new.txt").write_text("new")
    assert (await run(sharing, "print(open('reports/new.txt').read(), x)", session_id="ann"))[
        "output"
    ] == "new 1"


async def test_a_client_cannot_replace_a_file_of_the_owner(sharing: Server) -> None:
    result = await call(sharing, "run_python", code="1", files={"sales.csv": "amount\n0\n"})
    assert (result.is_error, "There is a file 'sales.csv' already" in str(result.content)) == (True, True)


def test_too_many_files_are_refused_at_once(owned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_files, "MAX_SHARED_BYTES", 2)
    with pytest.raises(InputError, match="too many to share"):
        SharedFiles(folders=[str(owned)])


@pytest.mark.parametrize("folders", [["/nowhere"], [__file__], ["/tmp", "/tmp/../tmp"]])
def test_a_folder_that_cannot_be_shared_is_refused(folders: list[str]) -> None:
    with pytest.raises(ConfigurationError):
        SharedFiles(folders=folders)


# -- limits ------------------------------------------------------------------------------------------------


@pytest.mark.host
async def test_a_limit_is_a_value(server: Server) -> None:
    assert (await run(server, "while True: pass"))["status"] == "timeout"


async def test_calls_share_nothing_without_a_session(server: Server) -> None:
    await run(server, "x = 1")
    assert (await run(server, "print(globals().get('x'))"))["output"] == "None"


async def test_a_session_preserves_variables_except_after_a_failure(server: Server) -> None:
    await run(server, "x = [1]", session_id="ann")
    await run(server, "x.append(2); 1 / 0", session_id="ann")
    assert (await run(server, "x", session_id="ann"))["output"] == "[1]"


async def test_without_sessions_none_is_promised_and_none_accepted(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _: "```python\nprint(1)\n```")
    with create_code_chain(model, executor="monty", interpret=False) as chain:
        server = create_server(chain, tmp_path)
        async with Client(server) as client:
            tools = {tool.name: str(tool.description) for tool in (await client.list_tools()).tools}
        assert "Each program starts from nothing" in tools["run_python"]
        assert "stay for the next call" not in tools["run_python"]
        assert (await call(server, "run_python", code="x = 1", session_id="one")).is_error
        assert not (await call(server, "run_python", code="1")).is_error


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


async def test_a_row_that_is_left_out_is_part_of_the_answer(server: Server) -> None:
    files = {"a.csv": "r,n\nN,1\nTotal,1\n"}
    await run(server, "kept = 41", session_id="eve")
    answer = await call(server, "answer_with_code", query="one more?", session_id="eve", files=files)
    assert "Note: a.csv: 1 line left out" in answer.content[0].text  # type: ignore[union-attr]
    assert "1 line left out" in answer.structured_content["notes"][0]


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", ""])
async def test_a_file_cannot_be_outside_the_folder(server: Server, name: str) -> None:
    result = await call(server, "run_python", code="1", files={name: "x"})
    assert result.is_error


async def test_a_name_that_is_a_file_and_a_folder_leaves_nothing_behind(
    server: Server, tmp_path: Path
) -> None:
    result = await call(server, "run_python", code="1", files={"a": "x", "a/b": "y"})
    assert (result.is_error, os.listdir(tmp_path)) == (True, [])


async def test_files_are_limited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_files, "MAX_INPUT_BYTES", 100)
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


async def test_a_session_that_is_forgotten_makes_room_for_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_files, "MAX_INPUT_BYTES", 100)
    files = InputFiles(tmp_path, SharedFiles())
    async with files.write({"a": "x" * 60}, "ann"):
        pass
    with pytest.raises(InputError, match="all sessions"):
        async with files.write({"a": "x" * 60}, "ben"):
            pass
    files.forget("ann")
    assert os.listdir(tmp_path) == []
    async with files.write({"a": "x" * 60}, "ben") as paths:
        assert paths["a"].read_text() == "x" * 60


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


@pytest.mark.host
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


@pytest.mark.slow
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
    monkeypatch.setattr(mcp_results, "MAX_RESOURCE_BYTES", 5)
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


@pytest.mark.smoke
@pytest.mark.host
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


@pytest.mark.host
async def test_without_a_model_programs_still_run() -> None:
    async with Client(server_parameters("--seconds", "2")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["run_python"]
    assert (await run(server_parameters("--seconds", "2"), "while True: pass"))["status"] == "timeout"


@pytest.mark.host
async def test_the_log_is_quiet(tmp_path: Path) -> None:
    with (tmp_path / "stderr").open("w") as stderr:
        async with Client(stdio_client(server_parameters(), errlog=stderr)) as client:
            await client.call_tool("run_python", {"code": "1"})
    assert (tmp_path / "stderr").read_text().splitlines() == [
        "Serving on standard input and output: run_python (answer_with_code needs --model)"
    ]


@pytest.mark.host
async def test_over_standard_input_it_shares_files_of_the_owner(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("42")
    server = server_parameters("-f", str(tmp_path / "sales.csv"))
    assert (await run(server, "print(open('sales.csv').read())"))["output"] == "42"


@pytest.mark.host
async def test_a_program_cannot_forge_protocol_messages() -> None:
    forged = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
    result = await run(server_parameters(), f"import os; os.write(1, {forged!r}.encode())")
    assert forged in result["output"]
