"""A double of E2B on loopback: its REST API, and the daemon of a sandbox."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from werkzeug import Request, Response

from code_chains.executors.remote.protocol_sandbox import SandboxProtocol
from tests.support.cloud_servers import KEY, Service, as_json


class E2B(Service):
    """E2B, with the code for its protocol that its own client brings."""

    def __init__(self, backend: SandboxProtocol) -> None:
        super().__init__(backend)
        from e2b.envd.filesystem.filesystem_connect import FilesystemWSGIApplication
        from e2b.envd.process.process_connect import ProcessWSGIApplication

        self._calls = {
            "process.Process": ProcessWSGIApplication(_Process(backend)),  # type: ignore[arg-type,unused-ignore]
            "filesystem.Filesystem": FilesystemWSGIApplication(_Files(backend)),  # type: ignore[arg-type,unused-ignore]
        }
        self.extended = 0

    def answer(self, request: Request) -> Any:
        """Return the answer to a request of the REST API or to the daemon."""
        first, *rest = request.path.strip("/").split("/")
        if first in ("v2", "sandboxes"):
            if request.headers.get("X-API-Key") != KEY:
                return as_json({"code": 401, "message": "no such key"}, 401)
            return self._manage(request, rest)
        if not self.live:
            return as_json({"message": "The sandbox was not found", "code": 502}, 502)
        if first in self._calls:
            return self._calls[first]
        return self._transfer(request) if first == "files" else Response("", 204)

    def _manage(self, request: Request, rest: list[str]) -> Response:
        if request.path == "/v2/sandboxes":
            name = self.create(request.get_json())
            return as_json(
                {"templateID": "base", "sandboxID": name, "clientID": "c", "envdVersion": "0.6.5"}, 201
            )
        if rest[0] not in self.live:
            return as_json({"code": 404, "message": "not found"}, 404)
        if request.method == "DELETE":
            self.live.discard(rest[0])
        else:
            self.extended += 1
        return Response("", 204)

    def _transfer(self, request: Request) -> Response:
        path = request.args["path"]
        if request.method == "GET":
            (found,) = self.backend.download_files([path])
            if found.content is None:
                return as_json({"code": 404, "message": str(found.error)}, 404)
            return Response(found.content, content_type="application/octet-stream")
        (content,) = [file.read() for file in request.files.values()]
        (written,) = self.backend.upload_files([(path, content)])
        if written.error:
            return as_json({"code": 400, "message": written.error}, 400)
        return as_json([{"name": path.rpartition("/")[2], "path": path, "type": "file"}])


class _Process:
    """The calls of the daemon about processes."""

    def __init__(self, backend: SandboxProtocol) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return None  # Calls that no test makes.

    def start(self, request: Any, context: Any) -> Iterator[Any]:
        from e2b.envd.process.process_pb import ProcessEvent, StartResponse
        from protobuf import Oneof

        def event(kind: str, value: object) -> Any:
            return StartResponse(event=ProcessEvent(event=Oneof(kind, value)))

        yield event("start", ProcessEvent.StartEvent(pid=1))
        done = self._backend.execute(shlex.join([request.process.cmd, *request.process.args]))
        yield event("data", ProcessEvent.DataEvent(output=Oneof("stdout", done.output.encode())))
        yield event("end", ProcessEvent.EndEvent(exit_code=done.exit_code or 0, exited=True, status="exited"))


class _Files:
    """The calls of the daemon about files."""

    def __init__(self, backend: SandboxProtocol) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return None  # Calls that no test makes.

    def stat(self, request: Any, context: Any) -> Any:
        from connectrpc.code import Code
        from connectrpc.errors import ConnectError
        from e2b.envd.filesystem.filesystem_pb import EntryInfo, FileType, StatResponse

        found = self._backend.execute(f"stat -c %F {shlex.quote(request.path)}")
        if found.exit_code:
            raise ConnectError(Code.NOT_FOUND, "not found")
        kind = FileType.DIRECTORY if "directory" in found.output else FileType.FILE
        return StatResponse(
            entry=EntryInfo(name=request.path.rpartition("/")[2], path=request.path, type=kind)
        )
