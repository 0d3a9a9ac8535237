"""Headers that are added on the way reach the service, and no program."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import ConfigurationError
from code_chains.executors import Destination, SandboxExecutor
from code_chains.executors.sandbox.http_forwarding import tls_context, with_headers
from code_chains.storage.fingerprint import fingerprint

SECRET = "Bearer s3cret"
GET = (
    "import urllib.request, urllib.error\n"
    "def get(path='/', **headers):\n"
    "    request = urllib.request.Request('http://localhost' + path, headers=headers)\n"
    "    try:\n        return urllib.request.urlopen(request, timeout=5).read().decode()\n"
    "    except urllib.error.HTTPError as error:\n        return f'{error.code} {error.read().decode()}'\n"
)


@dataclass
class Service:
    port: int
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


def certificate(folder: Path) -> Path:
    """Write a certificate for localhost, with its key, that signs itself."""
    x509 = pytest.importorskip("cryptography.x509")
    hashes, serialization, ec = (
        pytest.importorskip(f"cryptography.hazmat.primitives.{name}")
        for name in ("hashes", "serialization", "asymmetric.ec")
    )
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "localhost.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """An HTTPS service that says what was asked for, whose certificate this process trusts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/slow":  # Such requests arrive while another test runs, whose own are counted.
                time.sleep(3)
            else:
                found.requests.append((self.path, dict(self.headers.items()), body))
            self.send_response(200)
            if self.path == "/broken":
                self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(f"asked for {self.path}".encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    path = certificate(tmp_path_factory.mktemp("service"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    found = Service(server.server_port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        tls_context.cache_clear()
        yield found
    tls_context.cache_clear()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def executor(service: Service) -> Iterator[SandboxExecutor]:
    place = Destination("localhost", service.port, {"Authorization": SECRET})
    with SandboxExecutor(network=[place], preload=()) as executor:
        yield executor


def test_a_request_arrives_with_the_header_and_the_program_never_sees_it(
    executor: SandboxExecutor, service: Service
) -> None:
    look = "import os, sys\nprint(get('/v1?q=1', Accept='text/plain'), dict(os.environ), open('/etc/hosts').read())"
    output = executor.run(GET + look).output
    path, headers, _ = service.requests[-1]
    assert (path, headers["Authorization"], headers["Accept"]) == ("/v1?q=1", SECRET, "text/plain")
    assert output.startswith("asked for /v1?q=1")
    assert "s3cret" not in output + repr(executor.network) + executor.guidance + fingerprint(executor.network)
    assert "http://localhost" in executor.guidance


def test_a_program_cannot_choose_the_header_or_the_host(executor: SandboxExecutor, service: Service) -> None:
    mine = "get('/mine', authorization='Bearer mine', Host='elsewhere.example')"
    assert executor.run(GET + mine).result == "'asked for /mine'"
    _, headers, _ = service.requests[-1]
    assert [headers["Authorization"], headers["Host"]] == [SECRET, "localhost"]


def test_a_body_is_passed_on(executor: SandboxExecutor, service: Service) -> None:
    executor.run(
        "import urllib.request\nurllib.request.urlopen('http://localhost/', data=b'x' * 200_000, timeout=5)"
    )
    assert service.requests[-1][2] == b"x" * 200_000


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("b'nonsense\\r\\n\\r\\n'", b"400"),
        ("b'CONNECT elsewhere.example:443 HTTP/1.1\\r\\n\\r\\n'", b"400"),
        ("b'TRACE / HTTP/1.1\\r\\n\\r\\n'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nContent-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nContent-Length: 5\\r\\nContent-Length: 6\\r\\n\\r\\nabcdef'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nContent-Length: +5\\r\\n\\r\\nabcdef'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nA: b\\x0bc\\r\\n\\r\\n'", b"400"),
        ("b'GET http://elsewhere.example/ HTTP/1.1\\r\\n\\r\\n'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nA: b\\r\\n folded: c\\r\\n\\r\\n'", b"400"),
        ("b'GET / HTTP/1.1\\r\\nA: ' + b'b' * 100_000 + b'\\r\\n\\r\\n'", b"431"),
    ],
)
def test_what_is_no_request_goes_nowhere(
    executor: SandboxExecutor, service: Service, sent: str, status: bytes
) -> None:
    before = len(service.requests)
    code = (
        "import socket\nplace = socket.create_connection(('localhost', 80), timeout=5)\n"
        f"place.sendall({sent})\nplace.recv(1000)"
    )
    assert status.decode() in str(executor.run(code).result)
    assert len(service.requests) == before


def test_a_certificate_that_is_not_trusted_gets_no_header(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(service.requests)
    monkeypatch.delenv("SSL_CERT_FILE")
    tls_context.cache_clear()
    place = Destination("localhost", service.port, {"Authorization": SECRET})
    with SandboxExecutor(network=[place], preload=()) as executor:
        assert "502 localhost cannot be reached" in executor.run(GET + "get()").output
    tls_context.cache_clear()
    assert len(service.requests) == before


@pytest.mark.parametrize(
    "headers",
    [
        {"A b": "c"},
        {"A": "b\r\nC: d"},
        {"A": ""},
        {"A": 5},
        {"": "b"},
        {"Host": "b"},
        {"A-b": "c", "a_B": "d"},
        ["A: b"],
        None,
    ],
)
def test_a_header_that_is_none_is_refused_without_showing_its_value(headers: Any) -> None:
    with pytest.raises(ConfigurationError, match="headers") as refused:
        Destination("api.example.org", headers=headers)
    assert "C: d" not in str(refused.value)


def test_one_request_is_all_that_a_connection_is_for() -> None:
    head = b"GET / HTTP/1.1\r\nConnection: keep-alive\r\nUpgrade: h2c\r\nx_key: mine\r\n\r\n"
    request = with_headers(head, "a.org", {"X-Key": "v"})
    assert request == (b"GET / HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\nX-Key: v\r\n\r\n", 0)


@pytest.mark.parametrize(
    "name", ["Content-Length", "content_length", "Content.Length", "CONTENT-LENGTH", "Content_length"]
)
def test_a_length_is_stated_as_it_was_counted(name: str) -> None:
    request = with_headers(f"POST / HTTP/1.1\r\n{name}: 7\r\nA: b\r\n\r\n".encode(), "a.org", {})
    assert request == (
        b"POST / HTTP/1.1\r\nHost: a.org\r\nConnection: close\r\nContent-Length: 7\r\nA: b\r\n\r\n",
        7,
    )


@pytest.mark.parametrize(
    "second",
    [
        "Content_Length: 7",
        "content.length: 7",
        "Content-Length: 7",
        "Transfer_Encoding: x",
        "transfer~encoding: x",
    ],
)
def test_two_names_of_a_length_are_refused(second: str) -> None:
    head = f"POST / HTTP/1.1\r\nContent-Length: 7\r\n{second}\r\n\r\n".encode()
    assert with_headers(head, "a.org", {}) == "Send the body as a whole, with one Content-Length."


def test_what_follows_a_request_goes_nowhere(executor: SandboxExecutor, service: Service) -> None:
    code = (
        "import socket\nplace = socket.create_connection(('localhost', 80), timeout=5)\n"
        "place.sendall(b'POST /first HTTP/1.1\\r\\nContent-Length: 2\\r\\n\\r\\nab'\n"
        "              b'GET /second HTTP/1.1\\r\\nHost: elsewhere.example\\r\\n\\r\\n')\n"
        "while part := place.recv(1000): print(part.decode())"
    )
    assert "asked for /first" in executor.run(code).output
    assert [(path, body) for path, _, body in service.requests][-1] == ("/first", b"ab")


def test_a_response_that_breaks_is_not_completed(executor: SandboxExecutor) -> None:
    output = executor.run(GET.replace("urllib.error.HTTPError", "OSError") + "get('/broken')").result
    assert "502" not in str(output)


def test_programs_that_leave_make_room(executor: SandboxExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("code_chains.executors.sandbox.http_forwarding.GONE_TIMEOUT_S", 0.1)
    code = (
        "import socket\nfor _ in range(70):\n    place = socket.create_connection(('localhost', 80), timeout=5)\n"
        "    place.sendall(b'GET /slow HTTP/1.1\\r\\n\\r\\n')\n    place.close()\n"
    )
    assert executor.run(f"{GET}{code}get('/after')").result == "'asked for /after'"
