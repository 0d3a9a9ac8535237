"""Files of the model hub by name: a hub on loopback with the few endpoints that a download uses."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from code_chains.apps.terminal.cli import cli
from code_chains.assembly.parts import Parts
from code_chains.callbacks.usage import UsageMeter
from code_chains.chains import ValidateChain
from code_chains.errors import CodeChainsError, ConfigurationError, WeightsError
from code_chains.models import downloads, resolve_model
from code_chains.models.hub import HubFile, installed_hub_files
from code_chains.testing import ScriptedExecutor
from tests.models.test_local import write_gguf

CONTENT = b"GGUF" + bytes(range(256)) * 100
NAME = "hf:someone/tiny-GGUF:tiny.gguf"
TOKEN = "hf_" + "s3cret" * 6


@dataclass
class Hub:
    """The model hub, with one file.

    Attributes:
        url: Its address.
        content: The content of the file.
        refusal: Status and code of an error, for all requests.
        refuse_downloads: Whether only the metadata is sent.
        storage: The address that it redirects downloads to; nothing if it sends files itself.
        etag: What it states as the checksum; that of the content unless set.
        requests: Method, path, range and token of each request for a file.
    """

    url: str
    content: bytes = CONTENT
    etag: str = ""
    refusal: tuple[int, str] | None = None
    refuse_downloads: bool = False
    storage: str = ""
    requests: list[tuple[str, str, str, str]] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        span, token = (request.headers.get(name, "") for name in ("Range", "Authorization"))
        if "/api/" in request.path:  # The client asks for lists of its own.
            return Response("", 404)
        self.requests.append((request.method, request.path, span, token))
        if self.refusal or (self.refuse_downloads and request.method == "GET"):
            status, code = self.refusal or (500, "")
            said = {"X-Error-Code": code, "X-Error-Message": f"You sent {token}"}
            return Response("", status, said)
        etag = self.etag or hashlib.sha256(self.content).hexdigest()
        if self.storage and "/storage/" not in request.path:
            linked = {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(self.content))}
            return Response("", 302, {"Location": self.storage, "X-Repo-Commit": "0" * 40, **linked})
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": "0" * 40, "Accept-Ranges": "bytes"}
        response = Response(self.content, headers=headers)
        return response.make_conditional(request, accept_ranges=True, complete_length=len(self.content))


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def hub(http_server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    constants = pytest.importorskip("huggingface_hub.constants")
    place = f"/{secrets.token_hex(8)}"
    hub = Hub(http_server.url_for(place))
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    http_server.expect_request(re.compile(f"{place}/.*")).respond_with_handler(hub.answer)
    yield hub
    http_server.clear()


def install(name: str = NAME) -> Path:
    return HubFile.parse(name).install(quiet=True)


def kept(models: Path) -> list[str]:
    """Files that are not locks."""
    return sorted(path.name for path in models.rglob("*") if path.is_file() and path.suffix != ".lock")


# -- names ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "repository", "file", "revision"),
    [
        ("hf:a/b:c.gguf", "a/b", "c.gguf", ""),
        (
            "hf:Qwen/Qwen3-4B-GGUF:Q4_K_M/Qwen3-4B.Q4_K_M.gguf",
            "Qwen/Qwen3-4B-GGUF",
            "Q4_K_M/Qwen3-4B.Q4_K_M.gguf",
            "",
        ),
        ("hf:a/b:c.GGUF@v1.0", "a/b", "c.GGUF", "v1.0"),
        ("hf:a/b:c.gguf@refs/pr/1", "a/b", "c.gguf", "refs/pr/1"),
        ("hf:a/b:c-00001-of-00001.gguf", "a/b", "c-00001-of-00001.gguf", ""),
    ],
)
def test_a_name_has_a_repository_a_file_and_perhaps_a_revision(
    name: str, repository: str, file: str, revision: str
) -> None:
    parsed = HubFile.parse(name)
    assert (parsed.repository, parsed.file, parsed.revision, parsed.name) == (
        repository,
        file,
        revision,
        name,
    )


@pytest.mark.parametrize(
    "name",
    [
        "hf:",
        "hf:a",
        "hf:a/b",
        "hf:a/b:",
        "hf:a/b:c.bin",
        "hf:a/b:c.gguf@",
        "hf:a:c.gguf",
        "hf:../b:c.gguf",
        "hf:a/..:c.gguf",
        "hf:a/b/c:d.gguf",
        "hf:a/b:../c.gguf",
        "hf:a/b:x/../../c.gguf",
        "hf:a/b:/etc/c.gguf",
        "hf:a/b:x//c.gguf",
        "hf:a/b:.gguf",
        "hf:a/b:x\\c.gguf",
        "hf:a/b:c.gguf@../../x",
        "hf:a/b:c.gguf@/x",
        "hf:a/b:c\n.gguf",
        "hf:a/b:c\0.gguf",
        "hf:a/b:%2e%2e/c.gguf",
        f"hf:a/b:{'c' * 300}.gguf",
        f"hf:{'a' * 5000}",
    ],
)
def test_a_malformed_name_is_refused_with_the_form_of_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"hf:OWNER/REPO:FILE\.gguf"):
        resolve_model(name)


def test_a_part_of_a_split_model_is_refused_before_its_download() -> None:
    with pytest.raises(ConfigurationError, match=r"whole.*llama-gguf-split --merge"):
        resolve_model("hf:a/b:big-00001-of-00003.gguf")


@given(st.text(alphabet="ab./\\:@-_ %\0\n~", max_size=30) | st.text(max_size=30))
def test_no_name_leads_out_of_the_folder_of_models(text: str) -> None:
    try:
        path = HubFile.parse(f"hf:a/b:{text}.gguf").path
    except ConfigurationError:
        return
    root = downloads.models_directory()
    assert Path(os.path.normpath(path)) == path
    assert (root in path.parents, len(path.relative_to(root).parts)) == (True, 5)


# -- downloads -----------------------------------------------------------------------------------------------------------


def test_a_file_is_downloaded_once_and_then_needs_no_hub(hub: Hub, models: Path) -> None:
    path = install()
    asked = len(hub.requests)
    hub.refusal = (500, "")
    assert (path.read_bytes(), install(), len(hub.requests)) == (CONTENT, path, asked)
    assert (kept(models), path.stat().st_mode & 0o077) == (["tiny.gguf", "tiny.gguf.json"], 0)


@pytest.mark.slow
def test_the_address_of_the_hub_is_a_setting(hub: Hub, models: Path) -> None:
    code = f"from code_chains.models.hub import HubFile; print(HubFile.parse({NAME!r}).install())"
    environment = {"HF_ENDPOINT": hub.url, "CODE_CHAINS_MODELS": str(models)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert Path(done.stdout.strip()).read_bytes() == CONTENT, done.stderr
    assert "Downloading someone/tiny-GGUF:tiny.gguf" in done.stderr


def test_a_file_in_a_folder_and_a_revision_are_asked_for(hub: Hub) -> None:
    assert install("hf:someone/tiny-GGUF:Q4/tiny.gguf@v1").read_bytes() == CONTENT
    assert {path.partition("/someone")[2] for _, path, _, _ in hub.requests} == {
        "/tiny-GGUF/resolve/v1/Q4/tiny.gguf"
    }


def test_revisions_and_folders_are_different_files(hub: Hub) -> None:
    names = [NAME, f"{NAME}@v1", f"{NAME}@a/b", f"{NAME}@a--b", NAME.replace("tiny.g", "a/tiny.g")]
    paths = {install(name) for name in names}
    assert (len(paths), sorted(file.name for file in installed_hub_files())) == (5, sorted(names))


def test_an_interrupted_download_is_resumed(hub: Hub, models: Path) -> None:
    hub.refuse_downloads = True
    with pytest.raises(WeightsError, match="Connect to the network"):
        install()
    partial = next(models.rglob("*.partial"))
    partial.write_bytes(CONTENT[:1000])
    hub.refuse_downloads = False
    assert install().read_bytes() == CONTENT
    assert (hub.requests[-1][2], kept(models)) == ("bytes=1000-", ["tiny.gguf", "tiny.gguf.json"])


def test_a_partial_download_of_another_content_is_not_continued(hub: Hub, models: Path) -> None:
    hub.refuse_downloads = True
    with pytest.raises(WeightsError):
        install()
    next(models.rglob("*.partial")).write_bytes(CONTENT[:1000])
    hub.refuse_downloads, hub.content = False, CONTENT[::-1] + b"GGUF"
    hub.content = b"GGUF" + hub.content
    assert install().read_bytes() == hub.content
    assert kept(models) == ["tiny.gguf", "tiny.gguf.json"]


def test_too_long_a_partial_download_begins_anew(hub: Hub, models: Path) -> None:
    hub.refuse_downloads = True
    with pytest.raises(WeightsError):
        install()
    next(models.rglob("*.partial")).write_bytes(CONTENT * 2)
    hub.refuse_downloads = False
    assert install().read_bytes() == CONTENT


def test_a_file_with_another_checksum_is_refused_and_deleted(hub: Hub, models: Path) -> None:
    hub.etag = "0" * 64
    with pytest.raises(WeightsError, match="has the SHA-256"):
        install()
    assert kept(models) == []


def test_a_file_whose_checksum_the_hub_does_not_state_is_not_downloaded(hub: Hub, models: Path) -> None:
    hub.etag = "0" * 40  # As of a file that is stored in git.
    with pytest.raises(WeightsError, match=r"states no .*SHA-256.*gguf:PATH"):
        install()
    assert ([method for method, *_ in hub.requests], kept(models)) == (["HEAD"], [])


def test_a_file_of_another_format_is_refused_and_deleted(hub: Hub, models: Path) -> None:
    hub.content = b"PK\3\4 something else"
    with pytest.raises(ConfigurationError, match="a GGUF file; this file has another format"):
        install()
    assert kept(models) == []


def test_disk_space_is_checked_before_a_download(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(WeightsError, match="Free some space"):
        install()
    assert [method for method, *_ in hub.requests] == ["HEAD"]


def test_a_modified_file_is_downloaded_again(hub: Hub) -> None:
    install().write_bytes(CONTENT[:-1] + b"!")
    assert install().read_bytes() == CONTENT


@pytest.mark.parametrize("record", [b"", b"{}", b"[1]", b'{"size": "x", "sha256": 1}', b"\xff"])
def test_a_damaged_record_makes_the_file_be_downloaded_again(hub: Hub, record: bytes) -> None:
    path = install()
    path.with_name("tiny.gguf.json").write_bytes(record)
    assert (HubFile.parse(NAME).is_installed(), install().read_bytes()) == (False, CONTENT)


# -- refusals ------------------------------------------------------------------------------------------------------------

REFUSALS: dict[str, tuple[tuple[int, str], type[CodeChainsError], str]] = {
    "unknown repository": ((404, "RepoNotFound"), ConfigurationError, "a repository that exists.*HF_TOKEN"),
    "unknown revision": ((404, "RevisionNotFound"), ConfigurationError, "a revision that exists"),
    "missing file": ((404, "EntryNotFound"), ConfigurationError, "a file that exists.*tree/main"),
    "a hub without codes": ((404, ""), ConfigurationError, "a file that exists"),
    "gated": ((403, "GatedRepo"), WeightsError, "accept its conditions on .*HF_TOKEN"),
    "gated, without a token": ((401, "GatedRepo"), WeightsError, "accept its conditions on .*HF_TOKEN"),
    "forbidden": ((403, ""), WeightsError, "HF_TOKEN"),
    "unauthorized": ((401, ""), WeightsError, "HF_TOKEN"),
    "broken": ((500, ""), WeightsError, "Connect to the network.*gguf:PATH"),
}


@pytest.mark.parametrize(("refusal", "kind", "remedy"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_the_remedy_and_no_token(
    hub: Hub,
    refusal: tuple[int, str],
    kind: type[CodeChainsError],
    remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.refusal = refusal
    with pytest.raises(kind, match=remedy) as raised:
        install()
    shown = "".join(traceback.format_exception(raised.value)) + repr(HubFile.parse(NAME))
    assert (hub.requests[0][3], TOKEN in shown) == (f"Bearer {TOKEN}", False)


def test_without_a_network_the_error_says_so(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    template = "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    with pytest.raises(WeightsError, match=r"cannot be downloaded.*Connect to the network"):
        install()


def test_the_server_that_the_hub_redirects_to_gets_no_token(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.storage = hub.url.replace("127.0.0.1", "localhost") + "/storage/tiny"
    assert install().read_bytes() == CONTENT
    tokens = {path.rpartition("/")[2]: token for _, path, _, token in hub.requests}
    assert tokens == {"tiny.gguf": f"Bearer {TOKEN}", "tiny": ""}


# -- as models -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def language_model(hub: Hub, tmp_path: Path) -> Hub:
    """A hub whose file is a language model of 100 KB."""
    pytest.importorskip("xllamacpp")
    write_gguf(tmp_path / "tiny.gguf")
    hub.content = (tmp_path / "tiny.gguf").read_bytes()
    return hub


def test_a_chain_takes_it_and_traces_name_it_without_folders(language_model: Hub, models: Path) -> None:
    usage = UsageMeter()
    model: Any = resolve_model(NAME, max_tokens=3)
    reply = model.invoke("hi", config={"callbacks": [usage]})
    title = NAME.removeprefix("hf:")
    assert (reply.response_metadata["model_name"], model._get_ls_params()["ls_model_name"]) == (title, title)
    assert list(usage.usage.by_model) == [title]
    assert [text for text in (repr(reply), repr(model)) if str(models) in text] == []


def test_a_fallback_may_be_one(language_model: Hub) -> None:
    parts = Parts("local", ScriptedExecutor(str), ValidateChain())
    fallback: Any = parts.resolve("Escalate.models", NAME)
    assert fallback.model_name == NAME


def test_the_fingerprint_is_of_the_content(language_model: Hub) -> None:
    model: Any = resolve_model(NAME, start=False)
    assert model.fingerprint["weights"] == hashlib.sha256(language_model.content).hexdigest()


def test_the_command_line_pulls_lists_and_removes_it(hub: Hub, models: Path) -> None:
    pulled = CliRunner().invoke(cli, ["models", "pull", NAME]).stdout.strip()
    listed = CliRunner().invoke(cli, ["models", "list"]).stdout
    removed = [CliRunner().invoke(cli, ["models", "remove", NAME]).stdout for _ in range(2)]
    assert (pulled, NAME in listed) == (str(HubFile.parse(NAME).path), True)
    assert (removed, kept(models)) == (["removed\n", "not installed\n"], [])


def test_the_record_is_json(hub: Hub) -> None:
    record = json.loads(install().with_name("tiny.gguf.json").read_text())
    assert record == {"size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
