"""A double of Daytona on loopback: its REST API, and the toolbox of a sandbox."""

from __future__ import annotations

import secrets
import threading
from typing import Any

from werkzeug import Request, Response

from tests.support.cloud_servers import KEY, Service, as_json

SESSION = """{{ . {folder}/command; }} > {folder}/out 2> {folder}/err; echo $? > {folder}/code"""
"""What the shell of a session does with a command: one that replaces or ends the shell leaves no exit code."""


class Daytona(Service):
    """Daytona, whose sessions run commands in a shell of their own."""

    def answer(self, request: Request) -> Any:
        """Return the answer to a request of the REST API or to the toolbox."""
        first, *rest = request.path.strip("/").split("/")
        if first == "socket.io":
            return Response("", 404)
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return as_json({"message": "no such key", "statusCode": 401}, 401)
        if first == "sandbox":
            return self._manage(request, rest)
        if not self.live.intersection(rest[:1]):
            return as_json({"message": "sandbox not found", "statusCode": 404}, 404)
        return self._files(request) if rest[1] == "files" else self._process(request, rest[3:])

    def _manage(self, request: Request, rest: list[str]) -> Response:
        if request.method == "DELETE":
            self.live.discard(rest[0])
            return as_json(self._sandbox(rest[0], "destroyed"))
        return as_json(self._sandbox(self.create(request.get_json()), "started"))

    def _sandbox(self, name: str, state: str) -> dict[str, Any]:
        texts = {"id": name, "name": name, "organizationId": "o", "user": "u", "target": "us", "state": state}
        numbers = dict.fromkeys(("cpu", "gpu", "memory", "disk"), 1)
        flags = {"public": False, "networkBlockAll": True, "kvm": False}
        url = f"{self.url}/toolbox"
        return {**texts, **numbers, **flags, "env": {}, "labels": {}, "toolboxProxyUrl": url}

    def _process(self, request: Request, rest: list[str]) -> Response:
        """Answer about sessions; the id of a command is its folder in the sandbox."""
        if len(rest) < 2:
            return Response("", 201 if request.method == "POST" else 204)
        if rest[1] == "exec":
            folder = f"/tmp/session{secrets.token_hex(4)}"
            self.backend.upload_files([(f"{folder}/command", request.get_json()["command"].encode())])
            shell = SESSION.format(folder=folder)
            threading.Thread(target=self.backend.execute, args=(f"sh <<'END'\n{shell}\nEND",)).start()
            return as_json({"cmdId": folder.rpartition("/")[2]}, 202)
        folder = f"/tmp/{rest[2]}"
        paths = [f"{folder}/{name}" for name in ("code", "out", "err")]
        code, out, err = (file.content for file in self.backend.download_files(paths))
        if len(rest) == 3:
            return as_json({"id": rest[2], "command": "", **({"exitCode": int(code)} if code else {})})
        self.backend.execute(f"rm -rf {folder}")
        return as_json({"output": "", "stdout": (out or b"").decode(), "stderr": (err or b"").decode()})

    def _files(self, request: Request) -> Response:
        if request.path.endswith("bulk-upload"):
            files = [
                (request.form[name.replace(".file", ".path")], file.read())
                for name, file in request.files.items()
            ]
            errors = [written.error for written in self.backend.upload_files(files) if written.error]
            return as_json({"errors": errors}, 400 if errors else 200)
        body = b""
        for path in request.get_json()["paths"]:
            (found,) = self.backend.download_files([path])
            kind = "file" if found.content is not None else "error"
            head = f'--edge\r\nContent-Disposition: form-data; name="{kind}"; filename="{path}"\r\n\r\n'
            body += head.encode() + (found.content or str(found.error).encode()) + b"\r\n"
        return Response(body + b"--edge--\r\n", content_type="multipart/form-data; boundary=edge")
