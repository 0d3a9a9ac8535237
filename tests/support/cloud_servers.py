"""What the doubles of services share: a server on loopback, and a sandbox of ours behind it."""

from __future__ import annotations

import io
import json
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler, make_server

from code_chains.executors.remote.protocol_sandbox import SandboxProtocol

KEY = "key-of-a-test-5f0c"


class Service:
    """A service whose sandboxes are one of this machine, which all of them share.

    Attributes:
        live: What is there, by id.
        created: The bodies of all requests to create one.
        url: Where it listens.
    """

    def __init__(self, backend: SandboxProtocol) -> None:
        self.backend = backend
        self.live: set[str] = set()
        self.created: list[dict[str, Any]] = []
        self.url = ""

    def create(self, body: dict[str, Any]) -> str:
        """Remember a new sandbox, and return its id."""
        name = f"box{secrets.token_hex(6)}"
        self.created.append(body)
        self.live.add(name)
        return name

    def app(self, environ: dict[str, Any], start: Callable[..., Any]) -> Any:
        """Answer a request."""
        with Request(environ) as request:
            environ["wsgi.input"] = io.BytesIO(request.get_data(parse_form_data=True))
            return self.answer(request)(environ, start)

    def answer(self, request: Request) -> Any:
        """Return the answer, an application of WSGI."""
        raise NotImplementedError


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """Serve on a free port of loopback."""

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"  # For streams.

        def log(self, *_: object) -> None:
            pass

    server = make_server("127.0.0.1", 0, service.app, threaded=True, request_handler=Quiet)
    server.daemon_threads = True  # type: ignore[attr-defined]
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()


def as_json(value: object, status: int = 200) -> Response:
    """Return an answer of JSON."""
    return Response(json.dumps(value), status, content_type="application/json")
