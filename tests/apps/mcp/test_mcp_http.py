"""The Model Context Protocol over streamable HTTP, used by the protocol's own client on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from click.testing import CliRunner, Result
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from code_chains import create_code_chain
from code_chains.apps.mcp import clients as mcp_clients
from code_chains.apps.mcp.clients import Client as ServedClient
from code_chains.apps.mcp.clients import ClientRegistry, ConnectionWatch
from code_chains.apps.mcp.http import serve_http, transport_security
from code_chains.apps.mcp.tokens import TokenVerifier
from code_chains.apps.terminal.cli import cli
from code_chains.errors import ConfigurationError, InputError
from code_chains.testing import ScriptedExecutor, ScriptedModel
from tests.conftest import QUESTION, ROOT, SUM_ANSWER, OpenAI, soon

# Most start a server; those marked `smoke` stand for the others in every run.
pytestmark = pytest.mark.host
ANN, BEN = "ann-0123456789abcdef", "ben-0123456789abcdef"
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
"""The protocol without a handshake, and with one."""


@dataclass
class Served:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    url: str
    log: Path

    @property
    def base(self) -> str:
        return self.url.removesuffix("/mcp")


@contextmanager
def serving(folder: Path, *options: str, tokens: str = f"{ANN} {BEN}") -> Iterator[Served]:
    """Start `code-chains mcp --http`, and stop it by its process if the test has not."""
    command = [sys.executable, "-m", "code_chains", "mcp", "--http", "--port", "0", *options]
    log = folder / "stderr"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            command, cwd=ROOT, stderr=stderr, text=True, env={**os.environ, "CODE_CHAINS_MCP_TOKEN": tokens}
        )
    try:
        until = time.monotonic() + 60
        while not (found := re.search(r"http://\S+/mcp", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield Served(process, found[0], log)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("mcp"), "--seconds", "60") as server:
        yield server


@asynccontextmanager
async def connected(
    server: Served, token: str = ANN, mode: Any = "auto", **headers: str
) -> AsyncIterator[Client]:
    """Connect the protocol's own client."""
    async with (
        create_mcp_http_client(headers={"Authorization": f"Bearer {token}", **headers}) as http,
        Client(streamable_http_client(server.url, http_client=http), mode=mode) as client,
    ):
        yield client


async def run(client: Client, code: str, **arguments: Any) -> CallToolResult:
    return await client.call_tool("run_python", {"code": code, **arguments})


def text(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


def facts(result: CallToolResult) -> dict[str, Any]:
    assert result.structured_content is not None
    return dict(result.structured_content)


# -- results -------------------------------------------------------------------------------------------------------------


@pytest.mark.host
@ERAS
async def test_structured_content_has_the_facts_of_the_text(served: Served, mode: str) -> None:
    async with connected(served, mode=mode) as client:
        result = await run(client, "print('six'); 6 * 7")
        failed = await run(client, "row = {'price': 1}\nrow['prize']")
    assert facts(result)["output"] == "six\n42"
    assert facts(result)["output"] in text(result)
    assert (facts(result)["status"], result.is_error) == ("ok", False)
    assert (facts(failed)["error"], facts(failed)["status"], failed.is_error) == (text(failed), "error", True)


@ERAS
async def test_structured_content_has_the_schema_that_the_tool_declares(served: Served, mode: str) -> None:
    async with connected(served, mode=mode) as client:
        (run_python,) = (await client.list_tools()).tools
        result = await run(client, "open('a.txt', 'w').write('x')")
    assert run_python.output_schema is not None
    assert set(facts(result)) == set(run_python.output_schema["properties"])
    assert set(facts(result)["artifacts"][0]) == set(
        run_python.output_schema["$defs"]["ArtifactResource"]["properties"]
    )


async def test_a_large_result_arrives_and_is_shortened(served: Served) -> None:
    async with connected(served) as client:
        result = await run(
            client, "open('a.bin', 'wb').write(bytes(9_000_000))\nprint('x' * 900_000, 'the end')"
        )
        (artifact,) = facts(result)["artifacts"]
        read = (await client.read_resource(artifact["uri"])).contents[0]
    assert "the end" in facts(result)["output"]
    assert len(facts(result)["output"]) < 100_000
    assert len(read.blob) > 9_000_000  # type: ignore[union-attr]


@pytest.mark.host
async def test_a_large_file_is_accepted(served: Served) -> None:
    async with connected(served) as client:
        result = await run(client, "print(len(open('a.txt').read()))", files={"a.txt": "\n" * 9_000_000})
    assert facts(result)["output"] == "9000000"


@pytest.mark.rows(1)
@pytest.mark.host
@ERAS
async def test_a_question_is_answered_with_progress(openai_server: OpenAI, tmp_path: Path, mode: str) -> None:
    stages: list[str] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        stages.append(message or "")

    with serving(tmp_path, "--model", "test", "--base-url", openai_server.base_url) as server:
        async with connected(server, mode=mode) as client:
            arguments = {"query": QUESTION}
            result = await client.call_tool("answer_with_code", arguments, progress_callback=progress)
    assert facts(result)["answer"] == SUM_ANSWER
    assert text(result).startswith(SUM_ANSWER)
    assert f"Verdict: {facts(result)['verdict']}. {facts(result)['reason']}" in text(result)
    assert "Writing a program" in stages


# -- who may use it ------------------------------------------------------------------------------------------------------

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def post(server: Served, *, token: str | None = ANN, path: str = "/mcp", **headers: str) -> httpx.Response:
    sent = {"accept": "application/json, text/event-stream", **headers}
    if token is not None:
        sent["authorization"] = f"Bearer {token}"
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "a", "version": "1"},
        },
    }
    return httpx.post(f"{server.base}{path}", json=body, headers=sent, timeout=20)


@pytest.mark.smoke
def test_a_request_with_the_token_is_answered(served: Served) -> None:
    assert post(served).status_code == 200


@pytest.mark.rows(1)
@pytest.mark.host
@pytest.mark.parametrize("token", [None, "wrong", ANN[:-1], f"{ANN}x", ANN.upper(), f"{ANN} {BEN}"])
def test_another_token_is_refused(served: Served, token: str | None) -> None:
    response = post(served, token=token)
    assert (response.status_code, response.headers["www-authenticate"][:6]) == (401, "Bearer")


@pytest.mark.host
def test_a_token_in_the_address_is_refused(served: Served) -> None:
    assert post(served, token=None, path=f"/mcp?token={ANN}&access_token={ANN}").status_code == 401


@ERAS
async def test_the_client_cannot_connect_without_the_token(served: Served, mode: str) -> None:
    with pytest.RaisesGroup(MCPError, flatten_subgroups=True):
        async with connected(served, token="wrong-0123456789abcdef", mode=mode):
            pass


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_every_method_needs_the_token(served: Served, method: str) -> None:
    assert httpx.request(method, served.url).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example:{port}", "localhost:1"]
)
def test_a_foreign_host_is_refused(served: Served, host: str) -> None:
    port = served.base.rpartition(":")[2]
    assert post(served, host=host.format(port=port)).status_code == 421


@pytest.mark.rows(1)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_a_foreign_origin_is_refused(served: Served, origin: str) -> None:
    assert post(served, origin=origin).status_code == 403


@pytest.mark.host
def test_names_and_the_origin_of_this_machine_are_allowed(served: Served) -> None:
    port = served.base.rpartition(":")[2]
    host = f"localhost:{port}"
    assert post(served, host=host, origin=f"http://{host}").status_code == 200


def test_a_large_body_of_a_stranger_is_not_read(served: Served) -> None:
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as stranger:
        head = f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 100000000\r\n\r\n"
        stranger.sendall(head.encode())
        assert b" 401 " in stranger.recv(1000)


@pytest.mark.host
def test_a_body_of_too_many_items_is_refused_before_it_is_parsed(served: Served) -> None:
    items = ",".join(f'"f{number}":1' for number in range(30_000))
    body = f'{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"run_python","arguments":{{{items}}}}}}}'
    sent = {
        "Authorization": f"Bearer {ANN}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    for content in (body, f'{{"a":"\u2200",{body[1:]}'.encode("utf-16-le")):
        reply = httpx.post(f"{served.base}/mcp", content=content, headers=sent, timeout=20)
        assert (reply.status_code, "Parse error" in reply.text) == (400, True)
    assert post(served).status_code == 200


async def test_neither_token_nor_refusals_are_logged(served: Served) -> None:
    async with connected(served) as client:
        await run(client, "print(1)")
        await run(client, "1 / 0", session_id="")
    post(served, token=f"{ANN}x")
    assert (ANN in served.log.read_text(), "401" in served.log.read_text()) == (False, False)


async def test_the_record_of_a_token_does_not_show_it() -> None:
    verifier = TokenVerifier([ANN])
    granted = await verifier.verify_token(ANN)
    assert granted is not None
    assert ANN not in f"{verifier!r} {vars(verifier)} {granted!r}"


@pytest.mark.parametrize(
    "token", ["", "short", "has a space in it", "ümläute-0123456789", "x" * 15, "line\nbreak-0123456789"]
)
def test_a_token_that_no_header_can_have_is_refused_unshown(token: str) -> None:
    with pytest.raises(ConfigurationError, match="at least 16") as caught:
        TokenVerifier([ANN, token])
    assert not token or token not in str(caught.value)


def test_the_documented_configuration_connects(served: Served) -> None:
    page = (ROOT / "docs" / "apps.md").read_text()
    (shown,) = [block for block in re.findall(r"```json\n(.*?)```", page, re.DOTALL) if '"http"' in block]
    config = json.loads(shown)["mcpServers"]["code_chains"]
    address = urlsplit(config["url"])
    (name, value), *_ = config["headers"].items()
    headers = {name.lower(): value.replace("YOUR-TOKEN", ANN)}
    assert address.hostname == "127.0.0.1"
    assert post(served, token=None, path=address.path, **headers).status_code == 200


# -- clients -------------------------------------------------------------------------------------------------------------

KEEP = "kept = {!r}\nopen('a.txt', 'w').write(kept)"
SHOW = "print(globals().get('kept'))"


@pytest.mark.rows(1)
@pytest.mark.host
@ERAS
@pytest.mark.kernel_sandbox
async def test_clients_share_no_session_and_no_artifact(served: Served, mode: str) -> None:
    async with connected(served, ANN, mode) as ann, connected(served, BEN, mode) as ben:
        made = await run(ann, KEEP.format("Ann's"), session_id="shared")
        await run(ben, KEEP.format("Ben's"), session_id="shared")
        seen = [facts(await run(client, SHOW, session_id="shared"))["output"] for client in (ann, ben)]
        (artifact,) = facts(made)["artifacts"]
        listed = [resource.uri for resource in (await ben.list_resources()).resources]
        with pytest.raises(MCPError, match="There is no"):
            await ben.read_resource(artifact["uri"])
        assert (await ann.read_resource(artifact["uri"])).contents
    assert (seen, artifact["uri"] in listed) == (["Ann's", "Ben's"], False)


@pytest.mark.kernel_sandbox
async def test_clients_with_a_handshake_share_nothing_under_the_same_token(served: Served) -> None:
    async with connected(served, mode="legacy") as one, connected(served, mode="legacy") as other:
        await run(one, KEEP.format("mine"), session_id="same")
        assert facts(await run(other, SHOW, session_id="same"))["output"] == "None"
        assert (await other.list_resources()).resources == []


@pytest.mark.kernel_sandbox
async def test_a_token_finds_its_session_again(served: Served) -> None:
    async with connected(served) as client:
        await run(client, KEEP.format("still there"), session_id="again")
    async with connected(served) as client:
        assert facts(await run(client, SHOW, session_id="again"))["output"] == "still there"


def test_a_client_cannot_use_the_handshake_of_another(served: Served) -> None:
    session = post(served).headers["mcp-session-id"]
    headers = {"accept": "application/json, text/event-stream", "mcp-session-id": session}
    asked = [
        httpx.post(served.url, json=PING, headers={"authorization": f"Bearer {token}", **headers})
        for token in (ANN, BEN)
    ]
    assert [response.status_code for response in asked] == [200, 404]


@pytest.mark.host
async def test_clients_run_programs_at_once(served: Served) -> None:
    async with connected(served, ANN) as ann, connected(served, BEN, "legacy") as ben:
        start = time.monotonic()
        await asyncio.gather(*(run(client, "import time; time.sleep(3)") for client in (ann, ben)))
    assert time.monotonic() - start < 5.8


@pytest.mark.host
@pytest.mark.kernel_sandbox
async def test_many_programs_of_one_client_leave_room_for_another(served: Served) -> None:
    async with connected(served, ANN) as ann, connected(served, BEN) as ben:
        busy = [asyncio.create_task(run(ann, "import time; time.sleep(50)")) for _ in range(8)]
        await asyncio.sleep(2)
        await run(ben, "1")
        assert not any(task.done() for task in busy)
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


@pytest.mark.host
@ERAS
@pytest.mark.kernel_sandbox
async def test_a_program_ends_when_its_client_disconnects(served: Served, mode: str) -> None:
    """Its session is free again: it would be busy for a minute."""
    async with connected(served, mode=mode) as client:
        await run(client, "kept = 'before'", session_id=f"left-{mode}")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run(client, "import time; time.sleep(50)", session_id=f"left-{mode}"), 1.5)
        start = time.monotonic()
        assert facts(await run(client, SHOW, session_id=f"left-{mode}"))["output"] == "before"
    assert time.monotonic() - start < 10


def sleepers(process: int) -> int:
    """Return how many of the processes below another one sleep as `MANY` has them do."""
    found, pending = 0, [process]
    while pending:
        folder = Path(f"/proc/{pending.pop()}")
        with contextlib.suppress(OSError):  # It may have ended meanwhile.
            found += folder.joinpath("cmdline").read_bytes().endswith(b"time.sleep(60)\0")
            for task in folder.glob("task/*/children"):
                pending += map(int, task.read_text().split())
    return found


MANY = """
import subprocess, sys, time
for _ in range(6):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
time.sleep(60)
"""
DOOMED = """
import asyncio, sys
from tests.apps.mcp.test_mcp_http import MANY, Served, connected, run
async def main():
    async with connected(Served(None, sys.argv[1], None), mode=sys.argv[2]) as client:
        await run(client, MANY)
asyncio.run(main())
"""


async def run_once(server: Served) -> None:
    async with connected(server) as client:
        await run(client, "1")


@pytest.mark.host
@ERAS
@pytest.mark.kernel_sandbox
def test_a_client_that_is_killed_leaves_nothing_running(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path, "--seconds", "60") as server:
        asyncio.run(run_once(server))
        with subprocess.Popen([sys.executable, "-c", DOOMED, server.url, mode], cwd=ROOT) as client:
            is_running = soon(lambda: sleepers(server.process.pid) == 6, 20)
            client.kill()
        assert is_running
        assert soon(lambda: sleepers(server.process.pid) == 0, 10)


def registry(released: list[str]) -> ClientRegistry:
    clients = ClientRegistry(lambda client: released.append(client.id))
    clients._clients |= {name: ServedClient(name) for name in ("session a", "token 0")}
    return clients


def request(method: str) -> Request:
    return Request({"type": "http", "method": method, "headers": [(b"mcp-session-id", b"a")]})


@pytest.mark.parametrize(("status", "released"), [(200, ["session a"]), (401, [])])
async def test_a_session_of_the_protocol_that_is_deleted_is_released(
    status: int, released: list[str]
) -> None:
    found: list[str] = []
    async with registry(found).connection(request("DELETE")) as connection:
        connection.status = status
    assert found == released


async def test_only_idle_sessions_of_the_protocol_are_released(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []
    clients = registry(released)
    monkeypatch.setattr(mcp_clients, "IDLE_TIMEOUT_S", -1.0)
    async with clients.connection(request("GET")):
        await clients.release_gone()
        assert released == []
    assert released == ["session a"]


def kept_files(folder: Path) -> int:
    return len(list(folder.glob("code_chains-process-*/mcp-*/*/a.txt")))


@pytest.mark.host
@pytest.mark.kernel_sandbox
async def test_what_a_client_leaves_behind_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with serving(tmp_path) as server:
        async with connected(server, mode="legacy") as client:
            await run(client, "1", session_id="s", files={"a.txt": "x"})
            assert kept_files(tmp_path) == 1
        assert await asyncio.to_thread(soon, lambda: kept_files(tmp_path) == 0)


@pytest.mark.parametrize("name", ["", " ", "x" * 501])
def test_an_invalid_name_of_a_session_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        ServedClient("token 0").session_name(name)


# -- start and end -------------------------------------------------------------------------------------------------------


def command(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "code_chains", "mcp", *options],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(*options: str) -> Result:
    """Run a command that ends before it serves; that takes no process of its own."""
    return CliRunner().invoke(cli, ["mcp", *options])


@pytest.mark.host
def test_without_a_token_a_new_one_is_printed_once(tmp_path: Path) -> None:
    with serving(tmp_path, tokens="") as server:
        (token,) = re.findall(r"Bearer (\S+)", server.log.read_text())
        assert post(server, token=token).status_code == 200
        assert post(server).status_code == 401
        assert server.log.read_text().count(token) == 1


def test_a_token_of_the_environment_is_not_printed(served: Served) -> None:
    assert served.log.read_text().startswith(f"Serving at {served.url}: run_python")
    assert "Bearer" not in served.log.read_text()


@pytest.mark.host
def test_a_port_in_use_is_an_error_in_one_line(served: Served) -> None:
    port = served.base.rpartition(":")[2]
    done = command("--http", "--port", port)
    assert (done.returncode, "in use. Pass another port" in done.stderr, len(done.stderr.splitlines())) == (
        2,
        True,
        1,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    done = refused("--http", "--host", host)
    assert (done.exit_code, "Pass a --token" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "options", [["--port", "1"], ["--host", "::1"], ["--token", ANN], ["--allowed-host", "a"]]
)
def test_options_of_http_are_refused_without_it(options: list[str]) -> None:
    done = refused(*options)
    assert (done.exit_code, f"{options[0]} needs --http" in done.stderr) == (2, True)


@pytest.mark.host
def test_the_variable_of_the_token_does_not_concern_standard_input() -> None:
    done = command(CODE_CHAINS_MCP_TOKEN="short")
    assert (done.returncode, "Serving on standard input" in done.stderr) == (0, True)


@pytest.mark.smoke
def test_a_short_token_is_refused_unshown() -> None:
    done = refused("--http", "--token", "pass-word-15")
    assert (done.exit_code, "pass-word-15" in done.stderr, "at least 16" in done.stderr) == (2, False, True)


@pytest.mark.smoke
def test_a_server_in_the_same_process_refuses_a_public_address_without_a_token() -> None:
    scripted, executor = ScriptedModel(lambda _: "1"), ScriptedExecutor(lambda _: "1")
    with (
        create_code_chain(scripted, executor=executor) as chain,
        pytest.raises(ConfigurationError, match="token"),
    ):
        serve_http(chain, host="0.0.0.0")


@pytest.mark.smoke
def test_names_of_a_public_server_are_those_of_the_machine_and_what_is_allowed() -> None:
    settings = transport_security("0.0.0.0", 8081, ["mcp.example.org"])
    assert f"{socket.gethostname()}:8081" in settings.allowed_hosts
    assert {"mcp.example.org", "mcp.example.org:*", "127.0.0.1:8081"} <= set(settings.allowed_hosts)
    assert "https://mcp.example.org" in settings.allowed_origins


@pytest.mark.host
@ERAS
async def test_on_sigterm_a_running_program_is_answered_first(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path) as server:
        async with connected(server, mode=mode) as client:
            running = asyncio.ensure_future(run(client, "import time; time.sleep(2); print('slept')"))
            await asyncio.sleep(1)
            server.process.send_signal(signal.SIGTERM)
            assert facts(await running)["output"] == "slept"
            assert await asyncio.to_thread(server.process.wait, 10) == 143
        assert len(server.log.read_text().splitlines()) == 1


@pytest.mark.host
@ERAS
async def test_an_interrupt_ends_a_running_program(tmp_path: Path, mode: str) -> None:
    async def ask() -> None:
        async with connected(server, mode=mode) as client:
            await run(client, "import time; time.sleep(50)")

    with serving(tmp_path, "--seconds", "60") as server:
        asking = asyncio.create_task(ask())
        await asyncio.sleep(2)
        server.process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(server.process.wait, 10) == 130
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.host
def test_the_folder_of_the_files_is_deleted_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with serving(tmp_path) as server:
        assert len(list(folder.glob("code_chains-process-*/mcp-*"))) == 1
        server.process.send_signal(signal.SIGINT)
        server.process.wait(15)
    assert list(folder.glob("code_chains-process-*/mcp-*")) == []


async def test_each_token_has_its_share_of_sessions() -> None:
    clients, count = ClientRegistry(lambda client: None, share=2), itertools.count()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        new = {} if "mcp-session-id" in Request(scope).headers else {"mcp-session-id": str(next(count))}
        await PlainTextResponse("", headers=new)(scope, receive, send)

    transport = httpx.ASGITransport(ConnectionWatch(app, clients))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

        async def statuses(token: str, requests: int, **headers: str) -> list[int]:
            headers["authorization"] = f"Bearer {token}"
            return [(await client.post("/", headers=headers)).status_code for _ in range(requests)]

        assert await statuses("ann", 3) == [200, 200, 429]
        shouted = await client.post("/", headers={"authorization": "BEARER  ann"})
        assert shouted.status_code == 429
        assert await statuses("bob", 1) == [200]
        assert await statuses("ann", 1, **{"mcp-session-id": "0"}) == [200]
        await client.delete("/", headers={"mcp-session-id": "0"})
        assert await statuses("ann", 2) == [200, 429]
