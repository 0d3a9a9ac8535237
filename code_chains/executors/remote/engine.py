"""Docker and Podman: the kernel sandbox inside one container that lives as long as its executor; and the image for it."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from code_chains._version import __version__
from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors.guest.wire import SHORTAGES
from code_chains.executors.limits import Limits
from code_chains.executors.remote.stdio import SERVER, StdioExecutor

ENGINES = ("docker", "podman")
IMAGE: str = f"code-chains:{__version__}"
"""What `code-chains image build` makes: this version of the library, with the libraries of its extra `data`."""
BASE = "python:3.13-slim"
MIN_MEMORY, MEMORY_FACTOR, MAX_PROCESSES = 1 << 30, 8, 4096
"""Bytes of the server, runs whose memory fits into the container besides, and processes of all."""
_ASK_TIMEOUT_S = 10.0
_EXTRA = "data"
_OF_EXTRA = re.compile(r"extra\s*==\s*['\"](\w+)['\"]")
_DOCKERFILE = """\
FROM {base}
RUN pip install --no-cache-dir {requirements}
COPY code_chains /opt/code_chains/code_chains
ENV PYTHONPATH=/opt/code_chains PYTHONUNBUFFERED=1
# Whoever starts the container gives it no more rights than these.
RUN useradd --create-home --uid 1000 programs && python3 -m compileall -q /opt/code_chains
USER programs
WORKDIR /home/programs
"""


class EngineExecutor(StdioExecutor):
    """Run programs in the kernel sandbox inside a container of Docker or Podman: on macOS, on Windows, and as a second wall.

    One container serves all runs, without a network or capabilities, with limits of memory and processes, and with the
    image of `code-chains image build`; it is removed when the executor is closed or its process ends. Everything else is
    as with `SandboxExecutor`, of which it is a copy.

    Args:
        engine: `docker` or `podman`.
        image: The image, with this version of the library.
        limits: Limits of one run.
        options: More options of `docker run`, such as `["--memory=4g"]`.
        max_sessions: Sessions that are open at a time.

    Raises:
        ConfigurationError: An argument is invalid.
        ExecutorError: The engine does not answer, or has no such image; raised at the first run.

    Example:
        with EngineExecutor("docker") as executor:
            executor.run("sum(range(1, 6))").output
    """

    def __init__(
        self,
        engine: str = "docker",
        *,
        image: str = IMAGE,
        limits: Limits | None = None,
        options: tuple[str, ...] | list[str] = (),
        max_sessions: int = 16,
    ) -> None:
        if engine not in ENGINES:
            raise ConfigurationError("engine", engine, "'docker' or 'podman'")
        memory = MIN_MEMORY + MEMORY_FACTOR * (limits or Limits()).memory_bytes
        isolation = ["--network=none", "--security-opt=no-new-privileges", "--pull=never"]
        isolation += ["--cap-drop=ALL", f"--pids-limit={MAX_PROCESSES}", f"--memory={memory}"]
        command = [engine, "run", "--rm", "--interactive", *isolation, *options, image, "python3", *SERVER]
        super().__init__(command, limits=limits, max_sessions=max_sessions)
        self.engine: str = engine
        self.image: str = image

    def _connect(self) -> Any:
        try:
            return super()._connect()
        except ExecutorError as error:
            if re.search(r"no such image|unable to find image|image not known", str(error), re.IGNORECASE):
                remedy = f"Build it: code-chains image build --engine {self.engine}"
                raise ExecutorError(f"{self.engine} has no image {self.image!r}. {remedy}") from error
            raise


@functools.cache
def ready_engine() -> str | None:
    """Return an engine that answers and has the image; None if there is none. It is asked once in a process.

    Raises:
        ExecutorError: It did not answer in time.
    """
    return next(filter(_has_image, filter(shutil.which, ENGINES)), None)


def _has_image(engine: str) -> bool:
    command = [engine, "image", "inspect", IMAGE]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ASK_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        if isinstance(error, OSError) and error.errno not in SHORTAGES:
            return False
        message = f"Whether {engine} has the image is unknown: {error}. Try again, or name an executor."
        raise ExecutorError(message, is_retryable=True) from error
    return done.returncode == 0


def build_image(engine: str = "docker", *, image: str = IMAGE, base: str = BASE) -> None:
    """Build the image: this library as it is installed here, and what it requires from the package index.

    Args:
        engine: `docker` or `podman`.
        image: The name of the image.
        base: The image that it is built from: Linux with Python 3.11 or newer as `python3`, and pip.

    Raises:
        ExecutorError: The engine is not installed, or the build failed; it prints why.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_context(folder, base)
        try:
            done = subprocess.run([engine, "build", "--tag", image, str(folder)], check=False)
        except OSError as error:
            raise ExecutorError(f"{engine} cannot be started: {error.strerror}. Install it.") from error
    if done.returncode:
        raise ExecutorError(f"{engine} could not build {image!r}; what it printed says why.")


def write_context(folder: Path, base: str) -> None:
    """Write what an image is built from: its Dockerfile and this library."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(Path(__file__).parents[2], folder / "code_chains", ignore=ignored)
    requirements = " ".join(f"'{requirement}'" for requirement in sorted(set(_requirements())))
    (folder / "Dockerfile").write_text(_DOCKERFILE.format(base=base, requirements=requirements))


def _requirements() -> Iterator[str]:
    """Yield the requirements of the library, and of its extra with libraries for data."""
    for requirement in metadata.requires("code_chains") or ():
        needed, _, marker = requirement.partition(";")
        extra = _OF_EXTRA.search(marker)
        if (extra is None or extra[1] == _EXTRA) and not needed.startswith("code-chains"):
            # Other conditions, such as sys_platform, are for the pip in the image to decide.
            left = _OF_EXTRA.sub('python_version > "0"', marker).strip().replace("'", '"')
            yield f"{needed.strip()}; {left}" if left else needed.strip()
