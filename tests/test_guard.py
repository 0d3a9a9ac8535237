"""Who may speak to the page, without a browser."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit
from urllib.request import url2pathname

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from code_chains.page.guard import Guard, opening

TOKEN = "correct-horse-battery-staple"
HERE = "http://127.0.0.1:8080"


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{request.state.visitor} {len(await request.body())}")


def client(*, token: str | None = None, most: int = 1000, base_url: str = HERE) -> httpx.AsyncClient:
    app = Guard(Starlette(routes=[Route("/", echo, methods=["GET", "POST"])]), port=8080, token=token, most=most)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=base_url)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.0.0.2"])
async def test_a_loopback_name_is_let_in(host: str) -> None:
    async with client() as browser:
        assert (await browser.get("/", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.5", "", "[", "0.0.0.0"])
async def test_another_name_is_refused(host: str) -> None:
    async with client() as browser:
        assert (await browser.get("/", headers={"host": host})).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://[", ""])
async def test_another_origin_is_refused(origin: str) -> None:
    async with client() as browser:
        assert (await browser.post("/", headers={"origin": origin})).status_code == 403
        assert (await browser.post("/", headers={"origin": HERE})).status_code == 200


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/?token=", "/no/such/page"])
async def test_without_the_token_nothing_is_served(path: str) -> None:
    async with client(token=TOKEN, base_url="http://192.168.1.5:8080") as browser:
        assert (await browser.get(path)).status_code == 401


async def test_the_token_is_kept_in_a_cookie_and_leaves_the_address() -> None:
    async with client(token=TOKEN, base_url="http://192.168.1.5:8080") as browser:
        first = await browser.get(f"/?token={TOKEN}&a=b")
        assert (first.status_code, first.headers["location"]) == (303, "/?a=b")
        assert all(word in first.headers["set-cookie"] for word in ("HttpOnly", "SameSite=Lax"))
        assert (await browser.get("/")).status_code == 200


@pytest.mark.parametrize("path", ["//evil.example/", "///evil.example", "/\\evil.example", "/%09/evil.example"])
async def test_with_the_token_one_is_only_sent_to_this_address(path: str) -> None:
    async with client(token=TOKEN, base_url="http://192.168.1.5:8080") as browser:
        sent = await browser.get(f"http://192.168.1.5:8080{path}?token={TOKEN}")
        assert urljoin("http://192.168.1.5:8080/", sent.headers["location"]).startswith("http://192.168.1.5:8080/")


async def test_a_visitor_keeps_a_name_and_another_gets_another() -> None:
    async with client() as ann, client() as bob:
        names = [(await browser.get("/")).text for browser in (ann, ann, bob)]
    assert names[0] == names[1] != names[2]


async def test_a_name_that_is_none_is_replaced() -> None:
    async with client() as browser:
        browser.cookies.set("code_chains_visitor_8080", "../../etc")
        assert "etc" not in (await browser.get("/")).text


async def body(*, size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 100):
        yield b"x" * 100


async def test_too_large_a_request_is_refused() -> None:
    async with client() as browser:
        assert (await browser.post("/", content=b"x" * 1001)).status_code == 413
        assert (await browser.post("/", content=body(size=900))).text.endswith(" 900")


async def test_a_request_that_hides_its_size_is_cut() -> None:
    async with client() as browser:
        assert not (await browser.post("/", content=body(size=5000))).is_success


async def test_nothing_may_be_loaded_from_elsewhere() -> None:
    async with client() as browser:
        policy = (await browser.get("/")).headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy


async def test_no_name_that_is_linked_to_is_looked_up_before_it_is_followed() -> None:
    async with client() as browser:
        for answer in (await browser.get("/"), await browser.get("/", headers={"host": "evil.example"})):
            assert answer.headers["x-dns-prefetch-control"] == "off"


def test_a_browser_is_shown_the_token_in_a_file_that_only_its_user_may_read() -> None:
    address = f"{HERE}/?token={TOKEN}"
    with opening(address) as shown:
        path = Path(url2pathname(urlsplit(shown).path))
        assert TOKEN not in shown
        assert address in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()
