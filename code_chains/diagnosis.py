"""What works on this machine, found out by trying."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from code_chains.errors import CodeChainsError
from code_chains.executors import SandboxExecutor
from code_chains.models import default_model
from code_chains.state import PROBED
from code_chains.weights import CATALOGUE, models_directory

__all__ = ["diagnose"]

Line = tuple[bool, str]
PACKAGES = ("code-chains", "langchain-core", "langchain-classic", "langchain-openai", "xllamacpp")


def diagnose() -> Iterator[tuple[str, list[Line]]]:
    """Sections with their lines; each line says whether that works, and what to do where it does not."""
    yield "Versions", list(_versions())
    yield "Isolation", [_isolation(launcher) for launcher in ("bubblewrap", "namespaces", "landlock")]
    yield "Models", list(_models())


def _versions() -> Iterator[Line]:
    yield True, f"Python {platform.python_version()} on {platform.system()} {platform.release()} {platform.machine()}"
    for package in PACKAGES:
        try:
            yield True, f"{package} {version(package)}"
        except PackageNotFoundError:
            yield False, f"{package} is not installed"


def _isolation(launcher: Any) -> Line:
    if launcher == "bubblewrap" and not shutil.which("bwrap"):
        return False, "bubblewrap: not installed (`apt install bubblewrap`); namespaces of our own stand in"
    try:
        require: Any = "landlock" if launcher == "landlock" else "kernel"
        with SandboxExecutor(launcher=launcher, require=require, preload=(), standbys=0) as box:
            isolation = box.run("print('from inside the box')").isolation
    except CodeChainsError as error:
        return False, f"{launcher}: {error}"
    if isolation is None:
        return False, f"{launcher}: nothing ran"
    closed = [name for name in PROBED if name not in isolation.open]
    label = f"{launcher} {_bwrap_version()}".rstrip() if launcher == "bubblewrap" else launcher
    proof = f"a probe inside found closed: {', '.join(closed)}; layers: {', '.join(isolation.layers)}"
    return isolation.level != "none", f"{label}: {isolation.level}; {proof}"


def _bwrap_version() -> str:
    done = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)  # noqa: S607
    return done.stdout.split()[-1] if done.returncode == 0 and done.stdout else ""


def _models() -> Iterator[Line]:
    key = bool(os.environ.get("OPENAI_API_KEY"))
    yield key, "OpenAI: OPENAI_API_KEY is set" if key else "OpenAI: OPENAI_API_KEY is not set"
    runtime = importlib.util.find_spec("xllamacpp") is not None
    if not runtime:
        yield False, "embedded: the runtime is not installed (`pip install 'code-chains[local]'`)"
    for weights in CATALOGUE.values() if runtime else ():
        there = weights.is_installed()
        fetched = "installed" if there else f"fetched on first use, {weights.size / 1e6:.0f} MB"
        yield True, f"{weights.name}: {fetched}; {weights.title}"
    yield True, f"models are kept in {models_directory()}; used where none is named: {default_model()}"
