"""Access control of the page, without a browser."""

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

from code_chains.apps.page.guard import Guard, redirect_file, secret_path

TOKEN = "correct-horse-battery-staple"
ORIGIN = "http://127.0.0.1:8080"


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{request.state.client_id} {len(await request.body())}")


def client(
    *,
    token: str | None = None,
    path: str | None = None,
    max_bytes: int = 1000,
    base_url: str = ORIGIN,
    allowed_hosts: tuple[str, ...] = (),
) -> httpx.AsyncClient:
    app = Guard(
        Starlette(routes=[Route("/", echo, methods=["GET", "POST"])]),
        port=8080,
        token=token,
        path=path,
        max_bytes=max_bytes,
        allowed_hosts=allowed_hosts,
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False), base_url=base_url
    )


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.0.0.2"])
async def test_a_loopback_name_is_allowed(host: str) -> None:
    async with client() as browser:
        assert (await browser.get("/", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "192.168.1.5", "", "[", "0.0.0.0"),
        *(
            "evil.example@127.0.0.1:8080",
            "127.0.0.1#.evil.example",
            "127.0.0.1/.evil.example",
            "127.0.0.1?:80",
        ),
        *("127.0.0.1:8080:80", " 127.0.0.1", "127.0.0.1:", "127.0.0.1\t"),
    ],
)
async def test_another_name_is_refused(host: str) -> None:
    async with client() as browser:
        assert (await browser.get("/", headers={"host": host})).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://[", ""])
async def test_another_origin_is_refused(origin: str) -> None:
    async with client() as browser:
        assert (await browser.post("/", headers={"origin": origin})).status_code == 403
        assert (await browser.post("/", headers={"origin": ORIGIN})).status_code == 200


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/?token=", "/no/such/page"])
async def test_without_the_token_nothing_is_served(path: str) -> None:
    async with client(token=TOKEN, base_url="http://192.168.1.5:8080") as browser:
        assert (await browser.get(path)).status_code == 401


async def exchange_token(browser: httpx.AsyncClient) -> str:
    """Return the path to which a request with the token is redirected."""
    response = await browser.get(f"/?token={TOKEN}")
    assert response.status_code == 303
    return str(response.headers["location"])


async def test_the_token_is_exchanged_for_a_path_with_a_cookie() -> None:
    async with client(token=TOKEN, base_url="http://192.168.1.5:8080") as browser:
        path = await exchange_token(browser)
        assert ("token" in path, (await browser.get(path)).status_code) == (False, 200)


@pytest.mark.parametrize(
    "path", ["//evil.example/", "///evil.example", "/\\evil.example", "/%09/evil.example"]
)
async def test_the_token_redirects_only_to_this_address(path: str) -> None:
    async with client(token=TOKEN, base_url="http://192.168.1.5:8080") as browser:
        response = await browser.get(f"http://192.168.1.5:8080{path}?token={TOKEN}")
        assert urljoin("http://192.168.1.5:8080/", response.headers["location"]).startswith(
            "http://192.168.1.5:8080/"
        )


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/x/", "/upload"])
async def test_a_server_on_another_port_receives_no_cookie_that_grants_access(path: str) -> None:
    async with client(token=TOKEN) as browser:
        await browser.get(await exchange_token(browser))
        # Cookies are shared between ports.
        theirs = browser.build_request("GET", f"http://127.0.0.1:9999{path}")
        ours = browser.build_request("GET", await exchange_token(browser))
    assert ("code_chains" in theirs.headers.get("cookie", ""), "code_chains" in ours.headers["cookie"]) == (
        False,
        True,
    )


async def test_neither_the_path_nor_the_cookie_alone_grants_access() -> None:
    async with client(token=TOKEN) as browser, client(token=TOKEN) as other:
        path = await exchange_token(browser)
        cookie = {"cookie": browser.build_request("GET", path).headers["cookie"]}
        browser.cookies.clear()
        attempts = [browser.get(path), browser.get("/", headers=cookie), browser.get("/x/", headers=cookie)]
        attempts += [other.get(path, headers=cookie), browser.get(path.rstrip("/"), headers=cookie)]
        assert {(await attempt).status_code for attempt in attempts} == {401}
        assert (await browser.get(path, headers=cookie)).status_code == 200


async def test_no_cookie_contains_the_token() -> None:
    async with client(token=TOKEN) as browser:
        path = await exchange_token(browser)
        await browser.get(path)
        for cookie in browser.cookies.jar:
            assert (TOKEN in str(cookie.value), cookie.path, cookie.has_nonstandard_attr("HttpOnly")) == (
                False,
                path,
                True,
            )


LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
FETCHES: dict[str, tuple[str, str, dict[str, str]]] = {
    "an image": ("GET", "/", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}),
    "a fetch": ("GET", "/", {"sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}),
    "a frame": ("GET", "/", {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}),
    "an object": ("GET", "/", {"sec-fetch-mode": "navigate", "sec-fetch-dest": "object"}),
    "a form": ("POST", "/", LINK),
    "a prefetched link": ("GET", "/", {**LINK, "sec-purpose": "prefetch;prerender"}),
    "a link to something else": ("GET", "/artifacts/a/1", LINK),
    "a script": ("GET", "/_nicegui/x.js", {"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}),
    "no mode": ("GET", "/", {}),
}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "new-kind-of-site", ""])
@pytest.mark.parametrize("kind", FETCHES)
async def test_a_page_of_another_origin_is_refused(site: str, kind: str) -> None:
    method, path, headers = FETCHES[kind]
    async with client() as browser:
        assert (
            await browser.request(method, path, headers={**headers, "sec-fetch-site": site})
        ).status_code == 403


@pytest.mark.parametrize("site", ["none", "same-origin", None])
@pytest.mark.parametrize("kind", FETCHES)
async def test_this_page_and_its_user_are_allowed(site: str | None, kind: str) -> None:
    method, path, headers = FETCHES[kind]
    if site is not None:
        headers = {**headers, "sec-fetch-site": site}
    async with client() as browser:
        assert (await browser.request(method, path, headers=headers)).status_code in (200, 404)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "same-origin"])
async def test_a_link_opens_the_page(site: str) -> None:
    headers = {**LINK, "sec-fetch-site": site}
    async with client() as browser, client(token=TOKEN) as guarded:
        assert (await browser.get("/", headers=headers)).status_code == 200
        path = await exchange_token(guarded)
        assert (await guarded.get(f"/?token={TOKEN}", headers=headers)).status_code == 303
        assert (await guarded.get(path, headers=headers)).status_code == 200


async def test_each_client_keeps_an_id_of_its_own() -> None:
    async with client() as ann, client() as bob:
        ids = [(await browser.get("/")).text for browser in (ann, ann, bob)]
    assert ids[0] == ids[1] != ids[2]


async def test_an_invalid_client_id_is_replaced() -> None:
    async with client() as browser:
        browser.cookies.set("code_chains_client_8080", "../../etc")
        assert "etc" not in (await browser.get("/")).text


async def body(*, size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 100):
        yield b"x" * 100


async def test_too_large_a_request_is_refused() -> None:
    async with client() as browser:
        assert (await browser.post("/", content=b"x" * 1001)).status_code == 413
        assert (await browser.post("/", content=body(size=900))).text.endswith(" 900")


async def test_a_request_without_a_length_is_limited() -> None:
    async with client() as browser:
        assert not (await browser.post("/", content=body(size=5000))).is_success


async def test_nothing_may_be_loaded_from_elsewhere() -> None:
    async with client() as browser:
        policy = (await browser.get("/")).headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "frame-ancestors 'none'" in policy
    assert "http" not in policy


async def test_names_in_links_are_not_prefetched() -> None:
    async with client() as browser:
        for response in (await browser.get("/"), await browser.get("/", headers={"host": "evil.example"})):
            assert response.headers["x-dns-prefetch-control"] == "off"


def test_a_browser_gets_the_token_in_a_file_that_only_its_user_may_read() -> None:
    address = f"{ORIGIN}/?token={TOKEN}"
    with redirect_file(address) as url:
        path = Path(url2pathname(urlsplit(url).path))
        assert TOKEN not in url
        assert address in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


async def test_a_lasting_path_recognises_a_browser_and_grants_it_nothing(tmp_path: Path) -> None:
    path = secret_path(tmp_path / "new")
    assert (secret_path(tmp_path / "new"), stat.S_IMODE((tmp_path / "new" / "path").stat().st_mode)) == (
        path,
        0o600,
    )
    async with client(token=TOKEN, path=path) as browser:
        first = await browser.get(f"/?token={TOKEN}", follow_redirects=True)
        cookies = httpx.Cookies(browser.cookies)
    assert "Max-Age" in first.headers["set-cookie"]
    async with client(token="another token", path=path) as browser:
        browser.cookies = cookies
        assert (await browser.get(f"/{path}/")).status_code == 401
        second = await browser.get("/?token=another token", follow_redirects=True)
    assert second.text == first.text


# -- behind a proxy ----------------------------------------------------------------------------------------------------

PROXIED = {"host": "127.0.0.1:8080"}
"""What proxies pass that replace the host by their upstream's."""


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://class.example", 200),
        ("https://CLASS.example:8443", 200),
        ("https://evil.example", 403),
        ("https://class.example.evil.example", 403),
        ("https://evil.example@class.example", 403),
        ("null", 403),
    ],
)
async def test_the_page_of_a_proxy_with_an_allowed_name_may_use_it(origin: str, status: int) -> None:
    async with client(token=TOKEN, allowed_hosts=("class.example",)) as browser:
        path = await exchange_token(browser)
        response = await browser.post(path, headers={**PROXIED, "origin": origin})
        # Not found: below its path the small application of this test has nothing.
        assert (response.status_code == 403) == (status == 403)
    async with client(token=TOKEN) as browser:
        path = await exchange_token(browser)
        refused = await browser.post(path, headers={**PROXIED, "origin": origin})
        assert refused.status_code == 403


async def test_below_a_path_of_a_proxy_the_token_leads_there() -> None:
    async with client(token=TOKEN, base_url="https://class.example") as browser:
        headers = {"x-forwarded-prefix": "/learn/python/"}
        response = await browser.get(f"/?token={TOKEN}", headers=headers)
        assert response.headers["location"].startswith("/learn/python/")
        assert "Path=/learn/python/" in response.headers["set-cookie"]


@pytest.mark.parametrize("prefix", ["//evil.example", "/a;b", "https://evil.example", "/\r\nx: y", "/a b"])
async def test_a_prefix_that_is_no_path_leads_nowhere(prefix: str) -> None:
    async with client(token=TOKEN) as browser:
        headers = {"x-forwarded-prefix": prefix.replace("\r\n", " ")}
        response = await browser.get(f"/?token={TOKEN}", headers=headers)
        assert "evil" not in response.headers["location"]
        assert response.headers["location"].count("/") == 2


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (["//evil.com"], []),
        (["/learn/"], ["/learn"]),
        (["https://evil.com"], []),
        (["/a", "//evil.com"], ["/a"]),
        ([], []),
    ],
)
async def test_the_application_sees_a_prefix_that_is_a_path_or_none(sent: list[str], seen: list[str]) -> None:
    async def show(request: Request) -> PlainTextResponse:
        return PlainTextResponse(repr(request.headers.getlist("x-forwarded-prefix")))

    app = Guard(Starlette(routes=[Route("/", show)]), port=8080)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as browser:
        headers = [("x-forwarded-prefix", prefix) for prefix in sent]
        assert (await browser.get("/", headers=headers)).text == repr(seen)


@pytest.mark.parametrize(("scheme", "is_secure"), [("https", True), ("http", False)])
async def test_cookies_of_https_are_sent_over_https_only(scheme: str, is_secure: bool) -> None:
    async with client(base_url=f"{scheme}://127.0.0.1:8080") as browser:
        assert ("Secure" in (await browser.get("/")).headers["set-cookie"]) == is_secure


async def test_a_client_that_is_forgotten_gets_another_id() -> None:
    async def forget(request: Request) -> PlainTextResponse:
        request.state.client_id = "z" * 32
        return PlainTextResponse("")

    routes = [Route("/", echo), Route("/forget", forget)]
    app = Guard(Starlette(routes=routes), port=8080)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as browser:
        before = (await browser.get("/")).text
        await browser.get("/forget")
        assert (await browser.get("/")).text != before
        assert (await browser.get("/")).text.startswith("z" * 32)
