"""The places a run may write to, made by its watcher before the program is there."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterable

from .kernel import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_REC,
    MS_REMOUNT,
    NEWNET,
    NEWNS,
    mount,
    unshare,
)
from .mirror import HIDDEN
from .wire import Json

FOLDERS = ("box", "tmp", "shm")
"""Working directory, temporary files, shared memory: all in one bounded file system."""
CHUNK = 1 << 20
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make(config: Json) -> int:
    """Make the places that a run may write to; returns the descriptor of the directory that holds them all."""
    if config["namespaces"]:
        limits = config["limits"]
        return make_private(limits["disk"], limits["files"], config["shown"])
    root = os.open(config["root"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    make_folders(root)
    if config["uid"]:
        for folder in FOLDERS:
            os.chown(folder, config["uid"], config["uid"], dir_fd=root)
    os.chdir(f"{config['root']}/box")
    return root


def user(uid: int) -> int:
    """A user to be instead of root: root itself, without capabilities, where another cannot even read the interpreter."""
    if not uid:
        return 0
    os.seteuid(uid)
    try:
        os.close(os.open(os.__file__, os.O_RDONLY))
    except OSError:
        return 0
    finally:
        os.seteuid(0)
    return uid


def in_use(root: int, most: int) -> tuple[int, int]:
    """Bytes and entries below the places, counted up to about `most` entries; folders may be nested without end."""
    size = count = 0
    waiting = [os.open(folder, FOLDER, dir_fd=root) for folder in FOLDERS]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as entries:
            for entry in itertools.islice(entries, most + 1 - count):
                count += 1
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(os.open(entry.name, FOLDER, dir_fd=folder))
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
        os.close(folder)
    return size, count


def remove(path: str) -> None:
    """Remove a directory, however deep it is."""
    subprocess.run(["/bin/rm", "-rf", "--", path], check=False, stderr=subprocess.DEVNULL)


def make_copies(root: int, config: Json) -> int:
    """A directory beside the places that the program cannot reach, in a bounded file system of its own if possible."""
    os.mkdir(HIDDEN, 0o700, dir_fd=root)
    if config["namespaces"]:
        limits = config["limits"]
        options = f"mode=0700,size={11 * limits['disk']},nr_inodes={11 * limits['files']}"
        mount("tmpfs", f"/proc/self/fd/{root}/{HIDDEN}", "tmpfs", MS_NOSUID | MS_NODEV, options)
    return os.open(HIDDEN, FOLDER, dir_fd=root)


def make_private(disk: int, files: int, shown: Iterable[str]) -> int:
    """Own mounts, processes and network for this process and its children; returns the descriptor of the new places.

    Args:
        disk: Bytes that may be written to all of them.
        files: Files and directories that may be made.
        shown: Paths of the host below one of the places, which stay to be seen.
    """
    unshare(NEWNS | NEWNET)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    kept = [(os.open(path, os.O_PATH | os.O_CLOEXEC), path) for path in shown]
    mount("tmpfs", "/box", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=0755,size={disk},nr_inodes={files + 200}")
    root = os.open("/box", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    make_folders(root)
    for folder, place in (("tmp", "/tmp"), ("shm", "/dev/shm"), ("box", "/box")):
        mount(f"/box/{folder}", place, None, MS_BIND)
    for descriptor, path in kept:
        show(descriptor, path)
    os.chdir("/box")
    return root


def show(descriptor: int, path: str) -> None:
    """Put back what a place of our own has covered."""
    if os.path.isdir(f"/proc/self/fd/{descriptor}"):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
    os.close(descriptor)


def make_folders(root: int) -> None:
    for folder in FOLDERS:
        os.mkdir(folder, dir_fd=root)
        os.chmod(folder, 0o755 if folder == "box" else 0o1777, dir_fd=root)


def grow(disk: int) -> None:
    """Let the places hold so many bytes."""
    mount(None, "/box", None, MS_REMOUNT | MS_NOSUID | MS_NODEV, f"size={disk}")


def put(root: int, name: str, source: int, uid: int) -> None:
    """Copy a file from its descriptor into the working directory, read-only."""
    folder = os.open("box", FOLDER, dir_fd=root)
    *above, last = name.split("/")
    for part in above:
        try:
            os.mkdir(part, dir_fd=folder)
            if uid:
                os.chown(part, uid, uid, dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            pass
        inner = os.open(part, FOLDER, dir_fd=folder)
        os.close(folder)
        folder = inner
    with contextlib.suppress(FileNotFoundError):
        os.unlink(last, dir_fd=folder)
    target = os.open(last, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with os.fdopen(target, "wb") as written, os.fdopen(source, "rb") as read:
        shutil.copyfileobj(read, written, CHUNK)
        if uid:
            os.fchown(target, uid, uid)
        os.fchmod(target, 0o444)
    os.close(folder)
