"""What is sent to a third-party sandbox or a container: the guest with its server (`session_server`), and requests to it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from code_chains.executors.inputs import check_code, files_on_disk
from code_chains.executors.limits import MAX_SECONDS, Limits
from code_chains.executors.remote.supervised import GUEST_FOLDER
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.provider import run_limits
from code_chains.executors.sandbox.request import describe_tools
from code_chains.executors.values import pack_variables

SERVER_FILES = {f"guest/{path.relative_to(GUEST_FOLDER)}": path for path in GUEST_FOLDER.rglob("*.py")}
"""What is copied into a sandbox: the kernel sandbox's own supervisor with all that it uses, and the server of runs."""
CONFINES = True
"""Whether the sandbox's kernel is to confine programs as well, as far as it can; without it stands for one that cannot."""
SERVE = """
import os, sys
sys.path.insert(0, os.getcwd())
from guest.sandbox.session_server import main
main()
"""
"""Starts the server."""


def pack(files: Mapping[str, str | bytes | Path]) -> bytes:
    """Return files as one; each is text, bytes or a path."""
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(name, content.read_bytes() if isinstance(content, Path) else content)
    return bundle.getvalue()


def server_bundle(
    limits: Limits,
    key: str,
    *,
    request: bytes | None = None,
    session_timeout: float | None = None,
) -> bytes:
    """Return what a sandbox needs to serve runs.

    Args:
        limits: The limits of each run.
        key: The secret by which server and host know each other.
        request: The only request, if no other is to follow.
        session_timeout: Seconds without a request after which a session ends; None if there is one run alone.
    """
    settings = {
        "confines": CONFINES,
        "has_request": request is not None,
        "is_session": session_timeout is not None,
        "limits": run_limits(limits),
        "max_output_bytes": limits.output_bytes,
        "session_timeout": MAX_SECONDS if session_timeout is None else session_timeout,
    }
    only = {} if request is None else {"request.zip": request}
    return pack({**SERVER_FILES, "settings.json": json.dumps(settings), "key": key, **only})


def request_bundle(program: Program, limits: Limits, *, is_harness: bool = False) -> bytes:
    """Return a program with its variables and files, as the server takes it.

    Args:
        program: The program.
        limits: Its limits.
        is_harness: Whether it is a test harness.

    Raises:
        InputError: They are not what a program can be given.
    """
    body = {
        "code": check_code(program.code),
        "variables": pack_variables(program.variables),
        "tables": {},
        "tools": program.tool_calls and describe_tools(program.tool_calls, program.variables or {}, limits),
        "is_harness": is_harness,
        "return_value": program.return_value and not is_harness,
        "stdin": program.stdin,
    }
    with files_on_disk(program.files) as files:
        inputs = {f"box/{name}": path for name, path in files.items()}
        return pack({"request.json": json.dumps(body), **inputs})
