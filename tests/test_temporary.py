"""Temporary files of a process end with it, and those of one that was killed with the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from code_chains import temporary
from tests.conftest import soon

MAKE = """
import sys, time, tempfile
from code_chains.temporary import process_folder
folder = process_folder()
open(folder + "/kept", "w").close()
print(folder, flush=True)
if len(sys.argv) > 1:
    time.sleep(60)
"""


def owner(parent: Path, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
    """Return a process with a folder, which lives on if it has an argument."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE, *arguments],
        env={**os.environ, "TMPDIR": str(parent)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(temporary, "_owners", [])
    monkeypatch.setattr(temporary, "_MIN_AGE_S", 0.0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.communicate(timeout=10)


def test_a_folder_ends_with_its_process(tmp_path: Path) -> None:
    process, folder = owner(tmp_path)
    process.communicate(timeout=10)
    assert (folder.parent, folder.exists()) == (tmp_path, False)


def test_what_a_killed_process_left_is_removed_and_nothing_else(parent: Path) -> None:
    (killed, left), (living, kept) = owner(parent, "stay"), owner(parent, "stay")
    others = [parent / "code_chains-figures", parent / "somebody"]
    for other in others:
        other.mkdir()
    end(killed, signal.SIGKILL)
    assert left.exists()
    own = Path(temporary.process_folder())
    assert soon(lambda: not left.exists())
    assert all(path.exists() for path in (kept / "kept", own, *others))
    end(living, signal.SIGKILL)


def test_a_link_of_that_name_is_not_followed(parent: Path) -> None:
    (parent / "mine").mkdir()
    (parent / "code_chains-process-link").symlink_to(parent / "mine")
    temporary._sweep(str(parent))
    assert (parent / "mine").exists()


def test_a_folder_that_is_about_to_be_locked_stays(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "_MIN_AGE_S", 60.0)
    (parent / "code_chains-process-new").mkdir()
    temporary._sweep(str(parent))
    assert (parent / "code_chains-process-new").exists()


def test_a_forked_process_has_a_folder_of_its_own(parent: Path) -> None:
    ours = temporary.process_folder()
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writing, temporary.process_folder().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        theirs = pipe.read()
    assert theirs not in (ours, "")
    assert Path(ours).exists()
