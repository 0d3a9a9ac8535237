"""The folders that a run may write to, created by its supervisor before the program exists."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator

from ..kernel.syscalls import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MS_BIND,
    MS_NOATIME,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    unmount,
    unshare,
)
from .config import WorkerConfig
from .snapshot import COPIES_FOLDER, FOLDER_FLAGS, open_folder

FOLDERS = ("box", "tmp", "shm")
"""Working directory, temporary files and shared memory, all in one file system of limited size."""
MOUNT_POINTS = (("tmp", "/tmp"), ("shm", "/dev/shm"), ("box", "/box"))
CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 512
COVER = "/etc/group"
"""A file that nobody can write to."""
ESCAPED = re.compile(r"\\(\d{3})")
"""A blank and the like in the list of mounts."""
MAX_SNAPSHOTS = 11
"""Copies of all files that a session may hold at a time."""


def make(config: WorkerConfig) -> int:
    """Create the writable folders of a run; return the descriptor of the directory that contains them."""
    if config["namespaces"]:
        limits = config["limits"]
        return make_private(limits["disk"], limits["files"], config["visible"])
    root = os.open(config["root"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    make_folders(root)
    if config["uid"]:
        for folder in FOLDERS:
            os.chown(folder, config["uid"], config["uid"], dir_fd=root)
    os.chdir(f"{config['root']}/box")
    return root


def usable_uid(uid: int) -> int:
    """Return a user to run as instead of root; 0 if that user cannot even read the interpreter and its packages."""
    if not uid:
        return 0
    needed = [path for path in (os.__file__, *sys.path) if os.path.exists(path)]
    os.seteuid(uid)
    try:
        is_usable = all(os.access(path, os.R_OK, effective_ids=True) for path in needed)
    finally:
        os.seteuid(0)
    return uid if is_usable else 0


def usage(root: int, folders: Iterable[str], max_entries: int) -> tuple[int, int]:
    """Return bytes and number of entries of folders, counted up to about `max_entries`; too deep is too many."""
    size = count = 0
    pending = list(folders)
    while pending and count <= max_entries:
        path = pending.pop()
        try:
            with open_folder(root, path) as folder, os.scandir(folder) as entries:
                for entry in itertools.islice(entries, max_entries + 1 - count):
                    count += 1
                    with contextlib.suppress(OSError):
                        size += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(f"{path}/{entry.name}")
        except OSError as error:  # It may have been removed.
            if error.errno == errno.ENAMETOOLONG:
                count += max_entries
    return size, count


def remove(path: str) -> None:
    """Remove a directory, however deep it is."""
    with contextlib.suppress(OSError):  # Most programs leave nothing.
        for folder in FOLDERS:
            os.rmdir(f"{path}/{folder}")
        os.rmdir(path)
        return
    remove_all = ["/bin/rm", "-rf", "--", path]
    subprocess.run(remove_all, check=False, stderr=subprocess.DEVNULL)
    if os.path.lexists(path):  # A program may have made folders that its user cannot list.
        subprocess.run(["/bin/chmod", "-R", "u+rwX", "--", path], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(remove_all, check=False, stderr=subprocess.DEVNULL)


def make_copies(root: int, config: WorkerConfig) -> int:
    """Create a folder that the program cannot reach, in a file system of limited size if possible."""
    if not config["namespaces"]:
        os.mkdir(COPIES_FOLDER, 0o700, dir_fd=root)
    else:
        size, files = MAX_SNAPSHOTS * config["limits"]["disk"], MAX_SNAPSHOTS * config["limits"]["files"]
        options = f"mode=0700,size={size},nr_inodes={files}"
        mount("tmpfs", f"/proc/self/fd/{root}/{COPIES_FOLDER}", "tmpfs", MS_NOSUID | MS_NODEV, options)
    return os.open(COPIES_FOLDER, FOLDER_FLAGS, dir_fd=root)


def enter() -> None:
    """Give this process and its children mounts and a network of their own."""
    unshare(CLONE_NEWNS | CLONE_NEWNET)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def hide_sockets(shared: Iterable[str], empty: str) -> None:
    """Put other sockets and FIFOs in the place of those of the host, also of those that are made later.

    A read-only mount keeps nobody from connecting to a socket by its path, nor from writing to a FIFO. In an overlay they
    are other ones, without a peer. Where the kernel makes none, and below other mounts, they are covered as they are found.

    Args:
        shared: Folders and files of the host that are visible.
        empty: An empty folder, as an overlay that is read-only has two at least.

    Raises:
        OSError: They cannot be covered.
    """
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        mounts = [ESCAPED.sub(lambda match: chr(int(match[1], 8)), line.split(" ")[1]) for line in file]
    for path in filter(os.path.isdir, shared):
        has_mounts = any(point.startswith(path.rstrip("/") + "/") for point in mounts)
        if has_mounts or not overlay(path, empty):
            for special in special_files(path):
                mount(COVER, special, None, MS_BIND)
    os.chdir("/")


def overlay(path: str, empty: str) -> bool:
    """Mount a folder once more as an overlay; return whether that is possible."""
    try:
        # Invariant: it is named ".", as a path may hold what separates the options of a mount.
        os.chdir(path)
        mount("overlay", path, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, f"lowerdir=.:{empty}")
    except OSError:
        return False
    return True


def special_files(folder: str) -> Iterator[str]:
    """Yield the sockets, FIFOs and devices below a folder, without following links."""
    pending = [folder]
    while pending:
        with contextlib.suppress(PermissionError, FileNotFoundError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    yield entry.path


def clear() -> None:
    """Unmount what `make_private` has mounted, with all files."""
    os.chdir("/")
    for path in ("/box", *(mount_point for _, mount_point in MOUNT_POINTS)):  # /box has two mounts.
        unmount(path)


def make_private(disk: int, files: int, visible: Iterable[str]) -> int:
    """Mount the folders; return the descriptor of the directory that contains them.

    Args:
        disk: Bytes that may be written to all folders together.
        files: Number of files and folders.
        visible: Paths of the host below one of the folders, which stay visible.
    """
    covered = [(os.open(path, os.O_PATH | os.O_CLOEXEC), path) for path in visible]
    mount("tmpfs", "/box", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, f"mode=0755,size={disk}")
    root = os.open("/box", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    make_folders(root)
    for folder, mount_point in MOUNT_POINTS:  # Invariant: /box is last, as it covers the others.
        mount(f"/box/{folder}", mount_point, None, MS_BIND)
    for descriptor, path in covered:
        uncover(descriptor, path)
    os.mkdir(COPIES_FOLDER, 0o700, dir_fd=root)
    resize(disk, entries(root) + files + 1)
    os.chdir("/box")
    return root


def uncover(descriptor: int, path: str) -> None:
    """Bind a path of the host again after a mount has covered it."""
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


def entries(root: int) -> int:
    """Return the number of files and folders in the file system of the folders."""
    status = os.fstatvfs(root)
    return status.f_files - status.f_ffree


def resize(disk: int, max_entries: int) -> None:
    """Limit the bytes and the number of files and folders of the file system."""
    mount(None, "/box", None, MS_REMOUNT | MS_NOSUID | MS_NODEV, f"size={disk},nr_inodes={max_entries}")


def put(root: int, name: str, source: int, uid: int) -> None:
    """Copy a file from its descriptor into the working directory, read-only."""
    folder = os.open("box", FOLDER_FLAGS, dir_fd=root)
    *parents, file_name = name.split("/")
    for part in parents:
        try:
            os.mkdir(part, dir_fd=folder)
            if uid:
                os.chown(part, uid, uid, dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            pass
        child = os.open(part, FOLDER_FLAGS, dir_fd=folder)
        os.close(folder)
        folder = child
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file_name, dir_fd=folder)
    target = os.open(file_name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with os.fdopen(target, "wb") as written, os.fdopen(source, "rb") as read:
        shutil.copyfileobj(read, written, CHUNK_BYTES)
        if uid:
            os.fchown(target, uid, uid)
        os.fchmod(target, 0o444)
    os.close(folder)
