"""Diagnosis of this machine: versions, isolation and models, tested by using them."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from code_chains.callbacks.redaction import describe_error
from code_chains.errors import CodeChainsError, ExecutorError
from code_chains.executors import SandboxExecutor, WasmExecutor
from code_chains.executors.strongest import strongest_level
from code_chains.inputs import shortened
from code_chains.models import default_model, resolve_model
from code_chains.models.choice import local_choice
from code_chains.models.hub import installed_hub_files
from code_chains.models.resolve import is_embedded
from code_chains.models.weights import CATALOGUE, Weights, models_directory
from code_chains.state import PROBED

Check = tuple[bool, str]
_TIMEOUT_S = 60.0
PACKAGES = ("code-chains", "langchain-core", "langchain-classic", "langchain-openai", "xllamacpp")

DATA_LIBRARIES = ("numpy", "pandas", "matplotlib", "pyarrow", "openpyxl", "scipy", "sklearn", "seaborn")


def diagnose(model: str | None = None, base_url: str | None = None) -> Iterator[tuple[str, list[Check]]]:
    """Yield sections with their checks: whether each passed, and a message that names the remedy if it did not.

    Args:
        model: Name of a model to call.
        base_url: Base URL of its server.
    """
    if model is not None or base_url is not None:
        yield "Model", [_check_call(model, base_url)]
    yield "Versions", list(_check_versions())
    yield "Libraries of programs", list(_check_libraries())
    launchers = ("bubblewrap", "namespaces", "landlock")
    yield "Isolation", [*map(_check_isolation, launchers), _check_webassembly()]
    yield "Models", list(_check_models())


def _check_call(name: str | None, base_url: str | None) -> Check:
    """Call a model, as a question would."""
    name = name or default_model()
    started = time.monotonic()
    try:
        is_local = is_embedded(name) and not base_url
        options: dict[str, Any] = {} if is_local else {"max_retries": 0, "timeout": _TIMEOUT_S}
        model = resolve_model(name, base_url=base_url, **options)
        reply = model.invoke("Reply with the word: ready")
    except Exception as error:
        return False, f"{name}: {describe_error(error)}"
    seconds = time.monotonic() - started
    text = " ".join(str(getattr(reply, "text", reply)).split())
    return bool(text), f"{name}: replied {shortened(text, 60)!r} in {seconds:.1f} s"


def _check_versions() -> Iterator[Check]:
    yield (
        True,
        f"Python {platform.python_version()} on {platform.system()} {platform.release()} {platform.machine()}",
    )
    for package in PACKAGES:
        try:
            yield True, f"{package} {version(package)}"
        except PackageNotFoundError:
            yield False, f"{package} is not installed"


def _check_libraries() -> Iterator[Check]:
    missing = [name for name in DATA_LIBRARIES if importlib.util.find_spec(name) is None]
    present = [name for name in DATA_LIBRARIES if name not in missing]
    if present:
        yield True, f"programs can import {', '.join(present)}"
    if missing:
        remedy = "tables, figures, statistics and workbooks need the extra data (`pip install -e '.[data]'` in the clone)"
        yield False, f"not installed: {', '.join(missing)}; {remedy}"


def _check_isolation(launcher: Any) -> Check:
    if launcher == "bubblewrap" and not shutil.which("bwrap"):
        return (
            False,
            "bubblewrap: not installed (`apt install bubblewrap`); the namespaces launcher is used instead",
        )
    try:
        min_isolation: Any = "landlock" if launcher == "landlock" else "kernel"
        with SandboxExecutor(
            launcher=launcher, min_isolation=min_isolation, preload=(), min_idle=0
        ) as sandbox:
            isolation = sandbox.run("print('from inside the sandbox')").isolation
    except CodeChainsError as error:
        return False, f"{launcher}: {error}"
    if isolation is None:
        return False, f"{launcher}: the test program did not run"
    closed = [name for name in PROBED if name not in isolation.open]
    label = f"{launcher} {_bwrap_version()}".rstrip() if launcher == "bubblewrap" else launcher
    proof = f"a probe inside confirmed as closed: {', '.join(closed)}; layers: {', '.join(isolation.layers)}"
    return isolation.level != "none", f"{label}: {isolation.level}; {proof}{_default(launcher)}"


def _default(level: str) -> str:
    """Say so if chains run programs at a level below the strongest."""
    try:
        return "; chains run programs here by default" if strongest_level() == level else ""
    except ExecutorError as error:
        return f"; {error}"


def _check_webassembly() -> Check:
    try:
        with WasmExecutor() as executor:
            isolation = executor.run("print('from inside WebAssembly')").isolation
    except CodeChainsError as error:
        return False, f"WebAssembly: {error}"
    return (
        isolation is not None,
        f"WebAssembly: wasm; a probe inside confirmed everything as closed{_default('wasm')}",
    )


def _bwrap_version() -> str:
    process = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)  # noqa: S607
    return process.stdout.split()[-1] if process.returncode == 0 and process.stdout else ""


def _check_models() -> Iterator[Check]:
    has_key = bool(os.environ.get("OPENAI_API_KEY"))
    yield has_key, f"OpenAI: OPENAI_API_KEY is {'set' if has_key else 'not set'}"
    if importlib.util.find_spec("xllamacpp") is None:
        yield False, "embedded: the runtime is not installed (`pip install -e '.[local]'` in the clone)"
    else:
        yield from map(_describe_weights, CATALOGUE.values())
        yield from ((True, f"{file.name}: installed") for file in installed_hub_files())
        yield _describe_choice()
    yield True, f"models are stored in {models_directory()}; the default is {default_model()}"


def _describe_weights(weights: Weights) -> Check:
    state = "installed" if weights.is_installed() else f"downloaded on first use, {weights.size / 1e6:.0f} MB"
    return True, f"{weights.name}: {state}; {weights.title}"


def _describe_choice() -> Check:
    try:
        return True, str(local_choice())
    except CodeChainsError as error:
        return False, str(error)
